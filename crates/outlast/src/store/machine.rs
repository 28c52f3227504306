//! This machine: its clock, its processes.

use super::owner::{Owner, World};
use crate::clock;
use crate::random;

/// The real world.
#[derive(Debug)]
pub struct Machine {
    boot: Box<str>,
    space: u64,
    /// When this process began; 0 if nobody can tell.
    started: u64,
}

impl Machine {
    /// Looks around.
    pub fn new() -> Machine {
        let started = system::started(std::process::id()).unwrap_or(0);
        Machine { boot: system::boot().into(), space: system::space(), started }
    }
}

impl Default for Machine {
    fn default() -> Machine {
        Machine::new()
    }
}

impl World for Machine {
    fn now(&self) -> u64 {
        clock::awake()
    }

    fn owner(&self) -> Owner {
        Owner {
            boot: self.boot.clone(),
            space: self.space,
            pid: std::process::id(),
            started: self.started,
            serial: u64::from_le_bytes(random::bytes()),
        }
    }

    fn runs(&self, pid: u32, started: u64) -> bool {
        // Who cannot see himself cannot see others.
        self.started == 0 || system::started(pid) == Some(started)
    }
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    /// Changes with every start of the machine.
    pub fn boot() -> String {
        fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().replace('/', "-")
    }

    /// The number of the namespace in which process numbers are given.
    pub fn space() -> u64 {
        fs::metadata("/proc/self/ns/pid").map_or(0, |namespace| namespace.ino())
    }

    /// When a process began, in ticks since the machine did; `None` if it has ended.
    pub fn started(pid: u32) -> Option<u64> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name in brackets may hold anything, brackets included.
        let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
        let state = fields.next()?;
        // A zombie has ended; only its parent has not looked.
        (state != "Z" && state != "X").then_some(())?;
        fields.nth(18)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    use std::process::Command;

    pub fn boot() -> String {
        ask("sysctl", &["-n", "kern.bootsessionuuid"]).unwrap_or_default()
    }

    pub fn space() -> u64 {
        0
    }

    /// When a process began: a number made of what `ps` says, because only equality matters.
    pub fn started(pid: u32) -> Option<u64> {
        let said = ask("ps", &["-o", "lstart=", "-p", &pid.to_string()]).filter(|said| !said.is_empty())?;
        Some(said.bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte))))
    }

    fn ask(program: &str, arguments: &[&str]) -> Option<String> {
        let output = Command::new(program).args(arguments).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_run_and_a_process_that_has_ended_does_not() {
        let machine = Machine::new();
        let me = machine.owner();
        assert!(machine.runs(me.pid, me.started));
        assert!(!machine.runs(me.pid, me.started + 1), "an earlier process with our number");
        assert!(!me.boot.is_empty());
        assert_ne!(me.serial, machine.owner().serial);

        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let started = system::started(child.id()).unwrap();
        assert!(machine.runs(child.id(), started));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!machine.runs(child.id(), started));
    }
}
