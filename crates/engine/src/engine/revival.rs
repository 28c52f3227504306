//! How a server is started again and made whole: what the old process knew, the new one is told.

use super::Engine;
use super::seams::toward_server;
use crate::action::{Action, Note};
use crate::calls::Call;
use crate::clients::{Open, Role, Subscription};
use crate::config::Restart;
use crate::era::Era;
use crate::error::{Kind, json_text};
use crate::id::{AttemptId, CallId, ClientId, JsonId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::{CallFacts, Limit};
use crate::servers::{Alarm, Back, Fate, Life, Own, Rest};
use crate::settings::show_duration;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing};
use std::time::Duration;

/// Why a server is started again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Why {
    Ended,
    Stopped,
    NotStarted,
    Unreachable,
    SessionLost,
}

impl Why {
    fn text(self) -> &'static str {
        match self {
            Why::Ended => "it ended",
            Why::Stopped => "it was stopped",
            Why::NotStarted => "it could not be started",
            Why::Unreachable => "it cannot be reached",
            Why::SessionLost => "it has forgotten our session",
        }
    }
}

impl Engine {
    /// Stops a server that runs, so that it is started again.
    pub(super) fn restart(&mut self, now: Mono, id: ServerId, why: &'static str, grace: Duration) {
        let Some(server) = self.servers.get(&id) else { return };
        // While outlast ends, nothing is started again.
        if self.ending.is_some() || (server.life != Life::Up && server.life != Life::Starting) {
            return;
        }
        let note = Note::Restarting { server: server.config.name.clone(), why, wait: Duration::ZERO };
        self.note(note);
        self.stop_for_restart(now, id, grace);
        let open = self.calls.at(id, true);
        self.interrupt(now, id, open, &format!("restarted because {why}"));
    }

    pub(super) fn stop_for_restart(&mut self, now: Mono, id: ServerId, grace: Duration) {
        self.servers.stop_watching(&mut self.timers, id);
        self.servers.stops(now, id);
        self.act(Action::Terminate(id));
        self.arm_server(id, Some((Alarm::Kill, now + grace)));
    }

    /// Waits a while before the next start; or gives up for a longer while.
    pub(super) fn rest(&mut self, now: Mono, id: ServerId, why: Why) {
        if self.servers.get(&id).is_some_and(|server| server.fate == Fate::Removed) {
            return self.removed_goes(now, id);
        }
        let jitter = 0.5 + self.chance.next() / 2.0;
        let at_once = matches!(why, Why::Stopped | Why::SessionLost);
        let rest = self.servers.rest(now, id, jitter, at_once, why == Why::Stopped);
        self.gathered_may_go_on(now, id);
        let wait = match rest {
            None => return,
            Some(Rest::Down { first }) => return self.goes_down(now, id, why, first),
            Some(Rest::For(wait)) => wait,
        };
        let (server, text) = (self.server_name(id), why.text());
        match why {
            Why::Unreachable | Why::SessionLost => self.note(Note::Retrying { server, why: text, wait }),
            // That it is restarted was said when it was stopped.
            Why::Stopped if wait.is_zero() => {}
            Why::Stopped | Why::Ended | Why::NotStarted => {
                self.note(Note::Restarting { server, why: text, wait });
            }
        }
        if !planted!(self, NeverRestarts) {
            self.arm_server(id, Some((Alarm::Restart, now + wait)));
        }
    }

    /// It has failed too often: whoever asks is told so at once, and now and then it is tried again.
    fn goes_down(&mut self, now: Mono, id: ServerId, why: Why, first: bool) {
        let every = self.definition_of(id).reconnect_every;
        let server = self.server_name(id);
        self.note(Note::Down { server, why: why.text(), every });
        self.arm_server(id, Some((Alarm::Restart, now + every)));
        if first {
            for call in self.calls.at(id, false) {
                // What its server has can be fetched from it whenever it is back.
                if !self.calls.get(call).is_some_and(Call::is_kept_at_server) {
                    self.fail_because_down(now, id, call);
                }
            }
            let text = format!("server failed: {}", self.next_try(now, id));
            self.turn_away(id, &text);
        }
    }

    fn fail_because_down(&mut self, now: Mono, id: ServerId, call_id: CallId) {
        let detail = self.next_try(now, id);
        let Some(call) = self.calls.get(call_id) else { return };
        let mut failure = self.failure(now, call, Kind::ServerFailed, None);
        failure.detail = Some(detail);
        self.fail(call_id, failure);
    }

