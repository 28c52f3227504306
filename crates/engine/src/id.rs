//! Names of things. Each kind has its own type, so that a client's id can never be taken for ours.

use crate::wire::Patch;
use serde::{Deserialize, Serialize};
use serde_json::from_slice;
use std::hash::{Hash, Hasher};
use std::num::NonZeroU64;

/// A connection to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ClientId(pub u64);

/// A client that is gone for good, or that never was.
pub(crate) const NOBODY: ClientId = ClientId(u64::MAX);

/// What a server is (`ServerConfig`). A client may use one server of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct DefinitionId(pub u16);

impl DefinitionId {
    /// The server that the command line names, or the first of a file.
    pub const FIRST: DefinitionId = DefinitionId(0);
}

/// A server that we were told to reach. It keeps its id when its process is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ServerId(pub u32);

/// One life of a server: a process. What an earlier run says is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Run(pub u32);

/// One HTTP request of a client, until its response is finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ExchangeId(pub u64);

/// One stream of events to a client. It may outlive the exchange that opened it, and be taken up by
/// another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// A task, within this process; its client knows it by its ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskNo(pub u64);

/// A request at the merged door that waits for what servers say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GatherNo(pub u64);

/// What bounds the calls of a server, or of a principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThrottleNo(pub u32);

/// What is remembered under an idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyNo(pub NonZeroU64);

/// One call, from arrival until it is settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallId {
    pub(crate) slot: u32,
    pub(crate) generation: u32,
}

impl CallId {
    /// Generations of a slot before they begin again.
    pub(crate) const GENERATIONS: u32 = (1 << 28) - 1;
}

/// One sending of a call to a server; on the wire it is the request's id and progress token.
///
/// Counted up and never reused, so that a number below the next one which is not open any more
/// belongs to a finished attempt: that is the tombstone, and it costs nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct AttemptId(pub u64);

impl AttemptId {
    /// What stands on the wire. Counting at a million a second gets there in twelve days.
    const WIRE: u64 = (1 << 40) - 1;

    /// The number under which its server knows it.
    pub fn on_wire(self) -> u64 {
        self.0 & AttemptId::WIRE
    }

    /// An attempt that an earlier process made under this number, as the `nth` that we take up. An attempt of
    /// our own may have the same number on the wire: which one is meant is told by the stream. `None` for a
    /// number that no process of ours gave, and after half a million.
    pub(crate) fn of_orphan(number: u64, nth: u64) -> Option<AttemptId> {
        let fits = number <= AttemptId::WIRE && (1..1 << 19).contains(&nth);
        fits.then_some(AttemptId(nth << 40 | number))
    }
}

/// A request of a server to the client; on the client's side it is the request's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AskId(pub u64);

/// A client's array of requests that waits to be answered as an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BatchId(pub u64);

/// An id or token as a peer wrote it, kept exactly.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonId {
    /// An integer written in the usual way.
    Int(i64),
    /// Anything else: strings with their quotes, integers beyond 64 bits, `1.0`, `null`.
    Raw(Box<[u8]>),
}

impl Hash for JsonId {
    /// Without the kind: it is no harm if a number and a text meet once.
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self {
            JsonId::Int(number) => state.write_i64(*number),
            JsonId::Raw(raw) => state.write(raw),
        }
    }
}

impl JsonId {
    /// Takes a raw JSON value; `None` if it is no string, number or `null`.
    pub fn new(raw: &[u8]) -> Option<JsonId> {
        match raw.first()? {
            b'"' | b'n' => Some(JsonId::Raw(raw.into())),
            b'-' | b'0'..=b'9' => {
                Some(usual_integer(raw).map_or_else(|| JsonId::Raw(raw.into()), JsonId::Int))
            }
            _ => None,
        }
    }

    /// Takes a progress token: as an id, but never `null`.
    pub fn token(raw: &[u8]) -> Option<JsonId> {
        JsonId::new(raw).filter(|_| raw != b"null")
    }

    /// Whether it is one value and nothing more, for what did not come out of a message.
    pub fn is_whole(&self) -> bool {
        match self {
            JsonId::Int(_) => true,
            JsonId::Raw(raw) => from_slice::<serde::de::IgnoredAny>(raw).is_ok(),
        }
    }

    /// Whether it is a string.
    pub fn is_text(&self) -> bool {
        matches!(self, JsonId::Raw(raw) if raw.first() == Some(&b'"'))
    }

