//! Checks of one feature each, only through outlast: what no pair can show by being the same.

use std::process::Command;
use std::slice::from_ref;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use super::client::{Outcome, Run};
use super::endpoint::Endpoint;
use super::matrix::{self, Pair, Sdk};
use super::tally::{Tally, Verdict};
use super::{Places, RUN_LIMIT, before, example, gateway, http, manifest, otlp, replicas, tasks};

pub const NAMES: [&str; 12] = [
    "callbacks",
    "crash",
    "crowd",
    "example",
    "forgotten",
    "gateway",
    "held",
    "keepalive",
    "manifest",
    "otlp",
    "replicas",
    "tasks",
];

/// How long a call is silent in the check that the whole project is about.
const SILENCE: Duration = Duration::from_secs(60);
/// How often outlast says that a silent call lives; its client has two seconds of patience.
const KEEP_ALIVE: [&str; 2] = ["--keep-alive", "500ms"];

/// What has to be there for these checks.
pub fn sdks(names: &[&str]) -> Vec<Sdk> {
    let crowd = names.contains(&"crowd").then(matrix::crowd).unwrap_or_default();
    let clients = crowd.iter().map(|pair| pair.client.sdk);
    let tasks = tasks::sdks().filter(|_| names.contains(&"tasks"));
    let gateway = gateway::SDKS.into_iter().filter(|_| names.contains(&"gateway"));
    let held = names.contains(&"held").then_some(Sdk::Py1);
    let example = example::SDKS.into_iter().filter(|_| names.contains(&"example"));
    let otlp = otlp::SDKS.into_iter().filter(|_| names.contains(&"otlp"));
    let replicas = replicas::SDKS.into_iter().filter(|_| names.contains(&"replicas"));
    let clients = clients.chain(held).chain(gateway).chain(example).chain(otlp).chain(replicas);
    clients.chain(names.first().map(|_| Sdk::Ts1)).chain(tasks).collect()
}

/// Makes the check of this name, over HTTP and, where that is another thing, over stdio.
pub fn check(name: &str, places: &Places, outlast: &str, tally: &Tally) {
    let (first, second): (Check, Check) = match name {
        "crash" => (crash, crash_over_http),
        "callbacks" => return tally.add(name, callbacks(places, outlast)),
        "crowd" => return tally.add(name, crowd(places, outlast)),
        "example" => return tally.add(name, example::check(places, outlast)),
        "gateway" => return tally.add(name, gateway::check(places, outlast)),
        "otlp" => return tally.add(name, otlp::check(places, outlast)),
        "manifest" => return tally.add(name, manifest::check(places)),
        "replicas" => return tally.add(name, replicas::check(places, outlast)),
        "tasks" => return tasks::check(places, outlast, tally),
        "forgotten" => (forgotten, forgotten_over_http),
        "held" => return held(places, outlast, tally),
        _ => (keepalive, keepalive_over_http),
    };
    let in_words = |result: Result<Run>| {
        result.map_err(|error| vec![format!("{error:#}")]).and_then(|run| verdict(&run, name))
    };
    std::thread::scope(|scope| {
        scope.spawn(|| tally.add(name, in_words(first(places, outlast))));
        tally.add(name, in_words(second(places, outlast)).map(|line| line + ", over HTTP"));
    });
}

type Check = fn(&Places, &str) -> Result<Run>;

/// What came of the one check that a run was for.
fn verdict(run: &Run, check: &str) -> Verdict {
    match run.outcomes.get(check) {
        Some(outcome) if outcome.ok == Outcome::PASSED => Ok(outcome.detail.clone()),
        Some(outcome) => Err([vec![outcome.to_string()], run.story()].concat()),
        None => Err([vec!["no result".to_owned()], run.story()].concat()),
    }
}

/// What works without outlast as well proves nothing about it.
fn ensure_failed(control: &Run, check: &str) -> Result<()> {
    let failed = control.outcomes.get(check).is_some_and(|outcome| outcome.ok == Outcome::FAILED);
    ensure!(failed, "it does not fail without outlast: {}", control.story().join(" "));
    Ok(())
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
    ensure_failed(&control, "keepalive")?;
    let target = before(outlast, &KEEP_ALIVE, &server);
    Ok(ask(&pair, places, SILENCE, &target, "keepalive-outlast"))
}

/// The same with HTTP on both sides.
fn keepalive_over_http(places: &Places, outlast: &str) -> Result<Run> {
    let pair = matrix::keepalive_pair();
    let server = fixture_over_http(places, "keepalive-http")?;
    let log = "keepalive-http-outlast.log";
    let proxy = http::serve(outlast, &KEEP_ALIVE, from_ref(&server.url), places, log)?;
    let run = ask(&pair, places, SILENCE, from_ref(&proxy.url), "keepalive-http");
    proxy.stop()?;
    server.stop()?;
    Ok(run)
}

/// A person approves a call only after a while, and the client has two seconds of patience. That of the TypeScript SDK
/// waits on while progress comes; that of the Python SDK does not, and is handed the call off.
fn held(places: &Places, outlast: &str, tally: &Tally) {
    std::thread::scope(|scope| {
        for (client, more) in [("ts1", "--keep-alive=500ms"), ("py1", "--client-cap=2s")] {
            scope.spawn(move || {
                let run = held_for(places, outlast, client, more);
                let in_words = |error: anyhow::Error| vec![format!("{error:#}")];
                tally.add(
                    &format!("held, {client}"),
                    run.map_err(in_words).and_then(|run| verdict(&run, "held")),
                );
            });
        }
    });
}

