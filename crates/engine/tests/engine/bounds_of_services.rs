//! Bounds of `limits.rs` that take many sessions or large answers to reach.

use bytes::Bytes;
use outlast_engine::http::{Body, Head};
use outlast_engine::id::{ExchangeId, Run, ServerId};
use outlast_engine::limits::{EVENTS_BYTES, SESSION_BYTES, SETUP_BYTES, SLEEPERS, UNFETCHED_BYTES};
use outlast_engine::reached::Bound;
use outlast_engine::wire::{Field, Scanned, scan};
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, ServerConfig, Share, Wall};
use outlast_testkit::bounds::reaches;
use std::time::Duration;

/// A service with one server that all share.
struct Service {
    engine: Engine,
    now: Duration,
    exchanges: u64,
    names: u64,
}

impl Service {
    fn new() -> Service {
        let config = Config {
            manner: Manner::Serve,
            max_sessions: 2 * SLEEPERS,
            stream_head: Duration::ZERO,
            ..ServerConfig { share: Share::All, ..ServerConfig::default() }.into()
        };
        let mut service =
            Service { engine: Engine::new(config), now: Duration::ZERO, exchanges: 0, names: 0 };
        service.feed(Event::Entropy([0; 32]));
        service.feed(Event::Begin);
        service
    }

    fn feed(&mut self, event: Event) -> Vec<Action> {
        let now = Now { mono: Mono::after_start(self.now), wall: Wall(self.now.as_millis() as u64) };
        self.engine.handle(now, event);
        let mut done = Vec::new();
        while let Some(action) = self.engine.poll() {
            match action {
                Action::NeedEntropy => {
                    self.names += 1;
                    let mut bytes = [7; 32];
                    bytes[..8].copy_from_slice(&self.names.to_le_bytes());
                    self.engine.handle(now, Event::Entropy(bytes));
                }
                action => done.push(action),
            }
        }
        done
    }

    /// Lets the time pass; what was done meanwhile.
    fn wait(&mut self, time: Duration) -> Vec<Action> {
        let until = self.now + time;
        let mut done = Vec::new();
        while let Some(at) = self.engine.next_deadline().map(Mono::since_start).filter(|at| *at <= until) {
            self.now = self.now.max(at);
            done.extend(self.feed(Event::Tick));
        }
        self.now = until;
        done
    }

    fn head(session: Option<&str>) -> Head {
        Head { session: session.map(Into::into), takes_json: true, takes_events: true, ..Head::default() }
    }

    fn post(&mut self, head: Head, body: &str) -> (ExchangeId, Vec<Action>) {
        self.exchanges += 1;
        let exchange = ExchangeId(self.exchanges);
        let line = scan(Bytes::copy_from_slice(body.as_bytes()));
        (exchange, self.feed(Event::Posted(exchange, Box::new(head), line)))
    }

    fn get(&mut self, session: &str, last: &str) -> Vec<Action> {
        self.exchanges += 1;
        let head = Head { last_event: Some(last.into()), ..Service::head(Some(session)) };
        self.feed(Event::Got(ExchangeId(self.exchanges), Box::new(head)))
    }

