//! The only place where events meet the engine.
//!
//! Edges call [`Driver::turn`] from their own tasks: it reads the clock once, hands the events to
//! the engine, does what the engine wants done, and writes all that is ready in one go. There is no
//! engine task and no channel to one.

mod onlookers;
mod publishing;

use crate::callbacks::Callers;
use crate::client::http::flow::Flow;
use crate::clients::learned;
use crate::clock::Clock;
use crate::link::{Link, Outlet, Process, Signals, Starter, Wrote};
use crate::memory::Keeper;
use crate::observe::Observers;
use crate::observe::otlp::LastSpans;
use crate::outbox::HARD;
use crate::program::Program;
use crate::server::life::{Sampler, Signs};
use crate::store::{Home, OnHint, OpenError, Reply, Store};
use crate::sys::alarm::Alarm;
use crate::sys::guardian::{Guardian, Guardians};
use crate::sys::proc::Root;
use crate::sys::streams::Sink;
use outlast_engine::callback::Callback;
use outlast_engine::hash::IdMap;
use outlast_engine::id::{ClientId, ExchangeId, Run, ServerId};
use outlast_engine::profile::{Learn, Sighting};
use outlast_engine::report::Report;
use outlast_engine::store::{Loaded, Query, Stored, Trouble, Write};
use outlast_engine::{Action, Config, Engine, Event, Manner, Mono, Now, Reload, wire};
use publishing::Published;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, oneshot, watch};

/// Mistakes of a file that the log tells.
const MISTAKES: usize = 10;

/// The one client of wrap mode.
pub const CLIENT: ClientId = ClientId(0);
/// The one server of wrap mode.
pub const SERVER: ServerId = ServerId(0);

/// Who is read from or written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// The client on our standard streams.
    Client,
    /// A server's process.
    Server(ServerId),
}

/// Whether clients may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Entry {
    /// They may.
    Open,
    /// Nobody new: connections that are open serve on, each until its next response.
    Leaving,
    /// It is over.
    Closed,
}

/// Joins the edges and the engine.
#[derive(Debug)]
pub struct Driver {
    state: Mutex<State>,
    /// Somebody waits for a deadline that has moved forward.
    deadline_moved: Notify,
    ended: Notify,
    entry: watch::Sender<Entry>,
    client: Arc<Signals>,
    max_message: usize,
    /// One source feeds many outlets: a full one does not stop the others.
    serves: bool,
}

/// What a turn works on.
#[derive(Debug)]
pub struct State {
    me: Weak<Driver>,
    engine: Engine,
    clock: Clock,
    now: Now,
    /// The deadline that is waited for.
    armed: Option<Mono>,
    starter: Starter,
    sampler: Sampler,
    links: BTreeMap<ServerId, Link>,
    /// A server's outlet was full at some time; most never are, and every read asks.
    may_be_full: bool,
    /// Servers that something was written to in this turn.
    touched: Vec<ServerId>,
    observers: Observers,
    keeper: Option<Keeper>,
    home: Home,
    /// What this process is called among others, and what it shows them.
    process: Box<str>,
    published: Published,
    /// Limits follow what was measured.
    adapts: bool,
    /// Opened when it is first needed.
    store: Option<Store>,
    client: Outlet,
    flows: IdMap<ExchangeId, Arc<Flow>>,
    next_exchange: u64,
    /// There may be several servers, so that each line of a server's stderr begins with its name.
    several: bool,
    /// What a server is called before it has said so itself.
    server_name: Box<str>,
    /// Whether a cap that was learned counts at once, and who writes it down.
    learns_alone: bool,
    /// What is wrong with a file that was read again and not loaded.
    mistakes: Vec<String>,
    learner: Option<std::thread::JoinHandle<()>>,
    /// The status to end with, and how long a slow reader is waited for.
    end: Option<(u8, Duration)>,
}

/// What only calls need: it is read when the server of wrap mode is on its way already.
fn inform(config: &mut Config, home: &Home, observers: &mut Observers) {
    // Another number in every process, for jitter.
    config.seed = u64::from_ne_bytes(crate::random::bytes());
    learned::teach(config, &home.place);
    // The service behind the door has the same calls.
    config.traces = observers.has_collector() && !config.door;
    config.observed = onlookers::observed(config);
    observers.begin(config);
}

