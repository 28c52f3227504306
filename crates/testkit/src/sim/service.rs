//! The world of a service: HTTP clients of two principals and of none, in front of processes that are
//! shared, or of remote servers.
//!
//! Legacy clients are sessions: they drop their streams and come back, cancel, answer questions, fall
//! asleep and leave. Modern clients are one POST each, and a hang-up is a cancel. Every payload is marked
//! with whose it is.

mod judge;
mod modern;
pub(super) mod remote;
mod servers;
mod session;
mod visit;

use super::agenda::{Agenda, Next};
use super::process::Deed;
use super::rng::Rng;
use super::steps::Steps;
use super::subject::Subject;
use super::{Outcome, SWEEP, engine, fingerprint, limits, sampled, sweep};
use crate::exchange::{Exchanges, NAMES, mirror, read};
use crate::ledger::Ledger;
use bytes::Bytes;
use judge::Judge;
use modern::Caller;
use outlast_engine::event::Line;
use outlast_engine::id::{ExchangeId, Run, ServerId};
use outlast_engine::limits::{KNOCKS, STREAM_HEAD};
use outlast_engine::settings::Key;
use outlast_engine::store::{Query, Write};
use outlast_engine::wire::scan;
use outlast_engine::{
    Action, Config, Event, Manner, Mono, Now, Restart, ServerConfig, Share, Transport, Wall,
};
use remote::Happening;
use servers::{Peer, PeerKind};
use session::{Move, Session};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use visit::{Visit, What};

/// Events after which a world does not come to an end any more.
const ENDLESS: u64 = 2_000_000;

/// By then every session is forgotten that was ever made.
const LONG: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// How often somebody tries a session that is not his, or is no more.
const INTRUSIONS: usize = 20;

/// The name of the service in its store, and the line on which commits keep their order.
const OWNER: &str = "service";
const STORE: u64 = 1 << 40;

/// Who must not get in.
const INTRUDER: &str = "intruder";

/// Something that will happen.
#[derive(Debug)]
enum Plan {
    Moves(usize, u32, Move),
    Calls(usize),
    HangsUp(ExchangeId),
    /// Somebody uses what is not his.
    Intrudes,
    /// More ask for sessions that nobody knows than may wait for the store.
    Crowds,
    Starts(ServerId, Run),
    Does(ServerId, Run, Deed),
    Happens(ServerId, Run, Happening),
    /// The store commits what it was given.
    Commits(u64, Vec<Write>),
    /// The store has looked something up.
    Finds(u64, Query),
    Slept,
    Stop,
}

/// What a world is like; drawn from the seed.
#[derive(Clone, Copy, Debug)]
struct Character {
    /// Servers ask clients something.
    asks: bool,
    /// Servers crash, or cannot be reached, or forget their sessions.
    crashes: bool,
    /// Clients lose their connections.
    drops: bool,
    /// Clients read too slowly at times, and are cut off.
    slow: bool,
    /// Servers speak of what others were asked.
    forges: bool,
    /// Servers say more than is kept for a client that is away.
    floods: bool,
}

/// Who reads the response to a request: a session, in which of its lives, and as part of which stream.
type Reader = Option<(usize, u32, Option<usize>)>;

struct World {
    rng: Rng,
    engine: Subject,
    steps: Steps,
    agenda: Agenda<Plan>,
    character: Character,
    transport: Transport,
    wall_offset: u64,
    exchanges: Exchanges,
    readers: Vec<Reader>,
    sessions: Vec<Session>,
    callers: Vec<Caller>,
    servers: BTreeMap<ServerId, Peer>,
    ledger: Ledger,
    judge: Judge,
    /// Connections that were cut off just now.
    cut_off: BTreeSet<ExchangeId>,
    entropy: u64,
    work: u64,
    outcome: Outcome,
    ended: bool,
}

