//! Clients on the official SDKs of both eras before three replicas behind nginx, while replicas are killed and come back.
//!
//! Every answer must be the answer to its own word. What fails, because its replica was killed, is asked again by the
//! client, in the same session as long as that works; a client that has to give up fails the check.

use std::fmt::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::Places;
use super::client::{Outcome, Run};
use super::endpoint::Endpoint;
use super::matrix::{CLIENTS, Client, Pair, SERVERS, Sdk};
use super::tally::Verdict;
use crate::needs;
use crate::postgres::{Postgres, free_port};
use crate::shell::root;

pub const SDKS: [Sdk; 4] = [Sdk::Ts1, Sdk::Ts2, Sdk::Py1, Sdk::Py2];

const NAMES: [&str; 6] = ["ts1", "ts2", "ts2-modern", "py1", "py2-legacy", "py2-modern"];

const REPLICAS: usize = 3;

/// Calls of each client.
const WORDS: &str = "400";

const LIMIT: Duration = Duration::from_secs(150);

/// Between two kills.
const PAUSE: Duration = Duration::from_millis(1500);

/// How long nginx may take to listen.
const START_LIMIT: Duration = Duration::from_secs(10);

/// The server speaks both eras.
const SERVER: &str = "ts2";

pub fn check(places: &Places, outlast: &str) -> Verdict {
    run(places, outlast).unwrap_or_else(|error| Err(vec![format!("{error:#}")]))
}

fn run(places: &Places, outlast: &str) -> Result<Verdict> {
    needs::require(&["postgresql", "nginx"])?;
    let server = SERVERS.iter().find(|server| server.name == SERVER).context("a server")?;
    let database = Postgres::start(&["fsync=off"]);
    let fleet = Fleet { url: database.database(), outlast, server: server.stdio_command(places), places };
    let ports: Vec<u16> = (0..REPLICAS).map(|_| free_port()).collect();
    let mut replicas = ports.iter().map(|port| fleet.start(*port)).collect::<Result<Vec<_>>>()?;
    let balancer = Balancer::before(places, &ports)?;
    let url = format!("http://127.0.0.1:{}/mcp", balancer.port);
    let clients: Vec<&Client> = CLIENTS.iter().filter(|client| NAMES.contains(&client.name)).collect();
    let (over, kills) = (AtomicBool::new(false), AtomicUsize::new(0));
    let runs = std::thread::scope(|scope| {
        let killer = scope.spawn(|| -> Result<()> {
            while !over.load(Ordering::Relaxed) {
                std::thread::sleep(PAUSE);
                let at = kills.fetch_add(1, Ordering::Relaxed) % REPLICAS;
                let pid = replicas[at].pid().context("a replica")?;
                kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL)?;
                replicas[at] = fleet.start(ports[at])?;
            }
            Ok(())
        });
        let visits: Vec<_> = clients
            .iter()
            .map(|client| {
                let (pair, url) = (Pair { client, server }, url.clone());
                let options = ["--only", "words", "--words", WORDS];
                scope.spawn(move || pair.run_with(places, &options, &[url], "replicas", LIMIT))
            })
            .collect();
        let runs: Vec<Run> = visits.into_iter().filter_map(|visit| visit.join().ok()).collect();
        over.store(true, Ordering::Relaxed);
        killer.join().unwrap_or_else(|_| anyhow::bail!("nobody killed replicas")).map(|()| runs)
    })?;
    replicas.into_iter().try_for_each(Endpoint::stop)?;
    Ok(judge(&clients, &runs, kills.into_inner()))
}

fn judge(clients: &[&Client], runs: &[Run], kills: usize) -> Verdict {
    let (mut complaints, mut details) = (Vec::new(), String::new());
    for (client, run) in clients.iter().zip(runs) {
        match run.outcomes.get("words") {
            Some(outcome) if outcome.ok == Outcome::PASSED && run.trouble.is_none() => {
                let _ = write!(details, "; {}: {}", client.name, outcome.detail);
            }
            outcome => {
                complaints.push(format!(
                    "{}: {}",
                    client.name,
                    outcome.map(ToString::to_string).unwrap_or_default()
                ));
                complaints.extend(run.story());
            }
        }
    }
    if runs.len() != clients.len() || kills < REPLICAS {
        complaints.push(format!("{} clients came to an end, {kills} replicas were killed", runs.len()));
    }
    if complaints.is_empty() {
        Ok(format!("{REPLICAS} replicas, {kills} kills{details}"))
    } else {
        Err(complaints)
    }
}

/// What all replicas have in common.
struct Fleet<'a> {
    url: String,
    outlast: &'a str,
    server: Vec<String>,
    places: &'a Places,
}

impl Fleet<'_> {
    fn start(&self, port: u16) -> Result<Endpoint> {
        let listen = format!("127.0.0.1:{port}");
        let state = self.places.logs().join(format!("replica-{port}-state")).display().to_string();
        let words = [self.outlast, "serve", "--listen", &listen, "--store-url", &self.url, "--state", &state];
        let all = ["--share", "all", "--max-sessions", "1000", "--tool", "echo=repeatable:true", "--"];
        let command: Vec<String> = words.iter().chain(&all).map(|word| (*word).to_owned()).collect();
        let log = self.places.logs().join(format!("replica-{port}.log"));
        Endpoint::start(&[command, self.server.clone()].concat(), &log)
    }
}

/// nginx with the configuration that we ship.
struct Balancer {
    port: u16,
    process: Child,
}

impl Balancer {
    fn before(places: &Places, ports: &[u16]) -> Result<Balancer> {
        let (port, folder) = (free_port(), places.logs().join("nginx"));
        std::fs::create_dir_all(&folder)?;
        let shipped = std::fs::read_to_string(root().join("packaging/replicas/nginx.conf"))?;
        std::fs::write(folder.join("nginx.conf"), configured(&shipped, port, ports)?)?;
        let mut command = Command::new("nginx");
        command.arg("-p").arg(&folder).args(["-c", "nginx.conf", "-e", "stderr", "-g", "daemon off;"]);
        let log = std::fs::File::create(log_of(places))?;
        let process = command.stdin(Stdio::null()).stderr(log).spawn().context("cannot start nginx")?;
        let balancer = Balancer { port, process };
        let end = Instant::now() + START_LIMIT;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            ensure!(Instant::now() < end, "nginx does not listen (see {})", log_of(places).display());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(balancer)
    }
}

fn log_of(places: &Places) -> PathBuf {
    places.logs().join("nginx.stderr")
}

/// The same with these replicas and folders that are ours.
fn configured(shipped: &str, port: u16, ports: &[u16]) -> Result<String> {
    let (one, two) =
        ("server one:7600 max_fails=1 fail_timeout=2s;", "server two:7600 max_fails=1 fail_timeout=2s;");
    ensure!(shipped.contains(one) && shipped.contains(two), "nginx.conf names other replicas");
    let server = |port: &u16| format!("server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;");
    let servers: String = ports.iter().map(server).collect();
    let own = "http { client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fastcgi;
        uwsgi_temp_path uwsgi; scgi_temp_path scgi;";
    let text = shipped.replace(one, &servers).replace(two, "").replace("http {", own);
    Ok(text.replace("listen 7600", &format!("listen 127.0.0.1:{port}")))
}

impl Drop for Balancer {
    fn drop(&mut self) {
        // Its workers end with it.
        let _ = kill(Pid::from_raw(self.process.id().cast_signed()), Signal::SIGTERM);
        let _ = self.process.wait();
    }
}
