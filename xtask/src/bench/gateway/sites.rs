//! Outlast before one or many servers that a file describes.

use std::net::SocketAddr;

use anyhow::Result;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::options::scratch;
use crate::bench::processes;
use crate::bench::running::Running;
use crate::bench::targets::Programs;

/// Tools of each server.
const TOOLS: usize = 100;

/// `outlast serve --config FILE` with so many servers, which all sessions share.
pub struct Gateway {
    pub address: SocketAddr,
    running: Running,
}

impl Gateway {
    pub fn open(programs: &Programs, servers: usize) -> Result<Gateway> {
        Gateway::open_with(programs, servers, "")
    }

    /// The same with more in the file.
    pub fn open_with(programs: &Programs, servers: usize, settings: &str) -> Result<Gateway> {
        let server = programs.echo_server().display().to_string();
        let mut file = format!("[defaults]\nshare = \"all\"\n{settings}");
        for number in 0..servers {
            file += &format!(
                "[servers.{}]\ncommand = {server:?}\nargs = [\"--parse\"]\nenv = {{ ECHO_TOOLS = \"{TOOLS}\" }}\n",
                name(number)
            );
        }
        let path = scratch().join(format!("gateway-{servers}.toml"));
        std::fs::write(&path, file)?;
        let mut running = Running::start(&format!("gateway-{servers}"), programs.gateway(&path))?;
        Ok(Gateway { address: running.address()?, running })
    }

    pub fn own_processes(&self) -> Vec<u32> {
        self.running.own_processes()
    }

    /// Those, and the servers.
    pub fn processes(&self) -> Vec<u32> {
        let mut all = processes::tree(self.running.child.id());
        all.sort_unstable();
        all
    }

    /// Asks it to read its file again.
    pub fn read_again(&self) -> Result<()> {
        Ok(kill(Pid::from_raw(self.running.child.id().cast_signed()), Signal::SIGHUP)?)
    }

    pub fn close(self) -> Result<()> {
        self.running.end()
    }
}

/// What a server is called in the file.
fn name(number: usize) -> String {
    format!("s{number:02}")
}

/// What its tool is called at the merged door.
pub fn public(number: usize) -> String {
    format!("{}__echo", name(number))
}
