//! Who gets which server in serve mode, and when it is let go of.
//!
//! One process, or one remote session, per principal, until it asks a client something, or a session
//! subscribes or sets a log level: from then on new sessions get their own. Only sessions that said
//! hello in the same way share at all. Without authentication every session is a principal of its own.
//! A session that nobody uses falls asleep: its server is freed, its name stays, and the next request
//! wakes it on a server that is told the same hello, log level and subscriptions.

use super::Engine;
use crate::action::{Action, Note};
use crate::client::{Client, Door, Open, Way};
use crate::error::{Kind, error_answer};
use crate::hash::fingerprint;
use crate::id::{AskId, CallId, ClientId, JsonId, NOBODY, ServerId};
use crate::limits;
use crate::method::Method;
use crate::server::{Alarm, Life, Server};
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::{Field, Message, Outgoing, scan_message};
use bytes::Bytes;
use std::collections::BTreeSet;

/// How a server is greeted for calls whose client is gone.
const OWN_HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"#,
    r#""clientInfo":{"name":"outlast","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#""}}}"#
);
const OWN_INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// Who shares a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Nobody.
    Session,
    /// The sessions of one principal.
    Principal,
    /// All.
    All,
}

/// What sessions must have in common to share a server: the principal, and the way they said hello;
/// `None` for the modern era, which says none.
pub(super) type ShareKey = (Option<Box<str>>, Option<u64>);

impl Engine {
    /// The server for a modern exchange. A process is no session to this era, so all of a principal
    /// share one.
    pub(super) fn server_for_exchange(&mut self, now: Mono, principal: Option<&str>) -> ServerId {
        let alone = self.config.share != Share::All && !planted!(self, SharesAcrossPrincipals);
        let principal = principal.filter(|_| alone);
        self.shared_server(now, (principal.map(Box::from), None))
    }

    pub(super) fn server_for_session(&mut self, now: Mono, principal: Option<&str>, hello: u64) -> ServerId {
        match (self.config.share, principal) {
            (Share::All, _) => self.shared_server(now, (None, Some(hello))),
            (Share::Principal, Some(name)) => self.shared_server(now, (Some(name.into()), Some(hello))),
            (Share::Principal, None) | (Share::Session, _) => self.new_server(now),
        }
    }

    fn shared_server(&mut self, now: Mono, key: ShareKey) -> ServerId {
        if let Some(server) = self.shared.get(&key) {
            return *server;
        }
        let server = self.new_server(now);
        self.shared.insert(key, server);
        server
    }

    fn new_server(&mut self, now: Mono) -> ServerId {
        let id = ServerId(self.next_server);
        self.next_server += 1;
        let mut server = Server::new(self.config.server_name.clone());
        server.came_up = false;
        server.stopped_at = now;
        let run = server.run;
        self.servers.insert(id, server);
        self.act(Action::Start(id, run));
        self.arm_server(id, None);
        id
    }

    pub(super) fn join(&mut self, client: ClientId, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.clients.insert(client);
        if server.alarm == Some(Alarm::Idle) {
            self.arm_server(id, None);
        }
    }

    /// From now on new sessions get a server of their own.
    pub(super) fn stop_sharing(&mut self, server: ServerId) {
        let modern = |key: &ShareKey| key.1.is_none();
        self.shared.retain(|key, shared| *shared != server || modern(key));
    }

    // A session's hello.

    /// A session says hello: to its own server, or to one that has heard the same before.
    pub(super) fn initialize_session(&mut self, now: Mono, client: ClientId, message: &Message, way: Way) {
        let Some(server_id) = self.clients.get(&client).map(|client| client.server) else { return };
        let Some(server) = self.servers.get_mut(&server_id) else { return };
        if server.greeted.is_none() {
            server.greeted = Some(client);
            return self.client_message(now, client, message, way);
        }
        let Some(id) = message.raw(Field::Id).and_then(JsonId::new) else { return };
        match server.welcome.clone() {
            Some(welcome) => self.welcome(client, way, &id, &welcome),
            None => server.joining.push((client, way, id)),
        }
    }

