//! How a server's task for a call is followed to its end.
//!
//! The server is asked how far it is, as often as it wishes. A notification only hastens the next
//! question: it may come late, twice or never, and never settles a call. A task outlives the connection
//! and the process that made it, so after either is lost the same task is asked for again.

use super::server_tasks::own_meta;
use crate::calls::Call;
use crate::calls::server_task::{Report, ServerTask};
use crate::clients::Way;
use crate::engine::Engine;
use crate::engine::remote::error_code;
use crate::error::{Kind, ServerState, json_text};
use crate::id::{AttemptId, CallId, ServerId, read_own_id};
use crate::json;
use crate::limits;
use crate::method::Method;
use crate::servers::{Life, Own, Readiness, Server};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Scanned, Shape, scan};
use bytes::Bytes;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::time::Duration;

/// Begins the `requestState` under which a client comes back with what a server's task has asked. What
/// follows is the server's name for the task.
const STATE: &str = "dev.outlast/task:";

impl Engine {
    // Questions.

    /// The time has come to ask how far a task is.
    pub(in crate::engine) fn poll_task(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(server) = self.servers.get(&call.request.server) else { return };
        let readiness = server.readiness();
        let waits = server.life == Life::Down && call.is_kept_at_server();
        if readiness == Readiness::IsGone && !waits {
            return self.fail_at_gone_server(now, id);
        }
        let poll =
            if readiness == Readiness::Runs { self.ask_server(id, "tasks/get", Own::Poll(id)) } else { None };
        self.calls.polled(now, id, poll);
    }

    /// The task has ended, or asks something: what is waited for now is its result.
    fn fetch_result(&mut self, id: CallId) {
        let Some(joined) = self.calls.get(id).and_then(Call::server_task) else { return };
        if joined.fetch.is_some() {
            return;
        }
        let fetch = self.ask_server(id, "tasks/result", Own::Fetch(id));
        self.calls.fetches(id, fetch);
    }

    fn ask_server(&mut self, id: CallId, method: &str, own: Own) -> Option<AttemptId> {
        let call = self.calls.get(id)?;
        let joined = call.server_task()?;
        let (server, request) =
            (call.request.server, about(method, &joined.task, joined.meta.as_deref(), b""));
        Some(self.send_about_task(server, &request, own))
    }

