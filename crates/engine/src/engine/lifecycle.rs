//! A server's process: how it starts, ends and is started again. The table is in `servers/server.rs`.

use super::Engine;
use super::revival::Why;
use crate::action::{Action, Note};
use crate::clients::{Client, Door, Entry, Role, Subscription};
use crate::config::{Manner, Restart};
use crate::error::{Kind, ServerState, error_answer};
use crate::event::{Exit, StartFailure};
use crate::id::{AttemptId, CallId, ClientId, DefinitionId, Run, ServerId, read_own_id};
use crate::limits;
use crate::servers::{Alarm, Fate, Life, Readiness, Server};
use crate::settings::show_duration;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, Shape};
use bytes::Bytes;

impl Engine {
    pub(super) fn opened(&mut self, client: ClientId, server: ServerId) {
        if !self.clients.contains_key(&client) {
            self.clients.open(client, Client::new(Door::Line, Entry::Server(DefinitionId::FIRST), None));
        }
        if !self.servers.contains_key(&server) {
            let run = self.servers.open(server, self.config.server.clone());
            self.act(Action::Start(server, run));
        }
        self.join(client, server);
    }

    /// Its servers are started when it has said who it is.
    pub(super) fn entered(&mut self, client: ClientId) {
        self.clients.open(client, Client::new(Door::Line, Entry::Merged, None));
    }

    pub(super) fn started(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let note = Note::Started { server: server.config.name.clone(), run: server.run };
        let (closed, life) = (server.output_closed || server.input_closed, server.life);
        if !self.is_remote(id) {
            self.servers.is_reached(id);
        }
        match life {
            Life::Starting => self.servers.started(id),
            Life::Restarting => self.revive(now, id),
            _ => return,
        }
        self.note(note);
        self.look_after(now, id);
        if closed {
            self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
        }
    }

    pub(super) fn start_failed(&mut self, now: Mono, id: ServerId, why: StartFailure) {
        let Some(server) = self.servers.get(&id) else { return };
        // With an instant start its client may have been answered already.
        let first = server.run == Run(0) && !server.ever_answered && !self.config.manner.has_several();
        if !first {
            let failed = Note::RestartFailed { server: server.config.name.clone(), why: why.to_string() };
            self.note(failed);
            self.servers.rests(id);
            self.servers.has_trouble(id, &why.to_string());
            self.servers.start_is_hopeless(id, why);
            for call in self.calls.at(id, true) {
                self.never_arrived(now, call, &why.to_string());
            }
            return self.rest(now, id, Why::NotStarted);
        }
        self.servers.failed(id, why);
        let command = self.definition_of(id).command.clone();
        self.note(Note::StartFailed { command: command.clone(), why });
        let waiting = [self.calls.at(id, true), self.calls.at(id, false)].concat();
        let answered = !waiting.is_empty();
        for call_id in waiting {
            let Some(call) = self.calls.get(call_id) else { continue };
            let mut failure = self.failure(now, call, Kind::ServerFailed, None);
            failure.detail = Some(format!("cannot start `{command}`: {why}"));
            failure.state = ServerState::NeverReached;
            failure.attempts = 0;
            // The note above has said it all.
            self.fail_silently(call_id, &failure);
        }
        self.end_after_first_request(now, id, answered);
    }

    pub(super) fn exited(&mut self, now: Mono, id: ServerId, exit: Exit) {
        if planted!(self, IgnoresEnds) {
            return;
        }
        self.servers.exited(id, exit);
        if self.servers.get(&id).is_some_and(|server| server.output_closed) {
            return self.gone(now, id);
        }
        self.arm_server(id, Some((Alarm::LastOutput, now + limits::LAST_OUTPUT)));
    }

    pub(super) fn output_closed(&mut self, now: Mono, id: ServerId) {
        self.servers.closed_its_output(id);
        let Some(server) = self.servers.get(&id) else { return };
        match server.life {
            // The pipe of what never ran, or of what has been taken leave of.
            Life::Failed(_) | Life::Resting | Life::Asleep | Life::Down | Life::Ended(_) => {}
            _ if server.exit.is_some() => self.gone(now, id),
            Life::Up | Life::Reviving(_) => {
                self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
            }
            // Whether it runs at all is not known yet, or it is being stopped anyway.
            Life::Starting | Life::Restarting | Life::Stopping | Life::Leaving => {}
        }
    }

