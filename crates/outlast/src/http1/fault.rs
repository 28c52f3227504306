//! What is refused, and the bounds of a head.

/// Bytes of a head. A longer one is refused.
pub const HEAD_BYTES: usize = 64 << 10;

/// Fields of a head. One with more is refused.
pub const HEADERS: usize = 100;

/// Why bytes are not HTTP/1.1 that can be trusted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum Fault {
    /// A head beyond its bounds.
    #[error("message head is too large")]
    TooLarge,
    /// Anything else.
    #[error("{0}")]
    Malformed(&'static str),
}
