//! What a server sends: answers find their call, progress is merged, requests are passed on.

use super::Engine;
use super::remote::error_code;
use super::seams::toward_client;
use super::stepping::outcome_in;
use super::tasks::add_to_tools;
use crate::action::Note;
use crate::calls::progress::{Forward, Progress};
use crate::clients::{Role, Way};
use crate::era::Era;
use crate::error::{Kind, cut, error_answer};
use crate::event::Line;
use crate::id::{AttemptId, CallId, ClientId, JsonId, ServerId, read_own_id};
use crate::limits;
use crate::method::Method;
use crate::mirror;
use crate::servers::{Life, Own, Server};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Oversized, Patch, Refused, Scanned, Shape, scan_tolerant};
use std::num::NonZeroU64;
use std::time::Duration;

impl Engine {
    pub(super) fn line_from_server(&mut self, now: Mono, server: ServerId, line: &Line) {
        match line {
            Ok(Scanned::Message(message)) => self.server_message(now, server, message),
            Ok(Scanned::Batch(members)) => {
                for member in members {
                    match member {
                        Ok(message) => self.server_message(now, server, message),
                        Err(refused) => self.bad_line(server, &refused.bytes),
                    }
                }
            }
            Err(refused) => self.refused_line(now, server, refused),
        }
    }

    fn server_message(&mut self, now: Mono, server: ServerId, message: &Message) {
        if !self.answers_poll(server, message) {
            self.servers.speaks(&mut self.timers, now, server);
        }
        match message.shape {
            Shape::Answer => self.answer(now, server, message),
            Shape::Notification => self.server_notification(now, server, message),
            Shape::Request => self.ask(now, server, message),
        }
    }

    /// What is not strict JSON is still passed on if it is the answer that somebody waits for:
    /// today's SDKs would take it.
    fn refused_line(&mut self, now: Mono, server: ServerId, refused: &Refused) {
        let tolerant = scan_tolerant(&refused.bytes).filter(|message| {
            message.shape == Shape::Answer
                && self.attempt_named(message).is_some_and(|(attempt, _)| self.waits_for(server, attempt))
        });
        match tolerant {
            Some(message) => {
                let name = self.server_name(server);
                self.note(Note::TolerantAnswer { server: name });
                self.take_out_of_array(server, &message);
                self.server_message(now, server, &message);
            }
            None => self.bad_line(server, &refused.bytes),
        }
    }

    /// One careless answer must not make a whole array unreadable: it leaves by itself.
    fn take_out_of_array(&mut self, server: ServerId, message: &Message) {
        let id = self.attempt_named(message).and_then(|(attempt, _)| self.call_at(server, attempt));
        let Some((id, call)) = id.and_then(|id| Some((id, self.calls.get(id)?))) else { return };
        let client = call.request.client;
        if let Way::Array(batch) = call.request.way {
            self.calls.leave_array(id);
            self.member_done(client, batch);
        }
    }

    // Whose attempt it is. A server counts our attempts as it likes; what it says counts only for those that it
    // was sent itself, and over HTTP only on the stream of that attempt or on one that belongs to none.

    fn waits_for(&self, server: ServerId, attempt: AttemptId) -> bool {
        let own = |server: &Server| server.own.contains_key(&attempt);
        self.call_at(server, attempt).is_some()
            || self.subscription_at(server, attempt).is_some()
            || self.servers.get(&server).is_some_and(own)
    }

    /// The call that this server was sent under this number.
    #[inline]
    pub(super) fn call_at(&self, server: ServerId, attempt: AttemptId) -> Option<CallId> {
        #[cfg(feature = "planted")]
        if planted!(self, HearsAnyServer) {
            return self.calls.anywhere(attempt);
        }
        self.calls.of(server, attempt).filter(|_| self.is_on_its_stream(attempt))
    }

    /// This number, if this server was sent a subscription under it.
    fn subscription_at(&self, server: ServerId, attempt: AttemptId) -> Option<AttemptId> {
        let subscription = self.listens.get(attempt)?;
        let held = subscription.server == server && !subscription.is_ours_alone();
        (held && self.is_on_its_stream(attempt)).then_some(attempt)
    }

    /// Whether the message at hand did not come on the stream of another attempt.
    #[inline]
    fn is_on_its_stream(&self, attempt: AttemptId) -> bool {
        self.tied.is_none_or(|tied| tied == attempt)
    }

