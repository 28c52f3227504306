//! A span, and how it is written: OTLP in its JSON form.
//!
//! Ids are hexadecimal, numbers of 64 bits are strings, enumerations are numbers:
//! <https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>.

use outlast_engine::trace::{Context, SpanId};
use serde_json::{Value as Json, json};

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

    fn json(&self) -> Json {
        // An attempt stands below its call, which is ours.
        let remote = if self.parent.is_some() && self.kind == Kind::Server { REMOTE } else { 0 };
        let mut span = json!({
            "traceId": self.context.trace.to_string(),
            "spanId": self.context.span.to_string(),
            "flags": KNOWN | remote | u32::from(self.context.flags),
            "name": self.name,
            "kind": self.kind as u32,
            "startTimeUnixNano": self.start.to_string(),
            "endTimeUnixNano": self.end.to_string(),
            "attributes": attributes(&self.attributes),
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = parent.to_string().into();
        }
        if !self.state.is_empty() {
            span["traceState"] = (&*self.state).into();
        }
        if !self.events.is_empty() {
            span["events"] = self.events.iter().map(Event::json).collect();
            span["droppedEventsCount"] = self.dropped.into();
        }
        match self.failed {
            Some("") => span["status"] = json!({"code": ERROR}),
            Some(words) => span["status"] = json!({"code": ERROR, "message": words}),
            None => {}
        }
        span
    }
}

impl Event {
    fn json(&self) -> Json {
        json!({
            "timeUnixNano": self.at.to_string(),
            "name": self.name,
            "attributes": attributes(&self.attributes),
        })
    }
}

fn attributes(all: &[(&str, Value)]) -> Json {
    let one = |(name, value): &(&str, Value)| {
        let value = match value {
            Value::Text(text) => json!({"stringValue": text}),
            Value::Number(number) => json!({"intValue": number.to_string()}),
            Value::Truth(truth) => json!({"boolValue": truth}),
        };
        json!({"key": name, "value": value})
    };
    all.iter().map(one).collect()
}

/// What is posted: an `ExportTraceServiceRequest`.
pub fn request(origin: &Origin, spans: &[Span]) -> Vec<u8> {
    let version = env!("CARGO_PKG_VERSION");
    let resource = [
        ("service.name", "outlast".into()),
        ("service.version", version.into()),
        ("service.instance.id", (&*origin.process).into()),
    ];
    let spans: Vec<Json> = spans.iter().map(Span::json).collect();
    let whole = json!({"resourceSpans": [{
        "resource": {"attributes": attributes(&resource)},
        "scopeSpans": [{"scope": {"name": "outlast", "version": version}, "spans": spans}],
    }]});
    whole.to_string().into_bytes()
}
