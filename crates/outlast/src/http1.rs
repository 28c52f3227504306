//! HTTP/1.1 without a connection: heads and bodies, as bytes that are there or not yet.
//!
//! A call is a small message and a small answer, and a library that can do everything costs more per
//! call than all that we do with it (`docs/http-bench.md`). So the lines of a head are read by
//! `httparse`, and what MCP needs besides is here: how a body is delimited, and its parts as they
//! stand in the buffer.
//!
//! In doubt a message is refused: two readers who disagree about where one ends are how requests are
//! smuggled. Bounds: [`HEAD_BYTES`] and [`HEADERS`] for a head, [`body::FRAMING_BYTES`] for what a
//! chunked body holds besides its data.

pub mod body;
pub mod fields;
pub mod head;

use std::borrow::Cow;

/// Bytes of a head. A longer one is refused.
pub const HEAD_BYTES: usize = 64 << 10;

/// Fields of a head. One with more is refused.
pub const HEADERS: usize = 100;

/// Why bytes are not HTTP/1.1 that can be trusted.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Fault(pub Cow<'static, str>);

impl Fault {
    const TOO_LARGE: Fault = Fault(Cow::Borrowed("message head is too large"));
}