    fn bad_line(&mut self, id: ServerId, bytes: &[u8]) {
        let Some(count) = self.servers.bad_line(id) else { return };
        reached!(BAD_LINE_SHOWN if bytes.len() > limits::BAD_LINE_SHOWN);
        let text = String::from_utf8_lossy(&bytes[..bytes.len().min(limits::BAD_LINE_SHOWN)]);
        let shown = cut(&text.escape_debug().to_string(), 2 * limits::BAD_LINE_SHOWN).to_owned();
        let server = self.server_name(id);
        self.note(Note::BadLines { server, count, shown });
    }

    /// A run of a server is over, or outlast is: how many lines it was in all.
    pub(super) fn tell_all_bad_lines(&mut self, id: ServerId) {
        let Some(count) = self.servers.untold_bad_lines(id) else { return };
        let server = self.server_name(id);
        self.note(Note::AllBadLines { server, count });
    }

    /// An answer that is too long fails its call; a question that is too long is refused.
    pub(super) fn server_oversized(&mut self, now: Mono, server: ServerId, line: &Oversized) {
        self.servers.speaks(&mut self.timers, now, server);
        if let Some(id) = line.id.as_deref().and_then(JsonId::new).filter(|_| !line.answer) {
            let text = format!("a message is longer than max-message ({} bytes)", self.config.max_message);
            let answer = error_answer(id.patch().as_slice(), Kind::MessageTooLarge.code(false), &text, None);
            self.send(server, None, None, Outgoing::plain(answer));
            return self.bad_line(server, b"(a request longer than max-message)");
        }
        let attempt = line.id.as_deref().and_then(read_own_id).map(|(number, _)| AttemptId(number));
        let call = attempt.and_then(|attempt| self.call_at(server, attempt));
        let Some(call_id) = call.or_else(|| self.call_of_own(now, server, attempt?)) else {
            return self.bad_line(server, b"(a line longer than max-message)");
        };
        let Some(call) = self.calls.get(call_id) else { return };
        let mut failure = self.failure(now, call, Kind::MessageTooLarge, None);
        failure.detail = Some(format!("the answer is longer than {} bytes", self.config.max_message));
        self.fail(call_id, failure);
    }

    /// The call whose task at the server a request of ours asked for. Any other request of ours is not answered.
    fn call_of_own(&mut self, now: Mono, server: ServerId, attempt: AttemptId) -> Option<CallId> {
        match self.servers.take_own(server, attempt)? {
            Own::Poll(call) | Own::Fetch(call) => Some(call),
            own => {
                self.own_is_lost(now, (server, attempt), own);
                None
            }
        }
    }

    /// The attempt that an answer names; also whether by a string.
    fn attempt_named(&self, message: &Message) -> Option<(AttemptId, bool)> {
        let (number, text) = read_own_id(message.raw(Field::Id)?)?;
        Some((self.attempt_of(number), text))
    }

    /// The attempt that has this number on the wire: that of the stream it came on, if it has.
    pub(super) fn attempt_of(&self, number: u64) -> AttemptId {
        self.tied.filter(|tied| tied.on_wire() == number).unwrap_or(AttemptId(number))
    }

    fn answer(&mut self, now: Mono, server: ServerId, message: &Message) {
        let Some((attempt, text)) = self.attempt_named(message) else {
            return self.answer_without_our_id(server, message);
        };
        if let Some(call) = self.call_at(server, attempt) {
            return self.answer_to_call(now, server, call, text, message);
        }
        self.answer_to_no_call(now, server, attempt, message);
    }

    #[inline(never)]
    fn answer_to_no_call(&mut self, now: Mono, server: ServerId, attempt: AttemptId, message: &Message) {
        if !self.is_on_its_stream(attempt) {
            return self.unknown_answer(server, attempt);
        }
        if self.calls.awaits(attempt) {
            // Another server has it, or another stream.
            return self.unknown_answer(server, attempt);
        }
        if self.listens.contains(attempt) {
            return match self.subscription_at(server, attempt) {
                Some(attempt) => self.answer_to_subscription(server, attempt, message),
                None => self.unknown_answer(server, attempt),
            };
        }
        if self.servers.get(&server).is_some_and(|server| server.life == Life::Reviving(attempt)) {
            return self.revived(now, server, message);
        }
        if self.answer_to_own(now, server, attempt, message) {
            return;
        }
        let name = self.server_name(server);
        if self.calls.has_numbered(attempt) {
            if message.has(Field::Result) {
                self.servers.speaks_of_ended(now, server, attempt);
            }
            self.note(Note::LateAnswer { server: name, attempt: attempt.0 });
        } else {
            self.unknown_answer(server, attempt);
        }
    }

