//! Many servers behind the merged door and behind doors of their own, while the file changes.
//!
//! The first servers of the file are *steady*: no reload touches them and nothing is wrong with them. All others come
//! and go, become other programs, die, list slowly or without end. The judge (`judge`) sees that each answer comes
//! from the server that its name stands for, from a program that the file had, to the client that asked; that a limit
//! which fires is one that held when the call began; that nobody is shown, or hears of, a server that the file hides
//! from it (`rules`), and that tools on demand are found and not listed; that whoever listens (`listeners`) hears what
//! it asked for, in its own words; that progress and questions reach whom they concern, and answers whoever asked; that
//! a list which failed is asked for again; that nothing is left open for a token that was taken back; and that a call of
//! a steady server always succeeds.

mod judge;
mod listeners;
mod rules;
mod servers;

use super::agenda::{Agenda, Next};
use super::rng::Rng;
use super::steps::Steps;
use super::subject::Subject;
use super::{Outcome, fingerprint, sampled};
use crate::exchange::{Exchanges, NAMES, mirror, read};
use bytes::Bytes;
use judge::{Defined, Judge};
use listeners::{LISTENERS, Listener};
use outlast_engine::config::Exposure;
use outlast_engine::http::{Body, Head};
use outlast_engine::id::{ExchangeId, Run, ServerId};
use outlast_engine::settings::{Key, setting};
use outlast_engine::{Action, Config, Event, Manner, Mono, Now, Reload, ServerConfig, Wall, wire};
use rules::Who;
use serde_json::{Value, json};
use servers::Process;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Servers that no reload touches.
const STEADY: usize = 2;
/// Servers that a file may have.
const SERVERS: usize = 7;
const CLIENTS: usize = 5;
/// What every server has.
const TOOLS: [&str; 2] = ["build", "look"];
/// Events between two full sweeps of the engine's own invariants.
const SWEEP: u64 = 20;
const DRAIN: Duration = Duration::from_secs(2);
/// How long a list may take, so that those that are never answered are given up.
const LIST: &str = "5s";

#[derive(Debug)]
enum Plan {
    Acts(usize),
    Reload,
    Feed(Box<Event>),
    Reaches(ServerId, Run, Bytes),
    Says(ServerId, Run, Value),
    Exits(ServerId, Run),
    /// What a client was asked, in this session.
    Answers(usize, Option<Box<str>>, String),
}

/// A session of a client, or none yet.
#[derive(Debug, Default)]
struct Session {
    principal: usize,
    /// The server whose door it is; the merged one, without.
    door: Option<String>,
    name: Option<Box<str>>,
    ready: bool,
    who: Who,
    /// Public names of tools that it was shown.
    known: Vec<String>,
    /// Those that it found.
    found: Vec<String>,
}

/// One request over HTTP: of which client, and at which door it was made.
#[derive(Clone, Debug)]
struct Visit {
    client: usize,
    door: Option<String>,
    who: Who,
    /// The number under which it listens.
    listen: Option<u64>,
}

struct World {
    rng: Rng,
    agenda: Agenda<Plan>,
    engine: Subject,
    steps: Steps,
    exchanges: Exchanges,
    /// In the order of their exchanges.
    visits: Vec<Visit>,
    sessions: Vec<Session>,
    listeners: Vec<Listener>,
    processes: BTreeMap<ServerId, Process>,
    judge: Judge,
    left: usize,
    work: u64,
    outcome: Outcome,
}

/// Plays one world to its end.
pub fn run(seed: u64, calls: usize) -> Outcome {
    let mut world = World::new(seed, calls);
    world.feed(Event::Entropy([1; 32]));
    world.feed(Event::Warm);
    for client in 0..CLIENTS + LISTENERS {
        world.agenda.plan(Duration::from_millis(client as u64), Plan::Acts(client));
    }
    world.agenda.plan(Duration::from_millis(500), Plan::Reload);
    world.play();
    world.say_farewell();
    world.outcome
}

fn name_of(server: usize) -> String {
    format!("s{server}")
}

