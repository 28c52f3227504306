//! What waits to be written to one peer.
//!
//! Small messages are copied together, so that all that is ready leaves in one write; large ones
//! are written from the buffer they were read into.

use bytes::Bytes;
use outlast_engine::wire::{Outgoing, Piece};
use std::collections::VecDeque;
use std::io::IoSlice;

/// From here on a piece is not copied.
const SHARED: usize = 16 << 10;

/// Above this the sources that feed only this outbox are not read any more. It is larger than any
/// usual message, because a client that is not read cannot be kept alive.
pub const HIGH: usize = 8 << 20;

/// Below this they are read again.
pub const LOW: usize = 2 << 20;

/// Above this even sources are stopped that feed it only by their own mistakes.
pub const HARD: usize = 12 << 20;

/// Parts that one write takes.
pub const SLICES: usize = 16;

/// Bytes in order, for one peer.
#[derive(Debug, Default)]
pub struct Outbox {
    parts: VecDeque<Part>,
    /// How much of the first part is written.
    written: usize,
    length: usize,
    congested: bool,
    /// What was written last was not a line's end.
    mid_line: bool,
}

#[derive(Debug)]
enum Part {
    Copied(Vec<u8>),
    Shared(Bytes),
}

impl Part {
    fn bytes(&self) -> &[u8] {
        match self {
            Part::Copied(bytes) => bytes,
            Part::Shared(bytes) => bytes,
        }
    }
}

impl Outbox {
    /// Adds a message and its line's end.
    pub fn push(&mut self, message: &Outgoing) {
        if message.bytes().len() < SHARED {
            let buffer = self.buffer();
            let before = buffer.len();
            message.append_to(buffer);
            buffer.push(b'\n');
            self.length += buffer.len() - before;
            return;
        }
        message.for_each_piece(|piece| match piece {
            Piece::Kept(range) if range.len() >= SHARED => {
                self.length += range.len();
                self.parts.push_back(Part::Shared(message.bytes().slice(range)));
            }
            Piece::Kept(range) => self.copy(&message.bytes()[range]),
            Piece::New(bytes) => self.copy(bytes),
        });
        self.copy(b"\n");
    }

    fn copy(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        self.buffer().extend_from_slice(bytes);
    }

    /// The buffer at the end, into which small pieces are copied.
    fn buffer(&mut self) -> &mut Vec<u8> {
        if !matches!(self.parts.back(), Some(Part::Copied(_))) {
            self.parts.push_back(Part::Copied(Vec::new()));
        }
        match self.parts.back_mut() {
            Some(Part::Copied(buffer)) => buffer,
            _ => unreachable!("it was just put there"),
        }
    }

    /// All that waits, where that is in one piece: nearly always.
    pub fn only_part(&self) -> Option<&[u8]> {
        let part = self.parts.front().filter(|_| self.parts.len() == 1)?;
        Some(&part.bytes()[self.written..])
    }

