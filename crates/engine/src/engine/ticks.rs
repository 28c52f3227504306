//! What is due: limits, keep-alive, samples, and the server's own timers.

use super::Engine;
use crate::calls::deadline::{Due, Reached};
use crate::calls::{Call, Judgement, Ring, State, progress};
use crate::clients::Way;
use crate::error::{cut, json_text};
use crate::id::{CallId, JsonId, ServerId};
use crate::life::Sample;
use crate::limits;
use crate::step::What;
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::Outgoing;

impl Engine {
    pub(super) fn tick(&mut self, now: Mono) {
        while let Some(owner) = self.next_due(now) {
            match owner {
                Owner::Call(id) => self.call_due(now, id),
                Owner::Ask(id) => self.ask_timed_out(now, id),
                Owner::Server(id) => self.server_due(now, id),
                Owner::Grace(id) => self.grace_over(id),
                Owner::Session(id) => self.session_due(now, id),
                Owner::Standing(id) => self.standing_due(now, id),
                Owner::Quiet(id) => self.quiet_due(now, id),
                Owner::Lists(id) => self.lists_ring(now, id),
                Owner::Listen(attempt) => self.listen_due(attempt),
                Owner::Tasks => self.tasks_due(now),
                Owner::Key(no) => self.key_due(no),
                Owner::Wait(no) => self.waits_due(now, no),
                Owner::Resumes => self.resumes_due(now),
                Owner::Throttle(no) => self.throttles.is_due(no),
                Owner::Gather(no) => self.gathered_long_enough(now, no),
                Owner::Holds => self.holds_due(now),
                Owner::Relays => self.relays_due(now),
                Owner::Callbacks => self.callbacks_due(),
                Owner::Ending => self.ending_due(now),
            }
        }
    }

    fn next_due(&mut self, now: Mono) -> Option<Owner> {
        let mut timers = std::mem::take(&mut self.timers);
        let due = timers.pop_due(now, |owner, at| armed(self, owner) == Some(at));
        self.timers = timers;
        due
    }

    /// Now and then throws out the timers of what is settled.
    pub(super) fn tidy(&mut self) {
        if self.timers.is_cluttered() {
            self.sweep_timers();
        }
    }

    #[cold]
    fn sweep_timers(&mut self) {
        let mut timers = std::mem::take(&mut self.timers);
        timers.sweep(|owner, at| armed(self, owner) == Some(at));
        self.timers = timers;
    }

    fn call_due(&mut self, now: Mono, id: CallId) {
        let Some(server_id) = self.calls.get(id).map(|call| call.request.server) else { return };
        let Some(server) = self.servers.get(&server_id) else { return };
        match self.calls.ring(now, id, &server.clock) {
            None => {}
            Some(Ring::Slow) => self.tell_of_slow(id),
            Some(Ring::Retry) if self.holds.has(id) => self.hold_is_over(now, id),
            Some(Ring::Retry) => return self.try_again(now, id),
            Some(Ring::Reconnect) => return self.reconnect(now, id),
            Some(Ring::Poll) => self.poll_task(now, id),
            Some(Ring::Task) => self.task_is_due(now, id),
            Some(Ring::Stream(way)) => {
                let patience = self.stream_patience(way);
                reached!(STREAM_HEAD if patience == Some(limits::STREAM_HEAD));
                reached!(BEGIN_STREAM if patience == Some(limits::BEGIN_STREAM));
                self.stream_is_due(way);
            }
            Some(Ring::Limits(due)) => match due {
                Due::End(reached) => return self.limit_reached(now, id, reached),
                Due::LastSample => return self.last_sample(now, server_id, id),
                Due::FirstSample => {
                    self.first_sample(now, server_id, id);
                    self.keep_alive(now, id);
                }
                Due::Nothing => self.keep_alive(now, id),
            },
        }
        self.arm_call(now, id);
    }

    /// A sample taken a moment ago serves again.
    fn recent_sample(&self, now: Mono, server: ServerId, call: CallId) -> Option<Sample> {
        let sample = self.servers.get(&server)?.sample?;
        let age = self.calls.get(call)?.deadline.sample_age();
        (now.since(sample.at) <= age).then_some(sample)
    }

    fn first_sample(&mut self, now: Mono, server: ServerId, id: CallId) {
        match self.recent_sample(now, server, id) {
            Some(sample) => self.calls.keep_sample(id, sample),
            None => self.ask_for_sample(server, id),
        }
    }

    fn last_sample(&mut self, now: Mono, server: ServerId, id: CallId) {
        match self.recent_sample(now, server, id) {
            Some(sample) => self.judge(now, id, Some(sample)),
            None => {
                self.ask_for_sample(server, id);
                // The sample comes back at once; if it does not, the question is put again.
                self.calls.look_again_at(&mut self.timers, id, now + limits::SAMPLE_SHARED);
            }
        }
    }

    fn ask_for_sample(&mut self, id: ServerId, call: CallId) {
        self.servers.is_judged(id, call);
        self.sample(id);
    }

