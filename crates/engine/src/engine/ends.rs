//! How a call, a client and a server end: one function each, and the only one.
//!
//! | what ends | who is told, in this order |
//! |---|---|
//! | a call | *calls* (attempt, timer, what was kept), *holds* (the question to a person), *servers* (its task there; its place in the queue), *clients* (its id), *keys* (who shares it), counts of its principal and of what holds its server, *throttles* (its turn), then whoever waits for the answer |
//! | a client | *calls*, *tickets*, *ledger*, *keys*, *listens* (what it has open, each given up), *asks* (what it was asked), *relays* (what it reads of other processes), *clients* (streams, name, timer), *servers* (who needs it no more) |
//! | a server | *asks* (what it asked), *merged* (what it lists), *servers* (name, timers, memory) ; its calls and subscriptions have ended or moved before |
//!
//! What is open is matched without a default, and what a call leaves is taken apart without a rest, so that whoever
//! adds to either is told here by the compiler. `Engine::check_nothing_is_left` names every machine in the same way.

use super::Engine;
use super::durable::About;
use crate::action::Action;
use crate::calls::Ended;
use crate::clients::{Client, Open};
use crate::id::{CallId, ClientId, ServerId};
use crate::method::Method;
use crate::step::{Outcome, What};
use crate::time::Mono;
use crate::wire::Outgoing;

/// Why nobody waits for a call any more.
const HUNG_UP: &str = "the client hung up";

// A call.
impl Engine {
    /// Ends a call; with an answer unless the client gave it up.
    pub(super) fn settle(&mut self, id: CallId, answer: Option<Outgoing>) {
        if planted!(self, LeaksTimers) {
            let at = self.at + std::time::Duration::from_secs(9);
            self.timers.set(crate::timers::Owner::Call(id), &mut None, Some(at));
        }
        let Some(ended) = self.calls.end(&mut self.timers, id) else { return };
        let Ended { request, followed, queued, holds, passage, keyed } = ended;
        self.tell_of_end(&request, answer.as_ref());
        if let Some(joined) = followed {
            self.leave_task(request.server, id, &joined);
        }
        self.hold_ends(id);
        self.clients.closes(request.client, &request.id, Open::Call(id));
        if self.servers.call_is_over(request.server, id, queued) {
            self.ended_where_it_changes(request.server);
        }
        let shared = keyed.and_then(|(no, keyed)| self.settle_key(no, id, &request, keyed, answer.as_ref()));
        self.count_out(&request, holds);
        if let Some(passage) = passage {
            self.passage_is_over(id, &passage);
        }
        match answer {
            Some(answer) => self.reply(request.client, request.way, Some(&request.id), answer),
            None => self.settled_without_answer(request.client, request.way),
        }
        if let Some(shared) = shared {
            self.settle_joined(shared);
        }
        if self.ending.is_some() {
            self.drained();
        }
    }

    /// Gives a call up: its server is told, and nobody gets an answer.
    pub(super) fn give_up(&mut self, id: CallId, why: &str) {
        let Some(call) = self.calls.get(id) else { return };
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        // Of all requests only `initialize` must not be cancelled.
        let cancels = call.request.method != Method::Initialize;
        let left = why == HUNG_UP;
        self.ends_as(id, || if left { Outcome::Left } else { Outcome::Cancelled });
        if self.leave_to_others(id) {
            return;
        }
        if attempt.is_some() && cancels {
            self.step(id, || What::CancelAsked { by: why.into() });
        }
        // Before its server learns that nobody needs it any more.
        match attempt {
            Some(attempt) if cancels => self.cancel_attempt(server, attempt, modern, text, why),
            Some(attempt) => self.abandon(server, attempt),
            None => {}
        }
        self.settle(id, None);
    }
}

// A client.
impl Engine {
    /// A client ends its session.
    pub(super) fn end_session(&mut self, now: Mono, id: ClientId) {
        if planted!(self, KeepsSessions) {
            return;
        }
        let name = self.clients.get(&id).and_then(Client::session).map(|session| session.id.clone());
        if let Some(name) = name {
            self.tell_former_owners(id, &About::Ended);
            self.forget_stored_session(id, &name);
        }
        self.end_client(now, id);
    }

    /// Ends a client and everything of it.
    pub(super) fn end_client(&mut self, now: Mono, id: ClientId) {
        self.cancel_everything(id);
        self.forget_repeats_of(id);
        self.drop_asks_by(now, id);
        self.end_relays_of(id);
        let session = self.clients.get(&id).and_then(Client::session);
        let streams: Vec<_> = session.iter().flat_map(|session| session.streams.iter()).copied().collect();
        for stream in streams {
            self.close_stream(stream);
        }
        if let Some(client) = self.clients.end(&mut self.timers, id) {
            client.servers().for_each(|server| self.leave(now, id, server));
        }
    }

    /// Cancels what a client has open, because nobody waits for it any more.
    fn cancel_everything(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(&id) else { return };
        let mut open: Vec<Open> = client.all_open().collect();
        open.sort_by_key(order);
        for open in open {
            match open {
                Open::Call(call) => self.give_up(call, HUNG_UP),
                Open::Wait(no) => self.forget_waiter(id, no),
                Open::Look(number) => self.forget_look(id, number),
                Open::Key(no) => self.forget_asking_for_key(id, no),
                Open::Gather(no) => self.forget_gathered(id, no),
                Open::Subscription(attempt) => {
                    let Some(listen) = self.close_subscription(attempt) else { continue };
                    if !listen.is_ours_alone() {
                        self.cancel_attempt(listen.server, attempt, true, listen.id.is_text(), HUNG_UP);
                    }
                }
            }
        }
        // A call of its own that was joined to another may have taken that one's place.
        let has_calls = |client: &Client| client.all_open().any(|open| matches!(open, Open::Call(_)));
        if self.clients.get(&id).is_some_and(has_calls) {
            self.cancel_everything(id);
        }
    }
}

/// In the order in which things were opened, of each kind, so that the same events give the same actions.
fn order(open: &Open) -> (u8, u64) {
    match open {
        Open::Call(id) => (0, u64::from(id.slot)),
        Open::Subscription(attempt) => (1, attempt.0),
        Open::Wait(no) => (2, no.0),
        Open::Look(number) => (3, *number),
        Open::Key(no) => (4, no.0.get()),
        Open::Gather(no) => (5, no.0),
    }
}

// A server.
impl Engine {
    /// A server is let go of: nobody needs it, and there is no process of it.
    pub(super) fn end_server(&mut self, id: ServerId) {
        // Whoever waits for a task here may be a client of another server.
        self.drop_asks_of(self.at, id);
        self.merged.forget(&mut self.timers, id);
        self.servers.end(&mut self.timers, id);
        self.act(Action::LetGo(id));
        self.start_eager(self.at);
    }
}