    /// What two ids have in common that mean the same: a string written with escapes equals the
    /// same string without.
    pub fn key(&self) -> JsonId {
        match self {
            JsonId::Raw(raw) if memchr::memchr(b'\\', raw).is_some() => match from_slice::<String>(raw) {
                Ok(text) => JsonId::Raw(format!("\"{text}\"").into_bytes().into()),
                Err(_) => self.clone(),
            },
            _ => self.clone(),
        }
    }

    /// The same JSON text again.
    pub fn patch(&self) -> Patch {
        match self {
            JsonId::Int(number @ 0..) => Patch::number(number.unsigned_abs(), false),
            JsonId::Int(number) => Patch::of(&[number.to_string().as_bytes()]),
            JsonId::Raw(raw) => Patch::of(&[raw]),
        }
    }
}

/// An integer that is written back exactly as it was read: no leading zero, no `-0`.
fn usual_integer(raw: &[u8]) -> Option<i64> {
    let digits = raw.strip_prefix(b"-").unwrap_or(raw);
    if digits.len() > 18 || digits.is_empty() || (digits[0] == b'0' && raw.len() > 1) {
        return None;
    }
    let mut number = 0i64;
    for byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + i64::from(digit);
    }
    Some(if raw.len() == digits.len() { number } else { -number })
}

/// Writes an id of ours in the JSON type that the peer used: shell-written servers quote what
/// they got.
pub(crate) fn own_id(number: u64, text: bool) -> Patch {
    Patch::number(number, text)
}

/// Reads an id of ours back; also whether it was written as a string.
pub(crate) fn read_own_id(raw: &[u8]) -> Option<(u64, bool)> {
    let inner = raw.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
    let digits = inner.unwrap_or(raw);
    // Languages without integers write `17.0`.
    let number = usual_integer(digits.strip_suffix(b".0").unwrap_or(digits))?;
    Some((u64::try_from(number).ok()?, inner.is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_written_back_as_it_was_read() {
        for raw in [
            "0",
            "7",
            "-7",
            "-0",
            "007",
            "1.0",
            "1e3",
            "9007199254740993",
            "123456789012345678",
            "18446744073709551616",
            "\"\"",
            "\"a\"",
            "\"\\u0061\"",
            "null",
        ] {
            let id = JsonId::new(raw.as_bytes()).expect(raw);
            assert_eq!(id.patch().as_slice(), raw.as_bytes());
        }
        for raw in ["true", "{}", "[]", ""] {
            assert_eq!(JsonId::new(raw.as_bytes()), None, "{raw}");
        }
    }

    #[test]
    fn a_string_with_escapes_is_the_same_id_as_without() {
        let escaped = JsonId::new(br#""\u0061b""#).unwrap();
        assert_eq!(escaped.key(), JsonId::new(br#""ab""#).unwrap().key());
        assert_ne!(JsonId::new(b"1").unwrap().key(), JsonId::new(br#""1""#).unwrap().key());
    }

    #[test]
    fn our_ids_are_read_back_in_either_type() {
        assert_eq!(own_id(17, false).as_slice(), b"17");
        assert_eq!(own_id(17, true).as_slice(), b"\"17\"");
        assert_eq!(read_own_id(b"17"), Some((17, false)));
        assert_eq!(read_own_id(b"\"17\""), Some((17, true)));
        assert_eq!(read_own_id(b"17.0"), Some((17, false)));
        assert_eq!(read_own_id(b"17.5"), None);
        assert_eq!(read_own_id(b"-17"), None);
        assert_eq!(read_own_id(b"\"x\""), None);
    }

    #[test]
    fn an_attempt_that_was_left_has_its_number_on_the_wire_and_another_name() {
        let left = AttemptId::of_orphan(7, 2).unwrap();
        assert_eq!((left.on_wire(), AttemptId(7).on_wire()), (7, 7));
        assert_ne!(left, AttemptId(7));
        assert_ne!(Some(left), AttemptId::of_orphan(7, 3));
        let most = AttemptId::of_orphan((1 << 40) - 1, (1 << 19) - 1).unwrap();
        assert_eq!(read_own_id(own_id(most.0, true).as_slice()), Some((most.0, true)));
        assert_eq!(AttemptId::of_orphan(1 << 40, 1), None);
        assert_eq!(AttemptId::of_orphan(7, 1 << 19), None);
    }
}
