//! What a client sends: requests become calls, cancels find their call, answers go to who asked.

use super::settle::LET_GO;
use super::{Engine, Transport};
use crate::action::Note;
use crate::calls::{Call, Request, State};
use crate::clients::{Open, Subscription, Way};
use crate::error::{Kind, error_answer};
use crate::event::Line;
use crate::id::{AttemptId, CallId, ClientId, JsonId, ServerId, own_id};
use crate::limits;
use crate::method::Method;
use crate::policy::CallFacts;
use crate::servers::{Life, Readiness};
use crate::time::{Mono, Span};
use crate::wire::{Edit, Fault, Field, Message, Outgoing, Oversized, Patch, Refused, Scanned, Shape};
use std::num::NonZeroU64;
use std::time::Duration;

impl Engine {
    pub(super) fn line_from_client(&mut self, now: Mono, client: ClientId, line: &Line) {
        if !self.clients.contains_key(&client) {
            return;
        }
        match line {
            Ok(Scanned::Message(message)) => self.client_message(now, client, message, Way::Line),
            Ok(Scanned::Batch(members)) => self.client_batch(now, client, members),
            Err(refused) => {
                let answer = self.refusal(refused);
                self.tell_client(client, Outgoing::plain(answer));
            }
        }
    }

    pub(super) fn client_message(&mut self, now: Mono, client: ClientId, message: &Message, way: Way) {
        match message.shape {
            Shape::Request => self.request(now, client, message, way),
            Shape::Notification => self.client_notification(client, message),
            Shape::Answer => self.answer_to_ask(now, client, message),
        }
    }

    /// What a client is told about a line that cannot be taken.
    pub(super) fn refusal(&mut self, refused: &Refused) -> Vec<u8> {
        let (code, why) = match refused.fault {
            Fault::NotJson(at) => (-32700, format!("Parse error: not JSON from byte {at} on")),
            Fault::Duplicate => (-32600, "Invalid request: a field stands twice".into()),
            Fault::NotAMessage => (-32600, "Invalid request: not a JSON-RPC message".into()),
            Fault::EmptyBatch => (-32600, "Invalid request: an empty array".into()),
            Fault::LongBatch => {
                (-32600, format!("Invalid request: more than {} messages in an array", limits::BATCH_MEMBERS))
            }
        };
        self.note(Note::BadClientLine { why: why.clone() });
        let id = refused.id.as_deref().filter(|raw| JsonId::new(raw).is_some());
        error_answer(id.unwrap_or(b"null"), code, &why, None)
    }

    /// A request that is too long is answered; an answer that is too long must not leave whoever
    /// asked without one.
    pub(super) fn client_oversized(&mut self, now: Mono, client: ClientId, line: &Oversized) {
        let why = format!("a message is longer than max-message ({} bytes)", self.config.max_message);
        self.note(Note::BadClientLine { why: why.clone() });
        let text = format!("Invalid request: {why}; raise it with --max-message");
        if line.answer {
            return self.oversized_answer_to_ask(now, client, line, &text);
        }
        let id = line.id.as_deref().filter(|raw| JsonId::new(raw).is_some()).unwrap_or(b"null");
        let answer = error_answer(id, Kind::MessageTooLarge.code(false), &text, None);
        self.tell_client(client, Outgoing::plain(answer));
    }

    fn request(&mut self, now: Mono, client: ClientId, message: &Message, way: Way) {
        let Some(id) = message.raw(Field::Id).and_then(JsonId::new) else {
            return self.refuse_id(client, message, way);
        };
        let method = Method::of(message);
        if matches!(way, Way::Array(_)) && matches!(method, Method::Initialize | Method::Listen) {
            return self.refuse_in_array(client, way, &id, &method);
        }
        if method == Method::Initialize {
            self.meet(client, message);
            if way == Way::Line {
                self.learn_to_resume(client, message);
            }
        }
        if self.config.instant
            && ((way == Way::Line && self.instant_handshake(now, client, &id, &method, message))
                || self.instant_list(client, &id, &method, message, way))
        {
            return;
        }
        // One that was forgotten meanwhile waits for nothing.
        let Some(server) = self.server_id_of(client) else { return };
        let modern = method == Method::Discover || message.has(Field::MetaProtocolVersion);
        if modern && self.clients.is_modern(client) {
            self.tickets.orphans_may_go_on();
        }
        if !modern && !matches!(method, Method::Initialize | Method::Ping) {
            self.goes_on_without_initialized(server);
        }
        let tool = match method {
            Method::ToolsCall => message.text(Field::ParamsName).map(|name| name.as_ref().into()),
            _ => None,
        };
        let token = message.raw(Field::MetaProgressToken).and_then(JsonId::token);
        let task = message.has(Field::ParamsTask);
        let logs = message.has(Field::MetaLogLevel);
        let remembered = self.config.instant && method.is_handshake();
        let hello = if remembered { crate::memory::client_of(message) } else { None };
        let hello = hello.and_then(NonZeroU64::new);
        let cap = self.cap_of(client, &method, message).map(Span::from);
        let joint = None;
        let request =
            Request { client, server, id, method, tool, modern, task, way, logs, token, hello, cap, joint };
        if self.own_tool_called(now, &request, message) {
            return;
        }
        if request.method == Method::ToolsCall {
            return self.tool_call(now, request, message);
        }
        if self.config.tasks && self.task_request(now, &request, message) {
            return;
        }
        if self.config.resumable && self.resume_request(now, &request, message) {
            return;
        }
        let for_service = self.status_for_service(&request, message);
        let message = for_service.as_ref().unwrap_or(message);
        if request.method == Method::Listen {
            self.subscribe(now, request, message);
        } else if request.method != Method::ResourcesUnsubscribe
            || !self.others_stay_subscribed(&request, message)
        {
            self.begin_call(now, request, message);
        }
    }

