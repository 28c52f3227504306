//! Servers behind HTTP: what becomes of a call when its connection breaks, its status is no success,
//! or its session is gone.
//!
//! What never arrived may always be sent again; what may have arrived only if repeating is safe. A
//! stream that has shown an event id is opened again from there for as long as its call lives. A lost
//! session is a restart without a process: the same hello, the same subscriptions, the calls that may
//! be repeated.

use super::revival::Why;
use super::{Engine, Transport};
use crate::action::{Action, Note};
use crate::error::{Kind, Retry, ServerState, cut};
use crate::http::{StreamEnd, Trouble};
use crate::id::{AttemptId, CallId, ServerId, own_id};
use crate::limits;
use crate::method::Method;
use crate::server::{Life, Own};
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::{Edit, Field, Message, Outgoing, Patch, Scanned, Shape, scan, scan_message};
use bytes::Bytes;
use std::time::Duration;

impl Engine {
    pub(super) fn trouble(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, trouble: &Trouble) {
        let resumed = attempt.filter(|_| self.call_of(attempt).is_some_and(|id| self.is_being_resumed(id)));
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
        if let Some(over) = resumed.filter(|attempt| !self.attempts.contains_key(attempt)) {
            self.abandon(id, over);
        }
    }

    /// What nobody waits for has failed; nothing can be done, but it is not kept secret.
    fn post_lost(&mut self, id: ServerId, why: &str) {
        let Some(server) = self.servers.get(&id).map(|server| server.name.clone()) else { return };
        self.note(Note::PostLost { server, why: why.to_owned() });
    }

    /// Whether an attempt is the handshake that makes a server whole again.
    fn is_reviving(&self, id: ServerId, attempt: Option<AttemptId>) -> bool {
        let life = self.servers.get(&id).map(|server| server.life);
        attempt.is_some_and(|attempt| life == Some(Life::Reviving(attempt)))
    }

    /// The call that an attempt may still answer; not one whose server has made a task of it.
    fn call_of(&self, attempt: Option<AttemptId>) -> Option<CallId> {
        let call = self.attempts.get(&attempt?).copied()?;
        self.calls.get(call).is_some_and(|call| call.joined().is_none()).then_some(call)
    }

