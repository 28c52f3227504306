//! Everything at once: many calls while the other side fails in every way it knows, from a seed. Each
//! call gets exactly one answer, its own or an error with a name, and afterwards all is well.

use std::collections::BTreeMap;
use std::fs::read_dir;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use outlast_testkit::http::caller::Caller;
use outlast_testkit::http::faults::{Connection, FaultServer, Request};
use serde_json::{Value, json};

use crate::http_world::{JSON, Session, answer_to, event, legacy, reached, said, serve_url};
use crate::world::{MUCH_MEMORY, data, memory_of};

/// splitmix64.
struct Seed(u64);

impl Seed {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % bound as u64) as usize
    }
}

/// A server that behaves badly as long as it is told to.
struct Wild {
    seed: Mutex<Seed>,
    wild: Arc<AtomicBool>,
    sessions: AtomicUsize,
    /// Answers that wait to be fetched, by the id of the stream's last event.
    parked: Mutex<BTreeMap<String, Value>>,
}

impl Wild {
    fn start(seed: u64) -> (FaultServer, Arc<AtomicBool>) {
        let wild = Arc::new(AtomicBool::new(true));
        let server = Wild {
            seed: Mutex::new(Seed(seed)),
            wild: wild.clone(),
            sessions: AtomicUsize::new(0),
            parked: Mutex::default(),
        };
        (FaultServer::start(move |request, connection| server.take(request, connection)), wild)
    }

    fn below(&self, bound: usize) -> usize {
        self.seed.lock().unwrap().below(bound)
    }

    fn take(&self, request: &Request, connection: &mut Connection) {
        if request.rpc() == "initialize" {
            return self.introduce(request, connection);
        }
        if let Some(last) = request.header("Last-Event-ID") {
            return self.resume(last, connection);
        }
        let call = request.method == "POST" && !request.json()["id"].is_null();
        if !call || !self.wild.load(Ordering::Relaxed) {
            return legacy(request, connection);
        }
        let answer = said(request, &request.json()["params"]["arguments"]);
        match self.below(14) {
            0 => connection.reset(),
            1 => connection.answer("503 Service Unavailable", &[("Retry-After", "0")], ""),
            2 => connection.answer("404 Not Found", &[], ""),
            3 => connection.answer("200 OK", &[("Content-Type", "text/html")], "<p>"),
            4 => self.break_off(&answer, connection),
            5 | 6 => self.park(answer, connection),
            7 | 8 => self.stream(&answer, connection),
            9 => {
                connection.json(&answer);
                connection.close();
            }
            10 => connection.answer("502 Bad Gateway", &[], "gateway"),
            _ => connection.json(&answer),
        }
    }

    fn introduce(&self, request: &Request, connection: &mut Connection) {
        let number = self.sessions.fetch_add(1, Ordering::Relaxed);
        let result = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "wild", "version": "1"}});
        let body = answer_to(request, &result).to_string();
        connection.answer("200 OK", &[JSON, ("Mcp-Session-Id", &format!("wild-{number}"))], body);
    }

    fn break_off(&self, answer: &Value, connection: &mut Connection) {
        let body = answer.to_string();
        connection.send_head("200 OK", &[JSON, ("Content-Length", &body.len().to_string())]);
        connection.send(&body[..self.below(body.len())]);
        connection.reset();
    }

    /// The answer in pieces of any size.
    fn stream(&self, answer: &Value, connection: &mut Connection) {
        let stream = format!(": hello\r\nid: 1\ndata:\r\n\r\n{}", event(answer));
        let mut rest = stream.as_bytes();
        connection.open_events(&[]);
        while !rest.is_empty() {
            let (piece, more) = rest.split_at((1 + self.below(40)).min(rest.len()));
            connection.events(piece);
            rest = more;
        }
        connection.end_events();
    }

    /// Hangs up; the answer can be fetched.
    fn park(&self, answer: Value, connection: &mut Connection) {
        let mut parked = self.parked.lock().unwrap();
        let id = format!("parked-{}-{}", parked.len(), self.below(1 << 30));
        parked.insert(id.clone(), answer);
        drop(parked);
        connection.open_events(&[]);
        connection.events(format!("retry: 5\nid: {id}\ndata:\n\n"));
        if self.below(2) == 0 { connection.reset() } else { connection.end_events() }
    }

    fn resume(&self, last: &str, connection: &mut Connection) {
        let wild = self.wild.load(Ordering::Relaxed);
        match self.parked.lock().unwrap().get(last).cloned() {
            Some(_) if wild && self.below(3) == 0 => connection.answer("409 Conflict", &[], ""),
            Some(_) if wild && self.below(3) == 0 => connection.reset(),
            Some(answer) => self.stream(&answer, connection),
            None => connection.answer("400 Bad Request", &[], "no such event"),
        }
    }
}

