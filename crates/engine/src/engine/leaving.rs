//! How one of several replicas ends: first its clients go to the others, then it stops as any service does.
//!
//! | since the signal | what happens |
//! |---|---|
//! | at once | `/readyz` says no; everything is taken as before, until every balancer has looked ([`limits::LEAVE`]) |
//! | then | no connection is accepted any more, and whoever is refused one asks another replica. Connections that are open serve on, and each ends with its next response. Streams without a call end, and their clients open them elsewhere |
//! | when the last connection is gone, or `drain` is over | the service stops (`ending.rs`) |
//!
//! A request that came this far is answered here: it may have begun to act, and nobody else could know. What is left
//! when `drain` is over is failed, but for calls with a ticket that their next owner can ask the server for, make again,
//! or put to a person again: they stay open in the store. Our lease is given back at the very end, and then they are
//! taken over at once.

use super::Engine;
use crate::action::{Action, Note};
use crate::calls::orphaned::Place;
use crate::clients::{Client, Door, Open, Way};
use crate::config::Transport;
use crate::id::{CallId, ClientId, StreamId, TaskNo};
use crate::limits;
use crate::time::Mono;
use crate::timers::Owner;
use std::time::Duration;

/// A replica whose clients go to others.
#[derive(Debug)]
pub(super) struct Leaving {
    /// No connection is accepted any more, and until then calls may finish.
    closed: Option<Mono>,
    pub(super) armed: Option<Mono>,
}

impl Engine {
    /// Whether a signal begins a farewell; the next one does not wait for it.
    pub(super) fn begins_to_leave(&mut self, now: Mono) -> bool {
        if !self.config.replicated || self.leaving.is_some() {
            return false;
        }
        self.note(Note::Ending { why: "a signal came", calls: self.calls.len() + self.unsent() });
        self.leaving = Some(Leaving { closed: None, armed: None });
        self.wait_to_leave(now + limits::LEAVE);
        true
    }

    fn wait_to_leave(&mut self, until: Mono) {
        if let Some(leaving) = &mut self.leaving {
            self.timers.set(Owner::Ending, &mut leaving.armed, Some(until));
        }
    }

    /// The time of a step is over.
    pub(super) fn leaving_due(&mut self, now: Mono) {
        let Some(leaving) = &mut self.leaving else { return };
        leaving.armed = None;
        if leaving.closed.is_some() {
            return self.stop_serving(now);
        }
        reached!(LEAVE if true);
        let until = now + self.config.drain;
        leaving.closed = Some(until);
        self.act(Action::CloseDoor);
        self.wait_to_leave(until);
        self.end_idle_streams(now);
    }

    /// The last connection is gone since no more are accepted.
    pub(super) fn door_is_empty(&mut self, now: Mono) {
        let closed = self.leaving.as_ref().is_some_and(|leaving| leaving.closed.is_some());
        if closed && self.ending.is_none() {
            self.stop_serving(now);
        }
    }

    /// How long calls may finish, of which a farewell has taken its part.
    pub(super) fn drain_left(&mut self, now: Mono) -> Duration {
        let Some(leaving) = &mut self.leaving else { return self.config.drain };
        self.timers.set(Owner::Ending, &mut leaving.armed, None);
        leaving.closed.map_or(self.config.drain, |until| until.since(now))
    }

    /// Streams that no call needs would be there for ever.
    fn end_idle_streams(&mut self, now: Mono) {
        let standing = |client: &Client| client.session().map(|session| session.standing);
        let standing: Vec<StreamId> = self.clients.values().filter_map(standing).collect();
        standing.into_iter().for_each(|stream| self.end_standing(stream));
        self.end_relays();
        let listens = |client: &Client| {
            let only = client.all_open().all(|open| matches!(open, Open::Subscription(_)));
            matches!(client.door, Door::Exchange(_)) && client.is_busy() && only
        };
        let mut listeners: Vec<(ClientId, StreamId)> = Vec::new();
        for (id, client) in self.clients.iter().filter(|(_, client)| listens(client)) {
            if let Door::Exchange(stream) = client.door {
                listeners.push((*id, stream));
            }
        }
        for (client, stream) in listeners {
            self.close_stream(stream);
            self.end_client(now, client);
        }
    }

    /// Calls with a ticket that another replica can go on with end here without a word; in the store they are open.
    pub(super) fn leave_calls_to_others(&mut self, now: Mono) {
        if !self.config.replicated || planted!(self, FailsWhatCouldGoOn) {
            return;
        }
        let open: Vec<CallId> = self.calls.ids().collect();
        for id in open {
            let Some(Way::Ticket(no)) = self.calls.get(id).map(|call| call.request.way) else { continue };
            if self.can_go_on_elsewhere(no) {
                self.leave_call_to_others(now, id, no);
            }
        }
    }

    fn leave_call_to_others(&mut self, now: Mono, id: CallId, no: TaskNo) {
        let Some(call) = self.calls.get(id) else { return };
        let (server, modern, text, attempt) = (call.request.server, call.modern, call.text, call.attempt());
        // Whoever has joined it has no ticket.
        let failure = self.stopped(now, call);
        self.fail_joined(id, &failure);
        let stays = self.place_beyond_us(no).is_some();
        match attempt {
            Some(attempt) if stays => self.abandon(server, attempt),
            // It is made again, by a process that cannot hear how this one ends.
            Some(attempt) => self.cancel_attempt(server, attempt, modern, text, "outlast is being stopped"),
            None => {}
        }
        if stays {
            self.calls.let_task_go(id);
        }
        let waiters = self.drop_task(no).map(|task| task.waiters).unwrap_or_default();
        waiters.iter().for_each(|waiter| self.clients.closes(waiter.client, &waiter.id, Open::Wait(no)));
        self.settle(id, None);
    }

    fn can_go_on_elsewhere(&self, no: TaskNo) -> bool {
        let Some(task) = self.tickets.get(no).filter(|task| task.state.is_open() && task.theirs.is_none())
        else {
            return false;
        };
        task.body.held || task.body.repeatable.is_some() || self.place_beyond_us(no).is_some()
    }

    /// Where a call is at a server that does not end with us.
    fn place_beyond_us(&self, no: TaskNo) -> Option<Place> {
        let task = self.tickets.get(no)?;
        let definition = self.config.definition(self.definition_called(&task.server)?)?;
        self.place_at_server(no).filter(|_| definition.transport == Transport::Http)
    }
}
