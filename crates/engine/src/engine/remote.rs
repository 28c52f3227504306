//! Servers behind HTTP: what becomes of a call when its connection breaks, its status is no success,
//! or its session is gone.
//!
//! What never arrived may always be sent again; what may have arrived only if repeating is safe. A
//! stream that has shown an event id is opened again from there for as long as its call lives. A lost
//! session is begun again with the same handshake and the same subscriptions. The request that found out is sent
//! once more; everything else has connections of its own and goes on.

use super::Engine;
use super::revival::Why;
use super::stepping::outcome_in;
use crate::action::{Action, Note};
use crate::calls::{Call, retry};
use crate::error::{Kind, Retry, ServerState, cut};
use crate::http::{StreamEnd, Trouble};
use crate::id::{AttemptId, CallId, ServerId, own_id, read_own_id};
use crate::limits;
use crate::method::Method;
use crate::servers::{Life, NewSession, Own, Paging, Readiness};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch, Scanned, Shape, scan, scan_message};
use bytes::Bytes;
use std::time::Duration;

/// What is said of a server whose session is lost.
const FORGOTTEN: &str = "it has forgotten our session";

/// How servers on the official TypeScript and Python SDKs, and the many that copied their examples, say with
/// status 400 that they do not know a session.
const FORGOTTEN_WORDS: [&str; 2] =
    ["Bad Request: No valid session ID provided", "Bad Request: Server not initialized"];

impl Engine {
    pub(super) fn trouble(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, trouble: &Trouble) {
        let resumed =
            attempt.filter(|_| self.call_of(id, attempt).is_some_and(|id| self.is_being_resumed(id)));
        match trouble {
            Trouble::Unreachable(why) => self.unreachable(now, id, attempt, why),
            Trouble::Broken(why) | Trouble::NotMcp(why) if attempt.is_none() => self.post_lost(id, why),
            Trouble::Broken(why) => self.broke_off(now, id, attempt, why),
            Trouble::NotMcp(why) => self.not_mcp(now, id, attempt, why),
            Trouble::Status { status, retry_after, had_session, body } => {
                self.status(now, id, attempt, *status, *retry_after, *had_session, body);
            }
        }
        self.asked_in_vain(now, id, attempt);
        // Where it was to be taken up is remembered for as long as it may be.
        if let Some(over) = resumed.filter(|attempt| !self.calls.awaits(*attempt)) {
            self.abandon(id, over);
        }
    }

    /// What nobody waits for has failed; nothing can be done, but it is not kept secret.
    fn post_lost(&mut self, id: ServerId, why: &str) {
        let Some(server) = self.servers.get(&id).map(|server| server.config.name.clone()) else { return };
        self.note(Note::PostLost { server, why: why.to_owned() });
    }

    /// Whether an attempt is the handshake that makes a server whole again.
    fn is_reviving(&self, id: ServerId, attempt: Option<AttemptId>) -> bool {
        let life = self.servers.get(&id).map(|server| server.life);
        attempt.is_some_and(|attempt| life == Some(Life::Reviving(attempt)))
    }

    /// The call that an attempt may still answer; not one whose server has made a task of it.
    fn call_of(&self, server: ServerId, attempt: Option<AttemptId>) -> Option<CallId> {
        let call = self.calls.of(server, attempt?)?;
        self.calls.get(call).is_some_and(|call| call.server_task().is_none()).then_some(call)
    }

    /// No connection could be made. The server is given a while, and what waits for it waits on.
    fn unreachable(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, why: &str) {
        self.servers.has_trouble(id, why);
        let Some(server) = self.servers.get(&id) else { return };
        let (name, life) = (server.config.name.clone(), server.life);
        if matches!(life, Life::Leaving | Life::Ended(_)) {
            return;
        }
        self.note(Note::Unreachable { server: name, why: why.into() });
        if let Some(call) = self.call_of(id, attempt)
            && !self.resume_later(now, id, attempt, None, false)
        {
            self.lost_or_never_arrived(now, id, call, attempt, why);
        }
        if let Some(attempt) = attempt {
            self.subscription_broke(now, attempt);
        }
        let tries = matches!(life, Life::Starting | Life::Up | Life::Restarting | Life::Reviving(_));
        if tries {
            self.servers.did_not_come_up(id);
            self.rest(now, id, Why::Unreachable);
        }
    }

