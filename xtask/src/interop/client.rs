//! One run of one client program: bounded in time, its lines read, nothing left behind.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde_json::Value;

/// How long descendants may take to end after their client has.
const AFTERMATH: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// How much of the programs' stderr is shown with a failure.
const STORY_LINES: usize = 12;

/// What a client says of one check.
#[derive(Clone, PartialEq)]
pub struct Outcome {
    pub ok: Value,
    pub detail: String,
}

impl Outcome {
    pub const PASSED: Value = Value::Bool(true);
    pub const FAILED: Value = Value::Bool(false);
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match &self.ok {
            Value::Bool(true) => "passed",
            Value::Bool(false) => "failed",
            _ => "unsupported",
        };
        write!(f, "{word} ({})", self.detail.replace('\n', " "))
    }
}

/// What came of one client program.
#[derive(Clone)]
pub struct Run {
    pub outcomes: BTreeMap<String, Outcome>,
    pub took: Duration,
    /// Why the run as a whole is not to be trusted, if so.
    pub trouble: Option<String>,
    stderr: PathBuf,
}

impl Run {
    /// A run whose client said this and ended well.
    #[cfg(test)]
    pub fn said(stdout: &str) -> Self {
        let (outcomes, _) = read(stdout);
        let (took, stderr) = (Duration::ZERO, PathBuf::new());
        Self { outcomes, took, trouble: None, stderr }
    }

    pub fn summary(&self) -> String {
        let count = |ok: Value| self.outcomes.values().filter(|outcome| outcome.ok == ok).count();
        let passed = count(Outcome::PASSED);
        match self.outcomes.len() - passed - count(Outcome::FAILED) {
            0 => format!("{passed} checks"),
            lacking => format!("{passed} checks ({lacking} unsupported)"),
        }
    }

    /// What did not pass, or was not even tried.
    pub fn failures(&self) -> Vec<String> {
        let failed = self.outcomes.iter().filter(|(_, outcome)| outcome.ok == Outcome::FAILED);
        let mut failures: Vec<String> =
            failed.map(|(check, outcome)| format!("{check}: {outcome}")).collect();
        if !self.outcomes.contains_key("close") {
            failures.push("the client did not come to its last check".to_owned());
        }
        if !failures.is_empty() {
            failures.extend(self.story());
        }
        failures
    }

    /// What a person needs who has to find out why: the trouble and the last lines on stderr.
    pub fn story(&self) -> Vec<String> {
        let words = std::fs::read(&self.stderr).unwrap_or_default();
        let words = String::from_utf8_lossy(&words);
        let mut lines: Vec<&str> = words.lines().rev().take(STORY_LINES).collect();
        lines.reverse();
        let stderr = lines.into_iter().map(|line| format!("stderr: {line}"));
        let trouble = self.trouble.iter().map(|trouble| format!("{trouble} (see {})", self.stderr.display()));
        trouble.chain(stderr).collect()
    }
}

/// Runs a client program and reads what it says. Never fails: trouble is part of the answer.
///
/// Its output goes to files beside `log`, because a server that lingers would keep a pipe open.
pub fn run(command: &[String], log: &Path, limit: Duration) -> Run {
    let started = Instant::now();
    let (stdout, stderr) = (log.with_extension("jsonl"), log.with_extension("stderr"));
    let ended = start(command, &stdout, &stderr).and_then(|child| wait(child, limit));
    let (outcomes, mut nonsense) = read(&std::fs::read_to_string(&stdout).unwrap_or_default());
    let any_failed = outcomes.values().any(|outcome: &Outcome| outcome.ok == Outcome::FAILED);
    let trouble = match ended {
        Err(error) => Some(format!("{error:#}")),
        Ok(status) if status.success() == any_failed => Some(format!("the client ended with {status}")),
        Ok(_) if outcomes.is_empty() => Some("the client said nothing".to_owned()),
        Ok(_) => nonsense.pop(),
    };
    Run { outcomes, took: started.elapsed(), trouble, stderr }
}

/// The outcomes that a client's output tells of, and what else is in it.
fn read(stdout: &str) -> (BTreeMap<String, Outcome>, Vec<String>) {
    let (mut outcomes, mut nonsense) = (BTreeMap::new(), Vec::new());
    for line in stdout.lines() {
        match parse(line) {
            Some((check, outcome)) => drop(outcomes.insert(check, outcome)),
            None => nonsense.push(format!("the client wrote `{line}`")),
        }
    }
    (outcomes, nonsense)
}

fn parse(line: &str) -> Option<(String, Outcome)> {
    let value: Value = serde_json::from_str(line).ok()?;
    let detail = value["detail"].as_str().unwrap_or_default().to_owned();
    Some((value["check"].as_str()?.to_owned(), Outcome { ok: value["ok"].clone(), detail }))
}

fn start(command: &[String], stdout: &Path, stderr: &Path) -> Result<Child> {
    Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::null())
        .stdout(File::create(stdout)?)
        .stderr(File::create(stderr)?)
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot start {}", command[0]))
}

/// Waits for the end of `child`, or ends it and its group when `limit` has passed.
pub fn wait(mut child: Child, limit: Duration) -> Result<ExitStatus> {
    let end = Instant::now() + limit;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() >= end {
            let group = Pid::from_raw(i32::try_from(child.id())?);
            let _ = killpg(group, Signal::SIGKILL);
            child.kill()?;
            child.wait()?;
            anyhow::bail!("not done within {} s", limit.as_secs());
        }
        std::thread::sleep(POLL);
    }
}

/// Makes orphaned descendants our children, so that `leftovers` can see them.
pub fn adopt_orphans() -> Result<()> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true).context("cannot become a subreaper")?;
    Ok(())
}

/// The descendants that still live after their clients have ended; they are ended here.
///
/// To be called when no client runs any more: until then a child may belong to somebody.
pub fn leftovers() -> Vec<String> {
    let end = Instant::now() + AFTERMATH;
    while still_has_children() && Instant::now() < end {
        std::thread::sleep(POLL);
    }
    let found: Vec<(Pid, String)> = living_children();
    for (pid, _) in &found {
        let _ = kill(*pid, Signal::SIGKILL);
    }
    found.into_iter().map(|(pid, command)| format!("{pid}: {command}")).collect()
}

fn still_has_children() -> bool {
    loop {
        match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => return true,
            Ok(_) => {}
            Err(_) => return false,
        }
    }
}

fn living_children() -> Vec<(Pid, String)> {
    let me = std::process::id().to_string();
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let child = |entry: std::fs::DirEntry| {
        let pid: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
        // After the name in parentheses, which may hold anything: state, then the parent.
        let parent = stat.rsplit_once(')')?.1.split_whitespace().nth(1)?;
        let command = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
        (parent == me).then(|| (Pid::from_raw(pid), command.replace('\0', " ")))
    };
    processes.filter_map(child).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that hangs costs its limit, not the whole run.
    #[test]
    fn a_program_that_takes_too_long_is_ended() {
        let started = Instant::now();
        let child = Command::new("sleep").arg("30").process_group(0).spawn();
        assert!(wait(child.unwrap(), Duration::from_millis(100)).is_err());
        assert!(started.elapsed() < Duration::from_secs(10));
    }
}
