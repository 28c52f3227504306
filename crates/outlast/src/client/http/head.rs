//! The head of a request: what of it the engine wants to know.

use crate::http1::fields::{Field, Fields, Known, media_type, visible};
use outlast_engine::http::{Head, TraceFields};
use outlast_engine::limits;

/// Bytes of one header that we act on. A longer one counts as absent.
const HEADER_BYTES: usize = 8 << 10;

/// What most clients write, word for word.
const EITHER: &str = "application/json, text/event-stream";

/// Reads the fields in one go: to look each one up costs more than all of them.
pub fn read(fields: &Fields, principal: Option<Box<str>>) -> Head {
    let mut head = Head { principal, ..Head::default() };
    let mut accepts = false;
    for Field { name, rest, value } in fields.iter() {
        let place = match name {
            Known::McpSessionId => &mut head.session,
            Known::McpProtocolVersion => &mut head.version,
            Known::McpMethod => &mut head.method,
            Known::McpName => &mut head.name,
            Known::LastEventId => &mut head.last_event,
            Known::Accept => {
                accepts |= accept(&mut head, value);
                continue;
            }
            Known::TraceParent | Known::TraceState => {
                trace(head.trace.get_or_insert_default(), name, value);
                continue;
            }
            Known::McpParam => {
                if let (Some(name), Some(value)) = (visible(rest), visible(value)) {
                    head.params.push((name.to_ascii_lowercase().into(), value.into()));
                }
                continue;
            }
            _ => continue,
        };
        if place.is_none() && value.len() <= HEADER_BYTES {
            *place = visible(value).map(Box::from);
        }
    }
    // A state without a trace belongs to nothing.
    head.trace = head.trace.filter(|trace| !trace.parent.is_empty());
    if !accepts {
        (head.takes_json, head.takes_events) = (true, true);
    }
    head
}

/// Of `traceparent` the first counts; the lines of `tracestate` are one list. What is too long is left out.
fn trace(said: &mut TraceFields, name: Known, value: &[u8]) {
    let Some(text) = visible(value).filter(|text| !text.is_empty()) else { return };
    let place = if name == Known::TraceParent { &mut said.parent } else { &mut said.state };
    let whole = match &**place {
        "" => text.to_owned(),
        before if name == Known::TraceState => format!("{before},{text}"),
        _ => return,
    };
    if whole.len() <= limits::TRACE {
        *place = whole.into();
    }
}

/// What the client takes; false if that cannot be read.
fn accept(head: &mut Head, value: &[u8]) -> bool {
    if value == EITHER.as_bytes() {
        (head.takes_json, head.takes_events) = (true, true);
        return true;
    }
    let readable = visible(value).is_some();
    for kind in value.split(|byte| *byte == b',').map(media_type).filter(|_| readable) {
        let is_one_of =
            |names: [&str; 3]| names.iter().any(|name| kind.eq_ignore_ascii_case(name.as_bytes()));
        head.takes_json |= is_one_of(["application/json", "application/*", "*/*"]);
        head.takes_events |= is_one_of(["text/event-stream", "text/*", "*/*"]);
    }
    readable
}

/// Whether a body is said to be JSON.
pub fn is_json(fields: &Fields) -> bool {
    let kind = fields.get(Known::ContentType).map(media_type);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case(b"application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pairs: &[(&str, &str)]) -> Head {
        read(&Fields::of_pairs(pairs), None)
    }

    #[test]
    fn every_header_that_matters_is_read_and_the_first_one_counts() {
        let long = "x".repeat(HEADER_BYTES + 1);
        let read = head(&[
            ("mcp-session-id", "s"),
            ("mcp-session-id", "other"),
            ("mcp-protocol-version", "v"),
            ("mcp-method", "m"),
            ("mcp-name", &long),
            ("last-event-id", "e"),
            ("mcp-param-region", "eu"),
            ("x-other", "o"),
        ]);
        let text = |value: &str| Some(Box::from(value));
        assert_eq!((read.session, read.version, read.method), (text("s"), text("v"), text("m")));
        assert_eq!((read.name, read.last_event), (None, text("e")));
        assert_eq!(read.params, [("region".into(), "eu".into())]);
    }

    #[test]
    fn a_trace_is_known_by_its_parent() {
        let trace = |pairs: &[(&str, &str)]| head(pairs).trace.map(|trace| (trace.parent, trace.state));
        let said =
            [("Tracestate", "a=1"), ("traceparent", "p"), ("traceparent", "q"), ("tracestate", "b=2,c=3")];
        assert_eq!(trace(&said), Some(("p".into(), "a=1,b=2,c=3".into())));
        assert_eq!(trace(&said[..1]), None);
        let long = "x".repeat(limits::TRACE + 1);
        assert_eq!(trace(&[("traceparent", &long)]), None);
        assert_eq!(trace(&[("traceparent", "p"), ("tracestate", &long)]), Some(("p".into(), "".into())));
    }

    #[test]
    fn what_a_client_takes_is_what_it_says() {
        let takes = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| ("accept", *value)).collect();
            let head = head(&pairs);
            (head.takes_json, head.takes_events)
        };
        assert_eq!(takes(&[]), (true, true));
        assert_eq!(takes(&[EITHER]), (true, true));
        assert_eq!(takes(&["Text/Event-Stream;q=0.5"]), (false, true));
        assert_eq!(takes(&["application/*", "text/html"]), (true, false));
        assert_eq!(takes(&["application/json", "text/event-stream"]), (true, true));
        assert_eq!(takes(&["text/html, */*;q=0.1"]), (true, true));
        assert_eq!(takes(&["text/html"]), (false, false));
    }
}