    /// What was being resumed did arrive, the first time.
    fn lost_or_never_arrived(
        &mut self,
        now: Mono,
        id: ServerId,
        call: CallId,
        attempt: Option<AttemptId>,
        why: &str,
    ) {
        if self.is_being_resumed(call) {
            self.broke_off(now, id, attempt, why);
        } else {
            self.never_arrived(now, call, why);
        }
    }

    /// A call that never left waits for its server; if it was not kept, it fails.
    pub(super) fn never_arrived(&mut self, now: Mono, id: CallId, why: &str) {
        let Some(call) = self.calls.get(id) else { return };
        let server = self.servers.get(&call.request.server);
        let gone = server.is_none_or(|server| server.readiness() == Readiness::IsGone);
        // Nobody would wake it at a server that is given up for now.
        if (!gone || call.is_kept_at_server()) && self.wait_unsent(now, id) {
            return;
        }
        let Some(call) = self.calls.get(id) else { return };
        let mut failure = self.failure(now, call, Kind::ServerFailed, None);
        failure.detail = Some(why.to_owned());
        failure.state = ServerState::NeverReached;
        failure.retry = Retry::Safe;
        self.fail(id, failure);
    }

    /// The connection broke after the request had left.
    pub(super) fn broke_off(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, why: &str) {
        if self.is_reviving(id, attempt) {
            return self.revival_failed(now, id, why.to_owned());
        }
        if let Some(attempt) = attempt {
            self.subscription_broke(now, attempt);
        }
        let Some(call) = self.call_of(id, attempt) else { return };
        if self.resume_later(now, id, attempt, None, false)
            || self.retry_later(now, call, None, false, "the connection broke")
        {
            return;
        }
        self.fail_attempt(now, id, attempt, Kind::ServerGone, why.to_owned(), ServerState::Gone);
    }

    /// The answer is something else, the page of a proxy in between perhaps. A request that may have run is
    /// not made again for it; what is ours is.
    fn not_mcp(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, why: &str) {
        if self.is_reviving(id, attempt) {
            return self.revival_failed(now, id, why.to_owned());
        }
        if let Some(attempt) = attempt {
            self.subscription_broke(now, attempt);
        }
        self.fail_attempt(now, id, attempt, Kind::NotMcp, why.to_owned(), ServerState::Running);
    }

    #[allow(clippy::too_many_arguments)] // they are the parts of one response
    fn status(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: Option<AttemptId>,
        status: u16,
        retry_after: Option<Duration>,
        had_session: bool,
        body: &Bytes,
    ) {
        if self.is_reviving(id, attempt) {
            return self.revival_failed(now, id, shown_status(status, body));
        }
        let answer = json_rpc_answer(body, attempt);
        if had_session
            && session_is_lost(status, body, answer.as_ref(), attempt)
            && self.lost_with_session(now, id, attempt)
        {
            return;
        }
        let Some(call) = self.call_of(id, attempt) else {
            return self.status_without_call(now, id, attempt, status, body);
        };
        if answer.as_ref().is_some_and(|error| error_code(error) == Some(-32020))
            && self.mirror_again(now, id, call)
        {
            return;
        }
        let busy = matches!(status, 429 | 502 | 503 | 504);
        let resumed = busy && self.resume_later(now, id, attempt, retry_after, false);
        if resumed || busy && self.retry_later(now, call, retry_after, status == 429, "the server is busy") {
            return;
        }
        if self.is_being_found(call) {
            let why = format!("the server does not let outlast resume it: {}", shown_status(status, body));
            self.orphaned_is_lost(now, call, &why);
            return;
        }
        if let Some(answer) = answer {
            return self.answer_with_status(call, &answer);
        }
        let state = if status == 429 { ServerState::NeverReached } else { ServerState::Running };
        let mut detail = shown_status(status, body);
        if matches!(status, 401 | 403) {
            detail.push_str("; give it a token with --header 'Authorization: Bearer ${VAR}'");
        }
        self.fail_attempt(now, id, attempt, Kind::HttpStatus, detail, state);
    }

