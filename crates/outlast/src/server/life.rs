//! Signs of life of a server's process tree, read from the system.
//!
//! Read only around a limit that is about to fire, never on the fast path.

use crate::sys::unix::descendants;
use nix::unistd::Pid;
use outlast_engine::Mono;
use outlast_engine::life::Sample;
use std::fs::read_to_string;
use std::time::Duration;

/// What everything below `root` has used so far. `None` where that cannot be read.
#[cfg(target_os = "linux")]
pub fn sample(root: Pid, at: Mono, stderr: u64) -> Option<Sample> {
    let tree = descendants(root);
    let used: Vec<Used> = tree.iter().filter_map(|pid| used(*pid)).collect();
    if used.is_empty() {
        return None;
    }
    let mut sample = Sample { at, cpu: Duration::ZERO, bytes: 0, switches: 0, stderr, processes: 0 };
    for (pid, used) in tree.iter().zip(&used) {
        sample.cpu += used.cpu;
        sample.bytes += used.bytes;
        sample.switches += used.switches;
        // Differs when a process came or went, whatever the order.
        sample.processes =
            sample.processes.wrapping_add((pid.as_raw() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    Some(sample)
}

/// Elsewhere there is nothing like /proc: such a server shows signs on its output only.
#[cfg(not(target_os = "linux"))]
pub fn sample(_root: Pid, at: Mono, stderr: u64) -> Option<Sample> {
    Some(Sample { at, cpu: Duration::ZERO, bytes: 0, switches: 0, stderr, processes: 0 })
}

struct Used {
    cpu: Duration,
    bytes: u64,
    switches: u64,
}

#[cfg(target_os = "linux")]
fn used(pid: Pid) -> Option<Used> {
    let mut used = Used { cpu: Duration::ZERO, bytes: 0, switches: 0 };
    for thread in std::fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
        let path = thread.path();
        if let Ok(schedstat) = read_to_string(path.join("schedstat")) {
            let nanos = schedstat.split_ascii_whitespace().next().and_then(|n| n.parse().ok());
            used.cpu += Duration::from_nanos(nanos.unwrap_or(0));
        }
        if let Ok(status) = read_to_string(path.join("status")) {
            used.switches += field(&status, "voluntary_ctxt_switches:");
        }
    }
    // Another user's process keeps its counts to itself; its CPU time must do.
    let io = read_to_string(format!("/proc/{pid}/io")).unwrap_or_default();
    used.bytes = field(&io, "rchar:") + field(&io, "wchar:");
    Some(used)
}

#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
}
