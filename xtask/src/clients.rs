//! `cargo xtask clients`: real MCP clients in pinned versions, measured without a network and without a real model.
//!
//! Each client is started in its default settings with one server, a probe that writes down what the client does
//! (`tests/clients/probe.mjs`), and a scripted model on loopback that asks for the probe's tool. From the records come
//! the figures: how long a silent call may take, whether progress resets that limit, what the client says when it
//! gives up. Then the same slow call goes through outlast. The figures go to `tests/clients/measured.json`, a row for
//! each client, and into the table of `docs/clients.md`.
//!
//! Not here: which clients there are (`list.rs`), how they are installed (`setup.rs`), one start of one client
//! (`run.rs`), what its records say (`record.rs`), which runs make a row (`measure.rs`, `through.rs`, `doctor.rs`), what a row
//! is (`row.rs`), the page (`page.rs`).

// A tool of ours, not the product: it may look at the clock and speak on stdout.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::print_stdout)]

mod doctor;
mod list;
mod measure;
mod page;
mod record;
mod row;
mod run;
mod setup;
mod through;

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context, Result, bail, ensure};

use crate::shell::root;
use list::Client;
use row::{Measured, Row};
use run::Bench;

const USAGE: &str = "\
usage: cargo xtask clients [--outlast PATH] [NAME...]

  cargo xtask clients                  every client; they are run side by side and take about 45 minutes
  cargo xtask clients codex opencode   these alone; the rows of the others stay
  cargo xtask clients --list           what there is, and what was left out
  cargo xtask clients --table          write the table of docs/clients.md again, run nothing

      --outlast PATH  this binary instead of the debug build
      --again         read the records of the last run again, run only what is missing";

#[derive(Default)]
struct Options {
    list: bool,
    table: bool,
    again: bool,
    outlast: Option<PathBuf>,
    names: Vec<String>,
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--list" => options.list = true,
            "--table" => options.table = true,
            "--again" => options.again = true,
            "--outlast" => options.outlast = Some(args.next().context("--outlast needs a path")?.into()),
            word if word.starts_with('-') => bail!("unknown option `{word}`\n{USAGE}"),
            name => options.names.push(name.to_owned()),
        }
    }
    Ok(options)
}

/// Runs the command.
pub fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    if options.list {
        return list::show();
    }
    let ended = if options.table { Ok(()) } else { measure_all(options) };
    let mut measured = Measured::read()?;
    measured.annotate(&list::chosen(&[])?);
    measured.write()?;
    page::write(&measured)?;
    ended
}

fn measure_all(options: Options) -> Result<()> {
    let clients = &list::chosen(&options.names)?;
    let bench = Bench::prepare(options.outlast, options.again)?;
    let installed: Vec<_> = clients.iter().map(|client| setup::install(&bench, client)).collect();
    let file = Mutex::new(());
    std::thread::scope(|scope| {
        for (client, installed) in clients.iter().zip(installed) {
            let (bench, file) = (&bench, &file);
            scope.spawn(move || keep(file, measure::row(bench, client, installed)));
        }
    });
    let failed = failures(clients, &Measured::read()?);
    ensure!(failed.is_empty(), "not measured, or in doubt:\n  {}", failed.join("\n  "));
    Ok(())
}

/// A row is written as soon as it is known: a run that is stopped half-way keeps what it has.
fn keep(file: &Mutex<()>, row: Row) {
    println!("{}", row.summary());
    let _file = file.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let kept = Measured::read().and_then(|mut measured| {
        measured.put(row);
        measured.write()
    });
    if let Err(error) = kept {
        eprintln!("cannot keep the row: {error:#}");
    }
}

/// Clients without figures, and figures that the doctor does not find: then the doctor is wrong.
fn failures(clients: &[Client], measured: &Measured) -> Vec<String> {
    let rows = measured.clients.iter().filter(|row| clients.iter().any(|client| client.name == row.name));
    rows.filter_map(|row| fault(row).map(|why| format!("{}: {why}", row.name))).collect()
}

fn fault(row: &Row) -> Option<String> {
    let differs = row.doctor.as_ref().filter(|found| !found.agrees);
    let differs = differs.map(|found| {
        format!("the doctor finds a cap of {} (progress resets it: {})", found.cap, found.resets_on_progress)
    });
    row.failed.clone().or(differs)
}

/// Where the drivers and the probe are.
fn sources() -> PathBuf {
    root().join("tests/clients")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model decides what is measured, so it is tested where no client is installed, too.
    #[test]
    fn the_scripted_model_keeps_to_its_rules() {
        let rules = sources().join("model/rule.test.mjs");
        let output = std::process::Command::new("node").arg("--test").arg(rules).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
