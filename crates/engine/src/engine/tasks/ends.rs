//! How tasks end, and when they are forgotten.

use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::error::cut;
use crate::id::{ServerId, TaskNo};
use crate::json;
use crate::limits;
use crate::record::{Answer, Faces, State};
use crate::store::Write;
use crate::tickets::Task;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, Scanned, scan, scan_message, scan_tolerant};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;

impl Engine {
    /// The call of a task is answered, by its server or by us.
    pub(in crate::engine) fn task_answered(&mut self, no: TaskNo, answer: &Outgoing) {
        let Some(task_of_2025) = self.tickets.is_answered(no) else { return };
        let bytes: Bytes = answer.to_vec().into();
        let message = match scan(bytes.clone()) {
            Ok(Scanned::Message(message)) => Some(message),
            // What today's SDKs take is no reason to lose a call.
            _ => scan_tolerant(&bytes),
        };
        let Some(message) = message else { return };
        let message = if planted!(self, ChangesTaskBytes) { in_other_words(&message) } else { message };
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
        let why = answer.as_ref().filter(|_| state == State::Failed).and_then(reason);
        let Some(ended) = self.tickets.end(now, self.store_time(), no, state, answer, why) else { return };
        self.clients.discharge(ended.payer);
        if ended.made {
            self.write_end(no);
        }
        self.drop_questions(now, ended.input);
    }

    /// How long the answer of a call is kept: for `task-ttl`, and a task as long as its client was told.
    pub(super) fn kept_after_end(&self, task: &Task) -> Duration {
        let told = task.faces.has(Faces::LEGACY_TASK) || task.faces.has(Faces::MODERN_TASK);
        let until = task.created.0.saturating_add(task.ttl()).saturating_sub(task.updated.0);
        let until = Duration::from_millis(until);
        if told { until.max(self.config.task_ttl) } else { self.config.task_ttl }
    }

    pub(super) fn write_end(&mut self, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        let since = task.ended.map_or(Duration::ZERO, |ended| self.at.since(ended));
        let kept = self.kept_after_end(task).saturating_sub(since);
        let Some(change) = self.tickets.write_end(no, kept) else { return };
        if planted!(self, ShowsBeforeStored) {
            self.task_may_be_shown(no);
        }
        let callback = self.callback_at_end(no);
        let calls_back = callback.is_some();
        let writes = [Some(Write::Change(Box::new(change))), callback].into_iter().flatten().collect();
        self.submit_all(Pending::Changed(no), writes);
        self.send_if(calls_back);
    }

    /// Tries to store the ends again that could not be stored.
    pub(in crate::engine) fn write_ends_again(&mut self) {
        let under_way: BTreeSet<TaskNo> = self.ledger.writes().filter_map(Pending::changes).collect();
        let mut unwritten = self.tickets.numbers(|task| task.unwritten);
        unwritten.retain(|no| !under_way.contains(no));
        unwritten.into_iter().for_each(|no| self.write_end(no));
    }

    /// A server that only tasks needed may go.
    pub(in crate::engine) fn one_ticket_less(&mut self, now: Mono, server: ServerId) {
        self.servers.is_held_no_more(server);
        self.leave_if_unused(now, server);
    }
}

/// Why a call failed, for people: the words of its error, or what its tool said first.
fn reason(answer: &Answer) -> Option<String> {
    let words = match answer {
        Answer::Error(error) => json::member(error, "message"),
        Answer::Result(result) => {
            let content = json::member(result, "content").and_then(json::elements).unwrap_or_default();
            content.into_iter().find_map(|part| json::member(part, "text"))
        }
    };
    let words: String = serde_json::from_slice(words?).ok()?;
    Some(cut(&words, limits::ERROR_MESSAGE).to_owned())
}

/// The same message, but not byte for byte: for a planted fault.
fn in_other_words(message: &Message) -> Message {
    let value: Option<serde_json::Value> = serde_json::from_slice(&message.bytes).ok();
    value.and_then(|value| scan_message(value.to_string().into())).unwrap_or_else(|| message.clone())
}
