//! How tasks end, and when they are forgotten.

use super::{Pending, millis};
use crate::engine::Engine;
use crate::id::{ServerId, TaskNo};
use crate::json;
use crate::record::{Answer, Change, Faces, State};
use crate::store::Write;
use crate::task::Task;
use crate::time::{Mono, Wall};
use crate::wire::{Field, Outgoing, Scanned, scan, scan_tolerant};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;

impl Engine {
    /// The call of a task is answered, by its server or by us.
    pub(in crate::engine) fn task_answered(&mut self, no: TaskNo, answer: &Outgoing) {
        let Some(task) = self.tasks.get_mut(&no).filter(|task| task.state.is_open()) else { return };
        task.call = None;
        let task_of_2025 = task.faces.has(Faces::LEGACY_TASK);
        let bytes: Bytes = answer.to_vec().into();
        let message = match scan(bytes.clone()) {
            Ok(Scanned::Message(message)) => Some(message),
            // What today's SDKs take is no reason to lose a call.
            _ => scan_tolerant(&bytes),
        };
        let Some(message) = message else { return };
        let part =
            |field| message.envelope.get(field).map(|span| message.bytes.slice(span.start()..span.end()));
        let (state, answer) = match (part(Field::Result), part(Field::Error)) {
            (Some(result), _) => {
                let failed = json::member(&result, "isError") == Some(b"true");
                let state = if failed && task_of_2025 { State::Failed } else { State::Completed };
                (state, Answer::Result(result))
            }
            (None, error) => (State::Failed, Answer::Error(error.unwrap_or_default())),
        };
        self.end_task(self.at, no, state, Some(answer));
    }

    pub(super) fn end_task(&mut self, now: Mono, no: TaskNo, state: State, answer: Option<Answer>) {
        self.forget_orphan(no);
        let Some(task) = self.tasks.get_mut(&no) else { return };
        let (input, payer) = (std::mem::take(&mut task.input), task.payer.take());
        // One that is not stored yet is written when it is.
        let made = task.stored;
        task.body.questions.clear();
        task.state = state;
        task.answer = answer;
        task.updated = self.wall;
        task.stored = false;
        task.ended = Some(now);
        self.one_less_for(payer);
        if made {
            self.write_end(no);
        }
        self.drop_questions(now, input);
    }

    /// How long the answer of a call is kept: for `task-ttl`, and a task as long as its client was told.
    pub(super) fn kept_after_end(&self, task: &Task) -> Duration {
        let told = task.faces.has(Faces::LEGACY_TASK) || task.faces.has(Faces::MODERN_TASK);
        let until = task.created.0.saturating_add(task.ttl()).saturating_sub(task.updated.0);
        let until = Duration::from_millis(until);
        if told { until.max(self.config.task_ttl) } else { self.config.task_ttl }
    }

    pub(super) fn write_end(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no) else { return };
        let kept = millis(self.kept_after_end(task));
        let Some(task) = self.tasks.get_mut(&no) else { return };
        // One that was shown although it could not be stored stays shown.
        task.stored = task.unwritten || planted!(self, ShowsBeforeStored);
        let expires = Wall(task.updated.0.saturating_add(kept));
        task.body.ttl_ms = Some(expires.0.saturating_sub(task.created.0));
        let (answer, body) = (task.answer.clone(), Some(task.body.encode()));
        let change = Change { expires: Some(expires), answer, body, ..task.change(task.updated) };
        self.submit(Pending::Changed(no), Write::Change(Box::new(change)));
    }

    /// Tries to store the ends again that could not be stored.
    pub(super) fn write_ends_again(&mut self) {
        let under_way: BTreeSet<TaskNo> = self.pending.values().filter_map(Pending::changes).collect();
        let waits = |no: &TaskNo, task: &Task| task.unwritten && !under_way.contains(no);
        let unwritten = self.tasks.iter().filter(|(no, task)| waits(no, task)).map(|(no, _)| *no);
        unwritten.collect::<Vec<_>>().into_iter().for_each(|no| self.write_end(no));
    }

    /// A server that only tasks needed may go.
    pub(in crate::engine) fn one_ticket_less(&mut self, now: Mono, server: ServerId) {
        if let Some(state) = self.servers.get_mut(&server) {
            state.tickets = state.tickets.saturating_sub(1);
        }
        self.leave_if_unused(now, server);
    }
}
