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

use bytes::{Bytes, BytesMut};
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

/// A message without blanks around it and in one line; line breaks inside are blanks too.
pub fn one_line(bytes: Bytes) -> Bytes {
    let inner = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    let inner = bytes.slice_ref(inner);
    if memchr::memchr2(b'\n', b'\r', &inner).is_none() {
        return inner;
    }
    drop(bytes);
    let mut flat = inner.try_into_mut().unwrap_or_else(|shared| BytesMut::from(&shared[..]));
    for byte in flat.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')) {
        *byte = b' ';
    }
    flat.freeze()
}
