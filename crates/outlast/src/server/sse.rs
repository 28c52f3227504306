//! Cuts a stream of server-sent events into events, however it is cut into chunks.
//!
//! A chunk is looked at once. Data goes straight from the chunk into the buffer that becomes the
//! event, so a byte is copied once; an event longer than `max-message` is skipped as it comes, and
//! only the beginning and end of its data are kept, for its id.
//!
//! Invalid things are ignored as the HTML standard says: unknown fields, lines without a colon, a
//! `retry` that is no number, an `id` with a NUL. An event without data only moves the last event id.
//!
//! Not here: what to do about an id or a `retry`, and whether data is a message.

use bytes::Bytes;
use outlast_engine::wire::{Oversized, oversized};
use std::time::Duration;

/// Bytes of an `id`, `event` or `retry`. A longer one is ignored.
const FIELD: usize = 4096;

/// How much of a line is kept to tell its field. Longer than a BOM and every name we know.
const NAME: usize = 16;

/// How much of the beginning and end of skipped data is kept.
const KEPT: usize = 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// What a stream held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole event with data; several lines of it are joined by `\n`.
    Event {
        /// Never empty.
        data: Bytes,
        /// The last event id from now on, if the event changes it. An empty one forgets it.
        id: Option<Bytes>,
        /// Its `event` field; without one it is called `message`.
        name: Option<Bytes>,
    },
    /// A whole event without data: the last event id from now on.
    Id(Bytes),
    /// How long to wait before the next connection.
    Retry(Duration),
    /// An event that was too long.
    Oversized {
        /// What is known of the message in it.
        message: Oversized,
        /// As in an event that was not too long.
        id: Option<Bytes>,
    },
}

/// The state of one stream.
#[derive(Debug)]
pub struct Parser {
    max: usize,
    first_line: bool,
    /// The last line ended in CR, so a LF that follows belongs to it.
    after_cr: bool,
    /// The beginning of the line, as far as no colon has come.
    start: Vec<u8>,
    /// The field of the line, once its colon has come.
    field: Option<Field>,
    /// Something of the value has come: one blank before it is not part of it.
    begun: bool,
    /// The value of a field other than `data`.
    value: Vec<u8>,
    event: Event,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Id,
    Name,
    Retry,
    Unknown,
}

/// What the lines since the last blank one said.
#[derive(Debug, Default)]
struct Event {
    data: Data,
    id: Option<Bytes>,
    name: Option<Bytes>,
}

#[derive(Debug, Default)]
struct Data {
    /// All of it; of data that is too long its beginning.
    bytes: Vec<u8>,
    /// The end of data that is too long.
    tail: Option<Vec<u8>>,
    begun: bool,
}

impl Parser {
    /// A stream whose events hold at most `max_event` bytes of data.
    pub fn new(max_event: usize) -> Parser {
        Parser {
            max: max_event,
            first_line: true,
            after_cr: false,
            start: Vec::new(),
            field: None,
            begun: false,
            value: Vec::new(),
            event: Event::default(),
        }
    }

    /// Takes what came and hands out what is now whole.
    pub fn feed(&mut self, chunk: &[u8], out: &mut impl FnMut(Parsed)) {
        let mut rest = chunk;
        while let Some(first) = rest.first() {
            if std::mem::take(&mut self.after_cr) && *first == b'\n' {
                rest = &rest[1..];
                continue;
            }
            let Some(end) = memchr::memchr2(b'\n', b'\r', rest) else {
                self.part_of_line(rest);
                return;
            };
            self.part_of_line(&rest[..end]);
            self.after_cr = rest[end] == b'\r';
            rest = &rest[end + 1..];
            if let Some(parsed) = self.end_of_line() {
                out(parsed);
            }
        }
    }

    fn part_of_line(&mut self, part: &[u8]) {
        if let Some(field) = self.field {
            return self.part_of_value(field, part);
        }
        let Some(colon) = memchr::memchr(b':', part) else {
            return add_bounded(&mut self.start, part, NAME);
        };
        add_bounded(&mut self.start, &part[..colon], NAME);
        let field = self.begin_value();
        self.part_of_value(field, &part[colon + 1..]);
    }

