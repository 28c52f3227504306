//! Who gets which server in serve mode, and when it is let go of.
//!
//! One process, or one remote session, per principal, until it asks a client something, or a session
//! subscribes or sets a log level: from then on new sessions get their own. Only sessions that
//! opened their handshake in the same way share at all. Without authentication every session is a principal of its own.
//! A session that nobody uses falls asleep: its server is freed, its name stays, and the next request
//! wakes it on a server that is told the same handshake, log level and subscriptions.

use super::Engine;
use crate::action::{Action, Note};
use crate::clients::{Client, Entry, Open, Sleep, Way};
use crate::config::Share;
use crate::error::{Kind, error_answer};
use crate::hash::fingerprint;
use crate::id::{CallId, ClientId, DefinitionId, JsonId, NOBODY, ServerId};
use crate::limits;
use crate::method::Method;
use crate::servers::{Alarm, Fate, Greeting, Life, ShareKey};
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, scan_message};
use bytes::Bytes;

/// How a server is greeted for calls whose client is gone.
const OWN_HANDSHAKE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"outlast","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);
const OWN_INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

impl Engine {
    /// The server for a modern exchange. A process is no session to this era, so all of a principal
    /// share one.
    pub(super) fn server_for_exchange(
        &mut self,
        now: Mono,
        definition: DefinitionId,
        principal: Option<&str>,
    ) -> Option<ServerId> {
        let share = self.config.definition(definition)?.share;
        let alone = share != Share::All && !planted!(self, SharesAcrossPrincipals);
        self.shared_server(now, definition, principal.filter(|_| alone), None)
    }

    pub(super) fn server_for_session(
        &mut self,
        now: Mono,
        definition: DefinitionId,
        principal: Option<&str>,
        handshake_digest: u64,
    ) -> Option<ServerId> {
        match (self.config.definition(definition)?.share, principal) {
            (Share::All, _) => self.shared_server(now, definition, None, Some(handshake_digest)),
            (Share::Principal, Some(name)) => {
                self.shared_server(now, definition, Some(name), Some(handshake_digest))
            }
            (Share::Principal, None) | (Share::Session, _) => self.new_server(now, definition),
        }
    }

    fn shared_server(
        &mut self,
        now: Mono,
        definition: DefinitionId,
        principal: Option<&str>,
        handshake: Option<u64>,
    ) -> Option<ServerId> {
        let key = ShareKey { definition, principal: principal.map(Box::from), handshake };
        if let Some(server) = self.servers.shared_by(&key) {
            return Some(server);
        }
        let server = self.new_server(now, definition)?;
        self.servers.share(key, server);
        Some(server)
    }

    /// A server will be told this handshake as soon as it runs.
    pub(super) fn will_be_greeted(
        &mut self,
        now: Mono,
        id: ServerId,
        client: ClientId,
        initialize: Message,
        initialized: Option<Message>,
    ) {
        if self.servers.will_be_greeted(id, client, initialize, initialized) {
            self.revive(now, id);
        }
    }

    /// `None` if there is no such definition any more.
    pub(super) fn new_server(&mut self, now: Mono, definition: DefinitionId) -> Option<ServerId> {
        if let Some(spare) = self.servers.take_spare(definition) {
            return Some(spare);
        }
        let config = self.config.definition(definition)?.clone();
        let (id, run) = self.servers.add(now, definition, config);
        self.act(Action::Start(id, run));
        self.arm_server(id, None);
        Some(id)
    }

    /// A client uses a server from now on.
    pub(super) fn join(&mut self, client: ClientId, id: ServerId) {
        self.merged.has_new_listener(id);
        let Some(definition) = self.servers.get(&id).map(|server| server.definition) else { return };
        self.clients.has_server(client, definition, id);
        if self.servers.join(id, client) {
            self.arm_server(id, None);
        }
    }

    // A session's handshake.

