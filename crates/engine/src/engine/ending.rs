//! How everything ends: the client closes its end, or vanishes, or a signal comes.
//!
//! After the client's end nothing is cancelled: the server's input is closed, and calls may finish
//! within `drain`. Then the server has a second to end by itself, then SIGTERM, half a second,
//! SIGKILL. A signal skips to SIGTERM: clients send SIGKILL two seconds after it.
//!
//! From its end on a client hears only what its server says, and limits that fire. Without us it would
//! hear no more either, and there are clients that break on an answer that comes while they close.

use super::Engine;
use crate::action::{Action, Note};
use crate::calls::Call;
use crate::error::{Failure, Kind};
use crate::event::Event;
use crate::id::{CallId, ClientId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::servers::Server;
use crate::time::Mono;
use crate::timers::Owner;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Calls may finish.
    Draining,
    /// The server may end by itself.
    Closing,
    /// It was asked to end.
    Terminating,
    /// It was ended.
    Killing,
}

#[derive(Debug)]
pub(super) struct Ending {
    stage: Stage,
    /// The status to end with, if it is not the server's.
    status: Option<u8>,
    pub(super) armed: Option<Mono>,
    /// Whose input is closed once nothing waits for the store that has yet to be sent there.
    closes_later: Vec<ServerId>,
    /// What is being handled is of the server, or of a limit, and not a word of our own.
    passes_on: bool,
}

impl Engine {
    /// Notes whose words an event brings, once that matters. What was stored, and is read again, are ends of calls.
    #[cold]
    pub(super) fn heed_whose_words(&mut self, event: &Event) {
        let of_server = matches!(
            event,
            Event::FromServer(..)
                | Event::FromStream(..)
                | Event::ServerOversized(..)
                | Event::Stored(..)
                | Event::Loaded(..)
        );
        self.pass_on(of_server);
    }

    pub(super) fn pass_on(&mut self, passes_on: bool) {
        if let Some(ending) = &mut self.ending {
            ending.passes_on = passes_on;
        }
    }

    /// Whoever has closed its end still hears of a limit.
    pub(super) fn by_a_limit(&mut self, fails: impl FnOnce(&mut Engine)) {
        self.pass_on(true);
        fails(self);
        self.pass_on(false);
    }

    /// Whether a word of our own is not for this client any more.
    #[inline]
    pub(super) fn is_hushed(&self, client: ClientId) -> bool {
        self.ending.as_ref().is_some_and(|ending| !ending.passes_on) && self.has_finished(client)
    }

    #[cold]
    fn has_finished(&self, client: ClientId) -> bool {
        self.clients.get(&client).is_some_and(|client| client.finished)
    }

    pub(super) fn client_eof(&mut self, now: Mono, client: ClientId) {
        self.client_leaves(now, client, "the client closed its end", true);
    }

    pub(super) fn client_gone(&mut self, now: Mono, client: ClientId) {
        self.client_leaves(now, client, "nobody reads our output", false);
    }

    fn client_leaves(&mut self, now: Mono, client: ClientId, why: &'static str, drains: bool) {
        let Some(servers) = self.clients.finishes(client) else { return };
        self.forget_repeats_of(client);
        let unsent = self.unsent();
        let calls = self.calls.len() + unsent;
        let begun = self.ending.as_ref().map(|ending| ending.stage);
        if begun.is_some_and(|stage| drains || stage != Stage::Draining) {
            return;
        }
        self.note(Note::Ending { why, calls });
        // Nobody would read the answer of a call that waits.
        let all_sent = if drains { self.has_sent_everything() } else { unsent == 0 };
        if begun.is_none() && all_sent {
            servers.iter().for_each(|server| self.act(Action::CloseInput(*server)));
        }
        let runs = |server: &ServerId| self.servers.get(server).is_some_and(Server::has_process);
        if calls == 0 && !servers.iter().any(runs) {
            return match servers.last() {
                Some(last) => self.end_with_server(now, *last),
                None => self.end(now, 0),
            };
        }
        let stage = if drains && calls > 0 { Stage::Draining } else { Stage::Closing };
        self.enter(now, stage, None);
        if let Some(ending) = self.ending.as_mut().filter(|_| begun.is_none() && !all_sent) {
            ending.closes_later = servers;
        }
    }