    /// The next parts to write.
    pub fn slices(&self) -> ([IoSlice<'_>; SLICES], usize) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let mut count = 0;
        for (index, part) in self.parts.iter().take(SLICES).enumerate() {
            let from = if index == 0 { self.written } else { 0 };
            slices[index] = IoSlice::new(&part.bytes()[from..]);
            count += 1;
        }
        (slices, count)
    }

    /// Forgets what was written.
    pub fn consume(&mut self, mut count: usize) {
        self.length -= count;
        while let Some(part) = self.parts.front() {
            let left = part.bytes().len() - self.written;
            if count < left {
                self.written += count;
                self.mid_line = part.bytes()[..self.written].last().is_some_and(|byte| *byte != b'\n');
                return;
            }
            count -= left;
            self.written = 0;
            self.mid_line = self.parts.len() > 1 && part.bytes().last() != Some(&b'\n');
            match self.parts.pop_front() {
                // The usual case: one buffer, written whole, used again for the next turn.
                Some(Part::Copied(mut buffer)) if self.parts.is_empty() && buffer.capacity() <= SHARED => {
                    buffer.clear();
                    self.parts.push_back(Part::Copied(buffer));
                    return;
                }
                _ => {}
            }
        }
    }

    /// The lines of which nothing was written, for those who must know what never left.
    #[cold]
    pub fn unsent(&self) -> Vec<Bytes> {
        let (slices, count) = (self.parts.iter().map(Part::bytes), self.written);
        let left = Bytes::from(slices.collect::<Vec<_>>().concat()).slice(count..);
        let mut lines = left.split(|byte| *byte == b'\n');
        if self.mid_line {
            lines.next();
        }
        lines.filter(|line| !line.is_empty()).map(|line| left.slice_ref(line)).collect()
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Outbox { congested: self.congested, ..Outbox::default() };
    }

    /// Bytes that wait.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Whether the high mark was passed and the low one not yet reached again.
    pub fn is_congested(&self) -> bool {
        self.congested
    }

    /// Compares with the marks; says when that changed.
    pub fn check_marks(&mut self) -> Option<bool> {
        let congested = self.length > if self.congested { LOW } else { HIGH };
        if congested == self.congested {
            return None;
        }
        self.congested = congested;
        Some(congested)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes as a slow pipe would, `step` bytes at a time.
    fn drain(outbox: &mut Outbox, step: usize) -> Vec<u8> {
        let mut all = Vec::new();
        while !outbox.is_empty() {
            let (slices, count) = outbox.slices();
            let ready: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).take(step).collect();
            outbox.consume(ready.len());
            all.extend(ready);
        }
        all
    }

    #[test]
    fn messages_leave_whole_and_in_order_whatever_the_writes() {
        let large = "l".repeat(100_000);
        for step in [1, 7, 10_000, 1_000_000] {
            let mut outbox = Outbox::default();
            outbox.push(&Outgoing::plain("a"));
            outbox.push(&Outgoing::plain(large.clone()));
            outbox.push(&Outgoing::plain("b"));
            assert_eq!(outbox.len(), 100_005);
            let text = String::from_utf8(drain(&mut outbox, step)).unwrap();
            assert_eq!(text, format!("a\n{large}\nb\n"));
            outbox.push(&Outgoing::plain("c"));
            assert_eq!(drain(&mut outbox, step), b"c\n");
        }
    }

    #[test]
    fn small_messages_leave_in_one_part_and_large_ones_are_not_copied() {
        let mut outbox = Outbox::default();
        for _ in 0..100 {
            outbox.push(&Outgoing::plain("small"));
        }
        assert_eq!(outbox.slices().1, 1);
        let large = Bytes::from(vec![b'x'; SHARED]);
        outbox.push(&Outgoing::plain(large.clone()));
        assert_eq!(outbox.slices().0[1].as_ptr(), large.as_ptr());
    }

    #[test]
    fn what_was_begun_may_have_arrived_and_the_rest_has_not() {
        let large = "l".repeat(2 * SHARED);
        let messages = ["a", "bb", &large, "c"];
        let whole: usize = messages.iter().map(|message| message.len() + 1).sum();
        for written in [0, 1, 2, 3, 5, 6, 5 + SHARED, 5 + 2 * SHARED, 6 + 2 * SHARED, whole - 1] {
            let mut outbox = Outbox::default();
            messages.iter().for_each(|message| outbox.push(&Outgoing::plain((*message).to_owned())));
            let mut left = written;
            while left > 0 {
                let step = left.min(7_000);
                outbox.consume(step);
                left -= step;
            }
            let begins =
                |index: usize| messages[..index].iter().map(|message| message.len() + 1).sum::<usize>();
            let expected: Vec<&[u8]> = (0..4)
                .filter(|index| begins(*index) >= written)
                .map(|index| messages[index].as_bytes())
                .collect();
            assert_eq!(outbox.unsent(), expected, "after {written} bytes");
        }
    }

    #[test]
    fn congestion_has_a_high_and_a_low_mark() {
        let mut outbox = Outbox::default();
        outbox.push(&Outgoing::plain(vec![b'x'; HIGH]));
        assert_eq!(outbox.check_marks(), Some(true));
        assert_eq!(outbox.check_marks(), None);
        outbox.consume(HIGH - LOW);
        assert_eq!(outbox.check_marks(), None);
        outbox.consume(1);
        assert_eq!(outbox.check_marks(), Some(false));
        outbox.clear();
        assert!(outbox.is_empty());
    }
}
