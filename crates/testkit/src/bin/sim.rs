//! Runs the simulation: `sim [WORLD] [--calls N] [--seeds N] [--first SEED]`, or one seed:
//! `sim WORLD --seed SEED`. The worlds are `pipes`, `service` and `crash`.

#![allow(clippy::disallowed_methods)] // a program of the tests, not of the product

use outlast_testkit::sim::{Outcome, crash, pipes, service};
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Every so many seeds one is run twice, and must do the same.
const REPEATED: u64 = 50;

type World = (&'static str, fn(u64, usize) -> Outcome);

const WORLDS: [World; 3] =
    [("pipes", pipes::run), ("service", service::run), ("crash", |seed, _| crash::run(seed))];

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |name: &str| {
        let at = words.iter().position(|word| word == name)?;
        words.get(at + 1)?.parse::<u64>().ok()
    };
    let calls = number("--calls").unwrap_or(500) as usize;
    let (first, count) = match number("--seed") {
        Some(seed) => (seed, 1),
        None => (number("--first").unwrap_or(1), number("--seeds").unwrap_or(200)),
    };
    let named = |world: &&World| words.iter().any(|word| word == world.0);
    let world = WORLDS.iter().find(named).unwrap_or(&WORLDS[0]);
    let started = Instant::now();
    let mut sum = Outcome::default();
    for seed in first..first + count {
        let outcome = match std::panic::catch_unwind(|| world.1(seed, calls)) {
            Ok(outcome) => outcome,
            Err(_) => return failed(world.0, seed, calls),
        };
        if seed % REPEATED == 0 && world.1(seed, calls) != outcome {
            say(&format!("seed {seed} did not do the same twice"));
            return failed(world.0, seed, calls);
        }
        sum += outcome;
    }
    say(&format!(
        "{}, {count} seeds: {} calls, {} events, {} failed by a limit or a fault, {} cancelled, {} progress, {} streams resumed, {} server runs, {} crashes, {:.1} s",
        world.0,
        sum.calls,
        sum.events,
        sum.failed,
        sum.cancelled,
        sum.progress,
        sum.resumed,
        sum.runs,
        sum.crashes,
        started.elapsed().as_secs_f64()
    ));
    ExitCode::SUCCESS
}

fn failed(world: &str, seed: u64, calls: usize) -> ExitCode {
    say(&format!(
        "to see it again: cargo run -p outlast-testkit --bin sim -- {world} --seed {seed} --calls {calls}"
    ));
    ExitCode::FAILURE
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
