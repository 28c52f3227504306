//! Headers: those that a person configures, and what those of a response mean.

use super::tcp::Host;
use crate::http1::fields::{Fields, Known, media_type};
use crate::http1::head::Response;
use http::header::{
    ACCEPT, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderName, HeaderValue, TE, TRAILER,
    TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Uri};
use std::time::Duration;

/// Bytes of a session id. A longer one is ignored.
const SESSION_BYTES: usize = 1 << 10;

/// The longest `Retry-After` that is believed.
const RETRY_AFTER_MOST: Duration = Duration::from_secs(3600);

/// How much sooner than a server closes an idle connection we do, so that no request meets a
/// closing one.
const CLOSE_BEFORE: Duration = Duration::from_secs(1);

/// Headers that are ours or the connection's to set, beside `Mcp-*` and `Proxy-*`.
const OURS: [HeaderName; 11] = [
    ACCEPT,
    CONNECTION,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("last-event-id"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Reads `Name: value`, with each `${VARIABLE}` in the value replaced. The error is for people and
/// never shows the value.
pub fn parse_header(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("a header is written as 'Name: value'")?;
    let shown = crate::observe::text::escape(name.trim());
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .map_err(|_| format!("`{shown}` is not a header name"))?;
    if OURS.contains(&name) || name.as_str().starts_with("mcp-") || name.as_str().starts_with("proxy-") {
        return Err(format!("`{shown}` is not yours to set: outlast sets it itself"));
    }
    let value = expand(value.trim(), variable).map_err(|why| format!("header `{shown}`: {why}"))?;
    let mut value = HeaderValue::try_from(value.trim())
        .map_err(|_| format!("header `{shown}`: its value has characters that a header cannot carry"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn expand(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut whole = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}').ok_or("`${` without `}`")?;
        let name = name.trim();
        whole.push_str(before);
        whole.push_str(
            &variable(name)
                .ok_or_else(|| format!("the variable {} is not set", crate::observe::text::escape(name)))?,
        );
        rest = after;
    }
    Ok(whole + rest)
}

/// `Host` of a URL.
pub fn host(url: &Uri) -> Result<HeaderValue, String> {
    let name = url.host().unwrap_or_default();
    let usual = if url.scheme_str() == Some("https") { 443 } else { 80 };
    let text = match url.port_u16().filter(|port| *port != usual) {
        Some(port) => format!("{name}:{port}"),
        None => name.to_owned(),
    };
    HeaderValue::try_from(text).map_err(|_| "the server's URL names an odd host".into())
}

/// What a response's body is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Json,
    Events,
    Other,
}

impl Content {
    pub fn of(fields: &Fields) -> Content {
        let kind = fields.get(Known::ContentType).map(media_type).unwrap_or_default();
        if kind.eq_ignore_ascii_case(b"application/json") {
            Content::Json
        } else if kind.eq_ignore_ascii_case(b"text/event-stream") {
            Content::Events
        } else {
            Content::Other
        }
    }
}

/// The session that a response names, if it is one that can be sent back.
pub fn session(fields: &Fields) -> Option<Box<str>> {
    let value = fields.text(Known::McpSessionId);
    let fits = (1..=SESSION_BYTES).contains(&value.len());
    (fits && value.bytes().all(|byte| byte.is_ascii_graphic())).then(|| value.into())
}

/// How long the server keeps an idle connection, less what a request needs to get there.
pub fn kept_for(fields: &Fields) -> Option<Duration> {
    let parameter = |part: &str| part.trim().strip_prefix("timeout=")?.parse().ok();
    let seconds = fields.text(Known::KeepAlive).split(',').find_map(parameter)?;
    Some(Duration::from_secs(seconds).saturating_sub(CLOSE_BEFORE))
}

/// `Retry-After`: seconds, or a date, which is measured from the server's own `Date`.
pub fn retry_after(fields: &Fields) -> Option<Duration> {
    let value = fields.text(Known::RetryAfter).trim();
    let seconds = match value.parse() {
        Ok(seconds) => seconds,
        Err(_) if !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit()) => u64::MAX,
        Err(_) => seconds_of_date(value)?.saturating_sub(seconds_of_date(fields.text(Known::Date))?),
    };
    Some(Duration::from_secs(seconds).min(RETRY_AFTER_MOST))
}

/// Seconds since 1970 of a date such as `Sun, 06 Nov 1994 08:49:37 GMT`.
fn seconds_of_date(date: &str) -> Option<u64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (_, rest) = date.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let day: u64 = words.next()?.parse().ok()?;
    let month = words.next()?;
    let month = MONTHS.iter().position(|name| *name == month)? as u64 + 1;
    let year: u64 = words.next()?.parse().ok().filter(|year| (1970..10_000).contains(year))?;
    let mut clock = words.next()?.split(':').map(str::parse::<u64>);
    let mut part = || clock.next()?.ok().filter(|number| *number < 100);
    let (hours, minutes, seconds) = (part()?, part()?, part()?);
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * years + years / 4 - years / 100 + years / 400 + (153 * months + 2) / 5 + day - 1;
    Some((days.checked_sub(719_468)? * 24 + hours) * 3600 + minutes * 60 + seconds)
}

/// Where a response sends us, if it does.
pub fn location(head: &Response) -> Option<&str> {
    let moved = matches!(head.status, 301 | 302 | 303 | 307 | 308);
    moved.then(|| head.fields.text(Known::Location)).filter(|location| !location.is_empty())
}