    /// A notification, an answer, or a request of our own was refused.
    fn status_without_call(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: Option<AttemptId>,
        status: u16,
        body: &Bytes,
    ) {
        if let Some(attempt) = attempt {
            if let Some(subscription) = self.close_subscription(attempt) {
                let text = format!(
                    "server `{}` refused the subscription: {}",
                    self.server_name(id),
                    shown_status(status, body)
                );
                let json_id = subscription.id.patch();
                let answer = match json_rpc_answer(body, Some(attempt)) {
                    Some(error) => with_id(&error, &subscription.id),
                    None => Outgoing::plain(crate::error::error_answer(
                        json_id.as_slice(),
                        Kind::HttpStatus.code(true),
                        &text,
                        None,
                    )),
                };
                return self.reply(subscription.client, subscription.way, Some(&subscription.id), answer);
            }
            if let Some(error) = json_rpc_answer(body, Some(attempt)) {
                self.answer_to_own(now, id, attempt, &error);
            }
            return;
        }
        let server = self.server_name(id);
        self.note(Note::PostRefused { server, why: shown_status(status, body) });
    }

    /// Passes on an answer that the server sent with a status, under the client's own id.
    fn answer_with_status(&mut self, call: CallId, answer: &Message) {
        if self.answer_as_task(self.at, call, answer) {
            return;
        }
        let Some(open) = self.calls.get(call) else { return };
        let (client, way, passed_on) =
            (open.request.client, open.request.way, with_id(answer, &open.request.id));
        let refused = open.request.method == Method::Initialize && answer.has(Field::Error);
        self.set_status(way, error_code(answer));
        if refused {
            self.names_no_session(way);
        }
        self.ends_as(call, || outcome_in(answer));
        // It is the server's word, though it came with a status.
        self.pass_on(true);
        self.settle(call, Some(passed_on));
        self.pass_on(false);
        if refused {
            self.handshake_failed(client);
        }
    }

    fn fail_attempt(
        &mut self,
        now: Mono,
        server: ServerId,
        attempt: Option<AttemptId>,
        kind: Kind,
        detail: String,
        state: ServerState,
    ) {
        let Some(id) = self.call_of(server, attempt) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let mut failure = self.failure(now, call, kind, None);
        failure.detail = Some(detail);
        failure.state = state;
        if state == ServerState::NeverReached {
            failure.retry = Retry::Safe;
        }
        self.fail(id, failure);
    }

    // Streams.

    pub(super) fn stream_ended(&mut self, now: Mono, id: ServerId, attempt: AttemptId, end: &StreamEnd) {
        self.stream_broke(now, id, attempt, end);
        self.asked_in_vain(now, id, Some(attempt));
        // Where it was to be taken up is remembered for as long as it may be.
        if end.resumable && !self.calls.awaits(attempt) {
            self.abandon(id, attempt);
        }
    }

    fn stream_broke(&mut self, now: Mono, id: ServerId, attempt: AttemptId, end: &StreamEnd) {
        if end.status == Some(404) {
            // Opening a stream again runs nothing, but the request that it belongs to was taken before.
            self.broke_off(now, id, Some(attempt), FORGOTTEN);
            self.begin_session_again(now, id, Some(attempt));
            return;
        }
        let polls = end.retry.filter(|_| end.opened).map(|wish| retry::reopen(Some(wish), 1));
        let mut wish = end.retry;
        if let Some(call) = self.calls.of(id, attempt) {
            if polls.is_some() {
                // It hung up as it said it would, which is no failure.
                self.calls.stream_lives(call);
            }
            let breaks = self.calls.get(call).map_or(0, |call| u32::from(call.breaks));
            wish = wish.map(|_| retry::reopen(wish, breaks + 1));
        }
        // An old connection may still look alive to the server, or the server is busy.
        let passing = end.status.is_none_or(|status| status == 409 || status == 429 || status >= 500);
        if passing && self.resume_later(now, id, Some(attempt), wish, true) {
            return;
        }
        let call = self.call_of(id, Some(attempt)).filter(|_| end.resumable && passing);
        // The modern era knows no coming back.
        let legacy = |id: &CallId| self.calls.get(*id).is_some_and(|call| !call.modern);
        let Some(call_id) = call.filter(legacy) else {
            return self.broke_off(now, id, Some(attempt), &end.why);
        };
        self.calls.reconnect_after(now, call_id, end.retry);
        self.arm_call(now, call_id);
        if let Some(retry) = polls {
            let way = self.calls.get(call_id).map(|call| self.real_way(call).1);
            way.into_iter().for_each(|way| self.let_client_poll(way, retry));
        }
    }