    /// What a request to a failed server is told.
    pub(super) fn next_try(&self, now: Mono, id: ServerId) -> String {
        let at = self.servers.get(&id).and_then(|server| server.armed);
        let wait = at.map_or(self.definition_of(id).reconnect_every, |at| at.since(now));
        let server = self.servers.get(&id);
        let trouble = server.and_then(|server| server.last_trouble.as_ref().map(ToString::to_string));
        let exit = || server.and_then(|server| server.exit.as_ref().map(ToString::to_string));
        let why = trouble.or_else(exit).map(|why| format!(" ({why})")).unwrap_or_default();
        let what = match server.is_some_and(|server| server.hopeless) {
            true => "it cannot be started",
            false => "it has failed several times in a row",
        };
        format!("{what}{why}; the next try is in {}", show_duration(wait))
    }

    /// It is time for another try, if anybody still needs the server.
    pub(super) fn start_again(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        if server.is_unused() && self.config.manner.serves() {
            return self.dismiss(now, id);
        }
        // A connection that could not be made ends nothing: other calls may still run on others. What was
        // closed cannot be opened again.
        let same = self.is_remote(id) && server.exit.is_none() && server.fate == Fate::Stays;
        let Some((run, unanswered)) = self.servers.starts_again(id, same) else { return };
        for (attempt, own) in unanswered {
            self.own_is_lost(now, (id, attempt), own);
        }
        self.act(Action::Start(id, run));
    }

    /// Tells a new process what the client told the old one.
    pub(super) fn revive(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let lives_on = self.is_remote(id) && server.made_whole == Some(server.run);
        let handshake = server.handshake.initialize.clone().filter(|_| server.handshake.done && !lives_on);
        if !lives_on {
            self.drop_unsent(id, "the session in which it was asked is over");
        }
        let Some(initialize) = handshake else { return self.up_again(now, id) };
        let attempt = self.new_attempt();
        self.servers.is_greeted(id, attempt);
        let limit = self.limit_of_handshake(id);
        self.send_own(id, &initialize, &Method::Initialize, attempt);
        self.arm_server(id, limit.map(|limit| (Alarm::Handshake, now + limit.time)));
    }

    pub(super) fn limit_of_handshake(&self, id: ServerId) -> Option<Limit> {
        self.limit_of_own(id, &Method::Initialize)
    }

    /// How long a request of our own may take.
    pub(super) fn limit_of_own(&self, id: ServerId, method: &Method) -> Option<Limit> {
        let server = self.servers.get(&id)?;
        let declared = &server.declared;
        let facts = CallFacts {
            method,
            tool: None,
            has_token: false,
            cap: None,
            silence: None,
            wish: None,
            declared,
        };
        server.config.rules.for_call(facts).timeout
    }

    pub(super) fn send_own(&mut self, id: ServerId, message: &Message, method: &Method, attempt: AttemptId) {
        let raw_id = message.raw(Field::Id).and_then(JsonId::new).unwrap_or(JsonId::Int(0));
        let edits = toward_server(message, raw_id.is_text(), method, attempt);
        let outgoing = Outgoing::edited(message.bytes.clone(), edits);
        self.send(id, Some(attempt), Some(message), outgoing);
    }

    /// A restarted server answered the handshake.
    pub(super) fn revived(&mut self, now: Mono, id: ServerId, answer: &Message) {
        if let Some(error) = answer.raw(Field::Error) {
            if self.try_its_own_version(id, error) {
                return;
            }
            let why =
                format!("it refused initialize: {}", String::from_utf8_lossy(&error[..error.len().min(200)]));
            return self.revival_failed(now, id, why);
        }
        if let Some(result) = answer.raw(Field::Result) {
            self.servers.agrees_on(id, super::from_server::agreed_version(result));
            self.servers.shows_era(id, Some(Era::Legacy));
        }
        if self.servers.get(&id).is_some_and(|server| server.welcome.is_none()) {
            // It was told the handshake of a session that woke, or of a client of the merged door: those who joined
            // that wait for the answer.
            if let Some(result) = answer.raw(Field::Result) {
                self.learn_capabilities(id, result);
            }
            self.handshake_is_shared(id, answer);
        }
        self.compare_with_memory(id, answer);
        self.up_again(now, id);
    }

    /// A server that was started again, or whose session began again, did not come up.
    pub(super) fn revival_failed(&mut self, now: Mono, id: ServerId, why: String) {
        self.servers.has_erred(id, &why);
        let server = self.server_name(id);
        self.note(Note::RestartFailed { server, why });
        if !self.is_remote(id) {
            return self.stop_for_restart(now, id, limits::KILL_GRACE);
        }
        self.servers.handshake_failed(id);
        self.rest(now, id, Why::NotStarted);
    }

