//! What is due: limits, keep-alive, samples, and the server's own timers.

use super::Engine;
use crate::action::Action;
use crate::call::deadline::{Due, Reached};
use crate::call::{State, progress};
use crate::client::Way;
use crate::error::{cut, json_text};
use crate::id::{CallId, ServerId};
use crate::life::Sample;
use crate::limits;
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
                Owner::Listen(attempt) => self.listen_due(attempt),
                Owner::Tasks => self.tasks_due(now),
                Owner::Joint(no) => self.joint_due(no),
                Owner::Wait(no) => self.waits_due(now, no),
                Owner::Resumes => self.resumes_due(now),
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
        let Some(call) = self.calls.get_mut(id) else { return };
        call.armed = None;
        let Some(server) = self.servers.get(&call.request.server) else { return };
        let server_id = call.request.server;
        if matches!(call.state, State::Paused) {
            // Only `max` runs while its client is waited for.
            call.deadline.sign(now, &server.clock);
        }
        if call.retry_at.is_some_and(|at| at <= now) {
            return self.try_again(now, id);
        }
        if call.reconnect_at.is_some_and(|at| at <= now) {
            return self.reconnect(now, id);
        }
        if call.joined().is_some_and(|joined| joined.poll_at <= now) {
            self.poll_task(now, id);
            return self.arm_call(now, id);
        }
        if call.task_at.is_some_and(|at| at <= now) {
            self.task_is_due(now, id);
            return self.arm_call(now, id);
        }
        if call.stream_at.is_some_and(|at| at <= now) {
            call.stream_at = None;
            let way = call.request.way;
            self.stream_is_due(way);
            return self.arm_call(now, id);
        }
        match call.deadline.due(now, &server.clock) {
            Due::End(reached) => return self.limit_reached(now, id, reached),
            Due::FirstSample => self.first_sample(now, server_id, id),
            Due::LastSample => return self.last_sample(now, server_id, id),
            Due::Nothing => {}
        }
        self.keep_alive(now, id);
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
            Some(sample) => {
                if let Some(call) = self.calls.get_mut(id) {
                    call.deadline.keep_sample(sample);
                }
            }
            None => self.ask_for_sample(server, id),
        }
    }

    fn last_sample(&mut self, now: Mono, server: ServerId, id: CallId) {
        match self.recent_sample(now, server, id) {
            Some(sample) => self.judge(now, id, Some(sample)),
            None => {
                self.ask_for_sample(server, id);
                // The sample comes back at once; if it does not, the question is put again.
                if let Some(call) = self.calls.get_mut(id) {
                    let at = now + limits::SAMPLE_SHARED;
                    self.timers.set(Owner::Call(id), &mut call.armed, Some(at));
                }
            }
        }
    }

    fn ask_for_sample(&mut self, id: ServerId, call: CallId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.judged.push(call);
        if !server.sampling {
            server.sampling = true;
            self.act(Action::Sample(id));
        }
    }

    pub(super) fn sampled(&mut self, now: Mono, id: ServerId, sample: Option<Sample>) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.sampling = false;
        server.sample = sample.or(server.sample);
        for call in std::mem::take(&mut server.judged) {
            self.judge(now, call, sample);
        }
        self.watched(now, id, sample);
    }

    /// Decides about a call by a sample: keeps it for later, lets the call go on, or ends it.
    fn judge(&mut self, now: Mono, id: CallId, sample: Option<Sample>) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some(server) = self.servers.get(&call.request.server) else { return };
        match call.deadline.due(now, &server.clock) {
            Due::FirstSample => {
                if let Some(sample) = sample {
                    call.deadline.keep_sample(sample);
                }
            }
            Due::LastSample => {
                let first = call.deadline.first_sample();
                let worked = first.zip(sample).is_some_and(|(first, last)| last.shows_life_since(first));
                // What it said since then needs no samples.
                let spoke = server.heard.is_some_and(|heard| heard > call.deadline.sign_at());
                if worked || spoke {
                    call.sign = Some(now);
                    call.deadline.sign(now, &server.clock);
                } else if let Some(limit) = call.deadline.timeout() {
                    return self.limit_reached(now, id, Reached::Timeout(limit));
                }
            }
            Due::Nothing | Due::End(_) => {}
        }
        self.arm_call(now, id);
    }

    /// Tells a client that has heard nothing for a while that its call lives.
    fn keep_alive(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        if call.keep_alive_at().is_none_or(|at| now < at) {
            return;
        }
        call.heard = now;
        if let Some(server) =
            self.servers.get(&call.request.server).filter(|_| planted!(self, CountsOwnKeepAlive))
        {
            call.deadline.sign(now, &server.clock);
        }
        // A client that does not read would only find a heap of them later.
        if self.clients.get(&call.request.client).is_none_or(|client| client.congested) {
            return;
        }
        if let Way::Ticket(no) = call.request.way
            && !self.is_heard(no)
        {
            return;
        }
        let Some(call) = self.calls.get_mut(id) else { return };
        let Some((value, total)) = call.progress.keep_alive() else { return };
        let Some(token) = &call.request.token else { return };
        let name = format!("`{}`", cut(call.name(), limits::NAME));
        let waiting = matches!(call.state, State::Waiting(_));
        let sign = call.sign.map(|sign| now.since(sign));
        let words = progress::words(&name, call.age(now), sign, waiting);
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
        message.extend_from_slice(&json_text(&words));
        message.extend_from_slice(br#","_meta":{"dev.outlast/keepAlive":true}}}"#);
        let (client, way) = (call.request.client, call.request.way);
        self.tell_progress(client, way, Outgoing::plain(message));
    }
}

/// Where an owner's timer stands.
fn armed(engine: &Engine, owner: Owner) -> Option<Mono> {
    match owner {
        Owner::Call(id) => engine.calls.get(id)?.armed,
        Owner::Ask(id) => engine.asks.get(&id)?.armed,
        Owner::Server(id) => engine.servers.get(&id)?.armed,
        Owner::Grace(id) => engine.servers.get(&id)?.grace_armed,
        Owner::Standing(id) => engine.servers.get(&id)?.standing_armed,
        Owner::Session(id) => engine.clients.get(&id)?.session()?.armed,
        Owner::Listen(attempt) => engine.subscriptions.get(&attempt)?.armed,
        Owner::Tasks => engine.upkeep.armed,
        Owner::Joint(no) => engine.joints.armed(no),
        Owner::Wait(no) => engine.tasks.get(&no)?.armed,
        Owner::Resumes => engine.resumes_armed,
        Owner::Ending => engine.ending.as_ref()?.armed,
    }
}
