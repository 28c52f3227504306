//! A response as it arrives, piece by piece.
//!
//! Of the body only the beginning is kept: enough to see whose answer it is, and 10 MB more cost the
//! driver nothing. Only what our own targets send is understood.

use anyhow::{Context, Result, bail, ensure};
use memchr::memmem;

use crate::bench::messages;

/// Bytes of a body that are kept. Before an answer on a stream a few short events may stand.
const KEPT: usize = 4096;

/// Bytes of a head. More is a mistake.
const HEAD: usize = 16 * 1024;

#[derive(Default)]
pub struct Reply {
    pub status: u16,
    /// Whether the body is a stream of events.
    pub streams: bool,
    pub session: Option<String>,
    /// How long the body is so far, without its framing.
    pub length: usize,
    kept: Vec<u8>,
    head: Vec<u8>,
    step: Step,
}

/// What comes next.
#[derive(Default, Clone, Copy, PartialEq, Eq)]
enum Step {
    #[default]
    Head,
    /// So much of a body whose length was told.
    Body(usize),
    /// The line with a chunk's size, so far this.
    Size(usize),
    Chunk(usize),
    /// The end of a chunk's last line: so many bytes.
    ChunkEnd(usize),
    /// The end of the last chunk: so many bytes.
    LastEnd(usize),
    Done,
}

impl Reply {
    /// Takes bytes that belong to this response; true as soon as it is complete.
    pub fn take(&mut self, mut bytes: &[u8]) -> Result<bool> {
        while !bytes.is_empty() {
            bytes = match self.step {
                Step::Head => self.take_head(bytes)?,
                Step::Body(left) => self.take_body(bytes, left, Step::Body, Step::Done),
                Step::Size(so_far) => self.take_size(bytes, so_far)?,
                Step::Chunk(left) => self.take_body(bytes, left, Step::Chunk, Step::ChunkEnd(2)),
                Step::ChunkEnd(left) => self.skip(bytes, left, Step::ChunkEnd, Step::Size(0)),
                Step::LastEnd(left) => self.skip(bytes, left, Step::LastEnd, Step::Done),
                Step::Done => bail!("more than a response: {}", messages::start_of(bytes)),
            };
        }
        Ok(self.is_complete())
    }

    pub fn is_complete(&self) -> bool {
        self.step == Step::Done
    }

    /// Whether a stream has begun and not ended.
    pub fn is_open_stream(&self) -> bool {
        self.streams && !self.is_complete()
    }

    /// Checks that this is the result of a call.
    pub fn expect_result(&self, id: u64) -> Result<()> {
        let wanted = format!(r#""id":{id},"#);
        let ours = self.status == 200 && memmem::find(&self.kept, wanted.as_bytes()).is_some();
        ensure!(
            ours && messages::is_result(&self.kept),
            "call {id} was answered with {}: {}",
            self.status,
            messages::start_of(&self.kept)
        );
        Ok(())
    }

    fn take_head<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8]> {
        let before = self.head.len();
        self.head.extend_from_slice(bytes);
        let Some(at) = memmem::find(&self.head, b"\r\n\r\n") else {
            ensure!(self.head.len() < HEAD, "a head without an end");
            return Ok(&[]);
        };
        self.head.truncate(at);
        self.read_head()?;
        Ok(&bytes[at + 4 - before..])
    }

    fn read_head(&mut self) -> Result<()> {
        let head = String::from_utf8(std::mem::take(&mut self.head))?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        self.status = status.with_context(|| format!("not a response: {head}"))?;
        self.step = Step::Done;
        for line in lines {
            let (name, value) = line.split_once(':').with_context(|| format!("not a header: {line}"))?;
            self.read_header(name, value.trim())?;
        }
        Ok(())
    }

    fn read_header(&mut self, name: &str, value: &str) -> Result<()> {
        if name.eq_ignore_ascii_case("content-length") {
            let length = value.parse()?;
            self.step = if length == 0 { Step::Done } else { Step::Body(length) };
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            ensure!(value == "chunked", "transfer-encoding: {value}");
            self.step = Step::Size(0);
        } else if name.eq_ignore_ascii_case("content-type") {
            self.streams = value.starts_with("text/event-stream");
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            self.session = Some(value.to_owned());
        }
        Ok(())
    }

    fn take_body<'a>(
        &mut self,
        bytes: &'a [u8],
        left: usize,
        step: fn(usize) -> Step,
        after: Step,
    ) -> &'a [u8] {
        let part = &bytes[..left.min(bytes.len())];
        self.length += part.len();
        let room = KEPT - self.kept.len();
        self.kept.extend_from_slice(&part[..room.min(part.len())]);
        self.skip(bytes, left, step, after)
    }

    fn skip<'a>(&mut self, bytes: &'a [u8], left: usize, step: fn(usize) -> Step, after: Step) -> &'a [u8] {
        let count = left.min(bytes.len());
        self.step = if count == left { after } else { step(left - count) };
        &bytes[count..]
    }

    fn take_size<'a>(&mut self, bytes: &'a [u8], so_far: usize) -> Result<&'a [u8]> {
        let [byte, rest @ ..] = bytes else { return Ok(bytes) };
        self.step = match byte {
            b'\r' => Step::Size(so_far),
            b'\n' if so_far == 0 => Step::LastEnd(2),
            b'\n' => Step::Chunk(so_far),
            digit => {
                let digit = char::from(*digit).to_digit(16).context("not the size of a chunk")?;
                Step::Size(so_far * 16 + digit as usize)
            }
        };
        Ok(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZED: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: s-1\r\n\
        Content-Length: 35\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":1}";
    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\
        transfer-encoding: chunked\r\n\r\n8\r\nid: 1-0\n\r\n1c\r\ndata: \n\ndata: {\"id\":7,\"resul\r\n\
        7\r\nt\":{}}\n\r\n0\r\n\r\n";

    /// In one piece, and byte by byte: complete with the last byte and not before.
    fn check(bytes: &[u8]) -> Reply {
        let mut whole = Reply::default();
        assert!(whole.take(bytes).unwrap());
        let mut reply = Reply::default();
        for (place, byte) in bytes.iter().enumerate() {
            assert_eq!(reply.take(&[*byte]).unwrap(), place + 1 == bytes.len(), "byte {place}");
        }
        assert_eq!((&whole.kept, whole.length), (&reply.kept, reply.length));
        reply
    }

    #[test]
    fn body_with_a_length_ends_with_it() {
        let reply = check(SIZED);
        assert_eq!((reply.status, reply.length, reply.streams), (200, 35, false));
        assert_eq!(reply.session.as_deref(), Some("s-1"));
        reply.expect_result(7).unwrap();
        assert!(reply.expect_result(8).is_err());
    }

    #[test]
    fn stream_ends_with_its_last_chunk() {
        let reply = check(CHUNKED);
        assert!(reply.streams);
        reply.expect_result(7).unwrap();
    }

    #[test]
    fn response_without_a_body_ends_with_its_head() {
        assert_eq!(check(b"HTTP/1.1 202 Accepted\r\nDate: x\r\n\r\n").status, 202);
        assert_eq!(check(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").status, 202);
    }
}