    /// The time has come to open a call's stream again.
    pub(super) fn reconnect(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.reconnects(id) else { return };
        let (server, attempt) = (call.request.server, call.attempt());
        let attempt = attempt.filter(|_| !planted!(self, ForgetsToReconnect));
        if let Some(attempt) = attempt.filter(|_| !self.resume_attempt(id)) {
            self.act(Action::Reconnect(server, attempt));
        }
        self.arm_call(now, id);
    }

    /// A message came on the stream of an attempt.
    pub(super) fn streamed(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: AttemptId,
        line: &crate::event::Line,
    ) {
        if self.is_refused_to_us(now, id, attempt, line) {
            return;
        }
        if let Some(call) = self.call_of(id, Some(attempt)) {
            self.calls.stream_lives(call);
        }
        self.listens.lives(attempt);
        self.came_up(id);
        self.tied = Some(attempt);
        self.line_from_server(now, id, line);
        self.tied = None;
    }

    /// Whatever a server says shows that it can be reached.
    fn came_up(&mut self, id: ServerId) {
        self.servers.answers(id);
    }

    fn subscription_broke(&mut self, now: Mono, attempt: AttemptId) {
        self.listens.broke(&mut self.timers, now, attempt);
    }

    pub(super) fn standing_ended(&mut self, now: Mono, id: ServerId, end: &StreamEnd) {
        // A server need not have one.
        if end.status.is_some_and(|status| (400..500).contains(&status) && status != 409 && status != 429) {
            return;
        }
        let polls = end.opened && end.retry.is_some();
        let Some(breaks) = self.servers.standing_broke(id, polls) else { return };
        let at = now + retry::reopen(end.retry, breaks);
        self.servers.arm_standing(&mut self.timers, id, Some(at));
    }

    pub(super) fn standing_due(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.standing_rings(id) else { return };
        match server.life {
            Life::Up => self.act(Action::Stand(id)),
            Life::Leaving | Life::Ended(_) | Life::Failed(_) => {}
            // It is wanted again when the server is back, whether or not that is a new session.
            _ => {
                let at = now + retry::reopen(None, server.standing_breaks);
                self.servers.arm_standing(&mut self.timers, id, Some(at));
            }
        }
    }

    // Sessions.

    /// A request was refused because the server does not know our session any more, so it was not executed: it is
    /// sent once more, on a new session. False if it is not sent again: what it is told then is its own answer.
    fn lost_with_session(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>) -> bool {
        let call = self.call_of(id, attempt);
        if call.and_then(|id| self.calls.get(id)).is_some_and(|call| call.session_lost) {
            return false;
        }
        if let Some(call) = call.filter(|call| self.is_being_resumed(*call)) {
            // It did arrive, in its time, and the server has forgotten it with the session.
            self.calls.forget_policy(call);
            self.broke_off(now, id, attempt, FORGOTTEN);
            self.begin_session_again(now, id, attempt);
            return true;
        }
        if !self.begin_session_again(now, id, attempt) {
            return false;
        }
        if call.is_some_and(|call| !self.send_unsent(now, call)) {
            let state = ServerState::NeverReached;
            self.fail_attempt(now, id, attempt, Kind::ServerGone, FORGOTTEN.into(), state);
        }
        true
    }

    /// Begins a new session, unless one has begun since this attempt was sent or is about to. False if that
    /// happened too often of late: a server that forgets every session is no better on the next one.
    fn begin_session_again(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>) -> bool {
        match self.servers.session_is_lost(now, id, attempt) {
            None | Some(NewSession::TooMany) => return false,
            Some(NewSession::Begun) => return true,
            Some(NewSession::Begins) => {}
        }
        self.servers.arm_standing(&mut self.timers, id, None);
        self.drop_asks_of(now, id);
        self.rest(now, id, Why::SessionLost);
        true
    }

