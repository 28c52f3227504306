//! A recording holds everything that happened, so that it can happen again.

use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::hold::{Decision, Hold, NewHold, Scope, Standing, Verdict};
use outlast_engine::http::{Head, StreamEnd, Trouble};
use outlast_engine::id::{AttemptId, ClientId, ExchangeId, Run, ServerId};
use outlast_engine::idempotency::KeyPlace;
use outlast_engine::life::Sample;
use outlast_engine::memory::Memory;
use outlast_engine::method::Method;
use outlast_engine::policy::{Selector, Standing as By};
use outlast_engine::profile::Profile;
use outlast_engine::record::{Answer, Faces, Head as RecordHead, Origin, Record, State, Ticket};
use outlast_engine::recording::{Entry, FORMAT, Header, Player, Recorder, Unreadable};
use outlast_engine::settings::{Glob, Key, Value};
use outlast_engine::step::CallNo;
use outlast_engine::store::{
    self, Committed, Done, Found, Hint, Mail, Measured, Name, News, Refusal, Session,
};
use outlast_engine::wire::{Outgoing, Oversized, scan};
use outlast_engine::{
    ClientRule, Config, Engine, Event, Exposure, Mono, Now, Rate, Reload, Rights, ServerConfig, Wall,
};
use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

const CLIENT: ClientId = ClientId(3);
const SERVER: ServerId = ServerId(4);
const RUN: Run = Run(5);

