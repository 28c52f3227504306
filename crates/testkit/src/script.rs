//! Scenarios as text: what happens, and what the engine does about it.
//!
//! A scenario is a transcript. Lines that begin with a word of [`World::input`] are events; the
//! lines after them are what must come out, in order and nothing else:
//!
//! ```text
//! set timeout 30s
//! > {"id":1,"method":"tools/call","params":{"name":"x"}}      the client sends
//! >> {"id":1,…}                                               the server gets
//! wait 30s
//! @30s                                                        what follows happens at this time
//! << {"jsonrpc":"2.0","id":1,"error":…}                       the client gets
//! !! warn: timeout …                                          a note
//! ```
//!
//! Inside an expected line `…` stands for any text.

use bytes::Bytes;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::life::Sample;
use outlast_engine::memory::Memory;
use outlast_engine::settings::{Key, Kind, Setting, parse_duration, show_duration};
use outlast_engine::wire::Oversized;
use outlast_engine::{Action, Config, Engine, Event, Level, Manner, Mono, Now, Restart, Wall, wire};
use std::time::Duration;

const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

/// Plays a scenario and compares; panics with both transcripts if they differ.
pub fn check(scenario: &str) {
    let expected: Vec<&str> = lines(scenario).collect();
    let mut world = World::default();
    let mut actual: Vec<String> = Vec::new();
    for line in &expected {
        if is_output(line) {
            continue;
        }
        actual.push((*line).to_owned());
        actual.extend(world.input(line));
    }
    let same = expected.len() == actual.len()
        && expected.iter().zip(&actual).all(|(expected, actual)| agrees(expected, actual));
    assert!(same, "expected:\n{}\n\nactual:\n{}\n", expected.join("\n"), actual.join("\n"));
    if let Err(broken) = world.engine.check_invariants() {
        panic!("after the scenario: {broken}");
    }
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
}

fn is_output(line: &str) -> bool {
    [">> ", "<< ", "!! ", ".. ", "@"].iter().any(|mark| line.starts_with(mark))
}

