//! One start of the suite: which scenarios, and what it found out about them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::checks::Checks;
use super::scenarios::{EXTENSION, Leg, Scenario};
use crate::interop::client::wait;

/// A start of the suite that takes longer than this is stuck; what it did not get to has no findings.
const LIMIT: Duration = Duration::from_secs(60);

/// `-2026-11-15T11-57-40-516Z`, with which the suite ends the name of a folder of findings.
const TIMESTAMP: usize = 25;

/// Runs the suite for scenarios of one leg and revision, and reads what it found.
///
/// Its exit status says whether checks failed, which is what the findings are for.
pub fn run(mut suite: Command, batch: &[&Scenario], folder: &Path) -> Result<Vec<(Scenario, Checks)>> {
    fs::create_dir_all(folder)?;
    let words = fs::File::create(folder.join("suite.log"))?;
    suite.args(selection(batch)).arg("--output-dir").arg(folder);
    suite.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words).process_group(0);
    let _ = wait(suite.spawn().context("cannot start the suite")?, LIMIT);
    let findings = findings(folder)?;
    let of = |scenario: &&Scenario| {
        let path = findings.get(&match scenario.leg {
            Leg::Server => format!("server-{}", scenario.name),
            Leg::Client => scenario.name.clone(),
        });
        let checks = path.map(|path| Checks::read(&fs::read_to_string(path)?));
        Ok(((*scenario).clone(), checks.transpose()?.unwrap_or_default()))
    };
    batch.iter().map(of).collect()
}

/// All of a revision, or one scenario: the suite offers nothing in between.
fn selection(batch: &[&Scenario]) -> Vec<String> {
    let mut words = match batch {
        [one] => vec!["--scenario".into(), one.name.clone()],
        _ => vec!["--suite".into(), "all".into()],
    };
    let revision = batch.iter().map(|scenario| &scenario.revision).find(|revision| *revision != EXTENSION);
    words.extend(revision.into_iter().flat_map(|revision| ["--spec-version".into(), revision.clone()]));
    words
}

/// The file of findings of each scenario: `[server-]NAME-TIMESTAMP/checks.json`.
fn findings(folder: &Path) -> Result<BTreeMap<String, PathBuf>> {
    let mut findings = BTreeMap::new();
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let checks = entry.path().join("checks.json");
        if checks.exists() {
            let name = entry.file_name().to_string_lossy().into_owned();
            ensure!(name.len() > TIMESTAMP, "the suite wrote to a folder `{name}`");
            findings.insert(name[..name.len() - TIMESTAMP].to_owned(), checks);
        }
    }
    Ok(findings)
}
