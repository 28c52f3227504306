//! What a target's own processes spend, read from `/proc`.
//!
//! The proxy's own processes are the one we started and those of its descendants that run the same
//! program (outlast's guardian is a forked child of it). The echo server is nobody's cost.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

/// The process itself and everything below it.
pub fn tree(root: u32) -> Vec<u32> {
    let parents = parents();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(parents.iter().filter(|(_, p)| **p == parent).map(|(c, _)| *c));
        next += 1;
    }
    found
}

/// Those of the tree that run the same program as its root.
pub fn own(root: u32) -> Vec<u32> {
    let program = program(root);
    let mut pids = tree(root);
    pids.retain(|pid| self::program(*pid) == program);
    pids
}

/// Nanoseconds on a core so far, over all threads: `/proc/PID/schedstat` alone has only the first.
pub fn cpu_ns(pids: &[u32]) -> Result<u64> {
    pids.iter().map(|pid| cpu_ns_of(*pid)).sum()
}

fn cpu_ns_of(pid: u32) -> Result<u64> {
    let tasks = format!("/proc/{pid}/task");
    let mut total = 0;
    for task in fs::read_dir(&tasks).with_context(|| format!("cannot read {tasks}"))? {
        let path = task?.path().join("schedstat");
        total += field(&path, |text| text.split_whitespace().next())?;
    }
    Ok(total)
}

/// Proportional set size in MiB: shared pages count once over all who share them.
pub fn pss_mib(pids: &[u32]) -> Result<f64> {
    let mut kib = 0;
    for pid in pids {
        kib += field(&format!("/proc/{pid}/smaps_rollup").into(), |text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"));
            line.and_then(|line| line.split_whitespace().next())
        })?;
    }
    Ok(kib as f64 / 1024.0)
}

fn field(path: &PathBuf, pick: impl Fn(&str) -> Option<&str>) -> Result<u64> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path:?}"))?;
    let number = pick(&text).and_then(|word| word.parse().ok());
    number.with_context(|| format!("{path:?} is not as expected: {text}"))
}

fn program(pid: u32) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe")).ok()
}

/// The parent of every process there is; one that ends while we look is left out.
fn parents() -> HashMap<u32, u32> {
    let Ok(entries) = fs::read_dir("/proc") else {
        return HashMap::new();
    };
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let pids = names.filter_map(|name| name.parse().ok());
    pids.filter_map(|pid| Some((pid, parent(pid)?))).collect()
}

/// The second field after the program's name, which stands in brackets and may itself contain them.
fn parent(pid: u32) -> Option<u32> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}
