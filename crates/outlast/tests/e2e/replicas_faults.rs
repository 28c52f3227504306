//! What happens to tickets when a part of a fleet fails: a machine, the database, the way between them, a version.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use outlast_testkit::peer::wait_until;
use outlast_testkit::postgres::Postgres;
use serde_json::json;

use crate::http_world::{Served, listening};
use crate::replicas::{Fleet, PATIENCE, TAKE_OVER, ask, begin, status};

/// A call without a ticket notices nothing of a database: it is answered within this.
const AT_ONCE: Duration = Duration::from_secs(1);

/// Starts a replica among processes of its own, as on another machine: nobody else can see whether it runs, so that
/// only its lease tells.
fn on_another_machine(command: &Command) -> Served {
    let mut apart = Command::new("unshare");
    apart.args(["--pid", "--mount-proc", "--fork", "--kill-child"]);
    if !nix::unistd::geteuid().is_root() {
        apart.args(["--user", "--map-current-user"]);
    }
    apart.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => apart.env(name, value),
            None => apart.env_remove(name),
        };
    }
    apart.current_dir(command.get_current_dir().expect("a folder of its own"));
    listening(&mut apart)
}

/// A call that may not be repeated, at a machine that dies: whoever asks elsewhere is told within the lease and two
/// seconds.
#[test]
fn a_call_of_another_machine_is_taken_over_when_its_lease_is_over() {
    let mut fleet = Fleet::new(&Postgres::shared().database(), 1);
    let mut command = fleet.command(1);
    let away = on_another_machine(command.env("OUTLAST_LISTEN", "127.0.0.1:0"));
    fleet.replicas.push(away);
    let ticket = begin(&mut fleet.client(1), "hang", &json!({})).expect("a task");
    let mut here = fleet.client(0);
    assert_eq!(status(&mut here, &ticket), "working");
    // It has renewed its lease at least once when it dies.
    assert!(wait_until(PATIENCE, || renewals(&fleet.url) >= 2), "no lease is renewed");
    fleet.kill(1);
    let since = Instant::now();
    let answer = ask(&mut here, "tasks/result", &ticket);
    let took = since.elapsed();
    assert_eq!(answer["error"]["data"]["outlast"]["kind"], "server-gone", "{answer}");
    assert!(took < TAKE_OVER, "{took:?}");
    assert!(took > Duration::from_secs(5), "it was seen by something else than its lease: {took:?}");
}

/// How often the leases of this database were written, at least.
fn renewals(url: &str) -> u64 {
    let turns = Postgres::shared().sql(url, "SELECT max(turn) FROM outlast.leases");
    turns.parse().unwrap_or_default()
}

/// A replica that ends in order gives its lease back, and what it leaves is taken over without waiting.
#[test]
fn what_a_replica_leaves_in_order_goes_on_at_once() {
    let mut fleet =
        Fleet::of(&Postgres::shared().database(), 2, &["--drain", "1s", "--tool", "silent=repeatable:true"]);
    let ticket = begin(&mut fleet.client(0), "silent", &json!({"ms": 4_000})).expect("a task");
    let mut there = fleet.client(1);
    assert_eq!(status(&mut there, &ticket), "working");
    fleet.replicas[0].process.signal(Signal::SIGTERM);
    let since = Instant::now();
    let answer = ask(&mut there, "tasks/result", &ticket);
    assert!(answer["result"].is_object(), "{answer}");
    assert!(since.elapsed() < Duration::from_secs(14), "its lease was waited for: {:?}", since.elapsed());
    assert!(fleet.replicas[0].process.end().success());
}

/// Longer than a write waits for the database: what ends meanwhile is stored when the database is back.
#[test]
fn a_long_outage_of_the_database_loses_no_end() {
    let mut server = Postgres::start(&["fsync=off"]);
    let fleet = Fleet::new(&server.database(), 2);
    let (mut here, mut there) = (fleet.client(0), fleet.client(1));
    let ticket = begin(&mut here, "silent", &json!({"ms": 1_500})).expect("a task");
    server.stop();
    let since = Instant::now();
    while since.elapsed() < Duration::from_secs(13) {
        for client in [&mut here, &mut there] {
            let asked = Instant::now();
            assert_eq!(client.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
            assert!(asked.elapsed() < AT_ONCE, "a plain call waited for the database: {:?}", asked.elapsed());
        }
    }
    server.begin();
    let ended = || fleet.client(1);
    assert!(wait_until(PATIENCE, || status(&mut ended(), &ticket) == "completed"), "its end was not stored");
    let [a, b] = [here, there].map(|mut client| ask(&mut client, "tasks/result", &ticket)["result"].clone());
    assert!(a.is_object() && a == b, "{a} {b}");
}

/// A way to the database that can be cut: then nothing passes any more, and nobody is told.
struct Relay {
    port: u16,
    cut: Arc<AtomicBool>,
    open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Relay {
    fn to(port: u16) -> Relay {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let relay = Relay {
            port: listener.local_addr().expect("its address").port(),
            cut: Arc::default(),
            open: Arc::default(),
        };
        let (cut, open) = (relay.cut.clone(), relay.open.clone());
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(("127.0.0.1", port)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to, cut) = (from.try_clone(), to.try_clone(), cut.clone());
                    std::thread::spawn(move || pass(from?, to?, &cut));
                }
                open.lock().expect("the list").extend([near, far]);
            }
        });
        relay
    }

    fn cut(&self) {
        self.cut.store(true, Ordering::SeqCst);
    }

    /// What was under way is lost, and new connections pass.
    fn mend(&self) {
        self.cut.store(false, Ordering::SeqCst);
        for stream in self.open.lock().expect("the list").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }
}

