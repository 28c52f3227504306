//! The world of pipes: one client, one server. Messages arrive in order within their direction.

mod client;
mod extremes;
mod judge;
mod persons;

use super::agenda::{Agenda, Next};
use super::holds::{Deed as PersonsDeed, Persons};
use super::process::{Deed, Process};
use super::rng::Rng;
use super::steps::Steps;
use super::subject::Subject;
use super::{Outcome, SWEEP, engine, fingerprint, limits, sampled, sweep};
use crate::ledger::Ledger;
use crate::tape::Tape;
use bytes::Bytes;
use client::Client;
use extremes::Extreme;
use judge::Judge;
use outlast_engine::event::StartFailure;
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::store::{Query, Stored, Write};
use outlast_engine::{
    Action, Bounds, Config, Event, Manner, Mono, Now, Rate, Restart, ServerConfig, Wall, wire,
};
use std::time::Duration;

const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

/// The two directions in which order is kept.
const FROM_CLIENT: u64 = 0;
const FROM_SERVER: u64 = 1;

/// The name of the process in its store, and the line on which commits keep their order.
const OWNER: &str = "pipes";
const STORE: u64 = 2;

/// Something that will happen.
#[derive(Debug)]
enum Plan {
    ClientSends(String),
    ClientActs,
    ClientCancels(usize),
    /// Somebody does more than there is room for.
    Overdoes(Extreme),
    ClientEof,
    Congest(bool),
    ServerStarts(Run),
    ServerDoes(Run, Deed),
    /// The store commits what it was given.
    Commits(u64, Vec<Write>),
    /// The store has looked something up.
    Finds(u64, Query),
    /// A person does something, or whoever waits for one.
    Person(PersonsDeed),
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
    /// The server answers what it was not asked, and in its own words.
    forges: bool,
    /// What is overdone here.
    extreme: Option<Extreme>,
}

struct World {
    rng: Rng,
    engine: Subject,
    steps: Steps,
    agenda: Agenda<Plan>,
    wall_offset: u64,
    client: Client,
    server: Process,
    judge: Judge,
    ledger: Ledger,
    /// Who decides about the calls that wait for a person.
    persons: Option<Persons>,
    entropy: u64,
    extreme: Option<Extreme>,
    work: u64,
    outcome: Outcome,
    ended: bool,
    tape: Tape,
}

/// Runs one world to its end; panics if an invariant breaks.
pub fn run(seed: u64, calls: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let character = Character {
        asks: rng.chance(40),
        crashes: rng.chance(25),
        congestion: rng.chance(30),
        forges: rng.chance(15),
        extreme: Some(Extreme::ALL[rng.below(Extreme::ALL.len())]).filter(|_| rng.chance(3)),
    };
    let mut config = config(&mut rng);
    if seed.is_multiple_of(4) {
        bounds(&mut config, seed);
    }
    let persons = (seed % 4 == 1 && config.manner == Manner::Wrap).then(|| Persons::new(&mut config, seed));
    let elicits = persons.as_ref().is_some_and(Persons::elicits);
    let mut world = World {
        engine: engine(config.clone()),
        steps: Steps::default(),
        agenda: Agenda::new(),
        wall_offset: 0,
        client: Client::new(calls, character.extreme == Some(Extreme::Handshake), config.tasks, elicits),
        server: Process::new(character.asks, character.crashes, character.forges.then_some(0)),
        judge: Judge::new(&config, &character),
        ledger: Ledger::default(),
        persons,
        entropy: 0,
        extreme: character.extreme,
        work: 0,
        outcome: Outcome::default(),
        ended: false,
        tape: Tape::default(),
        rng,
    };
    if config.tasks {
        world.feed(Event::Entropy([0; 32]));
        world.feed(Event::Begin);
    }
    world.feed(Event::Opened(CLIENT, SERVER));
    world.agenda.plan(Duration::ZERO, Plan::ClientActs);
    if let Some(extreme) = character.extreme {
        let after = world.rng.millis(10, 2_000);
        world.agenda.plan(after, Plan::Overdoes(extreme));
    }
    if character.congestion {
        world.agenda.plan(Duration::from_millis(500), Plan::Congest(true));
    }
    world.live();
    world.finish()
}

fn config(rng: &mut Rng) -> Config {
    let mut config = Config::from(ServerConfig { name: "sim".into(), ..ServerConfig::default() });
    limits(&mut config, rng);
    config.tasks = rng.chance(50);
    config.is_called("sim".into());
    config.server_mut().restart = [Restart::OnCrash, Restart::OnHang, Restart::OnTimeout][rng.below(3)];
    if rng.chance(20) {
        (config.manner, config.tasks) = (Manner::TimeoutMcp, false);
        config.server_mut().restart = if rng.chance(80) { Restart::OnTimeout } else { Restart::Never };
    }
    config
}