    fn answer(&mut self, attempt: u64, result: &str) -> Vec<Action> {
        let line = format!(r#"{{"jsonrpc":"2.0","id":{attempt},"result":{result}}}"#);
        self.feed(Event::FromServer(ServerId(1), Run(0), scan(line.into())))
    }

    /// The handshake of one more session: its name.
    fn session(&mut self) -> String {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
        let (_, mut done) = self.post(Service::head(None), initialize);
        if let Some(attempt) = attempt(&done) {
            self.feed(Event::Started(ServerId(1), Run(0)));
            done.extend(self.answer(attempt, r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#));
        }
        let named = done.iter().find_map(|action| match action {
            Action::Respond(_, response) => response.session.clone(),
            _ => None,
        });
        named.expect("a session").into()
    }
}

/// The number of the request that a server gets.
fn attempt(done: &[Action]) -> Option<u64> {
    done.iter().find_map(|action| match action {
        Action::ToServer(_, message) => match scan(Bytes::from(message.to_vec())) {
            Ok(Scanned::Message(message)) => {
                std::str::from_utf8(message.raw(Field::Id)?).ok()?.trim_matches('"').parse().ok()
            }
            _ => None,
        },
        _ => None,
    })
}

fn status(done: &[Action]) -> Option<u16> {
    done.iter().find_map(|action| match action {
        Action::Respond(_, response) => Some(response.status),
        _ => None,
    })
}

/// The id of the first event on a stream.
fn first_event(done: &[Action]) -> String {
    let first = done.iter().find_map(|action| match action {
        Action::Write(_, bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        _ => None,
    });
    let first = first.expect("an event");
    first.lines().next().and_then(|line| line.strip_prefix("id: ")).expect("an id").to_owned()
}

#[test]
fn of_too_many_sessions_that_sleep_the_oldest_is_forgotten() {
    let _bounds = reaches(&[Bound::SLEEPERS]);
    let mut service = Service::new();
    let names: Vec<String> = (0..=SLEEPERS).map(|_| service.session()).collect();
    service.wait(Duration::from_secs(10 * 60));
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let mut uses = |name: &str| status(&service.post(Service::head(Some(name)), ping).1);
    assert_eq!(uses(&names[0]), Some(404));
    assert_ne!(uses(&names[1]), Some(404));
}

/// Sessions keep what fits into all of them together; who misses what does not is told so.
#[test]
fn what_does_not_fit_into_all_sessions_is_not_kept() {
    let _bounds = reaches(&[Bound::EVENTS_BYTES]);
    let mut service = Service::new();
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(SESSION_BYTES - 1_000));
    let left: Vec<(String, String)> = (0..=EVENTS_BYTES / SESSION_BYTES)
        .map(|_| {
            let name = service.session();
            let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}"#;
            let (exchange, done) = service.post(Service::head(Some(&name)), call);
            service.feed(Event::HungUp(exchange));
            service.answer(attempt(&done).expect("an attempt"), &large);
            (name, first_event(&done))
        })
        .collect();
    let mut comes_back = |at: usize| status(&service.get(&left[at].0, &left[at].1));
    assert_eq!(comes_back(0), Some(200));
    assert_eq!(comes_back(EVENTS_BYTES / SESSION_BYTES), Some(400));
}

/// A session that wakes is not told to its server with what was too long to remember.
#[test]
fn what_is_too_long_to_remember_is_not_told_to_the_next_server() {
    let _bounds = reaches(&[Bound::SETUP_BYTES]);
    let mut service = Service::new();
    let name = service.session();
    let subscribe = |uri: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#)
    };
    for uri in ["short".to_owned(), "x".repeat(SETUP_BYTES)] {
        let (_, done) = service.post(Service::head(Some(&name)), &subscribe(&uri));
        service.answer(attempt(&done).expect("an attempt"), "{}");
    }
    service.wait(Duration::from_secs(10 * 60));
    service.post(Service::head(Some(&name)), r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    let mut told = Vec::new();
    let handshake = attempt(&service.feed(Event::Started(ServerId(2), Run(0)))).expect("a handshake");
    let welcome = format!(
        r#"{{"jsonrpc":"2.0","id":{handshake},"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}"#
    );
    for action in service.feed(Event::FromServer(ServerId(2), Run(0), scan(welcome.into()))) {
        if let Action::ToServer(_, message) = action {
            told.push(String::from_utf8_lossy(&message.to_vec()).into_owned());
        }
    }
    let subscribed: Vec<&String> = told.iter().filter(|line| line.contains("resources/subscribe")).collect();
    assert!(subscribed.len() == 1 && subscribed[0].contains("short"), "{}", told.len());
}

/// An answer that nobody fetched is dropped if there is no room for it, and who asks again runs the call again.
#[test]
fn answers_that_nobody_fetches_are_kept_as_far_as_there_is_room() {
    let _bounds = reaches(&[Bound::UNFETCHED_BYTES]);
    let mut service = Service::new();
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(UNFETCHED_BYTES / 2 - 1_000));
    let call = |service: &mut Service, key: usize| {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}},"dev.outlast/idempotencyKey":"{key}"}}}}}}"#
        );
        let (version, method, name) =
            (Some("2026-07-28".into()), Some("tools/call".into()), Some("x".into()));
        service
            .post(Head { version, method, name, principal: Some("ann".into()), ..Service::head(None) }, &body)
    };
    for key in 0..3 {
        let (exchange, done) = call(&mut service, key);
        if key == 0 {
            service.feed(Event::Started(ServerId(1), Run(0)));
        }
        service.feed(Event::HungUp(exchange));
        service.answer(attempt(&done).expect("an attempt"), &large);
    }
    let (_, kept) = call(&mut service, 0);
    let answered = |action: &Action| matches!(action, Action::Respond(_, response) if matches!(response.body, Body::Json(_)));
    assert!(attempt(&kept).is_none() && kept.iter().any(answered));
    let (_, dropped) = call(&mut service, 2);
    assert!(attempt(&dropped).is_some(), "{}", dropped.len());
}
