//! A message on its way out: the bytes that arrived, and the few ranges that differ.

use super::Span;
use bytes::Bytes;
use std::ops::Range;

/// What a range is replaced by. Ids and tokens are short, so they need no allocation.
#[derive(Clone, Debug)]
pub enum Patch {
    /// Up to [`Patch::INLINE`] bytes.
    Inline {
        /// Where the text begins; it ends with the array.
        start: u8,
        /// The text.
        bytes: [u8; Patch::INLINE],
    },
    /// Anything longer.
    Owned(Box<[u8]>),
}

impl Patch {
    /// Fits `"_meta":{"progressToken":N},` for every N that a connection can reach in a year.
    pub const INLINE: usize = 46;

    /// A patch of several texts in a row.
    pub fn of(parts: &[&[u8]]) -> Patch {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if length > Patch::INLINE {
            return Patch::Owned(parts.concat().into());
        }
        let mut bytes = [0; Patch::INLINE];
        let start = Patch::INLINE - length;
        let mut at = start;
        for part in parts {
            bytes[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        Patch::Inline { start: start as u8, bytes }
    }

    /// A number in decimal, in quotes where asked.
    pub fn number(number: u64, quoted: bool) -> Patch {
        if quoted {
            return Patch::number_within(b"\"", number, b"\"");
        }
        let mut bytes = [0; Patch::INLINE];
        let start = digits(&mut bytes, Patch::INLINE, number);
        Patch::Inline { start: start as u8, bytes }
    }

    /// A number in decimal between two texts. It is written from its end, in one go.
    pub fn number_within(before: &[u8], number: u64, after: &[u8]) -> Patch {
        let mut bytes = [0; Patch::INLINE];
        let end = Patch::INLINE - after.len();
        bytes[end..].copy_from_slice(after);
        let start = digits(&mut bytes, end, number);
        let Some(first) = start.checked_sub(before.len()) else {
            return Patch::of(&[before, &bytes[start..]]);
        };
        bytes[first..start].copy_from_slice(before);
        Patch::Inline { start: first as u8, bytes }
    }

    /// Its bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Patch::Inline { start, bytes } => &bytes[usize::from(*start)..],
            Patch::Owned(bytes) => bytes,
        }
    }
}

/// Writes a number in decimal that ends before `end`; where it begins.
#[inline]
fn digits(bytes: &mut [u8; Patch::INLINE], end: usize, mut number: u64) -> usize {
    let mut start = end;
    loop {
        start -= 1;
        bytes[start] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return start;
        }
    }
}

/// One range replaced; an empty range inserts.
#[derive(Clone, Debug)]
pub struct Edit {
    at: Range<usize>,
    with: Patch,
}

impl Edit {
    /// Replaces a field's value.
    pub fn replace(span: Span, with: Patch) -> Edit {
        Edit { at: span.start()..span.end(), with }
    }

    /// Replaces a range.
    pub fn range(at: Range<usize>, with: Patch) -> Edit {
        Edit { at, with }
    }

    /// Inserts before the byte at `at`.
    pub fn insert(at: usize, with: Patch) -> Edit {
        Edit { at: at..at, with }
    }

    /// Removes an object's member: the value at `span`, its key, and one comma beside them.
    ///
    /// `bytes` must be a message that was scanned, so that what surrounds the value is known to be
    /// a key and punctuation.
    pub fn remove_member(bytes: &[u8], span: Span) -> Edit {
        let key = key_start(bytes, span.start());
        let next = skip_space(bytes, span.end());
        let at = if bytes.get(next) == Some(&b',') {
            key..next + 1
        } else {
            let before = bytes[..key].trim_ascii_end();
            let comma = before.strip_suffix(b",").map_or(key, <[u8]>::len);
            comma..span.end()
        };
        Edit { at, with: Patch::of(&[]) }
    }
}

fn skip_space(bytes: &[u8], from: usize) -> usize {
    bytes.len() - bytes[from..].trim_ascii_start().len()
}

/// Where the quoted key before a value begins. Keys that we remove hold no quotes themselves.
fn key_start(bytes: &[u8], value: usize) -> usize {
    let before = bytes[..value].trim_ascii_end();
    let key = before.strip_suffix(b":").unwrap_or(before).trim_ascii_end();
    let inner = key.strip_suffix(b"\"").unwrap_or(key);
    memchr::memrchr(b'"', inner).unwrap_or(0)
}

/// A message to be written: bytes and edits, in rising order without overlap.
#[derive(Clone, Debug)]
pub struct Outgoing {
    bytes: Bytes,
    edits: Vec<Edit>,
}

/// A part of an outgoing message.
#[derive(Debug)]
pub enum Piece<'a> {
    /// A part of the message as it arrived.
    Kept(Range<usize>),
    /// A replacement.
    New(&'a [u8]),
}

impl Outgoing {
    /// A message of our own, or one that passes unchanged.
    pub fn plain(bytes: impl Into<Bytes>) -> Outgoing {
        Outgoing { bytes: bytes.into(), edits: Vec::new() }
    }

    /// A message that passes with these ranges replaced.
    pub fn edited(bytes: Bytes, mut edits: Vec<Edit>) -> Outgoing {
        if !edits.is_sorted_by_key(|edit| edit.at.start) {
            edits.sort_by_key(|edit| edit.at.start);
        }
        debug_assert!(edits.windows(2).all(|pair| pair[0].at.end <= pair[1].at.start));
        Outgoing { bytes, edits }
    }

    /// The same with one more edit.
    pub fn and(mut self, edit: Edit) -> Outgoing {
        self.edits.push(edit);
        Outgoing::edited(self.bytes, self.edits)
    }

    /// The bytes that [`Piece::Kept`] points into.
    pub fn bytes(&self) -> &Bytes {
        &self.bytes
    }

    /// How long it will be.
    pub fn len(&self) -> usize {
        let change = |edit: &Edit| edit.with.as_slice().len() as isize - edit.at.len() as isize;
        let grown: isize = self.edits.iter().map(change).sum();
        self.bytes.len().saturating_add_signed(grown)
    }

    /// Whether it has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its parts in order.
    pub fn for_each_piece(&self, mut take: impl FnMut(Piece<'_>)) {
        let mut from = 0;
        for edit in &self.edits {
            take(Piece::Kept(from..edit.at.start));
            take(Piece::New(edit.with.as_slice()));
            from = edit.at.end;
        }
        take(Piece::Kept(from..self.bytes.len()));
    }

    /// All of it in one piece.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.len());
        self.append_to(&mut whole);
        whole
    }

    /// All of it, after what a buffer holds.
    pub fn append_to(&self, buffer: &mut Vec<u8>) {
        self.for_each_piece(|piece| {
            buffer.extend_from_slice(match piece {
                Piece::Kept(range) => &self.bytes[range],
                Piece::New(bytes) => bytes,
            });
        });
    }
}