impl Driver {
    /// A driver; nothing happens before an event is fed.
    pub fn new(
        mut config: Config,
        clock: Clock,
        starter: Starter,
        mut observers: Observers,
        keeper: Option<Keeper>,
        home: impl Into<Home>,
    ) -> Arc<Driver> {
        let home = home.into();
        inform(&mut config, &home, &mut observers);
        let observed = config.observed;
        let driver = Arc::new_cyclic(|me| Driver {
            max_message: config.max_message,
            serves: config.manner == Manner::Serve,
            state: Mutex::new(State {
                me: me.clone(),
                process: onlookers::process_name(&config).into(),
                several: config.manner.has_several(),
                server_name: config.server.name.clone(),
                learns_alone: config.learn == Learn::Auto,
                adapts: config.adapts(),
                mistakes: Vec::new(),
                learner: None,
                engine: Engine::new(config),
                now: clock.now(),
                clock,
                armed: None,
                starter,
                sampler: Sampler::default(),
                links: BTreeMap::new(),
                may_be_full: false,
                touched: Vec::new(),
                observers,
                keeper,
                home,
                published: Published::default(),
                store: None,
                client: Outlet::default(),
                flows: IdMap::default(),
                next_exchange: 0,
                end: None,
            }),
            deadline_moved: Notify::new(),
            ended: Notify::new(),
            entry: watch::Sender::new(Entry::Open),
            client: Arc::default(),
        });
        driver.lock().follow(observed);
        driver
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One turn: whatever `events` feeds is handled at one time and written together.
    pub fn turn<T>(&self, events: impl FnOnce(&mut State) -> T) -> T {
        self.turn_and_keep(events).1
    }

    /// A turn with what was read from a peer. False if it must not be read from for now: see
    /// [`Driver::may_read`].
    pub fn turn_of_reader(&self, from: Peer, events: impl FnOnce(&mut State)) -> bool {
        let (state, ()) = self.turn_and_keep(events);
        self.must_wait(&state, from).is_none()
    }

    /// One turn, and the lock for whoever has a question afterwards.
    fn turn_and_keep<T>(&self, events: impl FnOnce(&mut State) -> T) -> (MutexGuard<'_, State>, T) {
        let mut state = self.lock();
        state.now = state.clock.now();
        let result = events(&mut state);
        self.end_turn(&mut state);
        (state, result)
    }

    fn end_turn(&self, state: &mut State) {
        while let Some(server) = state.touched.pop() {
            self.write_to_server(state, server);
        }
        self.write_to_client(state);
        state.observers.flush();
        self.wake_waiters(state);
    }

    /// Connects the client on our standard streams and starts the server.
    pub fn open(&self, sink: Arc<Sink>) {
        self.turn(|state| {
            state.client.sink = Some(sink);
            if let Some(keeper) = &state.keeper {
                let memories = keeper.memories();
                state.feed(Event::Remembered(SERVER, memories));
            }
            let several = state.several;
            state.feed(if several { Event::Entered(CLIENT) } else { Event::Opened(CLIENT, SERVER) });
        });
    }

    fn write_to_client(&self, state: &mut State) {
        match state.client.write() {
            Wrote::All => {}
            Wrote::Some => self.client.backlog.notify_one(),
            Wrote::Broken => {
                state.client.take_unsent();
                state.feed(Event::ClientGone(CLIENT));
            }
        }
        if let Some(congested) = state.client.outbox.check_marks() {
            state.feed(Event::Congested(CLIENT, congested));
            if !congested {
                self.let_read(state);
            }
        }
    }

    fn write_to_server(&self, state: &mut State, id: ServerId) {
        let Some(Link::Process(process)) = state.links.get_mut(&id) else { return };
        let run = process.run;
        match process.outlet.write() {
            Wrote::All => {}
            Wrote::Some => process.signals.backlog.notify_one(),
            Wrote::Broken => {
                let unsent =
                    process.outlet.take_unsent().into_iter().filter_map(wire::scan_message).collect();
                state.feed(Event::InputBroken(id, run, unsent));
            }
        }
        let Some(Link::Process(process)) = state.links.get_mut(&id) else { return };
        match process.outlet.outbox.check_marks() {
            Some(true) => state.may_be_full = true,
            Some(false) => self.let_read(state),
            None => {}
        }
    }

    /// An outlet has room again.
    fn let_read(&self, state: &State) {
        self.client.may_read.notify_one();
        for link in state.links.values() {
            if let Link::Process(process) = link {
                process.signals.may_read.notify_one();
            }
        }
    }

    fn wake_waiters(&self, state: &mut State) {
        let next = state.engine.next_deadline();
        if next.is_some_and(|next| state.armed.is_none_or(|armed| next < armed)) {
            self.deadline_moved.notify_one();
        }
        if state.end.is_some() {
            self.ended.notify_one();
        }
    }

    /// Waits until a peer may be read from. What feeds only a full outlet is left where it is, as
    /// a pipe would leave it.
    pub async fn may_read(&self, from: Peer) {
        let Some(signals) = self.must_wait(&self.lock(), from) else { return };
        while self.must_wait(&self.lock(), from).is_some() {
            signals.may_read.notified().await;
        }
        // Others may wait for the same.
        signals.may_read.notify_one();
    }

    /// What tells when a peer may be read from, if it may not now.
    fn must_wait(&self, state: &State, from: Peer) -> Option<Arc<Signals>> {
        let full = match from {
            Peer::Client => state.may_be_full && state.processes().any(|process| process.outlet.is_full()),
            Peer::Server(_) => state.client.is_full() && !self.serves,
        };
        let (outlet, signals) = match from {
            Peer::Client => (&state.client, &self.client),
            Peer::Server(id) => match state.links.get(&id)? {
                Link::Process(process) => (&process.outlet, &process.signals),
                Link::Remote(..) => return None,
            },
        };
        let waits = full || outlet.outbox.len() >= HARD;
        waits.then(|| signals.clone())
    }

    /// Whether the client does not read what a remote server sends.
    pub fn client_is_full(&self) -> bool {
        !self.serves && self.lock().client.is_full()
    }

    /// Waits until the client reads again.
    pub async fn client_has_room(&self) {
        while self.client_is_full() {
            self.client.may_read.notified().await;
        }
        // Others may wait for the same.
        self.client.may_read.notify_one();
    }

    /// Writes to a peer what could not be written at once, for as long as it is there.
    pub async fn pump(self: Arc<Driver>, peer: Peer) {
        let signals = match (peer, &*self.lock()) {
            (Peer::Client, _) => self.client.clone(),
            (Peer::Server(id), state) => match state.links.get(&id) {
                Some(Link::Process(process)) => process.signals.clone(),
                _ => return,
            },
        };
        loop {
            signals.backlog.notified().await;
            // Held only while there is something to write: a sink closes when it is let go of.
            let sink = match (peer, &*self.lock()) {
                (Peer::Client, state) => state.client.sink.clone(),
                (Peer::Server(id), state) => match state.links.get(&id) {
                    Some(Link::Process(process)) => process.outlet.sink.clone(),
                    _ => return,
                },
            };
            if let Some(sink) = sink {
                // A broken sink shows itself in the next write.
                let _ = sink.writable().await;
                drop(sink);
                self.turn(|state| {
                    if let Peer::Server(id) = peer {
                        state.touched.push(id);
                    }
                });
            }
        }
    }

    /// Brings the engine its deadlines.
    pub async fn keep_time(self: Arc<Driver>) {
        let alarm = Alarm::new();
        loop {
            let until = {
                let mut state = self.lock();
                state.armed = state.engine.next_deadline();
                state.armed.map(|at| state.clock.instant(at))
            };
            match until {
                None => self.deadline_moved.notified().await,
                Some(until) => {
                    tokio::select! {
                        () = self.deadline_moved.notified() => {}
                        () = alarm.at(until) => {
                            self.let_readers_go_first(until).await;
                            self.turn(State::tick);
                        }
                    }
                }
            }
        }
    }

    /// If we wake up late, because we were stopped or starved, what has arrived meanwhile comes
    /// before the limits that it would have kept.
    async fn let_readers_go_first(&self, due: std::time::Instant) {
        const LATE: Duration = Duration::from_millis(50);
        const TURNS: usize = 64;
        let late = self.lock().clock.is_past(due + LATE);
        for _ in 0..if late { TURNS } else { 1 } {
            tokio::task::yield_now().await;
        }
    }

    /// Whether clients may come in, now and from now on.
    pub fn entry(&self) -> watch::Receiver<Entry> {
        self.entry.subscribe()
    }

    /// Nobody may come in any more, and whoever is there goes.
    pub fn close_entry(&self) {
        self.entry.send_replace(Entry::Closed);
    }

    /// Waits for the end; the status to end with.
    pub async fn ended(&self) -> u8 {
        loop {
            if let Some((status, _)) = self.lock().end {
                return status;
            }
            self.ended.notified().await;
        }
    }

    /// Waits until the client has read what is left, or patience is over; the status to end with.
    pub async fn client_has_read(&self) -> u8 {
        let began = self.lock().clock.now().mono;
        loop {
            let (status, until) = {
                let state = self.lock();
                let (status, patience) = state.end.unwrap_or_default();
                if state.client.outbox.is_empty() || state.client.broken || patience.is_zero() {
                    return status;
                }
                (status, state.clock.instant(began + patience))
            };
            tokio::select! {
                () = self.ended.notified() => {}
                () = tokio::time::sleep_until(until.into()) => return status,
            }
        }
    }

    /// The longest message that is taken.
    pub fn max_message(&self) -> usize {
        self.max_message
    }

    /// Has the log say something.
    pub fn warn(&self, kind: &'static str, text: String) {
        self.turn(|state| state.observers.warn(kind, text));
    }

    /// How the servers are, and what is wrong with a file that was not loaded.
    pub fn report(&self) -> (Vec<Report>, Vec<String>) {
        let state = self.lock();
        (state.engine.report(), state.mistakes.clone())
    }

    /// How the servers are that a principal may use.
    pub fn report_to(&self, principal: Option<&str>) -> Vec<Report> {
        self.lock().engine.report_to(principal)
    }

    /// Whether requests are taken and servers can be reached.
    pub fn is_ready(&self) -> bool {
        self.lock().engine.is_ready()
    }

    /// Whether nothing runs that somebody could come back for.
    pub fn is_idle(&self) -> bool {
        self.lock().engine.is_idle()
    }

    /// The run of a server that was started last.
    pub fn current_run(&self, server: ServerId) -> Run {
        self.lock().links.get(&server).map_or(Run(0), Link::run)
    }

    /// A guardian was killed; `None` if we let go of it ourselves.
    pub fn lose_guardian(&self, server: ServerId, guardian: &Root) -> Option<Guardian> {
        match self.lock().links.get_mut(&server)? {
            Link::Process(process) => process.lose_guardian(guardian),
            Link::Remote(..) => None,
        }
    }

    /// Lets go of the servers and of their guardians, which then take down what is left of them.
    pub fn end_servers(&self) {
        let (guardians, last) = self.let_go_of_servers();
        guardians.finish(last);
    }

    fn let_go_of_servers(&self) -> (Guardians, Vec<Guardian>) {
        let mut state = self.lock();
        let forked = state.starter.forked.take().map(|(guardian, _)| guardian);
        let links = std::mem::take(&mut state.links);
        let last = links.into_values().filter_map(Link::guardian).chain(forked).collect();
        (state.starter.guardians.clone(), last)
    }

    /// Looks something up in the store, for somebody beside the engine.
    pub async fn look_up(&self, query: Query) -> Loaded {
        let (reply, found) = oneshot::channel();
        match self.lock().open_store() {
            Ok(store) => store.load(query, Box::new(move |outcome| drop(reply.send(outcome)))),
            Err(why) => return Err(Trouble::Failed(why)),
        }
        found.await.unwrap_or_else(|_| Err(Trouble::Failed("the store has ended".into())))
    }

    /// Writes something into the store, for somebody beside the engine.
    pub async fn write_down(&self, writes: Vec<Write>) -> Stored {
        let (reply, stored) = oneshot::channel();
        match self.lock().open_store() {
            Ok(store) => store.submit(writes, Box::new(move |outcome| drop(reply.send(outcome)))),
            Err(why) => return Err(Trouble::Failed(why)),
        }
        stored.await.unwrap_or_else(|_| Err(Trouble::Failed("the store has ended".into())))
    }

    /// Who is called back.
    pub fn callers(&self) -> Callers {
        self.lock().starter.callers.clone()
    }

    /// Whether a server that the store calls so is one of ours.
    pub fn serves(&self, identity: &str) -> bool {
        self.lock().engine.has_identity(identity)
    }

    /// Waits until everything that was given to the store is written.
    pub fn close_store(&self) {
        self.publish_no_more();
        let (store, learner) = {
            let mut state = self.lock();
            (state.store.take(), state.learner.take())
        };
        if let Some(store) = store {
            store.close();
        }
        learner.map(std::thread::JoinHandle::join);
    }

    /// Lets go of the client.
    pub fn let_go_of_client(&self) {
        let last = {
            let mut state = self.lock();
            state.client.sink = None;
            state.observers.last_spans()
        };
        // Without the lock: whoever sends them has something to say if that fails.
        last.inspect(LastSpans::finish);
        self.lock().observers.finish();
    }

    /// A client hung up before its response was finished.
    pub fn hung_up(&self, exchange: ExchangeId) {
        self.turn(|state| {
            state.flows.remove(&exchange);
            state.feed(Event::HungUp(exchange));
        });
    }

    /// A new HTTP exchange, and where its response will come.
    pub fn new_exchange(&self) -> (ExchangeId, Arc<Flow>) {
        let mut state = self.lock();
        state.next_exchange += 1;
        let id = ExchangeId(state.next_exchange);
        let flow = Arc::new(Flow::default());
        state.flows.insert(id, flow.clone());
        (id, flow)
    }
}

/// How what a store says becomes an event: on the store's thread, in the name of the runtime.
fn bring<T: Send + 'static>(me: Weak<Driver>, event: impl FnOnce(T) -> Event + Send + 'static) -> Reply<T> {
    let runtime = tokio::runtime::Handle::current();
    Box::new(move |outcome| {
        let Some(driver) = me.upgrade() else { return };
        let _inside = runtime.enter();
        driver.turn(|state| state.feed(event(outcome)));
    })
}

