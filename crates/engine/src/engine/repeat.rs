//! Calls that are sent once more, where that does no harm.

use super::{Engine, Transport};
use crate::action::Note;
use crate::call::{Call, Request, State, retry};
use crate::id::CallId;
use crate::limits;
use crate::method::Method;
use crate::policy::Policy;
use crate::server::Life;
use crate::time::Mono;
use crate::wire::{Field, Message};
use std::time::Duration;

impl Engine {
    /// Decides once, when a call begins, whether it may ever be repeated, and keeps it if so.
    pub(super) fn make_repeatable(&mut self, call: &mut Call, policy: &Policy, message: &Message) {
        call.repeatable = policy.repeatable.unwrap_or_else(|| self.server_calls_it_repeatable(&call.request));
        let allowed = policy.repeatable != Some(false);
        // In wrap mode a server that does not answer its first handshake is not retried.
        let hello = call.request.method.is_handshake() && self.config.manner.serves();
        let safe = call.repeatable || hello || (allowed && retry::is_safe_by_nature(&call.request.method));
        // What continues something, or begins a task, is not the same the second time.
        let continues = [Field::ParamsRequestState, Field::ParamsInputResponses, Field::ParamsTask]
            .iter()
            .any(|field| message.has(*field));
        let size = message.bytes.len();
        let fits = size <= limits::REPEATABLE_BYTES && self.kept_bytes + size <= limits::KEPT_BYTES;
        call.safe = safe && !continues && policy.retries > 0;
        // What goes by HTTP, or into the pipe of a process that is being started, may turn out never to
        // have arrived, and can be sent again then.
        let starting = self.servers.get(&call.request.server).is_some_and(|s| s.life == Life::Starting);
        let may_not_arrive =
            self.config.transport == Transport::Http || (starting && self.config.manner.serves());
        let wanted = call.safe || may_not_arrive;
        if wanted && fits {
            // One less than can be counted, so that there is an end of it.
            call.retries = policy.retries.min(u32::from(u16::MAX - 1)) as u16;
            call.kept = Some(Box::new(message.owned()));
            self.kept_bytes += size;
        }
    }

    /// A call will not be repeated any more: what was kept of it goes.
    pub(super) fn let_go_of_kept(&mut self, kept: Option<Box<Message>>) {
        let size = kept.map_or(0, |message| message.bytes.len());
        self.kept_bytes = self.kept_bytes.saturating_sub(size);
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
        self.config.trust
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
        let Some(server) = self.servers.get_mut(&call.request.server) else { return false };
        let may = call.kept.is_some() && (call.safe || !arrived || planted!(self, RepeatsUnsafe));
        may && call.attempts <= call.retries && server.budget.take(now)
    }

    /// A call that never left waits for its server. False if it was not kept.
    pub(super) fn wait_unsent(&mut self, now: Mono, id: CallId) -> bool {
        let Some(call) = self.calls.get_mut(id) else { return false };
        let Some(kept) = call.kept.clone() else { return false };
        call.attempts = call.attempts.saturating_sub(1);
        if let Some(attempt) = call.attempt() {
            self.attempts.remove(&attempt);
        }
        let size = kept.bytes.len();
        call.state = State::Waiting(kept);
        let lost = planted!(self, LosesUnsent);
        if let Some(server) = self.servers.get_mut(&call.request.server).filter(|_| !lost) {
            server.waiting.push_back(id);
            server.waiting_bytes += size;
        }
        self.arm_call(now, id);
        true
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
        let wait =
            wish.unwrap_or_else(|| retry::wait(self.config.retry_backoff, call.attempts.into(), chance));
        let in_time = now + wait < call.deadline.ends_at();
        if !in_time || !self.take_retry(now, id, !never_ran) {
            return false;
        }
        self.detach(now, id, why);
        if let Some(call) = self.calls.get_mut(id) {
            call.retry_at = Some(now + wait);
        }
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
        if let Some(server) = self.servers.get_mut(&call.request.server) {
            server.waiting.push_back(id);
            server.waiting_bytes += size;
        }
        self.arm_call(now, id);
        true
    }

    /// A call that timed out is sent again after a while. False if it must not be repeated, or would
    /// outlive itself.
    pub(super) fn retry_after_timeout(&mut self, now: Mono, id: CallId) -> bool {
        let chance = self.chance.next();
        let Some(call) = self.calls.get(id) else { return false };
        let wait = retry::wait(self.config.retry_backoff, call.attempts.into(), chance);
        let in_time = now + wait < call.deadline.ends_at() && call.attempt().is_some();
        if !in_time || !self.take_retry(now, id, true) {
            return false;
        }
        self.detach(now, id, "it timed out");
        if let Some(call) = self.calls.get_mut(id) {
            call.retry_at = Some(now + wait);
        }
        self.arm_call(now, id);
        true
    }

    /// The time has come to send a call again.
    pub(super) fn try_again(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.retry_at = None;
        let Some(message) = call.kept.clone() else { return };
        let server_id = call.request.server;
        let Some(server) = self.servers.get_mut(&server_id) else { return };
        use crate::server::Readiness::{ComesBack, IsGone, Runs};
        match server.readiness() {
            Runs => {
                call.deadline.sign(now, &server.clock);
                self.send_attempt(now, id, &message);
            }
            ComesBack => {
                server.waiting.push_back(id);
                server.waiting_bytes += message.bytes.len();
            }
            IsGone => return self.fail_at_gone_server(now, id),
        }
        self.arm_call(now, id);
    }

    /// Takes a call off the process it was sent to.
    fn detach(&mut self, now: Mono, id: CallId, why: &'static str) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(server) = self.servers.get(&call.request.server) else { return };
        if let Some(attempt) = call.attempt() {
            self.attempts.remove(&attempt);
        }
        call.state = match call.kept.clone() {
            Some(message) => State::Waiting(message),
            None => State::New,
        };
        call.progress.start_again();
        call.deadline.sign(now, &server.clock);
        let joint = call.request.joint;
        let note = Note::Repeated {
            server: server.name.clone(),
            method: call.request.method.as_str().into(),
            attempt: u32::from(call.attempts) + 1,
            why,
        };
        self.note(note);
        self.joined_start_again(joint);
    }

    /// Learns from a tool list which tools the server calls repeatable.
    pub(super) fn read_hints(&mut self, id: crate::id::ServerId, answer: &Message) {
        #[derive(serde::Deserialize)]
        struct List {
            tools: Vec<Tool>,
        }
        #[derive(serde::Deserialize)]
        struct Tool {
            name: Box<str>,
            annotations: Option<Hints>,
        }
        #[derive(serde::Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Hints {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let Some(list) = answer.raw(Field::Result).and_then(|raw| serde_json::from_slice::<List>(raw).ok())
        else {
            return;
        };
        let Some(server) = self.servers.get_mut(&id) else { return };
        for tool in list.tools {
            let hints = tool.annotations.unwrap_or_default();
            if hints.read_only_hint || hints.idempotent_hint {
                server.repeatable.insert(tool.name);
            } else {
                server.repeatable.remove(&tool.name);
            }
        }
    }
}
