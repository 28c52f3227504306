//! A server's process: how it starts, ends and is started again. The table is in `server.rs`.

use super::Engine;
use super::from_client::request_edits;
use crate::action::{Action, Note};
use crate::call::State;
use crate::client::Client;
use crate::error::{Kind, ServerState, error_answer};
use crate::event::{Exit, StartFailure};
use crate::id::{AttemptId, ClientId, JsonId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::CallFacts;
use crate::server::{Alarm, Life, Server};
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::{Field, Message, Outgoing};
use bytes::Bytes;

impl Engine {
    pub(super) fn opened(&mut self, client: ClientId, server: ServerId) {
        self.clients.entry(client).or_insert_with(|| Client::new(server));
        if !self.servers.contains_key(&server) {
            let new = Server::new(self.config.server_name.clone());
            let run = new.run;
            self.servers.insert(server, new);
            self.act(Action::Start(server, run));
        }
    }

    pub(super) fn started(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let note = Note::Started { server: server.name.clone(), run: server.run };
        let closed = server.output_closed;
        match server.life {
            Life::Starting => server.life = Life::Up,
            Life::Restarting => self.revive(now, id),
            _ => return,
        }
        self.note(note);
        if closed {
            self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
        }
    }

    pub(super) fn start_failed(&mut self, now: Mono, id: ServerId, why: StartFailure) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let first = server.life == Life::Starting;
        if !first {
            let failed = Note::RestartFailed { server: server.name.clone(), why: why.to_string() };
            self.note(failed);
            return self.rest(now, id, "it could not be started");
        }
        server.life = Life::Failed(why);
        self.note(Note::StartFailed { command: self.config.command.clone(), why });
        let waiting = self.calls_at(id, true);
        let answered = !waiting.is_empty();
        for call_id in waiting {
            let Some(call) = self.calls.get(call_id) else { continue };
            let mut failure = self.failure(now, call, Kind::ServerFailed, None);
            failure.detail = Some(format!("cannot start `{}`: {why}", self.config.command));
            failure.state = ServerState::NeverReached;
            failure.attempts = 0;
            // The note above has said it all.
            self.fail_silently(call_id, &failure);
        }
        self.end_after_first_request(now, id, answered);
    }

    pub(super) fn exited(&mut self, now: Mono, id: ServerId, exit: Exit) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.exit = Some(exit);
        if server.output_closed {
            return self.gone(now, id);
        }
        self.arm_server(id, Some((Alarm::LastOutput, now + limits::LAST_OUTPUT)));
    }

    pub(super) fn output_closed(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.output_closed = true;
        match server.life {
            // The pipe of what never ran, or of what has been taken leave of.
            Life::Failed(_) | Life::Resting | Life::Ended(_) => {}
            _ if server.exit.is_some() => self.gone(now, id),
            Life::Up | Life::Reviving(_) => {
                self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
            }
            // Whether it runs at all is not known yet, or it is being stopped anyway.
            Life::Starting | Life::Restarting | Life::Stopping => {}
        }
    }

    /// What cannot be told anything is of no use; but what it is about to say still counts.
    pub(super) fn input_broken(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        if self.ending.is_some()
            || server.alarm.is_some()
            || !matches!(server.life, Life::Up | Life::Reviving(_))
        {
            return;
        }
        let note = Note::InputBroken { server: server.name.clone() };
        self.note(note);
        self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
    }

    pub(super) fn stderr(&mut self, id: ServerId, bytes: &Bytes) {
        self.server_lives(id);
        if let Some(server) = self.servers.get_mut(&id) {
            server.keep_stderr(bytes);
        }
    }

    pub(super) fn server_due(&mut self, now: Mono, id: ServerId) {
        let congested = self.client_is_congested(id);
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.armed = None;
        let name = server.name.clone();
        match server.alarm.take() {
            None => {}
            // While the client does not read, we do not read on either: what lies there still counts.
            Some(Alarm::LastOutput) if congested => {
                self.arm_server(id, Some((Alarm::LastOutput, now + limits::LAST_OUTPUT)));
            }
            Some(Alarm::LastOutput) => self.gone(now, id),
            Some(Alarm::Lingers) => {
                self.act(Action::Terminate(id));
                self.arm_server(id, Some((Alarm::Kill, now + limits::KILL_GRACE)));
            }
            Some(Alarm::Kill) => self.act(Action::Kill(id)),
            Some(Alarm::Restart) => {
                server.life = Life::Restarting;
                let run = server.next_run();
                self.act(Action::Start(id, run));
            }
            Some(Alarm::Handshake) => {
                self.note(Note::RestartFailed { server: name, why: "no answer to initialize".into() });
                self.stop_for_restart(now, id);
            }
            Some(Alarm::FirstRequest) => self.end_with_server(now, id),
        }
    }

    /// The process has ended and nothing of it is left to read.
    fn gone(&mut self, now: Mono, id: ServerId) {
        self.arm_server(id, None);
        let Some(server) = self.servers.get_mut(&id) else { return };
        let exit = server.exit.unwrap_or(Exit::Code(0));
        let before = server.life;
        let answered = server.answered;
        let name = server.name.clone();
        server.told_to_cancel = None;
        self.timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        if before != Life::Stopping && self.ending.is_none() {
            self.note(Note::Exited { server: name.clone(), exit });
        }
        if matches!(before, Life::Reviving(_) | Life::Restarting) {
            self.note(Note::RestartFailed { server: name, why: format!("it ended: {exit}") });
        }
        let restarts = self.config.manner.restarts() && self.ending.is_none();
        if let Some(server) = self.servers.get_mut(&id) {
            server.life = if restarts { Life::Resting } else { Life::Ended(exit) };
        }
        let failed = self.fail_calls_of_gone_server(now, id, exit);
        self.drop_asks_of(now, id);
        if self.ending.is_some() {
            self.end_with_server(now, id);
        } else if restarts {
            self.rest(now, id, if before == Life::Stopping { "it was stopped" } else { "it ended" });
        } else if !self.config.manner.outlives_its_server() {
            self.end_after_first_request(now, id, answered || failed);
        }
    }

    /// Settles what was at a server that has gone. True if a client got an answer by it.
    fn fail_calls_of_gone_server(&mut self, now: Mono, id: ServerId, exit: Exit) -> bool {
        let stderr = self.servers.get(&id).and_then(Server::stderr_tail);
        let restarts = self.servers.get(&id).is_some_and(|server| server.life == Life::Resting);
        let open = self.calls_at(id, true);
        let any = !open.is_empty();
        for call_id in open {
            let Some(call) = self.calls.get(call_id) else { continue };
            let mut failure = self.failure(now, call, Kind::ServerGone, None);
            failure.detail = Some(exit.to_string());
            failure.stderr.clone_from(&stderr);
            if restarts {
                failure.state = ServerState::Restarting;
            }
            self.fail(call_id, failure);
        }
        self.end_subscriptions(id, exit);
        any
    }

    fn end_subscriptions(&mut self, server: ServerId, exit: Exit) {
        let open: Vec<AttemptId> = self.subscriptions.keys().copied().collect();
        for attempt in open {
            if self.subscriptions[&attempt].server != server {
                continue;
            }
            let Some(subscription) = self.close_subscription(attempt) else { continue };
            let text = format!("server `{}` went away ({exit}); subscribe again", self.server_name(server));
            let id = subscription.id.patch();
            let answer = error_answer(id.as_slice(), Kind::ServerGone.code(true), &text, None);
            self.act(Action::ToClient(subscription.client, Outgoing::plain(answer)));
        }
    }

    // Restarting.

    /// Stops a server that runs, so that it is started again.
    pub(super) fn restart(&mut self, now: Mono, id: ServerId, why: &'static str) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.life != Life::Up && server.life != Life::Starting {
            return;
        }
        let note = Note::Restarting { server: server.name.clone(), why, wait: std::time::Duration::ZERO };
        self.note(note);
        for call_id in self.calls_at(id, true) {
            let Some(call) = self.calls.get(call_id) else { continue };
            let mut failure = self.failure(now, call, Kind::ServerGone, None);
            failure.detail = Some(format!("restarted because {why}"));
            failure.state = ServerState::Restarting;
            self.fail(call_id, failure);
        }
        self.stop_for_restart(now, id);
    }

    fn stop_for_restart(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.life = Life::Stopping;
        server.stopped_at = now;
        self.act(Action::Terminate(id));
        self.arm_server(id, Some((Alarm::Kill, now + limits::KILL_GRACE)));
    }

    /// Waits a while before the next start.
    fn rest(&mut self, now: Mono, id: ServerId, why: &'static str) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let wait = server.backoff();
        server.life = Life::Resting;
        if !wait.is_zero() || why == "it ended" {
            server.stopped_at = now;
            let note = Note::Restarting { server: server.name.clone(), why, wait };
            self.note(note);
        }
        self.arm_server(id, Some((Alarm::Restart, now + wait)));
    }

    /// Tells a new process what the client told the old one.
    fn revive(&mut self, now: Mono, id: ServerId) {
        let attempt = self.new_attempt();
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(initialize) = server.handshake.initialize.clone().filter(|_| server.handshake.done) else {
            return self.up_again(now, id);
        };
        server.life = Life::Reviving(attempt);
        let facts = CallFacts {
            method: &Method::Initialize,
            tool: None,
            has_token: false,
            wish: None,
            declared: &server.declared,
        };
        let limit = self.config.rules.for_call(facts).timeout;
        let raw_id = initialize.raw(Field::Id).and_then(JsonId::new).unwrap_or(JsonId::Int(0));
        let edits = request_edits(&initialize, &raw_id, &Method::Initialize, attempt);
        self.act(Action::ToServer(id, Outgoing::edited(initialize.bytes, edits)));
        self.arm_server(id, limit.map(|limit| (Alarm::Handshake, now + limit.time)));
    }

    /// A restarted server answered the handshake.
    pub(super) fn revived(&mut self, now: Mono, id: ServerId, answer: &Message) {
        if let Some(error) = answer.raw(Field::Error) {
            let why =
                format!("it refused initialize: {}", String::from_utf8_lossy(&error[..error.len().min(200)]));
            let server = self.server_name(id);
            self.note(Note::RestartFailed { server, why });
            return self.stop_for_restart(now, id);
        }
        self.up_again(now, id);
    }

    fn up_again(&mut self, now: Mono, id: ServerId) {
        self.arm_server(id, None);
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.life = Life::Up;
        server.works_again();
        server.waiting_bytes = 0;
        let waiting = std::mem::take(&mut server.waiting);
        let initialized = server.handshake.initialized.clone();
        let note = Note::Restarted { server: server.name.clone(), took: now.since(server.stopped_at) };
        if let Some(initialized) = initialized {
            self.act(Action::ToServer(id, Outgoing::plain(initialized.bytes)));
        }
        self.note(note);
        for id in waiting {
            let call = self.calls.get_mut(id).map(|call| std::mem::replace(&mut call.state, State::New));
            if let Some(State::Waiting(message)) = call {
                self.send_attempt(id, &message);
            }
        }
        if self.ending.is_some() {
            // The client's end came while there was no process to tell.
            self.act(Action::CloseInput(id));
        }
    }

    pub(super) fn keep_initialize(&mut self, id: ServerId, message: &Message) {
        if !self.config.manner.restarts() || message.bytes.len() > limits::HANDSHAKE_BYTES {
            return;
        }
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.handshake.done = false;
        server.handshake.initialize = Some(message.owned());
    }

    pub(super) fn keep_initialized(&mut self, id: ServerId, message: &Message) {
        if !self.config.manner.restarts() || message.bytes.len() > limits::HANDSHAKE_BYTES {
            return;
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.handshake.initialized = Some(message.owned());
        }
    }

    // The end.

    /// Waits for one request before we end, so that it gets an answer instead of a closed pipe.
    fn end_after_first_request(&mut self, now: Mono, id: ServerId, answered: bool) {
        let wait = if answered { std::time::Duration::ZERO } else { limits::FIRST_REQUEST };
        self.arm_server(id, Some((Alarm::FirstRequest, now + wait)));
    }

    pub(super) fn first_request_was_answered(&mut self, now: Mono, id: ServerId) {
        if self.servers.get(&id).is_some_and(|server| server.alarm == Some(Alarm::FirstRequest)) {
            self.arm_server(id, Some((Alarm::FirstRequest, now)));
        }
    }

    pub(super) fn end_with_server(&mut self, now: Mono, id: ServerId) {
        let status = match self.servers.get(&id).map(|server| server.life) {
            Some(Life::Failed(why)) => why.status(),
            Some(Life::Ended(exit)) if !self.config.manner.outlives_its_server() => exit.status(),
            _ => 0,
        };
        self.end(now, status);
    }
}
