//! `cargo xtask interop`: clients and servers of the official SDKs, directly and through outlast.
//!
//! Every client program of `tests/interop` runs its checks against every server it can talk to,
//! once directly and once with outlast in between. What passes directly has to pass through
//! outlast, word for word; what fails directly is a mistake of the fixture, unless
//! `matrix::EXCEPTIONS` explains it.
//!
//! Not here: what is checked (`tests/interop`), which pairs there are (`matrix.rs`), what has to
//! be installed first (`setup.rs`), and how one client program is run (`client.rs`).

// A tool of ours, not the product: it may look at the clock and speak on stdout.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)]

pub mod client;
mod matrix;
pub mod setup;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use client::{Outcome, Run};
use matrix::Pair;

/// A client program that takes longer than this is stuck.
const RUN_LIMIT: Duration = Duration::from_secs(60);
/// How long a call is silent in the check that the whole project is about.
const SILENCE: Duration = Duration::from_secs(60);
/// Pairs under way at once. A pair is two processes that mostly wait.
const WORKERS: usize = 2;

const USAGE: &str = "\
usage: cargo xtask interop [--direct-only | --outlast PATH] [--list] [CLIENT [SERVER]]

  cargo xtask interop               every pair, and the call that is silent for 60 s
  cargo xtask interop ts1 rust      one pair
  cargo xtask interop keepalive     only the call that is silent for 60 s

      --direct-only   without outlast: do the fixtures work at all?
      --outlast PATH  this binary instead of the debug build
      --list          show the pairs, run nothing";

/// Where things are: the sources, what was installed, what was built.
pub struct Places {
    pub sources: PathBuf,
    pub installed: PathBuf,
    pub built: PathBuf,
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
        })
    }
}

#[derive(Default)]
struct Options {
    direct_only: bool,
    list: bool,
    outlast: Option<PathBuf>,
    names: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--direct-only" => options.direct_only = true,
            "--list" => options.list = true,
            "--outlast" => {
                let path = args.next().context("--outlast needs a path")?;
                options.outlast = Some(std::path::absolute(path)?);
            }
            flag if flag.starts_with('-') => bail!("unknown flag `{flag}`\n{USAGE}"),
            name => options.names.push(name.to_owned()),
        }
    }
    let without_outlast =
        options.direct_only && (options.outlast.is_some() || options.names == ["keepalive"]);
    if options.names.len() > 2 || without_outlast {
        bail!("{USAGE}");
    }
    Ok(options)
}

/// Runs the pairs that the arguments name; an error if one of them fails.
pub fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    let only_keepalive = options.names == ["keepalive"];
    let pairs = if only_keepalive { Vec::new() } else { matrix::pairs(&options.names)? };
    if options.list {
        pairs.iter().for_each(|pair| say(&pair.to_string()));
        return Ok(());
    }
    let keepalive = only_keepalive || (options.names.is_empty() && !options.direct_only);
    let places = Places::find()?;
    let mut sdks = matrix::sdks(&pairs);
    if keepalive {
        sdks.insert(matrix::Sdk::Ts1);
    }
    setup::prepare(&places, &sdks)?;
    let outlast = match options.outlast {
        _ if options.direct_only => None,
        Some(given) => Some(given.display().to_string()),
        None => Some(setup::build_outlast(&places)?),
    };
    client::adopt_orphans()?;
    run_all(&pairs, keepalive, &places, outlast.as_deref())
}

fn run_all(pairs: &[Pair], keepalive: bool, places: &Places, outlast: Option<&str>) -> Result<()> {
    let tally = Tally::default();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        if let Some(outlast) = outlast.filter(|_| keepalive) {
            let tally = &tally;
            scope.spawn(move || {
                tally.add("crash", check_crash(places, outlast));
                tally.add("keepalive", check_keepalive(places, outlast));
            });
        }
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while let Some(pair) = pairs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    tally.add(&pair.to_string(), check_pair(pair, places, outlast));
                }
            });
        }
    });
    tally.add_leftovers(&client::leftovers());
    tally.finish()
}

/// What came of one pair: a line if it is well, the complaints if it is not.
type Verdict = Result<String, Vec<String>>;

fn check_pair(pair: &Pair, places: &Places, outlast: Option<&str>) -> Verdict {
    let direct = pair.run(places, &[], "direct");
    let mut complaints = matrix::unexplained(pair, &direct);
    let mut line = format!("{}, direct {:.1} s", direct.summary(), direct.took.as_secs_f32());
    if let Some(outlast) = outlast {
        let through = pair.run(places, &[outlast, "--"], "outlast");
        complaints.extend(differences(&direct, &through));
        line += &format!(", through outlast {:.1} s", through.took.as_secs_f32());
    }
    if complaints.is_empty() { Ok(line) } else { Err(complaints) }
}

