//! What a message is that is too long to keep.
//!
//! A reader drops such a line as it comes and keeps only its beginning and its end. Writers put
//! the id first or last (`{"jsonrpc":"2.0","id":7,"result":…` or `…},"id":7}`), so either is enough;
//! and the beginning shows whether it is a request or an answer.

use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// What is known of a message that was too long.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Oversized {
    /// Its raw id, if that could be found.
    #[serde(with = "crate::recording::form")]
    pub id: Option<Bytes>,
    /// It is an answer: a result or an error stands at its beginning.
    pub answer: bool,
}

/// Reads what can be read from a message's first and last bytes.
pub fn oversized(head: &[u8], tail: &[u8]) -> Oversized {
    let (id, answer) = read_head(head);
    let id = id.or_else(|| id_in_tail(tail));
    Oversized { id: id.map(Bytes::copy_from_slice), answer }
}

/// Reads members from the opening brace on, as long as their values are scalars: the id, and
/// whether the first that is none is a result or an error.
fn read_head(head: &[u8]) -> (Option<&[u8]>, bool) {
    let mut id = None;
    let Some(mut rest) = head.trim_ascii_start().strip_prefix(b"{") else { return (None, false) };
    while let Some((key, after)) = member_key(rest) {
        if key == b"\"result\"" || key == b"\"error\"" {
            return (id, true);
        }
        let Some((value, after)) = scalar(after) else { break };
        if key == b"\"id\"" {
            id = Some(value);
        }
        let Some(next) = after.trim_ascii_start().strip_prefix(b",") else { break };
        rest = next;
    }
    (id, false)
}

/// Looks for the last `"id"`, which is the message's own only if nothing but scalar members and
/// one closing brace follow it.
fn id_in_tail(tail: &[u8]) -> Option<&[u8]> {
    let start = memchr::memmem::rfind(tail, b"\"id\"")?;
    let (_, after) = member_key(&tail[start..])?;
    let (id, mut rest) = scalar(after)?;
    loop {
        rest = rest.trim_ascii_start();
        if rest.strip_prefix(b"}").is_some_and(|end| end.trim_ascii().is_empty()) {
            return Some(id);
        }
        let (_, after) = member_key(rest.strip_prefix(b",")?)?;
        (_, rest) = scalar(after)?;
    }
}

/// A quoted key and its colon; what follows them.
fn member_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (key, after) = string(bytes.trim_ascii_start())?;
    Some((key, after.trim_ascii_start().strip_prefix(b":")?))
}

/// A string, number or word; what follows it.
fn scalar(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let bytes = bytes.trim_ascii_start();
    if bytes.first() == Some(&b'"') {
        return string(bytes);
    }
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.');
    let length = bytes.iter().position(|byte| !part(byte))?;
    (length > 0).then(|| bytes.split_at(length))
}

fn string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut at = bytes.strip_prefix(b"\"").map(|_| 1)?;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            return Some(bytes.split_at(at + 1));
        }
        at += 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(id: &str, answer: bool) -> Oversized {
        Oversized { id: Some(Bytes::copy_from_slice(id.as_bytes())), answer }
    }

    #[test]
    fn an_id_is_found_at_either_end_and_never_inside() {
        let head = |text: &str| oversized(text.as_bytes(), b"");
        let tail = |text: &str| oversized(b"", text.as_bytes()).id;
        let raw = |text: &str| Some(Bytes::copy_from_slice(text.as_bytes()));
        assert_eq!(head(r#"{"jsonrpc":"2.0","id":7,"result":{"#), known("7", true));
        assert_eq!(head(r#" { "id" : "a\"b" , "error":{"#), known(r#""a\"b""#, true));
        assert_eq!(head(r#"{"id":7,"method":"sampling/createMessage","params":{"#), known("7", false));
        assert_eq!(head(r#"{"result":{"id":7,"#), Oversized { id: None, answer: true });
        assert_eq!(head(r#"{"id":12"#), Oversized::default(), "the number may go on");
        assert_eq!(tail(r#"text"}]},"id":7}"#), raw("7"));
        assert_eq!(tail(r#"},"id":"x","jsonrpc":"2.0"} "#), raw(r#""x""#));
        assert_eq!(tail(r#"{"id":7}}"#), None, "an inner object's id");
        assert_eq!(tail(r#"{"id":7}]}"#), None);
    }
}
