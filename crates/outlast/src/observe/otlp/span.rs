//! A span, and how it is written: OTLP in its JSON form.
//!
//! Ids are hexadecimal, numbers of 64 bits are strings, enumerations are numbers:
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use outlast_engine::trace::{Context, SpanId};
use serde::ser::{Serialize, SerializeMap, Serializer};
use std::fmt::Display;

/// Whose view a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Of whoever serves a request.
    Server = 2,
    /// Of whoever makes one.
    Client = 3,
}

/// An attribute's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    Text(Box<str>),
    Number(i64),
    Truth(bool),
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

/// Attributes, by their names.
pub type Attributes = Vec<(&'static str, Value)>;

/// Something that happened meanwhile.
#[derive(Debug)]
pub struct Event {
    /// Nanoseconds since 1970, as all times here.
    pub at: u64,
    pub name: &'static str,
    pub attributes: Attributes,
}

/// A call, or an attempt.
#[derive(Debug)]
pub struct Span {
    pub context: Context,
    pub parent: Option<SpanId>,
    /// `tracestate`.
    pub state: Box<str>,
    pub name: Box<str>,
    pub kind: Kind,
    pub start: u64,
    pub end: u64,
    pub attributes: Attributes,
    /// It failed; in these words, if there are any.
    pub failed: Option<&'static str>,
    pub events: Vec<Event>,
    /// Events that were not kept.
    pub dropped: u32,
}

/// What this process is, for every span of it.
#[derive(Debug)]
pub struct Origin {
    /// What it is called among others.
    pub process: Box<str>,
}

/// The flags of a span beside those of its trace: it is known whether its parent is another process's, and it is.
const KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

/// The status of what failed.
const ERROR: u32 = 2;

impl Span {
    /// About how many bytes it takes.
    pub fn weight(&self) -> usize {
        let of = |attributes: &Attributes| -> usize {
            let text = |value: &Value| if let Value::Text(text) = value { text.len() } else { 0 };
            attributes.iter().map(|(_, value)| size_of::<(&str, Value)>() + text(value)).sum()
        };
        let events: usize = self.events.iter().map(|event| size_of::<Event>() + of(&event.attributes)).sum();
        size_of::<Span>() + self.name.len() + self.state.len() + of(&self.attributes) + events
    }
}

// Written directly: a tree of each span would cost more than all else that is done for it.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // An attempt stands below its call, which is ours.
        let remote = if self.parent.is_some() && self.kind == Kind::Server { REMOTE } else { 0 };
        let mut span = serializer.serialize_map(None)?;
        span.serialize_entry("traceId", &Shown(self.context.trace))?;
        span.serialize_entry("spanId", &Shown(self.context.span))?;
        if let Some(parent) = self.parent {
            span.serialize_entry("parentSpanId", &Shown(parent))?;
        }
        if !self.state.is_empty() {
            span.serialize_entry("traceState", &self.state)?;
        }
        span.serialize_entry("flags", &(KNOWN | remote | u32::from(self.context.flags)))?;
        span.serialize_entry("name", &self.name)?;
        span.serialize_entry("kind", &(self.kind as u32))?;
        span.serialize_entry("startTimeUnixNano", &Shown(self.start))?;
        span.serialize_entry("endTimeUnixNano", &Shown(self.end))?;
        span.serialize_entry("attributes", &List(&self.attributes))?;
        if !self.events.is_empty() {
            span.serialize_entry("events", &self.events)?;
            span.serialize_entry("droppedEventsCount", &self.dropped)?;
        }
        if let Some(message) = self.failed {
            span.serialize_entry("status", &Status { code: ERROR, message })?;
        }
        span.end()
    }
}

impl Serialize for Event {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut event = serializer.serialize_map(Some(3))?;
        event.serialize_entry("timeUnixNano", &Shown(self.at))?;
        event.serialize_entry("name", self.name)?;
        event.serialize_entry("attributes", &List(&self.attributes))?;
        event.end()
    }
}

#[derive(serde::Serialize)]
struct Status {
    code: u32,
    #[serde(skip_serializing_if = "str::is_empty")]
    message: &'static str,
}

/// As a text.
struct Shown<T>(T);

impl<T: Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Attributes.
struct List<'a>(&'a [(&'static str, Value)]);

impl Serialize for List<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|(key, value)| Attribute { key, value }))
    }
}

#[derive(serde::Serialize)]
struct Attribute<'a> {
    key: &'a str,
    value: &'a Value,
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut value = serializer.serialize_map(Some(1))?;
        match self {
            Value::Text(text) => value.serialize_entry("stringValue", text)?,
            Value::Number(number) => value.serialize_entry("intValue", &Shown(number))?,
            Value::Truth(truth) => value.serialize_entry("boolValue", truth)?,
        }
        value.end()
    }
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    resource_spans: [OfResource<'a>; 1],
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct OfResource<'a> {
    resource: Resource<'a>,
    scope_spans: [OfScope<'a>; 1],
}

#[derive(serde::Serialize)]
struct Resource<'a> {
    attributes: List<'a>,
}

#[derive(serde::Serialize)]
struct OfScope<'a> {
    scope: Scope,
    spans: &'a [Span],
}

#[derive(serde::Serialize)]
struct Scope {
    name: &'static str,
    version: &'static str,
}

/// What is posted: an `ExportTraceServiceRequest`.
pub fn request(origin: &Origin, spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let attributes = [
        ("service.name", "outlast".into()),
        ("service.version", version.into()),
        ("service.instance.id", (&*origin.process).into()),
    ];
    let of_scope = OfScope { scope: Scope { name: "outlast", version }, spans };
    let resource = Resource { attributes: List(&attributes) };
    let request = Request { resource_spans: [OfResource { resource, scope_spans: [of_scope] }] };
    // Nothing of it can fail: every key is a text.
    serde_json::to_vec(&request).unwrap_or_default()
}
