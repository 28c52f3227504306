//! Calls that are fetched later: tasks of both eras, made by us for any tool of any server.
//!
//! The handle of a task leaves only after the task is stored, and so does its end. A server that has
//! tasks of its own is left to it.

use super::Engine;
use crate::action::{Action, Note};
use crate::call::Request;
use crate::client::{Client, Door, Open, Way};
use crate::error::error_answer;
use crate::id::{CallId, ClientId, JsonId, ServerId, TaskNo};
use crate::json;
use crate::method::Method;
use crate::policy::CallFacts;
use crate::record::{Answer, Change, Faces, New, Origin, State, Ticket};
use crate::store::{Stored, Write};
use crate::task::{Task, TaskRule, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Scanned, scan};
use bytes::Bytes;
use std::time::Duration;

/// The extension of the modern era.
const EXTENSION: &[u8] = b"\"io.modelcontextprotocol/tasks\"";

/// The only legacy revision with tasks.
const REVISION: &str = "2025-11-25";

/// Why a submission to the store was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pending {
    /// A task was made.
    Made(TaskNo),
    /// A task has changed.
    Changed(TaskNo),
}

impl Engine {
    /// Takes a request that is about tasks. False if it is the server's.
    pub(super) fn task_request(&mut self, now: Mono, request: &Request, message: &Message) -> bool {
        if self.servers.get(&request.server).is_some_and(|server| server.own_tasks) {
            return false;
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

    fn about_task(&mut self, now: Mono, request: &Request, message: &Message) {
        let ticket = message.text(Field::ParamsTaskId).and_then(|text| Ticket::parse(&text));
        let principal = self.principal_of(request.client);
        let found = ticket.and_then(|ticket| {
            let known = |(_, task): &(&TaskNo, &Task)| {
                task.ticket == ticket && task.principal == principal && task.modern == request.modern
            };
            self.tasks.iter().find(known).map(|(no, _)| *no)
        });
        let Some(no) = found else {
            return self.answer_error(
                request.client,
                request.way,
                &request.id,
                -32602,
                "Invalid params: no such task",
            );
        };
        let waiter =
            |wants| Waiter { client: request.client, way: request.way, id: request.id.clone(), wants };
        match request.method {
            Method::TasksResult => {
                let waiter = waiter(Wants::Result);
                match self.tasks.get_mut(&no) {
                    Some(task) if !task.has_ended() => self.wait_for_task(no, waiter),
                    _ => self.show_task(no, &waiter),
                }
            }
            Method::TasksCancel => {
                self.cancel_task(now, no, waiter(if request.modern { Wants::Word } else { Wants::Task }))
            }
            Method::TasksUpdate => self.show_task(no, &waiter(Wants::Word)),
            _ => self.show_task(no, &waiter(Wants::Task)),
        }
    }

    fn wait_for_task(&mut self, no: TaskNo, waiter: Waiter) {
        if let Some(client) = self.clients.get_mut(&waiter.client) {
            client.open(waiter.id.key(), Open::Wait(no));
        }
        if let Some(task) = self.tasks.get_mut(&no) {
            task.waiters.push(waiter);
        }
    }

    /// A client gives up a wait. The task goes on.
    pub(super) fn stop_waiting(&mut self, client: ClientId, id: &JsonId, no: TaskNo) {
        if let Some(client) = self.clients.get_mut(&client) {
            client.close(id, Open::Wait(no));
        }
        let Some(task) = self.tasks.get_mut(&no) else { return };
        let gone =
            task.waiters.iter().position(|waiter| waiter.client == client && waiter.id.key() == id.key());
        let Some(waiter) = gone.map(|at| task.waiters.remove(at)) else { return };
        if let Way::Stream(stream) = waiter.way {
            self.settled_on_stream(self.at, stream);
        }
    }

    /// A client that waited is gone.
    pub(super) fn forget_waiter(&mut self, client: ClientId, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        let gone: Vec<Waiter> = task.waiters.extract_if(.., |waiter| waiter.client == client).collect();
        if let Some(client) = self.clients.get_mut(&client) {
            gone.iter().for_each(|waiter| client.close(&waiter.id, Open::Wait(no)));
        }
    }

    fn cancel_task(&mut self, now: Mono, no: TaskNo, waiter: Waiter) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        if !task.state.is_open() {
            if waiter.wants == Wants::Word {
                return self.show_task(no, &waiter);
            }
            let text = format!("Invalid params: the task has ended: {}", task.state.as_str());
            return self.answer_error(waiter.client, waiter.way, &waiter.id, -32602, &text);
        }
        let call = task.call.take();
        task.start = None;
        task.waiters.push(waiter);
        self.end_task(now, no, State::Cancelled, None);
        if let Some(call) = call {
            self.give_up(call, "the task was cancelled");
        }
    }

    // How a task begins.

    /// A legacy client asks for a task. False if its call is an ordinary one.
    pub(super) fn task_wanted(&mut self, request: &mut Request, message: &Message) -> bool {
        let server = self.servers.get(&request.server);
        let ours = self.config.tasks
            && server.is_some_and(|server| !server.own_tasks && server.agreed() == Some(REVISION));
        if !ours
            || request.modern
            || request.method != Method::ToolsCall
            || !message.is_object(Field::ParamsTask)
        {
            return false;
        }
        if self.task_rule(request) == TaskRule::Forbidden {
            let text = "Method not found: this tool cannot be called as a task";
            self.answer_error(request.client, request.way, &request.id.clone(), -32601, text);
            return true;
        }
        let Some(plain) = without_task(message) else { return false };
        let wish = wished_ttl(message);
        let waiter =
            Waiter { client: request.client, way: request.way, id: request.id.clone(), wants: Wants::Handle };
        let Some(no) = self.make_task(request, &plain, wish, waiter) else { return false };
        let started = Request { way: Way::Ticket(no), task: false, ..request.clone() };
        if let Some(task) = self.tasks.get_mut(&no) {
            task.start = Some((Box::new(started), Box::new(plain)));
        }
        true
    }

    /// Makes a task and has it stored. `None` without random bytes.
    fn make_task(
        &mut self,
        request: &Request,
        message: &Message,
        wish: Option<Duration>,
        waiter: Waiter,
    ) -> Option<TaskNo> {
        let entropy = self.entropy.pop()?;
        self.act(Action::NeedEntropy);
        let policy = self.policy_of(request);
        let least = policy.max.time + self.config.task_ttl;
        let most = self.config.task_ttl_max.max(least);
        let no = TaskNo(self.next_task);
        self.next_task += 1;
        let faces = if request.modern { Faces::MODERN_TASK } else { Faces::LEGACY_TASK };
        let task = Task {
            ticket: Ticket::of(&entropy),
            principal: self.principal_of(request.client),
            client: request.client,
            modern: request.modern,
            call: None,
            state: State::Working,
            created: self.wall,
            updated: self.wall,
            ttl: wish.unwrap_or(least).clamp(least, most),
            answer: None,
            stored: false,
            start: None,
            waiters: vec![waiter],
            ended: None,
        };
        let origin = Origin {
            principal: task.principal.clone(),
            server: self.config.identity.clone(),
            method: request.method.as_str().into(),
            tool: request.tool.clone().unwrap_or_default(),
            key: None,
        };
        let body = crate::record::Body { ttl_ms: Some(millis(task.ttl)), ..Default::default() };
        let new = New {
            ticket: task.ticket.clone(),
            origin,
            faces,
            at: self.wall,
            body: body.encode(),
            request: message.bytes.clone(),
        };
        self.tasks.insert(no, task);
        self.submit(Pending::Made(no), Write::Create(Box::new(new)));
        Some(no)
    }

    fn submit(&mut self, pending: Pending, write: Write) {
        self.next_submission += 1;
        self.pending.insert(self.next_submission, pending);
        self.act(Action::Store(self.next_submission, vec![write]));
    }

    /// A modern call has taken so long that its client gets a handle.
    pub(super) fn task_is_due(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.task_at = None;
        let request = call.request.clone();
        let Some(message) = call.kept_for_task.take() else { return };
        let waiter =
            Waiter { client: request.client, way: request.way, id: request.id.clone(), wants: Wants::Handle };
        let Some(no) = self.make_task(&request, &message, None, waiter) else { return };
        if let Some(task) = self.tasks.get_mut(&no) {
            task.call = Some(id);
        }
    }

    /// When a call becomes a task, if it is not answered before.
    pub(super) fn task_after(&self, request: &Request, message: &Message, now: Mono) -> Option<Mono> {
        let ours = self.config.tasks
            && request.modern
            && request.method == Method::ToolsCall
            && self.servers.get(&request.server).is_some_and(|server| !server.own_tasks)
            && declares_tasks(message)
            && self.task_rule(request) != TaskRule::Forbidden;
        ours.then(|| now + self.config.task_after)
    }

    fn policy_of(&self, request: &Request) -> crate::policy::Policy {
        let declared = crate::policy::Declared::default();
        let declared = self.servers.get(&request.server).map_or(&declared, |server| &server.declared);
        self.config.rules.for_call(CallFacts {
            method: &request.method,
            tool: request.tool.as_deref(),
            has_token: true,
            wish: None,
            declared,
        })
    }

    /// What a person says about a tool, unless its server forbids tasks.
    fn task_rule(&self, request: &Request) -> TaskRule {
        let forbids = request.tool.as_ref().zip(self.servers.get(&request.server));
        if forbids.is_some_and(|(tool, server)| server.forbids_tasks.contains(tool)) {
            return TaskRule::Forbidden;
        }
        self.policy_of(request).task
    }

    // What the store says.

    pub(super) fn stored(&mut self, now: Mono, number: u64, outcome: &Stored) {
        let Some(pending) = self.pending.remove(&number) else { return };
        if let Err(trouble) = outcome {
            self.note(Note::StoreFailed { why: trouble.to_string() });
        }
        match (pending, outcome) {
            (Pending::Made(no), Ok(_)) => self.task_was_made(now, no),
            (Pending::Made(no), Err(_)) => self.task_was_not_made(now, no),
            // What could not be stored is kept in memory: better than losing it.
            (Pending::Changed(no), _) => self.task_may_be_shown(no),
        }
    }

    fn task_was_made(&mut self, now: Mono, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        task.stored = true;
        let handle = task.waiters.iter().position(|waiter| waiter.wants == Wants::Handle);
        let handle = handle.map(|at| task.waiters.remove(at));
        let (start, call) = (task.start.take(), task.call);
        if let Some(call) = call {
            if self.calls.get(call).is_none() {
                // It was answered, or given up, while its task was being stored: nobody knows the ticket.
                return self.end_task(now, no, State::Cancelled, None);
            }
            self.detach_from_client(call, no);
        }
        if let Some(handle) = handle {
            self.show_task(no, &handle);
        }
        if let Some((request, message)) = start {
            self.begin_call(now, *request, &message);
        }
        // It ended while it was being stored.
        if self.tasks.get(&no).is_some_and(|task| !task.state.is_open()) {
            self.write_end(no);
        }
    }

    /// The call of a task is open.
    pub(super) fn task_runs(&mut self, no: TaskNo, server: ServerId, call: CallId) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.call = Some(call);
        }
        if let Some(server) = self.servers.get_mut(&server) {
            server.tickets += 1;
        }
    }

    /// From now on a call is answered by its task.
    fn detach_from_client(&mut self, id: CallId, no: TaskNo) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let (client, json_id, server) = (call.request.client, call.request.id.clone(), call.request.server);
        call.request.way = Way::Ticket(no);
        // The extension has no progress on tasks.
        call.request.token = None;
        call.keep_alive = None;
        call.stream_at = None;
        self.one_call_less(client);
        if let Some(client) = self.clients.get_mut(&client) {
            client.close(&json_id, Open::Call(id));
        }
        self.task_runs(no, server, id);
    }

    /// No task, then: the call is made, or goes on, as an ordinary one.
    fn task_was_not_made(&mut self, now: Mono, no: TaskNo) {
        let Some(task) = self.tasks.remove(&no) else { return };
        let handle = task.waiters.into_iter().find(|waiter| waiter.wants == Wants::Handle);
        if let (Some((request, message)), Some(handle)) = (task.start, handle) {
            self.begin_call(now, Request { way: handle.way, ..*request }, &message);
        }
    }

    fn task_may_be_shown(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        task.stored = true;
        if !task.has_ended() {
            return;
        }
        let waiters = std::mem::take(&mut task.waiters);
        self.tell_status(no);
        for waiter in waiters {
            if let Some(client) = self.clients.get_mut(&waiter.client) {
                client.close(&waiter.id, Open::Wait(no));
            }
            self.show_task(no, &waiter);
        }
    }

    // Questions.

    /// Tasks whose call a server has.
    fn tasks_at(&self, server: ServerId) -> impl Iterator<Item = (&TaskNo, &Task)> {
        let at = move |task: &Task| {
            let call = task.call.and_then(|id| self.calls.get(id));
            call.is_some_and(|call| call.request.server == server)
        };
        let none = self.servers.get(&server).is_none_or(|server| server.tickets == 0);
        self.tasks.iter().filter(move |(_, task)| !none && at(task))
    }

    /// Somebody who waits for the result of a task at this server, and so for its questions.
    pub(super) fn waits_for_questions(&self, server: ServerId) -> Option<(ClientId, Way)> {
        let mut waiters =
            self.tasks_at(server).filter(|(_, task)| !task.modern).flat_map(|(_, task)| &task.waiters);
        waiters.find(|waiter| waiter.wants == Wants::Result).map(|waiter| (waiter.client, waiter.way))
    }

    /// Says in a question which task it is about, if it can be only one.
    pub(super) fn tie_to_task(&self, server: ServerId, message: &Message) -> Option<Edit> {
        let mut tasks = self.tasks_at(server);
        let (_, task) = tasks.next().filter(|_| tasks.next().is_none())?;
        let params = message.raw(Field::Params)?;
        let related = related_task(task);
        match message.raw(Field::ParamsMeta) {
            Some(meta) => json::insert_member(&message.bytes, meta, &related),
            None => json::insert_member(&message.bytes, params, &[b"\"_meta\":{", &*related, b"}"].concat()),
        }
    }

    /// While a server waits for a person, so do all its tasks: nothing says which one it is about.
    pub(super) fn tasks_need_input(&mut self, server: ServerId, needed: bool) {
        let (from, to) = if needed {
            (State::Working, State::InputRequired)
        } else {
            (State::InputRequired, State::Working)
        };
        let changed: Vec<TaskNo> =
            self.tasks_at(server).filter(|(_, task)| task.state == from).map(|(no, _)| *no).collect();
        for no in changed {
            if let Some(task) = self.tasks.get_mut(&no) {
                task.state = to;
                task.updated = self.wall;
            }
            self.tell_status(no);
        }
    }

    // How a task ends.

    /// The call of a task is answered, by its server or by us.
    pub(super) fn task_answered(&mut self, no: TaskNo, answer: &Outgoing) {
        let Some(task) = self.tasks.get_mut(&no).filter(|task| task.state.is_open()) else { return };
        task.call = None;
        let modern = task.modern;
        let Ok(Scanned::Message(message)) = scan(&answer.to_vec().into()) else { return };
        let part =
            |field| message.envelope.get(field).map(|span| message.bytes.slice(span.start()..span.end()));
        let (state, answer) = match (part(Field::Result), part(Field::Error)) {
            (Some(result), _) => {
                let failed = json::member(&result, "isError") == Some(b"true");
                let state = if failed && !modern { State::Failed } else { State::Completed };
                (state, Answer::Result(result))
            }
            (None, error) => (State::Failed, Answer::Error(error.unwrap_or_default())),
        };
        self.end_task(self.at, no, state, Some(answer));
    }

    fn end_task(&mut self, now: Mono, no: TaskNo, state: State, answer: Option<Answer>) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        // One that is not stored yet is written when it is.
        let made = task.stored;
        task.state = state;
        task.answer = answer;
        task.updated = self.wall;
        task.stored = false;
        task.ended = Some(now);
        self.arm_tasks(now);
        if made {
            self.write_end(no);
        }
    }

    fn write_end(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        task.stored = false;
        let expires = crate::time::Wall(self.wall.0 + millis(self.config.task_ttl));
        let change = Change {
            ticket: task.ticket.clone(),
            epoch: 1,
            state: task.state,
            faces: Faces::default(),
            at: self.wall,
            expires: Some(expires),
            body: None,
            answer: task.answer.clone(),
        };
        self.submit(Pending::Changed(no), Write::Change(Box::new(change)));
    }

    /// A server that only tasks needed may go.
    pub(super) fn one_ticket_less(&mut self, now: Mono, server: ServerId) {
        if let Some(state) = self.servers.get_mut(&server) {
            state.tickets = state.tickets.saturating_sub(1);
        }
        self.leave_if_unused(now, server);
    }

    // Time.

    fn arm_tasks(&mut self, now: Mono) {
        if self.tasks_armed.is_none() {
            let at = now + self.config.task_ttl;
            self.timers.set(crate::timers::Owner::Tasks, &mut self.tasks_armed, Some(at));
        }
    }

    /// Forgets what ended long ago.
    pub(super) fn tasks_due(&mut self, now: Mono) {
        self.tasks_armed = None;
        let ttl = self.config.task_ttl;
        let over =
            |task: &Task| task.ended.is_some_and(|ended| now.since(ended) >= ttl) && task.waiters.is_empty();
        self.tasks.retain(|_, task| !over(task));
        let next = self.tasks.values().filter_map(|task| task.ended).min();
        let at = next.map(|ended| (ended + ttl).max(now + Duration::from_secs(1)));
        self.timers.set(crate::timers::Owner::Tasks, &mut self.tasks_armed, at);
    }

    // What clients see.

    fn answer_error(&mut self, client: ClientId, way: Way, id: &JsonId, code: i32, text: &str) {
        let answer = error_answer(id.patch().as_slice(), code, text, None);
        self.reply(client, way, Some(id), Outgoing::plain(answer));
    }

    fn answer_result(&mut self, client: ClientId, way: Way, id: &JsonId, result: &[u8]) {
        let id_text = id.patch();
        let answer =
            [br#"{"jsonrpc":"2.0","id":"#, id_text.as_slice(), br#","result":"#, result, b"}"].concat();
        self.reply(client, way, Some(id), Outgoing::plain(answer));
    }

    fn refuse_to_declare(&mut self, request: &Request) {
        let id = request.id.patch();
        let rest = br#","error":{"code":-32021,"message":"Missing required client capability: io.modelcontextprotocol/tasks","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}"#;
        let answer = [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), rest].concat();
        self.reply(request.client, request.way, Some(&request.id), Outgoing::plain(answer));
    }

    /// Gives a waiter what it wants to see.
    fn show_task(&mut self, no: TaskNo, waiter: &Waiter) {
        let Some(task) = self.tasks.get(&no) else { return };
        let result = match (waiter.wants, task.modern) {
            (Wants::Word, _) => br#"{"resultType":"complete"}"#.to_vec(),
            (Wants::Handle, true) => self.modern_task(task, "task"),
            (Wants::Task, true) => self.modern_task(task, "complete"),
            (Wants::Handle, false) => [b"{\"task\":", &*self.legacy_task(task), b"}"].concat(),
            (Wants::Task, false) => self.legacy_task(task),
            (Wants::Result, _) => {
                let answer = result_of(task, &waiter.id);
                return self.reply(waiter.client, waiter.way, Some(&waiter.id), answer);
            }
        };
        self.answer_result(waiter.client, waiter.way, &waiter.id, &result);
    }

    fn legacy_task(&self, task: &Task) -> Vec<u8> {
        let shown = serde_json::json!({
            "taskId": task.ticket.as_str(),
            "status": task.shown().as_str(),
            "createdAt": task.created.timestamp(),
            "lastUpdatedAt": task.updated.timestamp(),
            "ttl": millis(task.ttl),
            "pollInterval": task.poll_interval(self.wall),
        });
        shown.to_string().into_bytes()
    }

    fn modern_task(&self, task: &Task, result_type: &str) -> Vec<u8> {
        let shown = serde_json::json!({
            "resultType": result_type,
            "taskId": task.ticket.as_str(),
            "status": task.shown().as_str(),
            "createdAt": task.created.timestamp(),
            "lastUpdatedAt": task.updated.timestamp(),
            "ttlMs": millis(task.ttl),
            "pollIntervalMs": task.poll_interval(self.wall),
        });
        let mut text = shown.to_string().into_bytes();
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

    /// Tells a legacy client that a task of its has changed.
    fn tell_status(&mut self, no: TaskNo) {
        let Some(task) = self.tasks.get(&no).filter(|task| !task.modern) else { return };
        let client = task.client;
        let params = self.legacy_task(task);
        let message =
            [br#"{"jsonrpc":"2.0","method":"notifications/tasks/status","params":"#, &*params, b"}"].concat();
        self.tell_client(client, Outgoing::plain(message));
    }

    fn list_tasks(&mut self, request: &Request, message: &Message) {
        const PAGE: usize = 50;
        let known = self.clients.get(&request.client);
        if known.is_some_and(|client| !matches!(client.door, Door::Line) && client.principal.is_none()) {
            let text = "Method not found: tasks/list needs authentication";
            return self.answer_error(request.client, request.way, &request.id, -32601, text);
        }
        let principal = self.principal_of(request.client);
        let after = match message.text(Field::ParamsCursor) {
            None => 0,
            Some(cursor) => match cursor.parse::<u64>() {
                Ok(after) => after,
                Err(_) => {
                    let text = "Invalid params: no such cursor";
                    return self.answer_error(request.client, request.way, &request.id, -32602, text);
                }
            },
        };
        let own = |(no, task): &(&TaskNo, &Task)| no.0 > after && task.principal == principal && !task.modern;
        let page: Vec<TaskNo> = self.tasks.iter().filter(own).map(|(no, _)| *no).take(PAGE + 1).collect();
        let shown: Vec<Vec<u8>> = page
            .iter()
            .take(PAGE)
            .filter_map(|no| self.tasks.get(no))
            .map(|task| self.legacy_task(task))
            .collect();
        let next = page.get(PAGE - 1).filter(|_| page.len() > PAGE);
        let next = next.map(|no| format!(r#","nextCursor":"{}""#, no.0)).unwrap_or_default();
        let result = [b"{\"tasks\":[", &*shown.join(&b","[..]), b"]", next.as_bytes(), b"}"].concat();
        self.answer_result(request.client, request.way, &request.id, &result);
    }

    /// Whose calls a client's are. Without a name a session is its own, and modern exchanges are all one:
    /// there a ticket alone is the key.
    pub(super) fn principal_of(&self, client: ClientId) -> Box<str> {
        let Some(client) = self.clients.get(&client) else { return "".into() };
        match (&client.principal, &client.door) {
            (Some(name), _) => format!("token:{name}").into(),
            (None, Door::Line) => "stdio".into(),
            (None, Door::Session(session)) => format!("session:{}", session.id).into(),
            (None, Door::Exchange(_)) => "anonymous".into(),
        }
    }

    // What a server says of itself, with tasks added.

    /// What is added to the answer to a handshake.
    pub(super) fn add_tasks_to_handshake(
        &self,
        server: ServerId,
        client: ClientId,
        answer: &Message,
    ) -> Vec<Edit> {
        let add = || {
            let server = self.servers.get(&server)?;
            if !self.config.tasks || server.own_tasks {
                return None;
            }
            let result = answer.raw(Field::Result)?;
            let capabilities = json::member(result, "capabilities")?;
            if json::member(result, "supportedVersions").is_some() {
                return add_extension(&answer.bytes, capabilities);
            }
            if json::member(result, "protocolVersion") != Some(b"\"2025-11-25\"") {
                return None;
            }
            let listed = self.clients.get(&client).is_some_and(Client::may_list_tasks);
            let list: &[u8] = if listed { br#""list":{},"# } else { b"" };
            let tasks = [br#""tasks":{"#, list, br#""cancel":{},"requests":{"tools":{"call":{}}}}"#].concat();
            json::insert_member(&answer.bytes, capabilities, &tasks)
        };
        add().into_iter().collect()
    }

    /// What is added to a list of tools: which of them may be called as tasks.
    pub(super) fn add_tasks_to_tools(&mut self, id: ServerId, answer: &Message) -> Vec<Edit> {
        let legacy = self
            .servers
            .get(&id)
            .is_some_and(|server| !server.own_tasks && server.agreed() == Some(REVISION));
        if !self.config.tasks || !legacy {
            return Vec::new();
        }
        let Some(tools) = answer.raw(Field::Result).and_then(|result| json::member(result, "tools")) else {
            return Vec::new();
        };
        let mut edits = Vec::new();
        for tool in json::elements(tools).unwrap_or_default() {
            let name: Option<Box<str>> =
                json::member(tool, "name").and_then(|raw| serde_json::from_slice(raw).ok());
            let Some(name) = name else { continue };
            let execution = json::member(tool, "execution");
            let support = execution.and_then(|execution| json::member(execution, "taskSupport"));
            if let Some(server) = self.servers.get_mut(&id) {
                if support == Some(b"\"forbidden\"") {
                    server.forbids_tasks.insert(name.clone());
                } else {
                    server.forbids_tasks.remove(&name);
                }
            }
            if support.is_some() {
                continue;
            }
            let rule = self.config.rules.task_of(&name);
            let word: &[u8] = match rule {
                TaskRule::Forbidden => continue,
                TaskRule::Optional => br#""taskSupport":"optional""#,
                TaskRule::Required => br#""taskSupport":"required""#,
            };
            edits.extend(match execution {
                Some(execution) => json::insert_member(&answer.bytes, execution, word),
                None => json::insert_member(&answer.bytes, tool, &[b"\"execution\":{", word, b"}"].concat()),
            });
        }
        edits
    }
}

impl Client {
    fn may_list_tasks(&self) -> bool {
        matches!(self.door, Door::Line) || self.principal.is_some()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn declares_tasks(message: &Message) -> bool {
    message.raw(Field::ParamsMeta).is_some_and(|meta| memchr::memmem::find(meta, EXTENSION).is_some())
}

/// The same call without `params.task`.
fn without_task(message: &Message) -> Option<Message> {
    let span = message.envelope.get(Field::ParamsTask)?;
    let edit = Edit::remove_member(&message.bytes, span);
    let bytes = Outgoing::edited(message.bytes.clone(), vec![edit]).to_vec();
    match scan(&bytes.into()) {
        Ok(Scanned::Message(message)) => Some(message),
        _ => None,
    }
}

fn wished_ttl(message: &Message) -> Option<Duration> {
    let ttl = json::member(message.raw(Field::ParamsTask)?, "ttl")?;
    let millis: f64 = serde_json::from_slice(ttl).ok()?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}

/// The extension beside those that a server declares.
fn add_extension(whole: &Bytes, capabilities: &[u8]) -> Option<Edit> {
    let tasks = [EXTENSION, b":{}"].concat();
    match json::member(capabilities, "extensions") {
        Some(extensions) => json::insert_member(whole, extensions, &tasks),
        None => json::insert_member(whole, capabilities, &[b"\"extensions\":{", &*tasks, b"}"].concat()),
    }
}

/// A member of `_meta`.
fn related_task(task: &Task) -> Vec<u8> {
    let ticket = task.ticket.as_str().as_bytes();
    [br#""io.modelcontextprotocol/related-task":{"taskId":""#, ticket, br#""}"#].concat()
}

/// The answer of a task's call, under the id of whoever asks, and tied to the task.
fn result_of(task: &Task, id: &JsonId) -> Outgoing {
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