    /// A server that refuses a version says which it has: one more try with the first of them.
    fn try_its_own_version(&mut self, id: ServerId, error: &[u8]) -> bool {
        #[derive(serde::Deserialize)]
        struct Error {
            data: Data,
        }
        #[derive(serde::Deserialize)]
        struct Data {
            supported: Vec<Box<str>>,
        }
        let Ok(Error { data }) = serde_json::from_slice(error) else { return false };
        let Some(version) = data.supported.first() else { return false };
        let initialize = self.servers.get(&id).and_then(|server| server.handshake.initialize.as_ref());
        let Some(message) = initialize.and_then(|initialize| with_version(initialize, version)) else {
            return false;
        };
        if !self.servers.tries_other_version(id) {
            return false;
        }
        let attempt = self.new_attempt();
        self.servers.is_greeted(id, attempt);
        self.send_own(id, &message, &Method::Initialize, attempt);
        true
    }

    fn up_again(&mut self, now: Mono, id: ServerId) {
        if self.servers.get(&id).is_some_and(|server| server.input_closed) {
            // It answers, but does not listen any more: it is being stopped.
            return;
        }
        self.arm_server(id, None);
        let remote = self.is_remote(id);
        let Some(Back { whole, restarted, away, waiting }) = self.servers.is_back(now, id, remote) else {
            return;
        };
        if let Some(took) = away {
            let server = self.server_name(id);
            self.note(Note::Restarted { server, took });
        }
        if whole {
            self.send_kept_answers(now, id);
        } else {
            self.make_whole(id, restarted);
        }
        for id in waiting {
            if planted!(self, NeverWakesWaiting) {
                break;
            }
            if let Some(message) = self.calls.stop_waiting(id) {
                self.send_attempt(now, id, &message);
                self.arm_call(now, id);
            }
        }
        self.poll_again(now, id);
        self.lists_are_due(now, id, restarted);
        self.tickets.orphans_may_go_on();
        if self.ending.is_some() && self.has_sent_everything() {
            // The client's end came while there was no process to tell.
            self.act(Action::CloseInput(id));
        }
    }

    /// Everything that the client set up with the old process, set up with the new one.
    fn make_whole(&mut self, id: ServerId, restarted: bool) {
        let Some(server) = self.servers.get(&id) else { return };
        let handshake = &server.handshake;
        let initialized = handshake.initialized.clone();
        let quiet =
            handshake.log_level.iter().chain(handshake.subscribed.values().map(|(message, _)| message));
        let quiet: Vec<Message> = quiet.cloned().collect();
        // A list that the client never got cannot have changed for it.
        let known = |list: &&(Method, Message, Option<u64>)| list.2.is_some();
        let lists: Vec<(Method, Message)> = handshake
            .lists
            .iter()
            .filter(known)
            .map(|(method, message, _)| (method.clone(), message.clone()))
            .collect();
        if let Some(initialized) = initialized {
            let outgoing = Outgoing::plain(initialized.bytes.clone());
            self.send(id, None, Some(&initialized), outgoing);
        }
        for message in quiet {
            self.ask_again(id, &message, Own::Quiet);
        }
        self.listen_again(id);
        for (method, message) in lists {
            self.ask_again(id, &message, Own::List(method));
        }
        if restarted {
            self.warn_of_lost_state(id);
        }
    }

    pub(super) fn ask_again(&mut self, id: ServerId, message: &Message, own: Own) {
        let attempt = self.new_attempt();
        self.send_own(id, message, &Method::of(message), attempt);
        self.servers.asks_own(id, attempt, own);
    }

    /// Opens every subscription again, under a new number and for the same client.
    fn listen_again(&mut self, id: ServerId) {
        for old in self.listens.at(id) {
            self.listen_anew(id, old);
        }
    }

    fn listen_anew(&mut self, id: ServerId, old: AttemptId) {
        let attempt = self.new_attempt();
        let Some(subscription) = self.listens.close(&mut self.timers, old) else { return };
        if matches!(subscription.role, Role::Whole) {
            self.clients.closes(subscription.client, &subscription.id, Open::Subscription(old));
            self.clients.opens(subscription.client, subscription.id.key(), Open::Subscription(attempt));
        }
        if let Some(span) = subscription.message.envelope.get(Field::Id) {
            let edit = Edit::replace(span, crate::id::own_id(attempt.0, subscription.id.is_text()));
            let outgoing = Outgoing::edited(subscription.message.bytes.clone(), vec![edit]);
            self.send(id, Some(attempt), Some(&subscription.message), outgoing);
        }
        self.listens.open(attempt, subscription);
    }

    /// The stream of a subscription to an HTTP server broke a while ago: it is opened again.
    pub(super) fn listen_due(&mut self, attempt: AttemptId) {
        let Some(server) = self.listens.ring(attempt) else { return };
        // While its server comes back it waits, and is opened with everything else.
        if self.servers.get(&server).is_some_and(|server| server.life == Life::Up) {
            self.listen_anew(server, attempt);
        }
    }

