//! `cargo xtask test`: everything that must hold, in the order of how fast it tells.

use crate::shell::{cargo, install, program, root};
use crate::{bench, conformance, fuzz, interop, schema};
use anyhow::{Context, Result, bail};
use std::time::Instant;

/// The worlds of the simulation, with their seeds and the calls that these must make at least.
const WORLDS: [(&str, &str, u64); 3] =
    [("pipes", "2100", 1_000_000), ("service", "1400", 400_000), ("crash", "4000", 20_000)];

/// Seconds for each fuzz target.
const FUZZ_SECONDS: u64 = 20;

type Part = (&'static str, fn() -> Result<()>);

const PARTS: [Part; 9] = [
    ("lint", lint),
    ("unit", unit),
    ("schema", schema_all),
    ("sim", sim),
    ("fuzz", fuzz_all),
    ("e2e", e2e),
    ("bench", bench_smoke),
    ("interop", interop_all),
    ("conformance", conformance_all),
];

/// Runs all parts, or the ones that are named.
pub fn run(names: &[String]) -> Result<()> {
    for name in names {
        if !PARTS.iter().any(|(part, _)| part == name) {
            bail!("no part `{name}`; there are: {}", PARTS.map(|(part, _)| part).join(", "));
        }
    }
    let chosen = PARTS.iter().filter(|(part, _)| names.is_empty() || names.iter().any(|name| name == part));
    let mut times = Vec::new();
    for (name, part) in chosen {
        println!("\n== {name}");
        let started = Instant::now();
        part().with_context(|| format!("`{name}` failed; run it alone with: cargo xtask test {name}"))?;
        times.push(format!("{name} {:.0} s", started.elapsed().as_secs_f64()));
    }
    println!("\nall good: {}", times.join(", "));
    Ok(())
}

fn lint() -> Result<()> {
    cargo(&["fmt", "--all", "--check"])?;
    cargo(&["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"])
}

fn unit() -> Result<()> {
    cargo(&["test", "--quiet", "-p", "outlast-engine", "-p", "outlast-testkit", "-p", "xtask"])?;
    cargo(&["test", "--quiet", "-p", "outlast", "--lib"])
}

fn schema_all() -> Result<()> {
    schema::run(&[])
}

fn sim() -> Result<()> {
    cargo(&["build", "--quiet", "-p", "outlast-testkit", "--bin", "sim", "--features", "planted"])?;
    WORLDS.iter().try_for_each(|(world, seeds, calls)| simulate(world, seeds, *calls))?;
    // A judge that does not see a planted fault would not see a real one.
    if !program("target/debug/sim", &["planted"]).status().context("cannot run the simulation")?.success() {
        bail!("a planted fault was not found");
    }
    Ok(())
}

fn simulate(world: &str, seeds: &str, least: u64) -> Result<()> {
    let mut simulation = program("target/debug/sim", &[world, "--seeds", seeds]);
    let output =
        simulation.stderr(std::process::Stdio::inherit()).output().context("cannot run the simulation")?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    if !output.status.success() {
        bail!("an invariant broke");
    }
    let calls = said.split_once("seeds: ").and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
    if calls.is_none_or(|calls| calls < least) {
        bail!("the simulation made fewer than {least} calls");
    }
    Ok(())
}

fn fuzz_all() -> Result<()> {
    fuzz::all(FUZZ_SECONDS)
}

fn e2e() -> Result<()> {
    // The pages that are replayed show what people type.
    if program("curl", &["--version"]).output().is_err() {
        install("curl")?;
    }
    cargo(&["build", "--quiet", "-p", "outlast", "-p", "outlast-testkit", "--bins"])?;
    // Most of these wait for processes, so they do not need a core each.
    cargo(&["test", "--quiet", "-p", "outlast", "--tests", "--", "--test-threads", "16"])
}

fn bench_smoke() -> Result<()> {
    bench::run(&["--quick".to_owned()])
}

fn interop_all() -> Result<()> {
    std::env::set_current_dir(root())?;
    interop::run(&[])
}

fn conformance_all() -> Result<()> {
    conformance::run(&[])
}