    /// Requests that wait for the store, or for what servers list, and have yet to be sent to their server.
    pub(super) fn unsent(&self) -> usize {
        self.keys.waiting() + self.tickets.starting() + self.merged.waiting()
    }

    /// Whether nothing has yet to be sent to a server: no request, and no call that waits for its turn or for a
    /// person's yes.
    pub(super) fn has_sent_everything(&self) -> bool {
        self.unsent() + self.throttles.waiting() + self.holds.len() == 0
    }

    pub(super) fn stop(&mut self, now: Mono, signal: u8) {
        if self.config.manner.serves() && self.ending.is_none() {
            if !self.begins_to_leave(now) {
                self.stop_serving(now);
            }
            return;
        }
        self.note(Note::Ending { why: "a signal came", calls: self.calls.len() });
        let again = self.ending.as_ref().is_some_and(|ending| ending.stage >= Stage::Terminating);
        let stage = if again { Stage::Killing } else { Stage::Terminating };
        self.enter(now, stage, Some(128u8.wrapping_add(signal)));
    }

    /// A service is stopped with grace: calls may finish, and those that do not are told so.
    pub(super) fn stop_serving(&mut self, now: Mono) {
        let calls = self.calls.len() + self.unsent();
        if self.leaving.is_none() {
            self.note(Note::Ending { why: "a signal came", calls });
        }
        let stage = if calls > 0 { Stage::Draining } else { Stage::Closing };
        self.enter(now, stage, Some(0));
    }

    /// Calls that have not finished within `drain` are answered while somebody still reads, and their
    /// servers are told.
    fn cancel_what_is_left(&mut self, now: Mono) {
        self.leave_calls_to_others(now);
        let sent = |id: CallId| {
            // `initialize` must not be cancelled.
            let call = self.calls.get(id).filter(|call| call.request.method != Method::Initialize)?;
            Some((call.request.server, call.attempt()?, call.modern, call.text))
        };
        let sent: Vec<_> = self.calls.ids().filter_map(sent).collect();
        self.settle_what_is_left(now);
        for (server, attempt, modern, text) in sent {
            self.cancel_attempt(server, attempt, modern, text, "outlast is being stopped");
        }
    }

    /// Nothing more comes on any stream. Legacy clients find their way back by the event ids.
    fn hang_up_everywhere(&mut self) {
        for (exchange, begun) in self.clients.hang_up_everywhere() {
            if begun {
                self.act(Action::Finish(exchange));
            } else {
                self.refuse_stopped(exchange);
            }
        }
        self.end_relays();
        for exchange in self.ledger.take_exchanges() {
            self.refuse_stopped(exchange);
        }
    }

    fn enter(&mut self, now: Mono, stage: Stage, status: Option<u8>) {
        let servers: Vec<ServerId> = self.servers.keys().copied().collect();
        let left = self.drain_left(now);
        let wait = match stage {
            Stage::Draining => left,
            Stage::Closing => limits::END_GRACE,
            Stage::Terminating => limits::KILL_GRACE,
            Stage::Killing => limits::REAP_GRACE,
        };
        if stage == Stage::Closing && self.config.manner.serves() {
            self.cancel_what_is_left(now);
            self.hang_up_everywhere();
        }
        for server in servers {
            match stage {
                Stage::Closing if self.config.manner.serves() => self.act(Action::CloseInput(server)),
                Stage::Draining | Stage::Closing => {}
                Stage::Terminating => self.act(Action::Terminate(server)),
                Stage::Killing => self.act(Action::Kill(server)),
            }
        }
        let mut ending = self.ending.take().unwrap_or(Ending {
            stage,
            status,
            armed: None,
            closes_later: Vec::new(),
            passes_on: false,
        });
        ending.stage = stage;
        ending.status = status.or(ending.status);
        self.timers.set(Owner::Ending, &mut ending.armed, Some(now + wait));
        self.ending = Some(ending);
        let last = if self.config.manner.serves() { Stage::Closing } else { Stage::Terminating };
        if stage >= last && !self.servers.values().any(Server::has_process) {
            self.end_with_servers(now);
        }
    }

