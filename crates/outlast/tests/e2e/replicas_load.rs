//! A fleet under load: replicas are restarted one after the other and nobody notices; they are killed at random, and
//! every ticket that was given out resolves once, to the end of its own call.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use nix::sys::signal::Signal;
use outlast_testkit::http::caller::Caller;
use outlast_testkit::peer::wait_until;
use outlast_testkit::postgres::Postgres;
use serde_json::{Value, json};

use crate::http_world::{ACCEPT, JSON, LEGACY};
use crate::replicas::{Balancer, Fleet, History, PATIENCE, ask, call_as_task, status, ticket_in};

/// Replicas of these fleets, and clients that call all the time.
const REPLICAS: usize = 3;
const CLIENTS: usize = 4;

fn is_ready(address: SocketAddr) -> bool {
    let Ok(mut caller) = Caller::try_connect(address) else { return false };
    caller.request("GET /readyz", &[], "");
    caller.try_head().is_some_and(|(status, _)| status == 200)
}

/// Every replica is stopped and started again, while clients call, make tasks and fetch them: not one request fails.
#[test]
fn a_rolling_restart_of_all_replicas_fails_no_request() {
    let mut fleet = Fleet::new(&Postgres::shared().database(), REPLICAS);
    let balancer = Balancer::before(&fleet);
    let (over, requests) = (AtomicBool::new(false), AtomicU64::new(0));
    let clients: Vec<_> = (0..CLIENTS).map(|_| balancer.client(&fleet)).collect();
    std::thread::scope(|scope| {
        for (at, mut client) in clients.into_iter().enumerate() {
            let (over, requests) = (&over, &requests);
            scope.spawn(move || {
                for number in (at as u64..).step_by(CLIENTS) {
                    if over.load(Ordering::Relaxed) {
                        return;
                    }
                    assert_eq!(client.value_of("echo", &json!({"n": number})), json!({"n": number}));
                    let slow = client.call("silent", &json!({"ms": 150}));
                    assert!(slow["result"].is_object(), "{slow}");
                    // A call that comes just as its session moves may be answered plainly.
                    let mut answer = call_as_task(&mut client, "silent", &json!({"ms": 300}));
                    if let Some(ticket) = ticket_in(&answer) {
                        status(&mut client, &ticket);
                        answer = ask(&mut client, "tasks/result", &ticket);
                    }
                    assert!(answer["result"].is_object(), "{answer}");
                    requests.fetch_add(5, Ordering::Relaxed);
                }
            });
        }
        for at in 0..REPLICAS {
            let address = fleet.replicas[at].address;
            fleet.replicas[at].process.signal(Signal::SIGTERM);
            assert!(fleet.replicas[at].process.end().success());
            fleet.replicas[at] = fleet.start_at(at, address.port());
            assert!(wait_until(PATIENCE, || is_ready(address)), "replica {at} does not come back");
            // The balancer forgets after two seconds that it was gone.
            std::thread::sleep(Duration::from_millis(2_500));
        }
        over.store(true, Ordering::Relaxed);
    });
    let requests = requests.into_inner();
    println!("{requests} requests while {REPLICAS} replicas were restarted, none failed");
    assert!(requests > 100, "{requests}");
}

/// A client that is not surprised when its replica is killed.
struct Visitor {
    address: SocketAddr,
    token: String,
    session: Option<String>,
}

impl Visitor {
    fn new(address: SocketAddr, token: &str) -> Visitor {
        Visitor { address, token: token.to_owned(), session: None }
    }

