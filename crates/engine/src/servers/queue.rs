//! What waits for a server, and what a server owes us.

use super::{Fate, Own, Servers};
use crate::id::{AttemptId, CallId, ServerId};
use crate::limits;
use crate::time::Mono;

impl Servers {
    /// A call waits for a server to come back.
    pub(crate) fn queue(&mut self, id: ServerId, call: CallId, size: usize) {
        if let Some(server) = self.at(id) {
            server.waiting.push_back(call);
            server.waiting_bytes += size;
        }
    }

    /// A call is over: it waits no longer, for this server or for a person. Whether the server waits for the end of
    /// its calls.
    pub(crate) fn call_is_over(&mut self, id: ServerId, call: CallId, queued: Option<usize>) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.stalled.remove(&call);
        if let Some(size) = queued {
            server.waits_no_more(call, size);
        }
        server.fate != Fate::Stays
    }

    /// A call is sent for the first time: it adds to what may be repeated.
    pub(crate) fn first_attempt(&mut self, now: Mono, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.budget.first(now);
            server.used = now;
        }
    }

    /// Takes one retry out of the budget. False if there is none left.
    pub(crate) fn take_retry(&mut self, now: Mono, id: ServerId) -> bool {
        self.at(id).is_some_and(|server| server.budget.take(now))
    }
}

// Requests of our own.
impl Servers {
    pub(crate) fn asks_own(&mut self, id: ServerId, attempt: AttemptId, own: Own) {
        if let Some(server) = self.at(id) {
            server.own.insert(attempt, own);
        }
    }

    /// A request of our own is answered, or never will be.
    pub(crate) fn take_own(&mut self, id: ServerId, attempt: AttemptId) -> Option<Own> {
        self.at(id)?.own.remove(&attempt)
    }
}

// What keeps it.
impl Servers {
    /// A call keeps a server, although its client is gone or needs another one. Whether the server was about to end.
    pub(crate) fn is_held(&mut self, id: ServerId) -> bool {
        let Some(server) = self.at(id) else { return false };
        server.tickets += 1;
        server.alarm == Some(super::Alarm::Idle)
    }

    pub(crate) fn is_held_no_more(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.tickets = server.tickets.saturating_sub(1);
        }
    }

    /// A call is followed as a task of the server's own.
    pub(crate) fn follows(&mut self, id: ServerId, task: Box<[u8]>, call: CallId, tool: Option<Box<str>>) {
        let Some(server) = self.at(id) else { return };
        if server.needs_tasks.len() < limits::TASK_TOOLS {
            server.needs_tasks.extend(tool);
        }
        server.followed.insert(task, call);
    }

    /// A call is not followed any more, and what was asked about its task is not waited for.
    pub(crate) fn leaves_task(&mut self, id: ServerId, task: &[u8], call: CallId, asked: &[AttemptId]) {
        let Some(server) = self.at(id) else { return };
        if server.followed.get(task) == Some(&call) {
            server.followed.remove(task);
        }
        asked.iter().for_each(|attempt| drop(server.own.remove(attempt)));
    }
}

// Cancels.
impl Servers {
    pub(crate) fn is_told_to_cancel(&mut self, now: Mono, id: ServerId, attempt: AttemptId) {
        if let Some(server) = self.at(id) {
            server.is_told_to_cancel(now, attempt);
        }
    }

    /// It speaks of an attempt that has ended. Did it ignore a cancel, or did the two cross?
    pub(crate) fn speaks_of_ended(&mut self, now: Mono, id: ServerId, attempt: AttemptId) {
        if let Some(server) = self.at(id) {
            server.speaks_of_ended(now, attempt);
        }
    }
}
