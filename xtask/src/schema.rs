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

use anyhow::{Result, ensure};

use crate::amount::Amount;
use crate::interop::Places;
use crate::interop::matrix::Sdk;
use crate::interop::setup;
use crate::shell::{cargo_command, root, run_and_keep};

/// Simulated worlds; more of them say nothing new.
const SEEDS: &str = "10";

pub fn run(args: &[String], amount: &mut Amount) -> Result<()> {
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
        let output = cargo_command(arguments).env("OUTLAST_TAPES", &tapes).output()?;
        let said = || [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy).concat();
        ensure!(output.status.success(), "cargo {} failed:\n{}", arguments.join(" "), said());
    }
    let mut node = Command::new("node");
    node.arg(root().join("tests/schema/validate.mjs")).arg(places.installed.join("ts1")).arg(&tapes);
    node.args(args);
    let (said, result) = run_and_keep(node)?;
    amount.add(messages(&said), "messages");
    ensure!(result.is_ok(), "some messages do not fit; what was said is in {}", tapes.display());
    Ok(())
}

/// How many messages the validator says it has accepted.
fn messages(said: &str) -> u64 {
    let words = said.lines().find_map(|line| line.split_once(" messages of "));
    words.and_then(|(count, _)| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_counted_by_the_validator() {
        assert_eq!(messages("ping 3\n812 messages of 40 kinds in 9 worlds fit their schemas, 7 were\n"), 812);
        assert_eq!(messages("FAIL  no tapes"), 0);
    }
}
