//! What must hold between any two events. The simulator and the fuzzer ask all the time.

use super::Engine;
use crate::calls::{Call, State};
use crate::clients::session::{Session, Stream};
use crate::clients::{Client, Door, Entry, Open, Role, Way};
use crate::config::Transport;
use crate::id::{CallId, ClientId, ServerId, StreamId};
use crate::servers::{Alarm, Life, Server};
use std::collections::BTreeMap;

type Checked = Result<(), String>;

fn must(holds: bool, broken: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(broken()) }
}

impl Engine {
    /// Checks what must hold between any two events.
    pub fn check_invariants(&self) -> Checked {
        self.calls.check()?;
        for (id, call) in self.calls.iter() {
            self.check_call(id, call)?;
        }
        for (id, client) in self.clients.iter() {
            self.check_client(*id, client)?;
        }
        self.clients.check()?;
        for (id, stream) in self.clients.streams() {
            self.check_stream(id, stream)?;
        }
        for (id, server) in self.servers.iter() {
            self.check_server(*id, server)?;
        }
        self.check_names()?;
        self.check_keys()?;
        self.tickets.check()?;
        self.callbacks.check()?;
        self.merged.check()?;
        self.check_counts()
    }

    /// Checks that nothing stays behind when every client has left and every server has been let go of.
    pub fn check_nothing_is_left(&self) -> Checked {
        // Taken apart without a rest: a new machine does not compile here until it says what it holds.
        let Engine {
            calls,
            clients,
            servers,
            tickets,
            keys,
            holds,
            callbacks,
            merged,
            throttles,
            relays,
            bounded: _,
            selective: _,
            adapts: _,
            listens,
            asks,
            ledger,
            steps: _,
            traces,
            timers,
            actions: _,
            config: _,
            confirmed: _,
            tied: _,
            at: _,
            wall: _,
            chance: _,
            leaving: _,
            ending: _,
            ended: _,
        } = self;
        let left = [
            ("calls", calls.len()),
            ("attempts", calls.attempts()),
            ("kept bytes", calls.kept_bytes()),
            ("clients", clients.len()),
            ("sessions", clients.sessions()),
            ("streams", clients.streams().count()),
            ("exchanges", clients.exchanges()),
            ("calls in flight", clients.in_flight().len()),
            ("kept events", clients.kept_events()),
            ("servers", servers.len()),
            ("shared servers", servers.shared()),
            ("tickets", tickets.len()),
            ("orphans", tickets.orphans()),
            ("keys", keys.len()),
            ("calls that wait for a person", holds.len()),
            ("callbacks on their way", callbacks.len()),
            ("bytes of keys", keys.bytes()),
            ("servers with lists", merged.servers()),
            ("requests that wait for lists", merged.waiting()),
            ("calls that are counted", throttles.in_flight()),
            ("calls that wait for their turn", throttles.waiting()),
            ("streams of others that are read", relays.len()),
            ("subscriptions", listens.len()),
            ("questions", asks.len()),
            ("submissions", ledger.submissions()),
            ("lookups", ledger.lookups()),
            ("calls in traces", traces.len()),
            ("timers", timers.len() - usize::from(self.looks_for_orphans_at_rest())),
        ];
        let left = left.iter().filter(|(_, count)| *count > 0);
        let left: Vec<String> = left.map(|(what, count)| format!("{count} {what}")).collect();
        must(left.is_empty(), || format!("left behind: {}", left.join(", ")))
    }

