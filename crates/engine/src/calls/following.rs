//! Calls that their server works on as tasks of its own.

use super::Calls;
use super::call::{Call, State};
use super::deadline::WorkClock;
use super::server_task::{AsTask, Report, ServerTask};
use crate::id::{AttemptId, CallId};
use crate::limits;
use crate::time::Mono;
use crate::wire::Message;

impl Calls {
    fn joined_mut(&mut self, id: CallId) -> Option<&mut ServerTask> {
        self.all.get_mut(id).and_then(Call::server_task_mut)
    }

    /// A call is about to be made as a task of its server: this is what is sent from now on.
    pub(crate) fn asks_for_task(&mut self, id: CallId, asking: &Message) {
        let Some(call) = self.withdraw(id) else { return };
        call.as_task = AsTask::Asked;
        // If this one does not arrive, it is this one that is sent again.
        let before = call.kept.take();
        let mut kept = 0;
        if before.is_some() {
            call.kept = Some(Box::new(asking.clone()));
            kept = asking.bytes.len();
        }
        // What becomes of it is told of the call as its client sent it.
        call.kept_for_task = call.kept_for_task.take().or_else(|| before.clone());
        call.safe = call.safe && call.request.modern;
        self.kept_bytes += kept;
        self.kept_bytes -= before.map_or(0, |message| message.bytes.len());
    }

    /// A call counts as sent once more, though under another request.
    pub(crate) fn count_attempt(&mut self, id: CallId) {
        if let Some(call) = self.all.get_mut(id) {
            call.count_attempt();
        }
    }

    /// From now on a call is answered by its task at the server, and never sent again. Its progress goes on under
    /// the number of its attempt.
    pub(crate) fn follow(&mut self, now: Mono, id: CallId, joined: ServerTask, clock: &WorkClock) {
        let Some(call) = self.all.get_mut(id) else { return };
        call.state = State::Followed(Box::new(joined));
        // It may still be handed off, or its answer kept.
        if call.task_at.is_none() && !(call.keeps && call.request.key_no.is_some()) {
            call.kept_for_task = None;
        }
        (call.retries, call.safe) = (0, false);
        let kept = call.shows_life(now, clock).or(call.kept.take());
        self.kept_bytes -= kept.map_or(0, |message| message.bytes.len());
    }

    /// A client that knows tasks is told of its server's task at once. False if it gets the answer alone.
    pub(crate) fn tells_of_task(&mut self, now: Mono, id: CallId) -> bool {
        let Some(call) = self.all.get_mut(id).filter(|call| !call.hands_off && call.task_at.is_some()) else {
            return false;
        };
        call.task_at = Some(now);
        true
    }

    /// The server was asked how far a task is; or could not be, and is asked later.
    pub(crate) fn polled(&mut self, now: Mono, id: CallId, poll: Option<AttemptId>) {
        if let Some(joined) = self.joined_mut(id) {
            (joined.poll, joined.polled, joined.poll_at) = (poll, now, now + limits::POLL_MOST);
        }
    }

    /// When the server is asked next.
    pub(crate) fn poll_at(&mut self, id: CallId, at: Mono) {
        if let Some(joined) = self.joined_mut(id) {
            joined.poll_at = at;
        }
    }

    /// The server was asked for the result of a task.
    pub(crate) fn fetches(&mut self, id: CallId, fetch: Option<AttemptId>) {
        if let Some(joined) = self.joined_mut(id) {
            joined.fetch = fetch;
        }
    }

    /// The question how far a task is has been answered. False if nobody asked.
    pub(crate) fn poll_is_answered(&mut self, id: CallId) -> bool {
        self.joined_mut(id).map(|joined| joined.poll = None).is_some()
    }

    /// What a server says of its task. A change is a sign of life.
    pub(crate) fn task_reported(&mut self, now: Mono, id: CallId, report: &Report<'_>, clock: &WorkClock) {
        let Some(joined) = self.joined_mut(id) else { return };
        joined.interval = report.interval();
        joined.ended = report.has_ended();
        let looks = report.looks();
        if std::mem::replace(&mut joined.looks, looks) != looks {
            self.shows_life(now, id, clock);
        }
    }

    /// The wait for a result is over. Whether the task was said to have ended; `None` if there is none.
    pub(crate) fn fetch_is_answered(&mut self, id: CallId) -> Option<bool> {
        let joined = self.joined_mut(id)?;
        joined.fetch = None;
        Some(joined.ended)
    }

    /// The task of a call is not to be cancelled: it has ended, or its client comes back for it.
    pub(crate) fn let_task_go(&mut self, id: CallId) {
        if let Some(joined) = self.joined_mut(id) {
            joined.let_go = true;
        }
    }

    /// A question about a task was not answered.
    pub(crate) fn asked_in_vain(&mut self, id: CallId, attempt: AttemptId) {
        if let Some(joined) = self.joined_mut(id) {
            joined.poll = joined.poll.filter(|poll| *poll != attempt);
            joined.fetch = joined.fetch.filter(|fetch| *fetch != attempt);
        }
    }

    /// No question about a task is open any more.
    pub(crate) fn forget_questions(&mut self, id: CallId) {
        if let Some(joined) = self.joined_mut(id) {
            (joined.poll, joined.fetch) = (None, None);
        }
    }

    /// Where a call waits for the result of its task under this number.
    pub(crate) fn fetched_by(&self, id: CallId, attempt: AttemptId) -> Option<&Call> {
        self.get(id).filter(|call| call.server_task().is_some_and(|joined| joined.fetch == Some(attempt)))
    }
}
