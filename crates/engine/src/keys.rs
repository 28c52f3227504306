//! The machine of keys: what is remembered under idempotency keys.
//!
//! An entry lives as long as an open call with its key, an answer that nobody has fetched, or a question to the
//! store. Everything that lasts longer is a record in the store, found by its key.
//!
//! Not here: what a key is and which arguments are equal (`idempotency.rs`); how a call joins another, and what a
//! ticket has to do with it (`engine/keyed.rs`).

use crate::calls::Request;
use crate::id::{CallId, ClientId, DefinitionId, JsonId, KeyNo, TaskNo};
use crate::idempotency::Arguments;
use crate::limits;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use crate::wire::Message;
use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

/// What a key is found by: two servers, like two principals, know nothing of each other's keys.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Name {
    /// The principal, as the store knows it.
    pub(crate) whose: Box<str>,
    pub(crate) definition: DefinitionId,
    pub(crate) key: Box<str>,
}

/// A request that waits until it is known what becomes of its key.
pub(crate) type Waiting = (Request, Message);

/// Every key that something is remembered under.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    by_no: BTreeMap<KeyNo, Entry>,
    by_name: BTreeMap<Name, KeyNo>,
    last: u64,
    /// Bytes of arguments that are remembered.
    arguments: usize,
    /// Bytes of answers that nobody has fetched.
    answers: usize,
}

/// What is remembered under one key.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: Name,
    tool: Box<str>,
    arguments: Arguments,
    stage: Stage,
    waiting: Vec<Waiting>,
    /// The task that any of its calls was first.
    pub(crate) ticket: Option<TaskNo>,
    /// The newest record with this key that the store has shown.
    pub(crate) seen: u64,
    /// Another process has a call with this key, and ours runs beside it.
    pub(crate) elsewhere: bool,
    /// The key was made from the call, for clients that make it again: how long one that cancelled is waited for.
    pub(crate) repeats: Option<Duration>,
    /// A request has taken the place of another: the call is older than what its client has waited for.
    pub(crate) changed_hands: bool,
    /// When a client that hung up is waited for no longer.
    armed: Option<Mono>,
}

#[derive(Debug)]
enum Stage {
    /// The store is asked for the key, or has yet to take the task of its call.
    Opening,
    /// A call has the attempt, and others are joined to it.
    Running { first: CallId, joined: Vec<CallId> },
    /// Answered; nobody has fetched it, or it is not stored yet.
    Answered(Box<Message>),
}

/// What a request finds under its key.
#[derive(Debug)]
pub(crate) enum Meeting {
    /// The key belongs to another call.
    Conflict,
    /// As many wait for this call as may.
    Full,
    /// What becomes of it is not known yet.
    Opening,
    /// A call runs.
    Running,
    /// An answer that nobody has fetched.
    Answered(Box<Message>),
}

/// Whose time is over: a client that hung up and did not come back.
#[derive(Debug)]
pub(crate) enum Overdue {
    /// This call goes on for nobody.
    Call(CallId),
    /// The answer is forgotten.
    Answer,
}

// Reading.
impl Keys {
    pub(crate) fn len(&self) -> usize {
        self.by_no.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.arguments + self.answers
    }

    pub(crate) fn armed(&self, no: KeyNo) -> Option<Mono> {
        self.by_no.get(&no)?.armed
    }

    pub(crate) fn named(&self, name: &Name) -> Option<KeyNo> {
        self.by_name.get(name).copied()
    }

    /// Plain calls have no key, and are not made to look for one.
    #[inline]
    pub(crate) fn get(&self, no: Option<KeyNo>) -> Option<&Entry> {
        self.find(no?)
    }

    #[inline(never)]
    fn find(&self, no: KeyNo) -> Option<&Entry> {
        self.by_no.get(&no)
    }

