//! Idempotency keys: where a call carries one, and when two calls under one key are the same call.
//!
//! A key is read only from `tools/call`, and only by looking into the parts where it may stand. Arguments
//! are the same if they are the same JSON: `1` equals `1.0`, the order of members does not matter, and big
//! integers are compared exactly.
//!
//! Not here: what becomes of two calls that are one (`engine/keyed.rs`).

mod equal;

pub use equal::equal_json;

use crate::json;
use crate::limits;
use crate::record::Answer;
use crate::settings::BadValue;
use crate::wire::{Edit, Field, Message, Outgoing, Patch};
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};

/// A place where a key may stand.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyPlace {
    /// In `_meta`, and not beside it.
    in_meta: bool,
    name: Box<str>,
    /// Finds the name with its quotes.
    finder: Finder<'static>,
}

impl KeyPlace {
    /// Where keys are looked for unless somebody says otherwise.
    pub fn defaults() -> Vec<KeyPlace> {
        [(true, "dev.outlast/idempotencyKey"), (true, "claudecode/toolUseId"), (false, "idempotencyKey")]
            .map(|(in_meta, name)| KeyPlace::new(in_meta, name))
            .into()
    }

    fn new(in_meta: bool, name: &str) -> KeyPlace {
        let finder = Finder::new(format!("\"{name}\"").as_bytes()).into_owned();
        KeyPlace { in_meta, name: name.into(), finder }
    }

    /// Reads `_meta.NAME` or `params.NAME`. A name may hold dots.
    pub fn parse(text: &str) -> Result<KeyPlace, BadValue> {
        let (place, name) = text.split_once('.').unwrap_or((text, ""));
        let in_meta = match place {
            "_meta" => true,
            "params" => false,
            _ => return Err(BadValue(format!("`{text}`: write _meta.NAME or params.NAME"))),
        };
        if name.is_empty() || name.contains(['"', '\\']) {
            return Err(BadValue(format!("`{text}`: the name is missing; write {place}.NAME")));
        }
        if !in_meta && matches!(name, "_meta" | "name" | "arguments" | "task") {
            return Err(BadValue(format!("`{text}` has a meaning of its own and is no key")));
        }
        Ok(KeyPlace::new(in_meta, name))
    }

    /// The raw value in this place.
    fn raw<'a>(&self, message: &'a Message) -> Option<&'a [u8]> {
        if !self.in_meta && &*self.name == "idempotencyKey" {
            return message.raw(Field::ParamsIdempotencyKey);
        }
        let field = if self.in_meta { Field::ParamsMeta } else { Field::Params };
        let object = message.raw(field)?;
        // Some writers escape every `/`.
        let may_be_there =
            self.finder.find(object).is_some() || (self.in_meta && memchr::memchr(b'\\', object).is_some());
        may_be_there.then(|| json::member(object, &self.name)).flatten()
    }
}

impl TryFrom<String> for KeyPlace {
    type Error = BadValue;

    fn try_from(text: String) -> Result<KeyPlace, BadValue> {
        KeyPlace::parse(&text)
    }
}

impl From<KeyPlace> for String {
    fn from(place: KeyPlace) -> String {
        format!("{}.{}", if place.in_meta { "_meta" } else { "params" }, place.name)
    }
}

/// The key of a call: the first one that is found. A string, or a whole number as it is written; neither
/// empty nor longer than [`limits::KEY`].
pub fn key_of(places: &[KeyPlace], message: &Message) -> Option<Box<str>> {
    places.iter().find_map(|place| {
        let raw = place.raw(message)?;
        let key: Box<str> = match raw.first()? {
            b'"' => serde_json::from_slice(raw).ok()?,
            b'-' | b'0'..=b'9' if !raw.iter().any(|byte| b".eE".contains(byte)) => {
                std::str::from_utf8(raw).ok()?.into()
            }
            _ => return None,
        };
        let fits = !key.is_empty() && !reached!(KEY, key.len() > limits::KEY);
        fits.then_some(key)
    })
}