    /// A session opens its handshake: to its own server, or to one that has heard the same before.
    pub(super) fn initialize_session(&mut self, now: Mono, client: ClientId, message: &Message, way: Way) {
        let Some(server_id) = self.server_for(client) else {
            return self.client_message(now, client, message, way);
        };
        let Some(id) = message.raw(Field::Id).and_then(JsonId::new) else { return };
        match self.servers.greet(server_id, client, way, &id) {
            Some(Greeting::First) => self.client_message(now, client, message, way),
            Some(Greeting::Welcome(welcome)) => self.welcome(client, way, &id, &welcome),
            Some(Greeting::Waits) | None => {}
        }
    }

    /// A session begins. Among replicas its handshake is not opened before it is stored, because what its client sends
    /// after the answer may come to another one. A store that is away is not waited for.
    pub(super) fn begin_session(&mut self, now: Mono, client: ClientId, message: &Message, way: Way) {
        if !self.config.replicated || !self.clients.opens_later(client, message, way) {
            return self.initialize_session(now, client, message, way);
        }
        self.clients.arm_session(&mut self.timers, client, now + limits::OPENING);
    }

    /// Opens a handshake that waited for the store. Whether there is one.
    pub(super) fn open_session(&mut self, now: Mono, client: ClientId) -> bool {
        let opening = self.clients.takes_opening(client);
        opening.map(|(message, way)| self.initialize_session(now, client, &message, way)).is_some()
    }

    /// The server has answered the handshake of the first session: the others get the same answer.
    pub(super) fn handshake_is_shared(&mut self, id: ServerId, answer: &Message) {
        let Some((greeted, waiting)) = self.servers.handshake_is_shared(id, answer) else { return };
        let Some(server) = self.servers.get(&id) else { return };
        let version = server.handshake.version.clone();
        for client in greeted.into_iter().chain(waiting.iter().map(|(client, _, _)| *client)) {
            self.agree_on(client, version.as_deref());
        }
        let refused = !answer.has(Field::Result);
        for (client, way, json_id) in waiting {
            if refused {
                self.names_no_session(way);
            }
            self.welcome(client, way, &json_id, answer);
            if refused {
                self.handshake_failed(client);
            }
        }
        self.gathered_may_go_on(self.at, id);
    }

    /// Sessions that wait for the answer to another's handshake will not get it: they are told so.
    pub(super) fn turn_away(&mut self, id: ServerId, text: &str) {
        for (client, way, id) in self.servers.take_awaiting_welcome(id) {
            let answer = error_answer(id.patch().as_slice(), -32603, text, None);
            self.names_no_session(way);
            self.reply(client, way, Some(&id), Outgoing::plain(answer));
            self.handshake_failed(client);
        }
    }

    /// A session whose handshake failed never was one; it must not keep a server that nobody can use.
    pub(super) fn handshake_failed(&mut self, client: ClientId) {
        let session = self.clients.get(&client).and_then(Client::session);
        if let Some(name) = session.map(|session| session.id.clone()) {
            self.forget_stored_session(client, &name);
            self.fail_what_came_early(client);
            self.end_client(self.at, client);
        }
    }

    /// Calls that a client sent before its handshake was answered do not end without a word.
    fn fail_what_came_early(&mut self, client: ClientId) {
        let Some(state) = self.clients.get(&client) else { return };
        let calls: Vec<CallId> = state
            .all_open()
            .filter_map(|open| match open {
                Open::Call(call) => Some(call),
                _ => None,
            })
            .collect();
        for id in calls {
            let Some(call) = self.calls.get(id) else { continue };
            let (server, attempt, modern, text) =
                (call.request.server, call.attempt(), call.modern, call.text);
            let mut failure = self.failure(self.at, call, Kind::ServerFailed, None);
            failure.detail = Some("the initialize of this session failed".into());
            self.fail(id, failure);
            if let Some(attempt) = attempt {
                self.cancel_attempt(server, attempt, modern, text, "the session could not begin");
            }
        }
    }

    fn agree_on(&mut self, client: ClientId, version: Option<&str>) {
        if let Some(version) = version {
            self.clients.agrees_on(client, version);
        }
    }