/// Brings hints of the store to the engine.
fn on_hint(me: Weak<Driver>) -> OnHint {
    let runtime = tokio::runtime::Handle::current();
    Box::new(move |hint| {
        let Some(driver) = me.upgrade() else { return };
        let _inside = runtime.enter();
        driver.turn(|state| state.feed(Event::Hinted(hint)));
    })
}

impl State {
    fn processes(&self) -> impl Iterator<Item = &Process> {
        self.links.values().filter_map(|link| match link {
            Link::Process(process) => Some(process),
            Link::Remote(..) => None,
        })
    }

    /// Hands an event to the engine and does what it wants done.
    pub fn feed(&mut self, event: Event) {
        self.observers.event(self.now, &event);
        self.engine.handle(self.now, event);
        while let Some(action) = self.engine.poll() {
            if let Some(event) = self.perform(action) {
                self.observers.answer(&event);
                self.engine.handle(self.now, event);
            }
        }
    }

    /// A file was read again and has mistakes: what it said before stays in force.
    pub fn refuse_file(&mut self, name: &str, wrong: &[String]) {
        self.mistakes = wrong.iter().take(MISTAKES).cloned().collect();
        for why in wrong.iter().take(MISTAKES) {
            let text = format!("{name} was not loaded; the earlier settings stay in force: {why}");
            self.observers.warn("reload", text);
        }
        if wrong.len() > MISTAKES {
            let text = format!("{} more mistakes; to see all: outlast check {name}", wrong.len() - MISTAKES);
            self.observers.warn("reload", text);
        }
    }

