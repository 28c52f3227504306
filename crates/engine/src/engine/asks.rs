//! Requests of a server to the client, and the client's answers.
//!
//! They get ids of ours towards the client and their own ids back towards the server. While one of
//! them waits for a person, the call that it belongs to is not charged, or all calls of the server where that is not
//! known.

use super::Engine;
use super::durable::About;
use super::settle::cancel_message;
use crate::action::Note;
use crate::clients::Way;
use crate::error::{Kind, error_answer};
use crate::id::{AskId, CallId, ClientId, JsonId, ServerId, TaskNo, own_id, read_own_id};
use crate::limits;
use crate::method::Method;
use crate::servers::{Ask, Server, Waits};
use crate::settings::show_duration;
use crate::step::What;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Oversized, Span};

impl Engine {
    #[inline(never)]
    pub(super) fn ask(&mut self, now: Mono, server_id: ServerId, message: &Message) {
        let Some(id) = message.raw(Field::Id).and_then(JsonId::new) else { return };
        if !self.is_remote(server_id) && !self.servers.get(&server_id).is_some_and(Server::has_process) {
            // Late words of a process that has ended: nobody is left to hear the answer.
            return;
        }
        let Some(tasks) = self.tasks_asked(server_id) else {
            return self.nobody_to_ask(server_id, &id);
        };
        let Some((client_id, way)) = self.party_asked(server_id, &tasks) else {
            return self.nobody_to_ask(server_id, &id);
        };
        if self.asks.is_full() {
            return self.refuse_ask(server_id, &id);
        }
        self.servers.stop_sharing(server_id);
        let tie = self.tie_to_task(&tasks, message);
        let Some(run) = self.servers.get(&server_id).map(|server| server.run) else { return };
        let Some(span) = message.envelope.get(Field::Id) else { return };
        let method = Method::of(message);
        let waits = self.who_waits(server_id, &method);
        self.wait_begins(now, server_id, waits);
        self.tell_asked(server_id, waits, &What::Asked);
        let (rules, text) = (self.definition_of(server_id).rules.clone(), id.is_text());
        let limit = rules.for_ask(&method).timeout;
        let token = self.token_of_ask(client_id, message);
        let ask = Ask {
            client: client_id,
            way,
            server: server_id,
            run,
            id,
            method,
            limit,
            source: limit.map_or("", |limit| rules.source(limit.layer)).into(),
            waits,
            token: token.as_ref().map(|(_, token)| token.clone()),
            armed: None,
        };
        let ask_id = self.asks.open(&mut self.timers, now, ask);
        let mut edits = vec![Edit::replace(span, own_id(ask_id.0, text))];
        edits.extend(token.map(|(span, _)| Edit::replace(span, own_id(ask_id.0, false))));
        edits.extend(tie);
        self.tell(client_id, way, Outgoing::edited(message.bytes.clone(), edits));
        if matches!(way, Way::Ticket(_)) {
            self.show_question(&tasks, ask_id, message);
        }
        if waits != Waits::Nobody {
            self.tasks_are_asked(&tasks, ask_id, message);
        }
    }

    /// Whoever waits for the tasks in question, else whoever sees them, else the client of the server.
    fn party_asked(&self, server: ServerId, tasks: &[TaskNo]) -> Option<(ClientId, Way)> {
        let client = || self.who_is_asked(server).filter(|(client, _)| self.may_be_asked(*client, tasks));
        self.waits_for_questions(tasks).or_else(|| self.asked_through_tasks(tasks)).or_else(client)
    }

    /// The token of a question that the client gets under another name: two servers of one client may have the same. To
    /// one server alone the client is as it would be without us.
    fn token_of_ask(&self, client: ClientId, message: &Message) -> Option<(Span, JsonId)> {
        let span = message.envelope.get(Field::MetaProgressToken).filter(|_| self.is_merged(client))?;
        Some((span, JsonId::token(span.of(&message.bytes))?))
    }

    fn refuse_ask(&mut self, server: ServerId, id: &JsonId) {
        let text = format!("outlast: more than {} requests wait for the client", limits::ASKS);
        let answer = error_answer(id.patch().as_slice(), -32603, &text, None);
        self.send(server, None, None, Outgoing::plain(answer));
        if self.servers.ask_was_refused(server) {
            let server = self.server_name(server);
            self.note(Note::TooManyAsks { server });
        }
    }

    /// A question that is not known here may have been asked where the session was before.
    pub(super) fn answer_to_ask(&mut self, now: Mono, client: ClientId, message: &Message) {
        if self.answers_here(now, client, message)
            || self.tell_former_owners(client, &About::Said(Box::new(message.clone())))
        {
            return;
        }
        let id = String::from_utf8_lossy(message.raw(Field::Id).unwrap_or(b"null")).into_owned();
        self.note(Note::UnknownAnswer { from: "the client".into(), id });
    }

    /// False if nobody here has asked this client that.
    pub(super) fn answers_here(&mut self, now: Mono, client: ClientId, message: &Message) -> bool {
        let number = message.raw(Field::Id).and_then(read_own_id).map(|(number, _)| AskId(number));
        let known = number.filter(|id| self.asks.of(client, *id).is_some());
        let (Some(ask_id), Some(span)) = (known, message.envelope.get(Field::Id)) else {
            return self.client_decides(client, message);
        };
        let Some(ask) = self.close_ask(now, ask_id) else { return false };
        if self.servers.is_current(ask.server, ask.run) {
            let edit = Edit::replace(span, ask.id.patch());
            let others = || self.asks.iter().map(|(_, ask)| ask.server).find(|other| *other != ask.server);
            let server = if planted!(self, MixesAsks) { others() } else { None };
            let answer = Outgoing::edited(message.bytes.clone(), vec![edit]);
            self.send_answer(server.unwrap_or(ask.server), answer);
        }
        true
    }

