//! The fields of a head, in their order.

use super::{Fault, HEADERS};
use httparse::Header;
use std::mem::MaybeUninit;

/// Room for the fields while they are read.
pub(super) type Room<'a> = [MaybeUninit<Header<'a>>; HEADERS];

pub(super) fn room<'a>() -> Room<'a> {
    [const { MaybeUninit::uninit() }; HEADERS]
}

/// Names in lower case with their values. Not printable: some are secrets.
#[derive(Default)]
pub struct Fields {
    text: Vec<u8>,
    spans: Vec<Span>,
}

/// A name and, right behind it, its value. A head is short enough for these numbers.
#[derive(Clone, Copy)]
struct Span {
    start: u32,
    name: u16,
    value: u32,
}

impl Fields {
    pub(super) fn of(headers: &[Header<'_>]) -> Fields {
        let length = headers.iter().map(|header| header.name.len() + header.value.len()).sum();
        let mut fields =
            Fields { text: Vec::with_capacity(length), spans: Vec::with_capacity(headers.len()) };
        headers.iter().for_each(|header| fields.push(header.name, header.value));
        fields
    }

    fn push(&mut self, name: &str, value: &[u8]) {
        let start = self.text.len();
        self.text.extend_from_slice(name.as_bytes());
        self.text[start..].make_ascii_lowercase();
        self.text.extend_from_slice(value);
        self.spans.push(Span { start: start as u32, name: name.len() as u16, value: value.len() as u32 });
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.spans.iter().map(|span| {
            let name = span.start as usize..span.start as usize + usize::from(span.name);
            (&self.text[name.clone()], &self.text[name.end..name.end + span.value as usize])
        })
    }

    /// The values of one name, which is in lower case.
    pub fn all<'a>(&'a self, name: &'static str) -> impl Iterator<Item = &'a [u8]> {
        self.iter().filter(move |(found, _)| *found == name.as_bytes()).map(|(_, value)| value)
    }

    /// The first value of a name as text; empty if there is none that is text.
    pub fn text(&self, name: &'static str) -> &str {
        self.all(name).next().and_then(visible).unwrap_or_default()
    }

    /// Whether a name's values, which are lists, hold a word.
    pub fn lists(&self, name: &'static str, word: &str) -> bool {
        let mut words = self.all(name).flat_map(|value| value.split(|byte| *byte == b','));
        words.any(|found| found.trim_ascii().eq_ignore_ascii_case(word.as_bytes()))
    }

    /// `Content-Length`, if there is one; several must agree.
    pub(super) fn length(&self) -> Result<Option<u64>, Fault> {
        let mut length = None;
        for value in self.all("content-length") {
            let found = visible(value).filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
            let found = found.and_then(|text| text.parse().ok());
            if found.is_none() || length.is_some_and(|before| Some(before) != found) {
                return Err(Fault("invalid content-length".into()));
            }
            length = found;
        }
        Ok(length)
    }
}

/// A value as text, if it holds nothing but what can be seen.
pub fn visible(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    text.bytes().all(|byte| matches!(byte, b'\t' | b' '..=b'~')).then_some(text)
}

/// Writes a field; not one that would be more than a field.
pub fn write(to: &mut Vec<u8>, name: &str, value: &[u8]) {
    if is_token(name) && is_value(value) {
        to.extend_from_slice(name.as_bytes());
        to.extend_from_slice(b": ");
        to.extend_from_slice(value);
        to.extend_from_slice(b"\r\n");
    }
}

/// Whether a field can carry a value.
pub fn is_value(value: &[u8]) -> bool {
    value.iter().all(|byte| *byte == b'\t' || (*byte >= b' ' && *byte != 0x7f))
}

fn is_token(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Fields {
        let headers: Vec<Header<'_>> =
            pairs.iter().map(|(name, value)| Header { name, value: value.as_bytes() }).collect();
        Fields::of(&headers)
    }

    #[test]
    fn a_field_is_found_by_its_name_in_any_case() {
        let fields = fields(&[("Accept", "a"), ("X", ""), ("accept", "b, C ,d")]);
        assert_eq!(fields.text("accept"), "a");
        assert_eq!(fields.all("accept").count(), 2);
        assert_eq!(fields.text("x"), "");
        assert_eq!(fields.text("none"), "");
        assert!(fields.lists("accept", "c") && !fields.lists("accept", "e"));
    }

    #[test]
    fn lengths_must_agree_and_be_numbers() {
        let length = |values: &[&str]| {
            let pairs: Vec<_> = values.iter().map(|value| ("content-length", *value)).collect();
            fields(&pairs).length()
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
        write(&mut to, "a\r\nb", b"1");
        write(&mut to, "a:", b"1");
        write(&mut to, "", b"1");
        write(&mut to, "a", b"\0");
        assert!(to.is_empty());
        write(&mut to, "a", "\u{e4} b".as_bytes());
        assert_eq!(to, "a: \u{e4} b\r\n".as_bytes());
    }
}