    // Mirrored headers.

    /// The server found headers missing: its tools are asked for again, and the call is sent once more.
    fn mirror_again(&mut self, now: Mono, id: ServerId, call_id: CallId) -> bool {
        let patience = self.patience_for_tools(id);
        let tool = |call: &Call| call.request.method == Method::ToolsCall;
        if !self.calls.get(call_id).is_some_and(tool) {
            return false;
        }
        let Some(meta) = self.calls.wait_for_headers(call_id, patience.map(|patience| now + patience)) else {
            return false;
        };
        self.arm_call(now, call_id);
        self.list_tools(id, Paging::of(call_id), &meta, None);
        true
    }

    /// How long a list of tools may take.
    fn patience_for_tools(&self, id: ServerId) -> Option<Duration> {
        self.limit_of_own(id, &Method::ToolsList).map(|limit| limit.time)
    }

    /// Asks for a page of the tool list on behalf of a call.
    fn list_tools(&mut self, id: ServerId, paging: Paging, meta: &[u8], cursor: Option<&[u8]>) {
        let attempt = self.new_attempt();
        let number = own_id(attempt.0, false);
        let cursor = cursor.map(|cursor| [b",\"cursor\":", cursor].concat()).unwrap_or_default();
        let request = [
            br#"{"jsonrpc":"2.0","id":"#,
            number.as_slice(),
            br#","method":"tools/list","params":{"_meta":"#,
            meta,
            &*cursor,
            b"}}",
        ]
        .concat();
        let Ok(Scanned::Message(message)) = scan(Bytes::from(request)) else {
            return self.go_on_without_tools(self.at, paging.call);
        };
        self.servers.asks_own(id, attempt, Own::Tools(Box::new(paging)));
        let outgoing = Outgoing::plain(message.bytes.clone());
        self.send(id, Some(attempt), Some(&message), outgoing);
    }

    /// A page of the list that a call waits for is there.
    pub(super) fn tools_are_listed(&mut self, now: Mono, id: ServerId, mut paging: Paging, answer: &Message) {
        self.learn_mirrors(id, answer);
        let Some(call) = self.calls.get(paging.call).filter(|call| call.is_parked()) else { return };
        let meta = call.kept.as_ref().and_then(|kept| kept.raw(Field::ParamsMeta).map(<[u8]>::to_vec));
        let more = answer.raw(Field::Result).and_then(next_cursor);
        let more = more.filter(|cursor| paging.turns_to(cursor));
        match (more, meta) {
            (Some(cursor), Some(meta)) => self.list_tools(id, paging, &meta, Some(cursor.as_bytes())),
            _ => self.try_again(now, paging.call),
        }
    }

    /// The list that a call waits for does not come.
    pub(super) fn go_on_without_tools(&mut self, now: Mono, call: CallId) {
        if self.calls.get(call).is_some_and(Call::is_parked) {
            self.try_again(now, call);
        }
    }

    pub(super) fn learn_mirrors(&mut self, id: ServerId, answer: &Message) {
        let Some(result) = answer.raw(Field::Result) else { return };
        self.servers.learn_mirrors(id, result);
    }

    /// Tells a server that an attempt is not waited for any more, in the way its transport has for it.
    pub(super) fn cancel_attempt(
        &mut self,
        server: ServerId,
        attempt: AttemptId,
        modern: bool,
        text: bool,
        reason: &str,
    ) {
        if !self.is_remote(server) || !modern {
            let cancel = [
                br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
                own_id(attempt.on_wire(), text).as_slice(),
                br#","reason":"#,
                &*crate::error::json_text(reason),
                b"}}",
            ]
            .concat();
            self.send(server, None, None, Outgoing::plain(cancel));
        }
        self.abandon(server, attempt);
    }

    /// Nothing on the stream of an attempt matters any more.
    pub(super) fn abandon(&mut self, server: ServerId, attempt: AttemptId) {
        if self.is_remote(server) {
            self.act(Action::Abandon(server, attempt));
        }
    }
}

