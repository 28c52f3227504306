//! Calls that fail or are refused: what their clients are told, and what their servers are; and how many calls a
//! principal has in flight. The end itself is in `ends.rs`.

use super::Engine;
use crate::action::Note;
use crate::calls::deadline::Reached;
use crate::calls::{Call, Request, State};
use crate::clients::{Role, Subscription, TaskToken, Way};
use crate::config::Restart;
use crate::error::{Failure, Kind, Retry, ServerState, json_text};
use crate::id::{AttemptId, CallId, ClientId, ServerId, own_id};
use crate::method::Method;
use crate::policy::{Layer, Limit};
use crate::servers::Life;
use crate::step::{Outcome, What};
use crate::tickets::Payer;
use crate::time::Mono;
use crate::wire::Outgoing;

impl Engine {
    /// A request is not in flight any more, and its server need not stay for it.
    pub(super) fn count_out(&mut self, request: &Request, holds: bool) {
        let ticket = matches!(request.way, Way::Ticket(_));
        if !ticket && request.way != Way::Nowhere {
            self.one_call_less(request.client);
        }
        if ticket || holds {
            self.one_ticket_less(self.at, request.server);
        }
    }

    /// Keeps a token alive that may report on until its task ends.
    pub(super) fn keep_task_token(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let client = call.request.client;
        let (Some(attempt), Some(token), true) =
            (call.attempt(), call.request.token.clone(), call.request.task)
        else {
            return;
        };
        let server = call.request.server;
        let progress = self.calls.take_progress(id);
        self.clients.keep_task_token(client, TaskToken { attempt, server, token, progress });
    }

    /// Ends a call with an error of ours, and says so.
    pub(super) fn fail(&mut self, id: CallId, failure: Failure) {
        let Some(call) = self.calls.get(id) else { return };
        let (way, modern) = (call.request.way, call.request.modern);
        let answer = self.error_for(call, &failure);
        self.fail_joined(id, &failure);
        let kind = failure.kind.name();
        self.say_when_to_retry(way, modern, &failure);
        self.note(Note::Failed(Box::new(failure)));
        let handshake = self.calls.get(id).filter(|call| call.request.method == Method::Initialize);
        let handshake = handshake.map(|call| (call.request.client, call.request.way));
        if let Some((_, way)) = handshake {
            self.names_no_session(way);
        }
        self.ends_as(id, || Outcome::Failed(kind));
        self.settle(id, Some(answer));
        if let Some((client, _)) = handshake {
            self.handshake_failed(client);
        }
    }

    /// A modern response can say in its head when to come again.
    fn say_when_to_retry(&mut self, way: Way, modern: bool, failure: &Failure) {
        if let Some(after) = failure.retry_after.filter(|_| modern) {
            self.set_retry_after(way, after);
        }
    }

    /// Ends a call with an error of ours.
    pub(super) fn fail_silently(&mut self, id: CallId, failure: &Failure) {
        let Some(call) = self.calls.get(id) else { return };
        let answer = self.error_for(call, failure);
        self.fail_joined(id, failure);
        self.ends_as(id, || Outcome::Failed(failure.kind.name()));
        self.settle(id, Some(answer));
    }

    /// Answers a request that never becomes an open call.
    pub(super) fn refuse_call(&mut self, now: Mono, call: &Call, kind: Kind, detail: String) {
        let mut failure = self.failure(now, call, kind, None);
        failure.detail = Some(detail);
        self.refuse_with(call, failure);
    }

    /// The same, with all that is to be said.
    pub(super) fn refuse_with(&mut self, call: &Call, failure: Failure) {
        let answer = self.error_for(call, &failure);
        self.say_when_to_retry(call.request.way, call.request.modern, &failure);
        let kind = failure.kind;
        self.note(Note::Failed(Box::new(failure)));
        self.answer_refused(call, kind, answer);
    }

    fn answer_refused(&mut self, call: &Call, kind: Kind, answer: Outgoing) {
        self.tell_of_refused(call, kind.name(), &answer);
        let begins = call.request.method == Method::Initialize;
        if begins {
            self.names_no_session(call.request.way);
        }
        self.reply(call.request.client, call.request.way, Some(&call.request.id), answer);
        if begins {
            self.handshake_failed(call.request.client);
        }
    }

