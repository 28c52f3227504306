//! Whom we call.

pub mod life;
pub mod stdio;