    fn welcome(&mut self, client: ClientId, way: Way, id: &JsonId, welcome: &Message) {
        let server = self.server_for(client);
        let version = server.and_then(|server| self.servers.get(&server)?.handshake.version.clone());
        self.agree_on(client, version.as_deref());
        let Some(span) = welcome.envelope.get(Field::Id) else { return };
        let mut edits = vec![crate::wire::Edit::replace(span, id.patch())];
        if let Some(server) = server {
            edits.extend(self.add_to_handshake(server, client, welcome));
        }
        self.reply(client, way, Some(id), Outgoing::edited(welcome.bytes.clone(), edits));
    }

    /// `notifications/initialized` of a session: only the first one is for the server. True if it is.
    pub(super) fn initialized_by(&mut self, client: ClientId, message: &Message) -> bool {
        let Some(server) = self.server_for(client) else { return false };
        if !self.clients.is_initialized(client, message) {
            return true;
        }
        self.keep_session(client);
        self.servers.get(&server).is_some_and(|server| server.handshake.initialized.is_none())
    }

    // Sleep.

    pub(super) fn session_was_used(&mut self, now: Mono, client: ClientId) {
        if self.clients.is_used(&mut self.timers, client, now, self.config.session_idle) {
            self.confirm_owner(now, client);
        }
    }

    pub(super) fn session_due(&mut self, now: Mono, id: ClientId) {
        reached!(OPENING, self.open_session(now, id));
        self.forget_old_streams(now, id);
        self.keep_session_alive(now, id);
        let next = match self.clients.session_rings(id, now, self.config.session_idle) {
            None => return,
            Some(Sleep::Ends) => return self.end_client(now, id),
            Some(Sleep::Stays(next)) => next,
            Some(Sleep::Begins) if self.end_if_disowned(now, id) => return,
            Some(Sleep::Begins) => {
                self.fall_asleep(now, id);
                limits::SLEEP
            }
        };
        self.clients.arm_session(&mut self.timers, id, now + next);
    }

    fn fall_asleep(&mut self, now: Mono, id: ClientId) {
        if planted!(self, NeverSleeps) {
            return;
        }
        let Some((servers, session)) = self.clients.sleeps(id) else { return };
        self.note(Note::SessionSleeps { session });
        self.drop_asks_by(now, id);
        servers.into_iter().for_each(|server| self.leave(now, id, server));
        if let Some(oldest) = self.clients.sleeper_too_many() {
            self.end_client(now, oldest);
        }
    }

    /// Keeps what a session sets up with its server, for the server that it is woken on.
    pub(super) fn keep_for_waking(&mut self, client: ClientId, method: &Method, message: &Message) {
        // At the merged door it is kept as the client said it.
        if !self.is_merged(client) && self.clients.sets_up(client, method, message) {
            self.keep_session(client);
        }
    }

    /// A request comes for a session that sleeps: it gets a server that is told again what the old one was told.
    pub(super) fn wake(&mut self, now: Mono, id: ClientId) {
        let Some(waking) = self.clients.wakes(id) else { return };
        // Many clients never send it, and a server may wait for it before it takes anything else.
        let initialized = waking.initialized.or_else(own_initialized);
        // Its timer stands where it would have been forgotten.
        self.clients.arm_session(&mut self.timers, id, now + self.config.session_idle);
        let Some(Entry::Server(definition)) = self.clients.get(&id).map(|client| client.entry) else {
            return self.wake_merged(now, id, &waking.initialize, &waking.setup);
        };
        // What it set up would make a shared server its own.
        let server_id = if waking.setup.is_empty() {
            self.server_for_session(now, definition, waking.principal.as_deref(), waking.handshake_digest)
        } else {
            self.new_server(now, definition)
        };
        let Some(server_id) = server_id else { return };
        self.join(id, server_id);
        self.will_be_greeted(now, server_id, id, waking.initialize, initialized);
        self.servers.will_be_set_up(server_id, id, &waking.setup);
    }