    pub(super) fn refuse_by_gone_server(&mut self, now: Mono, call: &Call) {
        let Some(server) = self.servers.get(&call.request.server) else {
            return self.refuse_call(now, call, Kind::ServerGone, LET_GO.into());
        };
        let (kind, detail) = match server.life {
            Life::Failed(why) => {
                (Kind::ServerFailed, format!("cannot start `{}`: {why}", server.config.command))
            }
            Life::Ended(exit) => (Kind::ServerGone, exit.to_string()),
            _ if server.fate == crate::servers::Fate::Removed => {
                (Kind::ServerGone, super::reload::REMOVED.to_owned())
            }
            Life::Down => (Kind::ServerFailed, self.next_try(now, call.request.server)),
            _ => (Kind::ServerFailed, "it is being restarted".into()),
        };
        let mut failure = self.failure(now, call, kind, None);
        failure.detail = Some(detail);
        failure.stderr = server.stderr_tail();
        failure.retry = Retry::Pointless;
        let (answer, kind) = (self.error_for(call, &failure), failure.kind);
        if kind == Kind::ServerGone {
            // Of what could not be started, or is being restarted, a note was made before.
            self.note(Note::Failed(Box::new(failure)));
        }
        self.answer_refused(call, kind, answer);
        self.first_request_was_answered(now, call.request.server);
    }

    /// A call that waited to be sent again finds its server gone for good, or for a while.
    pub(super) fn fail_at_gone_server(&mut self, now: Mono, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let detail = self.next_try(now, call.request.server);
        let mut failure = self.failure(now, call, Kind::ServerFailed, None);
        failure.detail = Some(detail);
        self.fail(id, failure);
    }

    pub(super) fn error_for(&self, call: &Call, failure: &Failure) -> Outgoing {
        let id = call.request.id.patch();
        Outgoing::plain(failure.answer(id.as_slice(), call.request.modern, self.config.manner.wording()))
    }

    /// All that is known about a call that fails now.
    pub(super) fn failure(&self, now: Mono, call: &Call, kind: Kind, limit: Option<Limit>) -> Failure {
        let sent = call.attempts > 0;
        let state = match kind {
            _ if !sent => ServerState::NeverReached,
            Kind::Timeout | Kind::Max if call.is_joined() => ServerState::Running,
            // It was sent before, and waits to be sent again.
            Kind::Timeout | Kind::Max if matches!(call.state, State::New | State::Waiting(_)) => {
                ServerState::Restarting
            }
            Kind::Timeout | Kind::Max if call.request.method.is_handshake() => ServerState::Running,
            Kind::Timeout | Kind::Max | Kind::Cancelled => {
                let server = self.servers.get(&call.request.server);
                if server.is_some_and(|server| server.ignores_cancels) {
                    ServerState::CancelIgnored
                } else {
                    ServerState::Cancelled
                }
            }
            Kind::MessageTooLarge | Kind::HttpStatus | Kind::NotMcp => ServerState::Running,
            _ => ServerState::Gone,
        };
        let retry = match kind {
            Kind::ServerFailed | Kind::MessageTooLarge | Kind::KeyConflict | Kind::NotAllowed => {
                Retry::Pointless
            }
            _ if sent && may_act(&call.request.method) => Retry::Unsafe,
            _ => Retry::Safe,
        };
        Failure {
            kind,
            server: self.server_name(call.request.server),
            method: call.request.method.as_str().into(),
            tool: call.request.tool.clone(),
            elapsed: call.age(now),
            limit: limit.map(|limit| limit.time),
            setting: limit.map(|limit| call.rules.source(limit.layer).into()),
            attempts: call.attempts.into(),
            retry_after: None,
            state,
            retry,
            last_sign: call.sign.map(|sign| now.since(sign)),
            plain: !call.signs_of_call && !call.deadline.samples(),
            detail: None,
            stderr: None,
        }
    }