    /// A request and its answer; nothing if the connection is not there until then.
    fn try_ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let mut headers = vec![ACCEPT, JSON, ("Authorization", &self.token)];
        if let Some(session) = &self.session {
            headers.extend([("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)]);
        }
        let mut caller = Caller::try_connect(self.address).ok()?;
        caller.request("POST /mcp", &headers, message.to_string());
        let (_, head) = caller.try_head()?;
        if let Some(session) = head.header("Mcp-Session-Id") {
            self.session = Some(session.to_owned());
        }
        if head.header("Content-Type").is_some_and(|kind| kind.starts_with("text/event-stream")) {
            let answers = |message: &Value| message.get("id").is_some() && message.get("method").is_none();
            return std::iter::from_fn(|| caller.event()).map(|event| event.json()).find(answers);
        }
        serde_json::from_slice(&caller.try_body()?).ok()
    }

    fn enter(&mut self) -> Option<()> {
        let who = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": who});
        self.try_ask("initialize", &params)?.get("result").map(drop)
    }

    /// A call with a ticket.
    fn try_begin(&mut self, tool: &str, arguments: &Value) -> Option<String> {
        let params = json!({"name": tool, "arguments": arguments, "task": {}});
        let answer = self.try_ask("tools/call", &params)?;
        Some(answer["result"]["task"]["taskId"].as_str()?.to_owned())
    }

    fn try_status(&mut self, ticket: &str) -> Option<String> {
        let answer = self.try_ask("tasks/get", &json!({"taskId": ticket}))?;
        Some(answer["result"]["status"].as_str()?.to_owned())
    }
}

/// Numbers that look random, the same for the same seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

/// How often a replica is killed, and the seed of when and which: `OUTLAST_TEST_ROUNDS`, `OUTLAST_TEST_SEED`.
fn drawn() -> (u64, u64) {
    let variable = |name| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let seed = variable("OUTLAST_TEST_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    (variable("OUTLAST_TEST_ROUNDS").unwrap_or(40), seed)
}

/// What all clients share: where replicas are, the calls that may not run twice, the tickets and what was seen of them.
struct Load {
    addresses: Vec<SocketAddr>,
    token: String,
    runs: PathBuf,
    over: AtomicBool,
    calls: AtomicU64,
    tickets: Mutex<BTreeMap<String, History>>,
}

impl Load {
    /// Calls at one replica after the other, and looks for what others were given.
    fn go_on(&self, mut dice: Dice) {
        while !self.over.load(Ordering::Relaxed) {
            let address = self.addresses[dice.below(self.addresses.len() as u64) as usize];
            let mut visitor = Visitor::new(address, &self.token);
            if visitor.enter().is_some() {
                (0..4).try_for_each(|_| self.call(&mut visitor, &mut dice));
                self.look(&mut visitor, &mut dice);
            }
        }
    }

    fn call(&self, visitor: &mut Visitor, dice: &mut Dice) -> Option<()> {
        let number = self.calls.fetch_add(1, Ordering::Relaxed);
        let (file, gate) = (self.runs.join(number.to_string()), &self.runs);
        let ticket = match dice.below(4) {
            0 => visitor.try_begin("silent", &json!({"n": number, "ms": 300})),
            1 => visitor.try_begin("count", &json!({"n": number, "file": file, "gate": gate})),
            _ => visitor.try_begin("echo", &json!({"n": number})),
        }?;
        let history = History { number, ..History::default() };
        self.tickets.lock().expect("the tickets").insert(ticket, history);
        Some(())
    }

    fn look(&self, visitor: &mut Visitor, dice: &mut Dice) -> Option<()> {
        let chosen = {
            let tickets = self.tickets.lock().expect("the tickets");
            let at = dice.below(tickets.len().max(1) as u64) as usize;
            tickets.keys().nth(at)?.clone()
        };
        let seen = visitor.try_status(&chosen)?;
        // Others may have looked meanwhile, and seen more: an end stays, and anything else says nothing then.
        let mut tickets = self.tickets.lock().expect("the tickets");
        let history = tickets.get_mut(&chosen)?;
        if !matches!(&*seen, "working" | "input_required") {
            history.sees(&seen);
        }
        Some(())
    }
}

/// No call that acts has run twice: each has a file with a line for every run.
fn nothing_ran_twice(runs: &Path) -> usize {
    let files = std::fs::read_dir(runs).expect("the folder").flatten();
    let runs = |path: PathBuf| std::fs::read_to_string(path).expect("a file").lines().count();
    let all: Vec<_> = files.map(|file| (file.file_name(), runs(file.path()))).collect();
    let twice: Vec<_> = all.iter().filter(|(_, runs)| *runs > 1).collect();
    assert!(twice.is_empty(), "calls ran twice: {twice:?}");
    all.len()
}

#[test]
fn every_ticket_resolves_once_when_random_replicas_are_killed_at_random_moments() {
    let (rounds, seed) = drawn();
    println!("OUTLAST_TEST_SEED={seed}");
    let server = Postgres::start(&["fsync=off"]);
    let mut fleet = Fleet::new(&server.database(), REPLICAS);
    let runs = fleet.folder.path().join("runs");
    std::fs::create_dir(&runs).expect("a folder");
    let load = Load {
        addresses: fleet.replicas.iter().map(|replica| replica.address).collect(),
        token: fleet.token.clone(),
        runs: runs.clone(),
        over: AtomicBool::default(),
        calls: AtomicU64::default(),
        tickets: Mutex::default(),
    };
    let mut dice = Dice(seed);
    std::thread::scope(|scope| {
        for client in 1..=CLIENTS as u64 {
            let (load, dice) = (&load, Dice(seed.wrapping_add(client)));
            scope.spawn(move || load.go_on(dice));
        }
        for _ in 0..rounds {
            std::thread::sleep(Duration::from_millis(dice.below(400)));
            let at = dice.below(REPLICAS as u64) as usize;
            let port = fleet.replicas[at].address.port();
            fleet.kill(at);
            fleet.replicas[at] = fleet.start_at(at, port);
        }
        load.over.store(true, Ordering::Relaxed);
    });
    let mut tickets = load.tickets.into_inner().expect("the tickets");
    let (mut answered, all) = (0, tickets.len());
    let mut clients: Vec<_> = (0..REPLICAS).map(|at| fleet.client(at)).collect();
    for (ticket, history) in &mut tickets {
        for client in &mut clients {
            history.ends(&ask(client, "tasks/result", ticket));
            history.sees(&status(client, ticket));
        }
        let said = history.end.as_ref().and_then(|end| end.get("structuredContent"));
        answered += usize::from(said.is_some());
        if let Some(number) = said.and_then(|said| said.get("n")) {
            assert_eq!(*number, json!(history.number), "another call's answer");
        }
    }
    let acted = nothing_ran_twice(&runs);
    println!(
        "{rounds} kills, {all} tickets, {answered} answered, the rest failed once; {acted} acted, none twice"
    );
    assert!(all as u64 > rounds && answered * 2 > all, "{answered} of {all} tickets were answered");
}
