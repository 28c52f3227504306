//! Plays any bytes as a story of a service: HTTP clients of two principals in front of servers behind
//! pipes or behind HTTP. For the fuzzer.
//!
//! Each line is an event: its first byte says which, its second who or how, the rest is the message.
//! What comes out is held against what a client can rely on: one response to a request, nothing after
//! the end of a stream, no answer to a question that was not asked there, and no success with a session
//! of somebody else.

use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::http::{Body, Head, Response, StreamEnd, Trouble};
use outlast_engine::id::{AttemptId, ExchangeId, Run, ServerId};
use outlast_engine::wire::{Oversized, Scanned, Shape};
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, Share, Transport, Wall, wire};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often time is moved to what is due, at the end of a story.
const LAST_TICKS: usize = 2_000;

const NAMES: [&str; 2] = ["alice", "bob"];
const VERSIONS: [Option<&str>; 4] = [None, Some("2025-11-25"), Some("2025-03-26"), Some("2026-07-28")];

/// Panics if the engine does, if one of its invariants breaks, or if a client is wronged.
pub fn play(story: &[u8]) {
    let first = story.first().copied().unwrap_or_default();
    let transport = if first % 2 == 0 { Transport::Process } else { Transport::Http };
    let share = [Share::Session, Share::Principal, Share::All][usize::from(first / 2) % 3];
    let mut world = World::new(Config { manner: Manner::Serve, transport, share, ..Config::default() });
    for line in story.split(|byte| *byte == b'\n') {
        let [what, how, rest @ ..] = line else { continue };
        world.now = world.now + Duration::from_millis(u64::from(*what));
        let Some(event) = world.event(*what, *how, rest) else { continue };
        world.feed(event);
    }
    world.finish();
}

struct World {
    engine: Engine,
    transport: Transport,
    now: Mono,
    entropy: u8,
    runs: BTreeMap<ServerId, Run>,
    /// What was posted to a server and may be answered.
    attempts: Vec<(ServerId, AttemptId)>,
    exchanges: Vec<Exchange>,
    /// Every session, and whose it is.
    sessions: Vec<(Box<str>, &'static str)>,
    ended: bool,
}

/// A client's request and what became of it.
#[derive(Default)]
struct Exchange {
    principal: &'static str,
    session: Option<Box<str>>,
    /// The id of the one request in it; a stream that is taken up again may hold any answer.
    asked: Option<Value>,
    posted: bool,
    /// It stands for itself, whatever session it names.
    modern: bool,
    response: Option<u16>,
    streams: bool,
    finished: bool,
    gone: bool,
    answers: usize,
}

impl World {
    fn new(config: Config) -> World {
        let mut world = World {
            transport: config.transport,
            engine: Engine::new(config),
            now: Mono::default(),
            entropy: 0,
            runs: BTreeMap::new(),
            attempts: Vec::new(),
            exchanges: Vec::new(),
            sessions: Vec::new(),
            ended: false,
        };
        world.feed(Event::Entropy([0; 32]));
        world
    }

    fn event(&mut self, what: u8, how: u8, rest: &[u8]) -> Option<Event> {
        let bytes = Bytes::copy_from_slice(rest);
        let index = usize::from(how);
        match what % 16 {
            0..5 => Some(self.post(how, &bytes)),
            5 => {
                let (exchange, head) = self.open(how, Some(rest));
                Some(Event::Got(exchange, head))
            }
            6 => {
                let (exchange, head) = self.open(how, None);
                Some(Event::Deleted(exchange, head))
            }
            7 => {
                let index = index % self.exchanges.len().max(1);
                let exchange = self.exchanges.get_mut(index).filter(|exchange| exchange.is_open())?;
                exchange.gone = true;
                Some(Event::HungUp(ExchangeId(index as u64)))
            }
            8 => {
                let seconds = 1 << (how % 18);
                self.now = self.now + Duration::from_secs(seconds);
                Some(Event::Tick)
            }
            9 => (how > 250).then_some(Event::Stop(15)),
            _ => self.of_server(what, how, bytes),
        }
    }

