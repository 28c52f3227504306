//! Watches both ends and knows what the engine may never do.
//!
//! [`streams`] looks at what clients read, [`servers`] at what reaches servers.

mod servers;
mod streams;

use super::visit::{Visit, What};
use crate::sim::blame::{Blame, SLACK};
use crate::sim::process::nonce;
use outlast_engine::calls::retry::is_safe_by_nature;
use outlast_engine::event::Line;
use outlast_engine::id::{AttemptId, ExchangeId, Run, ServerId};
use outlast_engine::limits;
use outlast_engine::method::Method;
use outlast_engine::policy::{CallFacts, Declared};
use outlast_engine::wire::{Field, Message, Scanned, Shape};
use outlast_engine::{Config, Engine, Share};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// How far back the calls lie that one can share its fate with.
const NEAR: usize = 3_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    Answered,
    /// Its client does not want it any more.
    Cancelled,
}

/// One request, as its client sees it.
#[derive(Debug)]
struct Request {
    nonce: String,
    /// As the client wrote it.
    asked: bytes::Bytes,
    /// Whose key it has, and which: such calls are one.
    key: Option<(String, String)>,
    id: String,
    token: Option<String>,
    method: Method,
    state: State,
    /// It may be answered with the handle of a task.
    task: bool,
    /// Its client cannot get the answer any more, though nothing was cancelled.
    lost: bool,
    began: Duration,
    max: Duration,
    /// The connection that carries it.
    carrier: ExchangeId,
    last_progress: f64,
    /// Running it twice does no harm.
    safe: bool,
    /// A person says so, so not even progress commits it.
    repeatable: bool,
    progressed: bool,
    arrivals: u32,
    /// Where it was sent last.
    sent: Option<(ServerId, Run, u64)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Post,
    Modern,
    Standing,
    Resumed,
    Delete,
}

/// What a client reads on one connection.
#[derive(Debug)]
struct Reading {
    kind: Kind,
    session: Option<Box<str>>,
    owner: String,
    requests: Vec<usize>,
    /// The request that it cancels, if it is taken.
    cancels: Option<usize>,
    /// It must be taken.
    sound: bool,
    /// Its session may be asleep, and find no room to wake.
    sleepy: bool,
    stream: Option<u64>,
    /// The number of the last event.
    last: Option<u64>,
    /// Times that a wish to be polled was the last thing said.
    polled: bool,
    began: Duration,
    begun: bool,
    /// Another connection has taken up its stream.
    replaced: bool,
    over: bool,
}

/// A stream of a session, over all its connections.
#[derive(Debug)]
struct Stream {
    session: Box<str>,
    requests: Vec<usize>,
    events: Vec<bytes::Bytes>,
    /// Some of its events were not kept.
    gaps: bool,
    /// When it was last seen unfinished, or ended.
    broke: Duration,
}

#[derive(Debug)]
struct Session {
    owner: String,
    handshake: usize,
    ended: bool,
    used: Duration,
    /// It was unused for so long that it may be asleep, and nothing was taken from it since.
    sleepy: bool,
    streams: usize,
    standing: Option<u64>,
}

impl Session {
    /// It has not been ended, and not been forgotten either.
    fn lives(&self, now: Duration) -> bool {
        !self.ended && now < self.used + limits::SLEEP
    }
}

