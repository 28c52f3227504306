//! Plays any bytes as a story: each line is an event, its first byte says which. For the fuzzer.

pub mod http;

use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::wire::Oversized;
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, Restart, ServerConfig, Wall, wire};
use std::time::Duration;

const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

/// Panics if the engine does, or if one of its invariants breaks.
pub fn play(story: &[u8]) {
    let restarts = story.first().is_some_and(|byte| byte % 2 == 1);
    let manner = if restarts { Manner::TimeoutMcp } else { Manner::Wrap };
    let restart = [Restart::Never, Restart::OnCrash, Restart::OnHang, Restart::OnTimeout][story.len() % 4];
    let server = ServerConfig { restart, trust: restarts, ..ServerConfig::default() };
    let mut engine = Engine::new(Config { manner, ..server.into() });
    let mut now = Duration::ZERO;
    let mut run = Run(0);
    feed(&mut engine, now, &mut run, Event::Opened(CLIENT, SERVER));
    for line in story.split(|byte| *byte == b'\n') {
        let Some((first, rest)) = line.split_first() else { continue };
        now += Duration::from_millis(u64::from(*first));
        let event = event(*first, rest, run, &mut now);
        feed(&mut engine, now, &mut run, event);
        if let Err(broken) = engine.check_invariants() {
            panic!("{broken}");
        }
    }
}

fn event(first: u8, rest: &[u8], run: Run, now: &mut Duration) -> Event {
    let bytes = Bytes::copy_from_slice(rest);
    match first % 16 {
        0..6 => Event::FromClient(CLIENT, wire::scan(bytes)),
        6..10 => Event::FromServer(SERVER, run, wire::scan(bytes)),
        10 => {
            *now += Duration::from_secs(60 * u64::from(first));
            Event::Tick
        }
        11 => Event::Started(SERVER, run),
        12 => match rest.len() % 6 {
            0 => Event::Exited(SERVER, run, Exit::Code(first)),
            1 => Event::OutputClosed(SERVER, run),
            2 => Event::StartFailed(SERVER, run, StartFailure::NotFound),
            3 => Event::Stderr(SERVER, run, bytes),
            4 => Event::InputBroken(SERVER, run, wire::scan_message(bytes).into_iter().collect()),
            _ => Event::Sampled(SERVER, None),
        },
        13 => Event::ServerOversized(SERVER, run, Oversized { id: Some(bytes), answer: first > 100 }),
        14 => Event::ClientOversized(CLIENT, Oversized { id: Some(bytes), answer: first > 100 }),
        _ => match rest.len() % 4 {
            0 => Event::ClientEof(CLIENT),
            1 => Event::ClientGone(CLIENT),
            2 => Event::Congested(CLIENT, first > 128),
            _ => Event::Stop(15),
        },
    }
}

fn feed(engine: &mut Engine, now: Duration, run: &mut Run, event: Event) {
    let now = Now { mono: Mono::after_start(now), wall: Wall(0) };
    engine.handle(now, event);
    while let Some(action) = engine.poll() {
        match action {
            Action::ToClient(_, message) | Action::ToServer(_, message) => {
                assert_eq!(message.len(), message.to_vec().len());
            }
            Action::Start(_, next) => *run = next,
            Action::Note(note) => drop(note.to_string()),
            _ => {}
        }
    }
}
