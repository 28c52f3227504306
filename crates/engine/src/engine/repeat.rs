//! Calls that are sent once more, where that does no harm.

use super::Engine;
use crate::action::Note;
use crate::calls::{Call, Request, retry};
use crate::id::CallId;
use crate::method::Method;
use crate::policy::Policy;
use crate::servers::{Life, Server};
use crate::step::What;
use crate::time::Mono;
use crate::wire::{Field, Message};
use std::time::Duration;

impl Engine {
    /// Decides once, when a call begins, whether it may ever be repeated, and keeps it if so.
    pub(super) fn make_repeatable(&mut self, call: &mut Call, policy: &Policy, message: &Message) {
        call.repeatable = policy.repeatable.unwrap_or_else(|| self.server_calls_it_repeatable(&call.request));
        let allowed = policy.repeatable != Some(false);
        // In wrap mode a server that does not answer its first handshake is not retried.
        let handshake = call.request.method.is_handshake() && self.config.manner.serves();
        let safe =
            call.repeatable || handshake || (allowed && retry::is_safe_by_nature(&call.request.method));
        // What continues something, or begins a task, is not the same the second time.
        let continues = [Field::ParamsRequestState, Field::ParamsInputResponses, Field::ParamsTask]
            .iter()
            .any(|field| message.has(*field));
        let fits = self.calls.has_room_to_keep(message.bytes.len());
        call.safe = safe && !continues && policy.retries > 0;
        // What goes by HTTP, or into the pipe of a process that is being started, may turn out never to
        // have arrived, and can be sent again then.
        let server = self.servers.get(&call.request.server);
        let starting = |server: &Server| server.life == Life::Starting && self.config.manner.serves();
        let may_not_arrive = server.is_some_and(|server| server.is_remote() || starting(server));
        let wanted = call.safe || may_not_arrive;
        if wanted && fits {
            // One less than can be counted, so that there is an end of it.
            call.retries = policy.retries.min(u32::from(u16::MAX - 1)) as u16;
            call.kept = Some(Box::new(message.owned()));
        }
    }

    /// What it rests on that a call may be made again, also after a crash of ours.
    pub(super) fn why_repeatable(&self, request: &Request, policy: &Policy) -> Option<&'static str> {
        match policy.repeatable {
            Some(true) => Some("repeatable"),
            Some(false) => None,
            None => self.server_calls_it_repeatable(request).then_some("trust"),
        }
    }

    fn server_calls_it_repeatable(&self, request: &Request) -> bool {
        let server = self.servers.get(&request.server);
        server.is_some_and(|server| server.config.trust)
            && request.method == Method::ToolsCall
            && request
                .tool
                .as_ref()
                .zip(server)
                .is_some_and(|(tool, server)| server.repeatable.contains(tool))
    }

    /// Takes one retry for a call, if it may have one.
    fn take_retry(&mut self, now: Mono, id: CallId, arrived: bool) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        let may = call.kept.is_some() && (call.safe || !arrived || planted!(self, RepeatsUnsafe));
        may && call.attempts <= call.retries && self.servers.take_retry(now, call.request.server)
    }

    /// A call that never left waits for its server. False if it was not kept.
    pub(super) fn wait_unsent(&mut self, now: Mono, id: CallId) -> bool {
        let Some(size) = self.calls.wait_unsent(id) else { return false };
        let Some(call) = self.calls.get(id) else { return false };
        if !planted!(self, LosesUnsent) {
            self.queue_at(call.request.server, id, size);
        }
        self.arm_call(now, id);
        true
    }

    /// A call that its server did not take, because it had forgotten our session, is sent to the next session: at
    /// once if that has begun. False if it was not kept.
    pub(super) fn send_unsent(&mut self, now: Mono, id: CallId) -> bool {
        let sent_again = self.calls.lost_with_session(now, id);
        if sent_again {
            self.try_again(now, id);
        }
        sent_again
    }

    /// A call whose HTTP exchange failed is sent again after a while. False if it must not be.
    pub(super) fn retry_later(
        &mut self,
        now: Mono,
        id: CallId,
        wish: Option<Duration>,
        never_ran: bool,
        why: &'static str,
    ) -> bool {
        let chance = self.chance.next();
        let Some(call) = self.calls.get(id) else { return false };
        let backoff = self.definition_of(call.request.server).retry_backoff;
        let wait = wish.unwrap_or_else(|| retry::wait(backoff, call.attempts.into(), chance));
        let in_time = now + wait < call.deadline.ends_at();
        if !in_time || !self.take_retry(now, id, !never_ran) {
            return false;
        }
        self.detach(now, id, why);
        self.calls.retry_at(id, now + wait);
        self.arm_call(now, id);
        true
    }

    /// A call whose process is gone waits for the next one. False if it must not be repeated.
    pub(super) fn wait_for_next_run(&mut self, now: Mono, id: CallId) -> bool {
        if !self.take_retry(now, id, true) {
            return false;
        }
        self.detach(now, id, "its server went away");
        let Some(call) = self.calls.get(id) else { return false };
        let size = call.kept.as_ref().map_or(0, |message| message.bytes.len());
        self.queue_at(call.request.server, id, size);
        self.arm_call(now, id);
        true
    }

    /// A call that timed out is sent again after a while. False if it must not be repeated, or would
    /// outlive itself.
    pub(super) fn retry_after_timeout(&mut self, now: Mono, id: CallId) -> bool {
        let chance = self.chance.next();
        let Some(call) = self.calls.get(id) else { return false };
        let backoff = self.definition_of(call.request.server).retry_backoff;
        let wait = retry::wait(backoff, call.attempts.into(), chance);
        let in_time = now + wait < call.deadline.ends_at() && call.attempt().is_some();
        if !in_time || !self.take_retry(now, id, true) {
            return false;
        }
        self.detach(now, id, "it timed out");
        self.calls.retry_at(id, now + wait);
        self.arm_call(now, id);
        true
    }

    /// The time has come to send a call again.
    pub(super) fn try_again(&mut self, now: Mono, id: CallId) {
        if self.waited_too_long(now, id) {
            return;
        }
        let Some(server_id) = self.calls.get(id).map(|call| call.request.server) else { return };
        let Some(server) = self.servers.get(&server_id) else { return };
        use crate::servers::Readiness::{ComesBack, IsGone, Runs};
        if server.readiness() == IsGone {
            // It waits in no queue that it would have to leave.
            return self.fail_at_gone_server(now, id);
        }
        let Some(message) = self.calls.take_retry(id) else { return };
        match server.readiness() {
            Runs => {
                self.calls.restart_timeout(now, id, &server.clock);
                self.send_attempt(now, id, &message);
            }
            ComesBack | IsGone => self.queue_at(server_id, id, message.bytes.len()),
        }
        self.arm_call(now, id);
    }

    /// Takes a call off the process it was sent to.
    fn detach(&mut self, now: Mono, id: CallId, why: &'static str) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(server) = self.servers.get(&call.request.server) else { return };
        let (name, method) = (server.config.name.clone(), call.request.method.as_str().into());
        let Some(withdrawn) = self.calls.take_off(now, id, &server.clock) else { return };
        let note = Note::Repeated { server: name, method, attempt: withdrawn.attempt, why };
        self.note(note);
        self.step(id, || What::Retried { why });
        self.joined_start_again(withdrawn.key_no);
    }

    /// Learns from a tool list which tools the server calls repeatable.
    pub(super) fn read_hints(&mut self, id: crate::id::ServerId, answer: &Message) {
        if let Some(result) = answer.raw(Field::Result) {
            self.servers.read_hints(id, result);
        }
    }
}
