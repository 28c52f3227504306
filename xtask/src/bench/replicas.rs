//! `cargo xtask bench replicas`: what several outlast over one PostgreSQL do, against the database alone and one outlast.
//!
//! Unlike the other tables nothing is pinned to one core: the database, the replicas and the clients share whatever the
//! machine has, so a rate says what this machine does with all of it. What is compared is taken seconds apart.
//!
//! Map: `fleet` starts the database and the replicas, `load` is the clients, `measures` takes the figures.

mod fleet;
mod load;
mod measures;

use anyhow::{Result, ensure};

use super::gateway::{Goal, Row, Sample, markdown, medians, row};
use super::options::Options;
use super::targets::Programs;

/// Every figure.
const ROWS: [Row; 11] = [
    row("inserts", "single-row inserts by tokio-postgres, 64 connections", "rows/s", Goal::None),
    row("tasks", "task handles, 64 clients of one replica", "handles/s", Goal::None),
    row("tasks_share", "task handles ÷ single-row inserts", "×", Goal::AtLeast(0.5)),
    row("two_tasks", "task handles, 64 clients of two replicas", "handles/s", Goal::None),
    row(
        "take_over",
        "take-over after `kill -9` of the owner on another machine, longest",
        "s",
        Goal::AtMost(17.0),
    ),
    row(
        "rest",
        "3 replicas, 100,000 live tickets, nobody waits: statements of each",
        "/s",
        Goal::AtMost(20.0),
    ),
    row("waits", "the same, and somebody waits at each for a ticket of another", "/s", Goal::AtMost(20.0)),
    row("one", "calls of a sleeping server, 64 clients, one replica", "calls/s", Goal::None),
    row("two", "the same with 128 clients, two replicas", "calls/s", Goal::None),
    row("two_share", "two replicas ÷ one", "×", Goal::AtLeast(1.9)),
    row(
        "instructions",
        "a call without a ticket: instructions with the database ÷ without",
        "×",
        Goal::AtMost(1.02),
    ),
];

/// Takes all figures and shows them; a whole run is published.
pub fn run(options: &Options, programs: &Programs) -> Result<()> {
    let mut samples: Vec<Sample> = Vec::new();
    for round in 0..options.rounds {
        println!("replicas, round {} of {}", round + 1, options.rounds);
        samples.extend(measures::take(programs, options)?);
    }
    let values = medians(&ROWS, &samples);
    ensure!(options.only.is_some() || values.len() == ROWS.len(), "not everything was measured");
    let rows = markdown(&values);
    println!("\n{rows}");
    if options.is_whole() {
        super::publish_at("docs/replicas-bench.md", &rows)?;
    }
    let missed = values.iter().filter(|(row, value)| !row.goal.is_met(*value)).count();
    ensure!(missed == 0 || !options.check, "{missed} goals were missed");
    Ok(())
}
