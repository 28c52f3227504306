//! `cargo xtask profiles`: makes the measured rows of the table of clients from the runs of `cargo xtask clients`.
//!
//! The table is `crates/engine/src/profiles.txt`, compiled into the engine. A test here fails when a measured row of it
//! has no run behind it, or a run has no row.

use crate::shell::root;
use anyhow::{Context, Result};
use serde::Deserialize;
use std::fs;

const TABLE: &str = "crates/engine/src/profiles.txt";
const MEASURED: &str = "tests/clients/measured.json";
const BEGIN: &str = "# Measured by `cargo xtask clients`; written by `cargo xtask profiles`.";
const END: &str = "# End of what was measured.";

/// The name under which drivers add the server to a client; some clients put it into their own.
const SERVER: &str = "probe";

#[derive(Deserialize)]
struct Runs {
    clients: Vec<Run>,
}

/// What one client did. The fields are those of `tests/clients/measured.json`.
#[derive(Deserialize)]
struct Run {
    name: String,
    package: String,
    kind: String,
    date: String,
    sends: Sends,
    /// The revision that it asks for.
    asks_for: Option<String>,
    capabilities: Vec<String>,
    token: Option<bool>,
    silent_limit_ms: Option<u64>,
    silent_observed_up_to_ms: Option<u64>,
    progress_moves: Option<bool>,
    progress_total_ms: Option<u64>,
    repeats: Option<u32>,
    start_limit_ms: Option<u64>,
    /// It begins without a server that has not answered by then.
    starts_without_ms: Option<u64>,
    list_limit_ms: Option<u64>,
    list_changed: Option<bool>,
    tasks: Option<bool>,
}

#[derive(Deserialize)]
struct Sends {
    name: String,
    version: String,
}

/// Writes the rows.
pub fn run() -> Result<()> {
    let path = root().join(TABLE);
    let table = fs::read_to_string(&path)?;
    let (before, rest) = table.split_once(BEGIN).context("the table does not say where its rows begin")?;
    let (_, after) = rest.split_once(END).context("the table does not say where its rows end")?;
    let rows = measured()?;
    fs::write(path, format!("{before}{BEGIN}\n{}\n{END}{after}", rows.join("\n")))?;
    println!("{} rows in {TABLE}", rows.len());
    Ok(())
}

/// The rows that the runs speak for.
fn measured() -> Result<Vec<String>> {
    let runs = fs::read_to_string(root().join(MEASURED)).with_context(|| format!("no {MEASURED}"))?;
    let runs: Runs = serde_json::from_str(&runs)?;
    Ok(rows(&runs.clients))
}

fn rows(runs: &[Run]) -> Vec<String> {
    let rows = runs.iter().filter(|run| !run.chose_its_name());
    let mut rows: Vec<String> =
        rows.map(|run| run.row(runs.iter().any(|other| run.differs(other)))).collect();
    rows.sort_by_key(|row| row.to_lowercase());
    rows
}

impl Run {
    /// Programs on these libraries choose their own names: the one of our driver says nothing.
    fn chose_its_name(&self) -> bool {
        self.package.starts_with("@modelcontextprotocol/") && self.kind == "sdk"
    }

    /// Whether others may call themselves the same: it gives the name of a library of which it is one user, or is that
    /// library.
    fn shares_its_name(&self) -> bool {
        let own = self.kind == "library" && self.package == self.sends.name;
        self.kind != "agent" && !own
    }

    /// Whether another client has the same name, and can be told apart by what it asks for and declares.
    fn differs(&self, other: &Run) -> bool {
        let says = |run: &Run| (run.asks_for.clone(), run.declares());
        self.sends.name == other.sends.name && says(self) != says(other)
    }

    /// The names of its capabilities, as the engine puts them together: those of its extensions stand inside `extensions`.
    fn declares(&self) -> String {
        let (extensions, mut names): (Vec<String>, Vec<String>) =
            self.capabilities.iter().cloned().partition(|name| name.contains('/'));
        names.extend((!extensions.is_empty()).then(|| "extensions".to_owned()));
        names.sort();
        if names.is_empty() { "none".to_owned() } else { names.join("+") }
    }

