//! Edges to clients.

pub mod http;
pub mod stdio;
