//! Cuts a stream of bytes into lines without copying them.
//!
//! Every byte is looked at once, however the stream is cut into reads. A line longer than
//! `max-message` is skipped as it comes; only its beginning and end are kept, for its id.

use crate::pool::{Pool, SMALL};
use bytes::Bytes;
use outlast_engine::wire::{Oversized, oversized};

/// How much of a skipped line's beginning and end is kept.
const KEPT: usize = 1024;

/// What a stream held.
#[derive(Debug, PartialEq, Eq)]
pub enum Cut {
    /// A line, without its end, a BOM or blanks around it.
    Line(Bytes),
    /// A line that was too long, and what is known of it.
    Oversized(Oversized),
}

/// The state of one stream.
#[derive(Debug)]
pub struct Lines {
    pool: Pool,
    buffer: Vec<u8>,
    searched: usize,
    max: usize,
    skipped: Option<Skipped>,
    large: bool,
}

#[derive(Debug, Default)]
struct Skipped {
    head: Vec<u8>,
    tail: Vec<u8>,
}

impl Lines {
    /// A stream whose lines have at most `max` bytes.
    pub fn new(max: usize) -> Lines {
        let pool = Pool::default();
        Lines { buffer: pool.take(SMALL), pool, searched: 0, max, skipped: None, large: false }
    }

    /// What to read to, behind what is there. It has room, and only that is to be used.
    pub fn space(&mut self) -> &mut Vec<u8> {
        if self.buffer.len() == self.buffer.capacity() {
            self.grow();
        }
        &mut self.buffer
    }

    /// Takes what was read elsewhere.
    pub fn add(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(Cut)) {
        while !bytes.is_empty() {
            let space = self.space();
            let (fits, rest) = bytes.split_at(bytes.len().min(space.capacity() - space.len()));
            space.extend_from_slice(fits);
            self.read(each);
            bytes = rest;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.large = true;
        let longer = (self.buffer.len() * 2).min(self.max + 2 * SMALL);
        match self.pool.take_kept(longer) {
            // Memory that was used before costs a copy of what is there, but no page faults.
            Some(mut kept) => {
                kept.extend_from_slice(&self.buffer);
                self.buffer = kept;
            }
            None => self.buffer.reserve_exact(longer - self.buffer.len()),
        }
    }

    /// Takes what was read to [`Lines::space`] and hands out each line that is now whole. Not generic: both
    /// sides of a call run through the same code, and find it in the processor's cache.
    pub fn read(&mut self, each: &mut dyn FnMut(Cut)) {
        match memchr::memrchr(b'\n', &self.buffer[self.searched..]) {
            None => self.searched = self.buffer.len(),
            Some(at) => self.cut(self.searched, self.searched + at + 1, each),
        }
        if self.buffer.len() > self.max {
            self.skip();
        }
    }

    /// The stream has ended; a last line may lack its end.
    pub fn finish(&mut self, each: &mut dyn FnMut(Cut)) {
        if !self.buffer.is_empty() || self.skipped.is_some() {
            self.space().push(b'\n');
            self.read(each);
        }
    }

    /// Hands out the lines in the first `end` bytes, of which the first `searched` hold no line's
    /// end, and keeps the rest for the next read.
    fn cut(&mut self, searched: usize, end: usize, each: &mut dyn FnMut(Cut)) {
        let mut next = self.pool.take(self.buffer.len() - end);
        next.extend_from_slice(&self.buffer[end..]);
        self.searched = next.len();
        let mut whole = std::mem::replace(&mut self.buffer, next);
        whole.truncate(end);
        let whole = self.pool.share(whole);
        let mut start = 0;
        for at in memchr::memchr_iter(b'\n', &whole[searched..]) {
            let at = searched + at;
            let line = &whole[start..at];
            if self.skipped.is_some() || line.len() > self.max {
                each(Cut::Oversized(self.skipped.take().unwrap_or_default().finish(line)));
            } else {
                let (front, inner) = trim(line);
                if !inner.is_empty() {
                    let from = start + front;
                    each(Cut::Line(whole.slice(from..from + inner.len())));
                }
            }
            start = at + 1;
        }
    }

    #[cold]
    fn skip(&mut self) {
        self.skipped.get_or_insert_default().add(&self.buffer);
        self.buffer.clear();
        self.searched = 0;
    }

    /// Whether a long line came since memory was last given back.
    pub fn is_large(&self) -> bool {
        self.large
    }

    /// Gives memory back. A half line keeps what it needs.
    pub fn release(&mut self) {
        self.large = false;
        self.pool.release();
        self.buffer.shrink_to(SMALL);
    }
}

impl Skipped {
    fn add(&mut self, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..room.min(bytes.len())]);
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }

    #[cold]
    fn finish(mut self, last: &[u8]) -> Oversized {
        self.add(last);
        oversized(&self.head, &self.tail)
    }
}

/// The line without a BOM and blanks around it, and how much was cut from its front.
fn trim(line: &[u8]) -> (usize, &[u8]) {
    let without_bom = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
    let inner = without_bom.trim_ascii_start();
    (line.len() - inner.len(), inner.trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(input: &[u8], max: usize, chunk: usize) -> Vec<Cut> {
        let mut lines = Lines::new(max);
        let mut cuts = Vec::new();
        for part in input.chunks(chunk) {
            lines.add(part, &mut |cut| cuts.push(cut));
        }
        lines.finish(&mut |cut| cuts.push(cut));
        cuts
    }

    fn line(text: &str) -> Cut {
        Cut::Line(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn lines_are_the_same_however_the_stream_is_cut() {
        let input = b"\xef\xbb\xbf{\"a\":1}\r\n\n  \r\n {\"b\":2} \n\n{\"half\"";
        for chunk in 1..input.len() + 1 {
            assert_eq!(cut(input, 100, chunk), [line("{\"a\":1}"), line("{\"b\":2}"), line("{\"half\"")]);
        }
    }

    #[test]
    fn a_line_beyond_the_bound_is_skipped_and_named() {
        let long = "x".repeat(200_000);
        let input =
            format!("{{\"id\":7,\"result\":\"{long}\"}}\n{{\"ok\":1}}\n{{\"result\":\"{long}\",\"id\":8}}\n");
        for chunk in [1000, 65_536, 1_000_000] {
            let cuts = cut(input.as_bytes(), 1024, chunk);
            let id = |text: &str| {
                Cut::Oversized(Oversized { id: Some(Bytes::copy_from_slice(text.as_bytes())), answer: true })
            };
            assert_eq!(cuts, [id("7"), line("{\"ok\":1}"), id("8")], "{chunk}");
        }
    }

    #[test]
    fn memory_is_bounded_while_a_long_line_is_skipped() {
        let mut lines = Lines::new(100_000);
        for _ in 0..1000 {
            lines.add(&[b'x'; SMALL], &mut |_| panic!("no line has ended"));
        }
        assert!(lines.buffer.capacity() <= 100_000 + 2 * SMALL, "{}", lines.buffer.capacity());
        lines.release();
        assert!(!lines.is_large());
    }

    #[test]
    fn a_long_line_within_the_bound_is_whole() {
        let long = "y".repeat(3_000_000);
        let cuts = cut(format!("{long}\nz\n").as_bytes(), 64 << 20, 65_536);
        assert_eq!(cuts, [line(&long), line("z")]);
    }
}