    /// A limit was reached: the client gets its error, the server is told to cancel, and neither
    /// waits for the other. What is safe to repeat is tried again instead.
    pub(super) fn limit_reached(&mut self, now: Mono, id: CallId, reached: Reached) {
        if planted!(self, ForgetsMax) && matches!(reached, Reached::Max(_)) {
            return;
        }
        let Some(call) = self.calls.get(id) else { return };
        let (kind, limit) = match reached {
            Reached::Timeout(limit) => (Kind::Timeout, limit),
            Reached::Max(limit) => (Kind::Max, limit),
        };
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        let cancels = !call.request.method.is_handshake();
        if attempt.is_some() && cancels {
            self.step(id, || What::CancelAsked { by: kind.name().into() });
        }
        let again = kind == Kind::Timeout && self.retry_after_timeout(now, id);
        if !again {
            self.by_a_limit(|engine| engine.fail_by_limit(now, id, kind, limit));
        }
        if let Some(attempt) = attempt.filter(|_| cancels) {
            self.tell_to_cancel(server, attempt, modern, text, limit);
        } else if let Some(attempt) = attempt {
            self.abandon(server, attempt);
        }
        if attempt.is_some() {
            self.watch(now, server, limit);
        }
    }

    fn fail_by_limit(&mut self, now: Mono, id: CallId, kind: Kind, limit: Limit) {
        let Some(call) = self.calls.get(id) else { return };
        let mut failure = self.failure(now, call, kind, Some(limit));
        let written = !matches!(limit.layer, Layer::BuiltIn | Layer::Server);
        let restarts =
            self.definition_of(call.request.server).restart == Restart::OnTimeout && self.ending.is_none();
        if restarts && call.attempt().is_some() && written {
            failure.state = ServerState::Restarting;
        }
        self.fail(id, failure);
    }

    fn tell_to_cancel(
        &mut self,
        server: ServerId,
        attempt: AttemptId,
        modern: bool,
        text: bool,
        limit: Limit,
    ) {
        if self.is_remote(server) && modern {
            return self.abandon(server, attempt);
        }
        self.servers.is_told_to_cancel(self.at, server, attempt);
        let reason = format!("Timeout: no answer within {}", crate::settings::show_duration(limit.time));
        let cancel = cancel_message(own_id(attempt.on_wire(), text).as_slice(), &reason, limit);
        self.send(server, None, None, Outgoing::plain(cancel));
        self.abandon(server, attempt);
    }

    /// Ends a subscription. `None` if no client has to hear of it: it is unknown, or only one server's part of one at
    /// the merged door, which goes on.
    pub(super) fn close_subscription(&mut self, attempt: AttemptId) -> Option<Subscription> {
        let subscription = self.listens.close(&mut self.timers, attempt)?;
        match subscription.role {
            Role::Whole => {}
            Role::Merged(_) => self.end_parts(attempt),
            Role::Part { lists, .. } => {
                self.part_has_ended(subscription.server, lists);
                return None;
            }
        }
        self.clients.unsubscribes(subscription.client, &subscription.id, attempt);
        Some(subscription)
    }

    pub(super) fn has_room_for(&self, payer: &Payer) -> bool {
        self.clients.has_room_for(payer, self.config.max_calls)
    }

    /// Counts what a principal has in flight. False if that is too much.
    pub(super) fn one_call_more(&mut self, client: ClientId) -> bool {
        !self.clients.comes_over_http(client) || self.one_more_over_http(client)
    }

    #[inline(never)]
    fn one_more_over_http(&mut self, client: ClientId) -> bool {
        let Some(payer) = self.clients.payer_of(client) else { return true };
        let room = self.has_room_for(&payer);
        if room {
            self.clients.charge(payer);
        }
        room
    }

    pub(super) fn one_call_less(&mut self, client: ClientId) {
        if self.clients.comes_over_http(client) && !planted!(self, CountsCallsForEver) {
            let payer = self.clients.payer_of(client);
            self.clients.discharge(payer);
        }
    }
}

/// What a request is told whose server is not there any more, because nobody needed it.
pub(super) const LET_GO: &str = "it was let go of before the call reached it";

/// Whether a request may have changed something. Those that only read are safe to repeat.
fn may_act(method: &Method) -> bool {
    matches!(
        method,
        Method::ToolsCall
            | Method::TasksUpdate
            | Method::SamplingCreateMessage
            | Method::ElicitationCreate
            | Method::Other(_)
    )
}

/// `notifications/cancelled`, with the limit in seconds as RFC #1492 has it. `id` is raw JSON.
pub(super) fn cancel_message(id: &[u8], reason: &str, limit: Limit) -> Vec<u8> {
    let seconds = serde_json::to_vec(&limit.time.as_secs_f64()).unwrap_or_default();
    [
        br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#,
        id,
        br#","reason":"#,
        &json_text(reason),
        br#","timeout":"#,
        &seconds,
        b"}}",
    ]
    .concat()
}
