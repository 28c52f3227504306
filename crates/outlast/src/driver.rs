//! The only place where events meet the engine.
//!
//! Edges call [`Driver::turn`] from their own tasks: it reads the clock once, hands the events to
//! the engine, does what the engine wants done, and writes all that is ready in one go. There is no
//! engine task and no channel to one.

use crate::clock::Clock;
use crate::guardian::Guardian;
use crate::memory::Keeper;
use crate::observe::Observers;
use crate::outbox::{HARD, Outbox};
use crate::server::{life, stdio};
use crate::sys::unix::Sink;
use outlast_engine::id::{ClientId, Run, ServerId};
use outlast_engine::{Action, Config, Engine, Event, Mono, Now};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::Notify;

/// The one client of wrap mode.
pub const CLIENT: ClientId = ClientId(0);
/// The one server of wrap mode.
pub const SERVER: ServerId = ServerId(0);

/// Which of the two peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// Who calls us.
    Client,
    /// Whom we call.
    Server,
}

/// More than this waiting at once is called large.
const LARGE: usize = 128 << 10;

/// Joins the edges and the engine.
#[derive(Debug)]
pub struct Driver {
    state: Mutex<State>,
    /// Somebody waits for a deadline that has moved forward.
    deadline_moved: Notify,
    ended: Notify,
    client: Signals,
    server: Signals,
    max_message: usize,
}

/// What the tasks of one peer wait for.
#[derive(Debug, Default)]
struct Signals {
    /// Something could not be written at once.
    backlog: Notify,
    /// It may be read from again.
    may_read: Notify,
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
    guardian: Option<Guardian>,
    observers: Observers,
    keeper: Option<Keeper>,
    client: Outlet,
    server: Outlet,
    run: Run,
    /// The status to end with, and how long a slow reader is waited for.
    end: Option<(u8, Duration)>,
}

/// The way out to one peer.
#[derive(Debug, Default)]
struct Outlet {
    outbox: Outbox,
    sink: Option<Arc<Sink>>,
    /// Close it when all is written.
    closing: bool,
    /// Nobody reads there any more.
    broken: bool,
    /// Bytes that were read on stderr, for signs of life.
    stderr: u64,
    /// It has been prepared for large messages.
    wide: bool,
}

