//! What servers ask while they work on modern tasks, and what clients answer.
//!
//! A task shows each question under a key that it never uses again, until `tasks/update` answers it. How
//! the answer gets to the server depends on how it asked: a request is answered by a response; an
//! `input_required` result is answered by the same call with everything that was asked; a task of the
//! server's own by its `tasks/update`.

use super::following::about;
use super::questions::asked;
use crate::calls::{Call, State};
use crate::clients::Way;
use crate::engine::Engine;
use crate::error::error_answer;
use crate::id::{AskId, CallId, ClientId, NOBODY, TaskNo};
use crate::json;
use crate::limits;
use crate::servers::{Own, Readiness};
use crate::tickets::{Asker, Input, Task};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Scanned, scan};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

type Members<'a> = BTreeMap<Box<str>, &'a RawValue>;

impl Engine {
    // Questions.

    /// Where a question goes that a server asks while it works on modern tasks. On stdio nothing says which
    /// of them it is about, so all of them show it.
    pub(in crate::engine) fn asked_through_tasks(&self, tasks: &[TaskNo]) -> Option<(ClientId, Way)> {
        // One that is not stored yet may never be, and would take the question along.
        let full = |task: &Task| reached!(QUESTIONS, task.input.questions.len() >= limits::QUESTIONS);
        let room = |task: &Task| task.modern && task.stored && !full(task);
        let no = tasks.iter().find(|no| self.tickets.get(**no).is_some_and(room))?;
        // Whoever looks at them.
        Some((NOBODY, Way::Ticket(*no)))
    }

    pub(in crate::engine) fn show_question(&mut self, tasks: &[TaskNo], ask: AskId, message: &Message) {
        let Some(request) = asked(message) else { return };
        let modern = |no: &TaskNo| self.tickets.get(*no).is_some_and(|task| task.modern && task.stored);
        for no in tasks.iter().copied().filter(modern).collect::<Vec<_>>() {
            self.tickets.put_question(no, request.clone(), Asker::Request(ask));
            self.mind_input(no);
        }
    }

    /// A task waits for its client while anything is not answered.
    fn mind_input(&mut self, no: TaskNo) {
        let Some(from) = self.tickets.get(no).map(|task| task.state) else { return };
        let change = self.tickets.mind_input(no, self.store_time());
        self.write_move(no, from, change);
    }

    /// A request of a server is answered, taken back or given up.
    pub(in crate::engine) fn question_is_over(&mut self, ask: AskId) {
        for no in self.tickets.shows(ask) {
            self.tickets.close_question(no, ask);
            self.mind_input(no);
        }
    }

    /// A task has ended: who asked through it alone is told that nobody will answer.
    pub(super) fn drop_questions(&mut self, now: Mono, input: Input) {
        for question in input.questions {
            let Asker::Request(id) = question.asker else { continue };
            if !self.tickets.shows(id).is_empty() {
                continue;
            }
            let Some(ask) = self.close_ask(now, id) else { continue };
            let text = "the task that this was asked for has ended";
            let answer = error_answer(ask.id.patch().as_slice(), -32603, text, None);
            self.send(ask.server, None, None, Outgoing::plain(answer));
        }
    }

    /// The server answers the call of a task by asking for more. False if it does not.
    pub(super) fn pause_for_input(&mut self, now: Mono, id: CallId, answer: &Message) -> bool {
        let Some(result) = answer.raw(Field::Result) else { return false };
        let Some(call) = self.calls.get(id) else { return false };
        let Way::Ticket(no) = call.request.way else { return false };
        let asks = answer.raw(Field::ResultType) == Some(b"\"input_required\"");
        if !call.request.modern || !asks || call.kept_for_task.is_none() {
            return false;
        }
        self.calls.pause(id);
        let requests = json::member(result, "inputRequests").unwrap_or(b"{}");
        let requests: Members<'_> = serde_json::from_slice(requests).unwrap_or_default();
        let state = json::member(result, "requestState").map(Bytes::copy_from_slice);
        self.tickets.has_input_state(no, state);
        let nothing_asked = requests.is_empty();
        for (name, request) in requests {
            let request = Bytes::copy_from_slice(request.get().as_bytes());
            self.tickets.put_question(no, request, Asker::Result(name));
        }
        self.mind_input(no);
        if nothing_asked {
            self.call_again(now, no);
        }
        self.arm_call(now, id);
        true
    }

    /// The server's own task for a task of ours asks something.
    pub(super) fn task_of_ours_asks(&mut self, no: TaskNo, requests: &[u8]) {
        let requests: Members<'_> = serde_json::from_slice(requests).unwrap_or_default();
        for (name, request) in requests {
            let asker = Asker::Task(name);
            let known = self
                .tickets
                .get(no)
                .is_some_and(|task| task.input.questions.iter().any(|question| question.asker == asker));
            if !known {
                self.tickets.put_question(no, Bytes::copy_from_slice(request.get().as_bytes()), asker);
                self.mind_input(no);
            }
        }
    }