    /// No connection could be made. The server is given a while, and what waits for it waits on.
    fn unreachable(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>, why: &str) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.last_trouble = Some(why.into());
        let (name, life) = (server.name.clone(), server.life);
        if matches!(life, Life::Leaving | Life::Ended(_)) {
            return;
        }
        self.note(Note::Unreachable { server: name, why: why.into() });
        if let Some(call) = self.call_of(attempt)
            && !self.resume_later(now, attempt, None, false)
        {
            self.lost_or_never_arrived(now, id, call, attempt, why);
        }
        if let Some(attempt) = attempt {
            self.subscription_broke(now, attempt);
            if let Some(server) = self.servers.get_mut(&id) {
                server.own.remove(&attempt);
            }
        }
        let tries = matches!(life, Life::Starting | Life::Up | Life::Restarting | Life::Reviving(_));
        if tries {
            if let Some(server) = self.servers.get_mut(&id) {
                server.came_up = false;
            }
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
        if self.wait_unsent(now, id) {
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
        let Some(call) = self.call_of(attempt) else { return };
        if self.resume_later(now, attempt, None, false)
            || self.retry_later(now, call, None, false, "the connection broke")
        {
            return;
        }
        self.fail_attempt(now, attempt, Kind::ServerGone, why.to_owned(), ServerState::Gone);
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
        self.fail_attempt(now, attempt, Kind::NotMcp, why.to_owned(), ServerState::Running);
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
        if had_session && session_is_lost(status, body) {
            return self.session_lost(now, id, attempt);
        }
        let Some(call) = self.call_of(attempt) else {
            return self.status_without_call(now, id, attempt, status, body);
        };
        let error = json_rpc_error(body);
        if error.as_ref().is_some_and(|error| error_code(error) == Some(-32020))
            && self.mirror_again(id, call)
        {
            return;
        }
        let busy = matches!(status, 429 | 502 | 503 | 504);
        let resumed = busy && self.resume_later(now, attempt, retry_after, false);
        if resumed || busy && self.retry_later(now, call, retry_after, status == 429, "the server is busy") {
            return;
        }
        if self.is_being_found(call) {
            let why = format!("its server does not let us resume it: {}", shown_status(status, body));
            self.left_is_lost(now, call, &why);
            return;
        }
        if let Some(error) = error {
            return self.answer_with_error(call, &error);
        }
        let state = if status == 429 { ServerState::NeverReached } else { ServerState::Running };
        let mut detail = shown_status(status, body);
        if matches!(status, 401 | 403) {
            detail.push_str("; give it a token with --header 'Authorization: Bearer ${VAR}'");
        }
        self.fail_attempt(now, attempt, Kind::HttpStatus, detail, state);
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
                let answer = match json_rpc_error(body) {
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
            if let Some(error) = json_rpc_error(body) {
                self.answer_to_own(now, id, attempt, &error);
            }
            return;
        }
        let server = self.server_name(id);
        self.note(Note::PostRefused { server, why: shown_status(status, body) });
    }

    /// Passes on an error that the server sent with a status, under the client's own id.
    fn answer_with_error(&mut self, call: CallId, error: &Message) {
        if self.answer_as_task(self.at, call, error) {
            return;
        }
        let Some(open) = self.calls.get(call) else { return };
        let (way, answer) = (open.request.way, with_id(error, &open.request.id));
        self.set_status(way, error_code(error));
        self.settle(call, Some(answer));
    }

    fn fail_attempt(
        &mut self,
        now: Mono,
        attempt: Option<AttemptId>,
        kind: Kind,
        detail: String,
        state: ServerState,
    ) {
        let Some(id) = self.call_of(attempt) else { return };
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
        // Where it was to be taken up is remembered for as long as it may be.
        if end.resumable && !self.attempts.contains_key(&attempt) {
            self.abandon(id, attempt);
        }
    }

    fn stream_broke(&mut self, now: Mono, id: ServerId, attempt: AttemptId, end: &StreamEnd) {
        if end.status == Some(404) {
            // Opening a stream again runs nothing, but the request that it belongs to was taken before.
            self.session_lost(now, id, None);
            return self.broke_off(now, id, Some(attempt), &end.why);
        }
        // An old connection may still look alive to the server, or the server is busy.
        let passing = end.status.is_none_or(|status| status == 409 || status == 429 || status >= 500);
        if passing && self.resume_later(now, Some(attempt), end.retry, true) {
            return;
        }
        let call = self.call_of(Some(attempt)).filter(|_| end.resumable && passing);
        let call = call.and_then(|id| self.calls.get_mut(id).map(|call| (id, call)));
        // The modern era knows no coming back.
        let Some(call) = call.filter(|(_, call)| !call.modern) else {
            self.broke_off(now, id, Some(attempt), &end.why);
            return self.asked_in_vain(now, id, Some(attempt));
        };
        let (call_id, call) = call;
        let breaks = call.count_break();
        call.reconnect_at = Some(now + end.retry.unwrap_or_else(|| doubling(breaks)));
        let (id, polls) = (call_id, end.retry.filter(|_| end.status.is_none()));
        self.arm_call(now, call_id);
        if let Some(retry) = polls {
            let way = self.calls.get(id).map(|call| self.real_way(call).1);
            way.into_iter().for_each(|way| self.let_client_poll(way, retry));
        }
    }

    /// The time has come to open a call's stream again.
    pub(super) fn reconnect(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        call.reconnect_at = None;
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
        if let Some(call) = self.call_of(Some(attempt)).and_then(|id| self.calls.get_mut(id)) {
            call.breaks = 0;
        }
        if let Some(subscription) = self.subscriptions.get_mut(&attempt) {
            subscription.breaks = 0;
        }
        self.came_up(id);
        self.tied = Some(attempt);
        self.line_from_server(now, id, line);
        self.tied = None;
    }

    /// Whatever a server says shows that it can be reached.
    fn came_up(&mut self, id: ServerId) {
        if let Some(server) = self.servers.get_mut(&id) {
            server.answers();
        }
    }

    fn subscription_broke(&mut self, now: Mono, attempt: AttemptId) {
        let Some(subscription) = self.subscriptions.get_mut(&attempt) else { return };
        subscription.breaks += 1;
        let at = now + doubling(subscription.breaks);
        self.timers.set(Owner::Listen(attempt), &mut subscription.armed, Some(at));
    }

    pub(super) fn standing_ended(&mut self, now: Mono, id: ServerId, end: &StreamEnd) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        // A server need not have one.
        if end.status.is_some_and(|status| (400..500).contains(&status) && status != 409 && status != 429) {
            return;
        }
        server.standing_breaks += 1;
        let at = now + end.retry.unwrap_or_else(|| doubling(server.standing_breaks));
        self.arm_standing(id, Some(at));
    }

    pub(super) fn standing_due(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.standing_armed = None;
        match server.life {
            Life::Up => self.act(Action::Stand(id)),
            Life::Leaving | Life::Ended(_) | Life::Failed(_) => {}
            // It is wanted again when the server is back, whether or not that is a new session.
            _ => {
                let at = now + doubling(server.standing_breaks);
                self.arm_standing(id, Some(at));
            }
        }
    }

