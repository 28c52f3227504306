//! What a client sends: requests become calls, cancels find their call, answers go to who asked.

use super::Engine;
use super::durable::About;
use super::seams::toward_server;
use crate::action::Note;
use crate::calls::{Call, Request};
use crate::clients::{Open, Role, Subscription, Way};
use crate::error::{Kind, error_answer};
use crate::event::Line;
use crate::id::{AttemptId, CallId, ClientId, JsonId, ServerId, own_id};
use crate::json;
use crate::limits;
use crate::method::Method;
use crate::servers::Readiness;
use crate::step::{Outcome, What};
use crate::time::{Mono, Span};
use crate::wire::{Edit, Fault, Field, Message, Outgoing, Oversized, Refused, Scanned, Shape};
use std::num::NonZeroU64;

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
            Fault::Duplicate => (-32600, "Invalid request: a field occurs twice".into()),
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
            self.introduces_itself(client, message, way);
        }
        let Some(server) = self.server_for(client) else {
            return self.merged_request(now, (client, way), id, method, message);
        };
        let instant = self.definition_of(server).instant;
        if instant
            && ((way == Way::Line && self.instant_handshake(now, client, &id, &method, message))
                || self.instant_list(client, &id, &method, message, way))
        {
            return;
        }
        let modern = is_modern(&method, message);
        if modern {
            self.speaks_modern(client, &method, message);
        } else if !matches!(method, Method::Initialize | Method::Ping) {
            self.goes_on_without_initialized(client, server);
        }
        let request = self.read_request(client, server, id, method, message, way);
        self.route(now, request, message);
    }

    /// What is noted of a request for as long as it is open.
    #[inline]
    pub(super) fn read_request(
        &self,
        client: ClientId,
        server: ServerId,
        id: JsonId,
        method: Method,
        message: &Message,
        way: Way,
    ) -> Request {
        let modern = is_modern(&method, message);
        let tool = match method {
            Method::ToolsCall => message.text(Field::ParamsName).map(|name| name.as_ref().into()),
            _ => None,
        };
        let token = message.raw(Field::MetaProgressToken).and_then(JsonId::token);
        let task = message.has(Field::ParamsTask);
        let logs = message.has(Field::MetaLogLevel);
        let remembered = method.is_handshake() && self.definition_of(server).instant;
        let handshake_digest = if remembered { crate::memory::client_of(message) } else { None };
        let handshake_digest = handshake_digest.and_then(NonZeroU64::new);
        let cap = self.cap_of(client, &method, token.is_some()).map(Span::from);
        let key_no = None;
        Request {
            client,
            server,
            id,
            method,
            tool,
            modern,
            task,
            way,
            logs,
            token,
            handshake_digest,
            cap,
            key_no,
            no: None,
        }
    }

    /// A client of the legacy era says who it is, and what it can do.
    #[cold]
    fn introduces_itself(&mut self, client: ClientId, message: &Message, way: Way) {
        self.meet(client, message);
        if way == Way::Line {
            self.learn_to_resume(client, message);
        }
    }

    /// A client of the modern era has no handshake: its first request is one, and each says who it is.
    #[inline]
    pub(super) fn speaks_modern(&mut self, client: ClientId, method: &Method, message: &Message) {
        if self.clients.is_modern(client) {
            self.tickets.orphans_may_go_on();
        }
        self.meet_in_passing(client, method, message);
    }

    /// Whose a request is: our own tools', our tasks' and tickets', or the server's.
    #[inline]
    pub(super) fn route(&mut self, now: Mono, request: Request, message: &Message) {
        if self.own_tool_called(now, &request, message) {
            return;
        }
        if request.method == Method::ToolsCall {
            if !self.is_forbidden(now, &request) && !self.names_unknown_callback(&request, message) {
                self.tool_call(now, request, message);
            }
            return;
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

    /// Sends a call to its server, under a number of ours.
    pub(super) fn send_attempt(&mut self, now: Mono, id: CallId, message: &Message) {
        if self.rejoin(now, id, message)
            || self.comes_back_to_task(now, id, message)
            || self.resumes_at_service(now, id, message)
        {
            return self.step(id, || What::Resumed);
        }
        if self.others_have_subscribed(id, message) {
            return;
        }
        #[cfg(feature = "planted")]
        if planted!(self, ReusesAttempts) {
            self.calls.count_back();
        }
        let Some((attempt, call)) = self.calls.send(id) else { return };
        let (server, client, first) = (call.request.server, call.request.client, call.attempts == 1);
        let (told, attempts) = (call.request.no, call.attempts);
        let named = if planted!(self, RepeatsSpans) { AttemptId(1) } else { attempt };
        let (text, method) = (call.text, &call.request.method);
        let edits = match told {
            None => toward_server(message, text, method, attempt),
            Some(no) => {
                self.traces.toward_server(self.config.seed, (no, named), message, text, method, attempt)
            }
        };
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
        if let Some(no) = told {
            self.tell_sent(no, server, attempts, named);
        }
    }

    pub(super) fn subscribe(&mut self, now: Mono, request: Request, message: &Message) {
        let Some(client) = self.clients.get(&request.client) else { return };
        let Some(server) = self.servers.get(&request.server) else {
            return self.begin_without_server(now, &request);
        };
        let full = reached!(SUBSCRIPTIONS, client.subscriptions >= limits::SUBSCRIPTIONS);
        let sleeps = server.sleeps();
        if full || (server.readiness() != Readiness::Runs && !sleeps) {
            let rules = server.config.rules.clone();
            let policy = rules.for_ask(&request.method);
            let call = Call::new(request, &policy, rules, now, &server.clock);
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
            acknowledged: false,
            breaks: 0,
            armed: None,
            tasks: None,
            role: Role::Whole,
        };
        self.listens.open(attempt, subscription);
        if sleeps {
            // Once the server is awake it is told of everything that somebody listens to.
            return self.wake_server(request.server);
        }
        let outgoing = Outgoing::edited(message.bytes.clone(), edits.into_iter().collect());
        self.send(request.server, Some(attempt), Some(message), outgoing);
    }

    fn client_notification(&mut self, client: ClientId, message: &Message) {
        let method = message.text(Field::Method);
        if method.as_deref() == Some("notifications/cancelled") && message.has(Field::ParamsRequestId) {
            return self.cancelled_by_client(client, message);
        }
        let Some(server) = self.server_for(client) else {
            return self.merged_notification(client, message);
        };
        match method.as_deref() {
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

    /// A call that is not here may have begun where the session was before.
    fn cancelled_by_client(&mut self, client: ClientId, message: &Message) {
        if !self.cancels_here(client, message) {
            self.tell_former_owners(client, &About::Said(Box::new(message.clone())));
        }
    }

    /// False if there is nothing here to cancel.
    pub(super) fn cancels_here(&mut self, client: ClientId, message: &Message) -> bool {
        // Malformed ones are ignored, as the protocol says.
        let Some(id) = message.raw(Field::ParamsRequestId).and_then(JsonId::new) else { return true };
        let key = id.key();
        match self.clients.get(&client).and_then(|client| client.named(&key)) {
            Some(Open::Call(call)) => self.cancel_call(call, message),
            Some(Open::Subscription(attempt)) => self.cancel_subscription(attempt, message),
            Some(Open::Wait(no)) if self.tickets.is_resumable(no) => {
                self.cancel_resumable(client, &id, no, message)
            }
            Some(Open::Wait(no)) => self.stop_waiting(client, &id, no),
            Some(Open::Look(number)) => self.stop_looking(client, &id, number),
            Some(Open::Key(no)) => self.stop_asking_for_key(client, &id, no),
            Some(Open::Gather(no)) => self.stop_gathering(client, &id, no),
            // Finished or unknown.
            None => {
                self.clients.forget_collected(client, &key);
                return false;
            }
        }
        true
    }

    pub(super) fn cancel_call(&mut self, id: CallId, message: &Message) {
        let Some(call) = self.calls.get(id) else { return };
        if call.request.method.is_handshake() {
            return;
        }
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        self.ends_as(id, || Outcome::Cancelled);
        if self.leave_to_others(id) {
            return;
        }
        self.step(id, || What::CancelAsked { by: "the client".into() });
        let reason = message.raw(Field::Params).and_then(|params| json::member(params, "reason"));
        let reason: Option<String> = reason.and_then(|raw| serde_json::from_slice(raw).ok());
        self.note_likely_cap(id, reason.as_deref());
        if self.awaits_a_repeat(id) {
            return;
        }
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
        if planted!(self, DropsCancels) {
            return;
        }
        if self.is_remote(server) && modern {
            return self.abandon(server, attempt);
        }
        let Some(span) = message.envelope.get(Field::ParamsRequestId) else { return };
        let edit = Edit::replace(span, own_id(attempt.on_wire(), text));
        if planted!(self, CancelsTwice) {
            self.send(server, None, None, Outgoing::edited(message.bytes.clone(), vec![edit.clone()]));
        }
        self.send(server, None, None, Outgoing::edited(message.bytes.clone(), vec![edit]));
        self.abandon(server, attempt);
    }
}

/// Whether a request belongs to the modern era.
#[inline]
pub(super) fn is_modern(method: &Method, message: &Message) -> bool {
    *method == Method::Discover || message.has(Field::MetaProtocolVersion)
}
