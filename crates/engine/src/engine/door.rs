//! The HTTP door: what a client's POST, GET or DELETE means, in either era.
//!
//! A request that carries the modern revision in its `_meta`, or names it in its header, is modern and
//! stands for itself. Everything else belongs to a session that began with `initialize`.

use super::Engine;
use super::durable::What;
use crate::action::Action;
use crate::clients::session::{EventId, Session};
use crate::clients::{Client, Door, Entry, Way};
use crate::error::{Kind, error_answer};
use crate::event::Line;
use crate::http::{Body, Head, Response};
use crate::id::{ClientId, ExchangeId, JsonId, ServerId, StreamId};
use crate::method::Method;
use crate::mirror;
use crate::time::Mono;
use crate::wire::{Field, Message, Refused, Scanned, Shape};

/// The revisions with sessions.
const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The first revision without.
const MODERN: &str = "2026-07-28";

/// Methods that this revision has no more. The others are the server's to refuse; this one would make it
/// forget which era it is in.
const NO_HANDSHAKE: &str = "Method not found: initialize; this revision begins with any request";

/// The code that the official SDKs have for a session that is not there.
const NO_SESSION: i32 = -32001;

/// Why a request is not taken: a status, a JSON-RPC code, and words.
pub(super) struct No(u16, i32, String);

impl Engine {
    pub(super) fn posted(&mut self, now: Mono, exchange: ExchangeId, head: &Head, line: &Line) {
        let modern = matches!(line, Ok(Scanned::Message(message)) if is_modern(head, message));
        if modern || !self.looks_for_session(exchange, head, || What::Post(Box::new(line.clone()))) {
            self.post(now, exchange, head, line);
        }
    }

    pub(super) fn post(&mut self, now: Mono, exchange: ExchangeId, head: &Head, line: &Line) {
        self.confirmed = self.event_seen(head);
        let done = match line {
            _ if self.ending.is_some() && !self.lets_calls_end(head, line) => Err(being_stopped()),
            _ if !head.takes_json || !head.takes_events => {
                let why = "Not Acceptable: Accept must allow application/json and text/event-stream";
                Err(No(406, -32000, why.into()))
            }
            Err(refused) => return self.bad_body(exchange, refused),
            Ok(Scanned::Message(message)) if has_odd_id(message) => {
                Err(No(400, -32600, "Invalid request: an id is a string or a number".into()))
            }
            Ok(Scanned::Message(message)) if is_modern(head, message) => {
                self.modern_post(now, exchange, head, message)
            }
            Ok(Scanned::Message(message)) => {
                self.legacy_post(now, exchange, head, std::slice::from_ref(&Ok(message.clone())), false)
            }
            Ok(Scanned::Batch(members)) => self.legacy_post(now, exchange, head, members, true),
        };
        self.confirmed = None;
        if let Err(no) = done {
            let id = match line {
                // A lost session is no answer to the request, and must not be taken for one: as the SDKs say it.
                _ if no.0 == 404 && no.1 == NO_SESSION => None,
                Ok(Scanned::Message(message)) if message.shape == Shape::Request && !has_odd_id(message) => {
                    message.raw(Field::Id)
                }
                _ => None,
            };
            self.refuse(exchange, id, &no);
        }
    }

    /// Whether a message asks for nothing and comes in a session that is at work: while calls may still end,
    /// a client answers what they wait for, and cancels them.
    fn lets_calls_end(&self, head: &Head, line: &Line) -> bool {
        let asks_nothing = matches!(line, Ok(Scanned::Message(message)) if message.shape != Shape::Request);
        let session = self.session_of(head).ok().and_then(|client| self.clients.get(&client)?.session());
        asks_nothing && session.is_some_and(|session| !session.asleep)
    }

    /// What the address of a request leads to. A server alone is reached at `/mcp`, too.
    pub(super) fn entry_of(&self, head: &Head) -> Result<Entry, No> {
        let named = match head.server.as_deref() {
            Some(name) => {
                self.config.definitions().find(|(_, config)| *config.name == *name).map(|(id, _)| id)
            }
            None if self.config.only_definition().is_some() => self.config.only_definition(),
            None if !self.has_any_server(head.principal.as_deref()) => None,
            None => return Ok(Entry::Merged),
        };
        let known = named.filter(|id| self.may_use(head.principal.as_deref(), *id));
        known.map(Entry::Server).ok_or_else(no_such_server)
    }