fn now(ms: u64) -> Now {
    Now { mono: Mono::after_start(Duration::from_millis(ms)), wall: Wall(ms) }
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

fn lines() -> Vec<Bytes> {
    let latin1 = Bytes::from_static(b"{\"id\":1,\"result\":\"\xe9\"}");
    let texts = [
        r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
        r#"[{"id":1,"method":"ping"},{"no":"message"}]"#,
        "[]",
        "no JSON \u{7}",
    ];
    texts.map(bytes).into_iter().chain([latin1]).collect()
}

fn record() -> Record {
    let origin = Origin {
        principal: "ann".into(),
        server: "s".into(),
        method: "tools/call".into(),
        tool: "t".into(),
        key: Some("k".into()),
    };
    let head = RecordHead {
        ticket: Ticket::of(&[7; 16]),
        origin,
        faces: Faces::RESUME.with(Faces::LEGACY_TASK),
        state: State::InputRequired,
        created: Wall(1),
        updated: Wall(2),
        expires: Some(Wall(3)),
        body: bytes("{}"),
        number: 4,
        revision: 5,
        epoch: 6,
        owner: "me".into(),
    };
    Record { head, request: bytes("{}"), answer: Some(Answer::Error(bytes("{}"))) }
}

fn hold() -> Hold {
    let about = NewHold {
        key: "k".into(),
        principal: "ann".into(),
        server: "s".into(),
        name: "srv".into(),
        tool: "t".into(),
        arguments: "{}".into(),
        client: "c".into(),
        session: "".into(),
        keep: Duration::from_secs(1),
    };
    let verdict =
        Verdict { yes: true, scope: Scope::Minutes, reason: "".into(), place: "".into(), by: "ann".into() };
    let decision = Decision { verdict, at: Wall(1) };
    Hold { decision: Some(decision), ..Hold::new(7, about, "me", Wall(1)) }
}

fn found() -> Vec<Found> {
    let session = Session {
        name: Name("n".into()),
        principal: "ann".into(),
        initialize: bytes("{}"),
        initialized: Bytes::new(),
        setup: bytes("[]"),
        epoch: 1,
    };
    vec![
        Found::Record(Some(record().into())),
        Found::Heads(vec![record().head]),
        Found::Mail(true),
        Found::Events { last: 7, events: vec![(7, bytes("data: {}\n\n"))], lives: true },
        Found::Session(Some(session.into())),
        Found::News(vec![News { stream: Name("n".into()), events: vec![(7, bytes("x"))], lives: true }]),
        Found::Session(None),
        Found::Shown(vec![bytes("{}")]),
        Found::Holds(vec![hold()]),
        Found::Decided(vec![1]),
    ]
}

fn done() -> Vec<Done> {
    let input = (Ticket::of(&[1; 32]), Mail::Input(bytes("{}")));
    vec![
        Done::Written(1),
        Done::Claimed(vec![record().head]),
        Done::Mail(vec![input, (Ticket::of(&[2; 16]), Mail::Wake)]),
        Done::Forwarded(vec![(Name("n".into()), bytes("{}"))]),
        Done::Told(vec![bytes("{}")]),
        Done::Held(Standing::Granted(1)),
        Done::Decided(hold().decision.map(Box::new)),
        Done::Kept,
    ]
}

/// At least one of every kind.
fn events() -> Vec<Event> {
    let head = Head { server: Some("s".into()), params: vec![("A".into(), "b".into())], ..Head::default() };
    let end = StreamEnd {
        resumable: true,
        retry: Some(Duration::from_millis(5)),
        opened: true,
        status: None,
        why: "x".into(),
    };
    let message = outlast_engine::wire::scan_message(lines()[0].clone()).expect("a message");
    let memory = Memory {
        client: u64::MAX,
        method: Method::Initialize,
        result: Box::from(&b"{}"[..]),
        lists: vec![(Method::new("x/y"), Box::from(&b"[]"[..]))],
    };
    let sample = Sample {
        at: now(1).mono,
        cpu: Duration::from_nanos(1),
        bytes: 1,
        switches: 2,
        stderr: 3,
        processes: 4,
    };
    let status = Trouble::Status {
        status: 429,
        retry_after: Some(Duration::from_secs(1)),
        had_session: true,
        body: bytes("no"),
    };
    let reload = Reload { servers: vec![Arc::new(server())], separator: "-".into(), ..Reload::default() };
    let measured = Measured { server: "s".into(), tool: "t".into(), tally: Default::default() };
    let refused = store::Trouble::Refused { at: 1, why: Refusal::Full("records".into()) };
    let mut events = vec![
        Event::Begin,
        Event::Opened(CLIENT, SERVER),
        Event::Entered(CLIENT),
        Event::Remembered(SERVER, vec![memory]),
        Event::ClientOversized(CLIENT, Oversized { id: Some(bytes("7")), answer: true }),
        Event::ServerOversized(SERVER, RUN, Oversized::default()),
        Event::ClientEof(CLIENT),
        Event::ClientGone(CLIENT),
        Event::Congested(CLIENT, true),
        Event::Started(SERVER, RUN),
        Event::StartFailed(SERVER, RUN, StartFailure::Refused(12)),
        Event::Exited(SERVER, RUN, Exit::Signal(9)),
        Event::OutputClosed(SERVER, RUN),
        Event::InputBroken(SERVER, RUN, vec![message]),
        Event::Stderr(SERVER, RUN, Bytes::from_static(b"\xff\n")),
        Event::Sampled(SERVER, Some(sample)),
        Event::Sampled(SERVER, None),
        Event::Got(ExchangeId(1), head.clone().into()),
        Event::Deleted(ExchangeId(1), head.clone().into()),
        Event::HungUp(ExchangeId(1)),
        Event::Stored(1, Ok(Committed { at: Wall(1), done: done() })),
        Event::Stored(2, Err(refused)),
        Event::StoreLost("why".into()),
        Event::Loaded(2, Err(store::Trouble::Failed("why".into()))),
        Event::Hinted(Hint::News),
        Event::Entropy([9; 32]),
        Event::Identity("me".into()),
        Event::StreamEnded(SERVER, RUN, AttemptId(1), end.clone()),
        Event::StandingEnded(SERVER, RUN, end),
        Event::Trouble(SERVER, RUN, Some(AttemptId(1)), status),
        Event::Trouble(SERVER, RUN, None, Trouble::Unreachable("x".into())),
        Event::Undelivered(SERVER, RUN, Outgoing::plain("{}"), "x".into()),
        Event::Warm,
        Event::Reload(reload.into()),
        Event::Measured(vec![measured]),
        Event::CancelCall(CallNo(NonZeroU64::MIN), "ann".into()),
        Event::RestartServer("s".into()),
        Event::Slept(Duration::from_secs(3600)),
        Event::Stop(15),
        Event::Tick,
    ];
    events.extend(found().into_iter().map(|found| Event::Loaded(1, Ok(found))));
    for line in lines() {
        events.push(Event::FromClient(CLIENT, scan(line.clone())));
        events.push(Event::FromServer(SERVER, RUN, scan(line.clone())));
        events.push(Event::FromStream(SERVER, RUN, AttemptId(1), scan(line.clone())));
        events.push(Event::Posted(ExchangeId(1), head.clone().into(), scan(line)));
    }
    events
}

fn server() -> ServerConfig {
    let mut server = ServerConfig { name: "srv".into(), program: u64::MAX, ..ServerConfig::default() };
    let glob = || Glob::new("{a,b}*").expect("a glob");
    let rules = Arc::make_mut(&mut server.rules);
    rules.write(By::Server, Selector::Tools(glob()), Key::Timeout, Value::Time(None), "here");
    rules.bare(Key::Rate, Value::Rate(Some(Rate { calls: 1, every: Duration::from_secs(1) })), "there");
    let exposure =
        Exposure { allow: vec![glob()], aliases: vec![("a".into(), "b".into())], ..Exposure::default() };
    server.exposure = exposure.into();
    server
}

fn config() -> Config {
    let rule = ClientRule {
        glob: Glob::new("c*").expect("a glob"),
        cap: None,
        hand_off: Some(false),
        servers: None,
        expose: None,
        callback: None,
        source: "here".into(),
    };
    let mut config = Config::from(server());
    config.others.push(server().into());
    config.clients.push(rule.into());
    config.rights.insert("ann".into(), Rights::default());
    config.key_places.push(KeyPlace::parse("params.a.b").expect("a place"));
    config.profiles.written.push(Profile::parse("x=cap:60s,progress:no,version:1+", "here").expect("a row"));
    config.max_message = usize::MAX;
    config.seed = u64::MAX;
    config
}

/// As a program would print it, for what has no equality.
fn shown(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

#[test]
fn every_event_is_read_back_as_it_was() {
    for event in events() {
        let line = Entry::Event(now(7), event.clone()).line();
        let read = Entry::read(line.trim_end()).unwrap_or_else(|why| panic!("{why}: {line}"));
        let Entry::Event(at, same) = &read else { panic!("{line}") };
        assert_eq!((*at, shown(same)), (now(7), shown(&event)));
        assert_eq!(read.line(), line);
    }
}

#[test]
fn a_configuration_is_read_back_as_it_was() {
    let line = Recorder::header(&config(), "1.2.3");
    let header = Header::read(line.trim_end()).expect("a header");
    assert_eq!((header.format, &*header.outlast), (FORMAT, "1.2.3"));
    assert_eq!(shown(&header.config), shown(&config()));
    assert!(!line.contains("claude-code"), "what every build has is not written: {line}");
}

/// An older outlast had fewer settings.
#[test]
fn what_an_older_recording_does_not_say_is_as_if_nobody_had_written_it() {
    let header = Header::read(r#"{"recording":{"format":1,"outlast":"0","config":{"server":{"name":"x"}}}}"#);
    let config = header.expect("a header").config;
    assert_eq!((&*config.server.name, config.drain), ("x", Config::default().drain));
}

#[test]
fn a_newer_format_is_refused_without_being_understood() {
    let newer = r#"{"recording":{"format":2,"outlast":"9","config":7,"more":1}}"#;
    assert_eq!(Header::read(newer).unwrap_err(), Unreadable::Newer { format: 2, outlast: "9".into() });
    for other in ["", "{}", "[]", r#"{"event":[{"mono":1,"wall":1},"Tick"]}"#] {
        assert_eq!(Header::read(other).unwrap_err(), Unreadable::NotARecording, "{other}");
    }
    let unknown = Entry::read(r#"{"event":[{"mono":1,"wall":1},{"Later":1}]}"#).unwrap_err();
    assert!(
        unknown.to_string().starts_with("this line is damaged: unknown variant `Later` at column "),
        "{unknown}"
    );
}

/// A small run, as a driver records it.
fn small_run() -> Vec<String> {
    let config = Config::default();
    let mut lines = vec![Recorder::header(&config, "1")];
    let (mut engine, mut recorder) = (Engine::new(config), Recorder::default());
    let call = scan(bytes(r#"{"id":1,"method":"tools/call","params":{"name":"x"}}"#));
    let answer = scan(bytes(r#"{"id":1,"result":{}}"#));
    for (ms, event) in [
        (0, Event::Opened(ClientId(0), ServerId(0))),
        (1, Event::Started(ServerId(0), Run(0))),
        (2, Event::FromClient(ClientId(0), call)),
        (3, Event::FromServer(ServerId(0), Run(0), answer)),
    ] {
        lines.push(recorder.event(now(ms), &event));
        engine.handle(now(ms), event);
        while let Some(action) = engine.poll() {
            recorder.action(&action);
        }
    }
    lines.push(recorder.rest());
    lines.concat().lines().map(str::to_owned).collect()
}

/// What differs when these lines are played.
fn differences(lines: &[String]) -> Vec<String> {
    let mut player = Player::new(Header::read(&lines[0]).expect("a header"));
    let mut moments = Vec::new();
    for line in &lines[1..] {
        moments.extend(player.take(Entry::read(line).expect(line)).expect(line));
    }
    moments.extend(player.last());
    moments.iter().filter_map(|moment| moment.difference()).map(|difference| shown(&difference)).collect()
}

#[test]
fn the_same_events_make_the_same_decisions() {
    let run = small_run();
    assert_eq!(differences(&run), Vec::<String>::new());
    // A recording may end anywhere.
    for end in 1..run.len() {
        assert_eq!(differences(&run[..end]), Vec::<String>::new());
    }
}

#[test]
fn a_decision_that_is_not_as_it_was_is_found() {
    let mut other = small_run();
    let call = other.iter_mut().find(|line| line.contains(">> tools/call 1")).expect("the call");
    *call = call.replace(">> tools/call 1", ">> tools/call 2");
    assert_eq!(
        differences(&other),
        [r#"Difference { recorded: Some(">> tools/call 2"), decided: Some(">> tools/call 1") }"#]
    );
    let mut less = small_run();
    less.retain(|line| !line.contains(">> tools/call 1"));
    assert_eq!(differences(&less), [r#"Difference { recorded: None, decided: Some(">> tools/call 1") }"#]);
}

#[test]
fn lines_that_cannot_stand_where_they_are_are_told() {
    let header = || Header::read(&small_run()[0]).expect("a header");
    let answer = Entry::Answer(Event::Entropy([1; 32]));
    for first in [answer, Entry::Did(vec!["x".into()]), Entry::Recording(header().into())] {
        assert!(matches!(Player::new(header()).take(first), Err(Unreadable::Misplaced(_))));
    }
    let mut player = Player::new(header());
    player.take(Entry::Truncated("full".into())).expect("the end");
    assert_eq!(player.truncated(), Some("full"));
    assert!(player.take(Entry::Event(now(1), Event::Tick)).is_err());
}