    fn check_call(&self, id: CallId, call: &Call) -> Checked {
        must(call.armed.is_some() || self.ended, || format!("call {id:?} has no timer"))?;
        let alone = matches!(call.request.way, Way::Ticket(_) | Way::Nowhere);
        must(alone || self.clients.contains_key(&call.request.client), || {
            format!("call {id:?} outlived its client")
        })?;
        let Some(server) = self.servers.get(&call.request.server) else {
            return Err(format!("call {id:?} outlived its server"));
        };
        must(call.waits_at().is_none() || self.throttles.holds(id), || {
            format!("call {id:?} waits for a turn that does not come")
        })?;
        match call.attempt() {
            Some(attempt) => {
                // A stream of a remote server lives on while no new connection can be made.
                let there =
                    server.transport == Transport::Http || matches!(server.life, Life::Starting | Life::Up);
                must(there || self.ending.is_some(), || {
                    format!("attempt {attempt:?} waits for a process that is {:?}", server.life)
                })
            }
            None if call.is_joined() => Ok(()),
            None if matches!(call.state, State::Paused) => {
                must(matches!(call.request.way, Way::Ticket(_)), || format!("call {id:?} waits for nobody"))
            }
            None if call.server_task().is_some() => {
                must(server.followed.values().any(|joined| *joined == id), || {
                    format!("the task of call {id:?} is not known")
                })
            }
            None => must(call.retry_at.is_some() || server.waiting.contains(&id), || {
                format!("call {id:?} waits in no queue")
            }),
        }
    }

    fn check_client(&self, id: ClientId, client: &Client) -> Checked {
        for open in client.all_open() {
            let lives = match open {
                Open::Call(id) => self.calls.get(id).is_some(),
                Open::Subscription(attempt) => self.listens.contains(attempt),
                Open::Wait(no) => self.tickets.get(no).is_some(),
                Open::Look(number) => self.ledger.looks_up(number),
                Open::Key(no) => self.keys.is_awaited_by(no, id),
                Open::Gather(no) => self.merged.is_waited_for(no),
            };
            must(lives, || format!("{open:?} outlived what it stands for"))?;
        }
        must(self.sees_what_there_is(id), || format!("{id:?} sees tools that are not there, or not all"))?;
        let asleep = client.session().is_some_and(|session| session.asleep);
        let knows = |server: ServerId| self.servers.get(&server).is_some_and(|s| s.clients.contains(&id));
        let (served, known) = (client.servers().count() > 0, client.servers().all(knows));
        let new = matches!(client.door, Door::Line) && client.entry == Entry::Merged;
        must((served != asleep || new) && known, || {
            format!("{id:?} is asleep: {asleep}, has servers: {served}, known to all of them: {known}")
        })?;
        match &client.door {
            Door::Line => Ok(()),
            Door::Exchange(stream) => must(self.clients.stream(*stream).is_some(), || {
                format!("{id:?} has no stream, and nobody to answer")
            }),
            Door::Session(session) => self.check_session(id, session),
        }
    }

    fn check_session(&self, id: ClientId, session: &Session) -> Checked {
        let named = self.clients.session_named(&session.id) == Some(id);
        must(named != session.disowned, || {
            format!("{id:?} is another process's: {}, found by its name: {named}", session.disowned)
        })?;
        must(session.streams.contains(&session.standing), || format!("{id:?} has no standing stream"))?;
        must(session.armed.is_some() || self.ended, || format!("the session of {id:?} never ends"))?;
        let mut kept = 0;
        for stream in session.streams.iter() {
            let Some(stream) = self.clients.stream(*stream).filter(|stream| stream.client == id) else {
                return Err(format!("{id:?} has a stream that is not its own: {stream:?}"));
            };
            kept += stream.kept_bytes();
        }
        must(kept == session.kept_bytes, || {
            format!("{id:?} keeps {kept} bytes and says {}", session.kept_bytes)
        })
    }

    fn check_stream(&self, id: StreamId, stream: &Stream) -> Checked {
        let Some(client) = self.clients.get(&stream.client) else {
            return Err(format!("{id:?} outlived its client"));
        };
        let known = match &client.door {
            Door::Line => false,
            Door::Exchange(own) => *own == id,
            Door::Session(session) => session.streams.contains(&id),
        };
        must(known, || format!("{id:?} is not known to its client"))
    }

