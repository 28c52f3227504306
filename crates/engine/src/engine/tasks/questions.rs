//! What servers ask while they work on tasks.

use super::showing::related_task;
use crate::clients::{Open, Way};
use crate::engine::Engine;
use crate::id::{AskId, ClientId, ServerId, TaskNo};
use crate::json;
use crate::record::{Body, Faces, Question, State};
use crate::servers::Ask;
use crate::tickets::{Task, Wants};
use crate::wire::{Edit, Field, Message, Outgoing};
use bytes::Bytes;

impl Engine {
    /// Tasks whose call a server has.
    pub(super) fn tasks_at(&self, server: ServerId) -> impl Iterator<Item = (TaskNo, &Task)> {
        let at = move |task: &Task| {
            let call = task.call.and_then(|id| self.calls.get(id));
            call.is_some_and(|call| call.request.server == server)
        };
        let none = self.servers.get(&server).is_none_or(|server| server.tickets == 0);
        self.tickets.iter().filter(move |(_, task)| !none && at(task))
    }

    /// The tasks that a question of a server may be about: that of the call on whose stream it came. Where nothing
    /// ties it to a call, all that the server works on; and `None` if somebody else has a call or a task there: a
    /// question of one principal is not for another to read or answer.
    pub(in crate::engine) fn tasks_asked(&self, server: ServerId) -> Option<Vec<TaskNo>> {
        if let Some(way) = self.tied_way(server) {
            return Some(if let Way::Ticket(no) = way { vec![no] } else { Vec::new() });
        }
        let tasks: Vec<TaskNo> = self.tasks_at(server).map(|(no, _)| no).collect();
        let Some(principal) = self.principal_of_first(&tasks) else { return Some(tasks) };
        let theirs = |(_, task): (TaskNo, &Task)| *task.principal != *principal;
        let other = |id: &ClientId| self.has_plain_call(*id) && *self.principal_of(*id) != *principal;
        let clients = self.servers.get(&server).map(|server| &server.clients);
        let shared = self.tasks_at(server).any(theirs) || clients.is_some_and(|all| all.iter().any(other));
        (!shared).then_some(tasks)
    }

    /// Whether a client is the one whose tasks a question may be about.
    pub(in crate::engine) fn may_be_asked(&self, client: ClientId, tasks: &[TaskNo]) -> bool {
        self.principal_of_first(tasks).is_none_or(|principal| *principal == *self.principal_of(client))
    }

    fn principal_of_first(&self, tasks: &[TaskNo]) -> Option<&str> {
        tasks.first().and_then(|no| self.tickets.get(*no)).map(|task| &*task.principal)
    }

    fn has_plain_call(&self, client: ClientId) -> bool {
        let open = self.clients.get(&client).into_iter().flat_map(|client| client.all_open());
        open.into_iter().any(|open| matches!(open, Open::Call(_)))
    }

    /// Somebody who waits for the result of one of these tasks, and so for its questions.
    pub(in crate::engine) fn waits_for_questions(&self, tasks: &[TaskNo]) -> Option<(ClientId, Way)> {
        let tasks = tasks.iter().filter_map(|no| self.tickets.get(*no));
        let mut waiters = tasks.filter(|task| !task.modern).flat_map(|task| &task.waiters);
        waiters
            .find(|waiter| matches!(waiter.wants, Wants::Result | Wants::Until(_)))
            .map(|waiter| (waiter.client, waiter.way))
    }

    /// Somebody waits for a task now. What its server asked before lies on a standing stream that nobody reads: it is
    /// asked here instead, if the session that it was for is of the same principal.
    pub(super) fn pass_on_questions(&mut self, no: TaskNo, client: ClientId, way: Way) {
        let Way::Stream(_) = way else { return };
        let Some(task) = self.tickets.get(no).filter(|task| !task.modern) else { return };
        let Some(call) = task.call.and_then(|id| self.calls.get(id)) else { return };
        let (server, principal) = (call.request.server, self.principal_of(client));
        let meant = |ask: &Ask| ask.server == server && self.principal_of(ask.client) == principal;
        for id in self.asks.numbers(meant) {
            let Some(question) = self.take_unread_question(id) else { continue };
            self.asks.ask_instead(id, client, way);
            self.tell(client, way, Outgoing::plain(question));
        }
    }

    /// Says in a question which task it is about, if it can be only one. The ticket of a task is not for those whose
    /// own call the question is about.
    pub(in crate::engine) fn tie_to_task(&self, tasks: &[TaskNo], message: &Message) -> Option<Edit> {
        let tasks = tasks.iter().filter_map(|no| self.tickets.get(*no));
        let mut tasks = tasks.filter(|task| task.resume.is_none());
        let task = tasks.next().filter(|_| tasks.next().is_none())?;
        if task.faces.has(Faces::HAND_OFF) {
            return None;
        }
        let params = message.raw(Field::Params)?;
        let related = related_task(task);
        match message.raw(Field::ParamsMeta) {
            Some(meta) => json::insert_member(&message.bytes, meta, &related),
            None => json::insert_member(&message.bytes, params, &[b"\"_meta\":{", &*related, b"}"].concat()),
        }
    }

    /// While a server waits for a person, so do the legacy tasks that this may be about.
    pub(in crate::engine) fn tasks_are_asked(&mut self, tasks: &[TaskNo], ask: AskId, message: &Message) {
        let Some(request) = asked(message) else { return };
        let open = |task: &Task| !task.modern && task.state.is_open();
        for no in
            tasks.iter().copied().filter(|no| self.tickets.get(*no).is_some_and(open)).collect::<Vec<_>>()
        {
            let question = Question { key: ask.0.to_string(), request: request.clone() };
            self.change_questions(no, State::InputRequired, |body| body.ask(question));
        }
    }

    /// A server does not wait for this answer any more; it may wait for others.
    pub(in crate::engine) fn tasks_are_answered(&mut self, ask: AskId) {
        let key = ask.0.to_string();
        let shows = |task: &Task| {
            !task.modern && task.state.is_open() && task.body.questions.iter().any(|open| open.key == key)
        };
        for no in self.tickets.numbers(shows) {
            let more = self.tickets.get(no).is_some_and(|task| task.body.questions.len() > 1);
            let state = if more { State::InputRequired } else { State::Working };
            self.change_questions(no, state, |body| body.questions.retain(|open| open.key != key));
        }
    }

    /// Changes what a task asks, and tells its client only if its state changes too.
    fn change_questions(&mut self, no: TaskNo, state: State, change: impl FnOnce(&mut Body)) {
        let Some(task) = self.tickets.get(no) else { return };
        if task.state == state {
            return self.change_body(no, change);
        }
        let from = task.state;
        let change = self.tickets.move_to(no, state, self.store_time(), change);
        self.write_move(no, from, change);
    }
}

/// What a server asks by a request, without what ties it to one connection.
pub(super) fn asked(message: &Message) -> Option<Bytes> {
    let method = message.raw(Field::Method)?;
    let params = message.raw(Field::Params).map(|params| [b",\"params\":", params].concat());
    Some([b"{\"method\":", method, &*params.unwrap_or_default(), b"}"].concat().into())
}
