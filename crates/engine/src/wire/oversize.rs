//! The id of a message that is too long to keep.
//!
//! A reader drops such a line as it comes and keeps only its beginning and its end. Writers put
//! the id first or last (`{"jsonrpc":"2.0","id":7,"result":…` or `…},"id":7}`), so either is enough.

/// Finds the raw id of a message from its first and last bytes.
pub fn id_of_oversized<'a>(head: &'a [u8], tail: &'a [u8]) -> Option<&'a [u8]> {
    id_in_head(head).or_else(|| id_in_tail(tail))
}

/// Reads members from the opening brace on, as long as their values are scalars.
fn id_in_head(head: &[u8]) -> Option<&[u8]> {
    let mut rest = head.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (key, after) = member_key(rest)?;
        let (value, after) = scalar(after)?;
        if key == b"\"id\"" {
            return Some(value);
        }
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
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
    use super::id_of_oversized;

    #[test]
    fn an_id_is_found_at_either_end_and_never_inside() {
        let head = |text: &'static str| id_of_oversized(text.as_bytes(), b"");
        let tail = |text: &'static str| id_of_oversized(b"", text.as_bytes());
        assert_eq!(head(r#"{"jsonrpc":"2.0","id":7,"result":{"#), Some(b"7" as &[u8]));
        assert_eq!(head(r#" { "id" : "a\"b" , "result":{"#), Some(br#""a\"b""# as &[u8]));
        assert_eq!(head(r#"{"result":{"id":7,"#), None);
        assert_eq!(head(r#"{"id":12"#), None, "the number may go on");
        assert_eq!(tail(r#"text"}]},"id":7}"#), Some(b"7" as &[u8]));
        assert_eq!(tail(r#"},"id":"x","jsonrpc":"2.0"} "#), Some(br#""x""# as &[u8]));
        assert_eq!(tail(r#"{"id":7}}"#), None, "an inner object's id");
        assert_eq!(tail(r#"{"id":7}]}"#), None);
    }
}
