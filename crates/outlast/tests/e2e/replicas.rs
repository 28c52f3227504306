//! Two replicas and a real PostgreSQL: any of them takes any request, and what one leaves another finishes.
//!
//! The checker reads the history of every ticket as its clients saw it, from whichever replica: the state only goes
//! forward, there is one end, it stays what it was, and it is the end of that call.

mod streams;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outlast_testkit::http::caller::Caller;
use outlast_testkit::peer::wait_until;
use outlast_testkit::postgres::{Postgres, free_port};
use serde_json::{Value, json};

use crate::http_security::new_token;
use crate::http_world::{Served, Session, answer_below, answer_of, listening, outlast_alone};
use crate::world::fake_server;

/// A lease, and what may come on top of it.
pub const TAKE_OVER: Duration = Duration::from_secs(15 + 2);

/// How long a fault may keep anybody waiting.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Replicas of one file, on as many machines as far as they can tell.
pub struct Fleet {
    pub replicas: Vec<Served>,
    pub folder: tempfile::TempDir,
    pub token: String,
    pub url: String,
    flags: &'static [&'static str],
}

impl Fleet {
    pub fn new(url: &str, replicas: usize) -> Fleet {
        Fleet::of(url, replicas, &[])
    }

    /// The same with flags.
    pub fn of(url: &str, replicas: usize, flags: &'static [&'static str]) -> Fleet {
        let folder = tempfile::tempdir().expect("a folder");
        let (token, line) = new_token("ann");
        std::fs::write(folder.path().join("tokens"), line + "\n").expect("a file");
        let token = format!("Bearer {token}");
        let mut fleet = Fleet { replicas: Vec::new(), folder, token, url: url.to_owned(), flags };
        for at in 0..replicas {
            let replica = fleet.start(at);
            fleet.replicas.push(replica);
        }
        fleet
    }

    /// Each has a state folder, a working directory and an environment of its own.
    pub fn command(&self, at: usize) -> Command {
        let own = self.folder.path().join(format!("replica-{at}"));
        std::fs::create_dir_all(&own).expect("a folder");
        let mut command = outlast_alone();
        command.current_dir(&own).env("REPLICA", at.to_string()).env("OUTLAST_STORE_URL", &self.url);
        command.env("OUTLAST_LISTEN", "127.0.0.1:0");
        command.args(["serve", "--tasks", "--tool", "hang=timeout:1h", "--max-sessions", "100000"]);
        command.args(["--state"]).arg(own.join("state"));
        command.args(["--token-file"]).arg(self.folder.path().join("tokens"));
        command.args(self.flags).arg("--").arg(fake_server());
        command
    }

    pub fn start(&self, at: usize) -> Served {
        self.start_at(at, free_port())
    }

    pub fn start_at(&self, at: usize, port: u16) -> Served {
        listening(self.command(at).env("OUTLAST_LISTEN", format!("127.0.0.1:{port}")))
    }

    /// A client of this replica.
    pub fn client(&self, at: usize) -> Session {
        Session::open(self.replicas[at].address, Some(&self.token))
    }

    pub fn kill(&mut self, at: usize) {
        self.replicas[at].process.signal(Signal::SIGKILL);
        self.replicas[at].process.end();
    }
}

/// A call with a ticket; `None` if it was answered plainly.
pub fn begin(client: &mut Session, tool: &str, arguments: &Value) -> Option<String> {
    ticket_in(&call_as_task(client, tool, arguments))
}

/// A call that asks for a task: its handle, or a plain answer.
pub fn call_as_task(client: &mut Session, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "task": {}});
    let (mut caller, _) = client.begin("tools/call", &params);
    answer_of(&mut caller)
}

pub fn ticket_in(answer: &Value) -> Option<String> {
    Some(answer["result"]["task"]["taskId"].as_str()?.to_owned())
}

pub fn ask(client: &mut Session, method: &str, ticket: &str) -> Value {
    let (mut caller, _) = client.begin(method, &json!({"taskId": ticket}));
    answer_of(&mut caller)
}

