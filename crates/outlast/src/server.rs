//! Whom we call.

pub mod life;
#[allow(dead_code, reason = "read by the HTTP edge")]
pub mod sse;
pub mod stdio;
