//! Tasks with the clients of real SDKs, before servers that know nothing of them.
//!
//! Legacy tasks with the TypeScript SDK 1.x, the modern extension with the Python SDK 2.x and with `rmcp`;
//! each every way there is. There is nothing to compare with: directly, these servers have no tasks. The
//! clients say what they expect.
//!
//! And `server-everything`, which has tasks of its own: those must be the same through outlast.

use std::path::PathBuf;
use std::slice::from_ref;

use anyhow::Result;

use super::client::{self, Outcome, Run};
use super::compare::differences;
use super::endpoint::Endpoint;
use super::matrix::{Sdk, Server, Way, server};
use super::tally::{Tally, Verdict};
use super::{Places, RUN_LIMIT, before, http};

/// Nothing is left in the folder of whoever runs this.
const SETTINGS: [&str; 5] = ["--tasks", "--task-after", "1s", "--state", "none"];

/// The client programs, and the server that each meets. Servers on the TypeScript SDK 1.x say of every tool
/// that it cannot be a task.
const CLIENTS: [(&str, Sdk, &str); 3] =
    [("ts1", Sdk::Ts1, "py1"), ("py2", Sdk::Py2, "py2"), ("rust", Sdk::Rust, "rust")];

pub fn sdks() -> impl Iterator<Item = Sdk> {
    CLIENTS.iter().flat_map(|(_, sdk, met)| [*sdk, server(met).sdk])
}

pub fn check(places: &Places, outlast: &str, tally: &Tally) {
    std::thread::scope(|scope| {
        for (name, sdk, met) in CLIENTS {
            let stage = Stage { places, outlast, name, sdk, server: server(met) };
            scope.spawn(move || Way::ALL.into_iter().for_each(|way| tally.add("tasks", stage.check(way))));
        }
        scope.spawn(|| tally.add("tasks", own(places, outlast)));
    });
}

/// A server with tasks of its own keeps them.
fn own(places: &Places, outlast: &str) -> Verdict {
    let command = server("everything").stdio_command(places);
    let run = |target: &[String], label: &str| {
        let program = [program(places, Sdk::Ts1), vec!["own".to_owned()]].concat();
        run(places, program, target, &format!("own-{label}"))
    };
    let direct = run(&command, "direct");
    judge(&direct)?;
    let complaints = differences(&direct, &run(&before(outlast, &SETTINGS, &command), "outlast"));
    if complaints.is_empty() { Ok(format!("its own: {}", direct.summary())) } else { Err(complaints) }
}

fn judge(run: &Run) -> Verdict {
    let bad = run.outcomes.iter().filter(|(_, outcome)| outcome.ok != Outcome::PASSED);
    let complaints: Vec<String> = bad.map(|(check, outcome)| format!("{check}: {outcome}")).collect();
    if !complaints.is_empty() || run.trouble.is_some() {
        return Err([complaints, run.story()].concat());
    }
    Ok(format!("{}, {:.1} s", run.summary(), run.took.as_secs_f32()))
}

struct Stage<'a> {
    places: &'a Places,
    outlast: &'a str,
    name: &'a str,
    sdk: Sdk,
    server: &'static Server,
}

impl Stage<'_> {
    fn check(&self, way: Way) -> Verdict {
        let who = format!("{} {}", self.name, way.word());
        let run = self.run(way).map_err(|error| vec![format!("{error:#}")]);
        match run.and_then(|run| judge(&run)) {
            Ok(line) => Ok(format!("{who}: {line}")),
            Err(complaints) => Err([vec![who], complaints].concat()),
        }
    }

    fn run(&self, way: Way) -> Result<Run> {
        let command = self.server.stdio_command(self.places);
        match way {
            Way::Stdio => Ok(self.client(&before(self.outlast, &SETTINGS, &command), way)),
            Way::HttpToStdio => self.served(&[vec!["--".to_owned()], command].concat(), way),
            Way::StdioToHttp | Way::Http => {
                let log = log(self.places, &format!("{}-{}-server", self.name, way.word()));
                let server = Endpoint::start(&self.server.http_command(self.places), &log)?;
                let url = from_ref(&server.url);
                let run = if way == Way::Http { self.served(url, way)? } else { self.wrapped(url, way) };
                server.stop()?;
                Ok(run)
            }
        }
    }

    fn wrapped(&self, url: &[String], way: Way) -> Run {
        let words = [&[self.outlast], &SETTINGS[..]].concat();
        let target: Vec<String> = words.into_iter().map(str::to_owned).chain(url.iter().cloned()).collect();
        self.client(&target, way)
    }

    fn served(&self, server: &[String], way: Way) -> Result<Run> {
        let log = format!("tasks-{}-{}-outlast.log", self.name, way.word());
        let proxy = http::serve(self.outlast, &SETTINGS, server, self.places, &log)?;
        let run = self.client(from_ref(&proxy.url), way);
        proxy.stop()?;
        Ok(run)
    }

    fn client(&self, target: &[String], way: Way) -> Run {
        let label = format!("{}-{}", self.name, way.word());
        run(self.places, program(self.places, self.sdk), target, &label)
    }
}

fn program(places: &Places, sdk: Sdk) -> Vec<String> {
    let installed = |path: &str| places.installed.join(path).display().to_string();
    match sdk {
        Sdk::Py2 => vec![installed("py2/bin/python"), installed("py/tasks2.py")],
        Sdk::Rust => vec![places.built.join("rmcp-tasks").display().to_string()],
        _ => vec!["node".to_owned(), installed("ts1/tasks.mjs")],
    }
}

fn run(places: &Places, program: Vec<String>, target: &[String], label: &str) -> Run {
    let command = [&program[..], &["--".to_owned()], target].concat();
    client::run(&command, &log(places, label), RUN_LIMIT)
}

fn log(places: &Places, label: &str) -> PathBuf {
    places.logs().join(format!("tasks-{label}.log"))
}
