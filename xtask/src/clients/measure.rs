//! The runs that make a row of one client.

use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use super::list::Client;
use super::record::{How, Record};
use super::row::{Row, Sends};
use super::run::{Bench, Plan};
use super::setup::Installed;
use super::{doctor, through};

/// How long a silent call, a start and a list are watched.
const WATCH: Duration = Duration::from_secs(600);
/// How long a client may take to get to its first call, and to end after its last.
const START: Duration = Duration::from_secs(60);
/// A call that reports progress is watched for one and a half times the limit, and at least as long.
const PROGRESS_LEAST: Duration = Duration::from_secs(660);

/// Measures a client. A client that could not be measured gets a row that says why.
pub fn row(bench: &Bench, client: &Client, installed: Result<Installed>) -> Row {
    let known = Row {
        name: client.name.clone(),
        package: client.package.clone(),
        version: client.version.clone(),
        kind: client.kind.clone(),
        date: today(),
        offline: bench.offline,
        ..Row::default()
    };
    let measured =
        installed.and_then(|installed| measured(&Session { bench, client, installed }, known.clone()));
    measured.unwrap_or_else(|error| Row { failed: Some(format!("{error:#}")), ..known })
}

/// One client on the bench.
pub struct Session<'a> {
    bench: &'a Bench,
    client: &'a Client,
    installed: Installed,
}

impl Session<'_> {
    pub fn run(&self, plan: &Plan<'_>) -> Result<Record> {
        let record = self.bench.run(self.client, &self.installed, plan);
        let record = record.with_context(|| format!("run `{}`", plan.label))?;
        println!("  {} {}: {}", self.client.name, plan.label, record.end.outcome);
        Ok(record)
    }

    pub fn extra_flags(&self) -> Vec<String> {
        self.client.outlast.clone()
    }

    pub fn direct(&self, label: &str, scenario: &str, watch: Duration) -> Result<Record> {
        self.run(&Plan::direct(label, scenario, watch + START))
    }
}

fn measured(session: &Session<'_>, mut row: Row) -> Result<Row> {
    let quick = session.direct("answer", "answer:1000", START)?;
    introduce(&mut row, &quick)?;
    std::thread::scope(|scope| {
        let silent = scope.spawn(|| after_silence(session, row.clone()));
        let start = scope.spawn(|| session.direct("start", &delayed("start"), WATCH));
        let list = scope.spawn(|| session.direct("list", &delayed("list"), WATCH));
        let changed = scope.spawn(|| session.direct("list-changed", "list-changed", START));
        let mut row = silent.join().expect("a run does not panic")?;
        begin(
            &mut row,
            &start.join().expect("a run does not panic")?,
            &list.join().expect("a run does not panic")?,
        );
        row.list_changed = changed.join().expect("a run does not panic")?.lists_again();
        Ok(row)
    })
}

fn delayed(what: &str) -> String {
    format!("{what}:{}", WATCH.as_millis())
}

/// What the client says of itself, and how it makes a call that is answered.
fn introduce(row: &mut Row, quick: &Record) -> Result<()> {
    let handshake = quick.request("initialize").context("it never sent `initialize`")?.msg["params"].clone();
    let word = |value: &Value| value.as_str().map(str::to_owned);
    row.sends = Sends {
        name: word(&handshake["clientInfo"]["name"]),
        version: word(&handshake["clientInfo"]["version"]),
    };
    row.asks_for = word(&handshake["protocolVersion"]);
    row.capabilities = capabilities(&handshake["capabilities"]);
    row.tasks = row.capabilities.iter().any(|name| name.ends_with("tasks"));
    row.elicitation = row.capabilities.iter().any(|name| name == "elicitation");
    let call = quick
        .request("tools/call")
        .with_context(|| format!("it never called the tool: {}", quick.end.text))?;
    row.token = !call.msg["params"]["_meta"]["progressToken"].is_null();
    row.cancels_answered = quick.cancels_answered();
    (row.offered_as, row.behind_search) = quick.offered();
    Ok(())
}

fn capabilities(declared: &Value) -> Vec<String> {
    let keys = |value: &Value| {
        value.as_object().map(|it| it.keys().cloned().collect::<Vec<_>>()).unwrap_or_default()
    };
    keys(declared)
        .into_iter()
        .filter(|key| key != "extensions")
        .chain(keys(&declared["extensions"]))
        .collect()
}

/// Everything that depends on the limit of a silent call.
fn after_silence(session: &Session<'_>, mut row: Row) -> Result<Row> {
    let silent = session.direct("silent", "silent", WATCH)?;
    let given_up = silent.call_given_up();
    row.silent_limit_ms = given_up.as_ref().map(|it| it.age);
    row.silent_observed_up_to_ms = row.silent_limit_ms.unwrap_or_else(|| silent.watched("tools/call"));
    row.repeats = silent.calls().saturating_sub(1);
    row.cancels = given_up.map(|it| word(it.how).to_owned());
    progress(session, &mut row)?;
    std::thread::scope(|scope| {
        let examined = scope.spawn(|| doctor::examine(session, &row));
        let calls = through::calls(session, &row)?;
        Ok((calls, examined.join().expect("a run does not panic")?))
    })
    .map(|((direct, through), examined)| Row {
        direct: Some(direct),
        through_outlast: Some(through),
        doctor: examined,
        ..row.clone()
    })
}

fn word(how: How) -> &'static str {
    match how {
        How::Notification => "notification",
        How::Eof => "eof",
        How::Nothing => "none",
    }
}

/// Whether progress resets the limit, and up to what total.
fn progress(session: &Session<'_>, row: &mut Row) -> Result<()> {
    let Some(limit) = row.silent_limit_ms.map(Duration::from_millis) else { return Ok(()) };
    if !row.token {
        // There is nothing to report progress on.
        row.progress_moves = Some(false);
        return Ok(());
    }
    let watch = (limit * 3 / 2).max(PROGRESS_LEAST);
    let scenario = format!("progress:{}", (limit / 6).as_millis().clamp(500, 30_000));
    let mut plan = Plan::direct("progress", scenario, watch + START);
    plan.answer_after = Some(watch);
    let record = session.run(&plan)?;
    let ended = if record.end.outcome == "result" { None } else { record.call_given_up().map(|it| it.age) };
    row.progress_observed_up_to_ms = Some(ended.unwrap_or_else(|| millis(watch)));
    row.progress_moves = Some(ended.is_none_or(|age| age > millis(limit) * 6 / 5));
    row.progress_total_ms = ended.filter(|_| row.progress_moves == Some(true));
    Ok(())
}

fn begin(row: &mut Row, start: &Record, list: &Record) {
    row.start_limit_ms = start.begin_given_up("initialize");
    row.start_observed_up_to_ms = row.start_limit_ms.unwrap_or_else(|| start.watched("initialize"));
    row.starts_without_ms = start.begins_without("initialize");
    // Some give the list up without a word and begin their turn.
    row.list_limit_ms = list.begin_given_up("tools/list").or_else(|| list.begins_without("tools/list"));
    row.list_observed_up_to_ms = row.list_limit_ms.unwrap_or_else(|| list.watched("tools/list"));
}

pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// The day, as people write it.
fn today() -> String {
    let output = Command::new("date").args(["-u", "+%F"]).output();
    output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default()
}
