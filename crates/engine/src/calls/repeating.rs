//! What is kept of a call so that it can be sent again, and how it is taken off its server for that.

use super::call::{Call, State};
use super::resume::Policy;
use super::{Calls, retry};
use crate::id::{AttemptId, CallId, KeyNo};
use crate::limits;
use crate::time::Mono;
use crate::wire::{Field, Message};
use std::time::Duration;

/// A call that was taken off its server to be sent again.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    /// The number of the next attempt.
    pub(crate) attempt: u32,
    pub(crate) key_no: Option<KeyNo>,
}

impl Calls {
    /// Whether a message of this size may be kept.
    pub(crate) fn has_room_to_keep(&self, size: usize) -> bool {
        let long = reached!(REPEATABLE_BYTES, size > limits::REPEATABLE_BYTES);
        !long && !reached!(KEPT_BYTES, self.kept_bytes + size > limits::KEPT_BYTES)
    }

    /// A call never left: its attempt does not count, and it waits with what was kept. `None` if nothing was.
    pub(crate) fn wait_unsent(&mut self, id: CallId) -> Option<usize> {
        let kept = self.get(id)?.kept.clone()?;
        let call = self.withdraw(id)?;
        call.attempts = call.attempts.saturating_sub(1);
        let size = kept.bytes.len();
        call.state = State::Waiting(kept);
        Some(size)
    }

    /// A call was refused because the server had forgotten our session, so it did not run: it is sent again at once,
    /// and never again for this reason. False if it was not kept.
    pub(crate) fn lost_with_session(&mut self, now: Mono, id: CallId) -> bool {
        if self.wait_unsent(id).is_none() {
            return false;
        }
        if let Some(call) = self.all.get_mut(id) {
            call.session_lost = true;
            call.retry_at = Some(now);
        }
        true
    }

    /// Takes a call off the process it was sent to. Its limits and its reports begin again.
    pub(crate) fn take_off(
        &mut self,
        now: Mono,
        id: CallId,
        clock: &super::deadline::WorkClock,
    ) -> Option<Withdrawn> {
        let call = self.withdraw(id)?;
        call.state = match call.kept.clone() {
            Some(message) => State::Waiting(message),
            None => State::New,
        };
        call.progress.start_again();
        call.deadline.sign(now, clock);
        Some(Withdrawn { attempt: u32::from(call.attempts) + 1, key_no: call.request.key_no })
    }

    /// When a call is sent again.
    pub(crate) fn retry_at(&mut self, id: CallId, at: Mono) {
        if let Some(call) = self.all.get_mut(id) {
            call.retry_at = Some(at);
        }
    }

    /// The time has come to send a call again: with this.
    pub(crate) fn take_retry(&mut self, id: CallId) -> Option<Box<Message>> {
        let call = self.all.get_mut(id)?;
        call.retry_at = None;
        call.kept.clone()
    }

    /// The next message that a call sends is another one, at a time of its own; it is sent once.
    pub(crate) fn send_later(&mut self, id: CallId, message: Message, at: Mono) {
        let Some(call) = self.withdraw(id) else { return };
        let before = call.kept.replace(Box::new(message.clone()));
        call.safe = false;
        call.retry_at = Some(at);
        let size = message.bytes.len();
        call.state = State::Waiting(Box::new(message));
        self.kept_bytes += size;
        self.kept_bytes -= before.map_or(0, |kept| kept.bytes.len());
    }

    /// A call waits for its client to answer what the server wants to know.
    pub(crate) fn pause(&mut self, id: CallId) {
        let Some(call) = self.withdraw(id) else { return };
        call.state = State::Paused;
        let kept = call.kept.take();
        self.kept_bytes -= kept.map_or(0, |kept| kept.bytes.len());
    }

    /// The server found headers missing: a call waits until it can be sent with them, and if they do not come by
    /// then, it is sent as it is. Gives back its `_meta`; `None` if it was sent again for that before, or cannot be.
    pub(crate) fn wait_for_headers(&mut self, id: CallId, until: Option<Mono>) -> Option<Vec<u8>> {
        let call = self.all.get_mut(id).filter(|call| !call.mirrored)?;
        let kept = call.kept.clone()?;
        call.mirrored = true;
        let meta = kept.raw(Field::ParamsMeta)?.to_vec();
        let call = self.withdraw(id)?;
        call.state = State::Waiting(kept);
        let ends = call.deadline.ends_at();
        call.retry_at = Some(until.map_or(ends, |until| ends.min(until)));
        Some(meta)
    }
}

