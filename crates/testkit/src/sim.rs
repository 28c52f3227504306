//! A seeded world: one client, one server, faults on both sides, and the engine between them.
//!
//! Time is a number, so a day passes in microseconds. Every message takes a random while to arrive,
//! in order within its direction. The [`Judge`] watches both ends and panics as soon as the engine
//! breaks an invariant of ARCHITECTURE.md; the seed then replays the very same world.

mod client;
mod judge;
mod rng;
mod server;

use crate::tape::Tape;
use bytes::Bytes;
use client::Client;
use judge::Judge;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::life::Sample;
use outlast_engine::settings::{Key, setting};
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, Restart, Wall, wire};
use rng::Rng;
use server::Server;
use std::collections::BTreeMap;
use std::time::Duration;

const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

/// Events between two full sweeps of the engine's own invariants.
const SWEEP: u64 = 1_000;

/// What a run did, for the summary and to compare two runs of one seed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Requests of the client.
    pub calls: u64,
    /// Events fed to the engine.
    pub events: u64,
    /// Calls that ended with an error of ours.
    pub failed: u64,
    /// Calls that the client cancelled.
    pub cancelled: u64,
    /// Progress notifications that reached the client.
    pub progress: u64,
    /// Processes of the server.
    pub runs: u64,
    /// A number made of every action in order.
    pub fingerprint: u64,
}

/// Something that will happen.
#[derive(Debug)]
enum Plan {
    ClientSends(String),
    ClientActs,
    ClientCancels(usize),
    ClientEof,
    Congest(bool),
    ServerSends(Run, Vec<u8>),
    ServerOversized(Run, String),
    ServerStarts(Run),
    ServerExits(Run, Exit),
    ServerCloses(Run),
    ServerStopsReading(Run),
    Slept,
}

/// What a world is like; drawn from the seed.
#[derive(Debug)]
struct Character {
    /// The server may ask for a person, which makes limits stand still.
    asks: bool,
    /// The server may crash, and is restarted.
    crashes: bool,
    congestion: bool,
}

struct World {
    rng: Rng,
    engine: Engine,
    now: Duration,
    wall_offset: u64,
    plans: BTreeMap<(Duration, u64), Plan>,
    next_plan: u64,
    last_arrival: [Duration; 2],
    client: Client,
    server: Server,
    judge: Judge,
    work: u64,
    outcome: Outcome,
    ended: bool,
    tape: Tape,
}

/// Runs one world to its end; panics if an invariant breaks.
pub fn run(seed: u64, calls: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let character = Character { asks: rng.chance(40), crashes: rng.chance(25), congestion: rng.chance(30) };
    let config = config(&mut rng);
    let mut world = World {
        engine: Engine::new(config.clone()),
        now: Duration::ZERO,
        wall_offset: 0,
        plans: BTreeMap::new(),
        next_plan: 0,
        last_arrival: [Duration::ZERO; 2],
        client: Client::new(calls),
        server: Server::new(&character),
        judge: Judge::new(&config, &character),
        work: 0,
        outcome: Outcome::default(),
        ended: false,
        tape: Tape::default(),
        rng,
    };
    world.feed(Event::Opened(CLIENT, SERVER));
    world.plan(Duration::ZERO, Plan::ClientActs);
    if character.congestion {
        world.plan(Duration::from_millis(500), Plan::Congest(true));
    }
    world.live();
    world.finish()
}

