//! The world of crashes: the process ends at any point, another begins over the same store, and no ticket is
//! lost, answers twice or goes back.
//!
//! Clients of both eras call tools under every face of a ticket, and come back for what they were promised.
//! A *point* is a moment at which the process can end: before every event, between any two of its actions,
//! before and after every commit. What was on its way to a client is lost then; what was submitted and not
//! committed is lost, or is written when nobody expects it any more (see [`Fate`]).
//!
//! [`run`] draws a world and its crashes from a seed; [`at_every_point`] plays one scenario once for each
//! point between a call and its answer.

mod clients;
mod judge;
mod person;
mod receiver;
mod scenes;
mod servers;

use super::agenda::{Agenda, Next};
use super::rng::Rng;
use super::steps::Steps;
use super::subject::Subject;
use super::{Outcome, SWEEP, engine, fingerprint, sweep};
use crate::exchange::Exchanges;
use crate::ledger::Ledger;
use bytes::Bytes;
use clients::{Client, Visit};
use judge::{End, Judge};
use outlast_engine::callback::{Callback, Delivery};
use outlast_engine::id::{AttemptId, ClientId, ExchangeId, Run, ServerId};
use outlast_engine::limits::LEASE;
use outlast_engine::reached::Bound;
use outlast_engine::store::Write;
use outlast_engine::{Action, Config, Event, Manner, Mono, Now, Transport, Wall};
use receiver::{Receiver, ends_have_callbacks};
pub use scenes::{Scene, at_every_point, run};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// The client and the server of a process that wraps one.
const CLIENT: ClientId = ClientId(0);
const SERVER: ServerId = ServerId(0);

/// Events after which a world does not come to an end any more.
const ENDLESS: u64 = 200_000;

/// By then every ticket has come to its end.
const LONG: Duration = Duration::from_secs(20 * 60);

/// How long a process that stands still does so: longer than its lease.
const STANDSTILL: Duration = Duration::from_secs(20);

/// How long replicas are looked at when the last client has left: longer than anything waits for one.
const LEFT_ALONE: Duration = Duration::from_secs(3 * 60);

/// How wrong the clock of a process can be.
const HOUR: Duration = Duration::from_secs(60 * 60);

/// What the store's clock showed when the world began.
const EARLIER: Duration = Duration::from_secs(2 * 60 * 60);

/// Lines of the agenda on which things keep their order: commits and what is said of them, words to
/// the client of a process that wraps, to servers, on exchanges.
const COMMITS: u64 = 0;
const LINE: u64 = 1 << 20;
const SERVERS: u64 = 1 << 24;
const EXCHANGES: u64 = 1 << 32;

/// How a process ends, or seems to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// What was submitted and not committed is lost; the end is noticed at once.
    Lost,
    /// What was submitted is committed after the next process has taken over.
    Late,
    /// The end is noticed only when the lease is over.
    Leased,
    /// It only stands still, is taken for dead, and then goes on beside the next one.
    Frozen,
    /// It lives on without its connections: its clients come to another process beside it.
    Moves,
    /// It is told to end, and new connections come to another process beside it.
    Leaves,
    /// It lives on, and somebody else does not: a client deletes its session.
    Deletes,
    /// Every connection of its clients is cut.
    Cuts,
    /// Every server of it is killed.
    Kills,
}

impl Fate {
    /// All of them.
    pub const ALL: [Fate; 9] = [
        Fate::Lost,
        Fate::Late,
        Fate::Leased,
        Fate::Frozen,
        Fate::Moves,
        Fate::Leaves,
        Fate::Deletes,
        Fate::Cuts,
        Fate::Kills,
    ];
}

/// Something that will happen.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // few are planned at a time
enum Plan {
    Begins,
    /// Something reaches a process.
    Reaches(usize, Event),
    /// The store of a process commits what it was given.
    Commits(usize, u64, Vec<Write>),
    /// The same of a process that has ended.
    CommitsLate(String, Vec<Write>),
    /// A message reaches a server.
    Serves(usize, ServerId, Run, Option<AttemptId>, Bytes),
    /// What a process wrote reaches a client.
    Hears(usize, Heard),
    Acts(usize),
    /// A person decides about a hold.
    Decides(u64),
    /// A callback reaches its receiver.
    CallsBack(usize, Box<Callback>),
    /// A process learns what came of it.
    AnswersCallback(usize, Box<Callback>, Delivery),
    /// A process learns that a client has hung up.
    HangsUp(usize, ExchangeId),
    LeaseEnds(usize),
    /// A process that wants to end has written all that it had to write.
    Ends(usize),
}

