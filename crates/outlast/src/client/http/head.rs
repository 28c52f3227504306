//! The head of a request: what of it the engine wants to know.

use hyper::HeaderMap;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use outlast_engine::http::Head;

/// Bytes of one header that we act on. A longer one counts as absent.
const HEADER_BYTES: usize = 8 << 10;

/// What most clients write, word for word.
const EITHER: &str = "application/json, text/event-stream";

/// Reads the headers in one go: to look each one up costs more than all of them.
pub fn read(headers: &HeaderMap, principal: Option<Box<str>>) -> Head {
    let mut head = Head { principal, ..Head::default() };
    let mut accepts = false;
    for (name, value) in headers {
        let Ok(value) = value.to_str() else { continue };
        let place = match name.as_str() {
            "accept" => {
                accepts = true;
                accept(&mut head, value);
                continue;
            }
            "mcp-session-id" => &mut head.session,
            "mcp-protocol-version" => &mut head.version,
            "mcp-method" => &mut head.method,
            "mcp-name" => &mut head.name,
            "last-event-id" => &mut head.last_event,
            name => {
                if let Some(name) = name.strip_prefix("mcp-param-") {
                    head.params.push((name.into(), value.into()));
                }
                continue;
            }
        };
        if place.is_none() && value.len() <= HEADER_BYTES {
            *place = Some(value.into());
        }
    }
    if !accepts {
        (head.takes_json, head.takes_events) = (true, true);
    }
    head
}

fn accept(head: &mut Head, value: &str) {
    if value == EITHER {
        (head.takes_json, head.takes_events) = (true, true);
        return;
    }
    for kind in value.split(',').map(media_type) {
        let is_one_of = |names: [&str; 3]| names.iter().any(|name| kind.eq_ignore_ascii_case(name));
        head.takes_json |= is_one_of(["application/json", "application/*", "*/*"]);
        head.takes_events |= is_one_of(["text/event-stream", "text/*", "*/*"]);
    }
}

/// A media type without its parameters.
fn media_type(value: &str) -> &str {
    value.split(';').next().unwrap_or_default().trim()
}

/// Whether a body is said to be JSON.
pub fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::to_str).and_then(Result::ok).map(media_type);
    kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(pairs: &[(&'static str, &str)]) -> Head {
        let mut map = HeaderMap::new();
        for (name, value) in pairs {
            map.append(*name, value.parse().unwrap());
        }
        read(&map, None)
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