/// Whether a request that named a session was refused because the server does not know that session. An answer
/// under our own id is one to the request, whatever its status.
fn session_is_lost(status: u16, body: &[u8], answer: Option<&Message>, attempt: Option<AttemptId>) -> bool {
    if answer.is_some_and(|answer| is_under(answer, attempt)) {
        return false;
    }
    match status {
        404 => answer.and_then(error_code) != Some(-32601),
        400 => {
            let said = answer.and_then(error_message);
            let said = said.unwrap_or_else(|| String::from_utf8_lossy(body).into_owned());
            FORGOTTEN_WORDS.contains(&said.trim())
        }
        _ => false,
    }
}

/// Whether an answer names this attempt.
fn is_under(answer: &Message, attempt: Option<AttemptId>) -> bool {
    let named = answer.raw(Field::Id).and_then(read_own_id).map(|(number, _)| number);
    named.is_some() && named == attempt.map(AttemptId::on_wire)
}

/// What came with a status, for people.
fn shown_status(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(limits::BAD_LINE_SHOWN)]).into_owned();
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = cut(text.trim(), limits::BAD_LINE_SHOWN / 2);
    if text.is_empty() { format!("HTTP status {status}") } else { format!("HTTP status {status}: {text}") }
}

/// A body that is a JSON-RPC error, or any answer to this attempt.
fn json_rpc_answer(body: &Bytes, attempt: Option<AttemptId>) -> Option<Message> {
    let one_line: Vec<u8> =
        body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    let answers = |message: &Message| message.has(Field::Error) || is_under(message, attempt);
    scan_message(one_line.into()).filter(|message| message.shape == Shape::Answer && answers(message))
}

/// What an error says to people.
fn error_message(answer: &Message) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Error {
        message: String,
    }
    serde_json::from_slice::<Error>(answer.raw(Field::Error)?).ok().map(|error| error.message)
}

/// The code of an error.
pub(super) fn error_code(answer: &Message) -> Option<i64> {
    #[derive(serde::Deserialize)]
    struct Error {
        code: i64,
    }
    serde_json::from_slice::<Error>(answer.raw(Field::Error)?).ok().map(|error| error.code)
}

/// An answer under a client's id, whether it had one or not.
fn with_id(answer: &Message, id: &crate::id::JsonId) -> Outgoing {
    let edit = match answer.envelope.get(Field::Id) {
        Some(span) => Edit::replace(span, id.patch()),
        None => {
            let brace = memchr::memchr(b'{', &answer.bytes).unwrap_or(0);
            Edit::insert(brace + 1, Patch::of(&[b"\"id\":", id.patch().as_slice(), b","]))
        }
    };
    Outgoing::edited(answer.bytes.clone(), vec![edit])
}

/// Where a list goes on, as raw JSON.
fn next_cursor(result: &[u8]) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'a> {
        #[serde(borrow)]
        next_cursor: Option<&'a serde_json::value::RawValue>,
    }
    let page: Page<'_> = serde_json::from_slice(result).ok()?;
    page.next_cursor.map(|cursor| cursor.get().to_owned()).filter(|cursor| cursor != "null")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(status: u16, body: &'static str) -> bool {
        let (body, attempt) = (Bytes::from_static(body.as_bytes()), Some(AttemptId(7)));
        session_is_lost(status, &body, json_rpc_answer(&body, attempt).as_ref(), attempt)
    }

    #[test]
    fn a_lost_session_is_told_from_every_other_refusal() {
        assert!(lost(404, "") && lost(404, "session not found\n") && lost(404, "<html>"));
        assert!(lost(
            404,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}"#
        ));
        assert!(lost(404, r#"{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"x"}}"#));
        assert!(lost(400, " Bad Request: No valid session ID provided\n"));
        assert!(
            !lost(404, r#"{"jsonrpc":"2.0","id":"7","error":{"code":-32001,"message":"x"}}"#),
            "it is ours"
        );
        assert!(!lost(404, r#"{"jsonrpc":"2.0","id":7,"result":{}}"#), "it is ours");
        assert!(!lost(404, r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"x"}}"#));
        assert!(!lost(400, "Bad Request: your session may not") && !lost(400, ""));
        assert!(!lost(409, "session") && !lost(503, "session") && !lost(401, "session"));
    }
}
