//! What clients see of tasks.

use crate::calls::Request;
use crate::calls::progress::words_of_hold;
use crate::clients::Way;
use crate::engine::Engine;
use crate::error::{cut, error_answer};
use crate::id::{ClientId, JsonId, TaskNo};
use crate::json;
use crate::limits;
use crate::record::{Answer, Faces, State};
use crate::tickets::{Task, Waiter, Wants};
use crate::wire::Outgoing;

impl Engine {
    pub(in crate::engine) fn answer_error(
        &mut self,
        client: ClientId,
        way: Way,
        id: &JsonId,
        code: i32,
        text: &str,
    ) {
        let answer = error_answer(id.patch().as_slice(), code, text, None);
        self.reply(client, way, Some(id), Outgoing::plain(answer));
    }

    pub(in crate::engine) fn answer_result(
        &mut self,
        client: ClientId,
        way: Way,
        id: &JsonId,
        result: &[u8],
    ) {
        let id_text = id.patch();
        let answer =
            [br#"{"jsonrpc":"2.0","id":"#, id_text.as_slice(), br#","result":"#, result, b"}"].concat();
        self.reply(client, way, Some(id), Outgoing::plain(answer));
    }

    pub(super) fn refuse_to_declare(&mut self, request: &Request) {
        let id = request.id.patch();
        let rest = br#","error":{"code":-32021,"message":"Missing required client capability: io.modelcontextprotocol/tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#;
        let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), rest].concat();
        self.reply(request.client, request.way, Some(&request.id), Outgoing::plain(answer));
    }

    /// Gives a waiter what it wants to see of a task in memory.
    pub(in crate::engine) fn show_task(&mut self, no: TaskNo, waiter: &Waiter) {
        let Some(task) = self.tickets.get(no) else { return };
        let task = task.summary();
        self.show(&task, waiter);
    }

    /// Gives a waiter what it wants to see of a task.
    pub(in crate::engine) fn show(&mut self, task: &Task, waiter: &Waiter) {
        if task.faces.has(Faces::HAND_OFF) && waiter.wants != Wants::Answer {
            return self.show_hand_off(task, waiter);
        }
        let result = match (waiter.wants, task.modern) {
            (Wants::Word | Wants::Receipt(_), _) => br#"{"resultType":"complete"}"#.to_vec(),
            (Wants::Handle, true) => self.modern_task(task, Some("task")),
            (Wants::Task, true) => self.modern_task(task, Some("complete")),
            (Wants::Handle, false) => [b"{\"task\":", &*self.legacy_task(task), b"}"].concat(),
            (Wants::Task, false) => self.legacy_task(task),
            (Wants::Answer, _) => {
                let answer = answer_of(task, &waiter.id);
                return self.reply(waiter.client, waiter.way, Some(&waiter.id), answer);
            }
            (Wants::Result | Wants::Until(_), _) => {
                let answer = result_of(task, &waiter.id);
                return self.reply(waiter.client, waiter.way, Some(&waiter.id), answer);
            }
        };
        self.answer_result(waiter.client, waiter.way, &waiter.id, &result);
    }

    pub(super) fn legacy_task(&self, task: &Task) -> Vec<u8> {
        let mut shown = serde_json::json!({
            "taskId": task.ticket.as_str(),
            "status": task.shown().as_str(),
            "createdAt": task.created.timestamp(),
            "lastUpdatedAt": task.known.timestamp(),
            "ttl": task.ttl(),
            "pollInterval": task.poll_interval(self.store_time()),
        });
        say_how_it_is(task, &mut shown);
        self.say_who_is_asked(task, &mut shown);
        shown.to_string().into_bytes()
    }

    /// A task whose call waits for a person says so.
    fn say_who_is_asked(&self, task: &Task, shown: &mut serde_json::Value) {
        if let Some(hold) = task.call.and_then(|call| self.holds.get(call)) {
            let name = format!("`{}`", cut(&task.tool, limits::NAME));
            shown["statusMessage"] = words_of_hold(&name, self.at.since(hold.since)).into();
        }
    }

    /// A task with what belongs to its state; as a result of this type, or as part of a notification.
    pub(super) fn modern_task(&self, task: &Task, result_type: Option<&str>) -> Vec<u8> {
        let mut shown = serde_json::json!({
            "taskId": task.ticket.as_str(),
            "status": task.shown().as_str(),
            "createdAt": task.created.timestamp(),
            "lastUpdatedAt": task.known.timestamp(),
            "ttlMs": task.ttl(),
            "pollIntervalMs": task.poll_interval(self.store_time()),
        });
        if let Some(result_type) = result_type {
            shown["resultType"] = result_type.into();
        }
        say_how_it_is(task, &mut shown);
        self.say_who_is_asked(task, &mut shown);
        let mut text = shown.to_string().into_bytes();
        if task.shown() == State::InputRequired {
            text.pop();
            text.extend_from_slice(&task.questions());
            text.push(b'}');
        }
        if let Some(answer) = task.answer.as_ref().filter(|_| task.has_ended()) {
            let name: &[u8] = match answer {
                Answer::Result(_) => b",\"result\":",
                Answer::Error(_) => b",\"error\":",
            };
            text.pop();
            text.extend_from_slice(name);
            text.extend_from_slice(answer.bytes());
            text.push(b'}');
        }
        text
    }

    /// Tells a legacy client that a task of its has changed, and a modern one that listens.
    pub(super) fn tell_status(&mut self, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        if task.modern {
            return self.push_task(no);
        }
        if !task.faces.has(Faces::LEGACY_TASK) {
            return;
        }
        let client = task.client;
        let params = self.legacy_task(task);
        let message =
            [br#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":"#, &*params, b"}"].concat();
        self.tell_client(client, Outgoing::plain(message));
    }
}