    /// A request must have an id that its answer can carry.
    #[cold]
    fn refuse_id(&mut self, client: ClientId, message: &Message, way: Way) {
        let refused = Refused { fault: Fault::NotAMessage, id: None, bytes: message.bytes.clone() };
        let answer = self.refusal(&refused);
        self.reply(client, way, None, Outgoing::plain(answer));
    }

    /// One is forbidden there, and the other has no end that the array could wait for.
    fn refuse_in_array(&mut self, client: ClientId, way: Way, id: &JsonId, method: &Method) {
        let text = format!("Invalid request: {} inside an array", method.as_str());
        let answer = error_answer(id.patch().as_slice(), -32600, &text, None);
        self.reply(client, way, Some(id), Outgoing::plain(answer));
    }

    pub(super) fn begin_call(&mut self, now: Mono, mut request: Request, message: &Message) {
        let joins = self.call_to_join(&mut request);
        let Some(server) = self.servers.get(&request.server) else {
            return self.begin_without_server(now, &request);
        };
        let mut policy = self.config.rules.for_call(CallFacts {
            method: &request.method,
            tool: request.tool.as_deref(),
            has_token: request.token.is_some(),
            cap: request.cap.filter(|_| request.method == Method::ToolsCall).map(Duration::from),
            wish: wish(message),
            declared: &server.declared,
        });
        if policy.honours_keys && message.has(Field::ParamsIdempotencyKey) {
            policy.repeatable.get_or_insert(true);
        }
        if self.config.manner.serves() && request.method.is_handshake() {
            policy.for_handshake_of_service();
        }
        let (readiness, server_is_down) = (server.readiness(), server.life == Life::Down);
        let full = self.calls.is_full()
            || (readiness == Readiness::ComesBack
                && joins.is_none()
                && server.waiting_bytes + message.bytes.len() > limits::WAITING_BYTES);
        let mut call = Call::new(request, &policy, now, &server.clock);
        call.stream_at = self.stream_patience(call.request.way).map(|patience| now + patience);
        call.task_at = self.task_after(&call.request, message, now);
        self.plan_hand_off(&mut call, now);
        let keeps = call.task_at.is_some() || (call.keeps && call.request.joint.is_some());
        call.kept_for_task = keeps.then(|| Box::new(message.owned()));
        if let Way::Ticket(no) = call.request.way {
            self.goes_on_with(now, &mut call, no, message);
        }
        let as_task = self.as_servers_task(&mut call, message);
        let message = as_task.as_deref().unwrap_or(message);
        let counts = !matches!(call.request.way, Way::Ticket(_));
        if !full && counts && !self.one_call_more(call.request.client) {
            let why = format!("{} calls are in flight (max-calls)", self.config.max_calls);
            return self.refuse_call(now, &call, Kind::Overloaded, why);
        }
        if full {
            return self.refuse_call(now, &call, Kind::Overloaded, "too many calls are in flight".into());
        }
        if let Some(first) = joins {
            return self.join_call(now, call, first);
        }
        let waits = call.is_kept_at_server() && server_is_down;
        match if waits { Readiness::ComesBack } else { readiness } {
            Readiness::IsGone => {
                if counts {
                    self.one_call_less(call.request.client);
                }
                self.refuse_by_gone_server(now, &call);
            }
            Readiness::ComesBack => {
                self.make_repeatable(&mut call, &policy, message);
                self.wait_for_server(now, call, message);
            }
            Readiness::Runs => {
                self.make_repeatable(&mut call, &policy, message);
                let id = self.open_call(call);
                self.send_attempt(now, id, message);
                self.arm_call(now, id);
            }
        }
    }