/// The arguments of a call; empty where there are none.
pub fn arguments(message: &Message) -> &[u8] {
    message.raw(Field::Params).and_then(|params| json::member(params, "arguments")).unwrap_or_default()
}

/// What is remembered of a call's arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arguments {
    /// They themselves.
    Whole(Box<[u8]>),
    /// Their digest and length: those that are long are equal only byte for byte.
    Digest([u64; 2], usize),
}

impl Arguments {
    /// What is remembered of these. `room`: how many bytes may be.
    pub fn new(raw: &[u8], room: usize) -> Arguments {
        let long = reached!(KEY_ARGUMENTS, raw.len() > limits::KEY_ARGUMENTS);
        if !long && !reached!(KEYED_BYTES, raw.len() > room) {
            Arguments::Whole(raw.into())
        } else {
            Arguments::Digest(digest(raw), raw.len())
        }
    }

    /// Bytes that it takes.
    pub fn size(&self) -> usize {
        match self {
            Arguments::Whole(raw) => raw.len(),
            Arguments::Digest(..) => 0,
        }
    }

    /// Whether these are the same arguments.
    pub fn equals(&self, raw: &[u8]) -> bool {
        match self {
            Arguments::Whole(ours) => **ours == *raw || equal_json(none_is_empty(ours), none_is_empty(raw)),
            Arguments::Digest(ours, length) => *length == raw.len() && *ours == digest(raw),
        }
    }
}

/// No arguments are the same as an empty object.
fn none_is_empty(raw: &[u8]) -> &[u8] {
    if raw.is_empty() { b"{}" } else { raw }
}

/// Tells long arguments apart. Whoever makes two collide joins only calls of their own.
fn digest(raw: &[u8]) -> [u64; 2] {
    use std::hash::Hasher;
    [0x51, 0xa7].map(|seed| {
        let mut hasher = crate::hash::IdHasher::default();
        hasher.write_u64(seed);
        hasher.write(raw);
        hasher.finish()
    })
}

/// Whether an answer may be given again to a call with the same key: it is whole, and no error.
pub(crate) fn may_be_given_again(answer: &Answer) -> bool {
    let Answer::Result(result) = answer else { return false };
    let kind = json::member(result, "resultType");
    json::member(result, "isError") != Some(b"true")
        && kind.is_none_or(|kind| kind == b"\"complete\"")
        // The handle of a server's own task.
        && json::member(result, "task").is_none()
}

/// The same call with a key where servers expect it; `None` if it has one there.
pub(crate) fn with_key(message: &Message, key: &str) -> Option<Message> {
    if message.has(Field::ParamsIdempotencyKey) {
        return None;
    }
    let params = message.raw(Field::Params)?;
    let member = [b"\"idempotencyKey\":", &*crate::error::json_text(key)].concat();
    message.edited(json::insert_member(&message.bytes, params, &member)?)
}

