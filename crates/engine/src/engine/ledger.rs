//! The machine of the ledger: what was asked of the store and is not answered yet, and the random bytes that tickets
//! and sessions are made of. The engine never waits for either: an event brings the answer.

use super::durable::{Knock, Replay};
use super::store_clock::StoreClock;
use super::tasks::{Asked, Resuming};
use crate::clients::Way;
use crate::id::{CallId, ClientId, ExchangeId, JsonId, KeyNo, TaskNo};
use crate::record::Ticket;
use crate::store::{Stored, Trouble};
use crate::time::Wall;
use std::collections::BTreeMap;

/// Why something was written or looked up.
#[derive(Clone, Debug)]
pub(super) enum Pending {
    /// A task was made.
    Made(TaskNo),
    /// A task has ended.
    Changed(TaskNo),
    /// The process that runs a task was told to cancel it.
    Told(TaskNo),
    /// It was sent what its client answered.
    Posted(TaskNo),
    /// A task waits for its client, or goes on.
    Moved(TaskNo),
    /// Only others look at it.
    Noted,
    /// A person is asked about a call.
    Held(CallId),
    /// What a person has said about it.
    AskedAfter(CallId),
    /// The record of a held call says that it is sent from now on.
    Released(CallId),
    /// Which questions have been decided.
    HoldsLooked,
    /// Callbacks that are due were asked for.
    CallbacksTaken,
    /// What became of one.
    CallbackSettled,
    /// Whether any is due.
    CallbacksLooked,
    /// A key is looked up.
    Key(KeyNo),
    /// An answer is kept under a key.
    Kept(KeyNo),
    /// Somebody asked for a task that is not in memory.
    Asked(Box<Asked>),
    /// Somebody asked for a list.
    Listed(Box<Asked>),
    /// Somebody asked for all calls that can be resumed, and wants to be told how they end.
    Roams(Box<Asked>, bool),
    /// Whether there is mail.
    Mail,
    /// Mailbox messages.
    Collected,
    /// What has become of tasks of other processes.
    Watched,
    /// The answer of one of them.
    Fetched(TaskNo),
    /// Tasks of processes that have ended.
    Claimed,
    /// One of them.
    Orphaned(Ticket),
    /// A session has ended.
    Ended(Box<str>),
    /// A session is kept as it is now.
    KeptSession(ClientId),
    /// A session is taken back from another process, to add what it set up here.
    Retaken(ClientId),
    /// Whether a session is still ours.
    Owned(ClientId),
    /// A request for a session that is not in memory, which is taken over for it.
    Session(Box<Knock>),
    /// A request for events that are not in memory.
    Replay(Box<Replay>),
    /// What other processes have added to streams that are read here.
    News,
    /// Somebody came back for a call that is not in memory.
    Resuming(Box<Resuming>),
}

impl Pending {
    /// Which task was changed.
    pub(super) fn changes(&self) -> Option<TaskNo> {
        match self {
            Pending::Changed(no) => Some(*no),
            _ => None,
        }
    }

    /// Which request waits for what is looked up, and where its answer goes.
    pub(super) fn looks(&self) -> Option<(&JsonId, Way)> {
        match self {
            Pending::Asked(asked) | Pending::Listed(asked) | Pending::Roams(asked, _) => {
                Some((&asked.id, asked.way))
            }
            Pending::Resuming(resuming) => Some((&resuming.id, resuming.way)),
            _ => None,
        }
    }

    /// Which HTTP request waits for what is looked up.
    fn exchange(&self) -> Option<ExchangeId> {
        match self {
            Pending::Session(knock) => Some(knock.exchange),
            Pending::Replay(replay) => Some(replay.exchange),
            _ => None,
        }
    }
}

/// What was asked of the store.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// With the time at which they were made.
    submissions: BTreeMap<u64, (Pending, Wall)>,
    lookups: BTreeMap<u64, Pending>,
    last_submission: u64,
    last_lookup: u64,
    /// Why the last write, and the last question, failed, if it did.
    not_written: Option<String>,
    not_read: Option<String>,
    /// Random bytes for the next sessions and tickets.
    entropy: Vec<[u8; 32]>,
    clock: StoreClock,
}

