//! A database, and replicas of outlast over it.

use std::net::SocketAddr;
use std::process::Command;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::options::scratch;
use crate::bench::running::Running;
use crate::bench::targets::Programs;
use crate::postgres::Postgres;

/// A PostgreSQL that writes as safely as people run it.
pub fn database() -> Postgres {
    Postgres::start(&["max_connections=200", "log_line_prefix=%p "])
}

/// One `outlast serve`.
pub struct Replica {
    pub address: SocketAddr,
    running: Running,
}

impl Replica {
    /// Before this server, whose calls all its sessions share.
    pub fn start(programs: &Programs, url: Option<&str>, name: &str, server: &[&str]) -> Result<Replica> {
        Replica::listening(command(programs, url, name, server), name)
    }

    /// Among processes of its own, as on another machine: only its lease says whether it lives.
    pub fn start_apart(programs: &Programs, url: &str, name: &str, server: &[&str]) -> Result<Replica> {
        let inner = command(programs, Some(url), name, server);
        let mut apart = Command::new("unshare");
        apart.args(["--pid", "--mount-proc", "--fork", "--kill-child"]);
        apart.arg(inner.get_program()).args(inner.get_args());
        Replica::listening(apart, name)
    }

    fn listening(command: Command, name: &str) -> Result<Replica> {
        let mut running = Running::start(&format!("replica-{name}"), command)?;
        Ok(Replica { address: running.address()?, running })
    }

    /// Gone at once, without a word.
    pub fn kill(mut self) -> Result<()> {
        kill(Pid::from_raw(self.running.child.id().cast_signed()), Signal::SIGKILL)?;
        self.running.child.wait()?;
        Ok(())
    }
}

fn command(programs: &Programs, url: Option<&str>, name: &str, server: &[&str]) -> Command {
    let mut command = programs.service();
    let state = scratch().join(format!("replica-{name}-state"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--share", "all", "--max-sessions", "1000", "--state"]);
    command.arg(state);
    if let Some(url) = url {
        command.args(["--store-url", url]);
    }
    command.arg("--").args(server);
    command
}
