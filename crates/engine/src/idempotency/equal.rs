//! Whether two JSON texts say the same.
//!
//! Numbers are compared as they are written, digit by digit, because a parser that makes them `f64` would
//! take two different big integers for the same.

use std::borrow::Cow;
use std::collections::BTreeMap;

/// Values inside values that are looked into; what is deeper is compared byte for byte.
const DEPTH: usize = 100;

/// Whether two texts are the same JSON value. `1` equals `1.0` and `10e-1`, the order of an object's members
/// does not matter, and of a member that stands twice the last one counts. What is no JSON equals nothing.
pub fn equal_json(a: &[u8], b: &[u8]) -> bool {
    match (Reader::read(a), Reader::read(b)) {
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

#[derive(Debug, PartialEq)]
enum Tree<'a> {
    /// `true`, `false`, `null`.
    Word(&'a [u8]),
    Number(Number<'a>),
    Text(Cow<'a, str>),
    /// Half of a surrogate pair has no text: as it is written.
    Odd(&'a [u8]),
    Array(Vec<Tree<'a>>),
    Object(BTreeMap<Name<'a>, Tree<'a>>),
    /// Too deep to be looked into.
    Deep(&'a [u8]),
}

/// The name of a member; `true` for one that has no text.
type Name<'a> = (bool, Cow<'a, [u8]>);

/// A number without the freedom of writing it: no zeros at either end, and a power of ten.
#[derive(Debug, PartialEq)]
struct Number<'a> {
    negative: bool,
    digits: Cow<'a, [u8]>,
    exponent: i64,
    /// An exponent beyond all sense: as it is written.
    written: Option<&'a [u8]>,
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    depth: usize,
}

impl<'a> Reader<'a> {
    fn read(text: &'a [u8]) -> Option<Tree<'a>> {
        // What is read below is well formed, so that the reader need not look twice.
        serde_json::from_slice::<&serde_json::value::RawValue>(text).ok()?;
        let mut reader = Reader { text, at: 0, depth: 0 };
        reader.value()
    }

    fn space(&mut self) {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Option<Tree<'a>> {
        self.space();
        match self.text.get(self.at)? {
            b'{' | b'[' if self.depth == DEPTH => Some(Tree::Deep(self.skip())),
            b'{' => self.inside(Reader::object),
            b'[' => self.inside(Reader::array),
            b'"' => {
                let raw = self.string();
                Some(decode(raw).map_or(Tree::Odd(raw), Tree::Text))
            }
            b'-' | b'0'..=b'9' => Some(Tree::Number(number(self.scalar()))),
            _ => Some(Tree::Word(self.scalar())),
        }
    }

    fn inside(&mut self, read: fn(&mut Self) -> Option<Tree<'a>>) -> Option<Tree<'a>> {
        self.depth += 1;
        self.at += 1;
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Option<Tree<'a>> {
        let mut values = Vec::new();
        while !self.ends(b']')? {
            values.push(self.value()?);
        }
        Some(Tree::Array(values))
    }

    fn object(&mut self) -> Option<Tree<'a>> {
        let mut members = BTreeMap::new();
        while !self.ends(b'}')? {
            let raw = self.string();
            let name = match decode(raw) {
                Some(Cow::Borrowed(text)) => (false, Cow::Borrowed(text.as_bytes())),
                Some(Cow::Owned(text)) => (false, Cow::Owned(text.into_bytes())),
                None => (true, Cow::Borrowed(raw)),
            };
            self.space();
            self.at += 1;
            let value = self.value()?;
            members.insert(name, value);
        }
        Some(Tree::Object(members))
    }

    /// Moves to the next value, or past the end.
    fn ends(&mut self, end: u8) -> Option<bool> {
        self.space();
        if self.text.get(self.at) == Some(&b',') {
            self.at += 1;
            self.space();
        }
        let ended = *self.text.get(self.at)? == end;
        self.at += usize::from(ended);
        Some(ended)
    }

    /// A string with its quotes.
    fn string(&mut self) -> &'a [u8] {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1 + usize::from(*byte == b'\\');
            if *byte == b'"' {
                break;
            }
        }
        &self.text[start..self.at.min(self.text.len())]
    }

    fn scalar(&mut self) -> &'a [u8] {
        let start = self.at;
        while self.text.get(self.at).is_some_and(|byte| !b" \t\n\r,]}".contains(byte)) {
            self.at += 1;
        }
        &self.text[start..self.at]
    }

    /// An array or object, whatever is in it.
    fn skip(&mut self) -> &'a [u8] {
        let start = self.at;
        let mut open = 0usize;
        while let Some(byte) = self.text.get(self.at) {
            match byte {
                b'"' => {
                    self.string();
                    continue;
                }
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                break;
            }
        }
        &self.text[start..self.at]
    }
}

fn decode(quoted: &[u8]) -> Option<Cow<'_, str>> {
    let inner = quoted.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    serde_json::from_slice(quoted).ok().map(Cow::Owned)
}

fn number(text: &[u8]) -> Number<'_> {
    let (negative, unsigned) = match text.strip_prefix(b"-") {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, power) = match unsigned.iter().position(|byte| matches!(byte, b'e' | b'E')) {
        Some(at) => (&unsigned[..at], &unsigned[at + 1..]),
        None => (unsigned, &b"0"[..]),
    };
    let (whole, fraction) = match mantissa.iter().position(|byte| *byte == b'.') {
        Some(at) => (&mantissa[..at], &mantissa[at + 1..]),
        None => (mantissa, &b""[..]),
    };
    let digits: Cow<'_, [u8]> =
        if fraction.is_empty() { whole.into() } else { [whole, fraction].concat().into() };
    let leading = digits.iter().take_while(|digit| **digit == b'0').count();
    let trailing = digits.iter().rev().take_while(|digit| **digit == b'0').count();
    if leading == digits.len() {
        // Zero has no sign that matters, and no power.
        return Number { negative: false, digits: Cow::Borrowed(b""), exponent: 0, written: None };
    }
    let kept = leading..digits.len() - trailing;
    let digits = match digits {
        Cow::Borrowed(digits) => Cow::Borrowed(&digits[kept]),
        Cow::Owned(digits) => Cow::Owned(digits[kept].to_vec()),
    };
    let power = std::str::from_utf8(power).ok().and_then(|power| power.parse::<i64>().ok());
    let exponent =
        power.and_then(|power| power.checked_add(trailing as i64)?.checked_sub(fraction.len() as i64));
    let written = if exponent.is_none() { Some(text) } else { None };
    Number { negative, digits, exponent: exponent.unwrap_or_default(), written }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    #[test]
    fn numbers_are_equal_by_their_value() {
        let same = ["1", "1.0", "1.00", "10e-1", "0.1E1", "1e0", "1E+0"];
        for a in same {
            for b in same {
                assert!(equal_json(a.as_bytes(), b.as_bytes()), "{a} {b}");
            }
        }
        for (a, b) in [("0", "-0"), ("0.0", "0e9"), ("100", "1e2"), ("-1.50", "-15e-1"), ("1e999", "10e998")]
        {
            assert!(equal_json(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
        for (a, b) in [
            ("1", "2"),
            ("1", "-1"),
            ("1", "10"),
            ("1", "\"1\""),
            ("18446744073709551617", "18446744073709551618"),
            ("1", "1.0000000000000000000001"),
            ("1e99999999999999999999", "1e99999999999999999998"),
        ] {
            assert!(!equal_json(a.as_bytes(), b.as_bytes()), "{a} {b}");
        }
    }

    #[test]
    fn objects_are_equal_in_any_order_and_arrays_are_not() {
        for (a, b, equal) in [
            (r#"{"a":1,"b":{"c":[]}}"#, r#" { "b" : {"c":[ ]} , "a":1.0 } "#, true),
            (r#"{"a":1}"#, r#"{"a":1,"b":null}"#, false),
            (r#"{"a":1,"a":2}"#, r#"{"a":2}"#, true),
            (r#"{"\u0061":1}"#, r#"{"a":1}"#, true),
            (r#"["a\/b"]"#, r#"["a/b"]"#, true),
            ("[1,2]", "[2,1]", false),
            ("[]", "{}", false),
            ("[null]", "[false]", false),
            (r#"["\ud800"]"#, r#"["\ud800"]"#, true),
            (r#"["\ud800"]"#, r#"["\\ud800"]"#, false),
            (r#"{"\ud800":1}"#, r#"{"\\ud800":1}"#, false),
            (r#""},{""#, r#""},{""#, true),
            ("{", "{", false),
        ] {
            assert_eq!(equal_json(a.as_bytes(), b.as_bytes()), equal, "{a} {b}");
        }
    }

    #[test]
    fn what_is_too_deep_is_compared_byte_for_byte() {
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(equal_json(deep("1").as_bytes(), deep("1").as_bytes()));
        assert!(!equal_json(deep("1").as_bytes(), deep("1.0").as_bytes()));
    }

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            (-3i64..3).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            "[a\\\\\"é\u{1}]{0,3}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[ab\"]{0,2}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The same value written in another way: spaces, the order of members, numbers, escapes.
    fn rewrite(value: &Value, out: &mut String) {
        match value {
            Value::Number(number) => out.push_str(&format!("{number}.0e0 ")),
            Value::String(text) => {
                out.push('"');
                text.encode_utf16().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
                out.push('"');
            }
            Value::Array(values) => {
                out.push_str("[ ");
                for (at, value) in values.iter().enumerate() {
                    out.push_str(if at > 0 { " , " } else { "" });
                    rewrite(value, out);
                }
                out.push(']');
            }
            Value::Object(members) => {
                out.push('{');
                for (at, (name, value)) in members.iter().rev().enumerate() {
                    out.push_str(if at > 0 { "\t,\n" } else { "" });
                    rewrite(&Value::from(name.as_str()), out);
                    out.push_str(" : ");
                    rewrite(value, out);
                }
                out.push('}');
            }
            word => out.push_str(&word.to_string()),
        }
    }

    proptest! {
        /// `serde_json` is the judge: there are no fractions here, so its numbers are exact.
        #[test]
        fn texts_are_equal_exactly_if_their_values_are(a in json(), b in json()) {
            let mut again = String::new();
            rewrite(&a, &mut again);
            prop_assert!(equal_json(a.to_string().as_bytes(), again.as_bytes()), "{a} {again}");
            let equal = equal_json(again.as_bytes(), b.to_string().as_bytes());
            prop_assert_eq!(equal, a == b, "{} {}", a, b);
        }

        #[test]
        fn whatever_the_bytes_nothing_breaks(a in "[\\[\\]{}\",:0-9eE.\\\\ tn-]{0,20}", b in ".{0,10}") {
            let _ = equal_json(a.as_bytes(), b.as_bytes());
            prop_assert_eq!(equal_json(a.as_bytes(), a.as_bytes()),
                serde_json::from_str::<serde::de::IgnoredAny>(&a).is_ok());
        }
    }
}