    /// The server has answered the hello of the first session: the others get the same answer.
    pub(super) fn handshake_is_shared(&mut self, id: ServerId, answer: &Message) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let joining = std::mem::take(&mut server.joining);
        let greeted = server.greeted;
        if answer.has(Field::Result) && answer.bytes.len() <= limits::HANDSHAKE_BYTES {
            server.welcome = Some(answer.owned());
        } else {
            // What was refused to one is not refused to the next unheard.
            server.greeted = None;
        }
        let version = server.handshake.version.clone();
        for client in greeted.into_iter().chain(joining.iter().map(|(client, _, _)| *client)) {
            self.agree_on(client, version.as_deref());
        }
        let refused = !answer.has(Field::Result);
        for (client, way, json_id) in joining {
            self.welcome(client, way, &json_id, answer);
            if refused {
                self.hello_failed(client);
            }
        }
    }

    /// Sessions that wait for the answer to another's hello will not get it: they are told so.
    pub(super) fn turn_away(&mut self, id: ServerId, text: &str) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        for (client, way, id) in std::mem::take(&mut server.joining) {
            let answer = error_answer(id.patch().as_slice(), -32603, text, None);
            self.reply(client, way, Some(&id), Outgoing::plain(answer));
            self.hello_failed(client);
        }
    }

    /// A session whose hello failed never was one; it must not keep a server that nobody can use.
    pub(super) fn hello_failed(&mut self, client: ClientId) {
        let session = self.clients.get(&client).and_then(Client::session);
        if let Some(name) = session.map(|session| session.id.clone()) {
            self.forget_stored_session(&name);
            self.fail_what_came_early(client);
            self.cancel_everything(client);
            self.forget_client(self.at, client);
        }
    }

    /// Calls that a client sent before its hello was answered do not end without a word.
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
        let session = self.clients.get_mut(&client).and_then(Client::session_mut);
        if let (Some(session), Some(version)) = (session, version) {
            session.version = version.into();
        }
    }

    fn welcome(&mut self, client: ClientId, way: Way, id: &JsonId, welcome: &Message) {
        let version = self
            .clients
            .get(&client)
            .and_then(|client| self.servers.get(&client.server)?.handshake.version.clone());
        self.agree_on(client, version.as_deref());
        let Some(span) = welcome.envelope.get(Field::Id) else { return };
        let mut edits = vec![crate::wire::Edit::replace(span, id.patch())];
        if let Some(server) = self.clients.get(&client).map(|client| client.server) {
            edits.extend(self.add_tasks_to_handshake(server, client, welcome));
        }
        self.reply(client, way, Some(id), Outgoing::edited(welcome.bytes.clone(), edits));
    }

    /// `notifications/initialized` of a session: only the first one is for the server. True if it is.
    pub(super) fn initialized_by(&mut self, client: ClientId, message: &Message) -> bool {
        let Some(client_state) = self.clients.get_mut(&client) else { return false };
        let server = client_state.server;
        match client_state.session_mut() {
            None => true,
            Some(session) => {
                session.initialized = Some(message.owned());
                self.keep_session(client);
                self.servers.get(&server).is_some_and(|server| server.handshake.initialized.is_none())
            }
        }
    }

    // Sleep.

    pub(super) fn session_was_used(&mut self, now: Mono, client: ClientId) {
        let idle = self.config.session_idle;
        let Some(session) = self.clients.get_mut(&client).and_then(Client::session_mut) else { return };
        session.used = now;
        if session.armed.is_none() {
            let at = now + idle;
            self.timers.set(Owner::Session(client), &mut session.armed, Some(at));
        }
    }

    pub(super) fn session_due(&mut self, now: Mono, id: ClientId) {
        self.forget_old_streams(now, id);
        self.keep_session_alive(now, id);
        let idle = self.config.session_idle;
        let Some(client) = self.clients.get_mut(&id) else { return };
        let busy_calls = client.is_busy();
        let Some(session) = client.session_mut() else { return };
        session.armed = None;
        let (asleep, unused) = (session.asleep, now.since(session.used));
        let streams: Vec<_> = session.streams.iter().copied().collect();
        let read =
            streams.iter().any(|id| self.streams.get(id).is_some_and(|stream| stream.exchange.is_some()));
        if asleep && unused >= limits::SLEEP {
            return self.forget_client(now, id);
        }
        let next = if asleep {
            limits::SLEEP - unused
        } else if busy_calls || read || unused < idle {
            if unused < idle && !busy_calls && !read { idle - unused } else { idle }
        } else {
            self.fall_asleep(now, id);
            limits::SLEEP
        };
        if let Some(session) = self.clients.get_mut(&id).and_then(Client::session_mut) {
            self.timers.set(Owner::Session(id), &mut session.armed, Some(now + next));
        }
    }

    fn fall_asleep(&mut self, now: Mono, id: ClientId) {
        if planted!(self, NeverSleeps) {
            return;
        }
        let Some(client) = self.clients.get_mut(&id) else { return };
        let server = client.server;
        let Some(session) = client.session_mut() else { return };
        session.asleep = true;
        let name = session.id[..8].into();
        self.note(Note::SessionSleeps { session: name });
        self.drop_asks_by(now, id);
        self.leave(now, id, server);
        self.forget_sleepers(now);
    }

    fn forget_sleepers(&mut self, now: Mono) {
        let asleep = |client: &&Client| client.session().is_some_and(|session| session.asleep);
        let count = self.clients.values().filter(asleep).count();
        if count <= limits::SLEEPERS {
            return;
        }
        let oldest = self.clients.iter().filter(|(_, client)| asleep(client)).map(|(id, _)| *id).next();
        if let Some(oldest) = oldest {
            self.forget_client(now, oldest);
        }
    }

    /// Keeps what a session sets up with its server, for the server that it is woken on.
    pub(super) fn keep_for_waking(&mut self, client: ClientId, method: &Method, message: &Message) {
        let session = self.clients.get_mut(&client).and_then(Client::session_mut);
        if session.is_some_and(|session| session.setup.take(method, message)) {
            self.keep_session(client);
        }
    }

    /// A request comes for a session that sleeps: it gets a server that is told again what the old one was told.
    pub(super) fn wake(&mut self, now: Mono, id: ClientId) {
        let principal = self.clients.get(&id).and_then(|client| client.principal.clone());
        let Some(session) = self.clients.get_mut(&id).and_then(Client::session_mut).filter(|s| s.asleep)
        else {
            return;
        };
        session.asleep = false;
        let (hello, initialize) = (session.hello, session.initialize.clone());
        // Many clients never send it, and a server may wait for it before it takes anything else.
        let initialized = session.initialized.clone().or_else(own_initialized);
        // What it set up would make a shared server its own.
        let alone = !session.setup.is_empty();
        let server_id = if alone {
            self.new_server(now)
        } else {
            self.server_for_session(now, principal.as_deref(), hello)
        };
        if let Some(client) = self.clients.get_mut(&id) {
            client.server = server_id;
        }
        self.join(id, server_id);
        self.greet_for(id, server_id, initialize, initialized);
        self.set_up_for(id, server_id);
    }

    /// A new server will be told the log level and the subscriptions of a session, after the hello.
    fn set_up_for(&mut self, client: ClientId, id: ServerId) {
        let Some(session) = self.clients.get(&client).and_then(Client::session) else { return };
        let Some(server) = self.servers.get_mut(&id) else { return };
        if session.setup.log_level.is_some() {
            server.handshake.log_level = session.setup.log_level.clone();
        }
        for (uri, message) in &session.setup.subscribed {
            let entry = (message.clone(), BTreeSet::from([client]));
            server.handshake.subscribed.insert(uri.clone(), entry);
        }
    }

    /// A new server will be told this hello as soon as it runs.
    fn greet_for(
        &mut self,
        client: ClientId,
        id: ServerId,
        initialize: Message,
        initialized: Option<Message>,
    ) {
        let Some(server) = self.servers.get_mut(&id).filter(|server| server.greeted.is_none()) else {
            return;
        };
        server.greeted = Some(client);
        server.life = Life::Restarting;
        server.handshake.initialize = Some(initialize);
        server.handshake.initialized = initialized;
        server.handshake.done = true;
        server.ever_answered = true;
    }

    /// A server for a legacy call that an earlier process left there. Its client is gone, so the hello is
    /// ours; calls of one principal share it.
    pub(super) fn server_for_left(&mut self, now: Mono, principal: &str) -> Option<ServerId> {
        let (initialize, initialized) = (own_message(OWN_HELLO)?, own_initialized()?);
        let principal = Some(principal).filter(|_| self.config.share != Share::All);
        let hello = fingerprint(OWN_HELLO.as_bytes());
        let id = self.shared_server(now, (principal.map(Box::from), Some(hello)));
        self.greet_for(NOBODY, id, initialize, Some(initialized));
        Some(id)
    }

    // The end of a client.

    pub(super) fn end_session(&mut self, now: Mono, id: ClientId) {
        if planted!(self, KeepsSessions) {
            return;
        }
        let name = self.clients.get(&id).and_then(Client::session).map(|session| session.id.clone());
        if let Some(name) = name {
            self.forget_stored_session(&name);
        }
        self.cancel_everything(id);
        self.forget_client(now, id);
    }

    /// Cancels what a client has open, because nobody waits for it any more.
    pub(super) fn cancel_everything(&mut self, id: ClientId) {
        let Some(client) = self.clients.get(&id) else { return };
        let mut open: Vec<Open> = client.all_open().collect();
        open.sort_by_key(|open| match open {
            Open::Call(id) => (0, u64::from(id.slot)),
            Open::Subscription(attempt) => (1, attempt.0),
            Open::Wait(no) => (2, no.0),
            Open::Look(number) => (3, *number),
            Open::Joint(no) => (4, no.0.get()),
        });
        for open in open {
            match open {
                Open::Call(call) => self.give_up(call, "the client hung up"),
                Open::Wait(no) => self.forget_waiter(id, no),
                Open::Look(number) => self.forget_look(id, number),
                Open::Joint(no) => self.forget_asking_for_key(id, no),
                Open::Subscription(attempt) => {
                    let Some(subscription) = self.close_subscription(attempt) else { continue };
                    if subscription.is_ours_alone() {
                        continue;
                    }
                    self.cancel_attempt(
                        subscription.server,
                        attempt,
                        true,
                        subscription.id.is_text(),
                        "the client hung up",
                    );
                }
            }
        }
        // A call of its own that was joined to another may have taken that one's place.
        let has_calls = |client: &Client| client.all_open().any(|open| matches!(open, Open::Call(_)));
        if self.clients.get(&id).is_some_and(has_calls) {
            self.cancel_everything(id);
        }
    }

    pub(super) fn give_up(&mut self, id: CallId, why: &str) {
        let Some(call) = self.calls.get(id) else { return };
        let (server, attempt) = (call.request.server, call.attempt());
        let (modern, text) = (call.modern, call.text);
        // Of all requests only `initialize` must not be cancelled.
        let cancels = call.request.method != Method::Initialize;
        if self.leave_to_others(id) {
            return;
        }
        // Before its server learns that nobody needs it any more.
        match attempt {
            Some(attempt) if cancels => {
                self.cancel_attempt(server, attempt, modern, text, why);
            }
            Some(attempt) => self.abandon(server, attempt),
            None => {}
        }
        self.settle(id, None);
    }

    /// Forgets a client and everything of it.
    pub(super) fn forget_client(&mut self, now: Mono, id: ClientId) {
        self.drop_asks_by(now, id);
        let Some(mut client) = self.clients.remove(&id) else { return };
        if let Door::Session(session) = &mut client.door {
            self.timers.set(Owner::Session(id), &mut session.armed, None);
            self.sessions.remove(&session.id);
            let streams: Vec<_> = session.streams.iter().copied().collect();
            for stream in streams {
                self.close_stream(stream);
            }
        }
        self.leave(now, id, client.server);
    }

    /// A client does not need its server any more.
    fn leave(&mut self, now: Mono, client: ClientId, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.clients.remove(&client);
        server.joining.retain(|(joining, _, _)| *joining != client);
        let unheard = server.greeted == Some(client) && server.welcome.is_none();
        for (_, clients) in server.handshake.subscribed.values_mut() {
            clients.remove(&client);
        }
        if unheard {
            // Their hello went out in this one's name, and nobody will hear the answer.
            let text = "outlast: the session that this one was to share a server with has ended; try again";
            self.turn_away(id, text);
            self.stop_sharing(id);
        }
        self.leave_if_unused(now, id);
    }

    /// Lets a server go that nobody needs: no client, and no task.
    pub(super) fn leave_if_unused(&mut self, now: Mono, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let needed = !server.is_unused() || server.life == Life::Leaving;
        if needed || self.ending.is_some() || !self.config.manner.serves() {
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
        self.shared.retain(|_, shared| *shared != id);
        let Some(server) = self.servers.get_mut(&id) else { return };
        let runs = server.has_process();
        server.life = Life::Leaving;
        if !runs {
            return self.let_go(id);
        }
        self.stop_watching(id);
        self.act(Action::CloseInput(id));
        self.arm_server(id, Some((Alarm::Lingers, now + limits::END_GRACE)));
    }

    pub(super) fn let_go(&mut self, id: ServerId) {
        self.arm_standing(id, None);
        // Whoever waits for a task here may be a client of another server.
        self.drop_asks_of(self.at, id);
        if let Some(mut server) = self.servers.remove(&id) {
            self.timers.set(Owner::Server(id), &mut server.armed, None);
            self.timers.set(Owner::Grace(id), &mut server.grace_armed, None);
        }
        self.act(Action::LetGo(id));
    }

    /// A client that was asked something is gone: whoever asked is told so.
    fn drop_asks_by(&mut self, now: Mono, client: ClientId) {
        let by = |(id, ask): (&AskId, &crate::ask::Ask)| (ask.client == client).then_some(*id);
        let open: Vec<AskId> = self.asks.iter().filter_map(by).collect();
        for id in open {
            let Some(ask) = self.close_ask(now, id) else { continue };
            let answer = error_answer(ask.id.patch().as_slice(), -32603, "outlast: the client is gone", None);
            self.send(ask.server, None, None, Outgoing::plain(answer));
        }
    }

    /// A server asks something that nobody here can be asked.
    pub(super) fn nobody_to_ask(&mut self, server: ServerId, id: &JsonId) {
        self.stop_sharing(server);
        let text = "outlast: several clients share this server, and none of them can be meant alone";
        let answer = error_answer(id.patch().as_slice(), -32603, text, None);
        self.send(server, None, None, Outgoing::plain(answer));
    }

    /// What a request makes of the sharing of its server.
    pub(super) fn shapes_sharing(&mut self, server: ServerId, method: &Method) {
        if matches!(method, Method::LoggingSetLevel | Method::ResourcesSubscribe) {
            self.stop_sharing(server);
        }
    }
}

fn own_message(text: &'static str) -> Option<Message> {
    scan_message(Bytes::from_static(text.as_bytes()))
}

/// `initialized` in the name of a client that does not send it.
pub(super) fn own_initialized() -> Option<Message> {
    own_message(OWN_INITIALIZED)
}
