//! A JSON-RPC message as the bytes that arrived, and where in them the few things are that we act on.
//!
//! [`scan`] walks a message once, checks that it is strict JSON, and notes the ranges of the
//! fields in [`Field`]. It builds no tree and copies nothing, so what we do not understand leaves
//! as it came: `1.0` stays `1.0`, big integers stay exact, order and unknown fields stay. A message
//! is changed by [`Outgoing`]: the same bytes with a few ranges replaced.
//!
//! Not here: what a message means (`engine.rs`), where a line ends (the edges).

mod edit;
mod flat;
mod oversize;
mod scan;

pub use edit::{Edit, Outgoing, Patch, Piece};
pub use flat::one_line;
pub(crate) use flat::one_line_from;
pub use oversize::{Oversized, oversized};
pub use scan::{scan, scan_message, scan_tolerant};

use bytes::Bytes;
use std::borrow::Cow;
use std::num::NonZeroU32;

/// A range of bytes inside a message. Never starts at 0, where the opening brace is, so an
/// absent span costs no extra space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    start: NonZeroU32,
    end: u32,
}

impl Span {
    fn new(start: usize, end: usize) -> Option<Span> {
        let start = NonZeroU32::new(u32::try_from(start).ok()?)?;
        Some(Span { start, end: u32::try_from(end).ok()? })
    }

    /// First byte.
    pub fn start(self) -> usize {
        self.start.get() as usize
    }

    /// One past the last byte.
    pub fn end(self) -> usize {
        self.end as usize
    }

    /// The bytes it covers.
    pub fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start()..self.end()]
    }
}

/// Every field that the engine acts on. Each may stand only once in its object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs)] // each is named after its place in the message
pub enum Field {
    Jsonrpc,
    Id,
    Method,
    Params,
    Result,
    Error,
    ParamsName,
    ParamsRequestId,
    ParamsProgressToken,
    ParamsProgress,
    ParamsTotal,
    ParamsTask,
    ParamsRequestState,
    ParamsInputResponses,
    ParamsCursor,
    ParamsUri,
    ParamsTaskId,
    ParamsIdempotencyKey,
    ParamsMeta,
    MetaProgressToken,
    MetaSubscriptionId,
    MetaProtocolVersion,
    MetaClientCapabilities,
    MetaClientInfo,
    MetaLogLevel,
    MetaTimeoutMs,
    MetaKeepAlive,
    ResultType,
    ResultMeta,
    ResultMetaSubscriptionId,
}

impl Field {
    const COUNT: usize = Field::ResultMetaSubscriptionId as usize + 1;
}

/// Where each [`Field`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Envelope {
    spans: [Option<Span>; Field::COUNT],
}

impl Default for Envelope {
    fn default() -> Self {
        Envelope { spans: [None; Field::COUNT] }
    }
}

/// What a message is, by the fields it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Has a method and an id.
    Request,
    /// Has a method and no id.
    Notification,
    /// Has a result or an error, and no method.
    Answer,
}

impl Envelope {
    /// The raw JSON value of a field, if it is there.
    pub fn get(&self, field: Field) -> Option<Span> {
        self.spans[field as usize]
    }

    fn set(&mut self, field: Field, span: Option<Span>) {
        self.spans[field as usize] = span;
    }

    fn has(&self, field: Field) -> bool {
        self.get(field).is_some()
    }

    fn shape(&self, bytes: &[u8]) -> Option<Shape> {
        let answer = self.has(Field::Result) || self.has(Field::Error);
        match (self.get(Field::Method), self.has(Field::Id)) {
            (Some(method), _) if answer || bytes[method.start()] != b'"' => None,
            (Some(_), true) => Some(Shape::Request),
            (Some(_), false) => Some(Shape::Notification),
            (None, _) => answer.then_some(Shape::Answer),
        }
    }
}

