//! What one server lists: its entries as they came, page by page.

use super::{Kind, bounds};
use crate::hash::fingerprint;
use crate::limits;
use bytes::Bytes;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// One entry of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// What the server calls it.
    pub(crate) name: Arc<str>,
    /// The whole entry, as it came.
    pub(crate) bytes: Bytes,
    /// Where its name stands in that, quotes included.
    pub(crate) at: Range<usize>,
}

/// What one server lists of one kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Listing {
    pub(crate) entries: Vec<Entry>,
    names: BTreeSet<Arc<str>>,
    bytes: usize,
    /// Where it was continued, as numbers.
    cursors: Vec<u64>,
}

/// What follows a page.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Listed {
    /// Another one, from this cursor on, as raw JSON.
    More(Box<[u8]>),
    /// Nothing.
    Last,
    /// Nothing that could be read: the list ends here, for this reason.
    Ends(&'static str),
}

impl Listing {
    /// Adds a page: the `result` of an answer.
    ///
    /// What has no name, an empty one, a very long one, or two, is left out; of two entries of one name the first
    /// stays, as it does for a client that calls it by its name.
    pub(crate) fn add(&mut self, kind: Kind, result: &Bytes) -> Listed {
        let Ok(page) = serde_json::from_slice::<Fields<'_>>(result) else { return Listed::Ends("no list") };
        let list =
            page.find(kind.member()).and_then(|raw| serde_json::from_str::<Vec<&RawValue>>(raw.get()).ok());
        let Some(list) = list else { return Listed::Ends("no list") };
        for raw in list {
            if self.is_full(raw.get().len()) {
                return Listed::Ends("more entries than are kept");
            }
            self.add_entry(kind, result, raw.get());
        }
        match page.find("nextCursor").map(RawValue::get).filter(|cursor| *cursor != "null") {
            None => Listed::Last,
            Some(cursor) => self.turn(cursor),
        }
    }

    fn is_full(&self, size: usize) -> bool {
        self.entries.len() >= bounds::LISTED || self.bytes + size > bounds::LISTED_BYTES
    }

    fn add_entry(&mut self, kind: Kind, whole: &Bytes, raw: &str) {
        let Some(found) = serde_json::from_str::<Fields<'_>>(raw).ok().and_then(|f| f.only(kind.name()))
        else {
            return;
        };
        let name: Option<Arc<str>> =
            serde_json::from_str::<Cow<'_, str>>(found.get()).ok().map(|name| name.into());
        let fits = |name: &str| (1..=bounds::ENTRY_NAME).contains(&name.len());
        let Some(name) = name.filter(|name| fits(name) && self.names.insert(name.clone())) else { return };
        let start = raw.as_ptr() as usize - whole.as_ptr() as usize;
        let at = found.get().as_ptr() as usize - raw.as_ptr() as usize;
        self.bytes += raw.len();
        let bytes = whole.slice(start..start + raw.len());
        self.entries.push(Entry { name, bytes, at: at..at + found.get().len() });
    }

    /// Whether to read on from here: not in circles, and not for ever.
    fn turn(&mut self, cursor: &str) -> Listed {
        let place = fingerprint(cursor.as_bytes());
        if cursor.len() > limits::CURSOR || self.cursors.contains(&place) {
            return Listed::Ends("its cursor repeats");
        }
        if self.cursors.len() + 1 >= bounds::LIST_PAGES {
            return Listed::Ends("more pages than are read");
        }
        self.cursors.push(place);
        Listed::More(cursor.as_bytes().into())
    }

    /// What it looks like, as a number.
    pub(crate) fn digest(&self) -> u64 {
        let each = self.entries.iter().map(|entry| fingerprint(&entry.bytes));
        each.fold(self.entries.len() as u64, |all, one| all.rotate_left(7) ^ one)
    }
}