    /// A file was read again: what it says now, and how its servers are reached.
    pub fn reload(&mut self, reload: Reload, programs: BTreeMap<Box<str>, Program>) {
        self.starter.programs = programs;
        self.mistakes.clear();
        self.feed(Event::Reload(Box::new(reload)));
    }

    fn tick(&mut self) {
        if let Some(time) = self.clock.slept() {
            self.feed(Event::Slept(time));
        }
        self.feed(Event::Tick);
    }

    /// Does one thing. Some things answer at once with an event.
    fn perform(&mut self, action: Action) -> Option<Event> {
        self.observers.action(&action);
        match action {
            Action::ToClient(_, message) => self.client.push(&message),
            Action::ToServer(id, message) => {
                if let Some(Link::Process(process)) = self.links.get_mut(&id) {
                    process.outlet.push(&message);
                    self.touch(id);
                }
            }
            action => return self.perform_rarely(action),
        }
        None
    }

    /// The same for all that is not a message on a pipe.
    #[inline(never)]
    fn perform_rarely(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::ToClient(..) | Action::ToServer(..) => unreachable!("done by `perform`"),
            Action::Respond(exchange, response) => {
                let flow = self.flows.get(&exchange)?;
                let over = !matches!(response.body, outlast_engine::http::Body::Events);
                flow.respond(response);
                if over {
                    self.flows.remove(&exchange);
                }
            }
            Action::Write(exchange, bytes) => {
                if !self.flows.get(&exchange)?.write(bytes) {
                    self.flows.remove(&exchange);
                    return Some(Event::HungUp(exchange));
                }
            }
            Action::Finish(exchange) => self.flows.remove(&exchange)?.finish(),
            Action::Store(number, writes) => return self.store(number, writes),
            Action::Load(number, query) => return self.load(number, query),
            Action::CallBack(callback) => self.call_back(&callback),
            Action::NeedEntropy => return Some(Event::Entropy(crate::random::bytes())),
            Action::NeedIdentity => return Some(Event::Identity(self.identity())),
            Action::Learn(seen) => self.learn(*seen),
            Action::Start(id, run) => return self.start(id, run),
            Action::CloseInput(id) => {
                self.touch(id);
                self.links.get_mut(&id)?.close_input();
            }
            Action::Terminate(id) => self.links.get(&id)?.terminate(),
            Action::Kill(id) => self.links.get(&id)?.kill(),
            Action::LetGo(id) => self.let_go(id),
            Action::Post(id, post) => self.remote(id)?.post(post),
            Action::Reconnect(id, attempt) => self.remote(id)?.reconnect(attempt),
            Action::Abandon(id, attempt) => self.remote(id)?.abandon(attempt),
            Action::Stand(id) => self.remote(id)?.stand(),
            Action::Sample(server) => return self.sample(server),
            Action::Remember(_, memory) => {
                self.keeper.iter_mut().for_each(|keeper| keeper.keep((*memory).clone()))
            }
            Action::Forget(_) => self.keeper.iter_mut().for_each(Keeper::forget),
            Action::Note(note) => self.observers.note(&note),
            Action::Step(step) => self.step(step),
            Action::CloseDoor => {
                let _ = self.me.upgrade()?.entry.send_replace(Entry::Leaving);
            }
            Action::End { status, patience } => self.end = Some((status, patience)),
        }
        None
    }

    /// Sends a callback; what came of it is told later.
    fn call_back(&mut self, callback: &Callback) {
        let (me, number, attempts) = (self.me.clone(), callback.number, callback.attempts);
        let sent = self.starter.callers.call(callback);
        tokio::spawn(async move {
            let delivery = sent.await;
            if let Some(driver) = me.upgrade() {
                driver.turn(|state| {
                    state.feed(Event::CalledBack { callback: number, attempts, delivery });
                });
            }
        });
    }

    /// What the server is called in the store.
    fn identity(&mut self) -> Box<str> {
        let key = crate::wrap::identity_key(&self.home.place, &mut self.observers);
        let program = self.starter.programs.get(&self.server_name);
        program.map(|program| program.identity(&key, &self.server_name)).unwrap_or_default()
    }

    /// Writes down what a client's cancel says, on a thread of its own: no call waits for a disk.
    fn learn(&mut self, seen: Sighting) {
        let before = self.learner.take();
        let (place, counts) = (self.home.place.clone(), self.learns_alone);
        let write = move || {
            // One after the other; what cannot be written is not learned.
            before.map(std::thread::JoinHandle::join);
            let _ = learned::record(&place, &seen, counts);
        };
        self.learner = std::thread::Builder::new().name("learner".into()).spawn(write).ok();
    }

    /// Has a server's signs of life looked for; they come later, unless there are none to be had.
    fn sample(&mut self, id: ServerId) -> Option<Event> {
        let none = Some(Event::Sampled(id, None));
        let Some(Link::Process(process)) = self.links.get(&id) else { return none };
        let (run, Some(root)) = (process.run, process.root()) else { return none };
        let me = self.me.clone();
        let runtime = tokio::runtime::Handle::current();
        let reply = move |signs| {
            let Some(driver) = me.upgrade() else { return };
            let _inside = runtime.enter();
            driver.turn(|state| state.sampled(id, run, signs));
        };
        if self.sampler.ask(root, Box::new(reply)) { None } else { none }
    }

    fn sampled(&mut self, id: ServerId, run: Run, signs: Option<Signs>) {
        // Of a process that has been replaced meanwhile nobody wants to know.
        if let Some(Link::Process(process)) = self.links.get(&id).filter(|link| link.run() == run) {
            let sample = signs.map(|signs| signs.sample(self.now.mono, process.stderr));
            self.feed(Event::Sampled(id, sample));
        }
    }

    fn store(&mut self, number: u64, writes: Vec<Write>) -> Option<Event> {
        let me = self.me.clone();
        match self.open_store() {
            Ok(store) => store.submit(writes, bring(me, move |stored| Event::Stored(number, stored))),
            Err(why) => return Some(Event::Stored(number, Err(Trouble::Failed(why)))),
        }
        None
    }

    fn load(&mut self, number: u64, query: Query) -> Option<Event> {
        let me = self.me.clone();
        match self.open_store() {
            Ok(store) => store.load(query, bring(me, move |found| Event::Loaded(number, found))),
            Err(why) => return Some(Event::Loaded(number, Err(Trouble::Failed(why)))),
        }
        None
    }

    fn open_store(&mut self) -> Result<&Store, String> {
        if self.store.is_none() {
            let trouble = bring(self.me.clone(), |error: OpenError| Event::StoreLost(error.to_string()));
            let hints = on_hint(self.me.clone());
            let store =
                Store::at(self.home.clone(), trouble, Some(hints)).map_err(|error| error.to_string())?;
            self.store = Some(store);
        }
        self.store.as_ref().ok_or_else(String::new)
    }

    fn touch(&mut self, id: ServerId) {
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    fn remote(&self, id: ServerId) -> Option<&crate::server::http::Session> {
        match self.links.get(&id)? {
            Link::Remote(session, _) => Some(session),
            Link::Process(_) => None,
        }
    }

    fn start(&mut self, id: ServerId, run: Run) -> Option<Event> {
        let driver = self.me.upgrade()?;
        let name: Box<str> = self.engine.name_of(id)?.into();
        let before = self.links.remove(&id);
        match self.starter.start(&driver, &name, (id, run), before) {
            Ok((link, event)) => {
                self.links.insert(id, link);
                event
            }
            Err(why) => Some(Event::StartFailed(id, run, why)),
        }
    }

    /// Takes down what is left of a server. That may take a moment, so nobody waits for it here.
    fn let_go(&mut self, id: ServerId) {
        let Some(guardian) = self.links.remove(&id).and_then(Link::guardian) else { return };
        tokio::task::spawn_blocking(move || guardian.finish());
    }

    /// Passes a server's stderr on.
    pub fn stderr(&mut self, id: ServerId, run: Run, bytes: bytes::Bytes) {
        let mut shown = bytes.clone();
        if let Some(Link::Process(process)) = self.links.get_mut(&id) {
            process.stderr += bytes.len() as u64;
            if let Some(name) = self.engine.name_of(id).filter(|_| self.several) {
                shown = process.lines_of_stderr(name, &bytes).into();
            }
        }
        self.observers.server_stderr(&shown);
        self.feed(Event::Stderr(id, run, bytes));
    }
}

#[cfg(test)]
mod tests;
