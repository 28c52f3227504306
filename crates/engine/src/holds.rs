//! The machine of holds: calls that wait for a person's yes.
//!
//! | a held call is | event | becomes |
//! |---|---|---|
//! | asked | the store has the question | open |
//! | asked | the store knows a yes | over: the call is sent |
//! | open | a person has decided, and the decision is ours | over: the call is sent, or its client hears the no |
//! | open | the same, and the call has a ticket | approved: first its record must say that it is sent |
//! | approved | that is stored | over: the call is sent |
//! | approved | that cannot be stored | over: the call fails |
//! | asked, open | its time is over | closing: what was said meanwhile still counts |
//! | closing | nobody has said anything, or the store does not answer | over: the call fails |
//! | any | the call ends | over: nobody is asked any more |
//!
//! Not here: what a yes is good for (`hold.rs`), what is told and stored (`engine/holding.rs`).

use crate::clients::Way;
use crate::hold::Verdict;
use crate::id::{AskId, CallId, ClientId};
use crate::limits;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whether the client itself is asked.
#[derive(Clone, Debug)]
pub(crate) enum Asking {
    /// It is not; it may be.
    Not,
    /// It is.
    Asked(Asked),
    /// It was, and its user has said this, which is not written yet.
    Said(Box<Verdict>),
    /// It was.
    Over,
}

/// A question to a client.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked {
    pub(crate) ask: AskId,
    pub(crate) client: ClientId,
    pub(crate) way: Way,
}

/// One call that waits for a person.
#[derive(Clone, Debug)]
pub(crate) struct Waiting {
    /// Since when.
    pub(crate) since: Mono,
    /// How long.
    pub(crate) patience: Duration,
    /// The question stays open for so long after that, because the client could not be kept waiting.
    pub(crate) stays_open: Option<Duration>,
    /// What the store calls the question, once it has it.
    pub(crate) number: Option<u64>,
    /// The store is asked for what was said.
    pub(crate) fetching: bool,
    /// Its time is over.
    pub(crate) closing: bool,
    /// A person has said yes, and it waits only for its record.
    pub(crate) approved: bool,
    /// Whether its client is asked.
    pub(crate) asking: Asking,
    /// The call was kept only to be sent later.
    pub(crate) kept_for_this: bool,
}

/// Every call that waits for a person.
#[derive(Debug, Default)]
pub(crate) struct Holds {
    waiting: BTreeMap<CallId, Waiting>,
    armed: Option<Mono>,
    /// The store is being asked.
    looking: bool,
    renewed: Option<Mono>,
}

impl Holds {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        reached!(HOLDS, self.len() as u64 >= limits::HOLDS)
    }

    #[inline]
    pub(crate) fn get(&self, call: CallId) -> Option<&Waiting> {
        // Nearly always there is none, and every call asks.
        if self.waiting.is_empty() { None } else { self.waiting.get(&call) }
    }

    #[inline]
    pub(crate) fn has(&self, call: CallId) -> bool {
        self.get(call).is_some()
    }

    pub(crate) fn armed(&self) -> Option<Mono> {
        self.armed
    }

    /// A call begins to wait.
    pub(crate) fn add(&mut self, timers: &mut Timers, call: CallId, waiting: Waiting) {
        let now = waiting.since;
        self.waiting.insert(call, waiting);
        self.arm(timers, now);
    }

    /// The store has the question.
    pub(crate) fn is_asked(&mut self, call: CallId, number: u64) -> Option<&Waiting> {
        let waiting = self.waiting.get_mut(&call)?;
        waiting.number = Some(number);
        Some(waiting)
    }

    /// The time of a call is over. Its question, if that was not so before and the store has it.
    pub(crate) fn closes(&mut self, call: CallId) -> Option<u64> {
        let waiting = self.waiting.get_mut(&call)?;
        let first = !std::mem::replace(&mut waiting.closing, true);
        waiting.number.filter(|_| first)
    }

    /// A call waits no longer.
    pub(crate) fn take(&mut self, timers: &mut Timers, call: CallId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&call)?;
        if self.waiting.is_empty() {
            timers.set(Owner::Holds, &mut self.armed, None);
        }
        Some(waiting)
    }

    /// The store is to be asked which of these are decided; none if it is being asked.
    pub(crate) fn looks(&mut self, timers: &mut Timers, now: Mono) -> Vec<u64> {
        self.armed = None;
        self.arm(timers, now);
        let unknown = self.waiting.values().filter(|waiting| !waiting.fetching && !waiting.approved);
        let numbers: Vec<u64> = unknown.filter_map(|waiting| waiting.number).collect();
        if self.looking {
            return Vec::new();
        }
        self.looking = !numbers.is_empty();
        numbers
    }

    /// The store has answered. The calls whose questions are decided.
    pub(crate) fn looked(&mut self, decided: &[u64]) -> Vec<(CallId, u64)> {
        self.looking = false;
        let is_decided = |waiting: &Waiting| waiting.number.filter(|number| decided.contains(number));
        let found = self.waiting.iter_mut().filter_map(|(call, waiting)| {
            let number = is_decided(waiting)?;
            waiting.fetching = true;
            Some((*call, number))
        });
        found.collect()
    }

    /// The store has said what was said, if anything.
    pub(crate) fn fetched(&mut self, call: CallId) -> Option<&Waiting> {
        let waiting = self.waiting.get_mut(&call)?;
        waiting.fetching = false;
        Some(waiting)
    }

    /// A person has said yes to a call that is not sent yet.
    pub(crate) fn is_approved(&mut self, call: CallId) {
        if let Some(waiting) = self.waiting.get_mut(&call) {
            waiting.approved = true;
        }
    }

    /// Whether the client of a call is asked.
    pub(crate) fn client_is(&mut self, call: CallId, asking: Asking) {
        if let Some(waiting) = self.waiting.get_mut(&call) {
            waiting.asking = asking;
        }
    }

    /// A client answers what it was asked: about which call, and what the store calls the question.
    pub(crate) fn answered_by(&mut self, client: ClientId, ask: AskId) -> Option<(CallId, u64)> {
        let is_that = |asking: &Asking| matches!(asking, Asking::Asked(asked) if (asked.client, asked.ask) == (client, ask));
        let (call, waiting) = self.waiting.iter_mut().find(|(_, waiting)| is_that(&waiting.asking))?;
        waiting.asking = Asking::Over;
        Some((*call, waiting.number?))
    }

    /// Whether it is time to say that we live: others must not take our questions for those of the dead.
    pub(crate) fn renews(&mut self, now: Mono) -> bool {
        let due = self.renewed.is_none_or(|at| now.since(at) >= limits::RENEW);
        if due {
            self.renewed = Some(now);
        }
        due
    }

    fn arm(&mut self, timers: &mut Timers, now: Mono) {
        if self.armed.is_none() && !self.waiting.is_empty() {
            reached!(HOLD_LOOK if true);
            timers.set(Owner::Holds, &mut self.armed, Some(now + limits::HOLD_LOOK));
        }
    }
}