pub fn status(client: &mut Session, ticket: &str) -> String {
    let answer = ask(client, "tasks/get", ticket);
    answer["result"]["status"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn a_session_that_began_at_one_replica_goes_on_at_another() {
    let fleet = Fleet::new(&Postgres::shared().database(), 2);
    let mut client = fleet.client(0);
    assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
    let mut client = client.at(fleet.replicas[1].address);
    assert_eq!(client.value_of("echo", &json!({"x": 2})), json!({"x": 2}));
    let mut client = client.at(fleet.replicas[0].address);
    assert_eq!(client.value_of("echo", &json!({"x": 3})), json!({"x": 3}));
}

#[test]
fn a_ticket_of_one_replica_is_fetched_and_cancelled_at_another() {
    let fleet = Fleet::new(&Postgres::shared().database(), 2);
    let (mut here, mut there) = (fleet.client(0), fleet.client(1));
    let quick = begin(&mut here, "silent", &json!({"ms": 3_000})).expect("a task");
    assert_eq!(status(&mut there, &quick), "working");
    let answer = ask(&mut there, "tasks/result", &quick);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(
        (status(&mut here, &quick), status(&mut there, &quick)),
        ("completed".into(), "completed".into())
    );

    let hangs = begin(&mut here, "hang", &json!({})).expect("a task");
    let answer = ask(&mut there, "tasks/cancel", &hangs);
    assert_eq!(answer["result"]["status"], "cancelled", "{answer}");
    assert_eq!(status(&mut here, &hangs), "cancelled");
}

#[test]
fn a_call_of_a_replica_that_is_killed_ends_within_its_lease() {
    let mut fleet = Fleet::new(&Postgres::shared().database(), 2);
    let mut client = fleet.client(0);
    let ticket = begin(&mut client, "hang", &json!({})).expect("a task");
    let mut there = fleet.client(1);
    assert_eq!(status(&mut there, &ticket), "working");
    fleet.kill(0);
    let since = Instant::now();
    assert!(wait_until(PATIENCE, || status(&mut there, &ticket) == "failed"), "nobody took it over");
    let answer = ask(&mut there, "tasks/result", &ticket);
    assert_eq!(answer["error"]["data"]["outlast"]["kind"], "server-gone", "{answer}");
    assert!(since.elapsed() < TAKE_OVER, "{:?}", since.elapsed());
}

#[test]
fn what_is_wrong_with_the_database_is_one_sentence() {
    let server = Postgres::shared();
    let url = server.database();
    let says = |url: &str| {
        let fleet = Fleet::new(url, 0);
        let said = fleet.command(0).output().expect("outlast runs");
        assert!(!said.status.success());
        String::from_utf8_lossy(&said.stderr).trim().to_owned()
    };
    let wrong = says(&url.replace("secret", "guess"));
    let host = format!("PostgreSQL at 127.0.0.1:{}", server.port);
    let see = "`url` in [store] (--store-url)";
    assert_eq!(
        wrong,
        format!("outlast: cannot start: {host} refuses the password of user `outlast`; see {see}")
    );
    let none = says(&server.url("nothing_there"));
    assert!(none.contains("has no database `nothing_there`; make it (createdb nothing_there)"), "{none}");
    let nobody = says("postgres://outlast:secret@127.0.0.1:1/x");
    let unreachable = "cannot reach PostgreSQL at 127.0.0.1:1: connection refused";
    assert!(nobody.contains(unreachable) && nobody.lines().count() == 1, "{nobody}");
    let mut fleet = Fleet::new(&url, 1);
    fleet.replicas[0].process.signal(Signal::SIGTERM);
    fleet.replicas[0].process.end();
    server.sql(&url, "UPDATE outlast.format SET version = 99, oldest = 99");
    let newer = says(&url);
    assert!(
        newer.contains("was changed by a newer outlast (format 99, this one knows 3); update this one"),
        "{newer}"
    );
    assert!([&wrong, &none, &nobody, &newer].iter().all(|said| !said.contains("secret") && said.len() < 320));
}

/// What the clients of all replicas have seen of one ticket.
#[derive(Default)]
pub struct History {
    pub number: u64,
    pub seen: Vec<String>,
    pub end: Option<Value>,
}

impl History {
    pub fn sees(&mut self, status: &str) {
        let is_end = |status: &str| !matches!(status, "working" | "input_required");
        if let Some(last) = self.seen.last().filter(|last| is_end(last)) {
            assert_eq!(status, last, "an end has changed: {:?}", self.seen);
        }
        self.seen.push(status.to_owned());
    }

    /// The end that a client is told.
    pub fn ends(&mut self, answer: &Value) {
        let end = answer.get("result").or(answer.get("error")).cloned().unwrap_or_default();
        match &self.end {
            Some(before) => assert_eq!(&end, before, "two ends"),
            None => self.end = Some(end),
        }
    }
}

/// Calls that may not be repeated are made at all replicas while something goes wrong again and again; then every
/// ticket that a client was given resolves, at every replica to the same, and no call has run twice.
fn go_wrong(rounds: u64, server: &mut Postgres, mut fault: impl FnMut(&mut Fleet, &mut Postgres, u64)) {
    let url = server.database();
    let mut fleet = Fleet::new(&url, 2);
    let mut tickets: BTreeMap<String, History> = BTreeMap::new();
    let mut number = 0;
    for round in 0..rounds {
        for at in 0..2 {
            let mut client = fleet.client(at);
            for _ in 0..4 {
                number += 1;
                let tool = if number % 4 == 3 { "silent" } else { "echo" };
                let arguments = json!({"n": number, "ms": 900});
                if let Some(ticket) = begin(&mut client, tool, &arguments) {
                    tickets.insert(ticket, History { number, ..History::default() });
                }
            }
        }
        for (at, (ticket, history)) in tickets.iter_mut().rev().take(6).enumerate() {
            history.sees(&status(&mut fleet.client(at % 2), ticket));
        }
        fault(&mut fleet, server, round);
    }
    assert!(tickets.len() as u64 > number / 2, "{} of {number} calls got a ticket", tickets.len());
    let mut ended = 0;
    for (ticket, history) in &mut tickets {
        for at in [0, 1] {
            let mut client = fleet.client(at);
            let answer = ask(&mut client, "tasks/result", ticket);
            history.ends(&answer);
            history.sees(&status(&mut client, ticket));
        }
        match history.end.as_ref().and_then(|end| end.get("structuredContent")) {
            Some(said) if said.get("n").is_some() => assert_eq!(said["n"], json!(history.number)),
            Some(_) => {}
            None => ended += 1,
        }
    }
    assert!(ended < tickets.len(), "every call has failed");
}

/// How often something goes wrong: more with `OUTLAST_TEST_ROUNDS=200`.
pub fn rounds() -> u64 {
    std::env::var("OUTLAST_TEST_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4)
}

#[test]
fn every_ticket_resolves_once_when_replicas_are_killed() {
    let mut server = Postgres::start(&["fsync=off"]);
    go_wrong(rounds(), &mut server, |fleet, _, round| {
        let at = (round % 2) as usize;
        fleet.kill(at);
        let next = fleet.start(at);
        fleet.replicas[at] = next;
    });
}

#[test]
fn every_ticket_resolves_once_when_the_database_goes_away_and_comes_back() {
    let mut server = Postgres::start(&["fsync=off"]);
    go_wrong(rounds(), &mut server, |fleet, server, round| match round % 2 {
        0 => {
            server.stop();
            server.begin();
        }
        _ => {
            let all =
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE pid <> pg_backend_pid()
                AND datname LIKE 'test%'";
            server.sql("postgres", all);
            assert!(fleet.replicas.iter_mut().all(|replica| replica.process.exited().is_none()));
        }
    });
}

/// Whoever was stopped for longer than its lease finds that others have its calls, and writes nothing any more.
#[test]
fn a_replica_that_was_stopped_for_too_long_takes_nothing_back() {
    let mut fleet = Fleet::new(&Postgres::shared().database(), 2);
    let mut here = fleet.client(0);
    let ticket = begin(&mut here, "silent", &json!({"ms": 1_000})).expect("a task");
    fleet.replicas[0].process.signal(Signal::SIGSTOP);
    let mut there = fleet.client(1);
    assert!(wait_until(PATIENCE, || status(&mut there, &ticket) == "failed"), "nobody took it over");
    let answer = ask(&mut there, "tasks/result", &ticket);
    assert_eq!(answer["error"]["data"]["outlast"]["kind"], "server-gone", "{answer}");
    fleet.replicas[0].process.signal(Signal::SIGCONT);
    let mut again = None;
    assert!(wait_until(PATIENCE, || {
        let mut here = fleet.client(0);
        again = Some(ask(&mut here, "tasks/result", &ticket));
        status(&mut here, &ticket) == "failed"
    }));
    assert_eq!(again.map(|again| again["error"].clone()), Some(answer["error"].clone()));
}

/// nginx from Debian with the configuration that we ship; gone with this.
pub struct Balancer {
    pub port: u16,
    process: std::process::Child,
    _folder: tempfile::TempDir,
}

impl Balancer {
    pub fn before(fleet: &Fleet) -> Balancer {
        let port = free_port();
        let folder = tempfile::tempdir().expect("a folder");
        let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/replicas/nginx.conf");
        let text = std::fs::read_to_string(shipped).expect("the file");
        let server = |replica: &Served| format!("server {} max_fails=1 fail_timeout=2s;", replica.address);
        let servers: String = fleet.replicas.iter().map(server).collect();
        let text = text
            .replace("server two:7600 max_fails=1 fail_timeout=2s;", "")
            .replace("server one:7600 max_fails=1 fail_timeout=2s;", &servers)
            .replace("listen 7600", &format!("listen 127.0.0.1:{port}"));
        // Debian's own folders are root's.
        let own = "http { client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
            uwsgi_temp_path uwsgi; scgi_temp_path scgi;";
        let text = text.replace("http {", own);
        std::fs::write(folder.path().join("nginx.conf"), text).expect("written");
        let mut command = Command::new("nginx");
        command.arg("-p").arg(folder.path()).args(["-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]);
        let process = command.stderr(std::process::Stdio::null()).spawn().expect("nginx is installed");
        let listens = || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
        assert!(wait_until(PATIENCE, listens), "nginx does not listen");
        Balancer { port, process, _folder: folder }
    }

    pub fn client(&self, fleet: &Fleet) -> Session {
        Session::open(([127, 0, 0, 1], self.port).into(), Some(&fleet.token))
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(self.process.id() as i32), Signal::SIGTERM);
        let _ = self.process.wait();
    }
}

/// No request has to stick to a replica, and one replica is enough for a while.
#[test]
fn a_balancer_may_send_each_request_anywhere() {
    let mut fleet = Fleet::new(&Postgres::shared().database(), 2);
    let balancer = Balancer::before(&fleet);
    let mut client = balancer.client(&fleet);
    let mut replicas = std::collections::BTreeSet::new();
    for number in 0..10 {
        let (mut caller, _) = client.begin_call("echo", &json!({"n": number}));
        let (status, head) = caller.head();
        assert_eq!(status, 200);
        replicas.insert(head.header("Outlast-Replica").expect("its name").to_owned());
        assert_eq!(answer_below(&mut caller, &head)["result"]["structuredContent"], json!({"n": number}));
    }
    assert_eq!(replicas.len(), 2, "{replicas:?}");
    let ticket = begin(&mut client, "silent", &json!({"ms": 500})).expect("a task");
    assert!(ask(&mut client, "tasks/result", &ticket)["result"].is_object());
    // A rolling restart.
    for at in [0, 1] {
        fleet.replicas[at].process.signal(Signal::SIGTERM);
        fleet.replicas[at].process.end();
        assert_eq!(client.value_of("echo", &json!({"without": at})), json!({"without": at}));
        if at == 0 {
            let port = fleet.replicas[0].address.port();
            fleet.replicas[0] = fleet.start_at(0, port);
            assert!(wait_until(PATIENCE, || {
                let mut caller = Caller::connect(fleet.replicas[0].address);
                caller.ask("GET /readyz", &[], "").status == 200
            }));
            // nginx forgets after two seconds that it was gone.
            assert!(wait_until(PATIENCE, || {
                let mut caller = Caller::connect(([127, 0, 0, 1], balancer.port).into());
                let names = [(); 2].map(|()| {
                    caller.request("GET /healthz", &[("Host", "localhost")], "");
                    let (_, head) = caller.head();
                    caller.body();
                    head.header("Outlast-Replica").unwrap_or_default().to_owned()
                });
                names[0] != names[1]
            }));
        }
    }
}