    /// What cannot be told anything is of no use; but what it is about to say still counts.
    pub(super) fn input_broken(&mut self, now: Mono, id: ServerId, unsent: &[Message]) {
        let ends = self.ending.is_some();
        let Some(first) = self.servers.closed_its_input(id) else { return };
        let Some(server) = self.servers.get(&id) else { return };
        let runs = matches!(server.life, Life::Up | Life::Reviving(_));
        let name = server.config.name.clone();
        let stops = !matches!(server.alarm, None | Some(Alarm::Idle | Alarm::Handshake | Alarm::Drain));
        if !runs {
            // Whether it runs at all will be told; of what has ended nothing more is sent.
            return;
        }
        if first && !stops && !ends {
            self.note(Note::Closed { server: name, what: "stdin" });
            self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
        }
        for call in unsent.iter().filter_map(|message| self.call_in(id, message)).collect::<Vec<_>>() {
            self.never_arrived(now, call, "it has closed its stdin");
        }
    }

    /// The call that a request to a server is of.
    fn call_in(&self, server: ServerId, message: &Message) -> Option<CallId> {
        let number = message.raw(Field::Id).filter(|_| message.shape == Shape::Request);
        let (number, _) = number.and_then(read_own_id)?;
        self.calls.of(server, AttemptId(number))
    }

    pub(super) fn stderr(&mut self, now: Mono, id: ServerId, bytes: &Bytes) {
        self.servers.speaks(&mut self.timers, now, id);
        self.servers.keep_stderr(id, bytes);
    }

    pub(super) fn server_due(&mut self, now: Mono, id: ServerId) {
        let congested = self.client_is_congested(id);
        let alarm = self.servers.ring(id);
        let Some(server) = self.servers.get(&id) else { return };
        let name = server.config.name.clone();
        match alarm {
            None => {}
            // While the client does not read, we do not read on either: what lies there still counts.
            Some(Alarm::LastOutput) if congested => {
                self.arm_server(id, Some((Alarm::LastOutput, now + limits::LAST_OUTPUT)));
            }
            Some(Alarm::LastOutput) => {
                reached!(LAST_OUTPUT if true);
                self.gone(now, id);
            }
            Some(Alarm::Lingers) => {
                reached!(END_GRACE if true);
                if server.output_closed && self.ending.is_none() && server.life != Life::Leaving {
                    self.note(Note::Closed { server: name, what: "stdout" });
                }
                self.act(Action::Terminate(id));
                self.arm_server(id, Some((Alarm::Kill, now + limits::KILL_GRACE)));
            }
            Some(Alarm::Kill) => {
                reached!(KILL_GRACE if true);
                let ended = server.exit.is_some();
                self.act(Action::Kill(id));
                if ended {
                    // Nothing more will be told of it, unless its output closes.
                    self.arm_server(id, Some((Alarm::LastOutput, now + limits::LAST_OUTPUT)));
                }
            }
            Some(Alarm::Idle) => self.dismiss(now, id),
            Some(Alarm::Restart) => self.start_again(now, id),
            Some(Alarm::Handshake) => {
                let limit =
                    self.limit_of_handshake(id).map(|limit| show_duration(limit.time)).unwrap_or_default();
                let why = format!("no answer to initialize within {limit} (handshake)");
                self.servers.has_erred(id, &why);
                self.note(Note::RestartFailed { server: name, why });
                self.stop_for_restart(now, id, limits::KILL_GRACE);
            }
            Some(Alarm::Drain) => self.changes_now(now, id),
            Some(Alarm::FirstRequest) => self.end_with_server(now, id),
        }
    }