/// Where a redirect leads; the error says why it is not followed. Elsewhere it would carry our
/// credentials to somebody else; and only 307 and 308 promise that a POST stays one.
pub fn follow(method: &Method, status: u16, from: &Uri, location: &str) -> Result<Uri, String> {
    let next = resolve(from, location).ok_or("it redirects to something that is not a URL")?;
    let origin = |url: &Uri| {
        let host = Host::of(url)?;
        Some((url.scheme_str()?.to_owned(), host.name.to_ascii_lowercase(), host.port))
    };
    if origin(&next) != origin(from) {
        let scheme = next.scheme_str().unwrap_or_default();
        let place = Host::of(&next).map(|host| host.to_string()).unwrap_or_default();
        return Err(format!(
            "it redirects to {scheme}://{place}, where credentials must not follow; use that URL"
        ));
    }
    if *method != Method::GET && !matches!(status, 307 | 308) {
        return Err(format!("it redirects to another path with {status}, which loses the message"));
    }
    Ok(next)
}

/// A location, seen from a URL.
fn resolve(from: &Uri, location: &str) -> Option<Uri> {
    let (scheme, authority) = (from.scheme_str()?, from.authority()?);
    let whole = if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.contains("://") {
        location.to_owned()
    } else if location.starts_with('?') {
        format!("{scheme}://{authority}{}{location}", from.path())
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{scheme}://{authority}{folder}/{location}")
    };
    whole.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_takes_variables_and_shows_no_value() {
        let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let (name, value) = parse_header("Authorization: Bearer ${TOKEN}", variable).unwrap();
        assert_eq!(name, "authorization");
        assert_eq!(value.to_str().unwrap(), "Bearer s3cret");
        assert_eq!(format!("{value:?}"), "Sensitive");
        let error = |text: &str| parse_header(text, variable).unwrap_err();
        assert_eq!(error("X-Key: ${OTHER}"), "header `X-Key`: the variable OTHER is not set");
        assert_eq!(error("X-Key: ${OTHER"), "header `X-Key`: `${` without `}`");
        assert_eq!(error("nothing"), "a header is written as 'Name: value'");
        assert_eq!(error("a b: c"), "`a b` is not a header name");
        assert!(!error("X-Key: s3\u{7}cret").contains("cret"));
        for ours in ["Mcp-Session-Id: x", "MCP-Name: x", "host: x", "Transfer-Encoding: x", "Proxy-Foo: x"] {
            assert!(error(ours).contains("not yours to set"), "{ours}");
        }
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let after = |value: &str| {
            let date = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
            retry_after(&Fields::of_pairs(&[date, ("retry-after", value)])).map(|time| time.as_secs())
        };
        assert_eq!(after("7"), Some(7));
        assert_eq!(after("Sun, 06 Nov 1994 08:50:07 GMT"), Some(30));
        assert_eq!(after("Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(after("Mon, 06 Nov 2034 08:49:37 GMT"), Some(3600));
        assert_eq!(after("99999999999999999999999"), Some(3600));
        assert_eq!(after("soon"), None);
        assert_eq!(after("-1"), None);
        assert_eq!(retry_after(&Fields::of_pairs(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT")])), None);
        assert_eq!(seconds_of_date("Tue, 29 Feb 2000 00:00:01 GMT"), Some(951_782_401));
        assert_eq!(seconds_of_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
    }

    #[test]
    fn an_idle_connection_is_left_before_the_server_leaves_it() {
        let kept =
            |value: &str| kept_for(&Fields::of_pairs(&[("keep-alive", value)])).map(|time| time.as_secs());
        assert_eq!(kept("timeout=5"), Some(4));
        assert_eq!(kept("max=100, timeout=15"), Some(14));
        assert_eq!(kept("timeout=0"), Some(0));
        assert_eq!(kept("x"), None);
    }

    #[test]
    fn a_content_type_is_known_whatever_follows_it() {
        let content = |value: &str| Content::of(&Fields::of_pairs(&[("content-type", value)]));
        assert_eq!(content("application/json"), Content::Json);
        assert_eq!(content("Application/JSON; charset=utf-8"), Content::Json);
        assert_eq!(content("text/event-stream;charset=utf-8"), Content::Events);
        assert_eq!(content("text/html"), Content::Other);
        assert_eq!(Content::of(&Fields::of_pairs(&[])), Content::Other);
    }

    #[test]
    fn only_a_session_that_can_be_sent_back_is_taken() {
        let session = |value: &str| session(&Fields::of_pairs(&[("mcp-session-id", value)])).is_some();
        assert!(session("abc-123"));
        assert!(!session("") && !session("a b") && !session(&"x".repeat(1025)));
    }

    #[test]
    fn a_redirect_is_followed_within_its_origin_only() {
        let from = Uri::from_static("https://host.example/mcp?key=1");
        let to = |location: &str| follow(&Method::POST, 307, &from, location);
        assert_eq!(to("/mcp/").unwrap(), "https://host.example/mcp/");
        assert_eq!(to("mcp/").unwrap(), "https://host.example/mcp/");
        assert_eq!(to("https://HOST.example:443/x?y").unwrap().path(), "/x");
        assert_eq!(to("?z").unwrap(), "https://host.example/mcp?z");
        for elsewhere in ["http://host.example/mcp", "//other.example/", "https://host.example:444/"] {
            assert!(to(elsewhere).unwrap_err().contains("credentials"), "{elsewhere}");
        }
        assert!(to("//other.example/secret?k=v").unwrap_err().contains("https://other.example:443, "));
        let found = |method| follow(&method, 302, &from, "/x");
        assert!(found(Method::GET).is_ok());
        assert!(found(Method::POST).unwrap_err().contains("302"));
    }
}
