//! Plays any bytes as a story of a service: HTTP clients of two principals in front of servers behind
//! pipes or behind HTTP. For the fuzzer.
//!
//! Each line is an event: its first byte says which, its second who or how, the rest is the message.
//! What comes out is held against what a client can rely on: one response to a request, nothing after
//! the end of a stream, no answer to a question that was not asked there, and no success with a session
//! of somebody else.

use crate::exchange::{Exchanges, MODERN, NAMES, mirror, read};
use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::http::{Body, Head, Response, StreamEnd, Trouble};
use outlast_engine::id::{AttemptId, ExchangeId, Run, ServerId};
use outlast_engine::wire::{Oversized, Scanned, Shape};
use outlast_engine::{
    Action, Config, Engine, Event, Manner, Mono, Now, ServerConfig, Share, Transport, Wall, wire,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// How often time is moved to what is due, at the end of a story.
const LAST_TICKS: usize = 2_000;

const VERSIONS: [Option<&str>; 4] = [None, Some("2025-11-25"), Some("2025-03-26"), Some(MODERN)];

/// Panics if the engine does, if one of its invariants breaks, or if a client is wronged.
pub fn play(story: &[u8]) {
    let first = story.first().copied().unwrap_or_default();
    let transport = if first % 2 == 0 { Transport::Process } else { Transport::Http };
    let share = [Share::Session, Share::Principal, Share::All][usize::from(first / 2) % 3];
    let server = ServerConfig { transport, share, ..ServerConfig::default() };
    let mut world = World::new(Config { manner: Manner::Serve, ..server.into() });
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
    exchanges: Exchanges,
    /// What each exchange asked.
    asked: Vec<Asked>,
    ended: bool,
}

/// The one request in an exchange.
#[derive(Default)]
struct Asked {
    /// Its id; a stream that is taken up again may hold any answer.
    id: Option<Value>,
    posted: bool,
    answers: usize,
}

impl World {
    fn new(config: Config) -> World {
        let mut world = World {
            transport: config.server.transport,
            engine: Engine::new(config),
            now: Mono::default(),
            entropy: 0,
            runs: BTreeMap::new(),
            attempts: Vec::new(),
            exchanges: Exchanges::default(),
            asked: Vec::new(),
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
                let head = self.head(how, Some(rest));
                Some(Event::Got(self.open(&head, false), head))
            }
            6 => {
                let head = self.head(how, None);
                Some(Event::Deleted(self.open(&head, false), head))
            }
            7 => {
                let index = index % self.asked.len().max(1);
                self.exchanges.hang_up(ExchangeId(index as u64))
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
        let line = wire::scan(body.clone());
        let mut head = self.head(how, None);
        mirror(&mut head, &line);
        let mut asked = Asked { posted: true, ..Asked::default() };
        let mut modern = head.version.as_deref() == Some(MODERN);
        if let Ok(Scanned::Message(message)) = &line {
            let id = message.raw(wire::Field::Id).filter(|_| message.shape == Shape::Request);
            asked.id = id.and_then(|id| serde_json::from_slice(id).ok());
            modern |= message.raw(wire::Field::MetaProtocolVersion).is_some();
        }
        let exchange = self.open(&head, modern);
        self.asked[exchange.0 as usize] = asked;
        Event::Posted(exchange, head, line)
    }

    fn open(&mut self, head: &Head, modern: bool) -> ExchangeId {
        self.asked.push(Asked::default());
        self.exchanges.open(head, modern)
    }

    fn head(&self, how: u8, last_event: Option<&[u8]>) -> Box<Head> {
        let how = usize::from(how);
        let sessions = &self.exchanges.sessions;
        let session = sessions.get((how / 8) % (sessions.len() + 1)).map(|(name, _)| name.clone());
        let last_event = last_event.filter(|text| !text.is_empty());
        // The mark of a session is made of the same bytes as its name.
        let mark = session.as_deref().unwrap_or_default();
        let last_event = last_event.map(|text| format!("{mark}-{}", String::from_utf8_lossy(text)).into());
        Box::new(Head {
            principal: Some(NAMES[how % 2].into()),
            session,
            version: VERSIONS[how / 2 % 4].map(Into::into),
            last_event,
            takes_json: how != 255,
            takes_events: true,
            ..Head::default()
        })
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
            opened: how.is_multiple_of(3),
            status: how.is_multiple_of(5).then_some(400 + u16::from(how)),
            why: "it ended".into(),
        };
        let remote = self.transport == Transport::Http;
        Some(match what % 16 {
            10 | 11 => Event::FromServer(id, run, wire::scan(bytes)),
            12 if remote => Event::FromStream(server, attempt_run, attempt, wire::scan(bytes)),
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
            _ => Event::InputBroken(id, run, Vec::new()),
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
            Action::Respond(id, response) => self.respond(id, &response),
            Action::Write(id, events) => {
                self.exchanges.write(id);
                for message in read(&events).into_iter().filter_map(|event| event.data) {
                    self.asked[id.0 as usize].answer(&message);
                }
            }
            Action::Finish(id) => self.exchanges.finish(id),
            Action::Note(note) => drop(note.to_string()),
            Action::End { .. } => self.ended = true,
            _ => {}
        }
    }

    fn respond(&mut self, id: ExchangeId, response: &Response) {
        self.exchanges.respond(id, response);
        if let Body::Json(json) = &response.body {
            self.asked[id.0 as usize].answer(json);
        }
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
        for (number, (exchange, asked)) in self.exchanges.all().iter().zip(&self.asked).enumerate() {
            let left = asked.posted && !exchange.gone && !self.ended && exchange.response.is_none();
            assert!(!left, "exchange {number} was left without a response");
        }
    }
}

impl Asked {
    /// What answers must be the answer to what was asked here, and the only one.
    fn answer(&mut self, message: &Bytes) {
        // A server's own words, or an id of the client, may be no JSON; they pass as they are.
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let Some(asked) = self.id.as_ref().filter(|_| message.get("method").is_none()) else { return };
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