    /// The process has ended and nothing of it is left to read.
    fn gone(&mut self, now: Mono, id: ServerId) {
        self.arm_server(id, None);
        self.servers.stop_watching(&mut self.timers, id);
        self.tell_all_bad_lines(id);
        let Some(server) = self.servers.get(&id) else { return };
        let exit = server.exit.unwrap_or(Exit::Code(0));
        let before = server.life;
        let (ever_answered, name) = (server.ever_answered, server.config.name.clone());
        if before == Life::Leaving {
            return self.end_server(id);
        }
        if before == Life::Stopping && server.falls_asleep && self.ending.is_none() {
            return self.is_asleep(now, id);
        }
        if before != Life::Stopping && self.ending.is_none() {
            self.note(Note::Exited { server: name.clone(), exit });
        }
        if matches!(before, Life::Reviving(_) | Life::Restarting) && ever_answered {
            self.note(Note::RestartFailed { server: name, why: format!("it ended: {exit}") });
        }
        let restarts = self.restarts_after_an_end(id);
        self.servers.is_gone(id, restarts, exit);
        let open = self.calls.at(id, true);
        let answered = ever_answered || !open.is_empty();
        self.interrupt(now, id, open, &exit.to_string());
        if !restarts {
            let waiting = self.calls.at(id, false);
            self.interrupt(now, id, waiting, &exit.to_string());
        }
        self.drop_asks_of(now, id);
        if !restarts {
            self.end_subscriptions(id, &exit.to_string());
            self.gathered_may_go_on(now, id);
        }
        if self.ending.is_some() {
            if !self.servers.values().any(Server::has_process) {
                self.end_with_server(now, id);
            }
        } else if restarts {
            let why = if before == Life::Stopping { Why::Stopped } else { Why::Ended };
            self.rest(now, id, why);
        } else if !self.config.manner.outlives_its_server() {
            self.end_after_first_request(now, id, answered);
        }
    }

    /// A server that ended before it ever answered is not started again: whoever wrote its command
    /// wants to see that.
    fn restarts_after_an_end(&self, id: ServerId) -> bool {
        let proven = self.servers.get(&id).is_some_and(|server| server.ever_answered);
        if self.servers.get(&id).is_some_and(|server| server.fate != Fate::Stays) {
            return self.ending.is_none();
        }
        self.definition_of(id).restart > Restart::Never
            && self.ending.is_none()
            && (proven || self.config.manner != Manner::Wrap)
    }

    /// The process that had these calls is gone, or will be: they wait for the next one if repeating
    /// them is safe, and fail if not.
    pub(super) fn interrupt(&mut self, now: Mono, id: ServerId, calls: Vec<CallId>, detail: &str) {
        let Some(server) = self.servers.get(&id) else { return };
        let stderr = server.stderr_tail();
        let comes_back = server.readiness() == Readiness::ComesBack;
        let gives_up = server.is_given_up_next(now);
        for call_id in calls {
            if comes_back && self.wait_for_next_run(now, call_id) {
                continue;
            }
            let Some(call) = self.calls.get(call_id) else { continue };
            let mut failure = self.failure(now, call, Kind::ServerGone, None);
            failure.detail = Some(detail.to_owned());
            failure.stderr.clone_from(&stderr);
            if comes_back && !gives_up {
                failure.state = ServerState::Restarting;
            }
            self.fail(call_id, failure);
        }
    }

    pub(super) fn end_subscriptions(&mut self, server: ServerId, why: &str) {
        let merged = |listen: &Subscription| matches!(listen.role, Role::Merged(_));
        let here = self.listens.iter().filter(|(_, listen)| listen.server == server && !merged(listen));
        let open: Vec<AttemptId> = here.map(|(attempt, _)| attempt).collect();
        for attempt in open {
            let Some(subscription) = self.close_subscription(attempt) else { continue };
            let text = format!("server `{}` went away ({why}); subscribe again", self.server_name(server));
            let id = subscription.id.patch();
            let answer = error_answer(id.as_slice(), Kind::ServerGone.code(true), &text, None);
            let id = subscription.id;
            self.reply(subscription.client, subscription.way, Some(&id), Outgoing::plain(answer));
        }
    }

    // The end.

    /// Waits for one request before we end, so that it gets an answer instead of a closed pipe.
    fn end_after_first_request(&mut self, now: Mono, id: ServerId, answered: bool) {
        reached!(FIRST_REQUEST if !answered);
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
