//! Runs the simulation: `sim [--calls N] [--seeds N] [--first SEED]`, or one seed: `sim --seed SEED`.

#![allow(clippy::disallowed_methods)] // a program of the tests, not of the product

use outlast_testkit::sim::Outcome;
use outlast_testkit::sim::pipes::run;
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Every so many seeds one is run twice, and must do the same.
const REPEATED: u64 = 50;

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
    let started = Instant::now();
    let mut sum = Outcome::default();
    for seed in first..first + count {
        let outcome = match std::panic::catch_unwind(|| run(seed, calls)) {
            Ok(outcome) => outcome,
            Err(_) => return failed(seed, calls),
        };
        if seed % REPEATED == 0 && run(seed, calls) != outcome {
            say(&format!("seed {seed} did not do the same twice"));
            return failed(seed, calls);
        }
        sum += outcome;
    }
    say(&format!(
        "{count} seeds: {} calls, {} events, {} failed by a limit or a fault, {} cancelled, {} progress, {} server runs, {:.1} s",
        sum.calls,
        sum.events,
        sum.failed,
        sum.cancelled,
        sum.progress,
        sum.runs,
        started.elapsed().as_secs_f64()
    ));
    ExitCode::SUCCESS
}

fn failed(seed: u64, calls: usize) -> ExitCode {
    say(&format!("to see it again: cargo run -p outlast-testkit --bin sim -- --seed {seed} --calls {calls}"));
    ExitCode::FAILURE
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