    pub(super) fn ending_due(&mut self, now: Mono) {
        let Some(ending) = &mut self.ending else { return self.leaving_due(now) };
        ending.armed = None;
        match ending.stage {
            Stage::Draining => {
                self.close_inputs();
                self.enter(now, Stage::Closing, None);
            }
            Stage::Closing => self.enter(now, Stage::Terminating, None),
            Stage::Terminating => self.enter(now, Stage::Killing, None),
            Stage::Killing => {
                reached!(REAP_GRACE if true);
                self.end_with_servers(now);
            }
        }
    }

    /// The last call has been settled: the server need not be waited for much longer.
    pub(super) fn drained(&mut self) {
        if self.ending.is_none() {
            return;
        }
        if self.has_sent_everything() {
            self.close_inputs();
        }
        let quiet = self.calls.len() == 0 && self.unsent() == 0;
        if let Some(ending) = self.ending.as_mut().filter(|ending| quiet && ending.stage == Stage::Draining) {
            // Its timer brings the next stage at once; there is no clock at hand here.
            self.timers.set(Owner::Ending, &mut ending.armed, Some(Mono::default()));
        }
    }

    /// The inputs that were kept open for what had yet to be sent.
    fn close_inputs(&mut self) {
        let closes = self.ending.as_mut().map(|ending| std::mem::take(&mut ending.closes_later));
        closes.into_iter().flatten().for_each(|server| self.act(Action::CloseInput(server)));
    }

    /// The only server there is gives the status.
    fn end_with_servers(&mut self, now: Mono) {
        let server = self.servers.keys().next().copied();
        match server {
            Some(server) => self.end_with_server(now, server),
            None => self.end(now, 0),
        }
    }

    /// Ends with this status, unless a signal has settled another one.
    pub(super) fn end(&mut self, now: Mono, status: u8) {
        let by_signal = self.ending.as_ref().and_then(|ending| ending.status);
        let servers: Vec<ServerId> = self.servers.keys().copied().collect();
        servers.into_iter().for_each(|server| self.tell_all_bad_lines(server));
        self.settle_what_is_left(now);
        self.hang_up_everywhere();
        // There may be room again for what could not be stored.
        self.write_ends_again();
        self.callbacks.rest(&mut self.timers);
        self.ended = true;
        let patience =
            if reached!(HASTY_WRITE, by_signal.is_some()) { limits::HASTY_WRITE } else { self.config.drain };
        self.act(Action::End { status: by_signal.unwrap_or(status), patience });
    }

    /// All that still matters: whoever is in a hurry, and what became of the last tries to store something.
    #[cold]
    pub(super) fn handle_after_the_end(&mut self, event: &Event) {
        match event {
            Event::Stop(signal) => self.stop_after_the_end(*signal),
            Event::Stored(number, outcome) => self.stored_after_the_end(*number, outcome),
            _ => {}
        }
    }

    /// A signal after the end: what the client has not read by now is given up.
    fn stop_after_the_end(&mut self, signal: u8) {
        let status = 128u8.wrapping_add(signal);
        self.act(Action::End { status, patience: std::time::Duration::ZERO });
    }

    /// Nobody is left without an answer, not even when a server could not be killed.
    fn settle_what_is_left(&mut self, now: Mono) {
        self.refuse_waiting_for_keys(now);
        let open: Vec<CallId> = self.calls.ids().collect();
        for id in open {
            let Some(call) = self.calls.get(id) else { continue };
            let failure = self.stopped(now, call);
            self.fail(id, failure);
        }
        let servers: Vec<ServerId> = self.servers.keys().copied().collect();
        for server in servers {
            self.turn_away(server, "outlast is being stopped; try again");
        }
    }

    /// Why a call fails that is not over when we end.
    pub(super) fn stopped(&self, now: Mono, call: &Call) -> Failure {
        let mut failure = self.failure(now, call, Kind::ServerGone, None);
        failure.detail = Some("outlast was stopped".into());
        failure
    }

    pub(super) fn client_is_congested(&self, server: ServerId) -> bool {
        let clients = self.servers.get(&server).map(|server| server.clients.iter());
        clients.into_iter().flatten().any(|id| self.clients.get(id).is_some_and(|client| client.congested))
    }

    pub(super) fn congested(&mut self, client: ClientId, congested: bool) {
        self.clients.is_congested(client, congested);
    }
}
