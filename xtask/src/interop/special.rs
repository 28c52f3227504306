//! Checks of one feature each, only through outlast: what no pair can show by being the same.

use std::slice::from_ref;
use std::time::Duration;

use anyhow::{Result, bail};

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

type Check = fn(&Places, &str) -> Result<Run>;

/// Makes the check of this name over stdio and over HTTP.
pub fn check(name: &str, places: &Places, outlast: &str, tally: &Tally) {
    let (over_stdio, over_http): (Check, Check) = match name {
        "crash" => (crash, crash_over_http),
        _ => (keepalive, keepalive_over_http),
    };
    let in_words = |result: Result<Run>| {
        result.map_err(|error| vec![format!("{error:#}")]).and_then(|run| verdict(&run, name))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| tally.add(name, in_words(over_stdio(places, outlast))));
        tally.add(name, in_words(over_http(places, outlast)).map(|line| line + ", over HTTP"));
    });
}

/// What came of the one check that a run was for.
fn verdict(run: &Run, check: &str) -> Verdict {
    match run.outcomes.get(check) {
        Some(outcome) if outcome.ok == Outcome::PASSED => Ok(outcome.detail.clone()),
        Some(outcome) => Err([vec![outcome.to_string()], run.story()].concat()),
        None => Err([vec!["no result".to_owned()], run.story()].concat()),
    }
}

/// The reference server is killed in mid-call; the next call must find a new one.
fn crash(places: &Places, outlast: &str) -> Result<Run> {
    let pair = matrix::crash_pair();
    let target = before(outlast, &[], &pair.server.stdio_command(places));
    Ok(pair.run_with(places, &["--only", "crash"], &target, "crash", RUN_LIMIT))
}

/// The same with a client over HTTP.
fn crash_over_http(places: &Places, outlast: &str) -> Result<Run> {
    let pair = matrix::crash_pair();
    let server = [vec!["--".to_owned()], pair.server.stdio_command(places)].concat();
    let proxy = http::serve(outlast, &[], &server, places, "crash-http-outlast.log")?;
    let pid = proxy.pid().unwrap_or_default().to_string();
    let options = ["--only", "crash", "--pid", &pid];
    let run = pair.run_with(places, &options, from_ref(&proxy.url), "crash-http", RUN_LIMIT);
    proxy.stop()?;
    Ok(run)
}

/// A client with two seconds of patience that resets on progress, a server that is silent for a
/// minute, and only outlast to say that the call lives.
fn keepalive(places: &Places, outlast: &str) -> Result<Run> {
    let pair = matrix::keepalive_pair();
    let server = pair.server.stdio_command(places);
    // Without outlast the call has to die, or the check would prove nothing.
    let control = ask(&pair, places, Duration::from_secs(4), &server, "keepalive-direct");
    let died = |outcome: &Outcome| outcome.ok == Outcome::FAILED;
    if !control.outcomes.get("keepalive").is_some_and(died) {
        bail!("a silent call survived without outlast: {}", control.story().join(" "));
    }
    let target = before(outlast, &KEEP_ALIVE, &server);
    Ok(ask(&pair, places, SILENCE, &target, "keepalive-outlast"))
}

/// The same with HTTP on both sides.
fn keepalive_over_http(places: &Places, outlast: &str) -> Result<Run> {
    let pair = matrix::keepalive_pair();
    let log = places.logs().join("keepalive-http-server.log");
    let server = Endpoint::start(&pair.server.http_command(places), &log)?;
    let log = "keepalive-http-outlast.log";
    let proxy = http::serve(outlast, &KEEP_ALIVE, from_ref(&server.url), places, log)?;
    let run = ask(&pair, places, SILENCE, from_ref(&proxy.url), "keepalive-http");
    proxy.stop()?;
    server.stop()?;
    Ok(run)
}

fn ask(pair: &Pair, places: &Places, silence: Duration, target: &[String], label: &str) -> Run {
    let silence_ms = silence.as_millis().to_string();
    let options = ["--only", "keepalive", "--silence-ms", &silence_ms];
    pair.run_with(places, &options, target, label, silence + RUN_LIMIT)
}