    fn warn_of_lost_state(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id).filter(|server| server.handshake.logging) else { return };
        let text = format!("server `{}` was restarted; what it remembered may be lost", server.config.name);
        let warning = [
            br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"#,
            &*json_text(&text),
            b"}}",
        ]
        .concat();
        self.tell_everybody(id, &warning);
    }

    /// An answer to a request of our own. True if it was one.
    pub(super) fn answer_to_own(
        &mut self,
        now: Mono,
        id: ServerId,
        attempt: AttemptId,
        answer: &Message,
    ) -> bool {
        let Some(own) = self.servers.take_own(id, attempt) else {
            return false;
        };
        match own {
            Own::Quiet => {}
            Own::Heartbeat => self.servers.answers_heartbeat(now, id),
            Own::Tools(paging) => self.tools_are_listed(now, id, *paging, answer),
            Own::Poll(call) => self.task_is_reported(now, call, answer),
            Own::Fetch(call) => self.task_result_came(now, call, answer),
            Own::Listing(kind) => self.page_came(now, (id, attempt), kind, answer),
            Own::Discover => self.discovered(now, id, answer),
            Own::List(method) => {
                if self.remember_list(id, &method, answer) == Some(true) {
                    self.list_changed(id, &method);
                }
                self.remember_whole_list(id, &method, answer);
            }
        }
        true
    }

    /// Keeps what a list looks like; whether it looked different before.
    pub(super) fn remember_list(&mut self, id: ServerId, method: &Method, answer: &Message) -> Option<bool> {
        self.servers.list_looks(id, method, answer.raw(Field::Result)?)
    }

    /// Tells whoever wants to know: a client of the legacy era in any case, one of the modern era on
    /// each subscription that asked for it.
    pub(super) fn list_changed(&mut self, id: ServerId, method: &Method) {
        let (what, wanted) = match method {
            Method::ToolsList => ("tools", "\"toolsListChanged\":true"),
            Method::PromptsList => ("prompts", "\"promptsListChanged\":true"),
            _ => ("resources", "\"resourcesListChanged\":true"),
        };
        let legacy = self.servers.get(&id).is_some_and(|server| server.handshake.initialize.is_some());
        if legacy {
            self.tell_everybody(id, &list_changed_message(what, None));
        }
        let mut told = Vec::new();
        // At the merged door it means our list: see `tell_of_change`.
        let whole = |listen: &Subscription| listen.server == id && matches!(listen.role, Role::Whole);
        for (_, subscription) in self.listens.iter().filter(|(_, listen)| whole(listen)) {
            let blanks = |byte: &u8| !byte.is_ascii_whitespace();
            let request: Vec<u8> = subscription.message.bytes.iter().copied().filter(blanks).collect();
            if memchr::memmem::find(&request, wanted.as_bytes()).is_some() {
                let message = list_changed_message(what, Some(&subscription.id));
                told.push((subscription.client, subscription.way, message));
            }
        }
        for (client, way, message) in told {
            self.tell(client, way, Outgoing::plain(message));
        }
    }

    /// Keeps what a restarted server must be told again.
    pub(super) fn keep_for_revival(
        &mut self,
        id: ServerId,
        client: ClientId,
        method: &Method,
        message: &Message,
    ) {
        let restarts = self.definition_of(id).restart > Restart::Never || self.is_remote(id);
        // Of sessions that share a server each hears only of what it subscribed to.
        let subscribes = matches!(method, Method::ResourcesSubscribe | Method::ResourcesUnsubscribe);
        let kept = restarts || (subscribes && self.config.manner.serves());
        if !kept || reached!(HANDSHAKE_BYTES, message.bytes.len() > limits::HANDSHAKE_BYTES) {
            return;
        }
        self.servers.keep_for_next(id, client, method, message);
    }

    pub(super) fn keep_initialized(&mut self, id: ServerId, message: &Message) {
        if message.bytes.len() <= limits::HANDSHAKE_BYTES {
            self.servers.keep_initialized(id, message);
        }
    }
}

/// The same `initialize` with another version.
fn with_version(initialize: &Message, version: &str) -> Option<Message> {
    let mut params: serde_json::Value = serde_json::from_slice(initialize.raw(Field::Params)?).ok()?;
    *params.get_mut("protocolVersion")? = version.into();
    let span = initialize.envelope.get(Field::Params)?;
    let edit = Edit::replace(span, crate::wire::Patch::of(&[params.to_string().as_bytes()]));
    initialize.edited(edit)
}

/// `notifications/…/list_changed`, for a subscription where there is one.
pub(super) fn list_changed_message(what: &str, subscription: Option<&JsonId>) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed""#);
    let Some(subscription) = subscription else { return format!("{head}}}").into_bytes() };
    let id = subscription.patch();
    let meta = br#","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;
    [head.as_bytes(), meta, id.as_slice(), b"}}}"].concat()
}