    /// Sends a request of ours. `request` has everything but its beginning.
    pub(super) fn send_about_task(&mut self, server: ServerId, request: &[u8], own: Own) -> AttemptId {
        let attempt = self.new_attempt();
        let head = format!(r#"{{"jsonrpc":"2.0","id":{}"#, attempt.0);
        let bytes = Bytes::from([head.as_bytes(), request].concat());
        if let Ok(Scanned::Message(message)) = scan(bytes.clone()) {
            self.send(server, Some(attempt), Some(&message), Outgoing::plain(bytes));
        }
        self.servers.asks_own(server, attempt, own);
        attempt
    }

    /// When a task is asked for next.
    pub(super) fn next_poll(&mut self, now: Mono, interval: Duration) -> Mono {
        let jitter = limits::POLL_JITTER * self.chance.next();
        reached!(POLL_JITTER if jitter > 0.0);
        now + interval.mul_f64(1.0 + jitter)
    }

    pub(super) fn poll_at(&mut self, now: Mono, id: CallId, at: Mono) {
        self.calls.poll_at(id, at);
        self.arm_call(now, id);
    }

    fn poll_later(&mut self, now: Mono, id: CallId) {
        let Some(interval) = self.calls.get(id).and_then(Call::server_task).map(|joined| joined.interval)
        else {
            return;
        };
        let at = self.next_poll(now, interval);
        self.poll_at(now, id, at);
    }

    // What comes back.

    /// A server says how far its task is.
    pub(in crate::engine) fn task_is_reported(&mut self, now: Mono, id: CallId, answer: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        let (modern, server) = (call.request.modern, call.request.server);
        if !self.calls.poll_is_answered(id) {
            return;
        }
        // Some say it has never been there, some that they know no tasks at all any more.
        if matches!(error_code(answer), Some(-32602 | -32601)) {
            if !self.orphaned_is_lost(now, id, "its server does not know its task any more") {
                self.task_is_lost(now, id, "its task for this call is lost");
            }
            return;
        }
        let Some(report) = answer.raw(Field::Result).and_then(Report::read) else {
            return self.poll_later(now, id);
        };
        if let Some(server) = self.servers.get(&server) {
            self.calls.task_reported(now, id, &report, &server.clock);
        }
        self.poll_later(now, id);
        match (report.status, modern) {
            ("completed" | "failed" | "cancelled", true) => self.answer_from_task(now, id, &report),
            ("completed" | "failed" | "cancelled" | "input_required", false) => self.fetch_result(id),
            ("input_required", true) => self.task_asks(id, report.input_requests),
            _ => {}
        }
    }

    fn task_is_lost(&mut self, now: Mono, id: CallId, why: &str) {
        self.calls.let_task_go(id);
        let Some(call) = self.calls.get(id) else { return };
        let mut failure = self.failure(now, call, Kind::ServerGone, None);
        failure.detail = Some(why.to_owned());
        failure.state = ServerState::Running;
        self.fail(id, failure);
    }

    /// A modern task has ended: what came of it is inside.
    fn answer_from_task(&mut self, now: Mono, id: CallId, report: &Report<'_>) {
        let (name, part) = match (report.result, report.error) {
            (Some(result), None) => ("result", result),
            (None, Some(error)) => ("error", error),
            _ if report.status == "cancelled" => {
                return self.task_is_lost(now, id, "it has cancelled its task for this call");
            }
            _ => return self.task_is_lost(now, id, "its task for this call ended without a result"),
        };
        let Some(call) = self.calls.get(id) else { return };
        let way = call.request.way;
        let body = if name == "result" { whole_result(part.get()) } else { part.get().into() };
        let answer = answer_of(call, name, body.as_bytes());
        if name == "error" && matches!(way, Way::Stream(_)) {
            let code = json::member(part.get().as_bytes(), "code");
            self.set_status(way, code.and_then(|code| serde_json::from_slice(code).ok()));
        }
        self.answer_and_let_go(id, answer);
    }

    /// The result of a legacy task, exactly as its server gave it.
    pub(in crate::engine) fn task_result_came(&mut self, now: Mono, id: CallId, answer: &Message) {
        let Some(ended) = self.calls.fetch_is_answered(id) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let client_id = call.request.id.patch();
        if answer.has(Field::Error) && !ended {
            // The wait failed, not the task.
            return self.poll_later(now, id);
        }
        let Some(span) = answer.envelope.get(Field::Id) else { return };
        let edit = Edit::replace(span, client_id);
        self.answer_and_let_go(id, Outgoing::edited(answer.bytes.clone(), vec![edit]));
    }

    fn answer_and_let_go(&mut self, id: CallId, answer: Outgoing) {
        self.calls.let_task_go(id);
        self.settle(id, Some(answer));
    }

    // What a modern task asks.

    /// A client without tasks is asked in the way that it knows; it comes back with the answers, and with
    /// the name of the task as its state.
    fn task_asks(&mut self, id: CallId, requests: Option<&RawValue>) {
        let Some(call) = self.calls.get(id) else { return };
        let Some(joined) = call.server_task() else { return };
        let requests = requests.map(|raw| raw.get().as_bytes()).unwrap_or_default();
        let open = json::without(requests, &joined.answered);
        if open.is_empty() {
            // What was answered is still shown: the server needs a moment.
            return;
        }
        if let Way::Ticket(no) = call.request.way {
            return self.task_of_ours_asks(no, requests);
        }
        let task: String = serde_json::from_slice(&joined.task).unwrap_or_default();
        let result = [
            br#"{"resultType":"input_required","inputRequests":{"#,
            &*open.join(&b","[..]),
            br#"},"requestState":"#,
            &*json_text(&format!("{STATE}{task}")),
            b"}",
        ]
        .concat();
        let answer = answer_of(call, "result", &result);
        self.answer_and_let_go(id, answer);
    }

    /// A client comes back with what a task of its server has asked: the answers go there, and the task is
    /// followed again. False if a call is an ordinary one.
    pub(in crate::engine) fn comes_back_to_task(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        message.has(Field::ParamsRequestState) && self.continues_task(now, id, message)
    }

    #[inline(never)]
    fn continues_task(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        let Some(state) = message.text(Field::ParamsRequestState) else { return false };
        let Some(task) = state.strip_prefix(STATE) else { return false };
        let (Some(call), Some(meta)) = (self.calls.get(id), own_meta(message)) else { return false };
        if !call.request.modern || call.request.method != Method::ToolsCall {
            return false;
        }
        let server = call.request.server;
        self.calls.count_attempt(id);
        let responses = message.raw(Field::ParamsInputResponses).unwrap_or(b"{}");
        let answered = json::names(responses);
        let task: Box<[u8]> = json_text(task).into();
        let update = [b",\"inputResponses\":", responses].concat();
        let update = about("tasks/update", &task, Some(&meta), &update);
        let joined = ServerTask { answered, ..ServerTask::named(task, Some(meta), None, now) };
        self.follow(now, id, joined, false);
        self.send_about_task(server, &update, Own::Quiet);
        true
    }

    // What hastens a question, and what makes it necessary again.

    /// A server says that its task has changed. False if it is none that we follow.
    pub(in crate::engine) fn hasten_poll(&mut self, now: Mono, server: ServerId, message: &Message) -> bool {
        let known = message
            .raw(Field::ParamsTaskId)
            .and_then(|task| self.servers.get(&server)?.followed.get(task).copied());
        let Some(id) = known else { return false };
        let Some(joined) = self.calls.get(id).and_then(Call::server_task) else { return true };
        if joined.poll.is_none() {
            let soonest = joined.polled + limits::POLL_LEAST;
            let at = joined.poll_at.min(soonest.max(now));
            self.poll_at(now, id, at);
        }
        true
    }

    /// Whether this answers a question of ours about a task. That is no sign of life: a server answers it
    /// while the task hangs.
    pub(in crate::engine) fn answers_poll(&self, server: ServerId, message: &Message) -> bool {
        self.servers
            .get(&server)
            .is_some_and(|server| !server.followed.is_empty() && answers_own_poll(server, message))
    }

    /// A request of ours will not be answered: whatever waits for that goes on without.
    pub(in crate::engine) fn asked_in_vain(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>) {
        let Some(attempt) = attempt else { return };
        if let Some(own) = self.servers.take_own(id, attempt) {
            self.own_is_lost(now, (id, attempt), own);
        }
    }

    pub(in crate::engine) fn own_is_lost(
        &mut self,
        now: Mono,
        (server, attempt): (ServerId, AttemptId),
        own: Own,
    ) {
        match own {
            Own::Poll(call) | Own::Fetch(call) => self.polled_in_vain(now, call, attempt),
            Own::Tools(paging) => self.go_on_without_tools(now, paging.call),
            Own::Listing(kind) => {
                self.page_is_lost(now, (server, attempt), kind, "its answer was lost".into())
            }
            Own::Discover => self.discovery_is_lost(now, server),
            Own::Quiet | Own::Heartbeat | Own::List(_) => {}
        }
    }

    /// The task is asked for again.
    fn polled_in_vain(&mut self, now: Mono, call: CallId, attempt: AttemptId) {
        self.calls.asked_in_vain(call, attempt);
        self.poll_later(now, call);
    }

    /// A server is there again: what it still has is asked for at once.
    pub(in crate::engine) fn poll_again(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let joined: Vec<CallId> = server.followed.values().copied().collect();
        for call in joined {
            self.calls.forget_questions(call);
            self.poll_at(now, call, now);
        }
    }

    /// The call for which a result is waited for under this number.
    pub(in crate::engine) fn fetched_for(&self, attempt: AttemptId) -> Option<&Call> {
        let mut followed = self.servers.values().flat_map(|server| server.followed.values());
        followed.find_map(|id| self.calls.fetched_by(*id, attempt))
    }

    // The end.

    /// A call is settled: if its task still runs, nobody wants it any more.
    pub(in crate::engine) fn leave_task(&mut self, id: ServerId, call: CallId, joined: &ServerTask) {
        let asked: Vec<AttemptId> = [joined.poll, joined.fetch].into_iter().flatten().collect();
        self.servers.leaves_task(id, &joined.task, call, &asked);
        let Some(server) = self.servers.get(&id) else { return };
        let wanted = joined.let_go || joined.ended || server.readiness() != Readiness::Runs;
        asked.into_iter().for_each(|attempt| self.abandon(id, attempt));
        if !wanted {
            let cancel = about("tasks/cancel", &joined.task, joined.meta.as_deref(), b"");
            self.send_about_task(id, &cancel, Own::Quiet);
        }
    }
}

/// A request about a task, without its beginning. `more` is further members of `params`.
pub(super) fn about(method: &str, task: &[u8], meta: Option<&[u8]>, more: &[u8]) -> Vec<u8> {
    let mut request = format!(r#","method":"{method}","params":{{"taskId":"#).into_bytes();
    request.extend_from_slice(task);
    request.extend_from_slice(more);
    if let Some(meta) = meta {
        request.extend_from_slice(b",\"_meta\":");
        request.extend_from_slice(meta);
    }
    request.extend_from_slice(b"}}");
    request
}

/// A result of this era says that it is whole; within a task it may leave that out.
fn whole_result(result: &str) -> Cow<'_, str> {
    match result.strip_prefix('{') {
        Some(rest) if json::member(result.as_bytes(), "resultType").is_none() => {
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!(r#"{{"resultType":"complete"{comma}{rest}"#).into()
        }
        _ => result.into(),
    }
}

/// The answer to a call, with a result or an error as it stands.
fn answer_of(call: &Call, name: &str, part: &[u8]) -> Outgoing {
    let id = call.request.id.patch();
    let name = format!(r#","{name}":"#);
    Outgoing::plain([br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), name.as_bytes(), part, b"}"].concat())
}

#[inline(never)]
fn answers_own_poll(server: &Server, message: &Message) -> bool {
    let own = (message.shape == Shape::Answer).then(|| message.raw(Field::Id)).flatten();
    let own = own.and_then(read_own_id).and_then(|(number, _)| server.own.get(&AttemptId(number)));
    matches!(own, Some(Own::Poll(_)))
}
