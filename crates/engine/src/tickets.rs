//! The machine of tickets.

mod task;

pub use task::TaskRule;
pub(crate) use task::*;
