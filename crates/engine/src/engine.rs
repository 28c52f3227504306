//! The engine: routes an event to what it concerns, and collects what is to be done.

mod asks;
mod batches;
mod begin;
mod door;
mod durable;
mod ending;
mod ends;
mod from_client;
mod from_server;
mod hang;
mod instant;
mod invariants;
mod keep_door;
mod keyed;
mod ledger;
mod lifecycle;
mod remote;
mod repeat;
mod resources;
mod revival;
mod routes;
mod server_resumes;
mod settle;
mod sharing;
mod store_clock;
mod streams;
mod tasks;
mod ticks;
mod unsent;

use crate::action::{Action, Note};
use crate::calls::Calls;
use crate::chance::Chance;
use crate::clients::{Clients, Listens};
use crate::error::Wording;
use crate::event::Event;
use crate::id::{AttemptId, CallId, ClientId, Run, ServerId, StreamId};
use crate::idempotency::KeyPlace;
use crate::keys::Keys;
use crate::limits;
use crate::policy::Rules;
use crate::profile::{PROFILES, Profile};
use crate::servers::{Alarm, Asks, Life, Servers};
use crate::tickets::Tickets;
use crate::time::{Mono, Now, Wall};
use crate::timers::Timers;
use ending::Ending;
use ledger::Ledger;
pub use sharing::Share;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

/// Whose habits we have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manner {
    /// Our own, around one server: we end when it ends.
    Wrap,
    /// Those of `timeout-mcp`: we stay until the client goes, and end with status 0.
    TimeoutMcp,
    /// Those of a service: clients come and go, servers are started as they are needed.
    Serve,
}

/// How servers are reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A process behind pipes.
    Process,
    /// Streamable HTTP.
    Http,
}

impl Manner {
    fn outlives_its_server(self) -> bool {
        self != Manner::Wrap
    }

    fn serves(self) -> bool {
        self == Manner::Serve
    }

    fn wording(self) -> Wording {
        match self {
            Manner::Wrap | Manner::Serve => Wording::Own,
            Manner::TimeoutMcp => Wording::TimeoutMcp,
        }
    }
}

/// When a server is started again; each also for the reasons before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Restart {
    /// Not at all.
    Never,
    /// When it ended.
    OnCrash,
    /// When it hangs.
    OnHang,
    /// When a limit that a person wrote has fired.
    OnTimeout,
}

