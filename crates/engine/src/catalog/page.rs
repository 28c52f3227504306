//! A page of a merged list, as the answer that carries it: made once, and sent to everybody who sees the same.
//!
//! Not here: what is on it (`view.rs`), and how long it is kept (`merged.rs`).

use crate::id::JsonId;
use crate::wire::{Edit, Outgoing, Patch};
use bytes::Bytes;

/// Before the id; the id; before the members of the result.
const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const ID: &[u8] = b"0";
const RESULT: &[u8] = b",\"result\":{";

/// After the last entry of the last page.
const END: &[u8] = b"]}}";

/// Bytes of a page that may leave in parts. One that is longer could fill what waits for its client before its end.
const IN_PARTS: usize = 4 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// An answer to request 0.
    bytes: Bytes,
    is_last: bool,
    is_empty: bool,
    may_be_split: bool,
}

/// A page that is being written.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn new(member: &str) -> Writer {
        Writer([HEAD, ID, RESULT, b"\"", member.as_bytes(), b"\":["].concat())
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// One entry more, which `write` appends.
    pub(super) fn add(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        if !self.0.ends_with(b"[") {
            self.0.push(b',');
        }
        write(&mut self.0);
    }

    /// What follows is found from here on.
    pub(super) fn goes_on(mut self, cursor: &[u8]) -> Page {
        self.0.extend_from_slice(b"],\"nextCursor\":");
        self.0.extend_from_slice(cursor);
        self.0.extend_from_slice(b"}}");
        self.page(false)
    }

    pub(super) fn ends(mut self) -> Page {
        self.0.extend_from_slice(END);
        self.page(true)
    }

    fn page(self, is_last: bool) -> Page {
        let one_line = memchr::memchr2(b'\n', b'\r', &self.0).is_none();
        Page {
            is_last,
            is_empty: self.0.ends_with(b"[]}}"),
            may_be_split: one_line && self.0.len() <= IN_PARTS,
            bytes: self.0.into(),
        }
    }
}

impl Page {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether it may leave in parts, as an event without line ends.
    pub(crate) fn may_be_split(&self) -> bool {
        self.may_be_split
    }

    /// The answer to a request: `hints` are members that its result begins with, `more` entries that the list ends with.
    pub(crate) fn answer(&self, id: &JsonId, hints: &str, more: &str) -> Outgoing {
        let id_at = HEAD.len()..HEAD.len() + ID.len();
        let hints_at = id_at.end + RESULT.len();
        let mut edits = vec![Edit::range(id_at, id.patch())];
        if !hints.is_empty() {
            edits.push(Edit::insert(hints_at, Patch::of(&[hints.as_bytes()])));
        }
        if self.is_last && !more.is_empty() {
            let comma: &[u8] = if self.is_empty { b"" } else { b"," };
            edits.push(Edit::insert(self.bytes.len() - END.len(), Patch::of(&[comma, more.as_bytes()])));
        }
        Outgoing::edited(self.bytes.clone(), edits)
    }
}
