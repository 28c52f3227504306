//! Checks of one feature each, only through outlast: what no pair can show by being the same.

use std::time::Duration;

use anyhow::Result;

use super::client::{Outcome, Run};
use super::endpoint::Endpoint;
use super::matrix::{self, Pair};
use super::tally::{Tally, Verdict};
use super::{Places, RUN_LIMIT, before, http};

pub const NAMES: [&str; 2] = ["crash", "keepalive"];

/// How long a call is silent in the check that the whole project is about.
const SILENCE: Duration = Duration::from_secs(60);
/// How often outlast says that a silent call lives; its client has two seconds of patience.
const KEEP_ALIVE: [&str; 2] = ["--keep-alive", "500ms"];

/// Makes the check of this name over stdio and over HTTP.
pub fn check(name: &str, places: &Places, outlast: &str, tally: &Tally) {
    std::thread::scope(|scope| match name {
        "crash" => tally.add(name, check_crash(places, outlast)),
        _ => {
            scope.spawn(|| tally.add(name, check_keepalive(places, outlast)));
            tally.add(name, check_keepalive_over_http(places, outlast));
        }
    });
}

/// The reference server is killed in mid-call; the next call must find a new one.
fn check_crash(places: &Places, outlast: &str) -> Verdict {
    let pair = matrix::crash_pair();
    let target = before(outlast, &[], &pair.server.stdio_command(places));
    let run = pair.run_with(places, &["--only", "crash"], &target, "crash", RUN_LIMIT);
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
    let server = pair.server.stdio_command(places);
    // Without outlast the call has to die, or the check would prove nothing.
    let control = ask(&pair, places, Duration::from_secs(4), &server, "keepalive-direct");
    let died = |outcome: &Outcome| outcome.ok == Outcome::FAILED;
    if !control.outcomes.get("keepalive").is_some_and(died) {
        let mut complaints = vec!["a silent call survived without outlast".to_owned()];
        complaints.extend(control.story());
        return Err(complaints);
    }
    let target = before(outlast, &KEEP_ALIVE, &server);
    verdict(&ask(&pair, places, SILENCE, &target, "keepalive-outlast"), "keepalive")
}

/// The same with HTTP on both sides.
fn check_keepalive_over_http(places: &Places, outlast: &str) -> Verdict {
    let pair = matrix::keepalive_pair();
    let run = ask_over_http(&pair, places, outlast).map_err(|error| vec![format!("{error:#}")])?;
    Ok(verdict(&run, "keepalive")? + " over HTTP")
}

fn ask_over_http(pair: &Pair, places: &Places, outlast: &str) -> Result<Run> {
    let log = places.logs().join("keepalive-http-server.log");
    let server = Endpoint::start(&pair.server.http_command(places), &log)?;
    let log = "keepalive-http-outlast.log";
    let proxy = http::serve(outlast, &KEEP_ALIVE, std::slice::from_ref(&server.url), places, log)?;
    let run = ask(pair, places, SILENCE, std::slice::from_ref(&proxy.url), "keepalive-http");
    proxy.stop()?;
    server.stop()?;
    Ok(run)
}

fn ask(pair: &Pair, places: &Places, silence: Duration, target: &[String], label: &str) -> Run {
    let silence_ms = silence.as_millis().to_string();
    let options = ["--only", "keepalive", "--silence-ms", &silence_ms];
    pair.run_with(places, &options, target, label, silence + RUN_LIMIT)
}