#[derive(Debug)]
enum Heard {
    Response(ExchangeId, outlast_engine::http::Response),
    Events(ExchangeId, Bytes),
    End(ExchangeId),
    Line(Bytes),
}

/// One process.
#[derive(Debug)]
struct Life {
    engine: Subject,
    steps: Steps,
    clock: Clock,
    /// The run of each of its servers.
    servers: BTreeMap<ServerId, Run>,
    ended: bool,
    /// It wants to end: nothing is fed to it any more.
    ends_in_order: bool,
    writes_late: bool,
    stands_still_until: Duration,
    /// Its clients have come to another process, and it lives on.
    moved: bool,
    /// It was told to end while its clients come to another process.
    leaves: bool,
    /// It takes no new connections, and is to hear when the last one is gone.
    door_closed: bool,
}

/// What the wall clock of a process shows.
#[derive(Clone, Copy, Debug)]
enum Clock {
    /// What the store's shows.
    Right,
    /// An hour more.
    Fast,
    /// An hour less.
    Slow,
}

/// When processes end.
#[derive(Clone, Copy, Debug)]
enum Crashes {
    /// At this point, counted from the first call, and in this way.
    At(u64, Fate),
    /// At any point, at most so often.
    AnyTime(u32),
}

struct World {
    rng: Rng,
    config: Config,
    agenda: Agenda<Plan>,
    ledger: Ledger,
    lives: Vec<Life>,
    /// The process that takes connections.
    front: Option<usize>,
    exchanges: Exchanges,
    visits: Vec<Visit>,
    clients: Vec<Client>,
    /// Servers that have ended.
    gone: BTreeSet<(usize, ServerId, Run)>,
    judge: Judge,
    receiver: Receiver,
    crashes: Crashes,
    /// Servers speak of what others were asked.
    forges: bool,
    /// When the last client left.
    left: Option<Duration>,
    /// Points so far, while a call is between its request and its answer.
    points: u64,
    entropy: u64,
    outcome: Outcome,
}

impl World {
    fn new(scene: &Scene, seed: u64, crashes: Crashes) -> World {
        let mut world = World {
            rng: Rng::new(seed),
            config: scene.config(),
            agenda: Agenda::new(),
            ledger: Ledger::default(),
            lives: Vec::new(),
            front: None,
            exchanges: Exchanges::default(),
            visits: Vec::new(),
            clients: scene.clients(),
            gone: BTreeSet::new(),
            judge: Judge::default(),
            receiver: Receiver::default(),
            crashes,
            forges: scene.forges,
            left: None,
            points: 0,
            entropy: 0,
            outcome: Outcome::default(),
        };
        world.agenda.plan(Duration::ZERO, Plan::Begins);
        for client in 0..world.clients.len() {
            world.agenda.plan(Duration::from_millis(10), Plan::Acts(client));
        }
        world
    }

    fn live(&mut self) {
        loop {
            let done = self.clients.iter().flat_map(|client| &client.errands).all(|errand| errand.done);
            assert!(done || self.agenda.now < LONG, "something never ends: {:?}", self.clients);
            let due = |life: &Life| {
                let at = life.engine.next_deadline().filter(|_| !life.ended && !life.ends_in_order)?;
                Some(at.max(Mono::after_start(life.stands_still_until)))
            };
            let first = (0..self.lives.len()).filter_map(|at| Some((due(&self.lives[at])?, at))).min();
            let first = first.filter(|_| !self.is_at_rest());
            self.end_what_goes_on();
            match self.agenda.advance(first.map(|(due, _)| due)) {
                Next::Nothing => return,
                Next::Happens(plan) => self.happen(plan),
                Next::Due => self.feed(first.map_or(0, |(_, at)| at), Event::Tick),
            }
        }
    }

    /// A replica looks for what others leave for as long as it lives, and it may live for a session that sleeps for a day.
    fn end_what_goes_on(&mut self) {
        let over = self.left.is_some_and(|left| self.agenda.now > left + LEFT_ALONE);
        if self.config.replicated && over {
            self.left = None;
            let lives = (0..self.lives.len()).filter(|life| self.is_up(*life));
            let stops: Vec<_> = lives.map(|life| Plan::Reaches(life, Event::Stop(15))).collect();
            stops.into_iter().for_each(|stop| self.agenda.plan(Duration::ZERO, stop));
        }
    }

