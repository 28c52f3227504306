//! Calls that wait for a person's yes: kept as they came, with their clock standing still.

use super::Calls;
use super::call::State;
use super::deadline::WorkClock;
use crate::id::CallId;
use crate::time::Mono;
use crate::wire::Message;

impl Calls {
    /// A call is held until a time. Whether it is kept only for that.
    pub(crate) fn hold(
        &mut self,
        now: Mono,
        id: CallId,
        message: Message,
        until: Mono,
        clock: &WorkClock,
    ) -> bool {
        let Some(call) = self.all.get_mut(id) else { return false };
        let only = call.kept.is_none();
        if only {
            self.kept_bytes += message.bytes.len();
            call.kept = Some(Box::new(message.clone()));
        }
        call.state = State::Waiting(Box::new(message));
        call.retry_at = Some(until);
        call.deadline.wait_begins(now, clock);
        only
    }

    /// A person said yes: its clock runs.
    pub(crate) fn release(&mut self, now: Mono, id: CallId, clock: &WorkClock) {
        if let Some(call) = self.all.get_mut(id) {
            call.deadline.wait_ends(now, clock);
        }
    }

    /// A call is kept no longer: it will not be sent again.
    pub(crate) fn keep_no_longer(&mut self, id: CallId) {
        let kept = self.all.get_mut(id).and_then(|call| call.kept.take());
        self.kept_bytes -= kept.map_or(0, |message| message.bytes.len());
    }
}
