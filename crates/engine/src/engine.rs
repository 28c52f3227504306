//! The engine: routes an event to what it concerns, and collects what is to be done.

mod asks;
mod batches;
mod begin;
mod by_person;
mod calling_back;
mod declaring;
mod door;
mod durable;
mod ending;
mod ends;
mod from_client;
mod from_server;
mod hang;
mod holding;
mod instant;
mod invariants;
mod keep_door;
mod keyed;
mod leaving;
mod ledger;
mod lifecycle;
mod merged;
mod quiet;
mod reload;
mod remote;
mod repeat;
mod reporting;
mod resources;
mod revival;
mod rights;
mod routes;
mod seams;
mod server_resumes;
mod settle;
mod sharing;
mod snapshots;
mod stepping;
mod store_clock;
mod streams;
mod tasks;
mod throttling;
mod ticks;
mod tracing;
mod unsent;

use crate::action::{Action, Note};
use crate::callbacks::Callbacks;
use crate::calls::Calls;
use crate::chance::Chance;
use crate::clients::{Clients, Listens};
use crate::config::{Config, ServerConfig, Transport};
use crate::event::Event;
use crate::holds::Holds;
use crate::id::{AttemptId, CallId, ClientId, DefinitionId, Run, ServerId, StreamId};
use crate::keys::Keys;
use crate::merged::Merged;
use crate::relays::Relays;
use crate::servers::{Alarm, Asks, Life, Servers};
use crate::step::Observed;
use crate::store::Hint;
use crate::throttles::Throttles;
use crate::tickets::Tickets;
use crate::time::{Mono, Now, Wall};
use crate::timers::Timers;
use ending::Ending;
use leaving::Leaving;
use ledger::Ledger;
use std::collections::VecDeque;
use std::time::Duration;
use stepping::Steps;
use tracing::Traces;

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
    holds: Holds,
    callbacks: Callbacks,
    merged: Merged,
    throttles: Throttles,
    relays: Relays,
    /// Whether anybody's calls are bounded at all.
    bounded: bool,
    /// Whether there is any tool that not everybody may call.
    selective: bool,
    /// Whether any limit follows what is measured.
    adapts: bool,
    ledger: Ledger,
    steps: Steps,
    traces: Traces,
    /// The last event that the client of the request at hand has seen.
    confirmed: Option<(StreamId, u64)>,
    /// The attempt on whose stream the message came that is being looked at.
    tied: Option<AttemptId>,
    /// The time of the event that is being handled.
    at: Mono,
    wall: Wall,
    timers: Timers,
    chance: Chance,
    leaving: Option<Leaving>,
    ending: Option<Ending>,
    ended: bool,
    actions: VecDeque<Action>,
}

impl Engine {
    /// An engine that nothing has happened to.
    pub fn new(mut config: Config) -> Engine {
        config.looks_on_itself();
        Engine {
            clients: Clients::default(),
            servers: Servers::default(),
            calls: Calls::default(),
            listens: Listens::default(),
            asks: Asks::counted_from(first_question(&config)),
            tickets: Tickets::default(),
            keys: Keys::default(),
            holds: Holds::default(),
            callbacks: Callbacks::default(),
            merged: Merged::default(),
            throttles: Throttles::default(),
            relays: Relays::default(),
            bounded: Engine::bounds_calls(&config),
            selective: config.leaves_tools_out(),
            adapts: config.adapts(),
            ledger: Ledger::default(),
            steps: Steps::default(),
            traces: Traces::default(),
            confirmed: None,
            tied: None,
            at: Mono::default(),
            wall: Wall::default(),
            timers: Timers::default(),
            chance: Chance::new(config.seed),
            leaving: None,
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
            Event::Entered(client) => self.entered(*client),
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
            Event::Identity(name) => self.is_called(name),
            Event::Stored(number, outcome) => self.stored(at, *number, outcome),
            Event::Begin => self.begin(),
            Event::StoreLost(why) => self.note(Note::StoreLost { why: why.clone() }),
            Event::Loaded(number, outcome) => self.loaded(at, *number, outcome),
            Event::Hinted(Hint::Mail) => self.mail_is_hinted(),
            Event::Hinted(Hint::News) => self.relays.hurry(&mut self.timers, at),
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
            Event::DoorEmpty => self.door_is_empty(at),
            Event::Warm => self.start_eager(at),
            Event::Reload(reload) => self.reload(at, reload),
            Event::Measured(all) => self.steps.measured(all),
            Event::CancelCall(no, by) => self.cancelled_by_person(at, *no, by),
            Event::RestartServer(name) => self.restarted_by_person(at, name),
            Event::CalledBack { callback, attempts, delivery } => {
                self.called_back(*callback, *attempts, delivery);
            }
            Event::Slept(time) => self.note(Note::Slept { time: *time }),
            Event::Stop(signal) => self.stop(at, *signal),
            Event::Tick => self.tick(at),
            // What a process that has been replaced still wrote.
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
        if self.bounded && self.throttles.have_room() {
            self.give_turns(at);
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

    /// What a server is one of.
    pub fn definition(&self, server: ServerId) -> Option<DefinitionId> {
        self.servers.get(&server).map(|server| server.definition)
    }

    /// Whether the store calls one of our servers so, or all of them together.
    pub fn has_identity(&self, identity: &str) -> bool {
        *self.config.identity == *identity
            || self.config.definitions().any(|(_, config)| *config.identity == *identity)
    }

    /// What people call a server.
    pub fn name_of(&self, server: ServerId) -> Option<&str> {
        self.servers.get(&server).map(|server| &*server.config.name)
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
        if self.config.observed != Observed::Nothing {
            self.step_in(&note);
        }
        self.actions.push_back(Action::Note(note));
    }

    fn new_attempt(&mut self) -> AttemptId {
        self.calls.new_attempt()
    }

    /// The server that what a client says is for. `None` if the client is gone or sleeps, or if each message says it.
    #[inline]
    fn server_for(&self, client: ClientId) -> Option<ServerId> {
        self.clients.get(&client)?.only_server()
    }

    /// What a server is. Nothing that is asked about a server that is gone still matters.
    #[inline]
    fn definition_of(&self, server: ServerId) -> &ServerConfig {
        self.servers.get(&server).map_or(&self.config.server, |server| &server.config)
    }

    /// The definition that is called so in the store.
    fn definition_called(&self, identity: &str) -> Option<DefinitionId> {
        self.config.definitions().find(|(_, config)| *config.identity == *identity).map(|(id, _)| id)
    }

    #[inline]
    fn is_remote(&self, server: ServerId) -> bool {
        self.servers.get(&server).map_or(self.config.server.transport, |server| server.transport)
            == Transport::Http
    }

    fn server_name(&self, server: ServerId) -> Box<str> {
        self.servers.get(&server).map(|server| server.config.name.clone()).unwrap_or_default()
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

/// After which number questions to clients are counted. Among replicas after one of 52 random bits, which every JSON
/// reader keeps exactly.
fn first_question(config: &Config) -> u64 {
    if config.replicated { config.seed >> 12 } else { 0 }
}