    /// Whether nothing will come any more. A replica looks for what others leave for as long as it lives.
    fn is_at_rest(&self) -> bool {
        let rests =
            |life: &Life| life.ended || life.ends_in_order || life.engine.check_nothing_is_left().is_ok();
        self.agenda.is_empty()
            && self.clients.iter().all(|client| client.left)
            && self.lives.iter().all(rests)
    }

    fn happen(&mut self, plan: Plan) {
        match plan {
            Plan::Begins => self.begin(),
            Plan::Acts(client) => self.act(client),
            Plan::Decides(hold) => self.decide(hold),
            Plan::CallsBack(life, callback) => self.is_called_back(life, &callback),
            Plan::LeaseEnds(life) => {
                Bound::LEASE.mark();
                self.ledger.dead.push(owner(life));
            }
            Plan::Ends(life) if self.is_up(life) && self.front == Some(life) => self.crash(life, Fate::Lost),
            Plan::Ends(life) if self.is_up(life) && self.lives[life].leaves => {
                self.ledger.dead.push(owner(life));
                self.lives[life].ended = true;
                self.connections_break(life);
            }
            Plan::CommitsLate(owner, writes) => self.commit(&owner, &writes, |_, _| {}),
            Plan::Serves(life, server, run, attempt, bytes) => {
                self.serve(life, server, run, attempt, &bytes);
            }
            Plan::Hears(life, heard) if self.is_up(life) => self.hear(heard),
            Plan::Reaches(life, _)
            | Plan::Commits(life, ..)
            | Plan::HangsUp(life, _)
            | Plan::AnswersCallback(life, ..)
                if self.stands_still(life) =>
            {
                let wait = self.lives[life].stands_still_until - self.agenda.now;
                self.agenda.plan(wait, plan);
            }
            Plan::Reaches(life, event) => self.feed(life, event),
            Plan::AnswersCallback(life, callback, delivery) => {
                self.callback_is_answered(life, &callback, delivery);
            }
            Plan::HangsUp(life, exchange) if self.is_up(life) => {
                if self.ends_here(life) {
                    self.agenda.plan(Duration::ZERO, Plan::HangsUp(life, exchange));
                } else if let Some(event) = self.exchanges.hang_up(exchange) {
                    self.take(life, event);
                }
            }
            Plan::Commits(life, number, writes) if self.is_up(life) => {
                if self.ends_here(life) {
                    return self.agenda.plan(Duration::ZERO, Plan::Commits(life, number, writes));
                }
                self.commit(&owner(life), &writes, |world, stored| {
                    let after = world.rng.millis(0, 3);
                    let told = Plan::Reaches(life, Event::Stored(number, stored));
                    world.agenda.plan_in_order(COMMITS + 2 * life as u64 + 1, after, told);
                });
            }
            Plan::Commits(life, _, writes) => {
                if self.lives[life].writes_late {
                    let late = Plan::CommitsLate(owner(life), writes);
                    self.agenda.plan(Duration::from_secs(2), late);
                }
            }
            Plan::Hears(..) | Plan::Ends(_) | Plan::HangsUp(..) => {}
        }
    }

    fn is_up(&self, life: usize) -> bool {
        !self.lives[life].ended
    }

    fn stands_still(&self, life: usize) -> bool {
        self.is_up(life) && self.agenda.now < self.lives[life].stands_still_until
    }

    /// What the store's clock shows. It began long before, so that a process can be behind it.
    fn store_time(&self) -> Wall {
        Wall(self.agenda.now.as_millis() as u64).after(EARLIER)
    }

    /// Both clocks of a process. Its wall clock may be wrong.
    fn now_of(&self, life: usize) -> Now {
        let wall = self.store_time();
        let wall = match self.lives[life].clock {
            Clock::Right => wall,
            Clock::Fast => wall.after(HOUR),
            Clock::Slow => wall.before(HOUR),
        };
        Now { mono: Mono::after_start(self.agenda.now), wall }
    }

    fn commit(
        &mut self,
        owner: &str,
        writes: &[Write],
        then: impl FnOnce(&mut World, outlast_engine::store::Stored),
    ) {
        if writes.contains(&Write::Renew) {
            self.ledger.dead.retain(|name| name != owner);
        }
        let stored = self.ledger.submit(owner, self.store_time(), writes);
        self.judge.committed(&self.ledger);
        if !self.config.callbacks.is_empty() {
            ends_have_callbacks(&self.ledger);
        }
        self.persons_are_asked(&stored);
        then(self, stored);
    }

    // The process.

