//! The machine of calls: every open call, the attempts that stand for them, and what is kept to repeat them.
//!
//! Outside this folder a call can be read and not changed. Each way in which it changes is a method here, so that
//! three things can never come apart: a call that was sent and the attempt that leads to it, what is kept of a call
//! and the bytes that are counted for it, and a call and its timer.
//!
//! Not here: which server a call goes to and what a client is told (the router, `engine/`); the rules of one call
//! are in `call.rs` and the files beside it.

mod arena;
mod call;
pub mod deadline;
mod following;
pub(crate) mod handoff;
mod held;
pub(crate) mod orphaned;
pub mod progress;
mod repeating;
pub mod resume;
pub mod retry;
pub(crate) mod server_task;
mod sharing;
mod ticking;

pub(crate) use call::{Call, Request, State};
pub(crate) use ticking::{Judgement, Ring};

use crate::clients::Way;
use crate::id::{AttemptId, CallId, ClientId, JsonId, KeyNo, ServerId, TaskNo};
use crate::limits;
use crate::step::CallNo;
use crate::throttles::Passage;
use crate::time::{Mono, Span};
use crate::timers::{Owner, Timers};
use crate::wire::{Message, Outgoing};
use arena::Arena;
use deadline::WorkClock;
use progress::Progress;
use server_task::ServerTask;
use std::time::Duration;

/// Every open call.
#[derive(Debug)]
pub(crate) struct Calls {
    all: Arena,
    /// What was sent, and for which call. The answer to a number that is not here comes too late.
    attempts: crate::hash::IdMap<AttemptId, CallId>,
    next_attempt: u64,
    /// Attempts of earlier processes that were taken up.
    taken_up: u64,
    /// Bytes of calls that are kept to be repeated.
    kept_bytes: usize,
}

/// A call that is over, and what the others must know of it.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) request: EndedRequest,
    /// Its task at its server.
    pub(crate) followed: Option<Box<ServerTask>>,
    /// It waited in the queue of its server, with so many bytes.
    pub(crate) queued: Option<usize>,
    /// Its server stayed for it.
    pub(crate) holds: bool,
    /// What counted it, and where it waited for its turn.
    pub(crate) passage: Option<Box<Passage>>,
    /// What is done for its key, if it has one.
    pub(crate) keyed: Option<(KeyNo, Keyed)>,
}

/// The request of a call that is over, in its old place: every plain call would pay for a move.
#[derive(Debug)]
pub(crate) struct EndedRequest(Box<Call>);

impl EndedRequest {
    /// How long its client has waited.
    pub(crate) fn age(&self, now: Mono) -> Duration {
        self.0.age(now)
    }
}

impl std::ops::Deref for EndedRequest {
    type Target = Request;

    #[inline]
    fn deref(&self) -> &Request {
        &self.0.request
    }
}

/// What the key of a call that is over needs to know of it.
#[derive(Debug)]
pub(crate) struct Keyed {
    /// Another call had its attempt.
    pub(crate) shared: bool,
    /// Its answer is to be kept, with the request that it answers.
    pub(crate) keeps: bool,
    pub(crate) message: Option<Box<Message>>,
    began: Mono,
    before: Option<Span>,
}

impl Keyed {
    fn of(call: &mut Call) -> Keyed {
        let (shared, message) = (call.is_joined(), call.kept_for_task.take());
        Keyed { shared, keeps: call.keeps, message, began: call.began, before: call.before }
    }

    /// How long the client has waited for the call.
    pub(crate) fn age(&self, now: Mono) -> Duration {
        self.before.map_or(Duration::ZERO, Duration::from) + now.since(self.began)
    }
}

/// A request that a call is no longer for, and whether the call held its server for it.
#[derive(Debug)]
pub(crate) struct Parted {
    pub(crate) request: Request,
    pub(crate) held: bool,
}

impl Default for Calls {
    fn default() -> Self {
        Calls {
            all: Arena::default(),
            attempts: crate::hash::IdMap::default(),
            next_attempt: 1,
            taken_up: 0,
            kept_bytes: 0,
        }
    }
}