    fn get_mut(&mut self, no: Option<KeyNo>) -> Option<&mut Entry> {
        self.by_no.get_mut(&no?)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (KeyNo, &Entry)> {
        self.by_no.iter().map(|(no, entry)| (*no, entry))
    }

    /// Whether a client waits for what is known of a key.
    pub(crate) fn is_awaited_by(&self, no: KeyNo, client: ClientId) -> bool {
        let by = |(request, _): &Waiting| request.client == client;
        self.find(no).is_some_and(|entry| entry.waiting.iter().any(by))
    }

    /// Requests that wait to know what becomes of their keys.
    pub(crate) fn waiting(&self) -> usize {
        self.by_no.values().map(|entry| entry.waiting.len()).sum()
    }

    /// What a request finds under its key.
    pub(crate) fn meet(&self, no: KeyNo, tool: Option<&str>, arguments: &[u8]) -> Option<Meeting> {
        let entry = self.find(no)?;
        if !entry.is_same(tool, arguments) {
            return Some(Meeting::Conflict);
        }
        if reached!(JOINED, entry.joined().len() + entry.waiting.len() >= limits::JOINED) {
            return Some(Meeting::Full);
        }
        Some(match &entry.stage {
            Stage::Opening => Meeting::Opening,
            Stage::Running { .. } => Meeting::Running,
            Stage::Answered(answer) => Meeting::Answered(answer.clone()),
        })
    }

    /// Keys of somebody who is waited for.
    pub(crate) fn waiting_for(&self, whose: &str) -> Vec<KeyNo> {
        let waits = |(_, entry): &(KeyNo, &Entry)| entry.armed.is_some() && *entry.name.whose == *whose;
        self.iter().filter(waits).map(|(no, _)| no).collect()
    }

    /// Every name leads to its entry.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (no, entry) in &self.by_no {
            if self.by_name.get(&entry.name) != Some(no) {
                return Err(format!("{no:?} is not found by its name"));
            }
        }
        Ok(())
    }
}

impl Entry {
    /// Whether a call is the one that the key belongs to.
    pub(crate) fn is_same(&self, tool: Option<&str>, arguments: &[u8]) -> bool {
        *self.tool == *tool.unwrap_or_default() && self.arguments.equals(arguments)
    }

    /// The calls that share the attempt of the first one.
    pub(crate) fn joined(&self) -> &[CallId] {
        match &self.stage {
            Stage::Running { joined, .. } => joined,
            Stage::Opening | Stage::Answered(_) => &[],
        }
    }

    /// The call that has the attempt.
    pub(crate) fn first(&self) -> Option<CallId> {
        match &self.stage {
            Stage::Running { first, .. } => Some(*first),
            Stage::Opening | Stage::Answered(_) => None,
        }
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening)
    }

    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.stage, Stage::Answered(_))
    }

    fn joined_mut(&mut self) -> Option<&mut Vec<CallId>> {
        match &mut self.stage {
            Stage::Running { joined, .. } => Some(joined),
            Stage::Opening | Stage::Answered(_) => None,
        }
    }
}

// How a key comes and goes.
impl Keys {
    pub(crate) fn add(&mut self, name: Name, tool: Box<str>, arguments: &[u8]) -> KeyNo {
        let no = KeyNo(NonZeroU64::MIN.saturating_add(self.last));
        self.last += 1;
        let room = limits::KEYED_BYTES.saturating_sub(self.arguments);
        let arguments = Arguments::new(arguments, room);
        self.arguments += arguments.size();
        self.by_name.insert(name.clone(), no);
        let entry = Entry {
            name,
            tool,
            arguments,
            stage: Stage::Opening,
            waiting: Vec::new(),
            ticket: None,
            seen: 0,
            elsewhere: false,
            repeats: None,
            changed_hands: false,
            armed: None,
        };
        self.by_no.insert(no, entry);
        no
    }

    /// The key was made from the call itself.
    pub(crate) fn is_of_repeats(&mut self, no: KeyNo, wait: Duration) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            entry.repeats = Some(wait);
        }
    }

    pub(crate) fn forget(&mut self, timers: &mut Timers, no: KeyNo) {
        let Some(mut entry) = self.by_no.remove(&no) else { return };
        self.by_name.remove(&entry.name);
        self.arguments -= entry.arguments.size();
        if let Stage::Answered(answer) = &entry.stage {
            self.answers -= answer.bytes.len();
        }
        timers.set(Owner::Key(no), &mut entry.armed, None);
    }

    /// A client hung up: its call goes on until then, because the client may ask again.
    pub(crate) fn wait_for_client(&mut self, timers: &mut Timers, no: KeyNo, until: Mono) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            timers.set(Owner::Key(no), &mut entry.armed, Some(until));
        }
    }

    /// Somebody is there again, or a ticket is.
    pub(crate) fn stop_waiting_for_client(&mut self, timers: &mut Timers, no: Option<KeyNo>) {
        if let Some((no, entry)) = no.zip(self.get_mut(no)) {
            timers.set(Owner::Key(no), &mut entry.armed, None);
        }
    }

    /// The client did not come back.
    pub(crate) fn ring(&mut self, no: KeyNo) -> Option<Overdue> {
        let entry = self.by_no.get_mut(&no)?;
        entry.armed = None;
        match entry.stage {
            Stage::Running { first, .. } => Some(Overdue::Call(first)),
            Stage::Answered(_) => Some(Overdue::Answer),
            Stage::Opening => None,
        }
    }
}