fn held_for(places: &Places, outlast: &str, client: &str, more: &str) -> Result<Run> {
    let pair = matrix::held_pair(client);
    let state = places.logs().join(format!("held-{client}-state"));
    if state.exists() {
        std::fs::remove_dir_all(&state)?;
    }
    let folder = state.display().to_string();
    let settings = ["--state", &folder, "--tool", "slow=hold:true,hold-timeout:10m", more];
    let target = before(outlast, &settings, &pair.server.stdio_command(places));
    let held_ms = places.held.as_millis().to_string();
    let options = ["--only", "held", "--held-ms", &held_ms];
    std::thread::scope(|scope| {
        let run = scope.spawn(|| pair.run_with(places, &options, &target, "held", places.held + RUN_LIMIT));
        let approved = approve_after(places.held, outlast, &folder);
        let run = run.join().map_err(|_| anyhow::anyhow!("the client could not be run"))?;
        approved.map(|()| run)
    })
}

/// The person: waits until a call is held, lets it wait for as long as it is to, and says yes.
fn approve_after(held: Duration, outlast: &str, folder: &str) -> Result<()> {
    let end = Instant::now() + held + RUN_LIMIT;
    let number = loop {
        let shown = Command::new(outlast).args(["holds", "--json", "--state", folder]).output()?;
        let holds: Value = serde_json::from_slice(&shown.stdout).unwrap_or_default();
        if let Some(number) = holds["holds"][0]["hold"].as_u64() {
            break number;
        }
        ensure!(Instant::now() < end, "no call was held");
        std::thread::sleep(Duration::from_millis(200));
    };
    std::thread::sleep(held);
    let approve = ["holds", "approve", &number.to_string(), "--state", folder];
    ensure!(Command::new(outlast).args(approve).status()?.success(), "the call could not be approved");
    Ok(())
}

/// A receiver that checks callbacks with the library of Standard Webhooks.
fn callbacks(places: &Places, outlast: &str) -> Verdict {
    let server = matrix::held_pair("ts1").server.stdio_command(places);
    let mut receiver = Command::new("node");
    receiver.arg("callbacks.mjs").arg(outlast).args(server).current_dir(places.installed.join("ts1"));
    let output = receiver.output().map_err(|error| vec![format!("node: {error}")])?;
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(said(&output.stdout)),
        false => Err(vec![said(&output.stdout), said(&output.stderr)]),
    }
}

/// A client on stdio; its server over HTTP forgets its session.
fn forgotten(places: &Places, outlast: &str) -> Result<Run> {
    let server = fixture_over_http(places, "forgotten")?;
    let run = forget(places, &server, &[outlast.to_owned(), server.url.clone()], "forgotten");
    server.stop()?;
    Ok(run)
}

/// The same with a client over HTTP, whose own session must not suffer.
fn forgotten_over_http(places: &Places, outlast: &str) -> Result<Run> {
    let server = fixture_over_http(places, "forgotten-http")?;
    // Without outlast the client has to notice, or the check would prove nothing.
    let control = forget(places, &server, from_ref(&server.url), "forgotten-direct");
    ensure_failed(&control, "forgotten")?;
    let proxy = http::serve(outlast, &[], from_ref(&server.url), places, "forgotten-http-outlast.log")?;
    let run = forget(places, &server, from_ref(&proxy.url), "forgotten-http");
    proxy.stop()?;
    server.stop()?;
    Ok(run)
}

fn forget(places: &Places, server: &Endpoint, target: &[String], label: &str) -> Run {
    let options = ["--only", "forgotten", "--server", &server.url];
    matrix::keepalive_pair().run_with(places, &options, target, label, RUN_LIMIT)
}

fn fixture_over_http(places: &Places, name: &str) -> Result<Endpoint> {
    let log = places.logs().join(format!("{name}-server.log"));
    Endpoint::start(&matrix::keepalive_pair().server.http_command(places), &log)
}

/// What a crowd checks: what one client could spoil for another, not how patient it is.
const CROWD_CHECKS: &str = "lists,echo,request_meta,progress,cancel,sampling,elicitation,subscription,\
                            resume,logging,concurrent,large,close";

/// Clients of every SDK at once, before one stdio server: each has it for itself.
fn crowd(places: &Places, outlast: &str) -> Verdict {
    let pairs = matrix::crowd();
    let server = [vec!["--".to_owned()], pairs[0].server.stdio_command(places)].concat();
    let in_words = |error: anyhow::Error| vec![format!("{error:#}")];
    // What tasks add to what a server offers must not trouble anybody.
    let tasks = ["--tasks", "--state", "none"];
    let proxy = http::serve(outlast, &tasks, &server, places, "crowd-outlast.log").map_err(in_words)?;
    let visit = |pair: &Pair| {
        let options = ["--only", CROWD_CHECKS];
        let run = pair.run_with(places, &options, from_ref(&proxy.url), "crowd", RUN_LIMIT);
        let failures = run.failures();
        failures.into_iter().map(|failure| format!("{pair}: {failure}")).collect::<Vec<_>>()
    };
    let complaints: Vec<String> = std::thread::scope(|scope| {
        let visits: Vec<_> = pairs.iter().map(|pair| scope.spawn(move || visit(pair))).collect();
        visits.into_iter().flat_map(|visit| visit.join().unwrap_or_default()).collect()
    });
    proxy.stop().map_err(in_words)?;
    if complaints.is_empty() { Ok(format!("{} clients at once", pairs.len())) } else { Err(complaints) }
}

fn ask(pair: &Pair, places: &Places, silence: Duration, target: &[String], label: &str) -> Run {
    let silence_ms = silence.as_millis().to_string();
    let options = ["--only", "keepalive", "--silence-ms", &silence_ms];
    pair.run_with(places, &options, target, label, silence + RUN_LIMIT)
}