    fn post(&mut self, how: u8, body: &Bytes) -> Event {
        let line = wire::scan(body);
        let (exchange, mut head) = self.open(how, None);
        let kept = &mut self.exchanges[exchange.0 as usize];
        kept.posted = true;
        kept.modern = head.version.as_deref() == VERSIONS[3];
        if let Ok(Scanned::Message(message)) = &line {
            head.method = message.text(wire::Field::Method).map(|method| (&*method).into());
            head.name = message.text(wire::Field::ParamsName).map(|name| (&*name).into());
            let id = message.raw(wire::Field::Id).filter(|_| message.shape == Shape::Request);
            kept.asked = id.and_then(|id| serde_json::from_slice(id).ok());
            kept.modern |= message.raw(wire::Field::MetaProtocolVersion).is_some();
        }
        Event::Posted(exchange, head, line)
    }

    fn open(&mut self, how: u8, last_event: Option<&[u8]>) -> (ExchangeId, Box<Head>) {
        let how = usize::from(how);
        let principal = NAMES[how % 2];
        let session = self.sessions.get((how / 8) % (self.sessions.len() + 1)).map(|(name, _)| name.clone());
        let last_event = last_event.filter(|text| !text.is_empty());
        let last_event = last_event.map(|text| String::from_utf8_lossy(text).into_owned().into());
        let head = Head {
            principal: Some(principal.into()),
            session: session.clone(),
            version: VERSIONS[how / 2 % 4].map(Into::into),
            last_event,
            takes_json: how != 255,
            takes_events: true,
            ..Head::default()
        };
        self.exchanges.push(Exchange { principal, session, ..Exchange::default() });
        (ExchangeId(self.exchanges.len() as u64 - 1), Box::new(head))
    }

    fn of_server(&mut self, what: u8, how: u8, bytes: Bytes) -> Option<Event> {
        let index = usize::from(how);
        let (&id, &run) = self.runs.iter().nth(index % self.runs.len().max(1))?;
        let (server, attempt) = self
            .attempts
            .get(index % self.attempts.len().max(1))
            .copied()
            .unwrap_or((id, AttemptId(u64::from(how))));
        let attempt_run = self.runs.get(&server).copied().unwrap_or(run);
        let end = StreamEnd {
            resumable: how.is_multiple_of(2),
            retry: (how > 128).then_some(Duration::from_millis(u64::from(how))),
            status: how.is_multiple_of(5).then_some(400 + u16::from(how)),
            why: "it ended".into(),
        };
        let remote = self.transport == Transport::Http;
        Some(match what % 16 {
            10 | 11 => Event::FromServer(id, run, wire::scan(&bytes)),
            12 if remote => Event::FromStream(server, attempt_run, attempt, wire::scan(&bytes)),
            13 if remote => Event::StreamEnded(server, attempt_run, attempt, end),
            14 if remote => {
                Event::Trouble(server, attempt_run, Some(attempt).filter(|_| how < 200), trouble(how, bytes))
            }
            15 => match bytes.len() % 4 {
                0 => Event::Started(id, run),
                1 => Event::OutputClosed(id, run),
                2 => Event::Exited(id, run, Exit::Code(how)),
                _ => Event::ServerOversized(id, run, Oversized { id: Some(bytes), answer: how > 100 }),
            },
            _ if remote => Event::StandingEnded(id, run, end),
            12 => Event::StartFailed(id, run, StartFailure::NotFound),
            13 => Event::Stderr(id, run, bytes),
            _ => Event::InputBroken(id, run),
        })
    }

    fn feed(&mut self, event: Event) {
        if self.ended {
            return;
        }
        let now = Now { mono: self.now, wall: Wall(0) };
        self.engine.handle(now, event);
        let mut entropy = false;
        while let Some(action) = self.engine.poll() {
            entropy |= matches!(action, Action::NeedEntropy);
            self.take(action);
        }
        if let Err(broken) = self.engine.check_invariants() {
            panic!("{broken}");
        }
        if entropy {
            self.entropy = self.entropy.wrapping_add(1);
            self.feed(Event::Entropy([self.entropy; 32]));
        }
    }