#[derive(Debug)]
pub(super) struct Judge {
    config: Config,
    requests: Vec<Request>,
    by_nonce: BTreeMap<String, usize>,
    by_id: BTreeMap<(Box<str>, String), usize>,
    readings: Vec<Reading>,
    streams: BTreeMap<u64, Stream>,
    sessions: BTreeMap<Box<str>, Session>,
    asked: BTreeSet<u64>,
    /// Attempts by the number that the server saw.
    attempts: BTreeMap<u64, (ServerId, usize)>,
    used: BTreeSet<u64>,
    /// Those of them that are handshakes.
    handshakes: BTreeSet<u64>,
    cancelled_attempts: BTreeSet<u64>,
    /// Attempts that a server is told to cancel by what is going on now, and why.
    told: Vec<(ServerId, u64, Option<String>)>,
    /// Attempts that it must be told to cancel.
    expected: Vec<(ServerId, u64)>,
    /// Requests whose clients have hung up just now.
    given_up: Vec<usize>,
    owners: BTreeMap<ServerId, String>,
    pub(super) blame: Blame,
    /// Errors of ours that this event brought, with their kinds.
    errors: Vec<(usize, String)>,
    /// Requests that a server has answered, and since when their clients could know.
    due: Vec<(Duration, usize, u64)>,
    /// The sessions that are subscribed to something at a server, each with the request that did it.
    subscribed: BTreeMap<(ServerId, String), BTreeMap<Box<str>, usize>>,
    /// Servers say more than is kept for a client that is away.
    pub(super) floods: bool,
    /// Servers ask clients something.
    pub(super) asks: bool,
    /// When a client did something for the last time.
    last_visit: Duration,
    /// How often a bound was reached; see `Outcome`.
    pub(super) bounds: [u64; 3],
    pub(super) ending: bool,
    pub(super) failed: u64,
    pub(super) cancelled: u64,
    pub(super) progress: u64,
    pub(super) resumed: u64,
}

impl Judge {
    pub(super) fn new(config: &Config) -> Judge {
        Judge {
            config: config.clone(),
            requests: Vec::new(),
            by_nonce: BTreeMap::new(),
            by_id: BTreeMap::new(),
            readings: Vec::new(),
            streams: BTreeMap::new(),
            sessions: BTreeMap::new(),
            asked: BTreeSet::new(),
            attempts: BTreeMap::new(),
            used: BTreeSet::new(),
            handshakes: BTreeSet::new(),
            cancelled_attempts: BTreeSet::new(),
            told: Vec::new(),
            expected: Vec::new(),
            given_up: Vec::new(),
            owners: BTreeMap::new(),
            blame: Blame::new(config),
            errors: Vec::new(),
            due: Vec::new(),
            subscribed: BTreeMap::new(),
            floods: false,
            asks: false,
            last_visit: Duration::ZERO,
            bounds: [0; 3],
            ending: false,
            failed: 0,
            cancelled: 0,
            progress: 0,
            resumed: 0,
        }
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.len() as u64
    }

    fn reading(&mut self, exchange: ExchangeId) -> &mut Reading {
        &mut self.readings[exchange.0 as usize]
    }

    /// Streams that a session must not see.
    pub(super) fn streams_of_others(&self, session: &str) -> Vec<u64> {
        let others = self.streams.iter().filter(|(_, stream)| &*stream.session != session);
        others.map(|(number, _)| *number).collect()
    }

    pub(super) fn has_ended(&self, session: &str) -> bool {
        self.sessions.get(session).is_some_and(|session| session.ended)
    }

    /// The calls of late that have the key of this one, itself among them.
    fn with_its_key<'a>(&'a self, request: &'a Request) -> impl Iterator<Item = &'a Request> {
        let same = |other: &&Request| other.key.is_some() && other.key == request.key;
        self.requests.iter().rev().take(NEAR).filter(same)
    }

    fn shares_all(&self) -> bool {
        self.config.server.share == Share::All
    }

    // What the engine is told.

