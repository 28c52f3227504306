//! `cargo xtask conformance`: the MCP conformance suite, directly and through outlast.
//!
//! The suite examines servers, so a server that passes all of it (`tests/conformance`) is put in
//! front of it: directly, behind outlast over HTTP and over stdio, and twice at the merged door. For
//! the scenarios about tasks there is one more: outlast has to make the tasks of a server that has none. It
//! also examines clients, so an SDK's client meets the suite's servers directly and through
//! outlast. What is passed directly must be passed through outlast, check by check;
//! `tests/conformance/expected.txt` says how many that are and explains each exception.
//!
//! Not here: what has to be installed (`setup.rs`), which scenarios there are (`scenarios.rs`),
//! how they are run (`examine.rs`, `suite.rs`), what must come out (`expected.rs`).

// A tool of ours, not the product: it may look at the clock and speak on stdout.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)]

mod checks;
mod examine;
mod expected;
mod route;
mod scenarios;
mod setup;
mod suite;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};

use crate::amount::Amount;
use crate::interop::client::{adopt_orphans, leftovers};
use crate::needs;
use checks::Checks;
use expected::Expected;
use route::Route;
use scenarios::{Leg, Scenario};
use setup::Tools;

/// Scenarios that measure time to a few hundred milliseconds run when nothing else does.
const TIMED: &str = "sse-retry";

const USAGE: &str = "\
usage: cargo xtask conformance [--direct-only | --outlast PATH] [--counts] [REVISION [SCENARIO]]

  cargo xtask conformance                        everything
  cargo xtask conformance 2026-07-28             one revision, or `extension`
  cargo xtask conformance 2025-11-25 ping        one scenario

      --direct-only   without outlast: does the fixture pass?
      --outlast PATH  this binary instead of the debug build
      --counts        print what passes directly, in the words of expected.txt";

#[derive(Default)]
struct Options {
    direct_only: bool,
    counts: bool,
    outlast: Option<PathBuf>,
    names: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--direct-only" => options.direct_only = true,
            "--counts" => options.counts = true,
            "--outlast" => {
                let path = args.next().context("--outlast needs a path")?;
                options.outlast = Some(std::path::absolute(path)?);
            }
            flag if flag.starts_with('-') => bail!("unknown flag `{flag}`\n{USAGE}"),
            name => options.names.push(name.to_owned()),
        }
    }
    ensure!(options.names.len() <= 2 && !(options.direct_only && options.outlast.is_some()), "{USAGE}");
    options.direct_only |= options.counts;
    Ok(options)
}

/// Runs the scenarios that the arguments name; an error if one of them does not come out as expected.
pub fn run(args: &[String], amount: &mut Amount) -> Result<()> {
    needs::require(&["node", "npm"])?;
    let options = parse(args)?;
    let tools = setup::prepare(options.outlast, options.direct_only)?;
    let all = scenarios::all(&tools)?;
    let scenarios = chosen(&all, &options.names)?;
    adopt_orphans()?;
    let started = Instant::now();
    let routes = if options.direct_only { &Route::ALL[..1] } else { &Route::ALL };
    let Results { found, mut complaints } = run_all(&scenarios, routes, &tools);
    if options.counts {
        print!("{}", expected::counts(&found));
        return Ok(());
    }
    let expected = Expected::read(&tools.sources)?;
    complaints.extend(expected.complaints(&found, &scenarios));
    complaints.extend(expected.gone(&all));
    let passes: usize = found.values().map(Checks::passes).sum();
    amount.add(passes as u64, "checks");
    complaints.extend(leftovers().into_iter().map(|left| format!("still running afterwards: {left}")));
    report(&found, &complaints, started)
}

fn chosen(all: &[Scenario], names: &[String]) -> Result<Vec<Scenario>> {
    let wanted = |scenario: &&Scenario| {
        names.first().is_none_or(|revision| scenario.revision == *revision)
            && names.get(1).is_none_or(|name| scenario.name == *name)
    };
    let chosen: Vec<_> = all.iter().filter(wanted).cloned().collect();
    ensure!(!chosen.is_empty(), "the suite knows no such scenario");
    Ok(chosen)
}

/// What came out, by scenario and route.
type Found = BTreeMap<(Scenario, Route), Checks>;

/// What all found, and what went wrong with those that could not be run.
#[derive(Default)]
struct Results {
    found: Found,
    complaints: Vec<String>,
}

impl Results {
    fn add(&mut self, route: Route, result: Result<Vec<(Scenario, Checks)>>) {
        match result {
            Ok(checks) => {
                self.found.extend(checks.into_iter().map(|(scenario, checks)| ((scenario, route), checks)));
            }
            Err(error) => self.complaints.push(format!("route {route}: {error:#}")),
        }
    }
}

fn run_all(scenarios: &[Scenario], routes: &[Route], tools: &Tools) -> Results {
    let mut results = Results::default();
    let of = |leg: Leg, route: &Route| -> Vec<&Scenario> {
        scenarios.iter().filter(|scenario| scenario.leg == leg && route.is_for(scenario)).collect()
    };
    for route in routes {
        let servers = of(Leg::Server, route);
        if !servers.is_empty() {
            results.add(*route, examine::server(*route, &servers, tools));
        }
    }
    for route in routes {
        let (timed, others): (Vec<&Scenario>, Vec<_>) =
            of(Leg::Client, route).into_iter().partition(|scenario| scenario.name == TIMED);
        let examine = |scenario: &&Scenario| examine::client(*route, scenario, tools);
        let found = examine::in_parallel(&others, examine).into_iter().chain(timed.iter().map(examine));
        found.for_each(|result| results.add(*route, result));
    }
    results
}

fn report(found: &Found, complaints: &[String], started: Instant) -> Result<()> {
    let mut passes: BTreeMap<(Leg, &str, Route), usize> = BTreeMap::new();
    for ((scenario, route), checks) in found {
        *passes.entry((scenario.leg, &scenario.revision, *route)).or_default() += checks.passes();
    }
    for ((leg, revision, route), passes) in passes {
        println!("{leg} {revision} {route}: {passes} passed");
    }
    for complaint in complaints {
        println!("FAIL  {complaint}");
    }
    println!("{} scenarios and routes in {:.0} s", found.len(), started.elapsed().as_secs_f32());
    ensure!(complaints.is_empty(), "not as tests/conformance/expected.txt says");
    Ok(())
}
