//! The fields of a head, in their order.

use super::{Fault, HEADERS};
use httparse::Header;
use std::mem::MaybeUninit;

/// Room for the fields while they are read.
pub(super) type Room<'a> = [MaybeUninit<Header<'a>>; HEADERS];

pub(super) fn room<'a>() -> Room<'a> {
    [const { MaybeUninit::uninit() }; HEADERS]
}

/// The names that mean something to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    Accept,
    Authorization,
    Connection,
    ContentLength,
    ContentType,
    Date,
    Expect,
    Host,
    KeepAlive,
    LastEventId,
    Location,
    McpMethod,
    McpName,
    /// `Mcp-Param-`, whatever follows it.
    McpParam,
    McpProtocolVersion,
    McpSessionId,
    Origin,
    RetryAfter,
    TraceParent,
    TraceState,
    TransferEncoding,
}

impl Known {
    fn of(text: &[u8]) -> Option<Known> {
        // Nearly every length has one name or two, so nearly every name is compared once.
        let candidates: &[Known] = match text.len() {
            4 => &[Known::Host, Known::Date],
            6 => &[Known::Accept, Known::Origin, Known::Expect],
            8 => &[Known::McpName, Known::Location],
            10 => &[Known::Connection, Known::KeepAlive, Known::McpMethod, Known::TraceState],
            11 => &[Known::RetryAfter, Known::TraceParent],
            12 => &[Known::ContentType],
            13 => &[Known::LastEventId, Known::Authorization],
            14 => &[Known::ContentLength, Known::McpSessionId],
            17 => &[Known::TransferEncoding],
            20 => &[Known::McpProtocolVersion],
            _ => &[],
        };
        let known = candidates.iter().find(|known| known.is(text));
        known.copied().or_else(|| {
            let prefix = text.get(..Known::McpParam.as_str().len())?;
            Known::McpParam.is(prefix).then_some(Known::McpParam)
        })
    }

    /// Whether a name of the same length is this one, in whatever case. In a name that HTTP allows only
    /// letters have a second form, and that differs in one bit.
    fn is(self, text: &[u8]) -> bool {
        let bytes = text.iter().zip(self.as_str().as_bytes());
        bytes.fold(0, |unlike, (byte, known)| unlike | (byte | 0x20) ^ known) == 0
    }

    /// As it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Known::Accept => "accept",
            Known::Authorization => "authorization",
            Known::Connection => "connection",
            Known::ContentLength => "content-length",
            Known::ContentType => "content-type",
            Known::Date => "date",
            Known::Expect => "expect",
            Known::Host => "host",
            Known::KeepAlive => "keep-alive",
            Known::LastEventId => "last-event-id",
            Known::Location => "location",
            Known::McpMethod => "mcp-method",
            Known::McpName => "mcp-name",
            Known::McpParam => "mcp-param-",
            Known::McpProtocolVersion => "mcp-protocol-version",
            Known::McpSessionId => "mcp-session-id",
            Known::Origin => "origin",
            Known::RetryAfter => "retry-after",
            Known::TraceParent => "traceparent",
            Known::TraceState => "tracestate",
            Known::TransferEncoding => "transfer-encoding",
        }
    }
}

/// What a head says that means something to us. Not printable: some of it is secret.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8>,
    spans: Vec<Span>,
}

/// Where a field stands: what follows its prefix, if it has one, and then its value. A head is short
/// enough for these numbers.
#[derive(Clone, Copy)]
struct Span {
    name: Known,
    rest: u16,
    start: u32,
    value: u32,
}

/// One field.
pub struct Field<'a> {
    /// Its name.
    pub name: Known,
    /// What follows it, where it is a prefix.
    pub rest: &'a [u8],
    /// Its value.
    pub value: &'a [u8],
}

impl Fields {
    pub(super) fn of(headers: &[Header<'_>]) -> Fields {
        let mut fields = Fields { text: Vec::with_capacity(256), spans: Vec::with_capacity(12) };
        for header in headers {
            let Some(name) = Known::of(header.name.as_bytes()) else { continue };
            let rest = match name {
                Known::McpParam => &header.name.as_bytes()[Known::McpParam.as_str().len()..],
                _ => b"",
            };
            let start = fields.text.len() as u32;
            fields.text.extend_from_slice(rest);
            fields.text.extend_from_slice(header.value);
            let (rest, value) = (rest.len() as u16, header.value.len() as u32);
            fields.spans.push(Span { name, rest, start, value });
        }
        fields
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Field<'_>> {
        self.spans.iter().map(|span| self.field(span))
    }

    fn field(&self, span: &Span) -> Field<'_> {
        let text = &self.text[span.start as usize..];
        let (rest, text) = text.split_at(usize::from(span.rest));
        Field { name: span.name, rest, value: &text[..span.value as usize] }
    }

    /// The values of one name.
    pub fn all(&self, name: Known) -> impl Iterator<Item = &[u8]> {
        self.spans.iter().filter(move |span| span.name == name).map(|span| self.field(span).value)
    }

    /// The first value of a name.
    pub fn get(&self, name: Known) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The first value of a name as text; empty if there is none that is text.
    pub fn text(&self, name: Known) -> &str {
        self.get(name).and_then(visible).unwrap_or_default()
    }