    fn bad_body(&mut self, exchange: ExchangeId, refused: &Refused) {
        let answer = self.refusal(refused);
        self.respond(exchange, 400, Body::Json(answer.into()));
    }

    fn refuse(&mut self, exchange: ExchangeId, id: Option<&[u8]>, no: &No) {
        let No(status, code, text) = no;
        let body = error_answer(id.unwrap_or(b"null"), *code, text, None);
        self.respond(exchange, *status, Body::Json(body.into()));
    }

    pub(super) fn respond(&mut self, exchange: ExchangeId, status: u16, body: Body) {
        self.act(Action::Respond(exchange, Response { status, session: None, retry_after: None, body }));
    }

    // The modern era.

    fn modern_post(
        &mut self,
        now: Mono,
        exchange: ExchangeId,
        head: &Head,
        message: &Message,
    ) -> Result<(), No> {
        if message.shape == Shape::Answer {
            return Err(No(400, -32600, "Invalid request: clients of this revision send no answers".into()));
        }
        let entry = self.entry_of(head)?;
        let Entry::Server(definition) = entry else {
            return self.merged_post(now, exchange, head, message);
        };
        let server = self.server_for_exchange(now, definition, head.principal.as_deref());
        let Some(server) = server else { return Err(no_such_server()) };
        if message.shape == Shape::Notification {
            // Closing a stream is the cancel of this revision, and an id alone would name nobody.
            if message.text(Field::Method).as_deref() != Some("notifications/cancelled") {
                self.pass_to_server(server, message);
            }
            self.respond(exchange, 202, Body::Empty);
            return Ok(());
        }
        if let Some(no) = self.unknown_version(server, head, message) {
            let answer =
                [br#"{"jsonrpc":"2.0","id":"#, message.raw(Field::Id).unwrap_or(b"null"), no.as_bytes()]
                    .concat();
            self.respond(exchange, 400, Body::Json(answer.into()));
            return Ok(());
        }
        required_meta(message)?;
        if Method::of(message) == Method::Initialize {
            return Err(No(404, -32601, NO_HANDSHAKE.into()));
        }
        let params =
            self.servers.get(&server).and_then(|server| server.mirrors.contradiction(&head.params, message));
        if let Some(why) = mirror::contradiction(head, message).or(params) {
            return Err(No(400, -32020, format!("Header mismatch: {why}")));
        }
        let (client, stream) = self.exchange_client(exchange, head, entry);
        self.join(client, server);
        if Method::of(message) == Method::Listen && !self.must_declare_tasks(client, server, message) {
            self.begin_stream(stream);
        }
        self.client_message(now, client, message, Way::Stream(stream));
        Ok(())
    }

    /// The client of one request. It lives as long as the stream of its answer.
    fn exchange_client(&mut self, exchange: ExchangeId, head: &Head, entry: Entry) -> (ClientId, StreamId) {
        let client = self.clients.new_id();
        let stream = self.clients.next_stream();
        self.clients.open(client, Client::new(Door::Exchange(stream), entry, head.principal.clone()));
        self.clients.open_stream(client, Some(exchange), false, 1);
        self.keep_trace(Way::Stream(stream), head);
        (client, stream)
    }

    /// The same at the merged door, where we are the server.
    fn merged_post(
        &mut self,
        now: Mono,
        exchange: ExchangeId,
        head: &Head,
        message: &Message,
    ) -> Result<(), No> {
        if message.shape == Shape::Notification {
            // Nothing that a client of this revision notifies of is about anything but its own request.
            self.respond(exchange, 202, Body::Empty);
            return Ok(());
        }
        let version = message.text(Field::MetaProtocolVersion);
        // One that the header contradicts is refused for that, below.
        let meant = |version: &String| version != MODERN && head.version.as_deref() == Some(version);
        if let Some(version) = version.as_deref().map(str::to_owned).filter(meant) {
            let id = message.raw(Field::Id).unwrap_or(b"null");
            let answer =
                [br#"{"jsonrpc":"2.0","id":"#, id, unsupported(&[MODERN.into()], &version).as_bytes()]
                    .concat();
            self.respond(exchange, 400, Body::Json(answer.into()));
            return Ok(());
        }
        required_meta(message)?;
        if Method::of(message) == Method::Initialize {
            return Err(No(404, -32601, NO_HANDSHAKE.into()));
        }
        if let Some(why) = mirror::contradiction(head, message) {
            return Err(No(400, -32020, format!("Header mismatch: {why}")));
        }
        let (client, stream) = self.exchange_client(exchange, head, Entry::Merged);
        self.clients.mirrors(client, &head.params);
        if Method::of(message) == Method::Listen && !self.must_declare_tasks_merged(message) {
            self.begin_stream(stream);
        }
        self.client_message(now, client, message, Way::Stream(stream));
        Ok(())
    }

    /// A process that is at work does not look at the version of every request, so that is done here. A
    /// remote server looks itself. Gives the end of the answer.
    fn unknown_version(&self, server: ServerId, head: &Head, message: &Message) -> Option<String> {
        if self.is_remote(server) {
            return None;
        }
        let supported = &self.servers.get(&server)?.supported;
        let version = message.text(Field::MetaProtocolVersion)?;
        let version_known = |known: &str| known == version;
        let same = head.version.as_deref() == Some(&version);
        let taken = if supported.is_empty() {
            version == MODERN
        } else {
            supported.iter().any(|known| version_known(known))
        };
        if taken || !same {
            return None;
        }
        let ours = [Box::from(MODERN)];
        let supported = if supported.is_empty() { &ours[..] } else { supported };
        Some(unsupported(supported, &version))
    }

    // The legacy era.

    fn legacy_post(
        &mut self,
        now: Mono,
        exchange: ExchangeId,
        head: &Head,
        members: &[Result<Message, Refused>],
        array: bool,
    ) -> Result<(), No> {
        let handshake = match members {
            [Ok(message)] if message.shape == Shape::Request && Method::of(message) == Method::Initialize => {
                Some(message).filter(|_| !array)
            }
            _ => None,
        };
        let (client, begins) = match handshake {
            Some(message) => (self.new_session(now, head, message)?, true),
            None => (self.session_of(head)?, false),
        };
        if !begins {
            self.version_fits(client, head, array)?;
        }
        // Also a session that finds no room stays its client's.
        self.session_was_used(now, client);
        self.wake_if(now, head, client, |_| true)?;
        let way = self.way_back(exchange, client, members, begins);
        self.keep_trace(way, head);
        for member in members {
            match member {
                Ok(message) if begins => self.begin_session(now, client, message, way),
                Ok(message) if array && Method::of(message) == Method::Initialize => {
                    let id = message.raw(Field::Id).unwrap_or(b"null");
                    let text = "Invalid request: initialize inside an array";
                    let answer = error_answer(id, -32600, text, None);
                    self.reply(client, way, None, crate::wire::Outgoing::plain(answer));
                }
                Ok(message) => self.client_message(now, client, message, way),
                Err(refused) => {
                    let answer = self.refusal(refused);
                    self.reply(client, way, None, crate::wire::Outgoing::plain(answer));
                }
            }
        }
        Ok(())
    }

    /// The stream on which what a POST asks is answered; if it asks nothing, it is confirmed at once.
    fn way_back(
        &mut self,
        exchange: ExchangeId,
        client: ClientId,
        members: &[Result<Message, Refused>],
        begins: bool,
    ) -> Way {
        let asks = |member: &&Result<Message, Refused>| !matches!(member, Ok(message) if message.shape != Shape::Request);
        let open = members.iter().filter(asks).count();
        if open == 0 {
            self.respond(exchange, 202, Body::Empty);
            return Way::Line;
        }
        let stream = self.clients.open_stream(client, Some(exchange), true, open);
        if self.config.durable {
            // Its client may be elsewhere by the time that it has something to say of it.
            self.tickets.arm_upkeep(&mut self.timers, self.at, true);
        }
        if begins {
            let session = self.clients.get(&client).and_then(Client::session);
            let name = session.map(|session| session.id.clone());
            self.clients.names_session(stream, name);
        }
        if self.config.stream_head.is_zero() {
            self.begin_stream(stream);
        }
        Way::Stream(stream)
    }

    /// The session that a request names. One of another principal does not exist for it.
    fn session_of(&self, head: &Head) -> Result<ClientId, No> {
        let Some(name) = &head.session else {
            let why = "Bad Request: Mcp-Session-Id header is required; begin with initialize";
            return Err(No(400, -32000, why.into()));
        };
        let client = self.clients.session_named(name);
        let entry = self.entry_of(head)?;
        let own = |id: &ClientId| {
            let client = self.clients.get(id);
            client.is_some_and(|client| {
                client.principal == head.principal && self.begins_at(client.entry, entry, head)
            })
        };
        client
            .filter(own)
            .ok_or_else(|| No(404, NO_SESSION, "Session not found; begin with initialize".into()))
    }

    /// Whether a session with this entry began at the address of a request. What `/mcp` leads to depends on how many
    /// servers the file has, and that may have changed since.
    fn begins_at(&self, began: Entry, leads_to: Entry, head: &Head) -> bool {
        let was_alone = |entry| matches!(entry, Entry::Server(id) if self.config.was_alone == Some(id));
        began == leads_to || head.server.is_none() && (began == Entry::Merged || was_alone(began))
    }

    fn version_fits(&self, client: ClientId, head: &Head, array: bool) -> Result<(), No> {
        let agreed =
            self.clients.get(&client).and_then(Client::session).map_or("", |session| &session.version);
        if let Some(version) =
            head.version.as_deref().filter(|version| !LEGACY.contains(version) && *version != agreed)
        {
            let text = format!(
                "Bad Request: Unsupported protocol version `{}`; this session speaks {agreed}",
                crate::error::cut(version, 32)
            );
            return Err(No(400, -32000, text));
        }
        if array && !matches!(agreed, "2025-03-26" | "2024-11-05") {
            let text = format!("Invalid request: revision {agreed} has no arrays of messages");
            return Err(No(400, -32600, text));
        }
        Ok(())
    }

    /// Whether one session more may be awake.
    fn room_for_session(&self, head: &Head) -> Result<(), No> {
        let most = self.config.max_sessions;
        let same = |client: &&Client| {
            client.session().is_some_and(|s| !s.asleep) && client.principal == head.principal
        };
        if self.clients.values().filter(same).count() >= most {
            let whose = head.principal.as_deref().unwrap_or("anonymous");
            let text = format!(
                "`{whose}` has {most} sessions open (max-sessions); end one with DELETE, or raise it with --max-sessions"
            );
            return Err(No(429, Kind::TooManySessions.code(false), text));
        }
        Ok(())
    }

    /// Wakes a session that sleeps and is wanted, if there is room.
    fn wake_if(
        &mut self,
        now: Mono,
        head: &Head,
        client: ClientId,
        wanted: impl Fn(&Session) -> bool,
    ) -> Result<(), No> {
        let session = self.clients.get(&client).and_then(Client::session);
        if session.is_some_and(|session| session.asleep && wanted(session)) {
            self.room_for_session(head)?;
            self.wake(now, client);
        }
        Ok(())
    }

    fn new_session(&mut self, now: Mono, head: &Head, message: &Message) -> Result<ClientId, No> {
        self.room_for_session(head)?;
        let entry = self.entry_of(head)?;
        let Some(entropy) = self.ledger.take_entropy() else {
            return Err(No(503, -32603, "no random bytes at hand; try again".into()));
        };
        self.act(Action::NeedEntropy);
        let name = Session::name(&entropy);
        let client = self.clients.new_id();
        let standing = self.clients.next_stream();
        let session = Session::new(name.clone(), &entropy, message.owned(), standing, now);
        let server = match entry {
            Entry::Merged => None,
            Entry::Server(definition) => {
                let principal = head.principal.as_deref();
                let server = self.server_for_session(now, definition, principal, session.handshake_digest);
                Some(server.ok_or_else(no_such_server)?)
            }
        };
        let door = Door::Session(Box::new(session));
        self.clients.open(client, Client::new(door, entry, head.principal.clone()));
        self.meet(client, message);
        self.clients.open_stream(client, None, true, 1);
        match server {
            Some(server) => self.join(client, server),
            None => self.meet_servers(now, client, message, false),
        }
        self.keep_session(client);
        Ok(client)
    }

    pub(super) fn got(&mut self, now: Mono, exchange: ExchangeId, head: &Head) {
        if !self.looks_for_session(exchange, head, || What::Get) {
            self.get(now, exchange, head);
        }
    }

    pub(super) fn get(&mut self, now: Mono, exchange: ExchangeId, head: &Head) {
        if let Err(no) = self.open_standing(now, exchange, head) {
            self.refuse(exchange, None, &no);
        }
    }

    fn open_standing(&mut self, now: Mono, exchange: ExchangeId, head: &Head) -> Result<(), No> {
        if self.ending.is_some() {
            return Err(being_stopped());
        }
        let modern = head.version.as_deref().is_some_and(|version| version >= MODERN);
        if modern || (head.session.is_none() && head.version.is_none()) {
            return Err(No(405, -32000, "Method Not Allowed: this revision knows POST alone".into()));
        }
        if !head.takes_events {
            return Err(No(406, -32000, "Not Acceptable: Accept must allow text/event-stream".into()));
        }
        let client = self.session_of(head)?;
        self.session_was_used(now, client);
        // Who listens for what it subscribed to may send nothing for hours.
        self.wake_if(now, head, client, |session| !session.setup.is_empty())?;
        let Some(session) = self.clients.get(&client).and_then(Client::session) else { return Ok(()) };
        let standing = session.standing;
        let (stream, after) = match &head.last_event {
            Some(event) => {
                let id = EventId::parse(event).ok_or_else(no_such_event)?;
                let own = id.mark == session.mark && session.streams.contains(&id.stream);
                let own = own || (planted!(self, ReplaysOthers) && self.clients.stream(id.stream).is_some());
                let (stream, number) = (id.stream, id.number);
                if !own && self.looks_for_events(exchange, client, id) {
                    return Ok(());
                }
                own.then_some((stream, number)).ok_or_else(no_such_event)?
            }
            None => {
                let stream = self.clients.stream(standing);
                if stream.is_some_and(|stream| stream.exchange.is_some()) {
                    return Err(standing_is_open());
                }
                // What could not be kept is lost; the stream goes on with what came after it.
                (standing, stream.map_or(0, |stream| stream.written.max(stream.lost)))
            }
        };
        if self.take_up(exchange, stream, after) {
            return Ok(());
        }
        let sent = self.clients.stream(stream).is_some_and(|stream| after <= stream.last);
        Err(if sent { old_event() } else { future_event() })
    }

    /// The event that a client of the session says it has seen.
    fn event_seen(&self, head: &Head) -> Option<(StreamId, u64)> {
        let id = EventId::parse(head.last_event.as_deref()?)?;
        let client = self.clients.session_named(head.session.as_deref()?)?;
        let session = self.clients.get(&client)?.session()?;
        (session.mark == id.mark).then_some((id.stream, id.number))
    }

    /// The store is busy or broken: whoever were told that its session is unknown would begin a new one.
    pub(super) fn refuse_for_now(&mut self, exchange: ExchangeId) {
        let why = "what is stored of this session cannot be read just now; try again";
        self.refuse(exchange, None, &No(503, -32603, why.into()));
    }

    /// An event of an earlier process that is not stored.
    pub(super) fn refuse_event(&mut self, exchange: ExchangeId) {
        let why = "Bad Request: Last-Event-ID names no event that is still kept for this session; \
                   if it is of an outlast that has ended, the call on its stream may have run";
        self.refuse(exchange, None, &No(400, -32000, why.into()));
    }

    /// The session that a request came in has ended, and its call with it.
    pub(super) fn refuse_ended(&mut self, exchange: ExchangeId) {
        self.refuse(exchange, None, &No(404, NO_SESSION, "Session not found; it has just ended".into()));
    }

    /// Nothing was said to a request before we end.
    pub(super) fn refuse_stopped(&mut self, exchange: ExchangeId) {
        self.refuse(exchange, None, &being_stopped());
    }

    pub(super) fn refuse_old_event(&mut self, exchange: ExchangeId) {
        self.refuse(exchange, None, &old_event());
    }

    pub(super) fn refuse_future_event(&mut self, exchange: ExchangeId) {
        self.refuse(exchange, None, &future_event());
    }

    pub(super) fn refuse_standing(&mut self, exchange: ExchangeId) {
        self.refuse(exchange, None, &standing_is_open());
    }

    pub(super) fn deleted(&mut self, now: Mono, exchange: ExchangeId, head: &Head) {
        if !self.looks_for_session(exchange, head, || What::Delete) {
            self.delete(now, exchange, head);
        }
    }

    pub(super) fn delete(&mut self, now: Mono, exchange: ExchangeId, head: &Head) {
        if head.session.is_none() || head.version.as_deref().is_some_and(|version| version >= MODERN) {
            let no = No(405, -32000, "Method Not Allowed: there is no session to end".into());
            return self.refuse(exchange, None, &no);
        }
        match self.session_of(head) {
            Err(no) => self.refuse(exchange, None, &no),
            Ok(client) => {
                self.end_session(now, client);
                self.respond(exchange, 200, Body::Empty);
            }
        }
    }
}

/// The end of an answer to a request of a version that is not spoken here.
fn unsupported(supported: &[Box<str>], version: &str) -> String {
    let data = serde_json::json!({ "supported": supported, "requested": version });
    format!(r#","error":{{"code":-32022,"message":"Unsupported protocol version","data":{data}}}}}"#)
}

fn no_such_server() -> No {
    No(404, -32000, "Not Found: no server of this name is served here".into())
}

fn being_stopped() -> No {
    No(503, -32603, "outlast is being stopped; try again".into())
}

fn no_such_event() -> No {
    No(400, -32000, "Bad Request: Last-Event-ID names no event that is still kept for this session".into())
}

fn old_event() -> No {
    let why = format!(
        "Bad Request: Last-Event-ID is older than what is kept (at most {} MiB of a session and {} MiB in all); \
         the call on its stream may have run",
        crate::limits::SESSION_BYTES >> 20,
        crate::limits::EVENTS_BYTES >> 20,
    );
    No(400, -32000, why)
}

fn future_event() -> No {
    let why =
        "Bad Request: Last-Event-ID names an event that was never sent; its stream has not come that far";
    No(400, -32000, why.into())
}

fn standing_is_open() -> No {
    No(409, -32000, "Conflict: this session has its standing stream open already".into())
}

fn has_odd_id(message: &Message) -> bool {
    message.shape == Shape::Request && message.raw(Field::Id).is_none_or(|raw| JsonId::new(raw).is_none())
}

fn is_modern(head: &Head, message: &Message) -> bool {
    let handshake = message.shape == Shape::Request && Method::of(message) == Method::Initialize;
    let named = head.version.as_deref().is_some_and(|version| version >= MODERN);
    message.has(Field::MetaProtocolVersion) || (named && !handshake)
}

/// Every modern request says which revision it speaks and what its client can do.
fn required_meta(message: &Message) -> Result<(), No> {
    let missing =
        |key: &str| No(400, -32602, format!("Invalid params: _meta must have io.modelcontextprotocol/{key}"));
    if message.raw(Field::MetaProtocolVersion).is_none_or(|raw| raw.first() != Some(&b'"')) {
        return Err(missing("protocolVersion"));
    }
    match message.raw(Field::MetaClientCapabilities) {
        Some(_) => Ok(()),
        None => Err(missing("clientCapabilities")),
    }
}
