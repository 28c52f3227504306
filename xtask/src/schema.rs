//! `cargo xtask schema`: every message that outlast sends, held against the protocol's own schemas.
//!
//! The scenarios and some simulated worlds are played with their messages written down, and a validator
//! reads them. It is the one that comes with the TypeScript SDK of the interop tests, so that nothing has
//! to be built for it.
//!
//! Not here: which message must fit what (`tests/schema`), how messages are written down (`tape.rs`).

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::interop::Places;
use crate::interop::matrix::Sdk;
use crate::interop::setup;
use crate::shell::root;

/// Simulated worlds; more of them say nothing new.
const SEEDS: &str = "10";

pub fn run(args: &[String]) -> Result<()> {
    let places = Places::find()?;
    setup::prepare(&places, &BTreeSet::from([Sdk::Ts1]))?;
    let tapes = places.installed.with_file_name("schema");
    if tapes.exists() {
        fs::remove_dir_all(&tapes)?;
    }
    fs::create_dir_all(&tapes)?;
    for arguments in [
        &["test", "--quiet", "-p", "outlast-engine", "--tests"][..],
        &["run", "--quiet", "-p", "outlast-testkit", "--bin", "sim", "--", "--seeds", SEEDS],
    ] {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo).args(arguments).env("OUTLAST_TAPES", &tapes).output()?;
        let said = || [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        ensure!(output.status.success(), "cargo {} failed:\n{}", arguments.join(" "), said());
    }
    let mut node = Command::new("node");
    node.arg(root().join("tests/schema/validate.mjs")).arg(places.installed.join("ts1")).arg(&tapes);
    let status = node.args(args).status().context("cannot start node")?;
    ensure!(status.success(), "some messages do not fit; what was said is in {}", tapes.display());
    Ok(())
}