fn config_of(name: &str, defined: Defined, rng: &mut Rng) -> Arc<ServerConfig> {
    let mut config = ServerConfig {
        name: name.into(),
        command: name.into(),
        identity: name.into(),
        program: defined.program,
        restart_backoff: Duration::from_millis(rng.between(1, 300)),
        connect_backoff: Duration::from_millis(rng.between(1, 300)),
        reconnect_every: Duration::from_millis(rng.between(100, 2_000)),
        heartbeat: Some(Duration::from_secs(2)),
        server_idle: rng.chance(20).then(|| Duration::from_secs(3)),
        eager: rng.chance(20),
        exposure: Arc::new(Exposure { expose: rules::expose(name), ..Exposure::default() }),
        ..ServerConfig::default()
    };
    let rules = Arc::make_mut(&mut config.rules);
    let value = setting(Key::Timeout).parse(&format!("{}ms", defined.timeout)).expect("a time");
    rules.bare(Key::Timeout, value, "the file");
    rules.add(Key::Method, &format!("tools/list=timeout:{LIST}"), "the file").expect("a rule");
    Arc::new(config)
}

impl World {
    fn new(seed: u64, calls: usize) -> World {
        let mut rng = Rng::new(seed);
        let mut judge = Judge::default();
        let mut servers: Vec<Arc<ServerConfig>> = Vec::new();
        for server in 0..SERVERS {
            let timeout = if server < STEADY { 60_000 } else { 1_000 };
            let defined = Defined { program: 1, timeout };
            judge.says(Duration::ZERO, &name_of(server), Some(defined));
            servers.push(config_of(&name_of(server), defined, &mut rng));
        }
        let first = servers.remove(0);
        let config = Config {
            server: first,
            others: servers,
            clients: rules::of_clients(),
            manner: Manner::Serve,
            drain: DRAIN,
            seed,
            list_wait: Duration::from_millis(rng.between(50, 4_000)),
            ..Config::default()
        };
        let session = |client: usize| Session { principal: client % NAMES.len(), ..Session::default() };
        World {
            rng,
            agenda: Agenda::new(),
            engine: super::engine(config),
            steps: Steps::default(),
            exchanges: Exchanges::default(),
            visits: Vec::new(),
            sessions: (0..CLIENTS).map(session).collect(),
            listeners: Who::ALL.map(Listener::new).into(),
            processes: BTreeMap::new(),
            judge,
            left: calls,
            work: 0,
            outcome: Outcome::default(),
        }
    }

    fn now(&self) -> Now {
        Now { mono: Mono::after_start(self.agenda.now), wall: Wall(self.agenda.now.as_millis() as u64) }
    }

    fn play(&mut self) {
        let end = |world: &World| world.left == 0 && world.judge.nothing_is_open();
        while !end(self) {
            self.judge.nobody_waits_for_ever(self.agenda.now);
            self.failed_lists_are_asked_for_again();
            match self.agenda.advance(self.engine.next_deadline()) {
                Next::Happens(plan) => self.happens(plan),
                Next::Due => self.feed(Event::Tick),
                Next::Nothing => panic!("nothing happens any more, and calls are open"),
            }
        }
    }

    fn happens(&mut self, plan: Plan) {
        match plan {
            Plan::Acts(client) if client >= CLIENTS => self.listener_acts(client),
            Plan::Acts(client) => self.acts(client),
            Plan::Reload => self.reloads(),
            Plan::Feed(event) => self.feed(*event),
            Plan::Reaches(id, run, bytes) => self.reaches(id, run, &bytes),
            Plan::Says(id, run, message) => {
                if self.processes.get_mut(&id).is_some_and(|process| process.says(run, &message)) {
                    self.feed(Event::FromServer(id, run, wire::scan(message.to_string().into())));
                }
            }
            Plan::Exits(id, run) => self.exits(id, run),
            Plan::Answers(client, session, answer) => self.answers(client, &session, &answer),
        }
    }

    fn feed(&mut self, event: Event) {
        self.outcome.events += 1;
        self.engine.handle(self.now(), event);
        while let Some(action) = self.engine.poll() {
            self.outcome.fingerprint = fingerprint(self.outcome.fingerprint, &action);
            if let Some(event) = self.perform(action) {
                self.engine.handle(self.now(), event);
            }
        }
        if self.outcome.events.is_multiple_of(SWEEP) {
            super::sweep(&self.engine);
        }
    }