    // Answers.

    /// A client answers what a task asks: some of it or all. What was not asked is ignored.
    pub(super) fn take_input(&mut self, now: Mono, no: TaskNo, update: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(update.clone()) else { return };
        let responses = message.raw(Field::ParamsInputResponses).unwrap_or(b"{}");
        let responses: Members<'_> = serde_json::from_slice(responses).unwrap_or_default();
        for (key, response) in responses {
            self.take_answer(now, no, &key, response.get().as_bytes());
        }
        self.mind_input(no);
        let whole = self.tickets.get(no).is_some_and(|task| !task.input.is_needed());
        if whole {
            self.call_again(now, no);
        }
    }

    fn take_answer(&mut self, now: Mono, no: TaskNo, key: &str, response: &[u8]) {
        let Some(asker) = self.tickets.answer(no, key, response) else { return };
        match asker {
            Asker::Result(_) => {}
            Asker::Request(id) => {
                let Some(ask) = self.close_ask(now, id) else { return };
                let id = ask.id.patch();
                let head = br#"{"jsonrpc":"2.0","id":"#;
                let answer = [&head[..], id.as_slice(), b",\"result\":", response, b"}"].concat();
                self.send(ask.server, None, None, Outgoing::plain(answer));
            }
            Asker::Task(name) => self.answer_servers_task(no, &name, response),
        }
    }

    fn answer_servers_task(&mut self, no: TaskNo, name: &str, response: &[u8]) {
        let call = self.tickets.get(no).and_then(|task| task.call);
        let Some(call) = call.and_then(|id| self.calls.get(id)) else { return };
        let (Some(joined), server) = (call.server_task(), call.request.server) else { return };
        let name = serde_json::to_vec(name).unwrap_or_default();
        let responses = [b",\"inputResponses\":{", &*name, b":", response, b"}"].concat();
        let update = about("tasks/update", &joined.task, joined.meta.as_deref(), &responses);
        self.send_about_task(server, &update, Own::Quiet);
    }

    /// Everything that the server asked by its answer is there: the call goes on.
    fn call_again(&mut self, now: Mono, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        let paused = task
            .call
            .filter(|id| self.calls.get(*id).is_some_and(|call| matches!(call.state, State::Paused)));
        let Some(id) = paused else { return };
        let (answers, state) = self.tickets.take_answers(no);
        let responses: Vec<Vec<u8>> = answers
            .into_iter()
            .filter_map(|question| {
                let Asker::Result(name) = question.asker else { return None };
                let name = serde_json::to_vec(&name).unwrap_or_default();
                Some([&*name, b":", &*question.answer?].concat())
            })
            .collect();
        let Some(message) = self.calls.get(id).and_then(|call| continued(call, &responses, state.as_deref()))
        else {
            return;
        };
        if responses.is_empty() {
            // The server only wants to be called again, which must not become a flood.
            return self.send_later(now, id, message);
        }
        self.send_or_wait(now, id, &message);
    }

    fn send_later(&mut self, now: Mono, id: CallId, message: Message) {
        let at = self.next_poll(now, limits::POLL);
        self.calls.send_later(id, message, at);
        self.arm_call(now, id);
    }

    fn send_or_wait(&mut self, now: Mono, id: CallId, message: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        let server_id = call.request.server;
        let Some(server) = self.servers.get(&server_id) else { return };
        self.calls.restart_timeout(now, id, &server.clock);
        match server.readiness() {
            Readiness::Runs => self.send_attempt(now, id, message),
            Readiness::ComesBack => {
                self.calls.wait(id, Box::new(message.owned()));
                self.queue_at(server_id, id, message.bytes.len());
            }
            Readiness::IsGone => return self.fail_at_gone_server(now, id),
        }
        self.arm_call(now, id);
    }
}

/// The call of a task with what its server asked for.
fn continued(call: &Call, responses: &[Vec<u8>], state: Option<&[u8]>) -> Option<Message> {
    let mut message = (**call.kept_for_task.as_ref()?).clone();
    // It may have continued something from the beginning.
    for field in [Field::ParamsRequestState, Field::ParamsInputResponses] {
        if let Some(span) = message.envelope.get(field) {
            message = message.edited(Edit::remove_member(&message.bytes, span))?;
        }
    }
    let mut members: Vec<Vec<u8>> = Vec::new();
    if !responses.is_empty() {
        members.push([b"\"inputResponses\":{", &*responses.join(&b","[..]), b"}"].concat());
    }
    members.extend(state.map(|state| [b"\"requestState\":", state].concat()));
    let params = message.raw(Field::Params)?;
    if members.is_empty() {
        return Some(message);
    }
    message.edited(json::insert_member(&message.bytes, params, &members.join(&b","[..]))?)
}
