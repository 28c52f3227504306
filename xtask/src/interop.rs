//! `cargo xtask interop`: clients and servers of the official SDKs, directly and through outlast.
//!
//! The client programs of `tests/interop` run their checks against the servers they can talk to,
//! once directly and once with outlast in between, over stdio and over HTTP. What passes directly
//! has to pass through outlast, word for word; what fails directly is a mistake of the fixture,
//! unless `matrix::EXCEPTIONS` explains it.
//!
//! Not here: what is checked (`tests/interop`), who meets whom and how (`matrix.rs`), how they
//! meet over HTTP (`http.rs`), checks of one feature (`special.rs`, `tasks.rs`), what has to be installed first
//! (`setup.rs`), how one client program is run (`client.rs`) or one that listens (`endpoint.rs`).

// A tool of ours, not the product: it may look at the clock and speak on stdout.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)]

pub mod client;
mod compare;
pub mod endpoint;
mod example;
mod gateway;
mod http;
mod manifest;
pub mod matrix;
mod otlp;
mod replicas;
pub mod setup;
mod special;
mod table;
mod tally;
mod tasks;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::amount::Amount;
use compare::differences;
use matrix::{Visit, Way};
use tally::{Tally, Verdict};

/// A client program that takes longer than this is stuck.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// How long a person lets a held call wait, unless the command line says so. It waits beside the other checks.
const HELD: Duration = Duration::from_secs(180);
/// Clients under way at once. A client and its server are processes that mostly wait.
const WORKERS: usize = 4;

const USAGE: &str = "\
usage: cargo xtask interop [--direct-only | --outlast PATH] [--all] [--list] [CLIENT [SERVER [WAY]]]

  cargo xtask interop                   every pair over stdio, a choice over HTTP, and the special checks
  cargo xtask interop ts1 rust          one pair, every way
  cargo xtask interop ts1 rust http     one pair, one way: stdio, http-stdio, stdio-http or http
  cargo xtask interop keepalive         only the calls that are silent for 60 s
  cargo xtask interop held [SECONDS]    only the calls that a person approves after so long
  cargo xtask interop callbacks         only a receiver that checks callbacks with a library of its own
  cargo xtask interop crash             only the server that is killed in mid-call
  cargo xtask interop forgotten         only the server that forgets its sessions
  cargo xtask interop crowd             only a client of every SDK at once
  cargo xtask interop example           only a client's file with the servers that people have
  cargo xtask interop gateway           only many servers behind one address, and 200 clients
  cargo xtask interop otlp              only traces, before a real receiver
  cargo xtask interop manifest          only the manifest for Kubernetes, against its schemas
  cargo xtask interop replicas          only clients of every SDK before replicas that are killed
  cargo xtask interop tasks             only tasks, before servers that have none

      --direct-only   without outlast: do the fixtures work at all?
      --outlast PATH  this binary instead of the debug build
      --all           over HTTP, too, every pair
      --list          show who meets whom and how, run nothing
      --table         write docs/transports.md, run nothing";

/// Where things are: the sources, what was installed, what was built.
pub struct Places {
    pub sources: PathBuf,
    pub installed: PathBuf,
    pub built: PathBuf,
    /// How long a person takes to approve the call that `held` is about.
    pub held: Duration,
}

impl Places {
    pub fn find() -> Result<Self> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize()?;
        let target = match std::env::var_os("CARGO_TARGET_DIR") {
            Some(elsewhere) => std::path::absolute(elsewhere)?,
            None => root.join("target"),
        };
        Ok(Self {
            sources: root.join("tests/interop"),
            installed: target.join("interop"),
            built: target.join("debug"),
            held: HELD,
        })
    }

    fn logs(&self) -> PathBuf {
        self.installed.join("logs")
    }
}

#[derive(Default)]
struct Options {
    direct_only: bool,
    all: bool,
    list: bool,
    table: bool,
    outlast: Option<PathBuf>,
    names: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--direct-only" => options.direct_only = true,
            "--all" => options.all = true,
            "--list" => options.list = true,
            "--table" => options.table = true,
            "--outlast" => {
                let path = args.next().context("--outlast needs a path")?;
                options.outlast = Some(std::path::absolute(path)?);
            }
            flag if flag.starts_with('-') => bail!("unknown flag `{flag}`\n{USAGE}"),
            name => options.names.push(name.to_owned()),
        }
    }
    let without_outlast = options.direct_only && (options.outlast.is_some() || options.special().is_some());
    if options.names.len() > 3 || without_outlast {
        bail!("{USAGE}");
    }
    Ok(options)
}

impl Options {
    /// The special check that is asked for instead of visits.
    fn special(&self) -> Option<&str> {
        self.names.first().map(String::as_str).filter(|name| special::NAMES.contains(name))
    }

