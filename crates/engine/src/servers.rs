//! The machine of servers.

mod ask;
mod server;

pub(crate) use ask::Ask;
pub(crate) use server::*;