impl Driver {
    /// A driver for one client and one server; nothing happens before [`Driver::open`].
    pub fn new(
        config: Config,
        clock: Clock,
        guardian: Guardian,
        observers: Observers,
        keeper: Option<Keeper>,
    ) -> Arc<Driver> {
        let max_message = config.max_message;
        Arc::new_cyclic(|me| Driver {
            max_message,
            state: Mutex::new(State {
                me: me.clone(),
                engine: Engine::new(config),
                now: clock.now(),
                clock,
                armed: None,
                guardian: Some(guardian),
                observers,
                keeper,
                client: Outlet::default(),
                server: Outlet::default(),
                run: Run(0),
                end: None,
            }),
            deadline_moved: Notify::new(),
            ended: Notify::new(),
            client: Signals::default(),
            server: Signals::default(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn signals(&self, peer: Peer) -> &Signals {
        match peer {
            Peer::Client => &self.client,
            Peer::Server => &self.server,
        }
    }

    /// One turn: whatever `events` feeds is handled at one time and written together.
    pub fn turn(&self, events: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        state.now = state.clock.now();
        events(&mut state);
        self.write(&mut state, Peer::Server);
        self.write(&mut state, Peer::Client);
        state.observers.flush();
        self.wake_waiters(&mut state);
    }

    /// Connects the client's output and starts the server.
    pub fn open(&self, sink: Arc<Sink>) {
        self.turn(|state| {
            state.client.sink = Some(sink);
            if let Some(keeper) = &state.keeper {
                let memories = keeper.memories();
                state.feed(Event::Remembered(SERVER, memories));
            }
            state.feed(Event::Opened(CLIENT, SERVER));
        });
    }

    fn write(&self, state: &mut State, peer: Peer) {
        match state.outlet(peer).write() {
            Wrote::All => {}
            Wrote::Some => self.signals(peer).backlog.notify_one(),
            Wrote::Broken if peer == Peer::Client => state.feed(Event::ClientGone(CLIENT)),
            Wrote::Broken => state.feed(Event::InputBroken(SERVER, state.run)),
        }
        if let Some(congested) = state.outlet(peer).outbox.check_marks() {
            if peer == Peer::Client {
                state.feed(Event::Congested(CLIENT, congested));
            }
            if !congested {
                self.client.may_read.notify_one();
                self.server.may_read.notify_one();
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
        loop {
            {
                let mut state = self.lock();
                let to = if from == Peer::Client { Peer::Server } else { Peer::Client };
                let full = state.outlet(to).outbox.is_congested() && !state.outlet(to).broken;
                if !full && state.outlet(from).outbox.len() < HARD {
                    return;
                }
            }
            self.signals(from).may_read.notified().await;
        }
    }

    /// Writes to a peer what could not be written at once.
    pub async fn pump(self: Arc<Driver>, peer: Peer) {
        loop {
            self.signals(peer).backlog.notified().await;
            // Held only while there is something to write: a sink closes when it is let go of.
            let sink = self.lock().outlet(peer).sink.clone();
            if let Some(sink) = sink {
                // A broken sink shows itself in the next write.
                let _ = sink.writable().await;
                drop(sink);
                self.turn(|_| {});
            }
        }
    }

    /// Brings the engine its deadlines.
    pub async fn keep_time(self: Arc<Driver>) {
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
                        () = tokio::time::sleep_until(until.into()) => {
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

    /// Waits for the end.
    pub async fn ended(&self) {
        while self.lock().end.is_none() {
            self.ended.notified().await;
        }
    }

    /// Waits until the client has read what is left, or patience is over; the status to end with.
    pub async fn last_words(&self) -> u8 {
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

    /// The run of the server that was started last.
    pub fn current_run(&self) -> Run {
        self.lock().run
    }

    /// Lets go of the server and of the guardian, which then takes down what is left of it.
    pub fn let_go_of_server(&self) -> Option<Guardian> {
        let mut state = self.lock();
        state.server.sink = None;
        state.guardian.take()
    }

    /// Lets go of the client.
    pub fn let_go_of_client(&self) {
        let mut state = self.lock();
        state.client.sink = None;
        state.observers.finish();
    }
}

impl State {
    fn outlet(&mut self, peer: Peer) -> &mut Outlet {
        match peer {
            Peer::Client => &mut self.client,
            Peer::Server => &mut self.server,
        }
    }

    /// Hands an event to the engine and does what it wants done.
    pub fn feed(&mut self, event: Event) {
        self.observers.event(&event);
        self.engine.handle(self.now, event);
        while let Some(action) = self.engine.poll() {
            if let Some(event) = self.perform(action) {
                self.engine.handle(self.now, event);
            }
        }
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
            Action::ToServer(_, message) => self.server.push(&message),
            Action::Start(_, run) => return self.start(run),
            Action::CloseInput(_) => self.server.closing = true,
            Action::Terminate(_) => self.guardian.iter().for_each(Guardian::terminate),
            Action::Kill(_) => self.guardian.iter().for_each(Guardian::kill),
            Action::Sample(server) => {
                let root = self.guardian.as_ref().map(|guardian| guardian.pid);
                let sample = root.and_then(|root| life::sample(root, self.now.mono, self.server.stderr));
                return Some(Event::Sampled(server, sample));
            }
            Action::Remember(_, memory) => {
                self.keeper.iter_mut().for_each(|keeper| keeper.keep((*memory).clone()))
            }
            Action::Forget(_) => self.keeper.iter_mut().for_each(Keeper::forget),
            Action::Note(note) => self.observers.note(&note),
            Action::End { status, patience } => self.end = Some((status, patience)),
        }
        None
    }

    fn start(&mut self, run: Run) -> Option<Event> {
        let driver = self.me.upgrade()?;
        self.run = run;
        self.server = Outlet { outbox: std::mem::take(&mut self.server.outbox), ..Outlet::default() };
        if run > Run(0) {
            self.server.outbox.clear();
        }
        match stdio::start(&driver, self.guardian.as_ref()?, run) {
            Ok(sink) => {
                self.server.sink = Some(sink);
                None
            }
            Err(error) => {
                let why =
                    outlast_engine::event::StartFailure::Refused(error.raw_os_error().unwrap_or_default());
                Some(Event::StartFailed(SERVER, run, why))
            }
        }
    }

    /// Passes a server's stderr on.
    pub fn stderr(&mut self, run: Run, bytes: bytes::Bytes) {
        self.server.stderr += bytes.len() as u64;
        self.observers.server_stderr(&bytes);
        self.feed(Event::Stderr(SERVER, run, bytes));
    }
}

enum Wrote {
    All,
    Some,
    Broken,
}

impl Outlet {
    fn push(&mut self, message: &outlast_engine::wire::Outgoing) {
        if !self.broken {
            self.outbox.push(message);
        }
    }

    /// Writes what fits at once.
    fn write(&mut self) -> Wrote {
        while let Some(sink) = self.sink.as_ref().filter(|_| !self.outbox.is_empty()) {
            let (slices, count) = self.outbox.slices();
            match sink.try_write(&slices[..count]) {
                Ok(count) => self.outbox.consume(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wide && self.outbox.len() > LARGE {
                        self.wide = true;
                        sink.widen();
                        continue;
                    }
                    return Wrote::Some;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    self.sink = None;
                    self.outbox.clear();
                    return Wrote::Broken;
                }
            }
        }
        if self.closing && self.outbox.is_empty() {
            self.sink = None;
        }
        Wrote::All
    }
}