/// Equal, where `…` stands for any text.
fn agrees(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = parts.next().and_then(|first| actual.strip_prefix(first)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// An engine with a clock that moves only when told.
#[derive(Debug)]
pub struct World {
    /// The engine under test.
    pub engine: Engine,
    config: Config,
    now: Duration,
    run: Run,
    open: bool,
    work: u64,
    /// What samples of the server show.
    looks: String,
    /// What was kept for the next start.
    kept: Vec<Memory>,
}

impl Default for World {
    fn default() -> Self {
        let config = Config { server_name: "srv".into(), command: "srv".into(), ..Config::default() };
        World {
            engine: Engine::new(config.clone()),
            config,
            now: Duration::ZERO,
            run: Run(0),
            open: false,
            work: 0,
            looks: "still".into(),
            kept: Vec::new(),
        }
    }
}

impl World {
    /// Takes one input line and gives what came out.
    pub fn input(&mut self, line: &str) -> Vec<String> {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "set" {
            self.set(rest);
            return Vec::new();
        }
        if word == "again" {
            // Another process, another day; only what was kept is still there.
            (self.open, self.run) = (false, Run(0));
            return Vec::new();
        }
        if word == "looks" {
            self.looks = rest.to_owned();
            return Vec::new();
        }
        let mut out = Vec::new();
        if !self.open {
            self.open = true;
            self.engine = Engine::new(self.config.clone());
            self.feed(Event::Remembered(SERVER, self.kept.clone()));
            let first = self.feed(Event::Opened(CLIENT, SERVER));
            assert_eq!(first, [".. start 0"]);
            self.feed(Event::Started(SERVER, self.run));
        }
        if word == "wait" {
            self.wait(parse_duration(rest).expect(line), &mut out);
            return out;
        }
        let event = self.event(word, rest).unwrap_or_else(|| panic!("not an input: {line}"));
        self.feed(event)
    }

    fn event(&mut self, word: &str, rest: &str) -> Option<Event> {
        let bytes = || Bytes::copy_from_slice(rest.as_bytes());
        // `ID answer`, `ID request` or nothing.
        let oversized = || {
            let (id, kind) = rest.split_once(' ').unwrap_or((rest, "answer"));
            let id = (!id.is_empty()).then(|| Bytes::copy_from_slice(id.as_bytes()));
            Oversized { id, answer: kind == "answer" }
        };
        Some(match word {
            ">" => Event::FromClient(CLIENT, wire::scan(&bytes())),
            "<" => Event::FromServer(SERVER, self.run, wire::scan(&bytes())),
            // A line of the process before this one.
            "<old" => Event::FromServer(SERVER, Run(self.run.0 - 1), wire::scan(&bytes())),
            "<latin1" => {
                let line: Vec<u8> = rest.chars().map(|c| c as u8).collect();
                Event::FromServer(SERVER, self.run, wire::scan(&line.into()))
            }
            "client-oversized" => Event::ClientOversized(CLIENT, oversized()),
            "server-oversized" => Event::ServerOversized(SERVER, self.run, oversized()),
            "eof" => Event::ClientEof(CLIENT),
            "gone" => Event::ClientGone(CLIENT),
            "congested" => Event::Congested(CLIENT, rest == "on"),
            "started" => Event::Started(SERVER, self.run),
            "start-failed" => Event::StartFailed(SERVER, self.run, start_failure(rest)),
            "exited" => Event::Exited(SERVER, self.run, exit(rest)),
            "output-closed" => Event::OutputClosed(SERVER, self.run),
            "input-broken" => Event::InputBroken(SERVER, self.run),
            "stderr" => Event::Stderr(SERVER, self.run, bytes()),
            "slept" => Event::Slept(parse_duration(rest).ok()?),
            "stop" => Event::Stop(rest.parse().ok()?),
            "tick" => Event::Tick,
            _ => return None,
        })
    }

    fn set(&mut self, text: &str) {
        let (name, value) = text.split_once(' ').unwrap_or((text, ""));
        match name {
            "timeout-mcp" => {
                self.config.manner = Manner::TimeoutMcp;
                self.config.restart =
                    if value == "auto-restart" { Restart::OnTimeout } else { Restart::Never };
                return;
            }
            "restart" => {
                self.config.restart = match value {
                    "never" => Restart::Never,
                    "on-crash" => Restart::OnCrash,
                    "on-hang" => Restart::OnHang,
                    _ => Restart::OnTimeout,
                };
                return;
            }
            "trust" => return self.config.trust = true,
            "instant" => return self.config.instant = true,
            "restart-intensity" => return self.config.restart_intensity = value.parse().expect(text),
            "cancel-grace" => return self.config.cancel_grace = parse_duration(value).expect(text),
            "drain" => return self.config.drain = parse_duration(value).expect(text),
            _ => {}
        }
        let setting = Setting::named(name).unwrap_or_else(|| panic!("no setting {name}"));
        if setting.kind == Kind::Rules {
            let key = if setting.key == Key::Tool { Key::Tool } else { Key::Method };
            self.config.rules.add(key, value, &format!("--{name}")).expect(text);
        } else {
            self.config.rules.bare(setting.key, setting.parse(value).expect(text), &format!("--{name}"));
        }
    }

    /// `looks none`: samples cannot be taken; `still`: nothing happens; `busy`: work is done.
    fn sample(&mut self) -> Option<Sample> {
        if self.looks == "none" {
            return None;
        }
        self.work += u64::from(self.looks == "busy");
        let at = Mono::after_start(self.now);
        Some(Sample { at, cpu: Duration::ZERO, bytes: self.work, switches: 0, stderr: 0, processes: 1 })
    }

    /// Moves the clock on, from deadline to deadline.
    fn wait(&mut self, time: Duration, out: &mut Vec<String>) {
        let end = self.now + time;
        while let Some(next) = self.engine.next_deadline().map(Mono::since_start).filter(|next| *next <= end)
        {
            self.now = self.now.max(next);
            let done = self.feed(Event::Tick);
            if !done.is_empty() {
                out.push(format!("@{}", show_duration(self.now)));
                out.extend(done);
            }
        }
        self.now = end;
    }

    fn feed(&mut self, event: Event) -> Vec<String> {
        let now = Now { mono: Mono::after_start(self.now), wall: Wall(0) };
        self.engine.handle(now, event);
        let mut out = Vec::new();
        while let Some(action) = self.engine.poll() {
            match action {
                Action::Start(_, run) => self.run = run,
                Action::Remember(_, ref memory) => self.kept = vec![(**memory).clone()],
                Action::Forget(_) => self.kept.clear(),
                Action::Sample(server) => {
                    let sample = self.sample();
                    self.engine.handle(now, Event::Sampled(server, sample));
                }
                _ => {}
            }
            if !matches!(&action, Action::Note(note) if note.level() == Level::Debug) {
                out.push(show(&action));
            }
        }
        out
    }
}

fn exit(text: &str) -> Exit {
    match text.strip_prefix("signal ") {
        Some(signal) => Exit::Signal(signal.parse().expect(text)),
        None => Exit::Code(text.parse().expect(text)),
    }
}

fn start_failure(text: &str) -> StartFailure {
    match text {
        "not-found" => StartFailure::NotFound,
        "not-executable" => StartFailure::NotExecutable,
        errno => StartFailure::Refused(errno.parse().expect(text)),
    }
}

fn show(action: &Action) -> String {
    let text = |message: &wire::Outgoing| String::from_utf8_lossy(&message.to_vec()).into_owned();
    match action {
        Action::ToClient(_, message) => format!("<< {}", text(message)),
        Action::ToServer(_, message) => format!(">> {}", text(message)),
        Action::Start(_, run) => format!(".. start {}", run.0),
        Action::CloseInput(_) => ".. close-input".into(),
        Action::Terminate(_) => ".. terminate".into(),
        Action::Kill(_) => ".. kill".into(),
        Action::Sample(_) => ".. sample".into(),
        Action::Remember(_, memory) => {
            format!(".. remember {} and {} lists", memory.method.as_str(), memory.lists.len())
        }
        Action::Forget(_) => ".. forget".into(),
        Action::Note(note) => format!("!! {}: {note}", format!("{:?}", note.level()).to_lowercase()),
        Action::End { status, .. } => format!(".. end {status}"),
    }
}