    fn take(&mut self, action: Action) {
        match action {
            Action::Start(id, run) => drop(self.runs.insert(id, run)),
            Action::LetGo(id) => drop(self.runs.remove(&id)),
            Action::Post(id, post) => {
                assert_eq!(post.message.len(), post.message.to_vec().len());
                self.attempts.extend(post.attempt.map(|attempt| (id, attempt)));
            }
            Action::ToServer(_, message) | Action::ToClient(_, message) => {
                assert_eq!(message.len(), message.to_vec().len());
            }
            Action::Respond(id, response) => self.respond(id, response),
            Action::Write(id, events) => {
                let exchange = self.exchange(id);
                assert!(exchange.streams && !exchange.finished, "events on a stream that is not open");
                exchange.read(&events);
            }
            Action::Finish(id) => {
                let exchange = self.exchange(id);
                assert!(exchange.streams, "the end of what is no stream");
                assert!(!std::mem::replace(&mut exchange.finished, true), "a stream ended twice");
            }
            Action::Note(note) => drop(note.to_string()),
            Action::End { .. } => self.ended = true,
            _ => {}
        }
    }

    fn exchange(&mut self, id: ExchangeId) -> &mut Exchange {
        let exchange = &mut self.exchanges[id.0 as usize];
        assert!(!exchange.gone, "something for a client that has hung up");
        exchange
    }

    fn respond(&mut self, id: ExchangeId, response: Response) {
        let sessions = self.sessions.clone();
        let exchange = self.exchange(id);
        assert_eq!(exchange.response.replace(response.status), None, "a second response");
        match &response.body {
            Body::Empty => {}
            Body::Events => exchange.streams = true,
            // A server's own words, or an id of the client, may be no JSON; they pass as they are.
            Body::Json(json) => exchange.answer(&serde_json::from_slice(json).unwrap_or_default()),
        }
        let begins = response.session.is_some();
        let owner = exchange.session.as_ref().and_then(|name| {
            sessions.iter().find(|(known, _)| known == name).map(|(_, principal)| *principal)
        });
        let owner = owner.filter(|owner| *owner != exchange.principal && !begins && !exchange.modern);
        if let Some(owner) = owner {
            assert!(response.status >= 400, "{} used a session of {owner}", exchange.principal);
        }
        let principal = exchange.principal;
        self.sessions.extend(response.session.map(|name| (name, principal)));
    }

    /// Everything that is due comes; then nobody may be left without a response.
    fn finish(&mut self) {
        for _ in 0..LAST_TICKS {
            let Some(at) = self.engine.next_deadline() else { break };
            self.now = self.now.max(at);
            self.feed(Event::Tick);
        }
        let day = Duration::from_secs(25 * 60 * 60);
        self.now = self.now + day;
        self.feed(Event::Tick);
        for (number, exchange) in self.exchanges.iter().enumerate() {
            let left = exchange.posted && !exchange.gone && !self.ended && exchange.response.is_none();
            assert!(!left, "exchange {number} was left without a response");
        }
    }
}

impl Exchange {
    fn is_open(&self) -> bool {
        !self.gone && !self.finished && (self.response.is_none() || self.streams)
    }

    fn read(&mut self, events: &[u8]) {
        for line in events.split(|byte| *byte == b'\n') {
            let data = line.strip_prefix(b"data: ").filter(|data| !data.is_empty());
            if let Some(message) = data.and_then(|data| serde_json::from_slice(data).ok()) {
                self.answer(&message);
            }
        }
    }

    /// What answers must be the answer to what was asked here, and the only one.
    fn answer(&mut self, message: &Value) {
        let Some(asked) = self.asked.as_ref().filter(|_| message.get("method").is_none()) else { return };
        let Some(id) = message.get("id") else { return };
        assert!(id == asked || id.is_null(), "{message} where {asked} was asked");
        self.answers += 1;
        assert!(self.answers == 1, "a second answer: {message}");
    }
}

fn trouble(how: u8, body: Bytes) -> Trouble {
    match how % 8 {
        0 => Trouble::Unreachable("refused".into()),
        1 => Trouble::Broken("reset".into()),
        2 => Trouble::NotMcp("text/html".into()),
        kind => Trouble::Status {
            status: [400, 404, 409, 429, 503][usize::from(kind) - 3],
            retry_after: (how > 128).then_some(Duration::from_secs(u64::from(how))),
            had_session: how.is_multiple_of(2),
            body,
        },
    }
}