/// What is not the same through outlast as directly.
fn differences(direct: &Run, through: &Run) -> Vec<String> {
    let (mut complaints, mut missing) = (Vec::new(), Vec::new());
    for (check, before) in &direct.outcomes {
        // Why a check failed may be worded differently; what a good one saw may not.
        match through.outcomes.get(check) {
            None => missing.push(check.as_str()),
            Some(after) if after == before => {}
            Some(after) if after.ok == before.ok && before.ok != Outcome::PASSED => {}
            Some(after) => {
                complaints.push(format!("{check}: directly {before}, through outlast {after}"));
            }
        }
    }
    if !missing.is_empty() {
        complaints.push(format!("no result through outlast: {}", missing.join(", ")));
    }
    let new = through.outcomes.keys().filter(|check| !direct.outcomes.contains_key(*check));
    complaints.extend(new.map(|check| format!("{check}: only through outlast")));
    if !complaints.is_empty() || through.trouble.is_some() {
        complaints.extend(through.story());
    }
    complaints
}

/// The reference server is killed in mid-call; the next call must find a new one.
fn check_crash(places: &Places, outlast: &str) -> Verdict {
    let pair = matrix::crash_pair();
    let run = pair.run_with(places, &["--only", "crash"], &[outlast, "--"], "crash", RUN_LIMIT);
    verdict(&run, "crash")
}

/// What came of the one check that a run was for.
fn verdict(run: &Run, check: &str) -> Verdict {
    match run.outcomes.get(check) {
        Some(outcome) if outcome.ok == Outcome::PASSED => Ok(outcome.detail.clone()),
        Some(outcome) => Err([vec![outcome.to_string()], run.story()].concat()),
        None => Err([vec!["no result".to_owned()], run.story()].concat()),
    }
}

/// A client with two seconds of patience that resets on progress, a server that is silent for a
/// minute, and only outlast to say that the call lives.
fn check_keepalive(places: &Places, outlast: &str) -> Verdict {
    let pair = matrix::keepalive_pair();
    let ask = |silence: Duration, wrapper: &[&str], label: &str| {
        let silence_ms = silence.as_millis().to_string();
        let options = ["--only", "keepalive", "--silence-ms", &silence_ms];
        pair.run_with(places, &options, wrapper, label, silence + RUN_LIMIT)
    };
    // Without outlast the call has to die, or the check would prove nothing.
    let control = ask(Duration::from_secs(4), &[], "keepalive-direct");
    let died = |outcome: &Outcome| outcome.ok == Outcome::FAILED;
    if !control.outcomes.get("keepalive").is_some_and(died) {
        let mut complaints = vec!["a silent call survived without outlast".to_owned()];
        complaints.extend(control.story());
        return Err(complaints);
    }
    let wrapper = [outlast, "--keep-alive", "500ms", "--"];
    let through = ask(SILENCE, &wrapper, "keepalive-outlast");
    verdict(&through, "keepalive")
}

/// Counts verdicts and prints each as soon as it is known, whole.
#[derive(Default)]
struct Tally(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    /// What to type to see each failure again.
    repeat: Vec<String>,
}

impl Tally {
    fn add(&self, name: &str, verdict: Verdict) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Ok(line) => {
                counts.passed += 1;
                say(&format!("ok    {name:<24} {line}"));
            }
            Err(complaints) => {
                counts.failed += 1;
                counts.repeat.push(format!("cargo xtask interop {name}"));
                complain(name, &complaints);
            }
        }
    }

    /// A server that outlives its client is a failure of its own; whose, its command line tells.
    fn add_leftovers(&self, leftovers: &[String]) {
        if !leftovers.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).failed += 1;
            complain("processes left behind", leftovers);
        }
    }

    fn finish(self) -> Result<()> {
        let counts = self.0.into_inner().ok().context("a worker panicked")?;
        for command in &counts.repeat {
            say(&format!("to repeat: {command}"));
        }
        say(&format!("{} passed, {} failed", counts.passed, counts.failed));
        ensure!(counts.failed == 0, "interop tests failed");
        Ok(())
    }
}

fn complain(name: &str, complaints: &[String]) {
    say(&format!("FAIL  {name}"));
    for complaint in complaints {
        say(&format!("      {complaint}"));
    }
}

fn say(line: &str) {
    println!("{line}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: &str = r#"{"check":"echo","ok":true,"detail":"5 characters"}
        {"check":"odd","ok":false,"detail":"one way"}"#;

    fn complaints(through: &str) -> Vec<String> {
        differences(&Run::said(DIRECT), &Run::said(through))
    }

    #[test]
    fn the_same_is_no_difference() {
        assert!(complaints(DIRECT).is_empty());
    }

    /// A failure that is explained may be worded differently; a success may not be.
    #[test]
    fn other_words_count_only_when_it_passed() {
        assert!(complaints(&DIRECT.replace("one way", "another")).is_empty());
        assert_eq!(complaints(&DIRECT.replace("5 char", "4 char")).len(), 1);
    }

    /// Passing through outlast what fails directly is as suspicious as the reverse.
    #[test]
    fn another_outcome_is_a_difference() {
        assert_eq!(complaints(&DIRECT.replace("true", "\"unsupported\"")).len(), 1);
        assert_eq!(complaints(&DIRECT.replace("false", "true")).len(), 1);
    }

    #[test]
    fn a_check_that_is_missing_or_new_is_a_difference() {
        assert_eq!(complaints(r#"{"check":"odd","ok":false,"detail":""}"#).len(), 1);
        assert_eq!(complaints(&format!("{DIRECT}\n{}", DIRECT.replace("echo", "new"))).len(), 1);
    }
}
