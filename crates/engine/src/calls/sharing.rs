//! Calls with one idempotency key: one of them has the attempt, and may leave it to another.

use super::call::{Call, State};
use super::{Calls, Parted};
use crate::clients::Way;
use crate::id::CallId;

impl Calls {
    /// Prepares a call that joins one that runs: it shares its attempt.
    pub(crate) fn share(&self, call: &mut Call, first: CallId) -> Option<()> {
        let running = self.get(first)?;
        call.state = State::Shares;
        call.attempts = running.attempts;
        call.sign = running.sign;
        Some(())
    }

    /// One of those who joined takes the place of the first; the attempt and its limits stay. The heir's own place
    /// is `heir`, which has been closed. Gives back whose call it was.
    pub(crate) fn succeed(&mut self, id: CallId, heir: Call) -> Option<Parted> {
        let call = self.all.get_mut(id)?;
        let request = std::mem::replace(&mut call.request, heir.request);
        call.progress = heir.progress;
        call.keep_alive = heir.keep_alive;
        call.heard = heir.heard;
        call.stream_at = heir.stream_at;
        call.task_at = heir.task_at;
        call.hands_off = heir.hands_off;
        call.kept_for_task = heir.kept_for_task.or(call.kept_for_task.take());
        Some(Parted { request, held: std::mem::replace(&mut call.holds, heir.holds) })
    }

    /// Takes a call out that shares another's attempt.
    pub(crate) fn take_shared(
        &mut self,
        timers: &mut crate::timers::Timers,
        id: CallId,
    ) -> Option<Box<Call>> {
        self.get(id).filter(|call| call.is_joined())?;
        let mut call = self.all.remove(id)?;
        timers.set(crate::timers::Owner::Call(id), &mut call.armed, None);
        Some(call)
    }

    /// A call goes on for nobody. Gives back whose it was.
    pub(crate) fn goes_on_alone(&mut self, id: CallId) -> Option<Parted> {
        let call = self.all.get_mut(id)?;
        let request = call.request.clone();
        call.request.way = Way::Nowhere;
        call.request.token = None;
        call.keep_alive = None;
        call.stream_at = None;
        call.task_at = None;
        Some(Parted { request, held: std::mem::replace(&mut call.holds, true) })
    }

    /// The attempt is made again: the reports of a call that shares it begin again.
    pub(crate) fn starts_again(&mut self, id: CallId) {
        if let Some(call) = self.all.get_mut(id) {
            call.progress.start_again();
        }
    }
}
