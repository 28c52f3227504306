//! What servers ask while they work on tasks.

use super::showing::related_task;
use crate::client::Way;
use crate::engine::Engine;
use crate::id::{ClientId, ServerId, TaskNo};
use crate::json;
use crate::record::{Faces, State};
use crate::task::{Task, Wants};
use crate::wire::{Edit, Field, Message};

impl Engine {
    /// Tasks whose call a server has.
    pub(super) fn tasks_at(&self, server: ServerId) -> impl Iterator<Item = (&TaskNo, &Task)> {
        let at = move |task: &Task| {
            let call = task.call.and_then(|id| self.calls.get(id));
            call.is_some_and(|call| call.request.server == server)
        };
        let none = self.servers.get(&server).is_none_or(|server| server.tickets == 0);
        self.tasks.iter().filter(move |(_, task)| !none && at(task))
    }

    /// Somebody who waits for the result of a task at this server, and so for its questions.
    pub(in crate::engine) fn waits_for_questions(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let mut waiters =
            self.tasks_at(server).filter(|(_, task)| !task.modern).flat_map(|(_, task)| &task.waiters);
        waiters
            .find(|waiter| matches!(waiter.wants, Wants::Result | Wants::Until(_)))
            .map(|waiter| (waiter.client, waiter.way))
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
    pub(in crate::engine) fn tasks_need_input(&mut self, server: ServerId, needed: bool) {
        let (from, to) = if needed {
            (State::Working, State::InputRequired)
        } else {
            (State::InputRequired, State::Working)
        };
        let changed: Vec<TaskNo> = self
            .tasks_at(server)
            .filter(|(_, task)| !task.modern && task.state == from)
            .map(|(no, _)| *no)
            .collect();
        for no in changed {
            self.move_task(no, to);
        }
    }
}