    pub(super) fn arm_standing(&mut self, id: ServerId, at: Option<Mono>) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        self.timers.set(Owner::Standing(id), &mut server.standing_armed, at);
    }

    // Sessions.

    /// The server does not know our session any more. The request that found out was not executed.
    fn session_lost(&mut self, now: Mono, id: ServerId, attempt: Option<AttemptId>) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.life != Life::Up && server.life != Life::Starting {
            return;
        }
        server.session_lost = true;
        server.came_up = true;
        self.arm_standing(id, None);
        // What was being resumed did arrive, in its time.
        if let Some(call) = self.call_of(attempt).filter(|call| !self.is_being_resumed(*call))
            && !self.wait_unsent(now, call)
        {
            let why = "it has forgotten our session".to_owned();
            self.fail_attempt(now, attempt, Kind::ServerGone, why, ServerState::NeverReached);
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.life = Life::Resting;
        }
        let open = self.calls_at(id, true);
        self.interrupt(now, id, open, "it has forgotten our session");
        self.drop_asks_of(now, id);
        self.rest(now, id, Why::SessionLost);
    }

    // Mirrored headers.

    /// The server found headers missing: its tools are asked for again, and the call is sent once more.
    fn mirror_again(&mut self, id: ServerId, call_id: CallId) -> bool {
        let Some(call) = self.calls.get_mut(call_id) else { return false };
        let Some(kept) =
            call.kept.clone().filter(|_| !call.mirrored && call.request.method == Method::ToolsCall)
        else {
            return false;
        };
        call.mirrored = true;
        let Some(meta) = kept.raw(Field::ParamsMeta).map(<[u8]>::to_vec) else { return false };
        if let Some(attempt) = call.attempt() {
            self.attempts.remove(&attempt);
        }
        if let Some(call) = self.calls.get_mut(call_id) {
            call.state = crate::call::State::Waiting(kept);
            call.retry_at = Some(call.deadline.ends_at());
        }
        self.list_tools(id, call_id, &meta, None);
        true
    }

    /// Asks for a page of the tool list on behalf of a call.
    pub(super) fn list_tools(&mut self, id: ServerId, call: CallId, meta: &[u8], cursor: Option<&[u8]>) {
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
        let Ok(Scanned::Message(message)) = scan(Bytes::from(request)) else { return };
        if let Some(server) = self.servers.get_mut(&id) {
            server.own.insert(attempt, Own::Tools(call));
        }
        let outgoing = Outgoing::plain(message.bytes.clone());
        self.send(id, Some(attempt), Some(&message), outgoing);
    }

    /// The list that a call waited for is there.
    pub(super) fn tools_are_listed(&mut self, now: Mono, id: ServerId, call: CallId, answer: &Message) {
        self.learn_mirrors(id, answer);
        let more = answer.raw(Field::Result).and_then(next_cursor);
        let meta = self
            .calls
            .get(call)
            .and_then(|call| call.kept.as_ref())
            .and_then(|kept| kept.raw(Field::ParamsMeta).map(<[u8]>::to_vec));
        match (more, meta) {
            (Some(cursor), Some(meta)) => self.list_tools(id, call, &meta, Some(cursor.as_bytes())),
            _ => self.try_again(now, call),
        }
    }

    pub(super) fn learn_mirrors(&mut self, id: ServerId, answer: &Message) {
        let Some(result) = answer.raw(Field::Result) else { return };
        if let Some(server) = self.servers.get_mut(&id) {
            server.mirrors.learn(result);
        }
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
        if self.config.transport == Transport::Process || !modern {
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
        if self.config.transport == Transport::Http {
            self.act(Action::Abandon(server, attempt));
        }
    }
}

/// The wait after so many breaks in a row.
pub(super) fn doubling(breaks: u32) -> Duration {
    let times = 2u32.saturating_pow(breaks.saturating_sub(1).min(16));
    limits::RECONNECT.saturating_mul(times).min(limits::RECONNECT_LONGEST)
}

/// 404 says so by the protocol; real servers also say it with others, and with the word.
fn session_is_lost(status: u16, body: &[u8]) -> bool {
    let says_so = || {
        let text = String::from_utf8_lossy(&body[..body.len().min(2048)]).to_lowercase();
        text.contains("session")
    };
    match status {
        404 => json_rpc_error(&Bytes::copy_from_slice(body))
            .is_none_or(|error| error_code(&error) != Some(-32601)),
        400 | 409 | 503 => says_so(),
        _ => false,
    }
}

/// What came with a status, for people.
fn shown_status(status: u16, body: &[u8]) -> String {
    let text = String::from_utf8_lossy(&body[..body.len().min(limits::BAD_LINE_SHOWN)]).into_owned();
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let text = cut(text.trim(), limits::BAD_LINE_SHOWN / 2);
    if text.is_empty() { format!("HTTP status {status}") } else { format!("HTTP status {status}: {text}") }
}

/// A body that is a JSON-RPC error.
fn json_rpc_error(body: &Bytes) -> Option<Message> {
    let one_line: Vec<u8> =
        body.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect();
    let is_error = |message: &Message| message.shape == Shape::Answer && message.has(Field::Error);
    scan_message(one_line.into()).filter(is_error)
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