fn config(rng: &mut Rng) -> Config {
    let mut config = Config { server_name: "sim".into(), ..Config::default() };
    let millis = |time: u64| format!("{time}ms");
    let mut bare = |key: Key, text: String| {
        let value = setting(key).parse(&text).expect("a value");
        config.rules.bare(key, value, setting(key).name);
    };
    bare(Key::Timeout, millis(rng.between(200, 20_000)));
    bare(Key::Max, millis(rng.between(5_000, 60_000)));
    bare(Key::KeepAlive, millis(rng.between(50, 2_000)));
    bare(Key::Handshake, millis(rng.between(5_000, 60_000)));
    if rng.chance(30) {
        bare(Key::Signs, ["none", "server", "call+server"][rng.below(3)].into());
    }
    config.rules.add(Key::Method, "*/list=timeout:700ms", "--method").expect("a rule");
    config.rules.add(Key::Tool, "t1*=timeout:300ms,max:900ms", "--tool").expect("a rule");
    config.rules.add(Key::Tool, "t2*=timeout:off,max:20s", "--tool").expect("a rule");
    config.restart = [Restart::OnCrash, Restart::OnHang, Restart::OnTimeout][rng.below(3)];
    if rng.chance(20) {
        config.manner = Manner::TimeoutMcp;
        config.restart = if rng.chance(80) { Restart::OnTimeout } else { Restart::Never };
    }
    config.restart_intensity = rng.between(1, 50) as u32;
    config.restart_backoff = Duration::from_millis(rng.between(1, 500));
    config.connect_backoff = Duration::from_millis(rng.between(1, 500));
    config.reconnect_every = Duration::from_millis(rng.between(100, 5_000));
    config.trust = rng.chance(50);
    config.seed = rng.between(0, u64::MAX - 1);
    config.rules.add(Key::Tool, "t3*=repeatable:true,retries:3", "--tool").expect("a rule");
    config.cancel_grace = Duration::from_millis(rng.between(10, 3_000));
    config.drain = Duration::from_millis(rng.between(100, 30_000));
    config
}

impl World {
    fn plan(&mut self, after: Duration, plan: Plan) {
        self.next_plan += 1;
        self.plans.insert((self.now + after, self.next_plan), plan);
    }

    /// Plans a message that keeps its place behind the earlier ones of its direction.
    fn plan_in_order(&mut self, direction: usize, after: Duration, plan: Plan) {
        let arrival = self.last_arrival[direction].max(self.now + after);
        self.last_arrival[direction] = arrival;
        self.plan(arrival - self.now, plan);
    }

    fn live(&mut self) {
        while !self.ended {
            let planned = self.plans.first_key_value().map(|((at, _), _)| *at);
            let due = self.engine.next_deadline().map(Mono::since_start);
            match (planned, due) {
                (None, None) => return,
                (Some(planned), due) if due.is_none_or(|due| planned < due) => {
                    self.now = planned;
                    let Some((_, plan)) = self.plans.pop_first() else { return };
                    self.happen(plan);
                }
                (_, Some(due)) => {
                    self.now = self.now.max(due);
                    self.feed(Event::Tick);
                }
                (Some(_), None) => {}
            }
            self.client_and_server_act();
        }
    }

    fn happen(&mut self, plan: Plan) {
        match plan {
            Plan::ClientActs => self.client.act(&mut self.rng),
            Plan::ClientSends(line) => {
                let scanned = wire::scan(&Bytes::from(line));
                self.judge.client_line(self.now, &scanned);
                self.feed(Event::FromClient(CLIENT, scanned));
            }
            Plan::ClientCancels(request) => self.client.cancel(request),
            Plan::ClientEof => self.feed(Event::ClientEof(CLIENT)),
            Plan::Congest(congested) => {
                self.judge.congested = congested;
                self.feed(Event::Congested(CLIENT, congested));
                let after = Duration::from_millis(self.rng.between(10, 3_000));
                if !self.client.done() {
                    self.plan(after, Plan::Congest(!congested));
                }
            }
            Plan::ServerSends(run, line) => {
                let scanned = wire::scan(&Bytes::from(line));
                let engine = &self.engine;
                self.judge
                    .server_line(self.now, run, &scanned, |attempt| engine.expects(SERVER, run, attempt));
                self.feed(Event::FromServer(SERVER, run, scanned));
            }
            Plan::ServerOversized(run, id) => self.feed(Event::ServerOversized(
                SERVER,
                run,
                wire::Oversized { id: Some(Bytes::from(id)), answer: true },
            )),
            Plan::ServerStarts(run) if self.server.fails_to_start(&mut self.rng) && run > Run(0) => {
                self.feed(Event::StartFailed(SERVER, run, StartFailure::NotFound));
            }
            Plan::ServerStarts(run) => {
                self.server.starts(run);
                self.feed(Event::Started(SERVER, run));
            }
            Plan::ServerExits(run, exit) => self.feed(Event::Exited(SERVER, run, exit)),
            Plan::ServerCloses(run) => self.feed(Event::OutputClosed(SERVER, run)),
            Plan::ServerStopsReading(run) => self.feed(Event::InputBroken(SERVER, run)),
            Plan::Slept => {
                self.wall_offset += 3_600_000;
                self.feed(Event::Slept(Duration::from_secs(3600)));
            }
        }
    }

