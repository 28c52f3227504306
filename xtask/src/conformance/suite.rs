//! One start of the suite: what it examines is put in place, its findings are read.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use super::process::{Server, log, without_proxies};
use super::scenarios::{EXTENSION, Leg, Scenario};
use super::setup::Tools;
use crate::interop::client::wait;

/// A start of the suite that takes longer than this is stuck; what it did not get to has no findings.
const LIMIT: Duration = Duration::from_secs(60);

/// `-2026-11-15T11-57-40-516Z`, with which the suite ends the name of a folder of findings.
const TIMESTAMP: usize = 25;

/// How the suite reaches what it examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Direct,
    /// A server over HTTP, behind outlast.
    Http,
    /// A server over stdio, behind outlast.
    Stdio,
    /// A client over stdio, in front of outlast.
    Outlast,
}

impl Route {
    pub const ALL: [Route; 4] = [Route::Direct, Route::Http, Route::Stdio, Route::Outlast];

    pub fn is_for(self, leg: Leg) -> bool {
        match self {
            Route::Direct => true,
            Route::Http | Route::Stdio => leg == Leg::Server,
            Route::Outlast => leg == Leg::Client,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.to_string() == name)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Direct => "direct",
            Route::Http => "http",
            Route::Stdio => "stdio",
            Route::Outlast => "outlast",
        })
    }
}

/// How often one check came out well or badly in a scenario, and why badly.
#[derive(Clone, Default, PartialEq)]
pub struct Tally {
    pub passes: usize,
    pub faults: usize,
    pub reason: String,
}

/// The checks of a scenario. The suite uses an id and a name more than once, so they are counted.
#[derive(Clone, Default, PartialEq)]
pub struct Checks(pub BTreeMap<String, Tally>);

impl Checks {
    pub fn passes(&self) -> usize {
        self.0.values().map(|tally| tally.passes).sum()
    }

    /// Reads the suite's `checks.json`. What only informs or was skipped is neither good nor bad.
    pub fn read(json: &str) -> Result<Self> {
        let mut checks = Self::default();
        let list: Vec<Value> = serde_json::from_str(json)?;
        for check in list {
            let word = |field: &str| check[field].as_str().unwrap_or_default();
            let tally = checks.0.entry(format!("{} {}", word("id"), word("name"))).or_default();
            match word("status") {
                "SUCCESS" => tally.passes += 1,
                "FAILURE" | "WARNING" => {
                    tally.faults += 1;
                    word("errorMessage").clone_into(&mut tally.reason);
                }
                _ => {}
            }
        }
        Ok(checks)
    }
}

/// Runs scenarios of one leg and revision by one route.
pub fn run(route: Route, scenarios: &[&Scenario], tools: &Tools) -> Result<Vec<(Scenario, Checks)>> {
    let Some(first) = scenarios.first() else { return Ok(Vec::new()) };
    let label = match first.leg {
        Leg::Server => format!("{}-{}-{route}", first.leg, first.revision),
        Leg::Client => format!("{}-{}-{}-{route}", first.leg, first.revision, first.name),
    };
    let folder = tools.output.join(label);
    fs::create_dir_all(&folder)?;
    match first.leg {
        Leg::Server => examine_server(route, scenarios, tools, &folder),
        Leg::Client => examine_client(route, first, tools, &folder),
    }
    .with_context(|| format!("{first} {route}; see {}", folder.display()))
}

fn examine_server(
    route: Route,
    scenarios: &[&Scenario],
    tools: &Tools,
    folder: &Path,
) -> Result<Vec<(Scenario, Checks)>> {
    let fixture = fixture(route, tools, folder)?;
    let outlast = relay(route, fixture.as_ref(), tools, folder)?;
    let url = &outlast.as_ref().or(fixture.as_ref()).context("nothing to examine")?.url;
    let mut found = Vec::new();
    for batch in batches(scenarios) {
        let mut suite = tools.suite();
        suite.args(["server", "--url", url]).args(selection(&batch));
        found.extend(finish(suite, &batch, folder)?);
    }
    Ok(found)
}

/// The fixture over HTTP, unless outlast is to start it over stdio.
fn fixture(route: Route, tools: &Tools, folder: &Path) -> Result<Option<Server>> {
    if route == Route::Stdio {
        return Ok(None);
    }
    let mut command = Command::new(&tools.node);
    command.arg(tools.fixture.join("server.js")).args(["--http", "0"]);
    Server::start(command, &log(folder, "fixture")).map(Some)
}