/// One message: its bytes, its shape and where its fields are.
#[derive(Clone, Debug)]
pub struct Message {
    /// Exactly as it arrived, without the line's end.
    pub bytes: Bytes,
    /// What it is.
    pub shape: Shape,
    /// Where its fields are.
    pub envelope: Envelope,
}

impl Message {
    /// The same on bytes of its own, for what is kept: the read buffer must not live as long.
    #[inline(never)]
    pub fn owned(&self) -> Message {
        Message { bytes: Bytes::copy_from_slice(&self.bytes), ..self.clone() }
    }

    /// The same with one change; `None` if it is no message then.
    pub fn edited(&self, edit: Edit) -> Option<Message> {
        scan_message(Outgoing::edited(self.bytes.clone(), vec![edit]).to_vec().into())
    }

    /// The same with another string in the place of this field, which is one. Nothing else changes, so it is not read
    /// again. `None` if it would be too long.
    pub fn with_string(&self, field: Field, json: &[u8]) -> Option<Message> {
        let at = self.envelope.get(field)?;
        let whole = [&self.bytes[..at.start()], json, &self.bytes[at.end()..]].concat();
        let moved = |place| if place < at.end() { place } else { place - at.end() + at.start() + json.len() };
        let mut envelope = self.envelope;
        for span in envelope.spans.iter_mut().flatten() {
            *span = Span::new(moved(span.start()), moved(span.end()))?;
        }
        Some(Message { bytes: whole.into(), shape: self.shape, envelope })
    }

    /// Whether a field is there.
    pub fn has(&self, field: Field) -> bool {
        self.envelope.has(field)
    }

    /// The raw JSON of a field.
    pub fn raw(&self, field: Field) -> Option<&[u8]> {
        Some(self.envelope.get(field)?.of(&self.bytes))
    }

    /// A field's string; `None` if it is no string. Some writers escape every `/`.
    pub fn text(&self, field: Field) -> Option<Cow<'_, str>> {
        let raw = self.raw(field)?;
        let inner = raw.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        if memchr::memchr(b'\\', inner).is_some() {
            return serde_json::from_slice(raw).ok().map(Cow::Owned);
        }
        std::str::from_utf8(inner).ok().map(Cow::Borrowed)
    }

    /// Whether a field is this string. Written without escapes, it is compared as it stands.
    pub fn says(&self, field: Field, text: &str) -> bool {
        let Some(raw) = self.raw(field) else { return false };
        let inner = raw.strip_prefix(b"\"").and_then(|raw| raw.strip_suffix(b"\""));
        match inner {
            Some(inner) if inner == text.as_bytes() => memchr::memchr(b'\\', inner).is_none(),
            _ => self.text(field).as_deref() == Some(text),
        }
    }

    /// A field's number.
    pub fn number(&self, field: Field) -> Option<f64> {
        std::str::from_utf8(self.raw(field)?).ok()?.parse().ok()
    }

    /// Whether a field is there and is an object.
    pub fn is_object(&self, field: Field) -> bool {
        self.raw(field).is_some_and(|raw| raw.first() == Some(&b'{'))
    }
}

/// What one line held.
#[derive(Clone, Debug)]
#[allow(clippy::large_enum_variant)] // nearly every line is a message, and a box would cost each an allocation
pub enum Scanned {
    /// One message.
    Message(Message),
    /// An array: each member scanned for itself, in order.
    Batch(Vec<Result<Message, Refused>>),
}

/// Why a line is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Not strict JSON; the offset where that shows.
    NotJson(u32),
    /// A field that we act on stands twice, so that we and the peer could read it differently.
    Duplicate,
    /// JSON, but not a JSON-RPC message.
    NotAMessage,
    /// An empty array.
    EmptyBatch,
    /// More members than [`crate::limits::BATCH_MEMBERS`].
    LongBatch,
}

/// A refused line, and its id if that could still be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Why.
    pub fault: Fault,
    /// The raw id.
    pub id: Option<Bytes>,
    /// The line.
    pub bytes: Bytes,
}