/// What there is to say of a task besides its state.
fn say_how_it_is(task: &Task, shown: &mut serde_json::Value) {
    // Why it failed is shown with its end, which may not be stored yet.
    let told = task.shown() == task.state && (task.state.is_open() || task.state == State::Failed);
    if let Some(message) = task.body.status_message.as_deref().filter(|_| told) {
        shown["statusMessage"] = message.into();
    }
}

/// A member of `_meta`.
pub(super) fn related_task(task: &Task) -> Vec<u8> {
    let ticket = task.ticket.as_str().as_bytes();
    [br#""io.modelcontextprotocol/related-task":{"taskId":""#, ticket, br#""}"#].concat()
}

/// The answer of a call, under the id of whoever asks.
pub(super) fn answer_of(task: &Task, id: &JsonId) -> Outgoing {
    let id = id.patch();
    let (name, answer): (&[u8], &[u8]) = match &task.answer {
        Some(Answer::Result(result)) => (b",\"result\":", result),
        Some(Answer::Error(error)) => (b",\"error\":", error),
        None => (b",\"error\":", br#"{"code":-32603,"message":"the call was cancelled"}"#),
    };
    Outgoing::plain([br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), name, answer, b"}"].concat())
}

/// The answer of a task's call, under the id of whoever asks, and tied to the task.
pub(super) fn result_of(task: &Task, id: &JsonId) -> Outgoing {
    let id = id.patch();
    let head = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice()].concat();
    let related = related_task(task);
    let body = match &task.answer {
        None => {
            let text = br#","error":{"code":-32603,"message":"the task was cancelled"}}"#;
            return Outgoing::plain([&*head, text].concat());
        }
        Some(Answer::Error(error)) => [b",\"error\":", &**error, b"}"].concat(),
        Some(Answer::Result(result)) => {
            let edit = match json::member(result, "_meta") {
                Some(meta) => json::insert_member(result, meta, &related),
                None => json::insert_member(result, result, &[b"\"_meta\":{", &*related, b"}"].concat()),
            };
            let result = Outgoing::edited(result.clone(), edit.into_iter().collect()).to_vec();
            [b",\"result\":", &*result, b"}"].concat()
        }
    };
    Outgoing::plain([head, body].concat())
}
