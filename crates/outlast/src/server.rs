//! Whom we call.

pub mod http;
pub mod life;
pub mod sse;
pub mod stdio;