    /// A client sends a request. Exchanges are numbered in this order.
    pub(super) fn visited(&mut self, now: Duration, engine: &Engine, visit: &Visit, line: Option<&Line>) {
        let exchange = ExchangeId(self.readings.len() as u64);
        self.last_visit = now;
        let own = self.own_session(now, visit);
        let (kind, stream, last) = match &visit.what {
            What::Post(_) if visit.is_modern() => (Kind::Modern, None, None),
            What::Post(_) => (Kind::Post, None, None),
            What::Delete => (Kind::Delete, None, None),
            What::Get(None) => (Kind::Standing, own.and_then(|session| session.standing), None),
            What::Get(Some(event)) => {
                let (stream, number) = event_id(event);
                (Kind::Resumed, Some(stream), Some(number))
            }
        };
        let idle = self.config.session_idle;
        let sleepy = own.is_some_and(|session| session.sleepy || now >= session.used + idle);
        let own = own.is_some();
        let requests = match kind {
            Kind::Resumed => {
                self.streams.get(&stream.unwrap_or(0)).map(|s| s.requests.clone()).unwrap_or_default()
            }
            _ => self.register(now, exchange, visit, line, own),
        };
        let cancels = line.and_then(|line| self.cancels(visit, line)).filter(|_| own);
        self.readings.push(Reading {
            kind,
            session: visit.session.clone(),
            owner: visit.owner.clone(),
            cancels,
            sound: own && kind == Kind::Post && !requests.is_empty(),
            sleepy,
            requests,
            stream,
            last,
            polled: false,
            began: now,
            begun: false,
            replaced: false,
            over: false,
        });
        let cancelled: Vec<usize> = match kind {
            Kind::Delete if own => self.open_in(visit.session.as_deref()),
            _ => cancels.into_iter().collect(),
        };
        self.expect_cancels(engine, &cancelled);
        if kind == Kind::Delete && own {
            self.session_ended(visit.session.as_deref());
        }
        if let Some(session) =
            visit.session.as_ref().filter(|_| own).and_then(|name| self.sessions.get_mut(name))
        {
            session.used = now;
            session.sleepy = sleepy;
        }
    }

    /// The session that a client names, if it is its own and lives.
    fn own_session(&self, now: Duration, visit: &Visit) -> Option<&Session> {
        let session = self.sessions.get(visit.session.as_ref()?)?;
        Some(session).filter(|session| session.lives(now) && session.owner == visit.owner)
    }

    /// What is open in a session.
    fn open_in(&self, session: Option<&str>) -> Vec<usize> {
        let of_session = self.by_id.iter().filter(|((name, _), _)| Some(&**name) == session);
        of_session
            .map(|(_, index)| *index)
            .filter(|index| self.requests[*index].state == State::Open)
            .collect()
    }

    fn session_ended(&mut self, name: Option<&str>) {
        for index in self.open_in(name) {
            self.cancel(index);
        }
        for sessions in self.subscribed.values_mut() {
            sessions.retain(|session, _| Some(&**session) != name);
        }
        if let Some(session) = name.and_then(|name| self.sessions.get_mut(name)) {
            session.ended = true;
        }
    }

    fn register(
        &mut self,
        now: Duration,
        exchange: ExchangeId,
        visit: &Visit,
        line: Option<&Line>,
        own: bool,
    ) -> Vec<usize> {
        let members: Vec<&Message> = match line {
            Some(Ok(Scanned::Message(message))) => vec![message],
            Some(Ok(Scanned::Batch(members))) => members.iter().flatten().collect(),
            _ => Vec::new(),
        };
        // Nonsense has no mark.
        let asks = |message: &&Message| message.shape == Shape::Request && !nonce(&message.bytes).is_empty();
        let requests = members.into_iter().filter(asks);
        requests.map(|message| self.register_one(now, exchange, visit, message, own)).collect()
    }

    fn register_one(
        &mut self,
        now: Duration,
        exchange: ExchangeId,
        visit: &Visit,
        message: &Message,
        own: bool,
    ) -> usize {
        let method = Method::of(message);
        let nonce = nonce(&message.bytes);
        let token = message.raw(Field::MetaProgressToken).map(show);
        let policy = self.config.server.rules.for_call(CallFacts {
            method: &method,
            tool: message.text(Field::ParamsName).as_deref(),
            has_token: token.is_some(),
            cap: None,
            silence: None,
            wish: None,
            declared: &Declared::default(),
        });
        let key = message.raw(Field::ParamsIdempotencyKey).filter(|_| method == Method::ToolsCall).map(show);
        let key = key.map(|key| (visit.owner.clone(), key));
        let endless = method.is_handshake() || matches!(method, Method::Listen | Method::TasksResult);
        let repeatable = policy.repeatable == Some(true);
        let index = self.requests.len();
        let id = message.raw(Field::Id).map(show).unwrap_or_default();
        if own && let Some(session) = &visit.session {
            self.by_id.insert((session.clone(), id.clone()), index);
        }
        if method != Method::Initialize {
            self.by_nonce.insert(nonce.clone(), index);
        }
        self.requests.push(Request {
            nonce,
            asked: message.bytes.clone(),
            key,
            id,
            token,
            state: State::Open,
            task: message.has(Field::ParamsTask),
            lost: false,
            began: now,
            max: if endless { Duration::MAX } else { policy.max.time },
            carrier: exchange,
            last_progress: f64::NEG_INFINITY,
            // A subscription is opened again with every run.
            safe: repeatable || is_safe_by_nature(&method) || endless,
            repeatable,
            progressed: false,
            arrivals: 0,
            sent: None,
            method,
        });
        index
    }

