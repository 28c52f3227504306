//! This machine: its clock, its processes.

use super::owner::{Owner, World};
use crate::clock;
use crate::random;
use crate::sys::proc;
use outlast_engine::Wall;

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
        let started = proc::started(std::process::id()).unwrap_or(0);
        Machine { boot: proc::boot().into(), space: proc::space(), started }
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

    fn wall(&self) -> Wall {
        clock::wall()
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
        self.started == 0 || proc::started(pid) == Some(started)
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
        let started = proc::started(child.id()).unwrap();
        assert!(machine.runs(child.id(), started));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!machine.runs(child.id(), started));
    }
}
