//! What is known of clients: how long they wait for a tool, and what makes them wait longer.
//!
//! A row is one line, `GLOB=KEY:VALUE,…`, whoever wrote it: the table that is compiled in (`profiles.txt`), a person
//! (`--client-profile`), or this machine, which has learned it from cancels. Only what was measured, written or
//! learned changes what outlast does; rows of the table without a date are what people report, to know what to
//! measure. Where several measured rows fit one client and differ, none of them acts.
//!
//! Map: `row.rs` reads and writes a row; `version.rs` says which versions a row is for. Here: which rows are a
//! client's, and what follows from them for a call.

mod row;
mod version;

pub use row::{KEYS, Origin, Profile};
pub use version::Versions;

use crate::hash::fingerprint;
use crate::json;
use crate::wire::{Field, Message};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// The table that is compiled in, a row each line; `#` begins a comment. `cargo xtask profiles` writes the measured
/// rows, and a test compares them with the runs in `tests/clients/measured.json`.
pub const TABLE: &str = include_str!("profiles.txt");

/// The rows of a table.
pub fn rows(table: &str) -> impl Iterator<Item = &str> {
    table.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Everything that is known of clients before the first one comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Profiles {
    /// In the form of [`TABLE`]; read only as far as a client's name fits.
    #[serde(default = "built_in", skip_serializing_if = "is_built_in")]
    pub table: Cow<'static, str>,
    /// What a person wrote. It wins over all else.
    pub written: Vec<Profile>,
    /// Caps that were learned on this machine, and accepted.
    pub learned: Vec<Profile>,
    /// Clients that gave up one silent call; the second time at the same age shows a cap.
    pub sightings: Vec<Sighting>,
}

fn built_in() -> Cow<'static, str> {
    Cow::Borrowed(TABLE)
}

/// A recording does not hold what every build has.
fn is_built_in(table: &str) -> bool {
    table == TABLE
}

impl Default for Profiles {
    fn default() -> Self {
        Profiles { table: built_in(), written: Vec::new(), learned: Vec::new(), sightings: Vec::new() }
    }
}

/// A client gave a silent call up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// What it calls itself.
    pub name: Box<str>,
    /// And which version of it that is.
    pub version: Box<str>,
    /// How old the call was.
    pub age: Duration,
    /// The cap that this and an earlier one speak for.
    pub cap: Option<Duration>,
}

/// Whether a cap that was seen twice is acted on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Learn {
    /// Once a person has accepted it.
    #[default]
    Ask,
    /// At once.
    Auto,
    /// Nothing is kept.
    Off,
}

/// What a client says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Introduction {
    /// `clientInfo.name`.
    pub name: Box<str>,
    /// `clientInfo.version`.
    pub version: Box<str>,
    /// The revision that it asks for.
    pub revision: Box<str>,
    /// The names of its capabilities, in order, with `+` between them.
    pub capabilities: Box<str>,
}

impl Introduction {
    /// Reads `initialize`, or any request of the modern era.
    pub fn read(message: &Message) -> Option<Introduction> {
        let [info, capabilities, revision] = parts(message)?;
        let info = info?;
        let text = |raw: Option<&[u8]>| raw.and_then(|raw| serde_json::from_slice::<Box<str>>(raw).ok());
        Some(Introduction {
            name: text(json::member(info, "name"))?,
            version: text(json::member(info, "version")).unwrap_or_default(),
            revision: text(revision).unwrap_or_default(),
            capabilities: capabilities.map(names_of).unwrap_or_default(),
        })
    }

    /// What the introduction is known by, without reading it.
    pub(crate) fn fingerprint(message: &Message) -> Option<u64> {
        let [info, capabilities, revision] = parts(message)?;
        let parts = [info?, capabilities.unwrap_or_default(), revision.unwrap_or_default()];
        Some(parts.into_iter().fold(0, |all: u64, part| all.rotate_left(7) ^ fingerprint(part)))
    }
}

/// Where a client says who it is, what it can do, and which revision it asks for.
fn parts(message: &Message) -> Option<[Option<&[u8]>; 3]> {
    let modern = [Field::MetaClientInfo, Field::MetaClientCapabilities, Field::MetaProtocolVersion];
    let [info, capabilities, revision] = modern.map(|field| message.raw(field));
    if revision.is_some() {
        return Some([info, capabilities, revision]);
    }
    let params = message.raw(Field::Params)?;
    Some(["clientInfo", "capabilities", "protocolVersion"].map(|name| json::member(params, name)))
}

/// The names of an object's members, in order, with `+` between them.
fn names_of(object: &[u8]) -> Box<str> {
    type Object = std::collections::BTreeMap<String, serde::de::IgnoredAny>;
    let names: Object = serde_json::from_slice(object).unwrap_or_default();
    names.into_keys().collect::<Vec<_>>().join("+").into()
}

/// What is done for a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effect {
    /// When the client gives it up whatever progress it sees: it is handed off before.
    pub cap: Option<Duration>,
    /// After how much silence the client gives it up, if progress resets that.
    pub silence: Option<Duration>,
}

/// What rows say about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// No row fits, or those that do say nothing that would help.
    Unknown,
    /// The rows that fit differ.
    Unclear,
    /// This is to be done.
    Does(Effect),
}

impl Profiles {
    /// The rows of a client that count. What a person wrote wins, then what was learned of this very version, then
    /// what was measured.
    pub fn of(&self, client: &Introduction) -> Vec<Profile> {
        let written = self.written.iter().filter(|row| row.fits(client));
        // `max_by_key` gives the last of equals: the later row wins.
        if let Some(row) = written.max_by_key(|row| row.literal()) {
            return vec![row.clone()];
        }
        if let Some(row) = self.learned.iter().rev().find(|row| row.fits(client)) {
            return vec![row.clone()];
        }
        let table = rows(&self.table).filter_map(|line| Profile::read_if_named(line, &client.name));
        table.filter(|row| row.is_certain() && row.fits(client)).collect()
    }

    /// Whether a client has given up a call before, and how old that was.
    pub fn gave_up(&self, client: &Introduction) -> Option<Duration> {
        let same = |seen: &&Sighting| seen.name == client.name && seen.version == client.version;
        self.sightings.iter().rev().find(same).map(|seen| seen.age)
    }
}

/// When a call of a client with this cap is handed off.
pub fn handed_off_after(cap: Duration) -> Duration {
    crate::calls::handoff::patience(cap)
}

/// How often a client hears from us that gives up after this much silence.
pub fn keep_alive_for(silence: Duration) -> Duration {
    crate::policy::third_of(silence)
}

/// What rows say about a call with or without a progress token; `None` where that is not known yet.
pub fn verdict(rows: &[Profile], has_token: Option<bool>) -> Verdict {
    let mut effects = rows.iter().filter_map(|row| row.effect(has_token));
    let Some(first) = effects.next() else { return Verdict::Unknown };
    let acts = |effect: Effect| effect != Effect::default();
    let shared = rows.iter().any(|row| row.shared && row.effect(has_token).is_some_and(acts));
    if shared || effects.any(|other| other != first) {
        return Verdict::Unclear;
    }
    if first == Effect::default() { Verdict::Unknown } else { Verdict::Does(first) }
}