/// Passes bytes on in one direction. What arrives while the way is cut goes nowhere.
fn pass(mut from: TcpStream, mut to: TcpStream, cut: &AtomicBool) -> io::Result<()> {
    let mut bytes = [0; 16 << 10];
    loop {
        let read = from.read(&mut bytes)?;
        if read == 0 {
            return to.shutdown(Shutdown::Both);
        }
        if !cut.load(Ordering::SeqCst) {
            to.write_all(&bytes[..read])?;
        }
    }
}

/// One replica alone is cut off. Its calls without a ticket go on; its tickets are taken over by the other, and when it
/// is back it says the same as that one, whatever it had found out by itself.
#[test]
fn a_replica_that_is_cut_off_from_the_database_takes_nothing_back() {
    let server = Postgres::shared();
    let url = server.database();
    let relay = Relay::to(server.port);
    let through = url.replace(&format!(":{}/", server.port), &format!(":{}/", relay.port));
    let mut fleet = Fleet::new(&url, 1);
    let mut command = fleet.command(1);
    // It runs among processes of its own, as on another machine.
    command.env("OUTLAST_STORE_URL", &through).env("OUTLAST_LISTEN", "127.0.0.1:0");
    let away = on_another_machine(&command);
    fleet.replicas.push(away);
    let (mut here, mut there) = (fleet.client(0), fleet.client(1));
    let ticket = begin(&mut there, "silent", &json!({"ms": 2_000})).expect("a task");
    relay.cut();
    let answer = ask(&mut here, "tasks/result", &ticket);
    assert_eq!(answer["error"]["data"]["outlast"]["kind"], "server-gone", "{answer}");
    let asked = Instant::now();
    assert_eq!(there.value_of("echo", &json!({"x": 1})), json!({"x": 1}));
    assert!(asked.elapsed() < AT_ONCE, "{:?}", asked.elapsed());
    relay.mend();
    let mut again = None;
    assert!(
        wait_until(PATIENCE, || {
            let said = ask(&mut fleet.client(1), "tasks/result", &ticket);
            let same = said["error"] == answer["error"];
            again = Some(said);
            same
        }),
        "two ends: {answer} and {again:?}"
    );
}

/// A newer version adds to the tables while older replicas work: they work on for as long as the newer one lets them,
/// and then say why they write no more.
#[test]
fn replicas_work_on_beside_a_newer_one_until_it_says_otherwise() {
    let server = Postgres::shared();
    let url = server.database();
    let fleet = Fleet::new(&url, 1);
    let mut client = fleet.client(0);
    let before = begin(&mut client, "silent", &json!({"ms": 500})).expect("a task");
    let newer =
        "BEGIN; ALTER TABLE outlast.records ADD COLUMN news bigint; CREATE TABLE outlast.news (x bigint);
        UPDATE outlast.format SET version = version + 1; COMMIT";
    server.sql(&url, newer);
    assert!(ask(&mut client, "tasks/result", &before)["result"].is_object());
    let after = begin(&mut client, "echo", &json!({"x": 1})).expect("a task");
    assert!(ask(&mut client, "tasks/result", &after)["result"].is_object());
    server.sql(&url, "UPDATE outlast.format SET oldest = version");
    assert_eq!(
        begin(&mut client, "echo", &json!({"x": 2})),
        None,
        "it writes into tables that it does not know"
    );
    assert_eq!(client.value_of("echo", &json!({"x": 3})), json!({"x": 3}));
    let said = fleet.replicas[0].process.stderr_where(|said| said.contains("newer outlast"));
    let told: Vec<&str> = said.lines().filter(|line| line.contains("newer outlast")).collect();
    assert_eq!(told.len(), 1, "{told:?}");
}