/// Outlast in front of the fixture, unless the suite goes there directly.
fn relay(route: Route, fixture: Option<&Server>, tools: &Tools, folder: &Path) -> Result<Option<Server>> {
    if route == Route::Direct {
        return Ok(None);
    }
    let mut command = Command::new(tools.outlast()?);
    command.args(["serve", "--listen", "127.0.0.1:0"]);
    match fixture {
        Some(fixture) => command.arg(&fixture.url),
        None => command.arg("--").arg(&tools.node).arg(tools.fixture.join("server.js")).arg("--stdio"),
    };
    Server::start(command, &log(folder, "outlast")).map(Some)
}

/// The suite can run a whole revision at once, but extensions only one scenario at a time.
fn batches<'a>(scenarios: &[&'a Scenario]) -> Vec<Vec<&'a Scenario>> {
    match scenarios {
        [first, _, ..] if first.revision != EXTENSION => vec![scenarios.to_vec()],
        few => few.iter().map(|scenario| vec![*scenario]).collect(),
    }
}

fn selection(batch: &[&Scenario]) -> Vec<String> {
    let mut words = match batch {
        [one] => vec!["--scenario".into(), one.name.clone()],
        _ => vec!["--suite".into(), "all".into()],
    };
    let revision = batch.iter().map(|scenario| &scenario.revision).find(|revision| *revision != EXTENSION);
    words.extend(revision.into_iter().flat_map(|revision| ["--spec-version".into(), revision.clone()]));
    words
}

fn examine_client(
    route: Route,
    scenario: &Scenario,
    tools: &Tools,
    folder: &Path,
) -> Result<Vec<(Scenario, Checks)>> {
    // The suite cuts this at blanks, so a path with a blank in it cannot be helped.
    let mut client = format!("{} {}", tools.node.display(), tools.fixture.join("client.js").display());
    if route == Route::Outlast {
        client += &format!(" --through {}", tools.outlast()?.display());
    }
    let mut suite = tools.suite();
    suite.args(["client", "--command", &client]).args(selection(&[scenario]));
    finish(suite, &[scenario], folder)
}

/// Runs the suite to its end and reads what it found about each scenario.
///
/// Its exit status says whether checks failed, which is what the findings are for.
fn finish(mut suite: Command, batch: &[&Scenario], folder: &Path) -> Result<Vec<(Scenario, Checks)>> {
    let words = fs::File::options().create(true).append(true).open(log(folder, "suite"))?;
    suite.arg("--output-dir").arg(folder);
    without_proxies(&mut suite);
    suite.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words).process_group(0);
    let _ = wait(suite.spawn().context("cannot start the suite")?, LIMIT);
    let findings = findings(folder)?;
    let of = |scenario: &&Scenario| {
        let checks = findings.get(&scenario.name).map(|path| Checks::read(&fs::read_to_string(path)?));
        Ok(((*scenario).clone(), checks.transpose()?.unwrap_or_default()))
    };
    batch.iter().map(of).collect()
}

/// The file of findings of each scenario: `[server-]NAME-TIMESTAMP/checks.json`.
fn findings(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut findings = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let checks = entry.path().join("checks.json");
        let name = entry.file_name().to_string_lossy().into_owned();
        if !checks.exists() {
            continue;
        }
        ensure!(name.len() > TIMESTAMP, "the suite wrote to a folder `{name}`");
        let name = &name[..name.len() - TIMESTAMP];
        let is_server =
            folder.file_name().is_some_and(|folder| folder.to_string_lossy().starts_with("server"));
        let name = if is_server { name.strip_prefix("server-").unwrap_or(name) } else { name };
        findings.insert(name.to_owned(), checks);
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One id may stand for several checks; each of them counts.
    #[test]
    fn checks_with_the_same_name_are_counted() {
        let json = r#"[{"id":"a","name":"A","status":"SUCCESS"},{"id":"a","name":"A","status":"SUCCESS"},
            {"id":"a","name":"A","status":"WARNING","errorMessage":"why"},{"id":"b","name":"B","status":"INFO"}]"#;
        let checks = Checks::read(json).unwrap();
        assert_eq!(checks.passes(), 2);
        assert!(checks.0["a A"] == Tally { passes: 2, faults: 1, reason: "why".into() });
    }
}