    /// An answer to what this server was never asked, or not there.
    #[cold]
    fn unknown_answer(&mut self, server: ServerId, attempt: AttemptId) {
        let name = self.server_name(server);
        let id = attempt.on_wire().to_string();
        self.note(Note::UnknownAnswer { from: format!("`{name}`").into(), id });
    }

    /// An error without an id tells of a message that the server could not read; any other answer
    /// belongs to nobody.
    fn answer_without_our_id(&mut self, server: ServerId, message: &Message) {
        let id = message.raw(Field::Id).unwrap_or(b"null");
        if id == b"null" && message.has(Field::Error) {
            return self.tell_everybody(server, &message.bytes);
        }
        let id = cut(&String::from_utf8_lossy(id), limits::NAME).to_owned();
        let name = self.server_name(server);
        self.note(Note::UnknownAnswer { from: format!("`{name}`").into(), id });
    }

    fn answer_to_call(&mut self, now: Mono, server_id: ServerId, id: CallId, text: bool, message: &Message) {
        let Some(call) = self.calls.get(id).filter(|_| !planted!(self, WaitsForEver)) else { return };
        let Some(edit) = toward_client(message, call) else { return };
        let other_type = text != call.text;
        let (modern, way, client) = (call.request.modern, call.request.way, call.request.client);
        let tells_of_server =
            call.request.method.is_handshake() || call.request.method.shapes_the_connection();
        let task = call.request.task && message.has(Field::Result);
        let refused_handshake = call.request.method == Method::Initialize && message.has(Field::Error);
        if self.servers.has_answered(server_id) {
            self.tickets.orphans_may_go_on();
        }
        if other_type && self.servers.uses_other_id_type(server_id) {
            let server = self.server_name(server_id);
            self.note(Note::OtherIdType { server });
        }
        if self.answer_as_task(now, id, message) {
            return;
        }
        self.ends_as(id, || outcome_in(message));
        let mut edits = vec![edit];
        if tells_of_server {
            self.learn_from_answer(now, server_id, id, message, &mut edits);
        }
        if let Some(span) = message.envelope.get(Field::Result).filter(|_| planted!(self, ChangesBytes)) {
            edits.push(Edit::insert(span.start() + 1, Patch::of(&[b" "])));
        }
        if planted!(self, AnswersTwice) {
            self.reply(client, way, None, Outgoing::edited(message.bytes.clone(), edits.clone()));
        }
        if task {
            self.servers.gave_task(server_id);
            self.keep_task_token(id);
        }
        if modern && way != Way::Line && message.has(Field::Error) {
            self.set_status(way, error_code(message));
        }
        if refused_handshake {
            self.names_no_session(way);
        }
        let mut answer = Outgoing::edited(message.bytes.clone(), edits);
        if tells_of_server && self.selective {
            answer = self.without_forbidden((client, server_id), message, answer);
        }
        self.settle(id, Some(answer));
        if refused_handshake {
            self.handshake_failed(client);
        }
    }

    /// What the answer to a handshake or a list says about the server, and what the client gets of it.
    #[cold]
    fn learn_from_answer(
        &mut self,
        now: Mono,
        server: ServerId,
        id: CallId,
        message: &Message,
        edits: &mut Vec<Edit>,
    ) {
        let Some(call) = self.calls.get(id) else { return };
        let (method, digest, began) =
            (call.request.method.clone(), call.request.handshake_digest.map(NonZeroU64::get), call.began);
        let (client, modern) = (call.request.client, call.request.modern);
        let cap = call.request.cap.map(Duration::from);
        let remote = self.is_remote(server);
        if method.is_handshake() {
            self.handshake_answered(server, &method, message);
            if method == Method::Initialize {
                self.handshake_is_shared(server, message);
            }
            self.remember_handshake(server, digest, &method, message);
            self.mention_slow_start(now, server, began);
            edits.extend(self.add_to_handshake(server, client, message));
            return;
        }
        self.remember_list(server, &method, message);
        self.remember_whole_list(server, &method, message);
        if method != Method::ToolsList {
            return;
        }
        self.learn_tools(server, message, modern);
        edits.extend(self.add_tasks_to_tools(server, false, message));
        // What stands between would refuse their calls.
        let filtered = modern && remote;
        edits.extend(self.change_tools((client, server), cap, filtered, message));
    }

    /// What a list of tools says about the calls of each.
    pub(super) fn learn_tools(&mut self, server: ServerId, message: &Message, modern: bool) {
        if self.definition_of(server).trust {
            self.read_hints(server, message);
        }
        if self.definition_of(server).rules.holds_the_destructive()
            && let Some(result) = message.raw(Field::Result)
        {
            self.servers.learn_harmless(server, result);
        }
        self.learn_task_tools(server, message);
        if modern || self.is_remote(server) {
            self.learn_mirrors(server, message);
        }
    }