/// Runs one world to its end; panics if an invariant breaks.
pub fn run(seed: u64, calls: usize) -> Outcome {
    let mut rng = Rng::new(seed);
    let character = Character {
        asks: rng.chance(40),
        crashes: rng.chance(40),
        drops: rng.chance(70),
        slow: rng.chance(20),
        forges: rng.chance(20),
        floods: rng.chance(5),
    };
    let config = config(&mut rng);
    // Where little happens, nothing else wakes what was forgotten.
    let calls = if rng.chance(30) { calls / 10 } else { calls };
    let mut world = World {
        engine: engine(config.clone()),
        steps: Steps::default(),
        agenda: Agenda::new(),
        character,
        transport: config.server.transport,
        wall_offset: 0,
        exchanges: Exchanges::default(),
        readers: Vec::new(),
        sessions: Vec::new(),
        callers: Vec::new(),
        servers: BTreeMap::new(),
        ledger: Ledger::default(),
        judge: Judge::new(&config),
        cut_off: BTreeSet::new(),
        entropy: 0,
        work: 0,
        outcome: Outcome::default(),
        ended: false,
        rng,
    };
    (world.judge.floods, world.judge.asks) = (character.floods, character.asks);
    world.populate(&config, calls);
    world.live();
    world.finish()
}

fn config(rng: &mut Rng) -> Config {
    let transport = if rng.chance(50) { Transport::Process } else { Transport::Http };
    let share =
        [Share::Principal, Share::Principal, Share::Principal, Share::Session, Share::All][rng.below(5)];
    let server = ServerConfig { name: "sim".into(), transport, share, ..ServerConfig::default() };
    let mut config = Config { manner: Manner::Serve, ..server.into() };
    limits(&mut config, rng);
    for rule in [
        "tools/list=timeout:700ms,max:10s",
        "prompts/*=timeout:2s,max:10s",
        "resources/*=timeout:2s,max:10s",
        "vendor/*=timeout:2s,max:10s",
        "ping=timeout:1s,max:3s",
        "logging/*=timeout:1s,max:3s",
    ] {
        config.rules_mut().add(Key::Method, rule, "--method").expect("a rule");
    }
    config.server_mut().restart = [Restart::OnCrash, Restart::OnHang, Restart::OnTimeout][rng.below(3)];
    // What `serve` has by default.
    (config.tasks, config.resumable) = (true, true);
    config.is_called("sim".into());
    config.durable = rng.chance(50);
    config.session_idle = rng.millis(500, 120_000);
    config.resume_wait = rng.millis(1_000, 600_000);
    config.stream_head = [Duration::ZERO, STREAM_HEAD, Duration::from_millis(200)][rng.below(3)];
    if rng.chance(10) {
        config.max_sessions = rng.between(1, 3) as usize;
    }
    if rng.chance(10) {
        config.max_calls = rng.between(1, 10) as usize;
    }
    config
}

impl World {
    fn populate(&mut self, config: &Config, calls: usize) {
        self.feed(Event::Entropy([0; 32]));
        self.feed(Event::Begin);
        let principals = [Some(NAMES[0]), Some(NAMES[1]), None];
        let (sessions, callers) = (self.rng.below(6) + 1, self.rng.below(4));
        let share = calls / (sessions + callers) + 1;
        for index in 0..sessions {
            let principal = principals[self.rng.below(3)];
            self.sessions.push(Session::new(index, principal, share, config.session_idle, &mut self.rng));
        }
        for index in 0..callers {
            self.callers.push(Caller::new(index, principals[self.rng.below(3)], share));
            self.agenda.plan(self.rng.millis(0, 2_000), Plan::Calls(index));
        }
        if self.rng.chance(30) {
            self.agenda.plan(self.rng.millis(0, 60_000), Plan::Stop);
        }
        if self.rng.chance(10) {
            self.agenda.plan(self.rng.millis(0, 10_000), Plan::Slept);
        }
        if self.rng.chance(3) {
            self.agenda.plan(self.rng.millis(0, 10_000), Plan::Crowds);
        }
        for _ in 0..INTRUSIONS {
            self.agenda.plan(self.rng.millis(0, 60_000), Plan::Intrudes);
        }
        self.peers_act();
    }

    fn live(&mut self) {
        while !self.ended {
            assert!(self.agenda.now < LONG, "something here never ends");
            match self.agenda.advance(self.engine.next_deadline()) {
                Next::Nothing => return,
                Next::Happens(plan) => self.happen(plan),
                Next::Due => self.feed(Event::Tick),
            }
            self.peers_act();
        }
    }