    /// The request that a message cancels.
    fn cancels(&self, visit: &Visit, line: &Line) -> Option<usize> {
        let Ok(Scanned::Message(message)) = line else { return None };
        let cancels = message.text(Field::Method).as_deref() == Some("notifications/cancelled");
        let id = message.raw(Field::ParamsRequestId).filter(|_| cancels).map(show)?;
        let index = *self.by_id.get(&(visit.session.clone()?, id))?;
        let request = &self.requests[index];
        // A task is cancelled by `tasks/cancel` alone.
        let may = !request.method.is_handshake() && !request.task;
        (request.state == State::Open && may).then_some(index)
    }

    /// What is at a server now must be cancelled there.
    fn expect_cancels(&mut self, engine: &Engine, requests: &[usize]) {
        for index in requests {
            let request = &self.requests[*index];
            let Some((server, run, attempt)) = request.sent else { continue };
            if request.key.is_some() {
                // Others may wait for it, and its client may ask again.
                continue;
            }
            let there =
                engine.expects(server, run, AttemptId(attempt)) && request.method != Method::Initialize;
            let listens = request.method == Method::Listen && request.state == State::Open;
            if (there || listens) && !request.task {
                self.expected.push((server, attempt));
            }
        }
    }

    /// A client hangs up. In the modern era that is a cancel.
    pub(super) fn hung_up(&mut self, now: Duration, engine: &Engine, exchange: ExchangeId) {
        let reading = &mut self.readings[exchange.0 as usize];
        reading.over = true;
        self.last_visit = now;
        let (kind, stream, requests) = (reading.kind, reading.stream, reading.requests.clone());
        if let Some(stream) = stream.and_then(|stream| self.streams.get_mut(&stream)) {
            stream.broke = now;
        }
        if kind == Kind::Modern {
            self.expect_cancels(engine, &requests);
            // What the engine did before it heard of that is still to be seen.
            self.given_up.extend(requests);
        }
    }

    fn cancel(&mut self, index: usize) {
        let request = &mut self.requests[index];
        if request.state == State::Open {
            request.state = State::Cancelled;
            self.cancelled += 1;
        }
    }

    /// A client has given up what it posted, without telling anybody.
    pub(super) fn lost(&mut self, post: ExchangeId) {
        for index in self.readings[post.0 as usize].requests.clone() {
            self.requests[index].lost = true;
        }
    }

    /// After the end nobody may be left without an answer.
    pub(super) fn everything_is_settled(&self) {
        let ended = |request: &Request| {
            let cancelled = request.sent.is_some_and(|(_, _, attempt)| self.blame.is_cancelled(attempt));
            cancelled && request.method == Method::Listen
        };
        let owed = |request: &&Request| {
            request.state == State::Open && !request.lost && !request.task && !ended(request)
        };
        for request in self.requests.iter().filter(owed) {
            let unread = self.readings[request.carrier.0 as usize].over && self.ending;
            assert!(unread, "{} was never answered: {request:?}", request.nonce);
        }
    }

    /// Everything that one event brings about has been seen.
    pub(super) fn batch_ends(&mut self, now: Duration) {
        self.check_errors(now);
        self.check_answered(now);
        for index in std::mem::take(&mut self.given_up) {
            self.cancel(index);
        }
        for (server, attempt) in std::mem::take(&mut self.expected) {
            let told = self.told.iter().any(|(at, number, _)| (*at, *number) == (server, attempt));
            assert!(told, "attempt {attempt} at {server:?} was given up, and nobody told the server");
        }
        for (server, attempt, reason) in std::mem::take(&mut self.told) {
            self.check_cancel(server, attempt, reason.as_deref());
        }
        self.blame.is_judged();
    }
}

