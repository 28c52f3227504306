//! Puts what is to be examined in place and lets the suite at it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};

use super::checks::Checks;
use super::route::Route;
use super::scenarios::{EXTENSION, Scenario};
use super::setup::Tools;
use super::suite;
use crate::interop::endpoint::Endpoint;

/// Starts of the suite that are under way at once; each is two or three processes that mostly wait.
const WORKERS: usize = 2;

/// Lets the suite at the fixture's server by one route.
///
/// It is one server, and one outlast, for all revisions, which come at the same time: both have
/// to speak with clients of both eras at once.
pub fn server(route: Route, scenarios: &[&Scenario], tools: &Tools) -> Result<Vec<(Scenario, Checks)>> {
    let folder = tools.output.join(format!("server-{route}"));
    std::fs::create_dir_all(&folder)?;
    let fixture = fixture(route, tools, &folder)?;
    let outlast = relay(route, fixture.as_ref(), tools, &folder)?;
    let url = &outlast.as_ref().or(fixture.as_ref()).context("nothing to examine")?.url;
    let batches = batches(scenarios);
    let found = in_parallel(&batches, |(label, batch)| {
        let mut suite = tools.suite();
        suite.args(["server", "--url", url]);
        suite::run(suite, batch, &folder.join(label))
    });
    for endpoint in outlast.into_iter().chain(fixture) {
        endpoint.stop()?;
    }
    Ok(found.into_iter().collect::<Result<Vec<_>>>()?.concat())
}

/// The fixture over HTTP, unless outlast is to start it over stdio.
fn fixture(route: Route, tools: &Tools, folder: &Path) -> Result<Option<Endpoint>> {
    if matches!(route, Route::Stdio | Route::Made | Route::Two) {
        return Ok(None);
    }
    let command = [tools.server(), vec!["--http".into(), "0".into()]].concat();
    Endpoint::start(&command, &folder.join("fixture")).map(Some)
}

/// Outlast in front of the fixture, unless the suite goes there directly.
fn relay(route: Route, fixture: Option<&Endpoint>, tools: &Tools, folder: &Path) -> Result<Option<Endpoint>> {
    if route == Route::Direct {
        return Ok(None);
    }
    let serve = [tools.outlast()?, "serve", "--listen", "127.0.0.1:0"].map(str::to_owned).to_vec();
    let settings = settings(route).iter().map(|word| (*word).to_owned()).collect();
    if matches!(route, Route::Merged | Route::Two) {
        let file = file(fixture, tools, folder)?.display().to_string();
        let target = vec!["--config".to_owned(), file];
        return Endpoint::start(&[serve, settings, target].concat(), &folder.join("outlast")).map(Some);
    }
    let stdio = || [vec!["--".into()], tools.server(), vec!["--stdio".into()]].concat();
    let target = match fixture {
        Some(fixture) => vec![fixture.url.clone()],
        None if route == Route::Made => [stdio(), vec!["--no-tasks".into()]].concat(),
        None => stdio(),
    };
    Endpoint::start(&[serve, settings, target].concat(), &folder.join("outlast")).map(Some)
}

/// A file with the fixture under its own names and a second server: one that offers nothing, or the fixture again.
fn file(fixture: Option<&Endpoint>, tools: &Tools, folder: &Path) -> Result<PathBuf> {
    let command = |words: &[&str]| {
        let words = [tools.server(), words.iter().map(|word| (*word).to_owned()).collect()].concat();
        format!("command = {:?}\nargs = {:?}\n", words[0], &words[1..])
    };
    let (first, second) = match fixture {
        Some(fixture) => (format!("url = {:?}\n", fixture.url), command(&["--stdio", "--nothing"])),
        None => (command(&["--stdio"]), command(&["--stdio"])),
    };
    let path = folder.join("outlast.toml");
    let text = format!("[servers.first]\n{first}expose = \"plain-names\"\n\n[servers.second]\n{second}");
    std::fs::write(&path, text)?;
    Ok(path)
}

/// Tasks are on: what they add must not cost a server anything that it passes without.
fn settings(route: Route) -> &'static [&'static str] {
    match route {
        // The suite wants a handle even of what is answered soon, and of one tool never.
        Route::Made => {
            &["--tasks", "--state", "none", "--task-after", "1ms", "--tool", "greet=task:forbidden"]
        }
        _ => &["--tasks", "--state", "none"],
    }
}

/// What one start of the suite can do: a whole revision, but extensions only one scenario at a time.
fn batches<'a>(scenarios: &[&'a Scenario]) -> Vec<(String, Vec<&'a Scenario>)> {
    let mut batches: BTreeMap<String, Vec<&Scenario>> = BTreeMap::new();
    for scenario in scenarios {
        let label = if scenario.revision == EXTENSION { &scenario.name } else { &scenario.revision };
        batches.entry(label.clone()).or_default().push(scenario);
    }
    batches.into_iter().collect()
}

/// Lets the suite's server at a client; the suite starts it by itself.
pub fn client(route: Route, scenario: &Scenario, tools: &Tools) -> Result<Vec<(Scenario, Checks)>> {
    // The suite cuts this at blanks, so a path with a blank in it cannot be helped.
    let mut client = format!("{} {}", tools.node.display(), tools.fixture.join("client.js").display());
    if route == Route::Outlast {
        client += &format!(" --through {}", tools.outlast()?);
    }
    let mut suite = tools.suite();
    suite.args(["client", "--command", &client]);
    let folder = tools.output.join(format!("client-{route}")).join(&scenario.revision);
    suite::run(suite, &[scenario], &folder.join(&scenario.name))
}

/// Does the work for every item, in their order, a few at once.
pub fn in_parallel<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(item) = items.get(index) else { break };
                    let result = work(item);
                    results.lock().unwrap_or_else(PoisonError::into_inner).insert(index, result);
                }
            });
        }
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}