/// An answer under another id.
pub(crate) fn under_id(answer: &Message, id: Patch) -> Outgoing {
    let edit = answer.envelope.get(Field::Id).map(|span| Edit::replace(span, id));
    Outgoing::edited(answer.bytes.clone(), edit.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Scanned, scan};
    use bytes::Bytes;

    fn message(params: &str) -> Message {
        let text = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        match scan(Bytes::from(text)) {
            Ok(Scanned::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn key(params: &str) -> Option<String> {
        key_of(&KeyPlace::defaults(), &message(params)).map(String::from)
    }

    #[test]
    fn a_key_is_found_where_it_may_stand() {
        for (params, expected) in [
            (r#"{"name":"x"}"#, None),
            (r#"{"name":"x","_meta":{"dev.outlast/idempotencyKey":"a"}}"#, Some("a")),
            (r#"{"name":"x","_meta":{"dev.outlast\/idempotencyKey":"a"}}"#, Some("a")),
            (r#"{"name":"x","_meta":{"claudecode/toolUseId":"toolu_1"}}"#, Some("toolu_1")),
            (r#"{"name":"x","idempotencyKey":"b\u0063"}"#, Some("bc")),
            (r#"{"name":"x","idempotencyKey":7}"#, Some("7")),
            (r#"{"idempotencyKey":"last","_meta":{"claudecode/toolUseId":"first"}}"#, Some("first")),
            // Not a key: of another kind, empty, or somewhere else.
            (r#"{"idempotencyKey":1.5}"#, None),
            (r#"{"idempotencyKey":""}"#, None),
            (r#"{"idempotencyKey":{"a":1}}"#, None),
            (r#"{"arguments":{"idempotencyKey":"a","_meta":{"claudecode/toolUseId":"b"}}}"#, None),
            (r#"{"_meta":{"x":{"claudecode/toolUseId":"b"}}}"#, None),
        ] {
            assert_eq!(key(params).as_deref(), expected, "{params}");
        }
        assert_eq!(key(&format!(r#"{{"idempotencyKey":"{}"}}"#, "k".repeat(limits::KEY + 1))), None);
    }

    #[test]
    fn places_are_named_by_people() {
        let own = [KeyPlace::parse("params.requestKey").unwrap(), KeyPlace::parse("_meta.a.b/c").unwrap()];
        let find = |params: &str| key_of(&own, &message(params)).map(String::from);
        assert_eq!(find(r#"{"requestKey":"k"}"#).as_deref(), Some("k"));
        assert_eq!(find(r#"{"_meta":{"a.b/c":"m"}}"#).as_deref(), Some("m"));
        assert_eq!(find(r#"{"arguments":{"requestKey":"k"}}"#), None);
        assert_eq!(find(r#"{"idempotencyKey":"k"}"#), None);
        for wrong in ["", "_meta", "_meta.", "key", "result.x", "params.arguments", "params._meta"] {
            assert!(KeyPlace::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arguments_are_remembered_within_bounds() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(limits::KEY_ARGUMENTS));
        let kept = Arguments::new(long.as_bytes(), usize::MAX);
        assert_eq!(kept.size(), 0);
        assert!(kept.equals(long.as_bytes()));
        assert!(!kept.equals(long.replace('x', "y").as_bytes()));
        assert!(!kept.equals(b"{}"));
        let short = Arguments::new(br#"{"a":1,"b":[1.0]}"#, usize::MAX);
        assert!(short.equals(br#"{ "b":[1], "a":1e0 }"#));
        assert!(!short.equals(br#"{"a":1,"b":[2]}"#));
        assert!(matches!(Arguments::new(b"{}", 1), Arguments::Digest(..)), "there was no room for more");
        assert!(Arguments::new(b"", 9).equals(b"{}"));
    }

    #[test]
    fn only_whole_results_are_given_again() {
        let result =
            |text: &'static str| may_be_given_again(&Answer::Result(Bytes::from_static(text.as_bytes())));
        assert!(result(r#"{"content":[]}"#));
        assert!(result(r#"{"content":[],"isError":false,"resultType":"complete"}"#));
        assert!(!result(r#"{"content":[],"isError":true}"#));
        assert!(!result(r#"{"resultType":"input_required"}"#));
        assert!(!result(r#"{"task":{"taskId":"1"}}"#));
        assert!(!may_be_given_again(&Answer::Error(Bytes::from_static(b"{}"))));
    }

    #[test]
    fn a_key_is_put_where_servers_expect_it() {
        let with = with_key(&message(r#"{"name":"x"}"#), "a\"b").unwrap();
        let params = with.raw(Field::Params).unwrap();
        assert_eq!(std::str::from_utf8(params).unwrap(), r#"{"idempotencyKey":"a\"b","name":"x"}"#);
        assert!(with_key(&with, "c").is_none());
    }
}
