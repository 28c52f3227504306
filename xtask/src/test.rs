//! `cargo xtask test`: everything that must hold, in the order of how fast it tells.
//!
//! A part that fails does not stop the others. The end is one table of what ran, how much of it and how long
//! (`test/report.rs`); if a part failed, the exit status says so and the last lines name it.

mod report;

use std::time::Instant;

use crate::amount::Amount;
use crate::shell::{self, cargo, program, root};
use crate::{bench, conformance, fuzz, interop, needs, schema, sizes, ui};
use anyhow::{Context, Result, bail};
use report::{Report, Row};

/// The worlds of the simulation, with their seeds and the calls that these must make at least.
const WORLDS: [(&str, u64, u64); 5] = [
    ("pipes", 2100, 1_000_000),
    ("service", 900, 400_000),
    ("gateway", 60, 25_000),
    ("held", 1500, 8_000),
    ("crash", 4000, 20_000),
];

/// Seconds for each fuzz target.
const FUZZ_SECONDS: u64 = 12;

struct Part {
    name: &'static str,
    /// What it shows, in a few words.
    what: &'static str,
    /// Tools of `needs.rs`, beside the compiler.
    needs: &'static [&'static str],
    /// Says as it goes how much it did, so that a failure does not hide it.
    run: fn(&mut Amount) -> Result<()>,
}

const PARTS: [Part; 10] = [
    Part {
        name: "lint",
        what: "formatting, clippy, sizes of functions",
        needs: &["rustfmt", "clippy"],
        run: lint,
    },
    Part {
        name: "unit",
        what: "scenarios and unit tests, no real time",
        needs: &["postgresql", "pgbouncer"],
        run: unit,
    },
    Part {
        name: "schema",
        what: "every message against the protocol's schemas",
        needs: &["node", "npm"],
        run: |amount| schema::run(&[], amount),
    },
    Part { name: "sim", what: "the seeded simulation", needs: &[], run: sim },
    Part {
        name: "fuzz",
        what: "the parsers and the engine on any bytes",
        needs: &["c++"],
        run: |amount| fuzz::all(FUZZ_SECONDS, amount),
    },
    Part {
        name: "e2e",
        what: "the program with real processes, files and sockets",
        needs: &["curl", "setpriv", "prlimit", "postgresql", "nginx", "promtool", "systemd"],
        run: e2e,
    },
    Part {
        name: "ui",
        what: "the dashboard in a real browser",
        needs: &["node", "npm", "chromium"],
        run: |amount| ui::run(&[], amount),
    },
    Part { name: "bench", what: "the benchmark works, counted goals are met", needs: &[], run: bench_smoke },
    Part {
        name: "interop",
        what: "the official SDKs, directly and through outlast",
        needs: &["node", "npm", "python3", "venv", "postgresql", "nginx"],
        run: interop_all,
    },
    Part {
        name: "conformance",
        what: "the MCP conformance suite, directly and through outlast",
        needs: &["node", "npm"],
        run: |amount| conformance::run(&[], amount),
    },
];

/// Runs all parts, or the ones that are named.
pub fn run(names: &[String]) -> Result<()> {
    for name in names {
        if !PARTS.iter().any(|part| part.name == name) {
            bail!("no part `{name}`; there are: {}", PARTS.map(|part| part.name).join(", "));
        }
    }
    let chosen =
        || PARTS.iter().filter(|part| names.is_empty() || names.iter().any(|name| name == part.name));
    let tools: Vec<&str> = chosen().flat_map(|part| part.needs).copied().chain(["rustc", "cc"]).collect();
    needs::require(&tools)?;
    let mut report = Report::default();
    chosen().for_each(|part| report.add(part.take()));
    println!("\n{}", report.table());
    report.verdict()
}

impl Part {
    fn take(&self) -> Row {
        println!("\n== {}", self.name);
        let (started, mut amount) = (Instant::now(), Amount::default());
        let failure = (self.run)(&mut amount).err();
        if let Some(why) = &failure {
            println!("{} FAILED: {why:#}", self.name);
        }
        Row { part: self.name, what: self.what, amount, took: started.elapsed(), failure }
    }
}

fn lint(amount: &mut Amount) -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])?;
    sizes::run(amount)
}

fn unit(amount: &mut Amount) -> Result<()> {
    tests(&["-p", "outlast-engine", "-p", "outlast-testkit", "-p", "xtask"], amount)?;
    tests(&["-p", "outlast", "--lib"], amount)
}

/// Runs and counts tests.
fn tests(words: &[&str], amount: &mut Amount) -> Result<()> {
    let command = shell::cargo_command(&[&["test", "--quiet", "--no-fail-fast"], words].concat());
    let (said, result) = shell::run_and_keep(command)?;
    amount.add_tests(&said);
    result
}

/// Seeds of each world that are recorded and played.
const REPLAYED: u64 = 200;

fn sim(amount: &mut Amount) -> Result<()> {
    cargo(&["build", "--quiet", "-p", "outlast-testkit", "--bin", "sim", "--features", "planted"])?;
    WORLDS.iter().try_for_each(|(world, seeds, calls)| simulate(world, *seeds, *calls, amount))?;
    WORLDS.iter().try_for_each(|(world, ..)| replay(world, amount))?;
    // A judge that does not see a planted fault would not see a real one.
    let (_, result) = shell::run_and_keep(program("target/debug/sim", &["planted"]))?;
    result.context("a planted fault was not found")
}

fn simulate(world: &str, seeds: u64, least: u64, amount: &mut Amount) -> Result<()> {
    let simulation = program("target/debug/sim", &[world, "--seeds", &seeds.to_string(), "--bounds"]);
    let (said, result) = shell::run_and_keep(simulation)?;
    result.context("an invariant broke, or a bound was not reached")?;
    let calls = said.split_once("seeds: ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    let calls = calls.context("the simulation does not say how many calls it made")?;
    amount.add(seeds, "seeds");
    amount.add(calls, "calls");
    if calls < least {
        bail!("the simulation made fewer than {least} calls");
    }
    Ok(())
}

/// What is recorded of a world does the same when it is played.
fn replay(world: &str, amount: &mut Amount) -> Result<()> {
    let (seeds, calls) = (REPLAYED.to_string(), "100");
    let words = [world, "--seeds", &seeds, "--calls", calls, "--replay"];
    let (_, result) = shell::run_and_keep(program("target/debug/sim", &words))?;
    amount.add(REPLAYED, "seeds");
    result.context("a recording does not do the same when it is played")
}

fn e2e(amount: &mut Amount) -> Result<()> {
    cargo(&["build", "--quiet", "-p", "outlast", "-p", "outlast-testkit", "--bins"])?;
    // Most of these wait for processes, so they do not need a core each.
    tests(&["-p", "outlast", "--tests", "--", "--test-threads", "16"], amount)
}

fn bench_smoke(amount: &mut Amount) -> Result<()> {
    bench::run(&["--quick".to_owned()])?;
    bench::run(&["gateway".to_owned(), "--quick".to_owned()])?;
    amount.add(bench::figures_of_last_part()?, "figures");
    Ok(())
}

fn interop_all(amount: &mut Amount) -> Result<()> {
    std::env::set_current_dir(root())?;
    interop::run(&[], amount)
}
