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

mod words;

use crate::ledger::Ledger;
use crate::tape::Tape;
use bytes::Bytes;
use outlast_engine::callback::When;
use outlast_engine::durations::Tally;
use outlast_engine::hold::{Scope, Verdict};
use outlast_engine::id::{AttemptId, ClientId, ExchangeId, Run, ServerId};
use outlast_engine::idempotency::KeyPlace;
use outlast_engine::life::Sample;
use outlast_engine::memory::Memory;
use outlast_engine::profile::{Learn, Profile};
use outlast_engine::record::{Answer, Body as RecordBody, Change, Faces, New, Origin, State, Ticket};
use outlast_engine::recording::{show, written};
use outlast_engine::settings::{Glob, Key, Kind, Setting, parse_duration, show_duration};
use outlast_engine::snapshot::OpenCall;
use outlast_engine::step::{CallNo, Observed, Outcome};
use outlast_engine::store::{
    Committed, Hint, Mail, Measured, Query, Refusal, Trouble as StoreTrouble, Write,
};
use outlast_engine::wire::Oversized;
use outlast_engine::{
    Action, ClientCap, Config, Engine, Event, Level, Manner, Mono, Now, Reload, Restart, ServerConfig, Share,
    Transport, Wall, wire,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use words::{
    called_back, client_rule, exit, expose, head, rights, sighting, start_failure, stream_end, trouble,
};

/// Clients whose limits are known, for `set profiles`.
const HASTY: &str = "
    hasty*=version:1+,cap:60s,progress:no,measured:2026-11-18
    hasty=cap:60s,progress:no,measured:2026-11-18
    talkative=cap:15s,progress:yes,token:yes,total:10m,measured:2026-11-18
    twin=token:no,cap:60s,progress:no,measured:2026-11-18
    twin=token:no,cap:30s,progress:no,measured:2026-11-18
";

const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

thread_local! {
    /// Inputs that were taken by the worlds of this thread.
    static PLAYED: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

/// What a test plays by hand counts too.
pub fn plays() {
    PLAYED.set(PLAYED.get() + 1);
}

/// Inputs that were taken by the worlds of this thread so far.
pub fn played() -> u64 {
    PLAYED.get()
}

/// Plays a scenario and compares; panics with both transcripts if they differ.
#[track_caller]
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
    [">> ", "<< ", "!! ", ".. ", "%% ", "@"].iter().any(|mark| line.starts_with(mark))
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
    /// The run of each server.
    runs: BTreeMap<ServerId, Run>,
    /// The server that was started last.
    server: ServerId,
    /// Sessions that got a name.
    names: u8,
    open: bool,
    work: u64,
    /// What samples of the server show.
    looks: String,
    /// What was kept for the next start.
    kept: Vec<Memory>,
    ledger: Ledger,
    /// How what is looked up by name comes back: `reads later`, `reads fail`, `reads now`.
    reads: String,
    /// What was looked up and waits for `read`.
    unread: Vec<(u64, Look)>,
    /// What is to be written, by number.
    submitted: BTreeMap<u64, (u64, Vec<Write>)>,
    /// The last of these numbers. What is looked up has one too; what is done every second has none.
    submissions: u64,
    /// The process, counted by `again` and `beside`.
    life: u32,
    /// Processes that live beside this one and do nothing until `process` lets them go on.
    others: BTreeMap<u32, Parked>,
    /// How far the clock of this process is ahead of the store's.
    fast: Duration,
    /// The kind of every action so far, in order: what an onlooker with a stopwatch could tell apart.
    pub trace: Vec<String>,
    tape: Tape,
}

/// What a process waits for the store to tell it before it does anything else.
#[derive(Debug)]
enum Look {
    Query(Query),
    /// A session is taken over, which tells what is stored of it.
    Take(Vec<Write>),
}

/// A process that is not the one that the scenario is about just now.
#[derive(Debug)]
struct Parked {
    engine: Engine,
    runs: BTreeMap<ServerId, Run>,
    server: ServerId,
    submitted: BTreeMap<u64, (u64, Vec<Write>)>,
    submissions: u64,
}

impl Default for World {
    fn default() -> Self {
        let server = ServerConfig { name: "srv".into(), command: "srv".into(), ..ServerConfig::default() };
        let config = Config {
            // So that a scenario shows at once what would wait a moment to leave in one piece.
            stream_head: Duration::ZERO,
            ..server.into()
        };
        World {
            engine: Engine::new(config.clone()),
            config,
            now: Duration::ZERO,
            runs: BTreeMap::new(),
            server: SERVER,
            names: 0,
            open: false,
            work: 0,
            looks: "still".into(),
            kept: Vec::new(),
            ledger: Ledger::default(),
            reads: "now".into(),
            unread: Vec::new(),
            submitted: BTreeMap::new(),
            submissions: 0,
            life: 0,
            others: BTreeMap::new(),
            fast: Duration::ZERO,
            trace: Vec::new(),
            tape: Tape::default(),
        }
    }
}

impl World {
    /// Takes one input line and gives what came out.
    pub fn input(&mut self, line: &str) -> Vec<String> {
        plays();
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "set" {
            self.set(rest);
            return Vec::new();
        }
        if word == "again" {
            // Another process, another day; only what was kept is still there.
            self.ledger.dead.push(self.owner());
            self.begin_another();
            return Vec::new();
        }
        if word == "beside" {
            // Another process; the earlier one lives. What it does is told by `theirs`, or it goes on with `process`.
            self.park();
            self.begin_another();
            return Vec::new();
        }
        if word == "dead" {
            // An earlier process, named by its number from 0 on, ends.
            self.ledger.dead.push(rest.into());
            return Vec::new();
        }
        if word == "fast" {
            // The clock of this process is so far ahead of the store's.
            self.fast = parse_duration(rest).expect(line);
            return Vec::new();
        }
        if word == "process" {
            self.be(rest.parse().expect(line));
            return Vec::new();
        }
        if word == "made" {
            self.made(rest);
            return Vec::new();
        }
        if word == "theirs" {
            self.theirs(rest);
            return Vec::new();
        }
        if word == "says" {
            // `HOLD yes|no SCOPE [REASON]`: a person decides.
            self.decided(rest);
            return Vec::new();
        }
        if word == "mailbox" {
            let (ticket, text) = rest.split_once(' ').expect(line);
            let message = match text {
                "cancel" => Mail::Cancel,
                "wake" => Mail::Wake,
                update => Mail::Input(Bytes::copy_from_slice(update.as_bytes())),
            };
            let message = Write::Post { ticket: Ticket::parse(ticket).expect(line), message };
            self.ledger.submit("somebody else", self.store_time(), &[message]).expect(line);
            return Vec::new();
        }
        if word == "looks" {
            self.looks = rest.to_owned();
            return Vec::new();
        }
        if word == "reads" {
            self.reads = rest.to_owned();
            return Vec::new();
        }
        if word == "lost" {
            // Another process's store has forgotten a call.
            let forgotten = Write::Remove(Ticket::parse(rest).expect(line));
            self.ledger.submit("somebody else", self.store_time(), &[forgotten]).expect(line);
            return Vec::new();
        }
        if word == "read" {
            return self.read();
        }
        if word == "now" {
            return self.engine.snapshot(self.now()).calls.iter().map(open_call).collect();
        }
        let mut out = Vec::new();
        if !self.open {
            self.open = true;
            self.engine = Engine::new(self.config.clone());
            self.open_door();
        }
        if word == "wait" {
            self.wait(parse_duration(rest).expect(line), &mut out);
            return out;
        }
        if word == "person" {
            // `cancels NUMBER` or `restarts NAME`.
            let (what, which) = rest.split_once(' ').expect(line);
            let number = || CallNo(which.parse().expect(line));
            return self.feed(match what {
                "cancels" => Event::CancelCall(number(), "ann (dashboard)".into()),
                _ => Event::RestartServer(which.into()),
            });
        }
        if word == "measured" {
            // `TOOL CALLS TIME`: so many calls took so long, in earlier processes.
            return self.feed(measured(rest));
        }
        let event = self.event(word, rest).unwrap_or_else(|| panic!("not an input: {line}"));
        self.feed(event)
    }

    /// Something is looked up. What is looked up every second, or beside something else, is not counted.
    fn look(&mut self, now: Now, number: u64, look: Look) {
        let named = !matches!(
            &look,
            Look::Query(
                Query::Mail
                    | Query::Changed(_)
                    | Query::Session(_)
                    | Query::Decided(_)
                    | Query::News(_)
                    | Query::CallbackDue(_)
            )
        );
        self.submissions += u64::from(named);
        match &*self.reads {
            "later" if named => self.unread.push((number, look)),
            "fail" if named => self.engine.handle(now, World::unfound(number, &look)),
            _ => {
                let found = self.found(number, &look);
                self.engine.handle(now, found);
            }
        }
    }

    /// What was looked up while `reads later` comes back, as the store has it now.
    fn read(&mut self) -> Vec<String> {
        let mut out = Vec::new();
        for (number, look) in std::mem::take(&mut self.unread) {
            let found = self.found(number, &look);
            out.extend(self.feed(found));
        }
        out
    }

    fn found(&mut self, number: u64, look: &Look) -> Event {
        let (owner, now) = (self.owner(), self.store_time());
        match look {
            Look::Query(query) => Event::Loaded(number, self.ledger.load(&owner, now, query)),
            Look::Take(writes) => Event::Stored(number, self.ledger.submit(&owner, now, writes)),
        }
    }

    fn unfound(number: u64, look: &Look) -> Event {
        let trouble = StoreTrouble::Failed("disk full".into());
        match look {
            Look::Query(_) => Event::Loaded(number, Err(trouble)),
            Look::Take(_) => Event::Stored(number, Err(trouble)),
        }
    }

    /// Puts the process aside that the scenario was about.
    fn park(&mut self) {
        let parked = Parked {
            engine: std::mem::replace(&mut self.engine, Engine::new(self.config.clone())),
            runs: std::mem::take(&mut self.runs),
            server: self.server,
            submitted: std::mem::take(&mut self.submitted),
            submissions: self.submissions,
        };
        self.others.insert(self.life, parked);
    }

    /// Goes on with a process, by its number from 0 on, that was put aside.
    fn be(&mut self, life: u32) {
        self.park();
        let Parked { engine, runs, server, submitted, submissions } =
            self.others.remove(&life).expect("no such process");
        (self.engine, self.runs, self.server) = (engine, runs, server);
        (self.submitted, self.submissions, self.life) = (submitted, submissions, life);
    }

    fn begin_another(&mut self) {
        self.unread.clear();
        self.open = false;
        self.runs.clear();
        self.submitted.clear();
        self.submissions = 0;
        self.life = self.others.keys().copied().fold(self.life, u32::max) + 1;
    }

    /// `TICKET KEY REQUEST`: another process makes a call of the same client under a key.
    fn made(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().expect(text);
        let (ticket, key, request) = (word(), word(), Bytes::copy_from_slice(word().as_bytes()));
        let Ok(wire::Scanned::Message(message)) = wire::scan(request.clone()) else { panic!("{text}") };
        let origin = Origin {
            principal: "stdio".into(),
            server: self.config.server.identity.clone(),
            method: "tools/call".into(),
            tool: message.text(wire::Field::ParamsName).expect(text).as_ref().into(),
            key: Some(key.into()),
        };
        let new = New {
            ticket: Ticket::parse(ticket).expect(text),
            origin,
            faces: Faces::LEGACY_TASK,
            seen: 0,
            ran: Duration::ZERO,
            body: RecordBody::default().encode(),
            request,
        };
        self.ledger.submit("somebody else", self.store_time(), &[Write::Create(Box::new(new))]).expect(text);
    }

    /// `TICKET STATE [RESULT]`: the process that owns a call writes how far it has come.
    fn theirs(&mut self, text: &str) {
        let mut words = text.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        let (ticket, state, result) = (word(), word(), word());
        let head =
            &self.ledger.records().find(|record| record.head.ticket.as_str() == ticket).expect(text).head;
        let state = *State::ALL.iter().find(|known| known.as_str() == state).expect(text);
        let answer = (!result.is_empty()).then(|| Answer::Result(Bytes::copy_from_slice(result.as_bytes())));
        let change = Change { answer, ..Change::to(state, head) };
        let owner = head.owner.clone();
        self.ledger.submit(&owner, self.store_time(), &[Write::Change(Box::new(change))]).expect(text);
    }

    fn decided(&mut self, text: &str) {
        let words: Vec<&str> = text.splitn(4, ' ').collect();
        let [hold, yes, scope, reason @ ..] = &words[..] else { panic!("{text}") };
        let verdict = Verdict {
            yes: *yes == "yes",
            scope: Scope::named(scope).expect(text),
            reason: reason.first().copied().unwrap_or_default().into(),
            place: "command line".into(),
            by: "ann".into(),
        };
        let decide = Write::Decide { hold: hold.parse().expect(text), verdict: verdict.into() };
        self.ledger.submit("somebody else", self.store_time(), &[decide]).expect(text);
    }

    /// What the store's clock shows.
    fn store_time(&self) -> Wall {
        Wall(self.now.as_millis() as u64)
    }

    fn renewed(&self) -> Committed {
        Committed { at: self.store_time(), done: Vec::new() }
    }

    /// The name of this process in the store.
    fn owner(&self) -> String {
        format!("life-{}", self.life)
    }

    fn open_door(&mut self) {
        let name = self.name();
        self.feed(Event::Entropy(name));
        match self.config.manner {
            Manner::Serve => return,
            Manner::Gateway => return drop(self.feed(Event::Entered(CLIENT))),
            Manner::Wrap | Manner::TimeoutMcp => {}
        }
        self.feed(Event::Remembered(SERVER, self.kept.clone()));
        let first = self.feed(Event::Opened(CLIENT, SERVER));
        assert_eq!(first, [".. start 0"]);
        self.feed(Event::Started(SERVER, Run(0)));
    }

    /// Bytes that make the name of the next session: the first is all 1, the second all 2.
    fn name(&mut self) -> [u8; 32] {
        self.names += 1;
        [self.names; 32]
    }

    fn run(&self) -> Run {
        self.runs.get(&self.server).copied().unwrap_or_default()
    }

    fn event(&mut self, word: &str, rest: &str) -> Option<Event> {
        if let Some(number) = word.strip_prefix("server-") {
            // What follows concerns this server.
            if let Ok(number) = number.parse() {
                self.server = ServerId(number);
                let (word, rest) = rest.split_once(' ').unwrap_or((rest, ""));
                return self.event(word, rest);
            }
        }
        if let Some(event) = self.http_event(word, rest) {
            return Some(event);
        }
        let bytes = || Bytes::copy_from_slice(rest.as_bytes());
        // `ID answer`, `ID request` or nothing.
        let oversized = || {
            let (id, kind) = rest.split_once(' ').unwrap_or((rest, "answer"));
            let id = (!id.is_empty()).then(|| Bytes::copy_from_slice(id.as_bytes()));
            Oversized { id, answer: kind == "answer" }
        };
        Some(match word {
            ">" => Event::FromClient(CLIENT, wire::scan(bytes())),
            "<" => Event::FromServer(self.server, self.run(), wire::scan(bytes())),
            // A line of the process before this one.
            "<old" => Event::FromServer(self.server, Run(self.run().0 - 1), wire::scan(bytes())),
            "<latin1" => {
                let line: Vec<u8> = rest.chars().map(|c| c as u8).collect();
                Event::FromServer(self.server, self.run(), wire::scan(line.into()))
            }
            "client-oversized" => Event::ClientOversized(CLIENT, oversized()),
            "server-oversized" => Event::ServerOversized(self.server, self.run(), oversized()),
            "warm" => Event::Warm,
            "reload" => self.reload(rest),
            "eof" => Event::ClientEof(CLIENT),
            "gone" => Event::ClientGone(CLIENT),
            "congested" => Event::Congested(CLIENT, rest == "on"),
            "started" => Event::Started(self.server, self.run()),
            "start-failed" => Event::StartFailed(self.server, self.run(), start_failure(rest)),
            "exited" => Event::Exited(self.server, self.run(), exit(rest)),
            "output-closed" => Event::OutputClosed(self.server, self.run()),
            // With a message that has never left.
            "input-broken" => {
                Event::InputBroken(self.server, self.run(), wire::scan_message(bytes()).into_iter().collect())
            }
            "stderr" => Event::Stderr(self.server, self.run(), bytes()),
            "slept" => Event::Slept(parse_duration(rest).ok()?),
            "door-empty" => Event::DoorEmpty,
            "stop" => Event::Stop(rest.parse().ok()?),
            "called-back" => called_back(rest),
            "tick" => Event::Tick,
            _ => return None,
        })
    }

    /// What only HTTP knows.
    fn http_event(&mut self, word: &str, rest: &str) -> Option<Event> {
        let line = |text: &str| wire::scan(Bytes::copy_from_slice(text.as_bytes()));
        let (first, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let exchange = || ExchangeId(first.parse().expect(rest));
        let (server, run) = (self.server, self.run());
        if let Some(attempt) = word.strip_prefix("<~") {
            let attempt = AttemptId(attempt.parse().ok()?);
            return Some(Event::FromStream(server, run, attempt, line(rest)));
        }
        Some(match word {
            "post" => {
                let (head, body) = head(more);
                Event::Posted(exchange(), Box::new(head), line(body))
            }
            "get" => Event::Got(exchange(), Box::new(head(more).0)),
            "delete" => Event::Deleted(exchange(), Box::new(head(more).0)),
            "hint" => Event::Hinted(if rest == "mail" { Hint::Mail } else { Hint::News }),
            "hang-up" => Event::HungUp(exchange()),
            "trouble" => {
                let attempt = first.parse().ok().map(AttemptId);
                Event::Trouble(server, run, attempt, trouble(more))
            }
            "undelivered" => {
                let answer = Bytes::copy_from_slice(more.as_bytes());
                Event::Undelivered(server, run, wire::Outgoing::plain(answer), first.into())
            }
            "stream-ended" => {
                Event::StreamEnded(server, run, AttemptId(first.parse().ok()?), stream_end(more))
            }
            "begin" => Event::Begin,
            "stored" => {
                let (number, writes) = self.submitted.remove(&rest.parse().ok()?)?;
                Event::Stored(number, self.ledger.submit(&self.owner(), self.store_time(), &writes))
            }
            "not-stored" => {
                let (number, _) = self.submitted.remove(&rest.parse().ok()?)?;
                Event::Stored(number, Err(StoreTrouble::Failed("disk full".into())))
            }
            // Another process was first: `taken N TICKET`.
            "taken" => {
                let why = Refusal::KeyTaken(Ticket::parse(more)?);
                let (number, _) = self.submitted.remove(&first.parse().ok()?)?;
                Event::Stored(number, Err(StoreTrouble::Refused { at: 0, why }))
            }
            "standing-ended" => Event::StandingEnded(server, run, stream_end(rest)),
            _ => return None,
        })
    }

    /// `NAME NAME=2 NAME:5s NAME+2`: the servers of the file now. A number is another program, a time another
    /// `timeout`, and a number after `+` another `max-in-flight`. `-NAME` takes the token of a principal back.
    fn reload(&self, text: &str) -> Event {
        let known = |name: &str| {
            let all = std::iter::once(&self.config.server).chain(&self.config.others);
            let found = all.into_iter().find(|config| &*config.name == name);
            let new = || ServerConfig { name: name.into(), identity: name.into(), ..ServerConfig::default() };
            found.map_or_else(new, |config| (**config).clone())
        };
        let server = |word: &str| {
            let (name, program) = word.split_once('=').unwrap_or((word, "0"));
            let (name, timeout) = name.split_once(':').unwrap_or((name, ""));
            let (name, bound) = name.split_once('+').unwrap_or((name, ""));
            let mut config = known(name);
            if !bound.is_empty() {
                config.bounds.max_in_flight = bound.parse().expect(text);
            }
            config.program = program.parse().expect(text);
            if !timeout.is_empty() {
                let item = Setting::named("timeout").expect("a setting");
                let rules = std::sync::Arc::make_mut(&mut config.rules);
                rules.bare(item.key, item.parse(timeout).expect(text), "the file");
            }
            config.into()
        };
        let words = || text.split_whitespace();
        let revoked =
            words().filter_map(|word| word.strip_prefix('-')).map(|name| Some(name.into())).collect();
        let servers = words().filter(|word| !word.starts_with('-')).map(server).collect();
        Event::Reload(Box::new(Reload {
            servers,
            separator: self.config.separator.clone(),
            rights: self.config.rights.clone(),
            revoked,
        }))
    }

    fn set(&mut self, text: &str) {
        let (name, value) = text.split_once(' ').unwrap_or((text, ""));
        match name {
            "timeout-mcp" => {
                self.config.manner = Manner::TimeoutMcp;
                self.config.server_mut().restart =
                    if value == "auto-restart" { Restart::OnTimeout } else { Restart::Never };
                return;
            }
            "restart" => {
                self.config.server_mut().restart = match value {
                    "never" => Restart::Never,
                    "on-crash" => Restart::OnCrash,
                    "on-hang" => Restart::OnHang,
                    _ => Restart::OnTimeout,
                };
                return;
            }
            "serve" => return self.config.manner = Manner::Serve,
            "gateway" => return self.config.manner = Manner::Gateway,
            // One more server, whose name in the store is its name for people.
            "server" => {
                let named = ServerConfig {
                    name: value.into(),
                    command: value.into(),
                    identity: value.into(),
                    ..ServerConfig::default()
                };
                return self.config.others.push(named.into());
            }
            "rights" => {
                let (name, rights) = rights(value);
                self.config.rights.insert(name, rights);
                return;
            }
            "separator" => return self.config.separator = value.into(),
            // `SERVER KEY VALUE`: `expose on-demand`, `deny GLOB`, `alias OWN PUBLIC`.
            "exposure" => return self.exposure(value),
            // `NAME` or `NAME always`.
            "callback" => {
                let (name, when) = value.split_once(' ').unwrap_or((value, ""));
                let when = if when == "always" { When::Always } else { When::Disconnected };
                self.config.callbacks.insert(name.into(), when);
                return;
            }
            // `GLOB KEY=VALUE…`.
            "client" => return self.config.clients.push(client_rule(value).into()),
            "http" => return self.config.server_mut().transport = Transport::Http,
            "heartbeat" => return self.config.server_mut().heartbeat = parse_duration(value).ok(),
            "server-idle" => return self.config.server_mut().server_idle = parse_duration(value).ok(),
            "eager" => return self.config.server_mut().eager = true,
            "share" => {
                self.config.server_mut().share = match value {
                    "all" => Share::All,
                    "session" => Share::Session,
                    _ => Share::Principal,
                };
                return;
            }
            "stream-head" => return self.config.stream_head = parse_duration(value).expect(text),
            "session-idle" => return self.config.session_idle = parse_duration(value).expect(text),
            "resume-wait" => return self.config.resume_wait = parse_duration(value).expect(text),
            "max-sessions" => return self.config.max_sessions = value.parse().expect(text),
            "max-calls" => return self.config.max_calls = value.parse().expect(text),
            "tasks" => return self.config.tasks = true,
            "observed" => {
                let slow = value == "slow";
                return self.config.observed = if slow { Observed::Slow } else { Observed::All };
            }
            "traces" => return self.config.traces = true,
            "declare-timeouts" => return self.config.declare_timeouts = true,
            "resumable" => return self.config.resumable = true,
            "durable" => return self.config.durable = true,
            "replicated" => {
                (self.config.durable, self.config.replicated) = (true, true);
                return;
            }
            // Another one in every process.
            "seed" => return self.config.seed = value.parse().expect(text),
            "door" => return self.config.door = true,
            "task-ttl" => return self.config.task_ttl = parse_duration(value).expect(text),
            "task-after" => return self.config.task_after = parse_duration(value).expect(text),
            "client-cap" => {
                let cap = parse_duration(value).map_or(ClientCap::Off, ClientCap::After);
                return self.config.client_cap = cap;
            }
            "profiles" => return self.config.profiles.table = HASTY.into(),
            "client-profile" => {
                let row = Profile::parse(value, "--client-profile").expect(text);
                return self.config.profiles.written.push(row);
            }
            "learn" => {
                return self.config.learn = match value {
                    "auto" => Learn::Auto,
                    "off" => Learn::Off,
                    _ => Learn::Ask,
                };
            }
            "sighting" => return self.config.profiles.sightings.push(sighting(value)),
            "trust" => return self.config.server_mut().trust = true,
            "idempotency-key" => {
                return self.config.key_places = vec![KeyPlace::parse(value).expect(text)];
            }
            "instant" => return self.config.server_mut().instant = true,
            "restart-intensity" => {
                return self.config.server_mut().restart_intensity = value.parse().expect(text);
            }
            "cancel-grace" => {
                return self.config.server_mut().cancel_grace = parse_duration(value).expect(text);
            }
            "drain" => return self.config.drain = parse_duration(value).expect(text),
            _ => {}
        }
        let setting = Setting::named(name).unwrap_or_else(|| panic!("no setting {name}"));
        if matches!(setting.key, Key::MaxInFlight | Key::Queue | Key::QueueWait | Key::Rate) {
            let value = setting.parse(value).expect(text);
            self.config.server_mut().bounds.take(setting.key, value.clone());
            return self.config.rules_mut().bare(setting.key, value, &format!("--{name}"));
        }
        if setting.kind == Kind::Rules {
            let key = if setting.key == Key::Tool { Key::Tool } else { Key::Method };
            self.config.rules_mut().add(key, value, &format!("--{name}")).expect(text);
        } else {
            self.config.rules_mut().bare(
                setting.key,
                setting.parse(value).expect(text),
                &format!("--{name}"),
            );
        }
    }

    fn exposure(&mut self, text: &str) {
        let words: Vec<&str> = text.split(' ').collect();
        let all = std::iter::once(&mut self.config.server).chain(&mut self.config.others);
        let server = all.into_iter().find(|server| *server.name == *words[0]).expect(text);
        let exposure = Arc::make_mut(&mut Arc::make_mut(server).exposure);
        match words[1..] {
            ["expose", value] => exposure.expose = expose(value),
            ["deny", glob] => exposure.deny.push(Glob::new(glob).expect(text)),
            ["alias", own, public] => exposure.aliases.push((own.into(), public.into())),
            _ => panic!("{text}"),
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

    fn now(&self) -> Now {
        Now { mono: Mono::after_start(self.now), wall: self.store_time().after(self.fast) }
    }

    fn feed(&mut self, event: Event) -> Vec<String> {
        let now = self.now();
        self.tape.event(&event);
        self.engine.handle(now, event);
        let mut out = Vec::new();
        while let Some(action) = self.engine.poll() {
            self.tape.action(&action);
            self.trace.push(kind(&action));
            match action {
                Action::Start(server, run) => {
                    self.runs.insert(server, run);
                    self.server = server;
                }
                Action::NeedEntropy => {
                    let name = self.name();
                    self.engine.handle(now, Event::Entropy(name));
                    continue;
                }
                Action::NeedIdentity => {
                    self.engine.handle(now, Event::Identity("srv".into()));
                    continue;
                }
                Action::Store(number, ref writes)
                    if writes.iter().all(|write| matches!(write, Write::Renew | Write::Expire)) =>
                {
                    self.engine.handle(now, Event::Stored(number, Ok(self.renewed())));
                    continue;
                }
                Action::Store(number, ref writes) if matches!(writes[..], [Write::TakeSession { .. }]) => {
                    let look = Look::Take(writes.clone());
                    self.look(now, number, look);
                    continue;
                }
                Action::Store(number, ref writes) => {
                    self.submissions += 1;
                    self.submitted.insert(self.submissions, (number, writes.clone()));
                    // Both kinds of mailbox messages are collected together.
                    let told = writes.iter().filter(|write| **write != Write::CollectForwarded);
                    let words: Vec<&str> = told.map(written).collect();
                    out.push(format!(".. store {}: {}", self.submissions, words.join(", ")));
                    continue;
                }
                Action::Load(number, ref query) => {
                    let look = Look::Query(query.clone());
                    self.look(now, number, look);
                }
                Action::Remember(_, ref memory) => self.kept = vec![(**memory).clone()],
                Action::Forget(_) => self.kept.clear(),
                Action::Sample(server) => {
                    let sample = self.sample();
                    self.engine.handle(now, Event::Sampled(server, sample));
                }
                _ => {}
            }
            // Looking something up changes nothing.
            let quiet = matches!(&action, Action::Note(note) if note.level() == Level::Debug)
                || matches!(&action, Action::Load(..));
            if !quiet {
                out.push(show(&action));
            }
        }
        out
    }
}

/// What an action is, without what is in it.
fn kind(action: &Action) -> String {
    let shown = format!("{action:?}");
    shown.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default().to_owned()
}

fn measured(text: &str) -> Event {
    let words: Vec<&str> = text.split(' ').collect();
    let mut tally = Tally::default();
    let time = parse_duration(words[2]).expect(text);
    (0..words[1].parse().expect(text)).for_each(|_: u32| tally.add(time, Outcome::Answered));
    Event::Measured(vec![Measured { server: "srv".into(), tool: words[0].into(), tally }])
}

/// What is so of a call, as a line.
fn open_call(call: &OpenCall) -> String {
    let left = call.timeout.map_or_else(|| "no timeout".into(), |(_, left)| show_duration(left));
    let name = call.tool.as_deref().unwrap_or_else(|| call.method.as_str());
    format!("%% {} {name} {}, {left} left, {} sent", call.no.0, call.place.word(), call.attempts)
}