    fn begin(&mut self) {
        let life = self.lives.len();
        let engine = engine(self.config.clone());
        let clock = [Clock::Right, Clock::Right, Clock::Fast, Clock::Slow][self.rng.below(4)];
        self.lives.push(Life {
            engine,
            steps: Steps::default(),
            clock,
            servers: BTreeMap::new(),
            ended: false,
            ends_in_order: false,
            writes_late: false,
            stands_still_until: Duration::ZERO,
            moved: false,
            leaves: false,
            door_closed: false,
        });
        self.front = Some(life);
        let entropy = self.random();
        self.feed(life, entropy);
        self.feed(life, Event::Begin);
        if self.config.manner == Manner::Wrap {
            self.feed(life, Event::Remembered(SERVER, Vec::new()));
            self.feed(life, Event::Opened(CLIENT, SERVER));
        }
    }

    fn random(&mut self) -> Event {
        self.entropy += 1;
        let mut bytes = [7; 32];
        bytes[..8].copy_from_slice(&self.entropy.to_le_bytes());
        Event::Entropy(bytes)
    }

    /// Whether a process ends at this point; it has, then.
    fn ends_here(&mut self, life: usize) -> bool {
        if self.front != Some(life) || !self.clients.iter().any(Client::is_owed) {
            return false;
        }
        self.points += 1;
        let fate = match self.crashes {
            Crashes::At(point, fate) => (point == self.points).then_some(fate),
            Crashes::AnyTime(0) => None,
            Crashes::AnyTime(left) => {
                let fate = self.rng.chance(2).then(|| Fate::ALL[self.rng.below(Fate::ALL.len())]);
                self.crashes = Crashes::AnyTime(left - u32::from(fate.is_some()));
                fate
            }
        };
        self.outcome.crashes += u64::from(fate.is_some());
        match fate {
            None => return false,
            Some(Fate::Deletes) => self.delete_a_session(life),
            Some(Fate::Cuts) => self.cut_connections(life),
            Some(Fate::Kills) => self.kill_servers(life),
            Some(fate) => {
                self.crash(life, fate);
                return true;
            }
        }
        false
    }

    fn crash(&mut self, life: usize, fate: Fate) {
        // A client of a process that wraps goes with it.
        let survives = matches!(fate, Fate::Frozen | Fate::Moves | Fate::Leaves);
        let fate = if self.config.manner == Manner::Wrap && survives { Fate::Lost } else { fate };
        self.front = None;
        if self.clients.iter().any(|client| !client.left) {
            let soon = self.rng.millis(1, 50);
            self.agenda.plan(soon, Plan::Begins);
        }
        match fate {
            Fate::Lost => self.ledger.dead.push(owner(life)),
            Fate::Late => {
                self.ledger.dead.push(owner(life));
                self.lives[life].writes_late = true;
            }
            Fate::Leased | Fate::Frozen => self.agenda.plan(LEASE, Plan::LeaseEnds(life)),
            Fate::Moves => {
                self.lives[life].moved = true;
                return self.cut_connections(life);
            }
            Fate::Leaves => {
                (self.lives[life].moved, self.lives[life].leaves) = (true, true);
                return self.agenda.plan(Duration::ZERO, Plan::Reaches(life, Event::Stop(15)));
            }
            Fate::Deletes | Fate::Cuts | Fate::Kills => panic!("{fate:?} ends no process"),
        }
        if fate == Fate::Frozen {
            self.lives[life].stands_still_until = self.agenda.now + STANDSTILL;
            return;
        }
        self.lives[life].ended = true;
        self.connections_break(life);
    }

    /// Processes that were taken for dead hold what nobody comes back to them for.
    pub(super) fn end_the_others(&mut self, front: usize) {
        for life in (0..self.lives.len()).filter(|life| *life != front) {
            self.agenda.plan(STANDSTILL, Plan::Reaches(life, Event::Stop(15)));
        }
    }

    fn feed(&mut self, life: usize, event: Event) {
        if !self.is_up(life) || self.lives[life].ends_in_order {
            return;
        }
        if self.ends_here(life) {
            return self.agenda.plan(Duration::ZERO, Plan::Reaches(life, event));
        }
        self.take(life, event);
    }

    fn take(&mut self, life: usize, event: Event) {
        let now = self.now_of(life);
        self.outcome.events += 1;
        assert!(self.outcome.events < ENDLESS, "this world does not come to an end: {:?}", self.clients);
        if let Event::Posted(id, ..) | Event::Deleted(id, _) = &event {
            self.visits[id.0 as usize].arrived = true;
        }
        self.lives[life].engine.handle(now, event);
        while let Some(action) = self.lives[life].engine.poll() {
            if self.ends_here(life) {
                self.finish_turn(life, action);
                return;
            }
            self.perform(life, now, action);
        }
        if self.outcome.events.is_multiple_of(SWEEP / 10) {
            sweep(&self.lives[life].engine);
        }
        if self.lives[life].door_closed && !self.has_connections(life) {
            self.lives[life].door_closed = false;
            self.agenda.plan(Duration::ZERO, Plan::Reaches(life, Event::DoorEmpty));
        }
    }