    fn perform(&mut self, action: Action) -> Option<Event> {
        match action {
            Action::Respond(id, response) => {
                self.exchanges.respond(id, &response);
                self.responds(id, response.status, response.session);
                if let Body::Json(body) = response.body {
                    self.told(id, &body);
                }
            }
            Action::Write(id, bytes) => {
                self.exchanges.write(id);
                for event in
                    read(&bytes).into_iter().filter_map(|event| event.data).filter(|data| !data.is_empty())
                {
                    self.told(id, &event);
                }
            }
            Action::Finish(id) => self.exchanges.finish(id),
            Action::NeedEntropy => {
                let number = self.rng.between(1, u64::MAX - 1).to_le_bytes();
                let mut bytes = [7; 32];
                (0..4).for_each(|part| bytes[part * 8..][..8].copy_from_slice(&number));
                return Some(Event::Entropy(bytes));
            }
            Action::Sample(id) => {
                let now = self.now();
                return Some(sampled(&mut self.rng, &mut self.work, now, id));
            }
            Action::Step(_) => self.steps.take(&action),
            action => self.tells_server(action),
        }
        None
    }

    // The file.

    fn reloads(&mut self) {
        if self.left == 0 {
            return;
        }
        let mut servers = Vec::new();
        for server in 0..SERVERS {
            let name = name_of(server);
            let now = self.judge.defined(&name);
            let next = if server < STEADY { now } else { self.other(now) };
            self.judge.says(self.agenda.now, &name, next);
            servers.extend(next.map(|defined| config_of(&name, defined, &mut self.rng)));
        }
        // What it says of the first counts, wherever it stands.
        let first = self.rng.below(servers.len());
        servers.rotate_left(first);
        let revoked = self.rng.chance(8).then(|| self.rng.below(NAMES.len()));
        let names = revoked.map(|principal| Some(NAMES[principal].into())).into_iter().collect();
        let reload = Reload { servers, separator: "__".into(), revoked: names, ..Reload::default() };
        revoked.into_iter().for_each(|principal| self.loses_its_token(principal));
        self.feed(Event::Reload(Box::new(reload)));
        revoked.into_iter().for_each(|principal| self.has_nothing_open(principal));
        let next = self.rng.millis(50, 4_000);
        self.agenda.plan(next, Plan::Reload);
    }

    /// The token of a principal is taken back, and it has another one: it begins anew.
    fn loses_its_token(&mut self, principal: usize) {
        let of_it = |client: usize| client % NAMES.len() == principal;
        self.judge.is_revoked(of_it);
        for client in (0..CLIENTS).filter(|client| of_it(*client)) {
            (self.sessions[client].name, self.sessions[client].ready) = (None, false);
        }
    }

    fn has_nothing_open(&self, principal: usize) {
        let open = self.visits.iter().zip(self.exchanges.all());
        for (visit, exchange) in open.filter(|(visit, _)| visit.client % NAMES.len() == principal) {
            assert!(!exchange.is_open(), "{visit:?} is still open without a token");
        }
    }

    fn other(&mut self, now: Option<Defined>) -> Option<Defined> {
        let defined = now.unwrap_or(Defined { program: self.rng.between(1, 9), timeout: 1_000 });
        match self.rng.below(10) {
            0 => None,
            1 => Some(Defined { program: self.rng.between(1, 9), ..defined }),
            2 => Some(Defined { timeout: [300, 1_000, 5_000][self.rng.below(3)], ..defined }),
            _ => now.or_else(|| self.rng.chance(30).then_some(defined)),
        }
    }

    // Clients.

    fn acts(&mut self, client: usize) {
        let pause = self.rng.millis(5, 400);
        if self.left > 0 {
            self.agenda.plan(pause, Plan::Acts(client));
        }
        if self.sessions[client].name.is_none() {
            return self.begins(client);
        }
        if !self.sessions[client].ready {
            return;
        }
        match self.rng.below(10) {
            0 => self.ask(client, "tools/list", &json!({})),
            1 => self.cancels(client),
            2 if self.sessions[client].door.is_none() => self.searches(client),
            _ => self.calls(client),
        }
    }