    /// The name of the line's field is whole.
    fn begin_value(&mut self) -> Field {
        let field = Field::named(self.start());
        if field == Field::Data {
            self.event.data.begin_line(self.max);
        }
        self.field = Some(field);
        field
    }

    /// The beginning of the line, without the stream's BOM.
    fn start(&self) -> &[u8] {
        let without_bom = self.start.strip_prefix(BOM).filter(|_| self.first_line);
        without_bom.unwrap_or(&self.start)
    }

    fn part_of_value(&mut self, field: Field, part: &[u8]) {
        if part.is_empty() {
            return;
        }
        let begun = std::mem::replace(&mut self.begun, true);
        let part = if begun { part } else { part.strip_prefix(b" ").unwrap_or(part) };
        match field {
            Field::Data => self.event.data.add(part, self.max),
            Field::Id | Field::Name | Field::Retry => add_bounded(&mut self.value, part, FIELD + 1),
            Field::Unknown => {}
        }
    }

    fn end_of_line(&mut self) -> Option<Parsed> {
        let blank = self.field.is_none() && self.start().is_empty();
        let parsed = if blank {
            std::mem::take(&mut self.event).end()
        } else {
            let field = self.field.unwrap_or_else(|| self.begin_value());
            self.event.set(field, &self.value)
        };
        (self.first_line, self.begun, self.field) = (false, false, None);
        self.start.clear();
        self.value.clear();
        parsed
    }
}

impl Field {
    fn named(name: &[u8]) -> Field {
        match name {
            b"data" => Field::Data,
            b"id" => Field::Id,
            b"event" => Field::Name,
            b"retry" => Field::Retry,
            _ => Field::Unknown,
        }
    }
}

impl Event {
    /// A field's line is whole. Data is there already.
    fn set(&mut self, field: Field, value: &[u8]) -> Option<Parsed> {
        if value.len() > FIELD {
            return None;
        }
        match field {
            Field::Id if memchr::memchr(0, value).is_none() => self.id = Some(Bytes::copy_from_slice(value)),
            Field::Name => self.name = Some(Bytes::copy_from_slice(value)),
            Field::Retry => return number(value).map(Duration::from_millis).map(Parsed::Retry),
            Field::Data | Field::Id | Field::Unknown => {}
        }
        None
    }

    /// The event is whole; what there is to say about it.
    fn end(self) -> Option<Parsed> {
        let Event { data, id, name } = self;
        if let Some(tail) = data.tail {
            return Some(Parsed::Oversized { message: oversized(&data.bytes, &tail), id });
        }
        if data.bytes.is_empty() {
            return id.map(Parsed::Id);
        }
        Some(Parsed::Event { data: data.bytes.into(), id, name })
    }
}

impl Data {
    fn begin_line(&mut self, max: usize) {
        if std::mem::replace(&mut self.begun, true) {
            self.add(b"\n", max);
        }
    }

    fn add(&mut self, part: &[u8], max: usize) {
        if self.tail.is_none() && self.bytes.len() + part.len() <= max {
            self.bytes.extend_from_slice(part);
            return;
        }
        let tail = self.tail.get_or_insert_with(|| last(&self.bytes).to_vec());
        add_bounded(&mut self.bytes, part, KEPT);
        self.bytes.truncate(KEPT);
        self.bytes.shrink_to(KEPT);
        tail.extend_from_slice(last(part));
        tail.drain(..tail.len().saturating_sub(KEPT));
    }
}

fn add_bounded(to: &mut Vec<u8>, part: &[u8], bound: usize) {
    let room = bound.saturating_sub(to.len());
    to.extend_from_slice(&part[..room.min(part.len())]);
}

fn last(bytes: &[u8]) -> &[u8] {
    &bytes[bytes.len().saturating_sub(KEPT)..]
}

/// Digits only, unlike `parse`, which takes a sign. What is too large for the type is no number.
fn number(text: &[u8]) -> Option<u64> {
    let digits = text.iter().all(u8::is_ascii_digit);
    digits.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

#[cfg(test)]
#[path = "sse/tests.rs"] // said in full, because the fuzzer takes this file from elsewhere
mod tests;