// Requests that wait to know.
impl Keys {
    pub(crate) fn wait(&mut self, no: KeyNo, request: Request, message: Message) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            entry.waiting.push((request, message));
        }
    }

    /// Everybody who waits, waits no longer.
    pub(crate) fn take_waiting(&mut self, no: KeyNo) -> Vec<Waiting> {
        self.by_no.get_mut(&no).map(|entry| std::mem::take(&mut entry.waiting)).unwrap_or_default()
    }

    /// The first who waits takes the place of the call that was to run under the key, and has no ticket.
    pub(crate) fn take_next(&mut self, no: KeyNo) -> Option<Waiting> {
        let entry = self.by_no.get_mut(&no)?;
        entry.ticket = None;
        (!entry.waiting.is_empty()).then(|| entry.waiting.remove(0))
    }

    /// A client gives up one request that waits.
    pub(crate) fn stop_waiting(&mut self, no: KeyNo, client: ClientId, id: &JsonId) -> Option<Request> {
        let is = |(request, _): &Waiting| request.client == client && request.id.key() == id.key();
        let entry = self.by_no.get_mut(&no)?;
        let at = entry.waiting.iter().position(is)?;
        Some(entry.waiting.remove(at).0)
    }

    /// A client is gone, and with it all that it waited for here.
    pub(crate) fn forget_client(&mut self, no: KeyNo, client: ClientId) -> Vec<Request> {
        let Some(entry) = self.by_no.get_mut(&no) else { return Vec::new() };
        let gone = entry.waiting.extract_if(.., |(request, _)| request.client == client);
        gone.map(|(request, _)| request).collect()
    }
}

// Calls.
impl Keys {
    /// A call runs under a key. Gives back who waited to know.
    pub(crate) fn runs(&mut self, no: KeyNo, first: CallId) -> Vec<Waiting> {
        let Some(entry) = self.by_no.get_mut(&no) else { return Vec::new() };
        entry.stage = Stage::Running { first, joined: Vec::new() };
        std::mem::take(&mut entry.waiting)
    }

    /// The call that ran under a key is gone, and one with this ticket is about to.
    pub(crate) fn opens_again(&mut self, no: KeyNo, ticket: TaskNo) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            (entry.stage, entry.ticket) = (Stage::Opening, Some(ticket));
        }
    }

    pub(crate) fn join(&mut self, no: Option<KeyNo>, call: CallId) {
        if let Some(joined) = self.get_mut(no).and_then(Entry::joined_mut) {
            joined.push(call);
        }
    }

    pub(crate) fn part(&mut self, no: Option<KeyNo>, call: CallId) {
        if let Some(joined) = self.get_mut(no).and_then(Entry::joined_mut) {
            joined.retain(|joined| *joined != call);
        }
    }

    /// The call that takes the place of the first one.
    pub(crate) fn take_heir(&mut self, no: Option<KeyNo>) -> Option<CallId> {
        let entry = self.get_mut(no)?;
        let heir = entry.joined_mut().filter(|joined| !joined.is_empty()).map(|joined| joined.remove(0));
        entry.changed_hands |= heir.is_some();
        heir
    }

    /// The first call is settled. Gives back who was joined to it; `None` if it was not the first.
    pub(crate) fn settle(&mut self, no: KeyNo, first: CallId) -> Option<Vec<CallId>> {
        let entry = self.by_no.get_mut(&no).filter(|entry| entry.first() == Some(first))?;
        Some(entry.joined_mut().map(std::mem::take).unwrap_or_default())
    }

    /// Whether an answer may be kept until it is fetched.
    pub(crate) fn has_room_for(&self, answer: &Message) -> bool {
        !reached!(UNFETCHED_BYTES, self.answers + answer.bytes.len() > limits::UNFETCHED_BYTES)
    }

    pub(crate) fn keep_answer(&mut self, no: KeyNo, answer: Message) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            self.answers += answer.bytes.len();
            entry.stage = Stage::Answered(Box::new(answer));
        }
    }
}

// Tickets and the store.
impl Keys {
    pub(crate) fn has_ticket(&mut self, no: Option<KeyNo>, ticket: TaskNo) {
        if let Some(entry) = self.get_mut(no) {
            entry.ticket = Some(ticket);
        }
    }

    pub(crate) fn has_no_ticket(&mut self, no: KeyNo) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            entry.ticket = None;
        }
    }

    /// The store has shown a record with this key.
    pub(crate) fn has_seen(&mut self, no: KeyNo, record: u64) {
        if let Some(entry) = self.by_no.get_mut(&no) {
            entry.seen = record;
        }
    }

    /// Another process has a call with this key, and ours runs beside it. True if that is new.
    pub(crate) fn runs_elsewhere(&mut self, no: Option<KeyNo>) -> bool {
        self.get_mut(no).is_some_and(|entry| !std::mem::replace(&mut entry.elsewhere, true))
    }
}