/// The members of an object in their order, repeated ones too.
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    pub(super) fn names(self) -> impl Iterator<Item = Cow<'a, str>> {
        self.0.into_iter().map(|(name, _)| name)
    }

    pub(super) fn find(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, raw)| *raw)
    }

    /// The same if there is only one of this name.
    fn only(&self, name: &str) -> Option<&'a RawValue> {
        let mut all = self.0.iter().filter(|(known, _)| known == name);
        let found = all.next()?.1;
        all.next().is_none().then_some(found)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Members;
        impl<'de> Visitor<'de> for Members {
            type Value = Vec<(Cow<'de, str>, &'de RawValue)>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                let mut members = Vec::new();
                while let Some(name) = map.next_key::<Cow<'de, str>>()? {
                    if members.len() == bounds::ENTRY_MEMBERS {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        members.push((name, map.next_value()?));
                    }
                }
                Ok(members)
            }
        }
        deserializer.deserialize_map(Members).map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(result: &str) -> (Listing, Listed) {
        let mut listing = Listing::default();
        let page = listing.add(Kind::Tools, &Bytes::copy_from_slice(result.as_bytes()));
        (listing, page)
    }

    fn names(listing: &Listing) -> Vec<&str> {
        listing.entries.iter().map(|entry| &*entry.name).collect()
    }

    #[test]
    fn entries_stay_as_they_came() {
        let (listing, page) =
            list(r#"{"tools":[{ "name" : "a\u0062", "x":1.0},{"name":"c"}],"nextCursor":"n"}"#);
        assert_eq!(page, Listed::More((*b"\"n\"").into()));
        assert_eq!(names(&listing), ["ab", "c"]);
        let entry = &listing.entries[0];
        assert_eq!(&entry.bytes[..], br#"{ "name" : "a\u0062", "x":1.0}"#);
        assert_eq!(&entry.bytes[entry.at.clone()], br#""a\u0062""#);
    }

    #[test]
    fn what_has_no_usable_name_is_left_out() {
        let long = "n".repeat(bounds::ENTRY_NAME + 1);
        let text = format!(
            r#"{{"tools":[{{"name":""}},{{"title":"x"}},{{"name":1}},{{"name":"a","name":"b"}},7,{{"name":"{long}"}},{{"name":"c"}},{{"name":"c","x":2}}]}}"#
        );
        let (listing, page) = list(&text);
        assert_eq!((names(&listing), page), (vec!["c"], Listed::Last));
        assert_eq!(&listing.entries[0].bytes[..], br#"{"name":"c"}"#, "of two of one name the first stays");
    }

    #[test]
    fn a_cursor_that_repeats_ends_the_list() {
        let page = Bytes::from_static(br#"{"tools":[{"name":"a"}],"nextCursor":"x"}"#);
        let mut listing = Listing::default();
        assert!(matches!(listing.add(Kind::Tools, &page), Listed::More(_)));
        assert_eq!(listing.add(Kind::Tools, &page), Listed::Ends("its cursor repeats"));
        assert_eq!(names(&listing), ["a"]);
    }

    #[test]
    fn a_list_has_bounds() {
        let many: Vec<String> = (0..bounds::LISTED + 5).map(|n| format!(r#"{{"name":"t{n}"}}"#)).collect();
        let (listing, page) = list(&format!(r#"{{"tools":[{}]}}"#, many.join(",")));
        assert_eq!(
            (listing.entries.len(), page),
            (bounds::LISTED, Listed::Ends("more entries than are kept"))
        );
        let long = "d".repeat(1 << 20);
        let (listing, _) = list(&format!(r#"{{"tools":[{{"name":"a","description":"{long}"}}]}}"#));
        assert_eq!(listing.entries[0].bytes.len(), (1 << 20) + 29);
        let mut listing = Listing::default();
        let pages = (0..).map(|n| {
            let page = format!(r#"{{"tools":[],"nextCursor":"{n}"}}"#);
            listing.add(Kind::Tools, &page.into_bytes().into())
        });
        let more = pages.take_while(|page| matches!(page, Listed::More(_))).count();
        assert_eq!(more, bounds::LIST_PAGES - 1);
        let large = format!(r#"{{"name":"NAME","description":"{long}"}}"#);
        let large: Vec<String> =
            (0..=bounds::LISTED_BYTES >> 20).map(|n| large.replace("NAME", &format!("{n:02}"))).collect();
        let (listing, page) = list(&format!(r#"{{"tools":[{}]}}"#, large.join(",")));
        assert!(listing.bytes <= bounds::LISTED_BYTES && listing.entries.len() < large.len());
        assert_eq!(page, Listed::Ends("more entries than are kept"));
        let members: Vec<String> = (0..bounds::ENTRY_MEMBERS).map(|n| format!(r#""{n}":0"#)).collect();
        let deep = format!(r#"{{"tools":[{{{},"name":"a"}},{{"name":"b"}}]}}"#, members.join(","));
        assert_eq!(names(&list(&deep).0), ["b"], "a name that stands too far back is not found");
        for odd in ["[]", "{}", r#"{"tools":{}}"#, "null"] {
            assert_eq!(list(odd).1, Listed::Ends("no list"), "{odd}");
        }
    }
}
