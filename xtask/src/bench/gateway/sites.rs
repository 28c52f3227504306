//! Outlast before one or many servers that a file describes.

use std::net::SocketAddr;

use anyhow::Result;

use crate::bench::options::scratch;
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
        let server = programs.echo_server().display().to_string();
        let mut file = String::from("[defaults]\nshare = \"all\"\n");
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