    /// A call that waited for the store finds its server let go of: its client left meanwhile, or the process
    /// ended. It never ran, and whoever may still ask for it is told so.
    #[cold]
    fn begin_without_server(&mut self, now: Mono, request: &Request) {
        self.refuse_request(now, request, Kind::ServerGone, LET_GO.into());
    }

    pub(super) fn open_call(&mut self, call: Box<Call>) -> CallId {
        let (client, key) = (call.request.client, call.request.id.key());
        let (server, way) = (call.request.server, call.request.way);
        let joint = call.request.joint.filter(|_| !call.shares());
        let id = self.calls.open(call);
        if let Way::Ticket(no) = way {
            self.task_runs(no, server, id);
        } else {
            self.clients.opens(client, key, Open::Call(id));
        }
        if let Some(joint) = joint {
            self.key_runs(joint, id);
        }
        id
    }

    fn wait_for_server(&mut self, now: Mono, mut call: Box<Call>, message: &Message) {
        let server = call.request.server;
        call.state = State::Waiting(Box::new(message.owned()));
        let id = self.open_call(call);
        self.servers.queue(server, id, message.bytes.len());
        self.arm_call(now, id);
    }

    /// Sends a call to its server, under a number of ours.
    pub(super) fn send_attempt(&mut self, now: Mono, id: CallId, message: &Message) {
        if self.rejoin(now, id, message)
            || self.comes_back_to_task(now, id, message)
            || self.resumes_at_service(now, id, message)
        {
            return;
        }
        let Some((attempt, call)) = self.calls.send(id) else { return };
        let (server, client, first) = (call.request.server, call.request.client, call.attempts == 1);
        let edits = request_edits(message, call.text, &call.request.method, attempt);
        if first && call.request.method.shapes_the_connection() {
            let method = call.request.method.clone();
            self.shapes_sharing(server, &method);
            self.keep_for_revival(server, client, &method, message);
            self.keep_for_waking(client, &method, message);
        }
        if first {
            self.servers.first_attempt(now, server);
        }
        let outgoing = Outgoing::edited(message.bytes.clone(), edits);
        self.send(server, Some(attempt), Some(message), outgoing);
    }

    pub(super) fn subscribe(&mut self, now: Mono, request: Request, message: &Message) {
        let Some(client) = self.clients.get(&request.client) else { return };
        let Some(server) = self.servers.get(&request.server) else {
            return self.begin_without_server(now, &request);
        };
        let full = client.subscriptions >= limits::SUBSCRIPTIONS;
        if full || server.readiness() != Readiness::Runs {
            let policy = self.config.rules.for_ask(&request.method);
            let call = Call::new(request, &policy, now, &server.clock);
            if full {
                let why = "too many subscriptions are open".into();
                return self.refuse_call(now, &call, Kind::Overloaded, why);
            }
            return self.refuse_by_gone_server(now, &call);
        }
        let attempt = self.new_attempt();
        if !self.clients.subscribes(request.client, request.id.key(), attempt) {
            return;
        }
        let edits = message.envelope.get(Field::Id);
        let edits = edits.map(|span| Edit::replace(span, own_id(attempt.0, request.id.is_text())));
        let subscription = Subscription {
            client: request.client,
            server: request.server,
            way: request.way,
            id: request.id,
            message: message.owned(),
            again: false,
            breaks: 0,
            armed: None,
            tasks: None,
        };
        self.listens.open(attempt, subscription);
        let outgoing = Outgoing::edited(message.bytes.clone(), edits.into_iter().collect());
        self.send(request.server, Some(attempt), Some(message), outgoing);
    }

    fn client_notification(&mut self, client: ClientId, message: &Message) {
        let Some(server) = self.server_id_of(client) else { return };
        match message.text(Field::Method).as_deref() {
            Some("notifications/cancelled") if message.has(Field::ParamsRequestId) => {
                self.cancelled_by_client(client, message);
            }
            Some("notifications/initialized") => {
                if self.initialized_by(client, message) {
                    self.keep_initialized(server, message);
                    self.pass_to_server(server, message);
                }
                self.tickets.orphans_may_go_on();
            }
            _ => self.pass_to_server(server, message),
        }
    }

    pub(super) fn pass_to_server(&mut self, server: ServerId, message: &Message) {
        // A server that is being restarted has forgotten what a notification would be about.
        if self.servers.get(&server).is_some_and(|server| server.readiness() == Readiness::Runs) {
            self.send(server, None, Some(message), Outgoing::plain(message.bytes.clone()));
        }
    }