    /// Its row. What it asks for and declares is part of it only where that tells it from others of its name: a later
    /// version of a client that has a name of its own may well declare more.
    fn row(&self, with_introduction: bool) -> String {
        let yes = |known: bool| if known { "yes" } else { "no" }.to_owned();
        let glob = match self.sends.name.strip_suffix(SERVER) {
            Some(name) => format!("{name}*"),
            None => self.sends.name.clone(),
        };
        let start = [self.start_limit_ms, self.starts_without_ms].into_iter().flatten().min();
        let watched = self.silent_observed_up_to_ms.filter(|_| self.silent_limit_ms.is_none());
        let pairs = [
            ("client", Some(self.name.clone())),
            ("version", Some(format!("{}+", self.sends.version))),
            ("revision", self.asks_for.clone().filter(|_| with_introduction)),
            ("capabilities", with_introduction.then(|| self.declares())),
            ("shared", self.shares_its_name().then(|| yes(true))),
            ("token", self.token.map(yes)),
            ("cap", self.silent_limit_ms.map(rounded)),
            ("watched", watched.map(|millis| format!("{}m", millis / 60_000))),
            ("progress", self.progress_moves.map(yes)),
            ("total", self.progress_total_ms.map(rounded)),
            ("relists", self.list_changed.map(yes)),
            ("tasks", self.tasks.map(yes)),
            ("repeats", self.repeats.filter(|times| *times > 0).map(|times| times.to_string())),
            ("start", start.map(rounded)),
            ("list", self.list_limit_ms.map(rounded)),
            ("measured", Some(self.date.clone())),
        ];
        let pairs = pairs.into_iter().filter_map(|(key, value)| Some(format!("{key}:{}", value?)));
        format!("{glob}={}", pairs.collect::<Vec<_>>().join(","))
    }
}

/// A limit as its client has it: people write whole seconds, and a clock is never exact.
fn rounded(millis: u64) -> String {
    let step = if millis >= 10_000 { 1_000 } else { 100 };
    let millis = (millis + step / 2) / step * step;
    if millis.is_multiple_of(1_000) { format!("{}s", millis / 1_000) } else { format!("{millis}ms") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_measured_row_has_a_run_behind_it_and_every_run_a_row() {
        let table = fs::read_to_string(root().join(TABLE)).unwrap();
        let found: Vec<&str> =
            table.lines().filter(|line| !line.starts_with('#') && line.contains("measured:")).collect();
        assert_eq!(found, measured().unwrap(), "the table is old: run cargo xtask profiles");
    }

    #[test]
    fn clients_of_one_name_are_told_apart_by_what_they_ask_for_and_declare() {
        let run = |name: &str, asks_for: &str, capabilities: &[&str]| -> Run {
            serde_json::from_value(serde_json::json!({
                "name": name, "package": "p", "kind": "agent", "date": "2026-11-18", "asks_for": asks_for,
                "sends": {"name": name, "version": "1.0"}, "capabilities": capabilities,
            }))
            .unwrap()
        };
        let same = [run("a", "2025-11-25", &["roots"]), run("a", "2025-11-25", &["roots"])];
        assert!(rows(&same).iter().all(|row| !row.contains("revision") && !row.contains("capabilities")));
        let others = [
            run("a", "2025-11-25", &["sampling", "roots", "io.example/ui"]),
            run("a", "2025-11-25", &[]),
            run("b", "2025-06-18", &[]),
        ];
        assert_eq!(
            rows(&others),
            [
                "a=client:a,version:1.0+,revision:2025-11-25,capabilities:extensions+roots+sampling,measured:2026-11-18",
                "a=client:a,version:1.0+,revision:2025-11-25,capabilities:none,measured:2026-11-18",
                "b=client:b,version:1.0+,measured:2026-11-18",
            ]
        );
    }

    #[test]
    fn a_limit_is_what_a_person_would_write() {
        assert_eq!(
            [60_004, 59_999, 299_977, 5_004, 2_819].map(rounded),
            ["60s", "60s", "300s", "5s", "2800ms"]
        );
    }
}
