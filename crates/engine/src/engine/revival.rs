//! How a server is started again and made whole: what the old process knew, the new one is told.

use super::from_client::request_edits;
use super::{Engine, Restart, Transport};
use crate::action::{Action, Note};
use crate::call::{Call, State};
use crate::client::Open;
use crate::error::{Kind, json_text};
use crate::hash::fingerprint;
use crate::id::{AttemptId, CallId, ClientId, JsonId, Run, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::{CallFacts, Limit};
use crate::server::{Alarm, Life, Own, RestartPlan};
use crate::settings::show_duration;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing};
use std::collections::BTreeSet;
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
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.life != Life::Up && server.life != Life::Starting {
            return;
        }
        let note = Note::Restarting { server: server.name.clone(), why, wait: Duration::ZERO };
        self.note(note);
        self.stop_for_restart(now, id, grace);
        let open = self.calls_at(id, true);
        self.interrupt(now, id, open, &format!("restarted because {why}"));
    }

    pub(super) fn stop_for_restart(&mut self, now: Mono, id: ServerId, grace: Duration) {
        self.stop_watching(id);
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.life = Life::Stopping;
        server.stopped_at = now;
        self.act(Action::Terminate(id));
        self.arm_server(id, Some((Alarm::Kill, now + grace)));
    }

    /// Waits a while before the next start; or gives up for a longer while.
    pub(super) fn rest(&mut self, now: Mono, id: ServerId, why: Why) {
        let plan = RestartPlan {
            backoff: self.config.restart_backoff,
            intensity: self.config.restart_intensity,
            connect_retries: self.config.connect_retries,
            connect_backoff: self.config.connect_backoff,
            jitter: 0.5 + self.chance.next() / 2.0,
        };
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(wait) = server.restart_after(now, &plan, matches!(why, Why::Stopped | Why::SessionLost))
        else {
            return self.goes_down(now, id, why);
        };
        server.life = Life::Resting;
        if why != Why::Stopped && server.has_just_gone() {
            server.stopped_at = now;
        }
        let (server, text) = (server.name.clone(), why.text());
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
    fn goes_down(&mut self, now: Mono, id: ServerId, why: Why) {
        let every = self.config.reconnect_every;
        let Some(server) = self.servers.get_mut(&id) else { return };
        let first = server.life != Life::Down;
        server.life = Life::Down;
        self.given_up = true;
        let note = Note::Down { server: server.name.clone(), why: why.text(), every };
        self.note(note);
        self.arm_server(id, Some((Alarm::Restart, now + every)));
        if first {
            for call in self.calls_at(id, false) {
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
        let wait = at.map_or(self.config.reconnect_every, |at| at.since(now));
        let why = self.servers.get(&id).and_then(|server| server.last_trouble.as_deref());
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        format!("it has failed several times in a row{why}; the next try is in {}", show_duration(wait))
    }

    /// It is time for another try, if anybody still needs the server.
    pub(super) fn start_again(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if server.is_unused() && self.config.manner.serves() {
            return self.dismiss(now, id);
        }
        server.life = Life::Restarting;
        // A connection that could not be made ends nothing: other calls may still run on others. What was
        // closed cannot be opened again.
        let same = self.config.transport == Transport::Http && !server.session_lost && server.exit.is_none();
        let run = if same { server.run } else { server.next_run() };
        self.act(Action::Start(id, run));
    }

    /// Tells a new process what the client told the old one.
    pub(super) fn revive(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let lives_on = self.config.transport == Transport::Http && server.made_whole == Some(server.run);
        let hello = server.handshake.initialize.clone().filter(|_| server.handshake.done && !lives_on);
        let Some(initialize) = hello else { return self.up_again(now, id) };
        let attempt = self.new_attempt();
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.life = Life::Reviving(attempt);
        let limit = self.limit_of_handshake(id);
        self.send_own(id, &initialize, &Method::Initialize, attempt);
        self.arm_server(id, limit.map(|limit| (Alarm::Handshake, now + limit.time)));
    }

    pub(super) fn limit_of_handshake(&self, id: ServerId) -> Option<Limit> {
        let declared = &self.servers.get(&id)?.declared;
        let method = &Method::Initialize;
        let facts = CallFacts { method, tool: None, has_token: false, cap: None, wish: None, declared };
        self.config.rules.for_call(facts).timeout
    }

    pub(super) fn send_own(&mut self, id: ServerId, message: &Message, method: &Method, attempt: AttemptId) {
        let raw_id = message.raw(Field::Id).and_then(JsonId::new).unwrap_or(JsonId::Int(0));
        let edits = request_edits(message, raw_id.is_text(), method, attempt);
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
        if let (Some(server), Some(result)) = (self.servers.get_mut(&id), answer.raw(Field::Result)) {
            server.handshake.version =
                super::from_server::agreed_version(result).or(server.handshake.version.take());
        }
        if self.servers.get(&id).is_some_and(|server| server.welcome.is_none()) {
            // It was told the hello of a session that woke: those who joined that wait for the answer.
            self.handshake_is_shared(id, answer);
        }
        self.compare_with_memory(id, answer);
        self.up_again(now, id);
    }

    /// A server that was started again, or whose session began again, did not come up.
    pub(super) fn revival_failed(&mut self, now: Mono, id: ServerId, why: String) {
        let server = self.server_name(id);
        self.note(Note::RestartFailed { server, why });
        if self.config.transport == Transport::Process {
            return self.stop_for_restart(now, id, limits::KILL_GRACE);
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.came_up = false;
            server.session_lost = true;
        }
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
        let attempt = self.new_attempt();
        let Some(server) = self.servers.get_mut(&id).filter(|server| !server.other_version) else {
            return false;
        };
        let Some(initialize) = server.handshake.initialize.clone() else { return false };
        server.other_version = true;
        let Some(message) = with_version(&initialize, version) else { return false };
        server.life = Life::Reviving(attempt);
        self.send_own(id, &message, &Method::Initialize, attempt);
        true
    }

    fn up_again(&mut self, now: Mono, id: ServerId) {
        self.arm_server(id, None);
        let Some(server) = self.servers.get_mut(&id) else { return };
        let whole = self.config.transport == Transport::Http && server.made_whole == Some(server.run);
        server.made_whole = Some(server.run);
        server.other_version = false;
        server.life = Life::Up;
        if self.config.transport == Transport::Process {
            server.is_up();
        }
        server.waiting_bytes = 0;
        let waiting = std::mem::take(&mut server.waiting);
        let restarted = server.run > Run(0);
        let came_back = restarted || server.last_trouble.take().is_some();
        let note = Note::Restarted { server: server.name.clone(), took: now.since(server.stopped_at) };
        if came_back {
            self.note(note);
        }
        if !whole {
            self.make_whole(id, restarted);
        }
        for id in waiting {
            if planted!(self, NeverWakesWaiting) {
                break;
            }
            let state = self.calls.get_mut(id).map(|call| std::mem::replace(&mut call.state, State::New));
            if let Some(State::Waiting(message)) = state {
                self.send_attempt(now, id, &message);
                self.arm_call(now, id);
            }
        }
        self.poll_again(now, id);
        self.orphans_due = true;
        if self.ending.is_some() {
            // The client's end came while there was no process to tell.
            self.act(Action::CloseInput(id));
        }
    }

    /// Everything that the client set up with the old process, set up with the new one.
    fn make_whole(&mut self, id: ServerId, restarted: bool) {
        let Some(server) = self.servers.get_mut(&id) else { return };
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

    fn ask_again(&mut self, id: ServerId, message: &Message, own: Own) {
        let attempt = self.new_attempt();
        self.send_own(id, message, &Method::of(message), attempt);
        if let Some(server) = self.servers.get_mut(&id) {
            server.own.insert(attempt, own);
        }
    }

    /// Opens every subscription again, under a new number and for the same client.
    fn listen_again(&mut self, id: ServerId) {
        let open: Vec<AttemptId> = self
            .subscriptions
            .iter()
            .filter(|(_, sub)| sub.server == id && !sub.is_ours_alone())
            .map(|(attempt, _)| *attempt)
            .collect();
        for old in open {
            self.listen_anew(id, old);
        }
    }

    fn listen_anew(&mut self, id: ServerId, old: AttemptId) {
        let attempt = self.new_attempt();
        let Some(mut subscription) = self.subscriptions.remove(&old) else { return };
        self.timers.set(crate::timers::Owner::Listen(old), &mut subscription.armed, None);
        subscription.again = true;
        if let Some(client) = self.clients.get_mut(&subscription.client) {
            client.close(&subscription.id, Open::Subscription(old));
            client.open(subscription.id.key(), Open::Subscription(attempt));
        }
        if let Some(span) = subscription.message.envelope.get(Field::Id) {
            let edit = Edit::replace(span, crate::id::own_id(attempt.0, subscription.id.is_text()));
            let outgoing = Outgoing::edited(subscription.message.bytes.clone(), vec![edit]);
            self.send(id, Some(attempt), Some(&subscription.message), outgoing);
        }
        self.subscriptions.insert(attempt, subscription);
    }

    /// The stream of a subscription to an HTTP server broke a while ago: it is opened again.
    pub(super) fn listen_due(&mut self, attempt: AttemptId) {
        let Some(subscription) = self.subscriptions.get_mut(&attempt) else { return };
        subscription.armed = None;
        let server = subscription.server;
        // While its server comes back it waits, and is opened with everything else.
        if self.servers.get(&server).is_some_and(|server| server.life == Life::Up) {
            self.listen_anew(server, attempt);
        }
    }

    fn warn_of_lost_state(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id).filter(|server| server.handshake.logging) else { return };
        let text = format!("server `{}` was restarted; what it remembered may be lost", server.name);
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
        let Some(own) = self.servers.get_mut(&id).and_then(|server| server.own.remove(&attempt)) else {
            return false;
        };
        match own {
            Own::Quiet => {}
            Own::Tools(call) => self.tools_are_listed(now, id, call, answer),
            Own::Poll(call) => self.task_is_reported(now, call, answer),
            Own::Fetch(call) => self.task_result_came(now, call, answer),
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
        let result = answer.raw(Field::Result)?;
        let lists = &mut self.servers.get_mut(&id)?.handshake.lists;
        let (_, _, kept) = lists.iter_mut().find(|(known, _, _)| known == method)?;
        let before = kept.replace(fingerprint(result));
        before.map(|before| before != fingerprint(result))
    }

    /// Tells whoever wants to know: a client of the legacy era in any case, one of the modern era on
    /// each subscription that asked for it.
    fn list_changed(&mut self, id: ServerId, method: &Method) {
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
        for subscription in self.subscriptions.values().filter(|subscription| subscription.server == id) {
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
        let kept = self.config.restart > Restart::Never || self.config.transport == Transport::Http;
        if !kept || message.bytes.len() > limits::HANDSHAKE_BYTES {
            return;
        }
        let Some(server) = self.servers.get_mut(&id) else { return };
        let handshake = &mut server.handshake;
        let uri = || message.raw(Field::ParamsUri).map(Box::from).unwrap_or_default();
        match method {
            Method::Initialize => {
                handshake.done = false;
                handshake.initialize = Some(message.owned());
            }
            Method::LoggingSetLevel => handshake.log_level = Some(message.owned()),
            Method::ResourcesSubscribe if handshake.subscribed.len() < limits::SUBSCRIBED => {
                let entry =
                    handshake.subscribed.entry(uri()).or_insert_with(|| (message.owned(), BTreeSet::new()));
                entry.1.insert(client);
            }
            Method::ResourcesUnsubscribe => {
                handshake.subscribed.remove(&uri());
            }
            Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
                if !message.has(Field::ParamsCursor) =>
            {
                handshake.lists.retain(|(known, _, _)| known != method);
                handshake.lists.push((method.clone(), message.owned(), None));
            }
            _ => {}
        }
    }

    pub(super) fn keep_initialized(&mut self, id: ServerId, message: &Message) {
        if message.bytes.len() > limits::HANDSHAKE_BYTES {
            return;
        }
        if let Some(server) = self.servers.get_mut(&id) {
            server.handshake.initialized = Some(message.owned());
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
fn list_changed_message(what: &str, subscription: Option<&JsonId>) -> Vec<u8> {
    let head = format!(r#"{{"jsonrpc":"2.0","method":"notifications/{what}/list_changed""#);
    let Some(subscription) = subscription else { return format!("{head}}}").into_bytes() };
    let id = subscription.patch();
    let meta = br#","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"#;
    [head.as_bytes(), meta, id.as_slice(), b"}}}"].concat()
}