    fn cancelled_by_client(&mut self, client: ClientId, message: &Message) {
        // Malformed ones are ignored, as the protocol says.
        let Some(id) = message.raw(Field::ParamsRequestId).and_then(JsonId::new) else { return };
        let key = id.key();
        match self.clients.get(&client).and_then(|client| client.named(&key)) {
            Some(Open::Call(call)) => self.cancel_call(call, message),
            Some(Open::Subscription(attempt)) => self.cancel_subscription(attempt, message),
            Some(Open::Wait(no)) if self.tickets.is_resumable(no) => {
                self.cancel_resumable(client, &id, no, message)
            }
            Some(Open::Wait(no)) => self.stop_waiting(client, &id, no),
            Some(Open::Look(number)) => self.stop_looking(client, &id, number),
            Some(Open::Joint(no)) => self.stop_asking_for_key(client, &id, no),
            // Finished or unknown.
            None => self.clients.forget_collected(client, &key),
        }
    }

    pub(super) fn cancel_call(&mut self, id: CallId, message: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        if call.request.method.is_handshake() {
            return;
        }
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        if self.leave_to_others(id) {
            return;
        }
        self.note_likely_cap(id);
        self.settle(id, None);
        if let Some(attempt) = attempt {
            self.forward_cancel(server, attempt, modern, text, message);
        }
    }

    fn cancel_subscription(&mut self, attempt: AttemptId, message: &Message) {
        let Some(subscription) = self.close_subscription(attempt) else { return };
        if subscription.is_ours_alone() {
            return;
        }
        self.forward_cancel(subscription.server, attempt, true, subscription.id.is_text(), message);
    }

    fn forward_cancel(
        &mut self,
        server: ServerId,
        attempt: AttemptId,
        modern: bool,
        text: bool,
        message: &Message,
    ) {
        if self.config.transport == Transport::Http && modern {
            return self.abandon(server, attempt);
        }
        let Some(span) = message.envelope.get(Field::ParamsRequestId) else { return };
        let edit = Edit::replace(span, own_id(attempt.on_wire(), text));
        self.send(server, None, None, Outgoing::edited(message.bytes.clone(), vec![edit]));
        self.abandon(server, attempt);
    }
}

/// The request's own limit, in milliseconds.
fn wish(message: &Message) -> Option<Duration> {
    message.has(Field::MetaTimeoutMs).then(|| read_wish(message)).flatten()
}

#[cold]
fn read_wish(message: &Message) -> Option<Duration> {
    // Python writes whole numbers as `300.0` too.
    let millis = message.number(Field::MetaTimeoutMs)?;
    Duration::try_from_secs_f64(millis / 1000.0).ok().filter(|time| *time >= Duration::from_millis(1))
}

/// What differs in a request on its way to the server: its id and its progress token.
pub(super) fn request_edits(message: &Message, text: bool, method: &Method, attempt: AttemptId) -> Vec<Edit> {
    let mut edits = Vec::with_capacity(2);
    if let Some(span) = message.envelope.get(Field::Id) {
        edits.push(Edit::replace(span, own_id(attempt.0, text)));
    }
    edits.extend(token_edit(message, method, attempt));
    edits
}

/// Our token in place of the client's; or a new one, so that progress reaches us as a sign of life.
fn token_edit(message: &Message, method: &Method, attempt: AttemptId) -> Option<Edit> {
    if let Some(span) = message.envelope.get(Field::MetaProgressToken) {
        JsonId::token(span.of(&message.bytes))?;
        return Some(Edit::replace(span, own_id(attempt.0, false)));
    }
    if !method.takes_progress() || !message.is_object(Field::Params) {
        return None;
    }
    if let Some(span) = message.envelope.get(Field::ParamsMeta) {
        if !message.is_object(Field::ParamsMeta) {
            return None;
        }
        let after: &[u8] = if has_members(message, Field::ParamsMeta) { b"," } else { b"" };
        let patch = Patch::number_within(b"\"progressToken\":", attempt.0, after);
        return Some(Edit::insert(span.start() + 1, patch));
    }
    let span = message.envelope.get(Field::Params)?;
    let after: &[u8] = if has_members(message, Field::Params) { b"}," } else { b"}" };
    let patch = Patch::number_within(b"\"_meta\":{\"progressToken\":", attempt.0, after);
    Some(Edit::insert(span.start() + 1, patch))
}

/// Whether a comma must follow what is inserted at the front of an object.
fn has_members(message: &Message, object: Field) -> bool {
    let inner = message.raw(object).and_then(|raw| raw.strip_prefix(b"{")).unwrap_or_default();
    inner.trim_ascii_start().first() != Some(&b'}')
}