// Connections that break.
impl Calls {
    /// The stream of a call broke: it is opened again after ever longer waits, and as its server wishes.
    pub(crate) fn reconnect_after(&mut self, now: Mono, id: CallId, wish: Option<Duration>) {
        if let Some(call) = self.all.get_mut(id) {
            let breaks = call.count_break();
            call.reconnect_at = Some(now + retry::reopen(wish, breaks));
        }
    }

    /// The time has come to open its stream again.
    pub(crate) fn reconnects(&mut self, id: CallId) -> Option<&Call> {
        let call = self.all.get_mut(id)?;
        call.reconnect_at = None;
        Some(call)
    }

    /// Something came on the stream of a call.
    pub(crate) fn stream_lives(&mut self, id: CallId) {
        if let Some(call) = self.all.get_mut(id) {
            call.breaks = 0;
        }
    }

    /// A server says how an attempt can be resumed.
    pub(crate) fn has_policy(&mut self, id: CallId, policy: Policy) {
        if let Some(call) = self.all.get_mut(id) {
            call.policy = Some(Box::new(policy));
        }
    }

    /// The connection of a call is lost: it is resumed after a while, if its server lets us and still has it.
    /// `was_open` if its stream was there until now, so that the time to come back begins anew.
    pub(crate) fn resume_later(
        &mut self,
        now: Mono,
        id: CallId,
        wish: Option<Duration>,
        was_open: bool,
    ) -> bool {
        let Some(call) = self.all.get_mut(id) else { return false };
        let Some(policy) = &call.policy else { return false };
        let lost = if was_open { now } else { call.lost.unwrap_or(now) };
        if policy.max_wait.is_some_and(|most| now.since(lost) >= most) {
            call.policy = None;
            return false;
        }
        let least = policy.min_wait;
        call.lost = Some(lost);
        let breaks = call.count_break();
        let wait = wish.unwrap_or_else(|| retry::reopen(None, breaks)).max(least);
        call.reconnect_at = Some(now + wait);
        true
    }

    /// The connection of a call is there again. False if it was not lost.
    pub(crate) fn is_found(&mut self, id: CallId) -> bool {
        self.all.get_mut(id).is_some_and(|call| call.lost.take().is_some())
    }

    /// A call cannot be resumed any more.
    pub(crate) fn forget_policy(&mut self, id: CallId) {
        if let Some(call) = self.all.get_mut(id) {
            call.policy = None;
        }
    }
}

// What an earlier process left at a server.
impl Calls {
    /// The server is asked for a call that an earlier process left there: where it is. `None` if it was asked.
    pub(crate) fn asks_for_orphaned(&mut self, id: CallId) -> Option<super::orphaned::Place> {
        let call = self.all.get_mut(id)?;
        let orphaned = call.orphaned.as_mut().filter(|orphaned| !orphaned.asked)?;
        orphaned.asked = true;
        let place = orphaned.place.clone();
        call.count_attempt();
        Some(place)
    }

    /// Takes up the attempt of an earlier process, under its number. False if that cannot be.
    pub(crate) fn take_up(&mut self, now: Mono, id: CallId, token: Box<str>, number: u64) -> bool {
        self.taken_up += 1;
        let Some(attempt) = AttemptId::of_orphan(number, self.taken_up) else { return false };
        let Some(call) = self.all.get_mut(id) else { return false };
        call.state = State::Sent(attempt);
        // How long the server keeps it is not known any more: it says so itself.
        call.policy = Some(Box::new(Policy { token, min_wait: Duration::ZERO, max_wait: None }));
        call.lost = Some(now);
        self.attempts.insert(attempt, id);
        true
    }

    /// The server knows nothing of what an earlier process left there.
    pub(crate) fn orphaned_is_lost(&mut self, id: CallId) -> Option<Box<super::orphaned::Orphaned>> {
        let call = self.all.get_mut(id)?;
        let orphaned = call.orphaned.take()?;
        if let Some(joined) = call.server_task_mut() {
            joined.let_go = true;
        }
        Some(orphaned)
    }
}