/// What is settled before the first event.
#[derive(Clone, Debug)]
pub struct Config {
    /// What a person calls the server.
    pub server_name: Box<str>,
    /// The command that starts it, for errors.
    pub command: Box<str>,
    /// Whose habits we have.
    pub manner: Manner,
    /// How the server is reached.
    pub transport: Transport,
    /// Who shares a server.
    pub share: Share,
    /// How long an HTTP session may be unused before what it holds is freed.
    pub session_idle: Duration,
    /// How long a broken stream can be taken up again.
    pub resume_wait: Duration,
    /// How long an answer may take to leave in one piece with the head of its stream.
    pub stream_head: Duration,
    /// How long a client should wait before it does.
    pub resume_min_wait: Duration,
    /// Calls may be tasks, for clients that want them so.
    pub tasks: bool,
    /// Where calls carry their idempotency keys.
    pub key_places: Vec<KeyPlace>,
    /// How long a modern call may take before its client gets the handle of a task.
    pub task_after: Duration,
    /// How long a task is kept after its end.
    pub task_ttl: Duration,
    /// The longest that a client may ask for.
    pub task_ttl_max: Duration,
    /// When clients give a tool up, whatever progress they see; their calls are handed off before.
    pub client_cap: Option<Duration>,
    /// What is known of clients.
    pub profiles: &'static [Profile],
    /// Clients that know how may resume calls after a lost connection.
    pub resumable: bool,
    /// We are only the door to a service of our own, which keeps the calls: what a client declares about
    /// resuming, and what it asks about it, goes there.
    pub door: bool,
    /// What the server is called in the store: the same after a restart of ours.
    pub identity: Box<str>,
    /// Sessions and streams over HTTP are stored, because the store outlives this process.
    pub durable: bool,
    /// Sessions of one principal.
    pub max_sessions: usize,
    /// Calls of one principal that are in flight.
    pub max_calls: usize,
    /// Limits per method and tool, for the calls that begin now: a call keeps the ones that it began with.
    pub rules: Arc<Rules>,
    /// Between telling a server to cancel and calling it hung.
    pub cancel_grace: Duration,
    /// How long calls may finish after the client's end.
    pub drain: Duration,
    /// The longest message.
    pub max_message: usize,
    /// When the server is started again.
    pub restart: Restart,
    /// The wait before a crashed server is started again; doubles.
    pub restart_backoff: Duration,
    /// Restarts within a minute before a server counts as failed.
    pub restart_intensity: u32,
    /// Further tries when a restarted server does not come up.
    pub connect_retries: u32,
    /// The wait before the first of them; doubles.
    pub connect_backoff: Duration,
    /// How often a failed server is tried again.
    pub reconnect_every: Duration,
    /// The longest wait before a call's second attempt; doubles.
    pub retry_backoff: Duration,
    /// The server's hints about its tools are believed.
    pub trust: bool,
    /// The handshake is answered from memory while the server starts.
    pub instant: bool,
    /// For jitter.
    pub seed: u64,
    /// A fault for the simulation to find.
    #[cfg(feature = "planted")]
    pub planted: Option<crate::planted::Planted>,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            server_name: "server".into(),
            command: "server".into(),
            manner: Manner::Wrap,
            transport: Transport::Process,
            share: Share::Principal,
            session_idle: Duration::from_secs(5 * 60),
            resume_wait: Duration::from_secs(10 * 60),
            stream_head: limits::STREAM_HEAD,
            resume_min_wait: Duration::from_secs(1),
            tasks: false,
            key_places: KeyPlace::defaults(),
            task_after: Duration::from_secs(10),
            task_ttl: Duration::from_secs(60 * 60),
            task_ttl_max: Duration::from_secs(72 * 60 * 60),
            client_cap: None,
            profiles: PROFILES,
            resumable: false,
            door: false,
            identity: "".into(),
            durable: false,
            max_sessions: 1_000,
            max_calls: 20_000,
            rules: Arc::default(),
            cancel_grace: Duration::from_secs(5),
            drain: Duration::from_secs(30),
            max_message: 64 << 20,
            restart: Restart::OnHang,
            restart_backoff: Duration::from_millis(500),
            restart_intensity: 5,
            connect_retries: 3,
            connect_backoff: Duration::from_secs(2),
            reconnect_every: Duration::from_secs(30),
            retry_backoff: Duration::from_millis(500),
            trust: false,
            instant: false,
            seed: 0,
            #[cfg(feature = "planted")]
            planted: None,
        }
    }
}

/// The engine.
#[derive(Debug)]
pub struct Engine {
    config: Config,
    clients: Clients,
    servers: Servers,
    calls: Calls,
    listens: Listens,
    asks: Asks,
    tickets: Tickets,
    keys: Keys,
    ledger: Ledger,
    /// The last event that the client of the request at hand has seen.
    confirmed: Option<(StreamId, u64)>,
    /// The attempt on whose stream the message came that is being looked at.
    tied: Option<AttemptId>,
    /// The time of the event that is being handled.
    at: Mono,
    wall: Wall,
    timers: Timers,
    chance: Chance,
    ending: Option<Ending>,
    ended: bool,
    actions: VecDeque<Action>,
}

impl Config {
    /// The limits per method and tool, to be added to.
    pub fn rules_mut(&mut self) -> &mut Rules {
        Arc::make_mut(&mut self.rules)
    }

    /// Whether calls may have tickets, so that an earlier process may have left some.
    pub fn has_tickets(&self) -> bool {
        self.tasks || self.resumable || self.client_cap.is_some()
    }