    /// Turns what the two peers want into plans.
    fn client_and_server_act(&mut self) {
        for (after, plan) in std::mem::take(&mut self.client.plans) {
            match plan {
                Plan::ClientSends(_) | Plan::ClientEof => self.plan_in_order(0, after, plan),
                _ => self.plan(after, plan),
            }
        }
        for (after, plan) in std::mem::take(&mut self.server.plans) {
            match plan {
                Plan::ServerSends(..) | Plan::ServerOversized(..) | Plan::ServerCloses(_) => {
                    self.plan_in_order(1, after, plan);
                }
                _ => self.plan(after, plan),
            }
        }
    }

    fn feed(&mut self, event: Event) {
        let now = Now { mono: Mono::after_start(self.now), wall: Wall(self.wall_offset) };
        self.tape.event(&event);
        self.engine.handle(now, event);
        self.outcome.events += 1;
        while let Some(action) = self.engine.poll() {
            self.tape.action(&action);
            self.perform(now, action);
        }
        if self.outcome.events.is_multiple_of(SWEEP) {
            self.sweep();
        }
    }

    fn perform(&mut self, now: Now, action: Action) {
        self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
        match action {
            Action::ToClient(_, message) => {
                let line = Bytes::from(message.to_vec());
                self.judge.sent_to_client(self.now, &line);
                self.client.receive(&mut self.rng, &line);
            }
            Action::ToServer(_, message) => {
                let line = Bytes::from(message.to_vec());
                self.judge.sent_to_server(self.server.run, &line);
                self.server.receive(&mut self.rng, &line);
            }
            Action::Start(_, run) => {
                self.outcome.runs += 1;
                self.judge.server_starts(self.now);
                self.plan(Duration::from_millis(5), Plan::ServerStarts(run));
            }
            Action::CloseInput(_) => self.server.input_closed(&mut self.rng),
            Action::Terminate(_) => self.server.terminated(&mut self.rng),
            Action::Kill(_) => self.server.killed(),
            Action::Sample(_) => {
                self.work += u64::from(self.rng.chance(50));
                let sample = Sample {
                    at: now.mono,
                    cpu: Duration::ZERO,
                    bytes: self.work,
                    switches: 0,
                    stderr: 0,
                    processes: 0,
                };
                let sample = Some(sample).filter(|_| self.rng.chance(95));
                self.engine.handle(now, Event::Sampled(SERVER, sample));
            }
            Action::Note(note) => drop(note.to_string()),
            Action::Remember(..) | Action::Forget(_) => {}
            // One client and one process: this world knows no HTTP.
            other @ (Action::Post(..)
            | Action::Reconnect(..)
            | Action::Abandon(..)
            | Action::Stand(_)
            | Action::Respond(..)
            | Action::Write(..)
            | Action::Finish(_)
            | Action::NeedEntropy
            | Action::Store(..)
            | Action::Load(..)
            | Action::LetGo(_)) => panic!("{other:?} in a world of pipes"),
            Action::End { .. } => self.ended = true,
        }
    }

    fn sweep(&self) {
        if let Err(broken) = self.engine.check_invariants() {
            panic!("{broken}");
        }
    }

    fn finish(mut self) -> Outcome {
        self.sweep();
        self.judge.everything_is_settled(self.ended);
        assert!(self.ended, "the client has left and outlast has not ended");
        let left = self.engine.open_calls();
        assert_eq!(left, 0, "calls are left behind");
        self.outcome.calls = self.judge.requests() as u64;
        self.outcome.failed = self.judge.failed;
        self.outcome.cancelled = self.judge.cancelled;
        self.outcome.progress = self.judge.progress;
        self.outcome
    }
}

fn fingerprint(so_far: u64, action: &Action) -> u64 {
    let mix = |sum: u64, byte: &u8| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    match action {
        Action::ToClient(_, message) => message.to_vec().iter().fold(so_far ^ 1, mix),
        Action::ToServer(_, message) => message.to_vec().iter().fold(so_far ^ 2, mix),
        other => format!("{other:?}").as_bytes().iter().fold(so_far ^ 3, mix),
    }
}