    /// What a client's list of tools has less than the server's, and more.
    pub(super) fn change_tools(
        &mut self,
        (client, server): (ClientId, ServerId),
        cap: Option<Duration>,
        filtered: bool,
        message: &Message,
    ) -> Option<Edit> {
        let result = message.raw(Field::Result)?;
        let own = cap.and_then(|_| {
            self.servers.learn_tools(server, result);
            self.clients.shows_our_tools(client);
            self.own_tools(server, result)
        });
        let less =
            filtered.then(|| mirror::without_invalid_tools(message, own.as_deref().unwrap_or_default()));
        less.flatten().or_else(|| add_to_tools(&message.bytes, result, &own?))
    }

    fn handshake_answered(&mut self, id: ServerId, method: &Method, message: &Message) {
        let Some(result) = message.raw(Field::Result) else { return };
        self.servers.shows_era(id, Era::of_handshake(method));
        self.tell_ready(id, method, result);
        self.servers.has_shaken_hands(id, agreed_version(result), supported_versions(result));
        self.learn_capabilities(id, result);
    }

    /// Learns what the server declares about its limits and its logging.
    pub(super) fn learn_capabilities(&mut self, id: ServerId, result: &[u8]) {
        if self.servers.learn_capabilities(id, result) {
            let server = self.server_name(id);
            self.note(Note::OddDeclaration { server });
        }
    }

    fn answer_to_subscription(&mut self, server: ServerId, attempt: AttemptId, message: &Message) {
        self.servers.has_answered(server);
        let Some(subscription) = self.close_subscription(attempt) else { return };
        let spans = [Field::Id, Field::ResultMetaSubscriptionId].map(|field| message.envelope.get(field));
        let edits = spans.into_iter().flatten().map(|span| Edit::replace(span, subscription.id.patch()));
        let answer = Outgoing::edited(message.bytes.clone(), edits.collect());
        self.reply(subscription.client, subscription.way, Some(&subscription.id), answer);
    }

    #[inline(never)]
    fn server_notification(&mut self, now: Mono, server: ServerId, message: &Message) {
        match message.text(Field::Method).as_deref() {
            Some("notifications/progress") => self.progress(now, server, message),
            Some("notifications/requests/resumePolicy") if self.takes_policy(server, message) => {}
            Some("notifications/cancelled") => self.cancelled_by_server(now, server, message),
            Some("notifications/tasks/status") if self.hasten_poll(now, server, message) => {}
            _ => self.pass_to_client(server, message),
        }
    }

    fn pass_to_client(&mut self, server: ServerId, message: &Message) {
        self.catalog_changes(server, message);
        let Some(span) = message.envelope.get(Field::MetaSubscriptionId) else {
            return self.tell_audience(server, message);
        };
        let attempt = read_own_id(span.of(&message.bytes)).map(|(number, _)| AttemptId(number));
        let attempt = attempt.and_then(|attempt| self.subscription_at(server, attempt));
        let Some(subscription) = attempt.and_then(|attempt| self.listens.get(attempt)) else {
            return self.stray_progress(server);
        };
        if let Some(attempt) = attempt.filter(|_| matches!(subscription.role, Role::Part { .. })) {
            return self.told_of_part(server, attempt, message);
        }
        let acknowledges =
            message.text(Field::Method).as_deref() == Some("notifications/subscriptions/acknowledged");
        if subscription.acknowledged && acknowledges {
            // The client was told so by the process before.
            return;
        }
        let mut edits = vec![Edit::replace(span, subscription.id.patch())];
        let (client, way) = (subscription.client, subscription.way);
        let acknowledged = attempt.filter(|_| acknowledges);
        let honours = acknowledged.filter(|_| subscription.tasks.is_some());
        edits.extend(honours.and_then(|attempt| self.add_tickets(attempt, message)));
        self.tell(client, way, Outgoing::edited(message.bytes.clone(), edits));
        if let Some(attempt) = acknowledged {
            self.is_acknowledged(attempt);
        }
    }

