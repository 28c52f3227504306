//! The machine of clients.

mod client;
pub(crate) mod session;

pub(crate) use client::*;