    /// A server for a legacy call that an earlier process left there. Its client is gone, so the handshake is
    /// ours; calls of one principal share it.
    pub(super) fn server_for_orphan(
        &mut self,
        now: Mono,
        definition: DefinitionId,
        principal: &str,
    ) -> Option<ServerId> {
        let (initialize, initialized) = (own_handshake()?, own_initialized()?);
        let share = self.config.definition(definition)?.share;
        let principal = Some(principal).filter(|_| share != Share::All);
        let handshake_digest = fingerprint(OWN_HANDSHAKE.as_bytes());
        let id = self.shared_server(now, definition, principal, Some(handshake_digest))?;
        self.will_be_greeted(now, id, NOBODY, initialize, Some(initialized));
        Some(id)
    }

    // A server that is not needed.

    /// A client does not need its server any more.
    pub(super) fn leave(&mut self, now: Mono, client: ClientId, id: ServerId) {
        let unheard = self.servers.part(id, client);
        self.unsubscribe_gone(client, id);
        if unheard {
            // Their handshake went out in this one's name, and nobody will hear the answer.
            let text = "outlast: the session that this one was to share a server with has ended; try again";
            self.turn_away(id, text);
            self.servers.stop_sharing(id);
        }
        self.leave_if_unused(now, id);
    }

    /// Lets a server go that nobody needs: no client, and no task.
    pub(super) fn leave_if_unused(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        // One whose definition is gone goes when its calls have ended, also if it is just being stopped.
        let has_calls = || [true, false].iter().any(|sent| !self.calls.at(id, *sent).is_empty());
        let drains = server.alarm == Some(Alarm::Drain) || (server.fate == Fate::Removed && has_calls());
        if drains
            || !server.is_unused()
            || server.life == Life::Leaving
            || self.ending.is_some()
            || !self.config.manner.serves()
        {
            return;
        }
        let modern = server.greeted.is_none();
        if !modern {
            self.dismiss(now, id);
        } else if server.alarm.is_none() {
            self.arm_server(id, None);
        }
    }

    /// Nobody needs a server any more: it may end.
    pub(super) fn dismiss(&mut self, now: Mono, id: ServerId) {
        self.servers.share_no_more(id);
        let Some(runs) = self.servers.leaves(id) else { return };
        if !runs {
            return self.end_server(id);
        }
        self.servers.stop_watching(&mut self.timers, id);
        self.act(Action::CloseInput(id));
        self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
    }

    /// A client that was asked something is gone: whoever asked is told so.
    pub(super) fn drop_asks_by(&mut self, now: Mono, client: ClientId) {
        for id in self.asks.numbers(|ask| ask.client == client) {
            let Some(ask) = self.close_ask(now, id) else { continue };
            let answer = error_answer(ask.id.patch().as_slice(), -32603, "outlast: the client is gone", None);
            self.send(ask.server, None, None, Outgoing::plain(answer));
        }
    }

    /// A server asks something that nobody here can be asked.
    pub(super) fn nobody_to_ask(&mut self, server: ServerId, id: &JsonId) {
        self.servers.stop_sharing(server);
        let text = "outlast: several clients share this server, and none of them can be meant alone";
        let answer = error_answer(id.patch().as_slice(), -32603, text, None);
        self.send(server, None, None, Outgoing::plain(answer));
    }

    /// What a request makes of the sharing of its server.
    pub(super) fn shapes_sharing(&mut self, server: ServerId, method: &Method) {
        if matches!(method, Method::LoggingSetLevel | Method::ResourcesSubscribe) {
            self.servers.stop_sharing(server);
        }
    }
}

fn own_message(text: &'static str) -> Option<Message> {
    scan_message(Bytes::from_static(text.as_bytes()))
}

/// A handshake of ours, in the name of nobody in particular.
pub(super) fn own_handshake() -> Option<Message> {
    own_message(OWN_HANDSHAKE)
}

/// `initialized` in the name of a client that does not send it.
pub(super) fn own_initialized() -> Option<Message> {
    own_message(OWN_INITIALIZED)
}