    pub(super) fn sampled(&mut self, now: Mono, id: ServerId, sample: Option<Sample>) {
        for call in self.servers.sampled(id, sample) {
            self.judge(now, call, sample);
        }
        self.watched(now, id, sample);
    }

    /// Decides about a call by a sample: keeps it for later, lets the call go on, or ends it.
    fn judge(&mut self, now: Mono, id: CallId, sample: Option<Sample>) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(server) = self.servers.get(&call.request.server) else { return };
        if let Some(Judgement::TimedOut(limit)) =
            self.calls.judge(now, id, sample, &server.clock, server.heard)
        {
            return self.limit_reached(now, id, Reached::Timeout(limit));
        }
        self.arm_call(now, id);
    }

    /// Tells a client that has heard nothing for a while that its call lives.
    fn keep_alive(&mut self, now: Mono, id: CallId) {
        if !self.calls.keep_alive_is_due(now, id) {
            return;
        }
        let Some(call) = self.calls.get(id) else { return };
        if let Some(server) =
            self.servers.get(&call.request.server).filter(|_| planted!(self, CountsOwnKeepAlive))
        {
            self.calls.restart_timeout(now, id, &server.clock);
        }
        let Some(call) = self.calls.get(id) else { return };
        // A client that does not read would only find a heap of them later.
        if self.clients.get(&call.request.client).is_none_or(|client| client.congested) {
            return;
        }
        if let Way::Ticket(no) = call.request.way
            && !self.is_heard(no)
        {
            return;
        }
        let Some((value, total)) = self.calls.next_keep_alive(id) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let Some(token) = &call.request.token else { return };
        let no = call.request.no;
        let name = format!("`{}`", cut(call.name(), limits::NAME));
        let waits_for = match call.state {
            State::Waiting(_) if call.waits_at().is_some() => Some("turn"),
            State::Waiting(_) => Some("server"),
            _ => None,
        };
        let sign = call.sign.map(|sign| now.since(sign));
        let words = match self.holds.get(id) {
            Some(hold) => progress::words_of_hold(&name, now.since(hold.since)),
            None => progress::words(&name, call.age(now), sign, waits_for),
        };
        let message = keep_alive_message(token, value, total, &words);
        let (client, way, message) = (call.request.client, call.request.way, Outgoing::plain(message));
        if let Some(no) = no {
            self.step_of(no, What::KeepAlive);
        }
        match self.calls.get(id).and_then(|call| self.way_of_keep_alive(call)) {
            Some(Way::Stream(stream)) => self.keep_stream_alive(stream, &message),
            _ => self.tell_progress(client, way, message),
        }
    }

    /// Where a keep-alive is heard: that of a task wherever its client hears what belongs to no request.
    fn way_of_keep_alive(&self, call: &Call) -> Option<Way> {
        match self.real_way(call).1 {
            Way::Ticket(no) if !self.tickets.is_resumable(no) => self.way_to(call.request.client),
            way => Some(way),
        }
    }
}

/// Progress of our own making.
fn keep_alive_message(token: &JsonId, value: f64, total: Option<f64>, words: &str) -> Vec<u8> {
    let number = |value: f64| serde_json::to_vec(&value).unwrap_or_default();
    let mut message =
        br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"#.to_vec();
    message.extend_from_slice(token.patch().as_slice());
    message.extend_from_slice(b",\"progress\":");
    message.extend_from_slice(&number(value));
    if let Some(total) = total {
        message.extend_from_slice(b",\"total\":");
        message.extend_from_slice(&number(total));
    }
    message.extend_from_slice(b",\"message\":");
    message.extend_from_slice(&json_text(words));
    message.extend_from_slice(br#","_meta":{"dev.outlast/keepAlive":true}}}"#);
    message
}

/// Where an owner's timer stands.
fn armed(engine: &Engine, owner: Owner) -> Option<Mono> {
    match owner {
        Owner::Call(id) => engine.calls.armed(id),
        Owner::Ask(id) => engine.asks.armed(id),
        Owner::Server(id) => engine.servers.get(&id)?.armed,
        Owner::Grace(id) => engine.servers.get(&id)?.grace_armed,
        Owner::Standing(id) => engine.servers.get(&id)?.standing_armed,
        Owner::Quiet(id) => engine.servers.get(&id)?.quiet_armed,
        Owner::Lists(id) => engine.merged.lists_armed(id),
        Owner::Session(id) => engine.clients.session_armed(id),
        Owner::Listen(attempt) => engine.listens.armed(attempt),
        Owner::Tasks => engine.tickets.upkeep_armed(),
        Owner::Key(no) => engine.keys.armed(no),
        Owner::Wait(no) => engine.tickets.armed(no),
        Owner::Resumes => engine.tickets.resumes_armed(),
        Owner::Gather(no) => engine.merged.armed(no),
        Owner::Holds => engine.holds.armed(),
        Owner::Relays => engine.relays.armed(),
        Owner::Callbacks => engine.callbacks.armed(),
        Owner::Throttle(no) => engine.throttles.armed(no),
        Owner::Ending => match &engine.ending {
            Some(ending) => ending.armed,
            None => engine.leaving.as_ref()?.armed,
        },
    }
}