    fn begins(&mut self, client: usize) {
        if self.judge.begins(client) {
            return;
        }
        let door = self.rng.chance(30).then(|| name_of(self.rng.below(SERVERS)));
        let who = Who::ALL[self.rng.below(Who::ALL.len())];
        let session = &mut self.sessions[client];
        (session.door, session.ready, session.who) = (door, false, who);
        session.known.clear();
        session.found.clear();
        // Of one principal some sessions are alike, and share servers.
        let version = ["2025-11-25", "2025-06-18"][client / NAMES.len() % 2];
        let info = json!({"name": who.name(), "version": "1"});
        let capabilities = json!({"roots": {}});
        let params = json!({"protocolVersion": version, "capabilities": capabilities, "clientInfo": info});
        self.ask(client, "initialize", &params);
    }

    fn ask(&mut self, client: usize, method: &str, params: &Value) {
        let session = &self.sessions[client];
        let at = (session.door.clone(), session.who);
        let id = self.judge.asks(self.agenda.now, client, at, method, params);
        self.outcome.calls += 1;
        self.left = self.left.saturating_sub(1);
        self.post(client, &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn post(&mut self, client: usize, message: &Value) {
        let session = &self.sessions[client];
        let mut head = Head { takes_json: true, takes_events: true, ..Head::default() };
        head.principal = Some(NAMES[session.principal].into());
        (head.server, head.session) = (session.door.as_deref().map(Box::from), session.name.clone());
        let line = wire::scan(message.to_string().into());
        mirror(&mut head, &line);
        let id = self.exchanges.open(&head, false);
        self.visits.push(Visit { client, door: session.door.clone(), who: session.who, listen: None });
        self.feed(Event::Posted(id, Box::new(head), line));
    }

    fn calls(&mut self, client: usize) {
        let session = &self.sessions[client];
        let through = session.door.is_none() && !session.found.is_empty() && self.rng.chance(50);
        // What it was not shown it may try all the same, and then it may not be there yet.
        let guesses = session.door.is_none() && self.rng.chance(5);
        let tool = match &session.door {
            Some(_) => TOOLS[self.rng.below(2)].to_owned(),
            None if guesses => format!("{}__{}", name_of(self.rng.below(SERVERS)), TOOLS[0]),
            None if through => session.found[self.rng.below(session.found.len())].clone(),
            None if session.known.is_empty() => return self.ask(client, "tools/list", &json!({})),
            None => session.known[self.rng.below(session.known.len())].clone(),
        };
        let nonce = self.judge.next();
        let direct = json!({"name": tool, "arguments": {"nonce": nonce, "guess": guesses}});
        let mut params = if through { json!({"name": "call_tool", "arguments": direct}) } else { direct };
        params["_meta"] = json!({"progressToken": nonce});
        self.ask(client, "tools/call", &params);
    }

    /// Looks for tools, or at one that it found.
    fn searches(&mut self, client: usize) {
        let found = &self.sessions[client].found;
        let params = match found.len() {
            0 => json!({"name": "find_tools", "arguments": {"query": "", "limit": 50}}),
            _ if self.rng.chance(60) => json!({"name": "find_tools", "arguments": {"query": "build look"}}),
            many => {
                let name = &found[self.rng.below(many)];
                json!({"name": "describe_tool", "arguments": {"name": name}})
            }
        };
        self.ask(client, "tools/call", &params);
    }

    fn cancels(&mut self, client: usize) {
        let Some(id) = self.judge.gives_up(client) else { return };
        self.outcome.cancelled += 1;
        let params = json!({"requestId": id});
        self.post(client, &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
        if self.sessions[client].name.is_some() {
            self.judge.is_given_up(id);
        }
    }

    fn responds(&mut self, id: ExchangeId, status: u16, session: Option<Box<str>>) {
        let client = self.visits[id.0 as usize].client;
        if client >= CLIENTS {
            return;
        }
        if session.is_some() {
            self.sessions[client].name = session;
        }
        if status == 404 && self.sessions[client].name.is_some() {
            // Its server is gone from the file; whatever it asked on other streams is answered there.
            self.judge.is_not_found(client, &self.sessions[client].door);
            self.sessions[client].name = None;
        }
    }

    /// A message for a client.
    fn told(&mut self, id: ExchangeId, bytes: &Bytes) {
        let Visit { client, door, who, listen } = self.visits[id.0 as usize].clone();
        let principal = client % NAMES.len();
        let message: Value = serde_json::from_slice(bytes).expect("JSON");
        if let Some(listen) = listen {
            return self.judge.hears_on_listen(listen, (client, who, principal), &message);
        }
        match message["method"].as_str() {
            Some("notifications/progress") => return self.judge.progresses(client, &message["params"]),
            Some("roots/list") => return self.is_asked(client, (door.as_deref(), who), &message),
            _ => {}
        }
        // What outlast says itself has a logger.
        let log = message.get("params").filter(|params| params.get("logger").is_none());
        if let Some(text) = log.and_then(|params| params.get("data")?.as_str()) {
            return self.judge.hears(principal, (door.as_deref(), who), text);
        }
        if message.get("method").is_some() || message["id"].is_null() {
            return;
        }
        let Some(asked) = self.judge.answers(self.agenda.now, client, principal, &message) else { return };
        self.outcome.failed += u64::from(message.get("error").is_some());
        match asked.method.as_str() {
            method if client >= CLIENTS => self.listener_is_shown(client, method, &message),
            "initialize" if message.get("result").is_some() => {
                self.sessions[client].ready = true;
                self.agenda.plan(Duration::ZERO, Plan::Acts(client));
            }
            "initialize" => self.sessions[client].name = None,
            "tools/list" => {
                let tools = message["result"]["tools"].as_array().cloned().unwrap_or_default();
                let names = tools.iter().filter_map(|tool| Some(tool["name"].as_str()?.to_owned()));
                let names: Vec<String> = names.collect();
                self.judge.is_shown(door.as_deref(), who, &names);
                self.sessions[client].known =
                    names.into_iter().filter(|name| door.is_some() || name.contains("__")).collect();
            }
            "tools/call" if asked.tool == "find_tools" => {
                self.sessions[client].found = self.judge.is_found(who, &message);
            }
            _ => {}
        }
    }

    /// A server asks a client, which says who asked.
    fn is_asked(&mut self, client: usize, (door, who): (Option<&str>, Who), message: &Value) {
        let from = &message["params"]["_meta"]["from"];
        self.judge.hears(client % NAMES.len(), (door, who), from.as_str().expect("a question of ours"));
        let result = json!({"roots": [{"uri": from}]});
        let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
        let pause = self.rng.millis(0, 300);
        self.agenda.plan(pause, Plan::Answers(client, self.sessions[client].name.clone(), answer));
    }

    /// A client answers a question, if its session is still the one that was asked.
    fn answers(&mut self, client: usize, session: &Option<Box<str>>, answer: &str) {
        if session.is_some() && self.sessions[client].name == *session {
            self.post(client, &serde_json::from_str(answer).expect("JSON"));
        }
    }

    // The end.

    /// Every client leaves, and then nothing may be left.
    fn say_farewell(&mut self) {
        self.listeners_leave();
        // Nothing is started for nobody any more.
        let steady = (0..STEADY).map(|server| {
            let name = name_of(server);
            let defined = self.judge.defined(&name).expect("it is steady");
            let mut config = config_of(&name, defined, &mut self.rng);
            Arc::make_mut(&mut config).eager = false;
            config
        });
        let servers = steady.collect();
        self.feed(Event::Reload(Box::new(Reload { servers, separator: "__".into(), ..Reload::default() })));
        for client in 0..CLIENTS {
            let session = &self.sessions[client];
            let head = Head {
                principal: Some(NAMES[session.principal].into()),
                server: session.door.as_deref().map(Box::from),
                session: session.name.clone(),
                ..Head::default()
            };
            if head.session.is_some() {
                let id = self.exchanges.open(&head, false);
                let (door, who) = (session.door.clone(), session.who);
                self.visits.push(Visit { client, door, who, listen: None });
                self.feed(Event::Deleted(id, Box::new(head)));
            }
        }
        let until = self.agenda.now + Duration::from_secs(2 * 24 * 60 * 60);
        while self.agenda.now < until {
            match self.agenda.advance(self.engine.next_deadline()) {
                Next::Happens(Plan::Acts(_) | Plan::Reload | Plan::Answers(..)) => {}
                Next::Happens(plan) => self.happens(plan),
                Next::Due => self.feed(Event::Tick),
                Next::Nothing => break,
            }
        }
        if let Err(left) = self.engine.check_nothing_is_left() {
            panic!("{left}");
        }
        self.steps.are_over();
    }
}