    fn check_server(&self, id: ServerId, server: &Server) -> Checked {
        for client in &server.clients {
            let uses = self.clients.get(client).is_some_and(|client| client.uses(id));
            must(uses, || format!("{client:?} left {id:?} and is counted there"))?;
        }
        let waits = |call: &CallId| self.calls.get(*call).is_some_and(|call| call.attempt().is_none());
        must(server.waiting.iter().all(waits), || format!("what waits for {id:?} does not wait"))?;
        let woken = server.life != Life::Asleep || server.waiting.is_empty() || self.ending.is_some();
        must(woken, || format!("calls wait for {id:?}, which sleeps on"))?;
        let needed = !server.is_unused() || !self.config.manner.serves() || self.ending.is_some();
        let leaves = server.life == Life::Leaving || server.alarm == Some(Alarm::Idle);
        // Whether it starts is about to be told, and sets the next timer.
        let leaves = leaves || server.life == Life::Restarting;
        // One that closed its output was killed, if it did not end by itself, and its end is about to be told.
        let leaves = leaves || server.output_closed;
        // One that was killed ends as soon as the system lets it.
        let leaves = leaves || server.life == Life::Stopping;
        must(needed || leaves || server.armed.is_some(), || {
            format!("nobody needs {id:?}, which is {:?} and does not end", server.life)
        })
    }

    /// Whatever has a name leads to something that knows it.
    fn check_names(&self) -> Checked {
        self.servers.check()?;
        for (id, ask) in self.asks.iter() {
            let asked = self.clients.contains_key(&ask.client) || matches!(ask.way, Way::Ticket(_));
            let there = asked && self.servers.contains_key(&ask.server);
            must(there, || format!("{id:?} outlived whom it is about"))?;
        }
        for (attempt, listen) in self.listens.iter() {
            let whose = match listen.role {
                Role::Whole => self.servers.contains_key(&listen.server),
                Role::Merged(_) => true,
                Role::Part { of, .. } => {
                    self.listens.wanted(of).is_some() && self.servers.contains_key(&listen.server)
                }
            };
            let there = self.clients.contains_key(&listen.client) && whose;
            must(there, || format!("the subscription {attempt:?} outlived whom it is about"))?;
        }
        Ok(())
    }

    fn check_counts(&self) -> Checked {
        let calls = || self.calls.ids().filter_map(|id| self.calls.get(id));
        let mut in_flight = BTreeMap::new();
        let counts = |call: &&Call| !matches!(call.request.way, Way::Ticket(_) | Way::Nowhere);
        for client in calls().filter(counts).filter_map(|call| self.clients.get(&call.request.client)) {
            if !matches!(client.door, Door::Line) {
                *in_flight.entry(client.principal.clone()).or_default() += 1;
            }
        }
        for payer in self.tickets.values().filter_map(|task| task.payer.as_ref()) {
            *in_flight.entry(payer.0.clone()).or_default() += 1;
        }
        let told = calls().filter_map(|call| call.request.no);
        let traced = told.filter(|no| self.traces.has(*no)).count();
        must(traced == self.traces.len(), || {
            format!("{traced} open calls are in traces, and {} are counted", self.traces.len())
        })?;
        let passages: usize = calls().filter_map(|call| Some(call.passage.as_ref()?.passed())).sum();
        must(passages == self.throttles.in_flight(), || {
            format!("{passages} throttles were passed, and {} are counted", self.throttles.in_flight())
        })?;
        must(in_flight == *self.clients.in_flight(), || {
            format!("in flight are {in_flight:?}, and {:?} are counted", self.clients.in_flight())
        })?;
        let owners = self.calls.len()
            + self.asks.len()
            + 4 * self.servers.len()
            + self.clients.sessions()
            + self.listens.len()
            + self.keys.len()
            + self.merged.waiting()
            + self.merged.servers()
            + self.throttles.len()
            + self.tickets.len()
            + 4;
        must(self.timers.len() <= owners, || "a timer outlived its owner".into())
    }
}
