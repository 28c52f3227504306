//! Runs the simulation: `sim [WORLD] [--calls N] [--seeds N] [--first SEED]`, or one seed:
//! `sim WORLD --seed SEED`. The worlds are `pipes`, `service`, `gateway`, `held` and `crash`. With `--bounds` it fails unless every
//! bound of `sim/bounds.rs` was reached, which takes the usual number of seeds. With `--replay` every engine is recorded,
//! and must do the same when its recording is played. A seed that fails is recorded, for `outlast replay`. With the
//! feature `planted`, `sim planted [NAME]` tells in which seed each fault of `outlast_engine::planted` is found, or one.

#![allow(clippy::disallowed_methods)] // a program of the tests, not of the product

use outlast_engine::reached::Bound;
use outlast_testkit::sim::subject::{Recording, recorded};
use outlast_testkit::sim::{Outcome, bounds, crash, gateway, held, pipes, service};
use std::io::Write;
use std::ops::Range;
use std::path::PathBuf;
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
    if words.iter().any(|word| word == "--replay") {
        return replayed(world, first..first + count, calls);
    }
    let mut sum = Outcome::default();
    for seed in first..first + count {
        let outcome = match std::panic::catch_unwind(|| world.1(seed, calls)) {
            Ok(outcome) => outcome,
            Err(_) => return failed(world, seed, calls),
        };
        if seed % REPEATED == 0 && world.1(seed, calls) != outcome {
            say(&format!("seed {seed} did not do the same twice"));
            return failed(world, seed, calls);
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
    use outlast_testkit::sim::plant::{Planted, SEEDS, find, is_told_by_replay};
    use std::sync::atomic::{AtomicUsize, Ordering};
    std::panic::set_hook(Box::new(|_| {}));
    let named = |fault: &&Planted| words.contains(&format!("{fault:?}"));
    let chosen: Vec<Planted> = Planted::ALL.iter().filter(named).copied().collect();
    let faults = if chosen.is_empty() { &Planted::ALL[..] } else { &chosen };
    let (next, missed, told) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let work = || {
        while let Some(fault) = faults.get(next.fetch_add(1, Ordering::Relaxed)) {
            match find(*fault) {
                Some((world, seed, why)) => {
                    let why: String = why.chars().take(80).collect();
                    let replay = is_told_by_replay(world, seed, *fault);
                    told.fetch_add(usize::from(replay), Ordering::Relaxed);
                    let silent = if replay { "" } else { " (and not by its recording)" };
                    say(&format!("{fault:?}: found in {world}, seed {seed}{silent}: {}", why.escape_debug()));
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
    let told = told.into_inner();
    say(&format!("planted: {} faults, {missed} not found, {told} told by a recording", faults.len()));
    if missed == 0 && told > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Records every engine of these seeds and plays the recordings.
fn replayed(world: &World, seeds: Range<u64>, calls: usize) -> ExitCode {
    let (started, mut engines, mut bytes) = (Instant::now(), 0, 0);
    for seed in seeds.clone() {
        let (outcome, recordings) = recorded(|| world.1(seed, calls));
        for recording in &recordings {
            if let Err(why) = recording.replay() {
                say(&format!("seed {seed} does not do the same when it is replayed: {why}"));
                return failed(world, seed, calls);
            }
            (engines, bytes) = (engines + 1, bytes + recording.text.len());
        }
        if outcome.is_none() {
            return failed(world, seed, calls);
        }
    }
    say(&format!(
        "{}, {} seeds replayed: {engines} engines, {bytes} bytes, {:.1} s",
        world.0,
        seeds.end - seeds.start,
        started.elapsed().as_secs_f64()
    ));
    ExitCode::SUCCESS
}

/// The seed is the same every time, so it is recorded only now that somebody wants to see it.
fn failed((name, world): &World, seed: u64, calls: usize) -> ExitCode {
    say(&format!(
        "to see it again: cargo run -p outlast-testkit --bin sim -- {name} --seed {seed} --calls {calls}"
    ));
    std::panic::set_hook(Box::new(|_| {}));
    let (_, recordings) = recorded(|| world(seed, calls));
    for (life, recording) in recordings.iter().enumerate() {
        match written(&format!("outlast-{name}-{seed}-{life}.jsonl"), recording) {
            Ok(path) => say(&format!("or what its engine decided: outlast replay {}", path.display())),
            Err(error) => say(&format!("its recording cannot be written: {error}")),
        }
    }
    ExitCode::FAILURE
}

fn written(name: &str, recording: &Recording) -> std::io::Result<PathBuf> {
    let path = std::env::temp_dir().join(name);
    std::fs::write(&path, &recording.text)?;
    Ok(path)
}

fn say(line: &str) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