    /// Whether a name's values, which are lists, hold a word.
    pub fn lists(&self, name: Known, word: &str) -> bool {
        let mut words = self.all(name).flat_map(|value| value.split(|byte| *byte == b','));
        words.any(|found| found.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// `Content-Length`, if there is one; several must agree.
    pub(super) fn length(&self) -> Result<Option<u64>, Fault> {
        let mut length = None;
        for value in self.all(Known::ContentLength) {
            let found = number(value).ok_or(Fault::Malformed("invalid content-length"))?;
            if length.is_some_and(|before| before != found) {
                return Err(Fault::Malformed("invalid content-length"));
            }
            length = Some(found);
        }
        Ok(length)
    }
}

/// A number in decimal and nothing else.
fn number(value: &[u8]) -> Option<u64> {
    let next = |number: u64, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    };
    if value.is_empty() { None } else { value.iter().try_fold(0, next) }
}

/// A value as text, if it holds nothing but what can be seen.
pub fn visible(value: &[u8]) -> Option<&str> {
    // Without an early end the check runs on many bytes at once.
    let seen = value.iter().fold(true, |seen, byte| seen & matches!(byte, b'\t' | b' '..=b'~'));
    if seen { std::str::from_utf8(value).ok() } else { None }
}

/// A media type without its parameters.
pub fn media_type(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// Writes a field; not a value that would be more than one.
pub fn write(to: &mut Vec<u8>, name: &'static str, value: &[u8]) {
    put(to, name, value);
}

/// Writes a field whose name somebody else chose.
pub fn write_any(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    if is_token(name) {
        put(to, name, value);
    }
}

fn put(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    if is_value(value) {
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(value);
        to.extend_from_slice(b"\r\n");
    }
}

/// Whether a field can carry a value.
pub fn is_value(value: &[u8]) -> bool {
    value.iter().fold(true, |fits, byte| fits & (*byte == b'\t' || (*byte >= b' ' && *byte != 0x7f)))
}

fn is_token(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Fields {
        /// As if these had come.
        pub fn of_pairs(pairs: &[(&str, &str)]) -> Fields {
            let mut headers = Vec::new();
            for (name, value) in pairs {
                headers.push(Header { name, value: value.as_bytes() });
            }
            Fields::of(&headers)
        }
    }

    #[test]
    fn a_field_is_found_by_its_name_in_any_case() {
        let pairs =
            [("Accept", "a"), ("X", "x"), ("accept", "b, C ,d"), ("origin", ""), ("MCP-Param-Region", "eu")];
        let fields = Fields::of_pairs(&pairs);
        assert_eq!(fields.text(Known::Accept), "a");
        assert_eq!(fields.all(Known::Accept).count(), 2);
        assert_eq!((fields.get(Known::Origin), fields.get(Known::Host)), (Some(&b""[..]), None));
        assert!(fields.lists(Known::Accept, "c") && !fields.lists(Known::Accept, "e"));
        let param = fields.iter().find(|field| field.name == Known::McpParam).unwrap();
        assert_eq!((param.rest, param.value), (&b"Region"[..], &b"eu"[..]));
        assert_eq!(fields.iter().count(), 4);
    }

    #[test]
    fn every_name_is_known_by_what_it_is_written_as() {
        let all = [
            Known::Accept,
            Known::Authorization,
            Known::Connection,
            Known::ContentLength,
            Known::ContentType,
            Known::Date,
            Known::Expect,
            Known::Host,
            Known::KeepAlive,
            Known::LastEventId,
            Known::Location,
            Known::McpMethod,
            Known::McpName,
            Known::McpParam,
            Known::McpProtocolVersion,
            Known::McpSessionId,
            Known::Origin,
            Known::RetryAfter,
            Known::TraceParent,
            Known::TraceState,
            Known::TransferEncoding,
        ];
        for name in all {
            assert_eq!(Known::of(name.as_str().as_bytes()), Some(name));
            assert_eq!(Known::of(name.as_str().to_uppercase().as_bytes()), Some(name));
        }
    }

    #[test]
    fn lengths_must_agree_and_be_numbers() {
        let length = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| ("content-length", *value)).collect();
            Fields::of_pairs(&pairs).length()
        };
        assert_eq!(length(&[]), Ok(None));
        assert_eq!(length(&["12"]), Ok(Some(12)));
        assert_eq!(length(&["12", "12"]), Ok(Some(12)));
        for odd in [&["12", "13"][..], &["+1"], &["-1"], &["1,1"], &["0x1"], &[""], &["99999999999999999999"]]
        {
            assert!(length(odd).is_err(), "{odd:?}");
        }
    }

    #[test]
    fn nothing_is_written_that_could_end_the_line() {
        let mut to = Vec::new();
        write(&mut to, "a", b"1\r\nb: 2");
        write_any(&mut to, "a\r\nb", b"1");
        write_any(&mut to, "a:", b"1");
        write_any(&mut to, "", b"1");
        write(&mut to, "a", b"\0");
        assert!(to.is_empty());
        write(&mut to, "a", "\u{e4} b".as_bytes());
        assert_eq!(to, "a: \u{e4} b\r\n".as_bytes());
    }
}