    /// A process that only stands still does the rest of its turn later.
    fn finish_turn(&mut self, life: usize, action: Action) {
        if self.is_up(life) {
            let now = self.now_of(life);
            self.perform(life, now, action);
            while let Some(action) = self.lives[life].engine.poll() {
                self.perform(life, now, action);
            }
        }
    }

    fn perform(&mut self, life: usize, now: Now, action: Action) {
        self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
        let after = self.rng.millis(0, 4);
        match action {
            Action::Respond(id, response) => {
                self.exchanges.respond(id, &response);
                self.deliver(EXCHANGES + id.0, life, Heard::Response(id, response));
            }
            Action::Write(id, bytes) => {
                self.exchanges.write(id);
                self.deliver(EXCHANGES + id.0, life, Heard::Events(id, bytes));
            }
            Action::Finish(id) => {
                self.exchanges.finish(id);
                self.deliver(EXCHANGES + id.0, life, Heard::End(id));
            }
            Action::ToClient(_, message) => {
                self.deliver(LINE + life as u64, life, Heard::Line(message.to_vec().into()));
            }
            Action::Store(number, writes) => {
                // A disk takes its time now and then, and much can happen meanwhile.
                let after = if self.rng.chance(20) { self.rng.millis(0, 500) } else { after };
                let line = COMMITS + 2 * life as u64;
                self.agenda.plan_in_order(line, after, Plan::Commits(life, number, writes));
            }
            Action::Load(number, query) => {
                let found = self.ledger.load(&owner(life), self.store_time(), &query);
                self.agenda.plan(after, Plan::Reaches(life, Event::Loaded(number, found)));
            }
            Action::CallBack(callback) => self.call_back(life, *callback),
            Action::NeedEntropy => {
                let entropy = self.random();
                self.lives[life].engine.handle(now, entropy);
            }
            Action::Sample(server) => self.lives[life].engine.handle(now, Event::Sampled(server, None)),
            Action::Note(note) => drop(note.to_string()),
            Action::CloseDoor => self.lives[life].door_closed = true,
            Action::End { .. } => {
                self.lives[life].ends_in_order = true;
                // Who ends in order has written everything before it is gone.
                let written = if self.lives[life].leaves { 1_000 } else { 100 };
                self.agenda.plan(Duration::from_millis(written), Plan::Ends(life));
            }
            Action::NeedIdentity => self.lives[life].engine.handle(now, Event::Identity("sim".into())),
            Action::Step(_) => self.lives[life].steps.take(&action),
            Action::Remember(..) | Action::Forget(_) | Action::LetGo(_) | Action::Learn(_) => {}
            action => self.tell_server(life, action),
        }
    }

    fn deliver(&mut self, line: u64, life: usize, heard: Heard) {
        let after = self.rng.millis(0, 4);
        self.agenda.plan_in_order(line, after, Plan::Hears(life, heard));
    }

    fn finish(mut self) -> Outcome {
        for life in self.lives.iter().filter(|life| !life.ended) {
            sweep(&life.engine);
            assert_eq!(life.engine.open_calls(), 0, "calls are left behind");
            life.steps.are_over();
            if let Err(left) = life.engine.check_nothing_is_left()
                && !life.ends_in_order
            {
                panic!("{left}");
            }
        }
        let tardy = self.is_tardy();
        self.everybody_was_called_back();
        for errand in self.clients.iter().flat_map(|client| &client.errands) {
            errand.got_what_it_was_promised(&self.ledger, tardy);
            errand.was_not_forgotten(&self.ledger);
            errand.was_declined(&self.ledger, self.judge.ran(&errand.nonce));
            self.outcome.calls += u64::from(errand.issued);
            match &errand.sight.end {
                Some(End::Failed(_)) => self.outcome.failed += 1,
                Some(End::Cancelled) => self.outcome.cancelled += 1,
                _ => {}
            }
        }
        self.outcome
    }

    fn is_remote(&self) -> bool {
        self.config.server.transport == Transport::Http
    }
}

/// The name of a process in the store.
fn owner(life: usize) -> String {
    format!("life-{life}")
}
