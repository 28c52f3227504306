//! Parts of a JSON text, found without building a tree, so that the rest of it stays as it came.

use crate::wire::{Edit, Patch};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;

/// The raw value of an object's member.
pub(crate) fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    let members: BTreeMap<Cow<'_, str>, &RawValue> = serde_json::from_slice(object).ok()?;
    members.get(name).map(|raw| raw.get().as_bytes())
}

/// The names of an object's members.
pub(crate) fn names(object: &[u8]) -> Vec<Box<str>> {
    let members: BTreeMap<Box<str>, &RawValue> = serde_json::from_slice(object).unwrap_or_default();
    members.into_keys().collect()
}

/// An object's members as `"name":value`, without those of these names.
pub(crate) fn without(object: &[u8], names: &[Box<str>]) -> Vec<Vec<u8>> {
    let members: BTreeMap<Box<str>, &RawValue> = serde_json::from_slice(object).unwrap_or_default();
    let shown = |(name, raw): (Box<str>, &RawValue)| {
        let name = serde_json::to_vec(&name).unwrap_or_default();
        [&*name, b":", raw.get().as_bytes()].concat()
    };
    members.into_iter().filter(|(name, _)| !names.contains(name)).map(shown).collect()
}

/// The raw elements of an array.
pub(crate) fn elements(array: &[u8]) -> Option<Vec<&[u8]>> {
    let elements: Vec<&RawValue> = serde_json::from_slice(array).ok()?;
    Some(elements.into_iter().map(|raw| raw.get().as_bytes()).collect())
}

/// Where a part lies in the text it was taken from.
pub(crate) fn range_in(whole: &[u8], part: &[u8]) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    start..start + part.len()
}

/// Puts a member at the front of an object that is a part of `whole`. `member` is `"name":value`.
pub(crate) fn insert_member(whole: &[u8], object: &[u8], member: &[u8]) -> Option<Edit> {
    let inner = object.strip_prefix(b"{")?;
    let comma: &[u8] = if inner.trim_ascii_start().first() == Some(&b'}') { b"" } else { b"," };
    let at = range_in(whole, object).start + 1;
    Some(Edit::insert(at, Patch::of(&[member, comma])))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Outgoing;

    #[test]
    fn a_member_is_put_in_front_and_the_rest_stays() {
        let whole: &[u8] = br#"{"a" : { "b":1.0 },"c":{ }}"#;
        for (name, expected) in
            [("a", r#"{"a" : {"x":1, "b":1.0 },"c":{ }}"#), ("c", r#"{"a" : { "b":1.0 },"c":{"x":1 }}"#)]
        {
            let object = member(whole, name).unwrap();
            let edit = insert_member(whole, object, b"\"x\":1").unwrap();
            let edited = Outgoing::edited(bytes::Bytes::copy_from_slice(whole), vec![edit]).to_vec();
            assert_eq!(String::from_utf8(edited).unwrap(), expected);
        }
        assert_eq!(member(whole, "d"), None);
        assert_eq!(elements(b"[1, 2.0]").unwrap(), [b"1".as_slice(), b"2.0"]);
    }
}
