//! The world of held calls: HTTP clients whose calls wait for persons, in front of a process or a remote server.
//!
//! Every fault of the other worlds befalls calls while they wait: legacy clients lose their streams and take them up
//! again, modern ones hang up, sessions fall asleep, servers crash or cannot be reached, the machine sleeps, the store
//! fails, the service is stopped. The judge is that of `holds.rs`.

use super::agenda::{Agenda, Next};
use super::holds::{Deed as PersonsDeed, Persons};
use super::process::{Deed, Process, member};
use super::rng::Rng;
use super::service::remote::{Happening, Remote};
use super::steps::Steps;
use super::subject::Subject;
use super::{Outcome, SWEEP, engine, fingerprint, limits, sampled, sweep};
use crate::exchange::{Exchanges, MODERN, NAMES, mirror, read};
use crate::ledger::Ledger;
use bytes::Bytes;
use outlast_engine::event::StartFailure;
use outlast_engine::http::{Body, Head};
use outlast_engine::id::{ExchangeId, Run, ServerId};
use outlast_engine::store::{Query, Stored, Trouble, Write};
use outlast_engine::wire::{Field, Message, Outgoing, Scanned, scan};
use outlast_engine::{
    Action, Config, Event, Manner, Mono, Now, Restart, ServerConfig, Share, Transport, Wall,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// By then every session is forgotten that was ever made.
const LONG: Duration = Duration::from_secs(5 * 24 * 60 * 60);

/// The id of the handshake.
const HANDSHAKE: &str = "handshake";

/// Handshakes before a client goes away.
const HANDSHAKES: u32 = 30;

/// The name of the service in its store, and the line on which commits keep their order.
const OWNER: &str = "service";
const STORE: u64 = 1 << 40;

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;

#[derive(Debug)]
enum Plan {
    Person(PersonsDeed),
    Greets,
    Says(String),
    HangsUp(ExchangeId),
    ComesBack(usize),
    Starts(ServerId, Run),
    Does(ServerId, Run, Deed),
    Happens(ServerId, Run, Happening),
    Commits(u64, Vec<Write>),
    Finds(u64, Query),
    Slept,
    Stop,
}

/// What a world is like; drawn from the seed.
#[derive(Clone, Copy, Debug)]
struct Character {
    modern: bool,
    /// Servers crash, or cannot be reached, or forget their sessions.
    crashes: bool,
    /// The client loses connections.
    drops: bool,
    /// The store fails now and then.
    fails: bool,
}

/// One call of the client, or its handshake, as it reads the answer.
#[derive(Debug)]
struct Thread {
    mark: String,
    exchange: Option<ExchangeId>,
    /// The last event that it has read.
    seen: Option<String>,
    over: bool,
}

/// One server.
#[derive(Debug)]
struct Peer {
    run: Run,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// With what waits in its pipe until it runs.
    Process(Process, Option<Vec<Message>>),
    Remote(Remote),
}

struct World {
    rng: Rng,
    engine: Subject,
    steps: Steps,
    agenda: Agenda<Plan>,
    character: Character,
    transport: Transport,
    wall_offset: u64,
    exchanges: Exchanges,
    /// What each exchange carries, if anybody reads it.
    readers: Vec<Option<usize>>,
    threads: Vec<Thread>,
    /// Cancels that are under way, by the exchange that carries each.
    cancels: BTreeMap<ExchangeId, usize>,
    session: Option<Box<str>>,
    /// The handshake is over.
    inside: bool,
    greeted: u32,
    servers: BTreeMap<ServerId, Peer>,
    ledger: Ledger,
    persons: Persons,
    entropy: u64,
    work: u64,
    outcome: Outcome,
    stopped: bool,
    ended: bool,
}

/// Runs one world to its end; panics if an invariant breaks.
pub fn run(seed: u64) -> Outcome {
    let mut rng = Rng::new(seed ^ 0x4e1d);
    let character = Character {
        modern: rng.chance(50),
        crashes: rng.chance(40),
        drops: rng.chance(60),
        fails: rng.chance(25),
    };
    let mut config = config(&mut rng);
    let mut persons = Persons::new(&mut config, seed);
    persons.store_fails = character.fails;
    let mut world = World {
        engine: engine(config.clone()),
        steps: Steps::default(),
        agenda: Agenda::new(),
        character,
        transport: config.server.transport,
        wall_offset: 0,
        exchanges: Exchanges::default(),
        readers: Vec::new(),
        threads: Vec::new(),
        cancels: BTreeMap::new(),
        session: None,
        inside: character.modern,
        greeted: 0,
        servers: BTreeMap::new(),
        ledger: Ledger::default(),
        persons,
        entropy: 0,
        work: 0,
        outcome: Outcome::default(),
        stopped: false,
        ended: false,
        rng,
    };
    world.begin();
    world.live();
    world.finish()
}

fn config(rng: &mut Rng) -> Config {
    let transport = if rng.chance(50) { Transport::Process } else { Transport::Http };
    let share = [Share::Principal, Share::Session, Share::All][rng.below(3)];
    let server = ServerConfig { name: "sim".into(), transport, share, ..ServerConfig::default() };
    let mut config = Config { manner: Manner::Serve, ..server.into() };
    limits(&mut config, rng);
    config.server_mut().restart = [Restart::OnCrash, Restart::OnHang, Restart::OnTimeout][rng.below(3)];
    (config.tasks, config.resumable) = (true, true);
    config.is_called("sim".into());
    config.durable = rng.chance(50);
    config.session_idle = rng.millis(500, 120_000);
    // A client that comes back finds its stream.
    config.resume_wait = rng.millis(60_000, 600_000);
    config
}

impl World {
    fn begin(&mut self) {
        self.feed(Event::Entropy([0; 32]));
        self.feed(Event::Begin);
        if !self.character.modern {
            self.agenda.plan(Duration::ZERO, Plan::Greets);
        }
        if self.rng.chance(20) {
            let after = self.rng.millis(0, 120_000);
            self.agenda.plan(after, Plan::Stop);
        }
        if self.rng.chance(15) {
            let after = self.rng.millis(0, 60_000);
            self.agenda.plan(after, Plan::Slept);
        }
        self.everybody_acts();
    }

    fn live(&mut self) {
        while !self.ended {
            assert!(self.agenda.now < LONG, "something here never ends");
            match self.agenda.advance(self.engine.next_deadline()) {
                Next::Nothing => return,
                Next::Happens(plan) => self.happen(plan),
                Next::Due => self.feed(Event::Tick),
            }
            self.everybody_acts();
        }
    }

    fn happen(&mut self, plan: Plan) {
        match plan {
            Plan::Person(deed) => self.person_does(deed),
            Plan::Greets => self.greet(),
            Plan::Says(line) => self.post(line, None),
            Plan::HangsUp(exchange) => self.hang_up(exchange),
            Plan::ComesBack(thread) => self.come_back(thread),
            Plan::Starts(server, run) => self.process_starts(server, run),
            Plan::Does(server, run, deed) => self.feed(deed.event(server, run)),
            Plan::Happens(server, run, happening) => self.remote_happens(server, run, happening),
            Plan::Commits(number, writes) => {
                let stored = self.commit(OWNER, &writes);
                self.feed(Event::Stored(number, stored));
            }
            Plan::Finds(number, query) => {
                let found = self.ledger.load(OWNER, self.store_wall(), &query);
                self.feed(Event::Loaded(number, found));
            }
            Plan::Slept => {
                self.wall_offset += 3_600_000;
                self.feed(Event::Slept(Duration::from_secs(3600)));
            }
            Plan::Stop => {
                self.stopped = true;
                self.feed(Event::Stop(15));
            }
        }
    }

    /// The store's own clock.
    fn store_wall(&self) -> Wall {
        Wall(self.wall_offset + self.agenda.now.as_millis() as u64)
    }

    fn commit(&mut self, owner: &str, writes: &[Write]) -> Stored {
        if self.character.fails && owner == OWNER && self.rng.chance(5) {
            return Err(Trouble::Failed("the disk is full".into()));
        }
        let stored = self.ledger.submit(owner, self.store_wall(), writes);
        self.persons.committed(self.agenda.now, writes, &stored);
        stored
    }

    // Persons, and their client.

    fn person_does(&mut self, deed: PersonsDeed) {
        match deed {
            PersonsDeed::Decides(hold, again) => {
                if let Some(decide) = self.persons.decides(self.agenda.now, &self.ledger, hold, again) {
                    _ = self.commit("somebody else", &[decide]);
                }
            }
            _ if self.stopped => {}
            PersonsDeed::Calls if self.inside => self.call(),
            PersonsDeed::Calls if self.greeted < HANDSHAKES => {
                self.agenda.plan(Duration::from_millis(500), Plan::Person(PersonsDeed::Calls));
            }
            PersonsDeed::Calls => {}
            PersonsDeed::Cancels(mark) => self.cancel(&mark),
            PersonsDeed::Answers(line) => self.post(line, None),
        }
    }

    fn greet(&mut self) {
        if self.stopped || self.greeted == HANDSHAKES {
            return;
        }
        self.greeted += 1;
        let capabilities = if self.persons.elicits() { r#"{"elicitation":{}}"# } else { "{}" };
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":"{HANDSHAKE}","method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{capabilities}}}}}"#
        );
        let thread = self.thread(String::new());
        self.post(body, Some(thread));
    }

    fn thread(&mut self, mark: String) -> usize {
        self.threads.push(Thread { mark, exchange: None, seen: None, over: false });
        self.threads.len() - 1
    }

    fn call(&mut self) {
        let Some(line) = self.persons.call() else { return };
        self.outcome.calls += 1;
        let line = if self.character.modern { modern(&line) } else { line };
        let thread = self.thread(member(line.as_bytes(), "held"));
        self.post(line, Some(thread));
    }

    /// A legacy client says so; a modern one hangs up.
    fn cancel(&mut self, mark: &str) {
        let Some(thread) = self.threads.iter().position(|thread| thread.mark == mark && !thread.over) else {
            return;
        };
        self.outcome.cancelled += 1;
        if !self.character.modern {
            let line = scan(Bytes::from(Persons::cancel(mark)));
            let head = self.head();
            let exchange = self.opens(&head, None);
            self.cancels.insert(exchange, thread);
            return self.feed(Event::Posted(exchange, Box::new(head), line));
        }
        if let Some(exchange) = self.threads[thread].exchange {
            self.hang_up(exchange);
        }
    }

    /// Nothing comes to this call any more.
    fn is_over(&mut self, thread: usize) {
        let thread = &mut self.threads[thread];
        thread.over = true;
        self.persons.client_sends(self.agenda.now, &Persons::cancel(&thread.mark));
    }

    fn post(&mut self, line: String, thread: Option<usize>) {
        self.persons.client_sends(self.agenda.now, &line);
        let line = scan(Bytes::from(line));
        let mut head = self.head();
        if self.character.modern {
            mirror(&mut head, &line);
        }
        let exchange = self.opens(&head, thread);
        self.feed(Event::Posted(exchange, Box::new(head), line));
    }

    fn head(&self) -> Head {
        let version = if self.character.modern { MODERN } else { "2025-11-25" };
        let version = Some(version).filter(|_| self.character.modern || self.session.is_some());
        Head {
            principal: Some(NAMES[0].into()),
            session: self.session.clone(),
            version: version.map(Into::into),
            takes_json: true,
            takes_events: true,
            ..Head::default()
        }
    }

    fn opens(&mut self, head: &Head, thread: Option<usize>) -> ExchangeId {
        let exchange = self.exchanges.open(head, self.character.modern);
        self.readers.push(thread);
        if let Some(thread) = thread {
            self.threads[thread].exchange = Some(exchange);
            let lost = if self.character.modern { 5 } else { 30 };
            if self.character.drops && self.rng.chance(lost) {
                let after = self.rng.millis(0, 40_000);
                self.agenda.plan(after, Plan::HangsUp(exchange));
            }
        }
        exchange
    }

    /// A connection is lost. To a modern client that is a cancel; a legacy one comes back.
    fn hang_up(&mut self, exchange: ExchangeId) {
        let Some(event) = self.exchanges.hang_up(exchange) else { return };
        if let Some(thread) = self.readers[exchange.0 as usize] {
            self.loses(thread);
        }
        self.feed(event);
    }

    fn loses(&mut self, thread: usize) {
        self.threads[thread].exchange = None;
        if self.threads[thread].over {
            return;
        }
        if self.character.modern {
            return self.is_over(thread);
        }
        if self.threads[thread].mark.is_empty() {
            let after = self.rng.millis(100, 5_000);
            return self.agenda.plan(after, Plan::Greets);
        }
        self.persons.loses(&self.threads[thread].mark);
        let after = self.rng.millis(0, 20_000);
        self.agenda.plan(after, Plan::ComesBack(thread));
    }

    fn come_back(&mut self, thread: usize) {
        let known = &self.threads[thread];
        if known.over || known.exchange.is_some() {
            return;
        }
        // Without an event that it has read a client does not know which stream that was.
        let Some(seen) = known.seen.clone() else { return self.is_over(thread) };
        self.outcome.resumed += 1;
        let head = Head { last_event: Some(seen.as_str().into()), ..self.head() };
        let exchange = self.opens(&head, Some(thread));
        self.feed(Event::Got(exchange, Box::new(head)));
    }

    // What the client reads.

    fn responded(&mut self, exchange: ExchangeId, session: Option<Box<str>>, body: &Body) {
        // From now on it may not be answered; before that its session may have had to be looked up.
        if let Some(thread) = self.cancels.remove(&exchange) {
            return self.is_over(thread);
        }
        let Some(thread) = self.readers[exchange.0 as usize] else { return };
        if session.is_some() && self.threads[thread].mark.is_empty() {
            self.session = session;
        }
        match body {
            Body::Events => {}
            Body::Json(line) => {
                self.hears(thread, &line.clone());
                self.lets_go(thread);
            }
            Body::Empty => self.lets_go(thread),
        }
    }

    /// Its connection has said all that it says.
    fn lets_go(&mut self, thread: usize) {
        self.threads[thread].exchange = None;
        if self.threads[thread].over {
            return;
        }
        if self.threads[thread].mark.is_empty() {
            self.threads[thread].over = true;
            return self.agenda.plan(Duration::from_secs(1), Plan::Greets);
        }
        if self.stopped {
            // A service that ends refuses whoever comes back; a call that is decided by then goes on unread.
            self.threads[thread].over = true;
            return self.persons.loses(&self.threads[thread].mark);
        }
        self.is_over(thread);
    }

    fn reads(&mut self, exchange: ExchangeId, written: &Bytes) {
        for event in read(written) {
            let Some(thread) = self.readers[exchange.0 as usize] else { continue };
            if event.id.is_some() {
                self.threads[thread].seen = event.id;
            }
            if let Some(data) = event.data.filter(|data| !data.is_empty()) {
                self.hears(thread, &data);
            }
        }
    }

    fn hears(&mut self, thread: usize, line: &Bytes) {
        let Ok(Scanned::Message(message)) = scan(line.clone()) else { return };
        let id = message.text(Field::Id).unwrap_or_default().into_owned();
        if id == HANDSHAKE {
            self.threads[thread].over = true;
            self.inside = message.has(Field::Result);
            if self.inside {
                let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
                self.agenda.plan(Duration::from_micros(200), Plan::Says(initialized.into()));
            } else {
                self.session = None;
                self.agenda.plan(Duration::from_secs(1), Plan::Greets);
            }
            return;
        }
        self.threads[thread].over |= id == self.threads[thread].mark;
        self.persons.hears(self.agenda.now, line);
    }

    fn finished(&mut self, exchange: ExchangeId) {
        let Some(thread) = self.readers[exchange.0 as usize] else { return };
        // A stream may end before its answer, to be taken up again.
        if !self.threads[thread].over && !self.character.modern && !self.stopped {
            return self.loses(thread);
        }
        self.lets_go(thread);
    }

    // Servers.

    fn process_starts(&mut self, id: ServerId, run: Run) {
        let Some(peer) = self.servers.get_mut(&id).filter(|peer| peer.run == run) else { return };
        let Kind::Process(process, pipe) = &mut peer.kind else { return };
        let waiting = pipe.take().unwrap_or_default();
        if process.fails_to_start(&mut self.rng) {
            return self.feed(Event::StartFailed(id, run, StartFailure::NotFound));
        }
        process.starts(run);
        for message in waiting {
            self.persons.sent(&message.bytes);
            process.receive(&mut self.rng, &message.bytes);
        }
        self.feed(Event::Started(id, run));
    }

    fn remote_happens(&mut self, id: ServerId, run: Run, happening: Happening) {
        let Some(Peer { kind: Kind::Remote(remote), .. }) = self.servers.get_mut(&id) else { return };
        if remote.delivers(&mut self.rng, run, &happening) {
            happening.events(id, run).into_iter().for_each(|event| self.feed(event));
        }
    }

    fn start(&mut self, id: ServerId, run: Run) -> Option<Event> {
        self.outcome.runs += 1;
        let (crashes, http) = (self.character.crashes, self.transport == Transport::Http);
        let again = self.servers.get(&id).is_some_and(|peer| peer.run == run);
        let rng = &mut self.rng;
        let peer = self.servers.entry(id).or_insert_with(|| Peer {
            run,
            kind: match http {
                true => Kind::Remote(Remote::new(rng, false, crashes, None)),
                false => Kind::Process(Process::new(false, crashes, None), None),
            },
        });
        peer.run = run;
        match &mut peer.kind {
            Kind::Remote(remote) if again => remote.connects(&mut self.rng, self.agenda.now),
            Kind::Remote(remote) => {
                remote.begins(run);
                return Some(Event::Started(id, run));
            }
            Kind::Process(_, pipe) => {
                *pipe = Some(Vec::new());
                self.agenda.plan(Duration::from_millis(5), Plan::Starts(id, run));
            }
        }
        None
    }

    fn tell_server(&mut self, action: Action) {
        let (rng, now) = (&mut self.rng, self.agenda.now);
        let (Action::ToServer(id, _)
        | Action::Post(id, _)
        | Action::Reconnect(id, _)
        | Action::Abandon(id, _)
        | Action::Stand(id)
        | Action::CloseInput(id)
        | Action::Terminate(id)
        | Action::Kill(id)) = &action
        else {
            panic!("{action:?} in a world of HTTP clients")
        };
        let Some(peer) = self.servers.get_mut(id) else { return };
        match (&mut peer.kind, action) {
            (Kind::Process(process, pipe), Action::ToServer(_, message)) => {
                let message = scanned(&message);
                match pipe {
                    Some(pipe) => pipe.push(message),
                    None => {
                        self.persons.sent(&message.bytes);
                        process.receive(rng, &message.bytes);
                    }
                }
            }
            (Kind::Process(process, _), Action::CloseInput(_)) => process.input_closed(rng),
            (Kind::Process(process, _), Action::Terminate(_)) => process.terminated(rng),
            (Kind::Process(process, _), Action::Kill(_)) => process.killed(rng),
            (Kind::Remote(remote), Action::Post(_, post)) => {
                let message = scanned(&post.message);
                if remote.post(rng, now, &post, &message) {
                    self.persons.sent(&message.bytes);
                }
            }
            (Kind::Remote(remote), Action::Reconnect(_, attempt)) => remote.reconnect(rng, now, attempt),
            (Kind::Remote(remote), Action::Abandon(_, attempt)) => remote.abandon(attempt),
            (Kind::Remote(remote), Action::Stand(_)) => remote.stand(rng, now),
            (Kind::Remote(remote), Action::CloseInput(_)) => remote.close(),
            (Kind::Remote(remote), Action::Terminate(_) | Action::Kill(_)) => remote.kill(),
            (_, action) => panic!("{action:?} for such a server"),
        }
    }

    /// Turns what everybody wants into plans.
    fn everybody_acts(&mut self) {
        for (after, deed) in std::mem::take(&mut self.persons.plans) {
            self.agenda.plan(after, Plan::Person(deed));
        }
        for (id, peer) in &mut self.servers {
            match &mut peer.kind {
                Kind::Process(process, _) => {
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
                Kind::Remote(remote) => {
                    for (after, run, happening) in std::mem::take(&mut remote.happenings) {
                        self.agenda.plan(after, Plan::Happens(*id, run, happening));
                    }
                }
            }
        }
    }

    // The engine.

    fn feed(&mut self, event: Event) {
        let now = Now { mono: Mono::after_start(self.agenda.now), wall: self.store_wall() };
        self.engine.handle(now, event);
        self.outcome.events += 1;
        while let Some(action) = self.engine.poll() {
            self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
            self.steps.take(&action);
            if let Some(event) = self.perform(now, action) {
                self.engine.handle(now, event);
            }
        }
        if self.outcome.events.is_multiple_of(SWEEP) {
            sweep(&self.engine);
        }
    }

    /// Does one thing. Some things answer at once with an event.
    fn perform(&mut self, now: Now, action: Action) -> Option<Event> {
        match action {
            Action::Respond(id, response) => {
                self.exchanges.respond(id, &response);
                self.responded(id, response.session.clone(), &response.body);
            }
            Action::Write(id, written) => {
                self.exchanges.write(id);
                self.reads(id, &written);
            }
            Action::Finish(id) => {
                self.exchanges.finish(id);
                self.finished(id);
            }
            Action::NeedEntropy => {
                self.entropy += 1;
                let mut bytes = [7; 32];
                bytes[..8].copy_from_slice(&self.entropy.to_le_bytes());
                bytes[16..24].copy_from_slice(&self.entropy.to_le_bytes());
                return Some(Event::Entropy(bytes));
            }
            Action::Start(id, run) => return self.start(id, run),
            Action::Sample(id) => {
                let sampled = sampled(&mut self.rng, &mut self.work, now, id);
                let remote = self.transport == Transport::Http;
                return Some(if remote { Event::Sampled(id, None) } else { sampled });
            }
            Action::Store(number, writes) => {
                let after = self.rng.millis(0, 400);
                self.agenda.plan_in_order(STORE, after, Plan::Commits(number, writes));
            }
            Action::Load(number, query) => {
                let after = self.rng.millis(0, 400);
                self.agenda.plan(after, Plan::Finds(number, query));
            }
            Action::LetGo(id) => drop(self.servers.remove(&id)),
            Action::Note(note) => drop(note.to_string()),
            Action::End { .. } => self.ended = true,
            Action::NeedIdentity => return Some(Event::Identity("sim".into())),
            Action::CallBack(callback) => panic!("{callback:?} in a world without callbacks"),
            Action::Step(_) | Action::Remember(..) | Action::Forget(_) | Action::Learn(_) => {}
            action => self.tell_server(action),
        }
        None
    }

    fn finish(mut self) -> Outcome {
        sweep(&self.engine);
        let asked = self.ledger.holds().filter(|hold| !hold.owner.is_empty());
        let asked: Vec<u64> = asked.map(|hold| hold.number).collect();
        while let Next::Happens(plan) = self.agenda.advance(None) {
            if let Plan::Commits(_, writes) = plan {
                _ = self.commit(OWNER, &writes);
            }
        }
        // Whoever would take a question back may not have been able to.
        let known = if self.character.fails { &[][..] } else { &asked[..] };
        self.persons.is_over(known, &self.ledger, self.stopped);
        assert_eq!(self.ended, self.stopped, "a service ends when it is stopped, and only then");
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
        self.outcome
    }
}

/// The same call of a client without sessions.
fn modern(line: &str) -> String {
    match line.contains(r#""_meta":{"#) {
        true => line.replacen(r#""_meta":{"#, &format!(r#""_meta":{{{META},"#), 1),
        false => line.replacen(r#""params":{"#, &format!(r#""params":{{"_meta":{{{META}}},"#), 1),
    }
}

fn scanned(outgoing: &Outgoing) -> Message {
    match scan(Bytes::from(outgoing.to_vec())) {
        Ok(Scanned::Message(message)) => message,
        other => panic!("a bad line to a server: {other:?}"),
    }
}