// Reading.
impl Calls {
    #[inline]
    pub(crate) fn get(&self, id: CallId) -> Option<&Call> {
        self.all.get(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// In the order of their slots.
    pub(crate) fn ids(&self) -> impl Iterator<Item = CallId> {
        self.all.ids()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (CallId, &Call)> {
        self.ids().filter_map(|id| Some((id, self.get(id)?)))
    }

    /// The call of an attempt, if it is this server that has it: what another one says of it does not count.
    #[inline]
    pub(crate) fn of(&self, server: ServerId, attempt: AttemptId) -> Option<CallId> {
        let id = *self.attempts.get(&attempt)?;
        self.get(id).filter(|call| call.request.server == server).map(|_| id)
    }

    /// The mistake of asking no server whether it has an attempt: for the simulation, which must find it.
    #[cfg(feature = "planted")]
    pub(crate) fn anywhere(&self, attempt: AttemptId) -> Option<CallId> {
        self.attempts.get(&attempt).copied()
    }

    /// Whether an attempt is waited for.
    pub(crate) fn awaits(&self, attempt: AttemptId) -> bool {
        self.attempts.contains_key(&attempt)
    }

    /// Whether a number was given to an attempt once.
    pub(crate) fn has_numbered(&self, attempt: AttemptId) -> bool {
        attempt.0 < self.next_attempt
    }

    /// Calls at a server: those that were sent there, or those that were not. Those that share another's attempt
    /// are with neither.
    pub(crate) fn at(&self, server: ServerId, sent: bool) -> Vec<CallId> {
        let at = |call: &Call| call.request.server == server && call.attempt().is_some() == sent;
        self.iter().filter(|(_, call)| at(call) && !call.is_joined()).map(|(id, _)| id).collect()
    }

    pub(crate) fn attempts(&self) -> usize {
        self.attempts.len()
    }

    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept_bytes
    }

    /// The calls and what is kept of them agree with what is counted.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.attempts.len() > self.len() {
            return Err("an attempt outlived its call".into());
        }
        for (id, call) in self.iter() {
            if let Some(attempt) = call.attempt().filter(|attempt| self.attempts.get(attempt) != Some(&id)) {
                return Err(format!("attempt {attempt:?} does not lead to its call"));
            }
        }
        let kept: usize = self.iter().filter_map(|(_, call)| Some(call.kept.as_ref()?.bytes.len())).sum();
        if kept != self.kept_bytes {
            return Err(format!("calls keep {kept} bytes, and {} are counted", self.kept_bytes));
        }
        Ok(())
    }
}

// Beginning and end.
impl Calls {
    /// Takes a call in.
    pub(crate) fn open(&mut self, call: Box<Call>) -> CallId {
        self.kept_bytes += call.kept.as_ref().map_or(0, |kept| kept.bytes.len());
        self.all.insert(call)
    }

    /// Those who look on are told of a call from now on. False if it is gone, or they know it already.
    pub(crate) fn is_numbered(&mut self, id: CallId, no: CallNo) -> bool {
        let unknown = self.all.get_mut(id).filter(|call| call.request.no.is_none());
        unknown.map(|call| call.request.no = Some(no)).is_some()
    }

    /// Whether one call more fits.
    pub(crate) fn is_full(&self) -> bool {
        reached!(CALLS, self.len() >= limits::CALLS)
    }

    /// Ends a call: no timer, no attempt and nothing kept is left of it.
    pub(crate) fn end(&mut self, timers: &mut Timers, id: CallId) -> Option<Ended> {
        let mut call = self.all.remove(id)?;
        timers.set(Owner::Call(id), &mut call.armed, None);
        let at_task = call.server_task().and_then(|joined| joined.attempt);
        if let Some(attempt) = call.attempt().or(at_task) {
            self.attempts.remove(&attempt);
        }
        self.kept_bytes -= call.kept.take().map_or(0, |kept| kept.bytes.len());
        let queued = match &call.state {
            State::Waiting(message) if call.retry_at.is_none() => Some(message.bytes.len()),
            _ => None,
        };
        let keyed = call.request.key_no.map(|no| (no, Keyed::of(&mut call)));
        let (holds, passage, followed) = (call.holds, call.passage.take(), call.take_server_task());
        Some(Ended { request: EndedRequest(call), followed, queued, holds, passage, keyed })
    }
}

// On the way to a server.
impl Calls {
    /// A number for a request, of a call or of our own.
    pub(crate) fn new_attempt(&mut self) -> AttemptId {
        let attempt = AttemptId(self.next_attempt);
        self.next_attempt += 1;
        attempt
    }

    /// The mistake of giving a number twice, now and then: for the simulation, which must find it.
    #[cfg(feature = "planted")]
    pub(crate) fn count_back(&mut self) {
        self.next_attempt -= u64::from(self.next_attempt.is_multiple_of(16));
    }

    /// A call is sent: from now on the attempt stands for it.
    pub(crate) fn send(&mut self, id: CallId) -> Option<(AttemptId, &Call)> {
        let attempt = AttemptId(self.next_attempt);
        let call = self.all.get_mut(id)?;
        self.next_attempt += 1;
        call.state = State::Sent(attempt);
        (call.policy, call.lost) = (None, None);
        call.count_attempt();
        self.attempts.insert(attempt, id);
        Some((attempt, call))
    }