    fn happen(&mut self, plan: Plan) {
        match plan {
            Plan::Moves(index, generation, next) => self.session_moves(index, generation, next),
            Plan::Calls(index) => self.caller_calls(index),
            Plan::HangsUp(exchange) => self.hang_up(exchange),
            Plan::Intrudes => self.intrude(),
            Plan::Crowds => self.crowd(),
            Plan::Starts(server, run) => self.process_starts(server, run),
            Plan::Does(server, run, deed) => self.process_does(server, run, deed),
            Plan::Happens(server, run, happening) => self.remote_happens(server, run, happening),
            Plan::Commits(number, writes) => {
                let stored = self.ledger.submit(OWNER, Wall(self.wall_offset), &writes);
                self.feed(Event::Stored(number, stored));
            }
            Plan::Finds(number, query) => {
                let found = self.ledger.load(OWNER, Wall(self.wall_offset), &query);
                self.feed(Event::Loaded(number, found));
            }
            Plan::Slept => {
                self.wall_offset += 3_600_000;
                self.feed(Event::Slept(Duration::from_secs(3600)));
            }
            Plan::Stop => {
                self.judge.ending = true;
                self.feed(Event::Stop(15));
            }
        }
    }

    // Clients.

    fn session_moves(&mut self, index: usize, generation: u32, next: Move) {
        let session = &mut self.sessions[index];
        if session.generation != generation {
            return;
        }
        let made = session.act(&mut self.rng, next);
        if session.has_left() {
            for exchange in self.sessions[index].open() {
                let after = self.rng.millis(0, 100);
                self.agenda.plan(after, Plan::HangsUp(exchange));
            }
        }
        self.take_losses(index);
        let Some((visit, thread)) = made else { return };
        let posts = matches!(visit.what, What::Post(_));
        let Character { drops, floods, .. } = self.character;
        // Who is away does not read what is too much to be kept.
        let drops = (drops || floods) && self.rng.chance(if floods { 40 } else { 12 });
        let after = visit::while_of(&mut self.rng, 50, 5_000);
        let exchange = self.visit(visit, Some((index, generation, thread)), |world, exchange| {
            if let Some(thread) = thread {
                world.sessions[index].sends(thread, exchange, posts);
            }
        });
        if drops {
            self.agenda.plan(after, Plan::HangsUp(exchange));
        }
    }

    fn take_losses(&mut self, index: usize) {
        for post in std::mem::take(&mut self.sessions[index].lost) {
            self.judge.lost(post);
        }
    }

    fn caller_calls(&mut self, index: usize) {
        if self.callers[index].is_done() {
            return;
        }
        let (visit, gives_up) = self.callers[index].call(&mut self.rng);
        let exchange = self.visit(visit, None, |_, _| {});
        if let Some(after) = gives_up {
            self.agenda.plan(after, Plan::HangsUp(exchange));
        }
        let pause = visit::while_of(&mut self.rng, 10, 1_000);
        self.agenda.plan(pause, Plan::Calls(index));
    }

    /// A client sends a request; `first` is done before the engine hears of it.
    fn visit(
        &mut self,
        visit: Visit,
        reader: Reader,
        first: impl FnOnce(&mut World, ExchangeId),
    ) -> ExchangeId {
        let mut head = visit.head();
        let line: Option<Line> = match &visit.what {
            What::Post(body) => Some(scan(Bytes::from(body.clone()))),
            What::Get(_) | What::Delete => None,
        };
        if let Some(line) = line.as_ref().filter(|_| visit.is_modern()) {
            mirror(&mut head, line);
        }
        let exchange = self.exchanges.open(&head, visit.is_modern());
        self.readers.push(reader);
        self.judge.visited(self.agenda.now, &self.engine, &visit, line.as_ref());
        first(self, exchange);
        let head = Box::new(head);
        self.feed(match (visit.what, line) {
            (What::Post(_), Some(line)) => Event::Posted(exchange, head, line),
            (What::Delete, _) => Event::Deleted(exchange, head),
            _ => Event::Got(exchange, head),
        });
        exchange
    }

