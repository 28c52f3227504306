//! What commands print for whoever asked. While MCP is spoken, `client/stdio.rs` alone writes stdout.

use std::io::{self, ErrorKind, Write};

/// Whether somebody still reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reader {
    There,
    Gone,
}

/// Prints a text at once. A reader that has seen enough (`| head -1`) is no failure: what was asked for goes on, and
/// the exit status says how that went.
pub fn print(text: impl AsRef<[u8]>) -> io::Result<Reader> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_ref()).and_then(|()| stdout.flush()) {
        Ok(()) => Ok(Reader::There),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Reader::Gone),
        Err(error) => Err(io::Error::new(error.kind(), format!("cannot write to stdout: {error}"))),
    }
}
