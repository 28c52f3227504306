//! HTTP by hand, so that tests can say every byte and its faults.
//!
//! - [`faults`]: a server that answers exactly what a test says, or does not;
//! - [`caller`]: a client that sends exactly what a test says, or half of it.
//!
//! Nothing here waits for longer than [`LIMIT`](crate::peer::LIMIT).

pub mod caller;
pub mod faults;
#[cfg(test)]
mod tests;

use std::io::{self, BufRead, Error, ErrorKind, Read};
use std::net::TcpStream;

use nix::libc::linger;
use nix::sys::socket::{setsockopt, sockopt};

/// The longest head that is read.
const MOST_HEAD: usize = 1 << 20;

/// A request or status line, and what stands below it.
#[derive(Clone, Debug, Default)]
pub struct Head {
    /// The first line.
    pub start: String,
    /// Names as they came.
    pub headers: Vec<(String, String)>,
}

impl Head {
    /// Reads up to the blank line; none if the stream ends before anything comes.
    fn read(from: &mut impl BufRead) -> io::Result<Option<Head>> {
        let Some(start) = read_line(from)? else { return Ok(None) };
        let mut headers = Vec::new();
        loop {
            let line = read_line(from)?.ok_or(ErrorKind::UnexpectedEof)?;
            if line.is_empty() {
                return Ok(Some(Head { start, headers }));
            }
            let (name, value) = line.split_once(':').unwrap_or((&line, ""));
            headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The first header of this name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut named = self.headers.iter().filter(|(given, _)| given.eq_ignore_ascii_case(name));
        named.next().map(|(_, value)| value.as_str())
    }

    /// The words of the first line.
    fn word(&self, index: usize) -> &str {
        self.start.split(' ').nth(index).unwrap_or_default()
    }

    fn framing(&self, without: Framing) -> Framing {
        if self.header("Transfer-Encoding").is_some_and(|value| value.eq_ignore_ascii_case("chunked")) {
            return Framing::Chunks;
        }
        let length = self.header("Content-Length").and_then(|value| value.parse().ok());
        length.map_or(without, Framing::Length)
    }
}

fn read_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    from.take(MOST_HEAD as u64).read_until(b'\n', &mut line)?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    line.pop_if(|byte| *byte == b'\r');
    Ok(Some(String::from_utf8_lossy(&line).into_owned()))
}

/// How the end of a body is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// So many bytes are left.
    Length(u64),
    Chunks,
    UntilClose,
    /// It has ended.
    Over,
}

impl Framing {
    /// Reads the next piece of a body; an empty one is its end.
    fn read(&mut self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let piece = match self {
            Framing::Over => Vec::new(),
            Framing::Chunks => read_chunk(from)?,
            Framing::UntilClose => read_some(from, u64::MAX)?,
            Framing::Length(0) => Vec::new(),
            Framing::Length(left) => {
                let piece = read_some(from, *left)?;
                if piece.is_empty() {
                    return Err(ErrorKind::UnexpectedEof.into());
                }
                *left -= piece.len() as u64;
                piece
            }
        };
        if piece.is_empty() {
            *self = Framing::Over;
        }
        Ok(piece)
    }

    fn read_all(&mut self, from: &mut impl BufRead) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let piece = self.read(from)?;
            if piece.is_empty() {
                return Ok(body);
            }
            body.extend_from_slice(&piece);
        }
    }
}

fn read_some(from: &mut impl BufRead, most: u64) -> io::Result<Vec<u8>> {
    let there = from.fill_buf()?;
    let count = there.len().min(usize::try_from(most).unwrap_or(usize::MAX));
    let piece = there[..count].to_vec();
    from.consume(count);
    Ok(piece)
}

fn read_chunk(from: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let line = read_line(from)?.ok_or(ErrorKind::UnexpectedEof)?;
    let size = line.split(';').next().unwrap_or_default();
    let size =
        usize::from_str_radix(size.trim(), 16).map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
    let mut chunk = vec![0; size];
    from.read_exact(&mut chunk)?;
    read_line(from)?;
    Ok(chunk)
}

/// Bytes as one chunk of a body.
pub fn chunk(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}

/// From now on, closing the socket is a reset instead of an orderly end.
fn reset_on_close(socket: &TcpStream) {
    // A socket whose peer is gone needs no reset.
    let _ = setsockopt(socket, sockopt::Linger, &linger { l_onoff: 1, l_linger: 0 });
}