    /// Somebody names a session of another principal, or one that has ended, or his own with a stream of
    /// another.
    fn intrude(&mut self) {
        let known = &self.exchanges.sessions;
        if known.is_empty() {
            return;
        }
        let (name, owner) = known[self.rng.below(known.len())].clone();
        let (ended, streams) = (self.judge.has_ended(&name), self.judge.streams_of_others(&name));
        let own = ended || (!streams.is_empty() && self.rng.chance(50));
        let fits = |principal: &Option<&str>| (*principal == owner.as_deref()) == own;
        let whoever: Vec<_> = [Some(NAMES[0]), Some(NAMES[1]), None].into_iter().filter(fits).collect();
        let what = match self.rng.below(4) {
            // With the mark of this session, which the world makes of the same bytes as its name.
            _ if own && !ended => {
                What::Get(Some(format!("{name}-{}-0", streams[self.rng.below(streams.len())])))
            }
            0 => What::Get(None),
            1 => What::Delete,
            _ => What::Post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#.into()),
        };
        let principal = whoever[self.rng.below(whoever.len())];
        let owner = INTRUDER.to_owned();
        self.visit(Visit { principal, owner, session: Some(name), version: None, what }, None, |_, _| {});
    }

    fn crowd(&mut self) {
        for number in 0..KNOCKS + 10 {
            let session = Some(format!("f{number:031x}").into());
            let owner = INTRUDER.to_owned();
            let what = What::Get(None);
            let visit = Visit { principal: Some(NAMES[0]), owner, session, version: None, what };
            self.visit(visit, None, |_, _| {});
        }
    }

    fn hang_up(&mut self, exchange: ExchangeId) {
        if let Some(event) = self.breaks(exchange) {
            self.feed(event);
        }
    }

    /// A connection to a client breaks, if it is there.
    fn breaks(&mut self, exchange: ExchangeId) -> Option<Event> {
        let event = self.exchanges.hang_up(exchange)?;
        self.judge.hung_up(self.agenda.now, &self.engine, exchange);
        self.tell_reader(exchange, |session, rng, thread| session.ended(rng, thread, exchange, true));
        Some(event)
    }

    fn tell_reader(&mut self, exchange: ExchangeId, what: impl FnOnce(&mut Session, &mut Rng, usize)) {
        if let Some((index, _, Some(thread))) = self.readers[exchange.0 as usize] {
            what(&mut self.sessions[index], &mut self.rng, thread);
            self.take_losses(index);
        }
    }

    /// Turns what everybody wants into plans.
    fn peers_act(&mut self) {
        for (index, session) in self.sessions.iter_mut().enumerate() {
            for (after, generation, next) in std::mem::take(&mut session.plans) {
                self.agenda.plan(after, Plan::Moves(index, generation, next));
            }
        }
        for (id, peer) in &mut self.servers {
            match &mut peer.kind {
                PeerKind::Process(process, _) => {
                    for (after, run, deed) in std::mem::take(&mut process.deeds) {
                        let ordered = deed.keeps_its_place();
                        let (line, plan) = (u64::from(id.0), Plan::Does(*id, run, deed));
                        if ordered {
                            self.agenda.plan_in_order(line, after, plan);
                        } else {
                            self.agenda.plan(after, plan);
                        }
                    }
                }
                PeerKind::Remote(remote) => {
                    for (after, run, happening) in std::mem::take(&mut remote.happenings) {
                        self.agenda.plan(after, Plan::Happens(*id, run, happening));
                    }
                }
            }
        }
    }

    // The engine.

    fn feed(&mut self, event: Event) {
        let now = Now { mono: Mono::after_start(self.agenda.now), wall: Wall(self.wall_offset) };
        self.judge.blame.told(self.agenda.now, &event);
        self.engine.handle(now, event);
        self.outcome.events += 1;
        assert!(self.outcome.events < ENDLESS, "this world does not come to an end");
        while let Some(action) = self.engine.poll() {
            self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
            self.judge.blame.done(self.agenda.now, &action);
            if let Some(event) = self.perform(now, action) {
                self.judge.blame.told(self.agenda.now, &event);
                self.engine.handle(now, event);
            }
        }
        self.cut_off.clear();
        self.judge.batch_ends(self.agenda.now);
        if self.outcome.events.is_multiple_of(SWEEP) {
            sweep(&self.engine);
        }
    }

