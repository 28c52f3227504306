//! Calls that are fetched later: tasks of both eras, made by us for any tool of any server.
//!
//! The handle of a task leaves only after the task is stored, and so does its end. A server that has
//! tasks of its own is left to it.

mod asking;
mod capped;
mod client_resumes;
mod ends;
mod following;
mod handoff;
mod input;
mod keeping;
mod making;
mod offers;
mod orphaned;
mod push;
mod questions;
mod recovery;
mod roaming;
mod server_tasks;
mod showing;
mod upkeep;

use super::Engine;
use crate::calls::Request;
use crate::clients::{Client, Door};
use crate::http::SAME_USER;
use crate::id::{ClientId, TaskNo};
use crate::method::Method;
use crate::record::Ticket;
use crate::tickets::Task;
use crate::time::Mono;
use crate::wire::{Field, Message};
pub(super) use asking::Asked;
pub(super) use capped::named;
pub(super) use client_resumes::Resuming;
pub(super) use handoff::add_to_tools;
pub(super) use making::{with_task, without_task};
pub(super) use push::{notification, ticket_list, wanted_tasks};
use std::time::Duration;

/// The extension of the modern era.
const EXTENSION: &[u8] = b"\"io.modelcontextprotocol/tasks\"";

/// The only legacy revision with tasks.
const REVISION: &str = "2025-11-25";

impl Engine {
    /// Takes a request that is about tasks. False if it is the server's.
    pub(super) fn task_request(&mut self, now: Mono, request: &Request, message: &Message) -> bool {
        let theirs = self.has_its_own_tasks(request.server, request.client);
        // Some are known to have tasks only after we have made one.
        if theirs && !self.is_about_running_task(message) {
            return false;
        }
        self.task_request_of_ours(now, request, message)
    }

    /// The same where no server has tasks of its own.
    pub(super) fn task_request_of_ours(&mut self, now: Mono, request: &Request, message: &Message) -> bool {
        if request.method == Method::Listen {
            return request.modern && self.listen_to_tasks(now, request, message);
        }
        let about_task = matches!(
            request.method,
            Method::TasksGet
                | Method::TasksResult
                | Method::TasksList
                | Method::TasksCancel
                | Method::TasksUpdate
        );
        if !about_task {
            return false;
        }
        if request.modern && !declares_tasks(message) {
            self.set_status(request.way, Some(-32021));
            self.refuse_to_declare(request);
            return true;
        }
        match (&request.method, request.modern) {
            (Method::TasksList, false) => self.list_tasks(request, message),
            (Method::TasksResult, true) | (Method::TasksList, true) | (Method::TasksUpdate, false) => {
                return false;
            }
            _ => self.about_task(now, request, message),
        }
        true
    }

    fn is_about_running_task(&self, message: &Message) -> bool {
        let ticket = message.text(Field::ParamsTaskId).and_then(|text| Ticket::parse(&text));
        ticket.is_some_and(|ticket| self.tickets.named(&ticket).is_some())
    }

    /// Takes a task in, under a new number.
    pub(super) fn add_task(&mut self, task: Task) -> TaskNo {
        let resumable = task.resume.is_some();
        let no = self.tickets.add(self.at, task);
        if resumable {
            self.arm_resumes();
        }
        self.tickets.arm_upkeep(&mut self.timers, self.at, false);
        no
    }

    /// Forgets a task; the store may still have it.
    pub(super) fn drop_task(&mut self, no: TaskNo) -> Option<Task> {
        let mut task = self.tickets.forget(&mut self.timers, no)?;
        self.clients.discharge(task.payer.take());
        Some(task)
    }

    /// Whose calls a client's are. Without a name a session is its own, and modern exchanges are all one:
    /// there a ticket alone is the key.
    pub(super) fn principal_of(&self, client: ClientId) -> Box<str> {
        let Some(client) = self.clients.get(&client) else { return "".into() };
        match (&client.principal, &client.door) {
            (Some(name), _) if **name == *SAME_USER => "stdio".into(),
            (Some(name), _) => format!("token:{name}").into(),
            (None, Door::Line) => "stdio".into(),
            (None, Door::Session(session)) => format!("session:{}", session.id).into(),
            (None, Door::Exchange(_)) => "anonymous".into(),
        }
    }
}

impl Client {
    fn may_list_tasks(&self) -> bool {
        matches!(self.door, Door::Line) || self.principal.is_some()
    }
}

pub(super) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

pub(super) fn declares_tasks(message: &Message) -> bool {
    let all = message.raw(Field::MetaClientCapabilities).unwrap_or_default();
    // Most clients declare nothing, and a search costs more than it looks.
    all.len() > EXTENSION.len() && memchr::memmem::find(all, EXTENSION).is_some()
}
