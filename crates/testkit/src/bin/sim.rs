//! Runs the simulation: `sim [WORLD] [--calls N] [--seeds N] [--first SEED]`, or one seed:
//! `sim WORLD --seed SEED`. The worlds are `pipes`, `service`, `gateway`, `held` and `crash`. With `--bounds` it fails unless every
//! bound of `sim/bounds.rs` was reached, which takes the usual number of seeds. With the feature `planted`,
//! `sim planted [NAME]` tells in which seed each fault of `outlast_engine::planted` is found, or one.

#![allow(clippy::disallowed_methods)] // a program of the tests, not of the product

use outlast_engine::reached::Bound;
use outlast_testkit::sim::{Outcome, bounds, crash, gateway, held, pipes, service};
use std::io::Write;
use std::process::ExitCode;
use std::time::Instant;

/// Every so many seeds one is run twice, and must do the same.
const REPEATED: u64 = 50;

type World = (&'static str, fn(u64, usize) -> Outcome);

const WORLDS: [World; 5] = [
    ("pipes", pipes::run),
    ("service", service::run),
    ("gateway", gateway::run),
    ("held", |seed, _| held::run(seed)),
    ("crash", |seed, _| crash::run(seed)),
];

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
    #[cfg(feature = "planted")]
    if words.iter().any(|word| word == "planted") {
        return planted(&words);
    }
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
    say(&format!("bounds reached: {}", bounds_reached(&sum)));
    if words.iter().any(|word| word == "--bounds") {
        return missed_bounds(world.0);
    }
    ExitCode::SUCCESS
}

/// How often each bound was reached.
fn bounds_reached(sum: &Outcome) -> String {
    let [calls, sessions, messages] = sum.bounds;
    let of_engine = Bound::ALL.iter().map(|bound| (format!("{bound:?}"), bound.count()));
    let settings = [("max-calls", calls), ("max-sessions", sessions), ("max-message", messages)];
    let all = of_engine.chain(settings.map(|(name, count)| (name.to_owned(), count)));
    let shown: Vec<String> =
        all.filter(|(_, count)| *count > 0).map(|(name, count)| format!("{count} {name}")).collect();
    shown.join(", ")
}

/// Fails if a world did not reach a bound that it is there to reach.
fn missed_bounds(world: &str) -> ExitCode {
    let missed: Vec<&Bound> = bounds::of(world).iter().filter(|bound| bound.count() == 0).collect();
    if missed.is_empty() {
        return ExitCode::SUCCESS;
    }
    say(&format!("bounds that no seed reached: {missed:?}"));
    ExitCode::FAILURE
}

/// Plants every fault in turn, or those that are named, on every core, and says where each is found.
#[cfg(feature = "planted")]
fn planted(words: &[String]) -> ExitCode {
    use outlast_testkit::sim::plant::{Planted, SEEDS, find};
    use std::sync::atomic::{AtomicUsize, Ordering};
    std::panic::set_hook(Box::new(|_| {}));
    let named = |fault: &&Planted| words.contains(&format!("{fault:?}"));
    let chosen: Vec<Planted> = Planted::ALL.iter().filter(named).copied().collect();
    let faults = if chosen.is_empty() { &Planted::ALL[..] } else { &chosen };
    let (next, missed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            match find(*fault) {
                Some((world, seed, why)) => {
                    let why: String = why.chars().take(80).collect();
                    say(&format!("{fault:?}: found in {world}, seed {seed}: {}", why.escape_debug()));
                }
                None => {
                    missed.fetch_add(1, Ordering::Relaxed);
                    say(&format!("{fault:?}: not found within {SEEDS} seeds"));
                }
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| drop(scope.spawn(work)));
    });
    let missed = missed.into_inner();
    say(&format!("planted: {} faults, {missed} not found", faults.len()));
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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