    /// Whether anything may be stored, so that the server needs a name in the store.
    pub fn uses_store(&self) -> bool {
        let verified = || self.profiles.iter().any(|profile| profile.verified);
        self.has_tickets() || self.durable || self.rules.any_keeps_answers() || verified()
    }
}

impl Engine {
    /// An engine that nothing has happened to.
    pub fn new(config: Config) -> Engine {
        Engine {
            clients: Clients::default(),
            servers: Servers::default(),
            calls: Calls::default(),
            listens: Listens::default(),
            asks: Asks::default(),
            tickets: Tickets::default(),
            keys: Keys::default(),
            ledger: Ledger::default(),
            confirmed: None,
            tied: None,
            at: Mono::default(),
            wall: Wall::default(),
            timers: Timers::default(),
            chance: Chance::new(config.seed),
            ending: None,
            ended: false,
            actions: VecDeque::new(),
            config,
        }
    }

    /// Takes one event. Total: it never fails, blocks or panics, whatever the event.
    pub fn handle(&mut self, now: Now, event: Event) {
        if self.ended {
            return self.handle_after_the_end(&event);
        }
        let at = now.mono;
        (self.at, self.wall) = (at, now.wall);
        if self.ending.is_some() {
            self.heed_whose_words(&event);
        }
        match &event {
            Event::FromClient(client, line) => self.line_from_client(at, *client, line),
            Event::FromServer(server, run, line) if self.is_current(*server, *run) => {
                self.line_from_server(at, *server, line);
            }
            Event::Remembered(server, memories) => self.remembered(*server, memories),
            Event::Opened(client, server) => self.opened(*client, *server),
            Event::ClientOversized(client, line) => self.client_oversized(at, *client, line),
            Event::ServerOversized(server, run, line) if self.is_current(*server, *run) => {
                self.server_oversized(at, *server, line);
            }
            Event::ClientEof(client) => self.client_eof(at, *client),
            Event::ClientGone(client) => self.client_gone(at, *client),
            Event::Congested(client, congested) => self.congested(*client, *congested),
            Event::Started(server, run) if self.is_current(*server, *run) => self.started(at, *server),
            Event::StartFailed(server, run, why) if self.is_current(*server, *run) => {
                self.start_failed(at, *server, *why);
            }
            Event::Exited(server, run, exit) if self.is_current(*server, *run) => {
                self.exited(at, *server, *exit);
            }
            Event::OutputClosed(server, run) if self.is_current(*server, *run) => {
                self.output_closed(at, *server);
            }
            Event::InputBroken(server, run, unsent) if self.is_current(*server, *run) => {
                self.input_broken(at, *server, unsent);
            }
            Event::Stderr(server, run, bytes) if self.is_current(*server, *run) => {
                self.stderr(at, *server, bytes);
            }
            Event::Sampled(server, sample) => self.sampled(at, *server, *sample),
            Event::Posted(exchange, head, line) => self.posted(at, *exchange, head, line),
            Event::Got(exchange, head) => self.got(at, *exchange, head),
            Event::Deleted(exchange, head) => self.deleted(at, *exchange, head),
            Event::HungUp(exchange) => self.hung_up(at, *exchange),
            Event::Entropy(bytes) => self.ledger.add_entropy(*bytes),
            Event::Stored(number, outcome) => self.stored(at, *number, outcome),
            Event::Begin => self.take_over_orphans(),
            Event::StoreLost(why) => self.note(Note::StoreLost { why: why.clone() }),
            Event::Loaded(number, outcome) => self.loaded(at, *number, outcome),
            Event::FromStream(server, run, attempt, line) if self.is_current(*server, *run) => {
                self.streamed(at, *server, *attempt, line);
            }
            Event::StreamEnded(server, run, attempt, end) if self.is_current(*server, *run) => {
                self.stream_ended(at, *server, *attempt, end);
            }
            Event::StandingEnded(server, run, end) if self.is_current(*server, *run) => {
                self.standing_ended(at, *server, end);
            }
            Event::Trouble(server, run, attempt, trouble) if self.is_current(*server, *run) => {
                self.trouble(at, *server, *attempt, trouble);
            }
            Event::Undelivered(server, run, answer, why) if self.is_current(*server, *run) => {
                self.undelivered(at, *server, answer, why);
            }
            Event::Slept(time) => self.note(Note::Slept { time: *time }),
            Event::Stop(signal) => self.stop(at, *signal),
            Event::Tick => self.tick(at),
            // The last words of a process that has been replaced.
            Event::FromServer(..)
            | Event::ServerOversized(..)
            | Event::FromStream(..)
            | Event::StreamEnded(..)
            | Event::StandingEnded(..)
            | Event::Trouble(..)
            | Event::Undelivered(..)
            | Event::Started(..)
            | Event::StartFailed(..)
            | Event::Exited(..)
            | Event::OutputClosed(..)
            | Event::InputBroken(..)
            | Event::Stderr(..) => {}
        }
        if self.ending.is_some() {
            self.drained();
        }
        if self.tickets.take_orphans_due() {
            self.start_orphans(at);
        }
        self.tidy();
    }