/// Bounds on calls, drawn apart so that the worlds without them stay what they were.
fn bounds(config: &mut Config, seed: u64) {
    let mut rng = Rng::new(!seed);
    let rate = Rate { calls: rng.between(1, 20) as u32, every: Duration::from_secs(rng.between(1, 10)) };
    config.server_mut().bounds = Bounds {
        max_in_flight: rng.between(1, 4) as u32,
        queue: rng.below(6) as u32,
        queue_wait: rng.millis(200, 20_000),
        rate: rng.chance(30).then_some(rate),
    };
}

impl World {
    fn live(&mut self) {
        while !self.ended {
            match self.agenda.advance(self.engine.next_deadline()) {
                Next::Nothing => return,
                Next::Happens(plan) => self.happen(plan),
                Next::Due => self.feed(Event::Tick),
            }
            self.client_and_server_act();
        }
    }

    fn happen(&mut self, plan: Plan) {
        match plan {
            Plan::ClientActs => self.client.act(&mut self.rng),
            Plan::ClientSends(line) => {
                if let Some(persons) = &mut self.persons {
                    persons.client_sends(self.agenda.now, &line);
                }
                let scanned = wire::scan(Bytes::from(line));
                self.judge.client_line(self.agenda.now, &scanned);
                self.feed(Event::FromClient(CLIENT, scanned));
            }
            Plan::ClientCancels(request) => self.client.cancel(request),
            Plan::Overdoes(extreme) => self.overdo(extreme),
            Plan::ClientEof => {
                self.judge.finished = Some(self.agenda.now);
                self.feed(Event::ClientEof(CLIENT));
            }
            Plan::Congest(congested) => {
                self.judge.congested = congested;
                self.feed(Event::Congested(CLIENT, congested));
                let after = Duration::from_millis(self.rng.between(10, 3_000));
                // Whoever has said all reads on.
                if congested || !self.client.done() {
                    self.agenda.plan(after, Plan::Congest(!congested));
                }
            }
            Plan::ServerStarts(run) if self.server.fails_to_start(&mut self.rng) && run > Run(0) => {
                self.feed(Event::StartFailed(SERVER, run, StartFailure::NotFound));
            }
            Plan::ServerStarts(run) => {
                self.server.starts(run);
                self.feed(Event::Started(SERVER, run));
            }
            Plan::ServerDoes(run, deed) => {
                if let Deed::Says(line) = &deed {
                    let (engine, line) = (&self.engine, wire::scan(Bytes::copy_from_slice(line)));
                    let counts = |attempt| engine.expects(SERVER, run, attempt);
                    self.judge.server_line(self.agenda.now, run, &line, counts);
                }
                self.feed(deed.event(SERVER, run));
            }
            Plan::Commits(number, writes) => {
                let stored = self.commit(OWNER, &writes);
                self.feed(Event::Stored(number, stored));
            }
            Plan::Finds(number, query) => {
                let found = self.ledger.load(OWNER, self.store_wall(), &query);
                self.feed(Event::Loaded(number, found));
            }
            Plan::Person(deed) => self.person_does(deed),
            Plan::Slept => {
                self.wall_offset += 3_600_000;
                self.feed(Event::Slept(Duration::from_secs(3600)));
            }
        }
    }

    fn commit(&mut self, owner: &str, writes: &[Write]) -> Stored {
        let stored = self.ledger.submit(owner, self.store_wall(), writes);
        if let Some(persons) = &mut self.persons {
            persons.committed(self.agenda.now, writes, &stored);
        }
        stored
    }

    fn person_does(&mut self, deed: PersonsDeed) {
        let (now, finished) = (self.agenda.now, self.judge.finished.is_some());
        let Some(persons) = &mut self.persons else { return };
        let line = match deed {
            PersonsDeed::Decides(hold, again) => {
                if let Some(decide) = persons.decides(now, &self.ledger, hold, again) {
                    _ = self.commit("somebody else", &[decide]);
                }
                return;
            }
            _ if finished => return,
            PersonsDeed::Calls => persons.call(),
            PersonsDeed::Cancels(mark) => Some(Persons::cancel(&mark)),
            PersonsDeed::Answers(line) => Some(line),
        };
        if let Some(line) = line {
            let soon = Duration::from_micros(200);
            self.agenda.plan_in_order(FROM_CLIENT, soon, Plan::ClientSends(line));
        }
    }

    /// Turns what everybody wants into plans.
    fn client_and_server_act(&mut self) {
        for (after, deed) in self.persons.iter_mut().flat_map(|persons| std::mem::take(&mut persons.plans)) {
            self.agenda.plan(after, Plan::Person(deed));
        }
        for (after, plan) in std::mem::take(&mut self.client.plans) {
            match plan {
                Plan::ClientSends(_) | Plan::ClientEof => {
                    self.agenda.plan_in_order(FROM_CLIENT, after, plan);
                }
                _ => self.agenda.plan(after, plan),
            }
        }
        for (after, run, deed) in std::mem::take(&mut self.server.deeds) {
            let ordered = deed.keeps_its_place();
            let plan = Plan::ServerDoes(run, deed);
            if ordered {
                self.agenda.plan_in_order(FROM_SERVER, after, plan);
            } else {
                self.agenda.plan(after, plan);
            }
        }
    }