const NAMES: [&str; 6] = ["server-gone", "server-failed", "http-status", "not-mcp", "overloaded", "timeout"];

/// Its own answer, or an error with a name; whether it was well.
fn assert_own(answer: &Value, number: usize) -> bool {
    if answer["error"].is_object() {
        let kind = data(answer)["kind"].as_str().expect("a kind");
        assert!(NAMES.contains(&kind), "{answer}");
        return false;
    }
    assert_eq!(answer["result"]["structuredContent"]["number"], number, "somebody else's: {answer}");
    true
}

fn open_files(pid: u32) -> usize {
    read_dir(format!("/proc/{pid}/fd")).expect("the process is there").count()
}

const FLAGS: [&str; 8] = [
    "--retry-backoff",
    "5ms",
    "--restart-backoff",
    "5ms",
    "--restart-intensity",
    "10000",
    "--timeout",
    "10s",
];

#[test]
fn a_stdio_client_gets_one_answer_to_each_of_its_calls() {
    for seed in 0..4 {
        let (server, wild) = Wild::start(seed);
        let mut client = reached(&FLAGS, &server.url());
        let mut well = 0;
        for round in 0..10 {
            let numbers = round * 20..round * 20 + 20;
            let ids: Vec<(usize, Value)> =
                numbers.map(|number| (number, client.begin("echo", &json!({"number": number})))).collect();
            for (number, id) in ids {
                well += usize::from(assert_own(&client.answer(&id), number));
            }
        }
        assert!(well > 20, "only {well} of 200 were well with seed {seed}");
        wild.store(false, Ordering::Relaxed);
        assert_eq!(client.value_of("echo", &json!({"after": seed})), json!({"after": seed}));
        let answers = client.log().iter().filter(|line| line.json().get("id").is_some()).count();
        assert_eq!(answers, 202, "seed {seed}");
        assert!(memory_of(client.pid()) < MUCH_MEMORY && open_files(client.pid()) < 100);
    }
}

/// Clients that hang up in the middle and come back for what they missed.
#[test]
fn http_clients_that_come_and_go_get_their_own_answers() {
    let (server, wild) = Wild::start(99);
    let mut served = serve_url(&FLAGS, &server.url());
    let address = served.address;
    let clients: Vec<_> = (0..6).map(|number| thread::spawn(move || come_and_go(address, number))).collect();
    let well: usize =
        clients.into_iter().map(|client| client.join().expect("a client that is content")).sum();
    assert!(well > 20, "only {well} of 240 were well");
    wild.store(false, Ordering::Relaxed);
    served.assert_goes_on();
    let pid = served.process.pid();
    assert!(memory_of(pid) < MUCH_MEMORY && open_files(pid) < 200, "{} {}", memory_of(pid), open_files(pid));
}

fn come_and_go(address: SocketAddr, client: u64) -> usize {
    let mut seed = Seed(client);
    let mut session = Session::open(address, None);
    let mut well = 0;
    for number in 0..40 {
        let (caller, id) = session.begin_call("echo", &json!({"number": number}));
        let answer = fetch(&session, caller, &id, &mut seed);
        well += usize::from(assert_own(&answer, number));
    }
    well
}

/// Reads a stream until the answer is there. When it ends before, or the client hangs up, it is taken
/// up again where it was.
fn fetch(session: &Session, mut caller: Caller, id: &Value, seed: &mut Seed) -> Value {
    let mut last = String::new();
    for _ in 0..100 {
        let (status, head) = caller.head();
        assert_eq!(status, 200, "{last}: {head:?}");
        while let Some(event) = caller.event() {
            last = event.id.clone().unwrap_or(last);
            if event.json()["id"] == *id {
                return event.json();
            }
            if seed.below(3) == 0 {
                break;
            }
        }
        caller.reset();
        caller = session.listen(Some(&last));
    }
    panic!("a hundred connections and no answer");
}
