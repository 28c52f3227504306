//! What servers ask while they work on tasks.

use super::showing::related_task;
use crate::clients::Way;
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

    /// Somebody who waits for the result of a task at this server, and so for its questions.
    pub(in crate::engine) fn waits_for_questions(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let mut waiters =
            self.tasks_at(server).filter(|(_, task)| !task.modern).flat_map(|(_, task)| &task.waiters);
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

    /// Says in a question which task it is about, if it can be only one.
    pub(in crate::engine) fn tie_to_task(&self, server: ServerId, message: &Message) -> Option<Edit> {
        let mut tasks = self.tasks_at(server).filter(|(_, task)| task.resume.is_none());
        let (_, task) = tasks.next().filter(|_| tasks.next().is_none())?;
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

    /// While a server waits for a person, so do all its legacy tasks: nothing says which one it is about.
    pub(in crate::engine) fn tasks_are_asked(&mut self, server: ServerId, ask: AskId, message: &Message) {
        let Some(request) = asked(message) else { return };
        for no in self.legacy_tasks_at(server) {
            let question = Question { key: ask.0.to_string(), request: request.clone() };
            self.change_questions(no, State::InputRequired, |body| body.ask(question));
        }
    }

    /// A server does not wait for this answer any more; it may wait for others.
    pub(in crate::engine) fn tasks_are_answered(&mut self, server: ServerId, ask: AskId) {
        let waits = |ask: &Ask| ask.server == server && ask.method.waits_for_a_person();
        let tasks = self.legacy_tasks_at(server);
        let needed = !tasks.is_empty() && self.asks.iter().any(|(_, ask)| waits(ask));
        let state = if needed { State::InputRequired } else { State::Working };
        let key = ask.0.to_string();
        for no in tasks {
            self.change_questions(no, state, |body| body.questions.retain(|question| question.key != key));
        }
    }

    fn legacy_tasks_at(&self, server: ServerId) -> Vec<TaskNo> {
        let open = |task: &Task| !task.modern && task.state.is_open();
        self.tasks_at(server).filter(|(_, task)| open(task)).map(|(no, _)| no).collect()
    }

    /// Changes what a task asks, and tells its client only if its state changes too.
    fn change_questions(&mut self, no: TaskNo, state: State, change: impl FnOnce(&mut Body)) {
        let Some(task) = self.tickets.get(no) else { return };
        if task.state == state {
            return self.change_body(no, change);
        }
        let change = self.tickets.move_to(no, state, self.wall, change);
        self.write_move(no, change);
    }
}

/// What a server asks by a request, without what ties it to one connection.
pub(super) fn asked(message: &Message) -> Option<Bytes> {
    let method = message.raw(Field::Method)?;
    let params = message.raw(Field::Params).map(|params| [b",\"params\":", params].concat());
    Some([b"{\"method\":", method, &*params.unwrap_or_default(), b"}"].concat().into())
}