    /// Either a question of its own that it takes back, or a subscription that it ends.
    fn cancelled_by_server(&mut self, now: Mono, server: ServerId, message: &Message) {
        let Some(span) = message.envelope.get(Field::ParamsRequestId) else {
            return self.pass_to_client(server, message);
        };
        let raw = span.of(&message.bytes);
        if let Some(ask) = JsonId::new(raw).and_then(|id| self.asks.named(server, &id)) {
            return self.take_ask_back(now, ask, span, message);
        }
        if self.unsent_is_unwanted(server, raw) {
            return;
        }
        let attempt = read_own_id(raw).map(|(number, _)| AttemptId(number));
        let attempt = attempt.and_then(|attempt| self.subscription_at(server, attempt));
        let Some(subscription) = attempt.and_then(|attempt| self.close_subscription(attempt)) else { return };
        let edit = Edit::replace(span, subscription.id.patch());
        let message = Outgoing::edited(message.bytes.clone(), vec![edit]);
        match subscription.way {
            // Its stream ends, and that says the same.
            Way::Stream(stream) => self.settled_on_stream(now, stream),
            way => self.tell(subscription.client, way, message),
        }
    }

    fn progress(&mut self, now: Mono, server_id: ServerId, message: &Message) {
        let attempt = message.raw(Field::ParamsProgressToken).and_then(read_own_id);
        let Some(attempt) = attempt.map(|(number, _)| self.attempt_of(number)) else {
            return self.stray_progress(server_id);
        };
        let Some(id) = self.calls.of(server_id, attempt) else {
            return self.progress_of_task(server_id, attempt, message);
        };
        let others = || self.calls.ids().find(|other| *other != id);
        let id = if planted!(self, MixesProgress) { others().unwrap_or(id) } else { id };
        let Some(call) = self.calls.get(id) else { return };
        // Of a task of the server's own also whatever stream that task speaks on.
        if !self.is_on_its_stream(attempt) && call.server_task().is_none() {
            return self.stray_progress(server_id);
        }
        let Some(server) = self.servers.get(&server_id) else { return };
        let (client, way) = (call.request.client, call.request.way);
        // What another outlast says in a server's place is no sign of the server.
        let counts = !message.has(Field::MetaKeepAlive);
        let counts = counts && !planted!(self, RepeatsCommitted);
        if counts {
            self.calls.shows_life(now, id, &server.clock);
        }
        let report = self.calls.report(now, id, |token, progress| forwarded(message, token, progress));
        if let Some(report) = report {
            self.tell_progress(client, way, report);
        }
        self.tell_words(id, message);
        self.progress_of_joined(now, id, message, counts);
    }

    /// Progress that outlives its answer, as it may for a task.
    fn progress_of_task(&mut self, server: ServerId, attempt: AttemptId, message: &Message) {
        let client = self.holds_task_token(server, attempt);
        let merge = |token: &JsonId, progress: &mut Progress| forwarded(message, token, progress);
        match client.and_then(|id| Some((id, self.clients.report_on_task(id, attempt, merge)?))) {
            Some((client, Some(report))) => self.tell_client(client, report),
            Some((_, None)) => {}
            None => {
                self.servers.speaks_of_ended(self.at, server, attempt);
                self.stray_progress(server);
            }
        }
    }

    fn stray_progress(&mut self, server: ServerId) {
        let server = self.server_name(server);
        self.note(Note::StrayProgress { server });
    }
}

/// The revision that a server agreed on.
pub(super) fn agreed_version(result: &[u8]) -> Option<Box<str>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Agreed {
        protocol_version: Box<str>,
    }
    serde_json::from_slice::<Agreed>(result).ok().map(|agreed| agreed.protocol_version)
}

/// The revisions that a server names in `server/discover`.
fn supported_versions(result: &[u8]) -> Vec<Box<str>> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Discovered {
        supported_versions: Vec<Box<str>>,
    }
    let discovered = serde_json::from_slice::<Discovered>(result);
    discovered.map(|discovered| discovered.supported_versions).unwrap_or_default()
}

/// A server's report as its client may see it: under the client's token, and rising.
pub(super) fn forwarded(message: &Message, token: &JsonId, progress: &mut Progress) -> Option<Outgoing> {
    let value = message.number(Field::ParamsProgress);
    let total = message.number(Field::ParamsTotal);
    let mut edits = vec![Edit::replace(message.envelope.get(Field::ParamsProgressToken)?, token.patch())];
    match progress.report(value, total) {
        Forward::Drop => return None,
        Forward::Unchanged => {}
        Forward::Lifted { value, drop_total } => {
            let text = serde_json::to_vec(&value).ok()?;
            let span = message.envelope.get(Field::ParamsProgress)?;
            edits.push(Edit::replace(span, Patch::of(&[&text])));
            if let Some(span) = message.envelope.get(Field::ParamsTotal).filter(|_| drop_total) {
                edits.push(Edit::remove_member(&message.bytes, span));
            }
        }
    }
    Some(Outgoing::edited(message.bytes.clone(), edits))
}
