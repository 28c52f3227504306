//! A store that ends with the process: where no disk can be used, or nobody wants one.
//!
//! Several owners can share one, as several processes share a file; that is how the tests of what
//! owners do to each other run here too.

mod callbacks;
mod find;
mod forwarded;
mod holds;
mod shelf;
mod shown;
mod write;

use super::Id;
use super::desk::{Ledger, Reader};
use super::owner::Me;
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::callback::Callback;
use outlast_engine::durations::Tally;
use outlast_engine::hold::{Entry, Hold};
use outlast_engine::record::Record;
use outlast_engine::store::{
    Bounds, CallNote, Committed, Loaded, Mail, Name, Query, Refusal, Session, Stored, Trouble, Usage, Write,
};
use shelf::Shelf;
use std::sync::{Arc, Mutex, PoisonError};

/// One owner's view of what is kept.
#[derive(Debug)]
pub struct Memory {
    me: Me,
    bounds: Bounds,
    shelves: Arc<Mutex<Shelves>>,
}

/// Whose key it is, at which server, and the key.
type Key = (Box<str>, Box<str>, Box<str>);

/// Everything that is kept.
#[derive(Debug, Default)]
pub struct Shelves {
    records: Shelf<Id, Record>,
    /// Records by their number.
    order: Shelf<u64, Id>,
    /// Those that have ended, the longest ago first.
    ended: Shelf<(Wall, u64), Id>,
    /// Idempotency keys of open records.
    keys: Shelf<Key, Id>,
    /// Until when owners are taken for alive.
    leases: Shelf<Box<str>, u64>,
    mailboxes: Shelf<(Id, u64), Mail>,
    streams: Shelf<Id, Stream>,
    events: Shelf<(Id, u64), Bytes>,
    sessions: Shelf<Id, Kept>,
    /// Messages about sessions, by who has owned them.
    forwarded: Shelf<(Box<str>, u64), Forwarded>,
    calls: Shelf<u64, CallNote>,
    holds: Shelf<u64, Hold>,
    audit: Shelf<u64, Entry>,
    callbacks: Shelf<u64, Callback>,
    /// What processes show, by their owners, with their names.
    shown: Shelf<Box<str>, (Box<str>, Bytes)>,
    /// What processes were told to do.
    told: Shelf<(Box<str>, u64), Bytes>,
    /// By day, server and tool.
    durations: Shelf<(u64, Box<str>, Box<str>), Tally>,
    usage: Usage,
    /// The last number that was given to anything.
    last: u64,
}

#[derive(Clone, Debug)]
struct Stream {
    /// The number of its last event.
    last: u64,
    expires: Wall,
    owner: Box<str>,
    epoch: u64,
}

#[derive(Clone, Debug)]
struct Kept {
    session: Session,
    owner: Box<str>,
    /// Who owned it before.
    former: Vec<Box<str>>,
    /// When it was last used.
    used: Wall,
}

/// A mailbox message about a session.
#[derive(Clone, Debug)]
struct Forwarded {
    session: Name,
    message: Bytes,
    until: Wall,
}

/// Who writes, how much fits, and when that is.
struct Turn<'a> {
    me: &'a Me,
    bounds: &'a Bounds,
    now: Wall,
}

impl Memory {
    pub fn new(me: Me, bounds: Bounds) -> Memory {
        Memory::sharing(Arc::default(), me, bounds)
    }

    /// Another owner in the same memory.
    pub fn sharing(shelves: Arc<Mutex<Shelves>>, me: Me, bounds: Bounds) -> Memory {
        Memory { me, bounds, shelves }
    }
}

impl Reader for Memory {
    fn find(&mut self, query: &Query) -> Loaded {
        let shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(shelves.find(query, &self.me))
    }
}

impl Ledger for Memory {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        let mut shelves = self.shelves.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = Turn { me: &self.me, bounds: &self.bounds, now: self.me.wall() };
        group.iter().map(|writes| shelves.submit(writes, &turn)).collect()
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        Vec::new()
    }
}

impl Shelves {
    /// Writes all or nothing.
    fn submit(&mut self, writes: &[Write], turn: &Turn<'_>) -> Stored {
        let usage = self.usage;
        let mut done = Vec::with_capacity(writes.len());
        for (at, write) in writes.iter().enumerate() {
            match self.write(write, turn) {
                Ok(what) => done.push(what),
                Err(why) => {
                    self.settle(false);
                    self.usage = usage;
                    return Err(Trouble::Refused { at, why });
                }
            }
        }
        self.settle(true);
        Ok(Committed { at: turn.now, done })
    }

    fn settle(&mut self, keep: bool) {
        self.records.settle(keep);
        self.order.settle(keep);
        self.ended.settle(keep);
        self.keys.settle(keep);
        self.leases.settle(keep);
        self.mailboxes.settle(keep);
        self.streams.settle(keep);
        self.events.settle(keep);
        self.sessions.settle(keep);
        self.forwarded.settle(keep);
        self.calls.settle(keep);
        self.holds.settle(keep);
        self.audit.settle(keep);
        self.callbacks.settle(keep);
        self.shown.settle(keep);
        self.told.settle(keep);
        self.durations.settle(keep);
    }

    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    /// Lets go of what ended longest ago until so much more fits.
    fn make_room(&mut self, records: u64, bytes: u64, bounds: &Bounds) -> Result<(), Refusal> {
        loop {
            let what = if self.usage.records + records > bounds.records {
                "records"
            } else if self.usage.bytes + bytes > bounds.bytes {
                "bytes"
            } else {
                return Ok(());
            };
            let Some((_, id)) = self.ended.first() else { return Err(Refusal::Full(what.into())) };
            self.remove(id);
        }
    }
}