    /// Does one thing. Some things answer at once with an event.
    fn perform(&mut self, now: Now, action: Action) -> Option<Event> {
        match action {
            Action::Respond(id, _) | Action::Write(id, _) | Action::Finish(id)
                if self.cut_off.contains(&id) => {}
            Action::Respond(id, response) => {
                self.exchanges.respond(id, &response);
                self.judge.responded(self.agenda.now, id, &response);
                if let Some((index, generation, thread)) = self.readers[id.0 as usize] {
                    self.sessions[index].responded(&mut self.rng, generation, thread, id, &response);
                    self.take_losses(index);
                }
            }
            Action::Write(id, written) => return self.write(id, &written),
            Action::Finish(id) => {
                self.exchanges.finish(id);
                self.judge.finished(self.agenda.now, id);
                // The end, and what came with it, may be lost on its way.
                let broke = self.character.drops && self.rng.chance(3);
                self.tell_reader(id, |session, rng, thread| session.ended(rng, thread, id, broke));
            }
            Action::NeedEntropy => {
                self.entropy += 1;
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&self.entropy.to_le_bytes());
                bytes[16..24].copy_from_slice(&self.entropy.to_le_bytes());
                return Some(Event::Entropy(bytes));
            }
            Action::Start(id, run) => return self.start(id, run),
            Action::ToServer(id, message) => self.tell_process(id, &message),
            Action::Sample(id) => {
                let sampled = sampled(&mut self.rng, &mut self.work, now, id);
                let remote = self.transport == Transport::Http;
                return Some(if remote { Event::Sampled(id, None) } else { sampled });
            }
            Action::Store(number, writes) => {
                let after = visit::while_of(&mut self.rng, 3, 400);
                self.agenda.plan_in_order(STORE, after, Plan::Commits(number, writes));
            }
            Action::Load(number, query) => {
                let after = visit::while_of(&mut self.rng, 3, 400);
                self.agenda.plan(after, Plan::Finds(number, query));
            }
            Action::LetGo(id) => {
                self.judge.let_go(self.agenda.now);
                self.servers.remove(&id);
            }
            Action::CloseDoor => panic!("one process has nobody to leave its clients to"),
            Action::Note(note) => drop(note.to_string()),
            Action::End { .. } => self.ended = true,
            Action::NeedIdentity => return Some(Event::Identity("sim".into())),
            Action::Step(_) => self.steps.take(&action),
            Action::Remember(..) | Action::Forget(_) | Action::Learn(_) => {}
            Action::ToClient(..) => panic!("{action:?} in a world without pipes to clients"),
            action => self.tell_server(action),
        }
        None
    }

    fn write(&mut self, id: ExchangeId, written: &Bytes) -> Option<Event> {
        self.exchanges.write(id);
        self.judge.wrote(self.agenda.now, id, written);
        if self.character.slow && self.rng.chance(1) {
            self.cut_off.insert(id);
            return self.breaks(id);
        }
        for event in read(written) {
            self.tell_reader(id, |session, rng, thread| session.read(rng, thread, id, &event));
        }
        None
    }

    fn finish(mut self) -> Outcome {
        sweep(&self.engine);
        self.judge.everything_is_settled();
        assert_eq!(self.ended, self.judge.ending, "a service ends when it is stopped, and only then");
        for (number, exchange) in self.exchanges.all().iter().enumerate() {
            assert!(!exchange.is_open(), "exchange {number} was left open");
        }
        assert_eq!(self.engine.open_calls(), 0, "calls are left behind");
        self.steps.are_over();
        if !self.ended
            && let Err(left) = self.engine.check_nothing_is_left()
        {
            panic!("{left}");
        }
        self.outcome.calls = self.judge.requests();
        self.outcome.failed = self.judge.failed;
        self.outcome.cancelled = self.judge.cancelled;
        self.outcome.progress = self.judge.progress;
        self.outcome.resumed = self.judge.resumed;
        self.outcome.bounds = self.judge.bounds;
        self.outcome
    }
}
