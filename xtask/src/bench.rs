//! `cargo xtask bench`: what outlast costs, against a process in the middle that only copies bytes.
//!
//! The same echo server is reached directly, through `floor` and through `outlast`. Driver and
//! targets share one core, so that every microsecond a target spends is a microsecond later and no
//! idle core hides it. Within a round each measure runs against each target in turn, seconds apart,
//! and a ratio is taken inside its round before the median over rounds: a noisy minute then hits
//! both sides of it.
//!
//! Two tables: over pipes, where ratios are to `floor`, and over HTTP, where they are to the server
//! itself and `floor`, a bare copy between sockets, stands beside them.
//!
//! A third, of many servers behind one address, and a fourth, of replicas over one database, stand by themselves
//! (`gateway`, `replicas`).
//!
//! `--against PATH` compares with another outlast instead (`against`).
//!
//! Map: `tables` names both, `figures` has their goals, `measures`, `bursts` and `http` take the
//! figures, `instructions` counts instead of timing, `link` talks to a target over pipes, `results` keeps the samples, `table`, `record` and
//! `plot` show them.
//!
//! Not here: how fast outlast is over a network; everything runs on one machine.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a benchmark lives in real time and is started by a person"
)]

mod against;
mod bursts;
mod figures;
mod gateway;
mod http;
mod instructions;
mod link;
mod machine;
mod measures;
mod messages;
mod options;
pub mod order;
mod plot;
mod processes;
mod record;
mod replicas;
mod results;
mod running;
mod sizes;
mod table;
mod tables;
mod targets;

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::shell::cargo_command;
use machine::Machine;
use options::Options;
use results::Results;
use sizes::Sizes;
use tables::Table;
use targets::{Programs, Target};

pub fn run(words: &[String]) -> Result<()> {
    let options = Options::parse(words)?;
    if cfg!(debug_assertions) {
        return run_optimised("bench", words);
    }
    std::fs::create_dir_all(options::scratch()).context("cannot create target/bench")?;
    let programs = Programs::build(options.outlast.as_deref())?;
    if options.replicas {
        return replicas::run(&options, &programs);
    }
    let machine = machine::pin_to_one_core()?;
    machine::allow_many_files()?;
    println!("{machine}");
    if options.gateway {
        return gateway::run(&options, &programs, &machine);
    }
    if let Some(other) = &options.against {
        return against::run(&options, &programs, other);
    }
    let (mut all_measured, mut all_met, mut counts_met) = (true, true, true);
    for table in &options.tables {
        let results = run_table(table, &options, &programs, &machine)?;
        all_measured &= results.failures().is_empty();
        all_met &= results.all_met();
        counts_met &= results.counts_met();
    }
    ensure!(all_measured, "not everything could be measured");
    ensure!(counts_met, "a goal was missed that needs no quiet machine");
    ensure!(all_met || !options.check, "not every goal was met");
    Ok(())
}

/// Takes a table and shows it.
fn run_table(
    table: &'static Table,
    options: &Options,
    programs: &Programs,
    machine: &Machine,
) -> Result<Results> {
    let results = take_rounds(table, options, programs);
    println!("\n{}", table::render(&results));
    let (json, svg) = (options.json(table), options.svg(table));
    write(&json, &record::render(&results, machine, options))?;
    write(&svg, &plot::render(&results, machine))?;
    if options.is_whole() {
        publish_at(table.page, &table::markdown(&results))?;
    }
    println!("written: {}, {}", json.display(), svg.display());
    Ok(results)
}

/// Runs the same command in a release build: the driver's own cost is part of both sides of every
/// ratio, so a slow driver would flatter the proxy.
fn run_optimised(command: &str, words: &[String]) -> Result<()> {
    let mut cargo = cargo_command(&["run", "--quiet", "--release", "-p", "xtask", "--", command]);
    let status = cargo.args(words).status().context("cannot start cargo")?;
    if !status.success() {
        bail!("`cargo xtask {command}` failed ({status})");
    }
    Ok(())
}

/// How many figures of outlast the last quick run has taken, with one of the gateway.
pub fn figures_of_last_part() -> Result<u64> {
    let mut count = gateway::FIGURES as u64;
    for table in &tables::TABLES {
        let path = options::scratch().join(format!("{}-part.json", table.name));
        let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let record: serde_json::Value = serde_json::from_slice(&text)?;
        let figures = record["figures"].as_array().context("a record without figures")?;
        count += figures.iter().filter(|figure| !figure["outlast"].is_null()).count() as u64;
    }
    Ok(count)
}

/// Each round takes every measure of every target.
///
/// What failed once is not tried again: a hung target would cost its whole time limit every round.
fn take_rounds(table: &'static Table, options: &Options, programs: &Programs) -> Results {
    let sizes = Sizes::new(options.quick);
    let mut results = Results::new(table);
    for round in 0..options.rounds {
        println!("{}, round {} of {}", table.name, round + 1, options.rounds);
        for measure in table.measures.iter().filter(|measure| options.wants(measure.name)) {
            for target in in_turn(measure.targets, round) {
                if results.has_failed(measure.name, target) {
                    continue;
                }
                match (measure.take)(programs, target, &sizes) {
                    Ok(samples) => results.add(round, target, samples),
                    Err(error) => results.fail(measure.name, target, &error),
                }
            }
        }
    }
    results
}

/// Another target goes first in each round, so that no one always runs in another's wake.
fn in_turn(targets: &[Target], round: usize) -> impl Iterator<Item = Target> {
    let count = targets.len();
    (0..count).map(move |place| targets[(place + round) % count])
}

/// Puts rows into a page, between its two marks.
fn publish_at(page: &str, rows: &str) -> Result<()> {
    const MARKS: [&str; 2] = ["<!-- bench -->\n", "<!-- /bench -->"];
    let path = options::root().join(page);
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {page}"))?;
    let place = || format!("{page} has no place for the table");
    let (before, rest) = text.split_once(MARKS[0]).with_context(place)?;
    let (_, after) = rest.split_once(MARKS[1]).with_context(place)?;
    write(&path, &[before, MARKS[0], rows, MARKS[1], after].concat())
}

fn write(path: &Path, text: &str) -> Result<()> {
    let what = || format!("cannot write {}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).with_context(what)?;
    }
    std::fs::write(path, text).with_context(what)
}
