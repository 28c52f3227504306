//! A message in one line, whatever its writer did: a line feed ends a message on a pipe, and a line feed or a
//! carriage return ends a line of an event stream. JSON allows both between its tokens, and some writers put
//! them raw into strings.
//!
//! Between tokens they are blanks and become spaces. Inside a string, where JSON forbids them, they become
//! the escapes `\n` and `\r`: the text stays what it was, and none of it can pass for another line.

use bytes::Bytes;

/// A message in one line, without a BOM and blanks around it.
pub fn one_line(bytes: Bytes) -> Bytes {
    let inner = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes).trim_ascii();
    let inner = bytes.slice_ref(inner);
    if !has_line_ends(&inner) {
        return inner;
    }
    // Let go of, so that the copy below is none where nobody else holds the bytes.
    drop(bytes);
    let mut flat = Vec::from(inner);
    flatten(&mut flat, 0);
    flat.into()
}

/// Makes one line of the message that a buffer holds from `start` on.
pub(crate) fn one_line_from(buffer: &mut Vec<u8>, start: usize) {
    if has_line_ends(&buffer[start..]) {
        flatten(buffer, start);
    }
}

fn has_line_ends(text: &[u8]) -> bool {
    memchr::memchr2(b'\n', b'\r', text).is_some()
}

#[cold]
fn flatten(buffer: &mut Vec<u8>, start: usize) {
    let mut place = Place::default();
    let mut in_strings = false;
    for byte in &mut buffer[start..] {
        match (*byte, place.before(*byte)) {
            (b'\n' | b'\r', Place::Outside) => *byte = b' ',
            (b'\n' | b'\r', _) => in_strings = true,
            _ => {}
        }
    }
    if in_strings {
        let text = buffer.split_off(start);
        escape(buffer, &text);
    }
}

/// Adds a text whose line ends are all inside strings.
fn escape(to: &mut Vec<u8>, text: &[u8]) {
    let mut place = Place::default();
    for byte in text {
        let letter = if *byte == b'\n' { b'n' } else { b'r' };
        match (*byte, place.before(*byte)) {
            (b'\n' | b'\r', Place::Escape) => to.push(letter),
            (b'\n' | b'\r', _) => to.extend([b'\\', letter]),
            _ => to.push(*byte),
        }
    }
}

/// Where in a JSON text.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    Inside,
    /// Right after a backslash inside a string.
    Escape,
}

impl Place {
    /// Moves past a byte; where it stood.
    fn before(&mut self, byte: u8) -> Place {
        let before = *self;
        *self = match (before, byte) {
            (Place::Outside, b'"') | (Place::Escape, _) => Place::Inside,
            (Place::Inside, b'\\') => Place::Escape,
            (Place::Inside, b'"') => Place::Outside,
            (place, _) => place,
        };
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flat(text: &'static str) -> String {
        String::from_utf8(one_line(Bytes::from_static(text.as_bytes())).to_vec()).unwrap()
    }

    #[test]
    fn between_tokens_line_ends_are_blanks() {
        assert_eq!(flat("\u{feff}\r\n {\"a\":\r[1,\n2]}\r\n"), "{\"a\": [1, 2]}");
        assert_eq!(flat("{\"a\\\"\":\r\"\\\\\",\n\"b\":1}"), "{\"a\\\"\": \"\\\\\", \"b\":1}");
    }

    #[test]
    fn inside_strings_they_are_escapes() {
        assert_eq!(flat("{\"a\":\"1\r\n2\",\r\"b\":\"\\\n\"}"), "{\"a\":\"1\\r\\n2\", \"b\":\"\\n\"}");
    }

    #[test]
    fn what_stands_before_the_message_is_not_looked_at() {
        let mut buffer = b"id: \"1\ndata: {\r}".to_vec();
        one_line_from(&mut buffer, 13);
        assert_eq!(buffer, b"id: \"1\ndata: { }");
    }
}