    /// A client of the merged door reports on what it was asked: to the server that asked, under its own token.
    pub(super) fn progress_of_ask(&mut self, client: ClientId, message: &Message) {
        let Some(span) = message.envelope.get(Field::ParamsProgressToken) else { return };
        let ask = read_own_id(span.of(&message.bytes)).and_then(|(no, _)| self.asks.of(client, AskId(no)));
        let Some((server, run, token)) = ask.and_then(|ask| Some((ask.server, ask.run, ask.token.clone()?)))
        else {
            return;
        };
        if self.servers.is_current(server, run) {
            let edit = Edit::replace(span, token.patch());
            self.send(server, None, Some(message), Outgoing::edited(message.bytes.clone(), vec![edit]));
        }
    }

    /// The client's answer was too long to keep: the server gets an error instead of silence.
    pub(super) fn oversized_answer_to_ask(
        &mut self,
        now: Mono,
        client: ClientId,
        line: &Oversized,
        text: &str,
    ) {
        let number = line.id.as_deref().and_then(read_own_id).map(|(number, _)| AskId(number));
        let known = number.filter(|id| self.asks.of(client, *id).is_some());
        let Some(ask) = known.and_then(|id| self.close_ask(now, id)) else { return };
        let answer = error_answer(ask.id.patch().as_slice(), Kind::MessageTooLarge.code(false), text, None);
        self.send(ask.server, None, None, Outgoing::plain(answer));
    }

    pub(super) fn take_ask_back(&mut self, now: Mono, id: AskId, span: Span, message: &Message) {
        let Some(ask) = self.close_ask(now, id) else { return };
        let edit = Edit::replace(span, own_id(id.0, ask.id.is_text()));
        self.tell(ask.client, ask.way, Outgoing::edited(message.bytes.clone(), vec![edit]));
    }

    /// The client did not answer in time: the server gets an error, the client a cancel.
    pub(super) fn ask_timed_out(&mut self, now: Mono, id: AskId) {
        self.asks.ring(id);
        let Some(ask) = self.close_ask(now, id) else { return };
        let Some(limit) = ask.limit else { return };
        let time = show_duration(limit.time);
        let method = ask.method.as_str();
        let source = &ask.source;
        let text = format!(
            "the client did not answer {method} within {time} (timeout, {source}); raise it with --method '{method}=timeout:TIME'"
        );
        let answer = error_answer(ask.id.patch().as_slice(), -32001, &text, None);
        self.send(ask.server, None, None, Outgoing::plain(answer));
        let wire_id = own_id(id.0, ask.id.is_text());
        let cancel = cancel_message(wire_id.as_slice(), &format!("Timeout: no answer within {time}"), limit);
        self.tell(ask.client, ask.way, Outgoing::plain(cancel));
        let server = self.server_name(ask.server);
        self.note(Note::AskTimedOut { server, method: method.into(), limit: limit.time });
    }

    /// The process that asked is gone: its questions are taken back from the client.
    pub(super) fn drop_asks_of(&mut self, now: Mono, server: ServerId) {
        for id in self.asks.numbers(|ask| ask.server == server) {
            let Some(ask) = self.close_ask(now, id) else { continue };
            let cancel = [
                br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
                own_id(id.0, ask.id.is_text()).as_slice(),
                br#","reason":"the server that asked has ended"}}"#,
            ]
            .concat();
            self.tell(ask.client, ask.way, Outgoing::plain(cancel));
        }
    }

    pub(super) fn close_ask(&mut self, now: Mono, id: AskId) -> Option<Ask> {
        let ask = self.asks.close(&mut self.timers, id)?;
        if matches!(ask.way, Way::Ticket(_)) {
            self.question_is_over(id);
        }
        self.wait_ends(now, ask.server, ask.waits);
        self.tell_asked(ask.server, ask.waits, &What::Answered);
        if ask.waits != Waits::Nobody {
            self.tasks_are_answered(id);
        }
        Some(ask)
    }

    /// Whose clock a question stops. A call that others have joined waits together with its server: each of them has
    /// a clock of its own.
    fn who_waits(&self, server: ServerId, method: &Method) -> Waits {
        if !method.waits_for_a_person() {
            return Waits::Nobody;
        }
        let tied = self.tied.and_then(|attempt| self.calls.of(server, attempt));
        let alone = |id: &CallId| self.calls.get(*id).is_some_and(|call| call.request.key_no.is_none());
        tied.filter(alone).map_or(Waits::Server, Waits::Call)
    }

    fn wait_begins(&mut self, now: Mono, id: ServerId, waits: Waits) {
        match waits {
            Waits::Nobody => {}
            Waits::Server => self.servers.wait_begins(now, id),
            Waits::Call(call) => {
                let Some(server) = self.servers.get(&id) else { return };
                self.calls.wait_begins(now, call, &server.clock);
                self.arm_call(now, call);
            }
        }
    }

    fn wait_ends(&mut self, now: Mono, id: ServerId, waits: Waits) {
        if planted!(self, WaitsOnAfterAnswers) {
            return;
        }
        match waits {
            Waits::Nobody => {}
            Waits::Server => {
                for call in self.servers.wait_ends(now, id) {
                    self.arm_call(now, call);
                }
            }
            Waits::Call(call) => {
                let Some(server) = self.servers.get(&id) else { return };
                self.calls.wait_ends(now, call, &server.clock);
                self.arm_call(now, call);
            }
        }
    }
}
