//! Calls that an earlier process left at their server: found there again instead of made again. The table is
//! in `calls/orphaned.rs`.

use super::server_tasks::own_meta;
use crate::action::Note;
use crate::calls::Call;
use crate::calls::orphaned::{Orphaned, Place};
use crate::calls::server_task::ServerTask;
use crate::clients::Way;
use crate::config::Transport;
use crate::engine::Engine;
use crate::error::{Kind, ServerState};
use crate::id::{CallId, TaskNo};
use crate::limits;
use crate::time::Mono;
use crate::wire::Message;
use std::time::Duration;

impl Engine {
    /// Where a task of ours says that its call is.
    pub(in crate::engine) fn place_at_server(&self, no: TaskNo) -> Option<Place> {
        let task = self.tickets.get(no)?;
        let definition = self.config.definition(self.definition_called(&task.server)?)?;
        Place::of(&task.body, definition.transport == Transport::Http)
    }

    /// A call with a ticket begins, perhaps not for the first time.
    #[inline(never)]
    pub(in crate::engine) fn goes_on_with(&self, now: Mono, call: &mut Call, no: TaskNo, message: &Message) {
        call.orphaned = self.orphaned_at_server(no, message);
        let before = self.ran_before(no);
        call.before = Some(before.into());
        if call.is_orphaned() {
            call.deadline.has_run(now, before);
        }
    }

    /// What is known of a call that begins here but not at its server.
    fn orphaned_at_server(&self, no: TaskNo, message: &Message) -> Option<Box<Orphaned>> {
        let place = self.place_at_server(no)?;
        let repeatable = self.tickets.get(no).is_some_and(|task| task.body.repeatable.is_some());
        let again = repeatable && message.bytes.len() <= limits::REPEATABLE_BYTES;
        let again = again.then(|| Box::new(message.owned()));
        Some(Box::new(Orphaned { place, again, asked: false }))
    }

    /// How long a call has run before this process began.
    fn ran_before(&self, no: TaskNo) -> Duration {
        let created = self.tickets.get(no).map_or(self.store_time(), |task| task.created);
        self.store_time().since(created)
    }

    /// Instead of sending a call its server is asked for it. False if it is to be sent.
    pub(in crate::engine) fn rejoin(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        let orphaned = self.calls.get(id).is_some_and(Call::is_orphaned);
        orphaned && self.asks_for_orphaned(now, id, message)
    }

    #[inline(never)]
    fn asks_for_orphaned(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        match self.calls.asks_for_orphaned(id) {
            Some(Place::Task(task)) => self.follow_orphaned(now, id, task, message),
            Some(Place::Token(token, attempt)) => self.resume_orphaned(now, id, token, attempt),
            None => return false,
        }
        true
    }

    fn follow_orphaned(&mut self, now: Mono, id: CallId, task: Box<[u8]>, message: &Message) {
        let modern = self.calls.get(id).is_some_and(|call| call.modern);
        let meta = own_meta(message).filter(|_| modern);
        if modern && meta.is_none() {
            self.orphaned_is_lost(now, id, "its server cannot be asked for it");
            return;
        }
        self.follow(now, id, ServerTask::named(task, meta, None, now), true);
    }

    pub(in crate::engine) fn resume_orphaned(&mut self, now: Mono, id: CallId, token: Box<str>, number: u64) {
        if !self.calls.take_up(now, id, token, number) {
            let why = "its server cannot be asked for it";
            if !self.orphaned_is_lost(now, id, why) {
                self.fail_orphaned(now, id, why);
            }
            return;
        }
        self.resume_attempt(id);
    }

    /// The server knows nothing of a call that an earlier process left: it is made again if that is safe, and
    /// has failed if not. False if it was sent by this process.
    pub(in crate::engine) fn orphaned_is_lost(&mut self, now: Mono, id: CallId, why: &str) -> bool {
        let Some(Way::Ticket(no)) = self.calls.get(id).map(|call| call.request.way) else { return false };
        let Some(orphaned) = self.calls.orphaned_is_lost(id) else { return false };
        self.change_body(no, |body| {
            (body.server_task, body.server_token, body.server_attempt) = (None, None, None);
        });
        match orphaned.again {
            Some(message) => self.begin_anew(now, id, &message),
            None => self.fail_orphaned(now, id, why),
        }
        true
    }

    fn begin_anew(&mut self, now: Mono, id: CallId, message: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        let request = call.request.clone();
        self.note(Note::Repeated {
            server: self.server_name(request.server),
            method: request.method.as_str().into(),
            attempt: u32::from(call.attempts) + 1,
            why: "its server knows nothing of it any more",
        });
        // In this order, so that the server is needed all the time.
        self.begin_call(now, request, message);
        self.settle(id, None);
    }

    fn fail_orphaned(&mut self, now: Mono, id: CallId, why: &str) {
        let Some(call) = self.calls.get(id) else { return };
        let mut failure = self.failure(now, call, Kind::ServerGone, None);
        failure.detail = Some(format!("outlast itself was ended during the call, and {why}"));
        failure.state = ServerState::Running;
        self.fail(id, failure);
    }

    /// Whether a call was left by an earlier process, and its server has yet to say that it knows it.
    pub(in crate::engine) fn is_being_found(&self, id: CallId) -> bool {
        self.is_being_resumed(id) && self.calls.get(id).is_some_and(Call::is_orphaned)
    }
}