impl Ledger {
    /// Something is about to be written: the number under which it will be heard of.
    pub(super) fn submit(&mut self, now: Wall, pending: Pending) -> u64 {
        self.last_submission += 1;
        self.submissions.insert(self.last_submission, (pending, now));
        self.last_submission
    }

    /// Something is about to be looked up.
    pub(super) fn look_up(&mut self, pending: Pending) -> u64 {
        self.last_lookup += 1;
        self.lookups.insert(self.last_lookup, pending);
        self.last_lookup
    }

    /// The number that the next question will have.
    pub(super) fn next_lookup(&self) -> u64 {
        self.last_lookup + 1
    }

    /// A write has been answered. Gives back why it was made, and why it failed if that is news.
    pub(super) fn stored(
        &mut self,
        now: Wall,
        number: u64,
        outcome: &Stored,
    ) -> Option<(Pending, Option<String>)> {
        let (pending, asked) = self.submissions.remove(&number)?;
        if let Ok(committed) = outcome {
            self.clock.learn(asked, committed.at, now);
        }
        Some((pending, news(&mut self.not_written, outcome)))
    }

    /// What the store's clock shows when ours shows this.
    pub(super) fn store_time(&self, now: Wall) -> Wall {
        self.clock.shows(now)
    }

    /// A question has been answered.
    pub(super) fn loaded<T>(
        &mut self,
        number: u64,
        outcome: &Result<T, Trouble>,
    ) -> Option<(Pending, Option<String>)> {
        let pending = self.lookups.remove(&number)?;
        Some((pending, news(&mut self.not_read, outcome)))
    }

    /// Whoever asked does not want to know any more.
    pub(super) fn forget(&mut self, number: u64) -> Option<Pending> {
        self.lookups.remove(&number)
    }

    /// An HTTP request that waits for the store is gone.
    pub(super) fn forget_exchange(&mut self, exchange: ExchangeId) {
        self.lookups.retain(|_, pending| pending.exchange() != Some(exchange));
        self.submissions.retain(|_, (pending, _)| pending.exchange() != Some(exchange));
    }

    /// No HTTP request waits for the store any longer. Gives back those that did.
    pub(super) fn take_exchanges(&mut self) -> Vec<ExchangeId> {
        let read = self.lookups.extract_if(.., |_, pending| pending.exchange().is_some());
        let taken = self.submissions.extract_if(.., |_, (pending, _)| pending.exchange().is_some());
        let waiting = read.map(|(_, pending)| pending).chain(taken.map(|(_, (pending, _))| pending));
        waiting.filter_map(|pending| pending.exchange()).collect()
    }

    /// HTTP requests that wait for the store.
    pub(super) fn exchanges(&self) -> usize {
        self.lookups.values().chain(self.writes()).filter(|pending| pending.exchange().is_some()).count()
    }

    /// Whether the end of a session is still to be written.
    pub(super) fn ends_session(&self, name: &str) -> bool {
        self.writes().any(|pending| matches!(pending, Pending::Ended(ended) if **ended == *name))
    }

    /// What is being written.
    pub(super) fn writes(&self) -> impl Iterator<Item = &Pending> {
        self.submissions.values().map(|(pending, _)| pending)
    }

    pub(super) fn looks_up(&self, number: u64) -> bool {
        self.lookups.contains_key(&number)
    }

    pub(super) fn submissions(&self) -> usize {
        self.submissions.len()
    }

    pub(super) fn lookups(&self) -> usize {
        self.lookups.len()
    }
}

// Random bytes.
impl Ledger {
    pub(super) fn add_entropy(&mut self, bytes: [u8; 32]) {
        self.entropy.push(bytes);
    }

    pub(super) fn has_entropy(&self) -> bool {
        !self.entropy.is_empty()
    }

    pub(super) fn take_entropy(&mut self) -> Option<[u8; 32]> {
        self.entropy.pop()
    }
}

/// What is wrong, unless it is the same that was wrong before.
fn news<T>(last: &mut Option<String>, outcome: &Result<T, Trouble>) -> Option<String> {
    let why = outcome.as_ref().err().map(Trouble::to_string);
    let told = why == *last;
    last.clone_from(&why);
    why.filter(|_| !told)
}
