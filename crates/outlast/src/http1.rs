//! HTTP/1.1, as far as MCP needs it, for both sides.
//!
//! A call is a small message and a small answer, and a library that can do everything costs more per
//! call than all that we do with it (`docs/http-bench.md`). So the lines of a head are read by
//! `httparse`, and what MCP needs besides is here: how a body is delimited, its parts as they stand in
//! the buffer, and the reader that both sides share.
//!
//! In doubt a message is refused: two readers who disagree about where one ends are how requests are
//! smuggled. Bounds: [`HEAD_BYTES`] and [`HEADERS`] for a head, [`body::FRAMING_BYTES`] for what a
//! chunked body holds besides its data.

pub mod body;
mod fault;
pub mod fields;
pub mod head;
pub mod inbound;
pub mod io;
#[cfg(test)]
mod tests;

pub use fault::{Fault, HEAD_BYTES, HEADERS};

/// Why a message has not come, or not all of it.
#[derive(Debug)]
pub enum Broken {
    /// The system says.
    Io(std::io::Error),
    /// The other side closed the connection.
    Closed,
    /// It sent something else.
    NotHttp(Fault),
}
