//! What the system knows of processes. On Linux this is the only reader of /proc; elsewhere `ps` is asked.

use nix::sys::signal::{Signal, kill};
pub use nix::unistd::Pid;
use std::collections::VecDeque;
use std::time::Duration;

/// What all processes of one server are below: the guardian's process.
pub type Root = Pid;

/// One process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: Pid,
    parent: Pid,
    session: Pid,
}

/// Every process at one moment: read once, asked as often as one likes.
#[derive(Debug)]
pub struct Table(Vec<Process>);

impl Table {
    /// Looks at every process. That takes a while on a machine with many.
    pub fn read() -> Table {
        Table(system::processes())
    }

    /// All descendants of a process, itself excluded.
    pub fn below(&self, root: &Root) -> Vec<Pid> {
        let (mut found, mut parents) = (Vec::new(), VecDeque::from([*root]));
        while let Some(parent) = parents.pop_front() {
            let children =
                self.0.iter().filter(|process| process.parent == parent).map(|process| process.pid);
            parents.extend(children.clone());
            found.extend(children);
        }
        found
    }

    /// The children of a process that are in another session than it is.
    pub fn children_elsewhere(&self, parent: Pid) -> Vec<Pid> {
        let own = self.0.iter().find(|process| process.pid == parent).map(|process| process.session);
        let elsewhere = |process: &&Process| process.parent == parent && Some(process.session) != own;
        self.0.iter().filter(elsewhere).map(|process| process.pid).collect()
    }
}

/// All descendants of a process now, itself excluded.
pub fn descendants(root: &Root) -> Vec<Pid> {
    Table::read().below(root)
}

/// Sends a signal to all descendants of a process; how many there were.
pub fn signal_descendants(root: Pid, signal: Signal) -> usize {
    let found = descendants(&root);
    for pid in &found {
        // It may have ended since.
        let _ = kill(*pid, signal);
    }
    found.len()
}

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Used {
    pub cpu: Duration,
    pub bytes: u64,
    pub switches: u64,
}

pub use system::{boot, name, space, started, used};

#[cfg(target_os = "linux")]
mod system {
    use super::{Process, Used};
    use nix::unistd::Pid;
    use std::fs::{metadata, read_dir, read_to_string};
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;

    pub fn processes() -> Vec<Process> {
        let Ok(entries) = read_dir("/proc") else { return Vec::new() };
        let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter_map(process).collect()
    }

    fn process(pid: u32) -> Option<Process> {
        let stat = stat_of(pid)?;
        let mut fields = after_name(&stat)?;
        // A process whose first thread has ended looks dead, and may have threads and children.
        let parent = fields.nth(1)?.parse().ok()?;
        let session = fields.nth(1)?.parse().ok()?;
        let number = Pid::from_raw;
        Some(Process { pid: number(pid as i32), parent: number(parent), session: number(session) })
    }

    fn stat_of(pid: u32) -> Option<String> {
        read_to_string(format!("/proc/{pid}/stat")).ok()
    }

    /// The fields of `stat` from the state on. The name before them may hold anything, brackets included.
    fn after_name(stat: &str) -> Option<std::str::SplitAsciiWhitespace<'_>> {
        Some(stat.get(stat.rfind(')')? + 1..)?.split_ascii_whitespace())
    }

    /// When a process began, in ticks since the machine did; `None` if it has ended.
    pub fn started(pid: u32) -> Option<u64> {
        let stat = stat_of(pid)?;
        let mut fields = after_name(&stat)?;
        let state = fields.next()?;
        // A zombie has ended; only its parent has not looked.
        (state != "Z" && state != "X").then_some(())?;
        fields.nth(18)?.parse().ok()
    }

    /// What a process calls itself.
    pub fn name(pid: Pid) -> String {
        read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
    }

    /// Changes with every start of the machine.
    pub fn boot() -> String {
        read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().replace('/', "-")
    }

    /// The number of the namespace in which process numbers are given.
    pub fn space() -> u64 {
        metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
    }

    /// `None` if it has ended.
    pub fn used(pid: Pid) -> Option<Used> {
        let mut used = Used::default();
        for thread in read_dir(format!("/proc/{pid}/task")).ok()?.flatten() {
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

    fn field(text: &str, name: &str) -> u64 {
        let line = text.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|value| value.trim().parse().ok()).unwrap_or(0)
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{Process, Used};
    use nix::unistd::Pid;
    use std::process::Command;

    pub fn processes() -> Vec<Process> {
        let text = ask("ps", &["-axo", "pid=,ppid=,sess="]).unwrap_or_default();
        text.lines()
            .filter_map(|line| {
                let mut fields = line.split_ascii_whitespace();
                let (pid, parent) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
                // Where sessions are not shown, every process stands in one of its own.
                let session = fields.next().and_then(|session| session.parse().ok()).unwrap_or(pid);
                let number = Pid::from_raw;
                Some(Process { pid: number(pid), parent: number(parent), session: number(session) })
            })
            .collect()
    }

    /// When a process began: a number made of what `ps` says, because only equality matters.
    pub fn started(pid: u32) -> Option<u64> {
        let said = ask("ps", &["-o", "lstart=", "-p", &pid.to_string()]).filter(|said| !said.is_empty())?;
        Some(said.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))))
    }

    pub fn name(pid: Pid) -> String {
        ask("ps", &["-o", "comm=", "-p", &pid.to_string()]).unwrap_or_default()
    }

    pub fn boot() -> String {
        ask("sysctl", &["-n", "kern.bootsessionuuid"]).unwrap_or_default()
    }

    pub fn space() -> u64 {
        0
    }

    /// Nothing like /proc is here: such a server shows signs on its output only.
    pub fn used(_: Pid) -> Option<Used> {
        Some(Used::default())
    }

    fn ask(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(rows: &[(i32, i32, i32)]) -> Table {
        let pid = Pid::from_raw;
        let process = |&(own, parent, session): &(i32, i32, i32)| Process {
            pid: pid(own),
            parent: pid(parent),
            session: pid(session),
        };
        Table(rows.iter().map(process).collect())
    }

    #[test]
    fn descendants_are_found_at_any_depth_and_nobody_else() {
        let table = table(&[(1, 0, 1), (5, 1, 1), (7, 5, 7), (9, 7, 7), (8, 1, 1), (6, 9, 6)]);
        let raw = |pids: Vec<Pid>| pids.into_iter().map(Pid::as_raw).collect::<Vec<_>>();
        assert_eq!(raw(table.below(&Pid::from_raw(5))), [7, 9, 6]);
        assert_eq!(raw(table.below(&Pid::from_raw(8))), [] as [i32; 0]);
        assert_eq!(raw(table.children_elsewhere(Pid::from_raw(5))), [7]);
        assert_eq!(
            raw(table.children_elsewhere(Pid::from_raw(1))),
            [] as [i32; 0],
            "they are in its session"
        );
    }

    #[test]
    fn we_are_among_them_and_have_used_something() {
        let me = Pid::this();
        assert!(Table::read().below(&nix::unistd::getppid()).contains(&me));
        assert!(used(me).is_some() && !name(me).is_empty() && started(me.as_raw() as u32).is_some());
    }
}