    /// The store's own clock, which nobody sets.
    fn store_wall(&self) -> Wall {
        Wall(self.agenda.now.as_millis() as u64)
    }

    fn feed(&mut self, event: Event) {
        let now = Now { mono: Mono::after_start(self.agenda.now), wall: Wall(self.wall_offset) };
        self.tape.event(&event);
        self.judge.told(self.agenda.now, &event);
        self.engine.handle(now, event);
        self.outcome.events += 1;
        while let Some(action) = self.engine.poll() {
            self.tape.action(&action);
            self.judge.blame.done(self.agenda.now, &action);
            self.steps.take(&action);
            self.perform(now, action);
        }
        self.judge.batch_ends(self.agenda.now);
        if self.outcome.events.is_multiple_of(SWEEP) {
            sweep(&self.engine);
        }
    }

    fn perform(&mut self, now: Now, action: Action) {
        self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
        match action {
            Action::ToClient(_, message) => {
                let line = Bytes::from(message.to_vec());
                let now = self.agenda.now;
                if self.persons.as_mut().is_some_and(|persons| persons.hears(now, &line)) {
                    return;
                }
                self.judge.sent_to_client(self.agenda.now, &line);
                self.client.receive(&mut self.rng, &line);
            }
            Action::CallBack(callback) => panic!("{callback:?} in a world without callbacks"),
            Action::ToServer(_, message) => {
                let line = Bytes::from(message.to_vec());
                if let Some(persons) = &mut self.persons {
                    persons.sent(&line);
                }
                self.judge.sent_to_server(self.agenda.now, self.server.run, &line);
                self.server.receive(&mut self.rng, &line);
            }
            Action::Start(_, run) => {
                self.outcome.runs += 1;
                self.judge.server_starts(self.agenda.now);
                self.agenda.plan(Duration::from_millis(5), Plan::ServerStarts(run));
                if run == Run(1) && self.extreme == Some(Extreme::LongCalls) {
                    self.agenda.plan(Duration::ZERO, Plan::Overdoes(Extreme::LongCalls));
                }
            }
            Action::CloseInput(_) => self.server.input_closed(&mut self.rng),
            Action::Terminate(_) => self.server.terminated(&mut self.rng),
            Action::Kill(_) => self.server.killed(&mut self.rng),
            Action::Sample(server) => {
                let event = sampled(&mut self.rng, &mut self.work, now, server);
                self.engine.handle(now, event);
            }
            Action::NeedEntropy => {
                self.entropy += 1;
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&self.entropy.to_le_bytes());
                self.engine.handle(now, Event::Entropy(bytes));
            }
            Action::Store(number, writes) => {
                let after = self.store_takes();
                self.agenda.plan_in_order(STORE, after, Plan::Commits(number, writes));
            }
            Action::Load(number, query) => {
                let after = self.store_takes();
                self.agenda.plan(after, Plan::Finds(number, query));
            }
            Action::NeedIdentity => self.engine.handle(now, Event::Identity("sim".into())),
            Action::Note(note) => drop(note.to_string()),
            Action::Remember(..) | Action::Forget(_) | Action::Learn(_) | Action::Step(_) => {}
            // One client and one process: this world knows no HTTP.
            other @ (Action::Post(..)
            | Action::Reconnect(..)
            | Action::Abandon(..)
            | Action::Stand(_)
            | Action::Respond(..)
            | Action::Write(..)
            | Action::Finish(_)
            | Action::CloseDoor
            | Action::LetGo(_)) => panic!("{other:?} in a world of pipes"),
            Action::End { .. } => self.ended = true,
        }
    }

    /// A disk takes its time now and then.
    fn store_takes(&mut self) -> Duration {
        if self.rng.chance(70) { self.rng.millis(0, 3) } else { self.rng.millis(0, 400) }
    }

    /// What was submitted is written, also at the very end. Only a question that is stored after that stays, as one of
    /// a process that was killed does: whoever would take it back is gone.
    fn persons_are_asked_no_more(&mut self) {
        let asked = self.ledger.holds().filter(|hold| !hold.owner.is_empty());
        let asked: Vec<u64> = asked.map(|hold| hold.number).collect();
        while let Next::Happens(plan) = self.agenda.advance(None) {
            if let Plan::Commits(_, writes) = plan {
                _ = self.commit(OWNER, &writes);
            }
        }
        if let Some(persons) = &self.persons {
            persons.is_over(&asked, &self.ledger, self.judge.finished.is_some());
        }
    }

    fn finish(mut self) -> Outcome {
        sweep(&self.engine);
        self.persons_are_asked_no_more();
        self.judge.everything_is_settled(self.ended);
        assert!(self.ended, "the client has left and outlast has not ended");
        let left = self.engine.open_calls();
        assert_eq!(left, 0, "calls are left behind");
        self.steps.are_over();
        self.outcome.calls = self.judge.requests() as u64;
        self.outcome.failed = self.judge.failed;
        self.outcome.cancelled = self.judge.cancelled;
        self.outcome.progress = self.judge.progress;
        self.outcome
    }
}