impl Judge {
    /// An error of ours needs a fault on the way of its call.
    fn check_errors(&mut self, now: Duration) {
        for (index, kind) in std::mem::take(&mut self.errors) {
            self.bounds[0] += u64::from(kind == "overloaded");
            self.bounds[2] += u64::from(kind == "message-too-large");
            let request = &self.requests[index];
            let attempt = request.sent.map(|(_, _, attempt)| attempt);
            let owner = &self.readings[request.carrier.0 as usize].owner;
            let own =
                |server| self.shares_all() || self.owners.get(&server).is_none_or(|known| known == owner);
            // Which of the handshakes was theirs, only the engine knows.
            let kind = if request.method == Method::Initialize { "server-failed" } else { &kind };
            // What befell a task is judged where its call is; who waits for it only hears of it.
            let waits = request.method == Method::TasksResult;
            // What befell one of several calls with one key befell all of them.
            let shared = |other: &Request| {
                let sent = other.sent.map(|(_, _, attempt)| attempt);
                self.blame.excuses(now, other.began.min(request.began), kind, sent, own)
            };
            // What became of a call whose client hung up waits for who asks again.
            let left = |other: &Request| {
                let modern = self.readings[other.carrier.0 as usize].kind == Kind::Modern;
                modern && other.state == State::Cancelled && request.sent.is_none()
            };
            let excused = waits
                || self.with_its_key(request).any(left)
                || (kind == "key-conflict" && request.key.is_some())
                || self.with_its_key(request).any(shared)
                || self.blame.excuses(now, request.began, kind, attempt, own)
                || self.any_attempt(index, |attempt| {
                    self.blame.excuses(now, request.began, kind, Some(attempt), own)
                });
            assert!(
                excused || self.ending,
                "{kind} without a reason at {now:?}: {request:?}, {}",
                self.blame.tell(attempt)
            );
        }
    }

    /// Whether something holds of an attempt of what shapes the connection: which of them is the call's and which
    /// is a word of our own, only the engine knows.
    fn any_attempt(&self, index: usize, holds: impl Fn(u64) -> bool) -> bool {
        let of_call = self.attempts.iter().filter(|(_, (_, at))| *at == index);
        let told_again = self.requests[index].method.shapes_the_connection();
        told_again && of_call.map(|(attempt, _)| *attempt).any(holds)
    }

    /// What a server has answered reaches who reads.
    fn check_answered(&mut self, now: Duration) {
        for attempt in self.blame.take_answered() {
            if let Some((_, index)) = self.attempts.get(&attempt) {
                self.due.push((now + SLACK, *index, attempt));
            }
        }
        while let Some((at, index, attempt)) = self.due.first().copied().filter(|(at, ..)| *at < now) {
            self.due.remove(0);
            let request = &self.requests[index];
            // What shapes the connection is asked again by ourselves.
            let own = request.method.shapes_the_connection() || request.method == Method::Listen;
            let latest = request.sent.is_some_and(|(_, _, sent)| sent == attempt) && !own;
            let read = !self.readings[request.carrier.0 as usize].over && !request.lost;
            let open = request.state == State::Open
                && latest
                && read
                && self.blame.when_given_up(Some(attempt)).is_none();
            assert!(
                !open || self.ending,
                "{request:?} was answered before {at:?}, and its client does not know"
            );
        }
    }
}

fn show(raw: &[u8]) -> String {
    String::from_utf8_lossy(raw).into_owned()
}

fn event_id(text: &str) -> (u64, u64) {
    let rest = text.split_once('-').map(|(_mark, rest)| rest);
    let parts = rest.and_then(|rest| rest.split_once('-'));
    let parts = parts.and_then(|(stream, number)| Some((stream.parse().ok()?, number.parse().ok()?)));
    parts.unwrap_or_else(|| panic!("`{text}` is no event id"))
}