    /// Takes a call off its server, without another word about it.
    fn withdraw(&mut self, id: CallId) -> Option<&mut Call> {
        let call = self.all.get_mut(id)?;
        if let Some(attempt) = call.attempt() {
            self.attempts.remove(&attempt);
        }
        Some(call)
    }

    /// A call waits for its server to come back.
    pub(crate) fn wait(&mut self, id: CallId, message: Box<Message>) {
        if let Some(call) = self.withdraw(id) {
            call.state = State::Waiting(message);
        }
    }

    /// What a call waited with; it is about to be sent.
    pub(crate) fn stop_waiting(&mut self, id: CallId) -> Option<Box<Message>> {
        let call = self.all.get_mut(id)?;
        match std::mem::replace(&mut call.state, State::New) {
            State::Waiting(message) => Some(message),
            _ => None,
        }
    }
}

// Its turn.
impl Calls {
    /// The way of a call through its throttles, to be given back.
    pub(crate) fn take_passage(&mut self, id: CallId) -> Option<Passage> {
        self.all.get_mut(id)?.passage.as_deref().cloned()
    }

    /// A call has come so far, and waits until then for the rest.
    pub(crate) fn has_passage(&mut self, id: CallId, passage: Passage, until: Option<Mono>) {
        if let Some(call) = self.all.get_mut(id) {
            call.passage = Some(Box::new(passage));
            call.retry_at = until;
        }
    }
}

// What is heard of it.
impl Calls {
    /// The server gives a sign of life of a call: what has begun to show its work is not repeated, unless that is
    /// known to do no harm.
    pub(crate) fn shows_life(&mut self, now: Mono, id: CallId, clock: &WorkClock) {
        let Some(call) = self.all.get_mut(id) else { return };
        let kept = call.shows_life(now, clock);
        self.kept_bytes -= kept.map_or(0, |message| message.bytes.len());
    }

    /// `timeout` starts again, for a reason that is not a sign of the call.
    pub(crate) fn restart_timeout(&mut self, now: Mono, id: CallId, clock: &WorkClock) {
        if let Some(call) = self.all.get_mut(id) {
            call.deadline.sign(now, clock);
        }
    }

    /// A person is asked on behalf of one call.
    pub(crate) fn wait_begins(&mut self, now: Mono, id: CallId, clock: &WorkClock) {
        if let Some(call) = self.all.get_mut(id) {
            call.deadline.wait_begins(now, clock);
        }
    }

    /// That person answered, or is waited for no longer.
    pub(crate) fn wait_ends(&mut self, now: Mono, id: CallId, clock: &WorkClock) {
        if let Some(call) = self.all.get_mut(id) {
            call.deadline.wait_ends(now, clock);
        }
    }

    /// Merges a report into the one rising series that the client sees. `merge` gives what the client is told.
    pub(crate) fn report(
        &mut self,
        now: Mono,
        id: CallId,
        merge: impl FnOnce(&JsonId, &mut Progress) -> Option<Outgoing>,
    ) -> Option<Outgoing> {
        let call = self.all.get_mut(id)?;
        let report = merge(call.request.token.as_ref()?, &mut call.progress)?;
        call.heard = now;
        Some(report)
    }

    /// The series of a call that is answered with a task goes on without it.
    pub(crate) fn take_progress(&mut self, id: CallId) -> Progress {
        self.all.get_mut(id).map(|call| std::mem::take(&mut call.progress)).unwrap_or_default()
    }
}

// Whose it is.
impl Calls {
    /// A call has left its array: its answer goes by itself.
    pub(crate) fn leave_array(&mut self, id: CallId) {
        if let Some(call) = self.all.get_mut(id) {
            call.request.way = Way::Line;
        }
    }

    /// Another client waits for a call now.
    pub(crate) fn change_client(&mut self, id: CallId, client: ClientId) {
        if let Some(call) = self.all.get_mut(id) {
            call.request.client = client;
        }
    }

    /// A call reports under another token of its client.
    pub(crate) fn has_token(&mut self, id: CallId, token: Option<JsonId>) {
        if let Some(call) = self.all.get_mut(id) {
            call.request.token = token;
        }
    }

    /// From now on a call is answered by its ticket. Gives back whose it was.
    pub(crate) fn goes_to_ticket(&mut self, id: CallId, no: TaskNo) -> Option<Parted> {
        let call = self.all.get_mut(id)?;
        let request = call.request.clone();
        call.request.way = Way::Ticket(no);
        // The extension has no progress on tasks.
        call.request.token = None;
        call.keep_alive = None;
        call.stream_at = None;
        Some(Parted { request, held: std::mem::take(&mut call.holds) })
    }

    /// When a call becomes a task, or is handed off.
    pub(crate) fn becomes_task_at(&mut self, id: CallId, at: Option<Mono>) {
        if let Some(call) = self.all.get_mut(id) {
            call.task_at = at;
        }
    }
}