    /// The next thing to be done; call it until there is nothing left.
    pub fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When to come back with [`Event::Tick`].
    pub fn next_deadline(&self) -> Option<Mono> {
        if self.ended { None } else { self.timers.next() }
    }

    /// Calls that are not settled.
    pub fn open_calls(&self) -> usize {
        self.calls.len()
    }

    /// Whether nothing runs that somebody could come back for.
    pub fn is_idle(&self) -> bool {
        self.calls.len() == 0 && self.tickets.is_empty()
    }

    /// Whether requests are taken, and no server has been given up for now.
    pub fn is_ready(&self) -> bool {
        self.ending.is_none() && !self.ended && !self.servers.is_given_up()
    }

    /// Whether what this attempt says still counts.
    pub fn expects(&self, server: ServerId, run: Run, attempt: AttemptId) -> bool {
        self.is_current(server, run) && self.calls.awaits(attempt)
    }

    fn is_current(&self, server: ServerId, run: Run) -> bool {
        self.servers.is_current(server, run)
            || planted!(self, HearsOldRuns) && self.servers.contains_key(&server)
    }

    fn act(&mut self, action: Action) {
        self.actions.push_back(action);
    }

    fn note(&mut self, note: Note) {
        self.actions.push_back(Action::Note(note));
    }

    fn new_attempt(&mut self) -> AttemptId {
        self.calls.new_attempt()
    }

    /// Whom a client talks to.
    #[inline]
    fn server_id_of(&self, client: ClientId) -> Option<ServerId> {
        self.clients.get(&client).map(|client| client.server)
    }

    fn server_name(&self, server: ServerId) -> Box<str> {
        self.servers.get(&server).map(|server| server.name.clone()).unwrap_or_default()
    }

    /// Sets the timer of a call to the next moment it must be looked at.
    fn arm_call(&mut self, now: Mono, id: CallId) {
        let Some(server) = self.calls.get(id).map(|call| call.request.server) else { return };
        let Some(clock) = self.servers.clock_for(server, id) else { return };
        let now = if planted!(self, FiresLate) { now + Duration::from_secs(1) } else { now };
        self.calls.arm(&mut self.timers, now, id, clock);
    }

    fn arm_server(&mut self, id: ServerId, alarm: Option<(Alarm, Mono)>) {
        let serves = self.config.manner.serves() && self.ending.is_none();
        let idle = (Alarm::Idle, self.at + self.config.session_idle);
        let Some(server) = self.servers.get(&id) else { return };
        // What nobody needs may end, unless something else comes first.
        let unneeded = serves && server.is_unused() && server.life != Life::Leaving;
        let alarm = alarm.or(Some(idle).filter(|_| unneeded));
        self.servers.arm(&mut self.timers, id, alarm);
    }
}