    /// How long a person lets a held call wait.
    fn held(&self) -> Result<Duration> {
        match (self.special(), self.names.get(1)) {
            (Some("held"), Some(seconds)) => Ok(Duration::from_secs(seconds.parse()?)),
            _ => Ok(HELD),
        }
    }

    fn visits(&self) -> Result<Vec<Visit>> {
        if self.special().is_some() { Ok(Vec::new()) } else { matrix::visits(&self.names, self.all) }
    }

    fn specials(&self) -> Vec<&str> {
        match self.special() {
            Some(name) => vec![name],
            None if self.names.is_empty() && !self.direct_only => special::NAMES.to_vec(),
            None => Vec::new(),
        }
    }
}

/// Makes the visits that the arguments name; an error if one of them fails.
pub fn run(args: &[String], amount: &mut Amount) -> Result<()> {
    let options = parse(args)?;
    if options.table {
        return table::write();
    }
    let (visits, specials) = (options.visits()?, options.specials());
    if options.list {
        visits.iter().for_each(|visit| say(&visit.to_string()));
        return Ok(());
    }
    let mut places = Places::find()?;
    places.held = options.held()?;
    let mut sdks = matrix::sdks(&visits);
    sdks.extend(special::sdks(&specials));
    setup::prepare(&places, &sdks)?;
    let outlast = match &options.outlast {
        _ if options.direct_only => None,
        Some(given) => Some(given.display().to_string()),
        None => Some(setup::build_outlast(&places)?),
    };
    client::adopt_orphans()?;
    run_all(&visits, &specials, &places, outlast.as_deref(), amount)
}

fn run_all(
    visits: &[Visit],
    specials: &[&str],
    places: &Places,
    outlast: Option<&str>,
    amount: &mut Amount,
) -> Result<()> {
    let tally = &Tally::default();
    // Those that do nothing but wait need no worker.
    let waits = |name: &&&str| matches!(**name, "keepalive" | "held");
    let (patient, busy): (Vec<&str>, Vec<&str>) = specials.iter().partition(waits);
    let (jobs, next) = (&jobs(visits, &busy), &AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for name in patient {
            scope.spawn(move || Job::Special(name).run(places, outlast, tally));
        }
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    job.run(places, outlast, tally);
                }
            });
        }
    });
    tally.add_leftovers(&client::leftovers());
    tally.finish(amount)
}

/// What one worker does without a break.
enum Job<'a> {
    Pair(Visit),
    Server(Vec<Visit>),
    Special(&'a str),
}

/// The visits over HTTP by server and client, because they take longest, then the others.
fn jobs<'a>(visits: &[Visit], specials: &[&'a str]) -> Vec<Job<'a>> {
    let (pairs, mut over_http): (Vec<Visit>, Vec<Visit>) =
        visits.iter().partition(|visit| visit.way == Way::Stdio);
    over_http.sort_by_key(|visit| (visit.pair.server.name, visit.pair.client.name));
    let servers = over_http.chunk_by(|a, b| a.pair.server.name == b.pair.server.name);
    let servers = servers.map(|visits| Job::Server(visits.to_vec()));
    let specials = specials.iter().map(|name| Job::Special(name));
    servers.chain(specials).chain(pairs.into_iter().map(Job::Pair)).collect()
}

impl Job<'_> {
    fn run(&self, places: &Places, outlast: Option<&str>, tally: &Tally) {
        match self {
            Self::Pair(visit) => tally.add(&visit.to_string(), check_pair(visit, places, outlast)),
            Self::Server(visits) => http::check_server(visits, places, outlast, tally),
            Self::Special(name) => {
                if let Some(outlast) = outlast {
                    special::check(name, places, outlast, tally);
                }
            }
        }
    }
}

/// One pair over stdio.
fn check_pair(visit: &Visit, places: &Places, outlast: Option<&str>) -> Verdict {
    let pair = visit.pair;
    let server = pair.server.stdio_command(places);
    let direct = pair.run(places, &server, "direct");
    let mut complaints = matrix::unexplained(&pair, false, &direct);
    let mut line = format!("{}, direct {:.1} s", direct.summary(), direct.took.as_secs_f32());
    if let Some(outlast) = outlast {
        let through = pair.run(places, &before(outlast, &[], &server), "outlast");
        complaints.extend(differences(&direct, &through));
        line += &format!(", through outlast {:.1} s", through.took.as_secs_f32());
    }
    if complaints.is_empty() { Ok(line) } else { Err(complaints) }
}

/// A command with outlast in front of it.
fn before(outlast: &str, settings: &[&str], server: &[String]) -> Vec<String> {
    let words = [&[outlast], settings, &["--"]].concat();
    words.into_iter().map(str::to_owned).chain(server.iter().cloned()).collect()
}

fn say(line: &str) {
    println!("{line}");
}
