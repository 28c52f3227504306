//! What runs for a measure over HTTP: the way in, and the server behind it.

use std::net::SocketAddr;

use anyhow::Result;

use crate::bench::running::Running;
use crate::bench::targets::{Programs, Target};

/// The server that outlast has behind it; the other targets always have one on HTTP.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Behind {
    Stdio,
    Http,
}

pub struct Site {
    pub address: SocketAddr,
    front: Running,
    /// Where it is a process of ours; the front is dropped before it.
    server: Option<Running>,
}

impl Site {
    pub fn open(programs: &Programs, target: Target, behind: Behind, flags: &[&str]) -> Result<Site> {
        if target == Target::Outlast && behind == Behind::Stdio {
            return Site::front(target, programs.serve(None, flags), None);
        }
        if target == Target::Direct {
            return Site::front(target, programs.server(&[]), None);
        }
        let mut server = Running::start("server", programs.server(&[]))?;
        let address = server.address()?;
        let command = match target {
            Target::Outlast => programs.serve(Some(address), flags),
            Target::Direct | Target::Floor => programs.floor(address),
        };
        Site::front(target, command, Some(server))
    }

    /// The server alone, answering with streams.
    pub fn streaming(programs: &Programs) -> Result<Site> {
        Site::front(Target::Direct, programs.server(&["--sse"]), None)
    }

    fn front(target: Target, command: std::process::Command, server: Option<Running>) -> Result<Site> {
        let mut front = Running::start(&format!("http-{target}"), command)?;
        let address = front.address()?;
        Ok(Site { address, front, server })
    }

    pub fn own_processes(&self) -> Vec<u32> {
        self.front.own_processes()
    }

    /// An error's text with the end of what the front wrote to stderr.
    pub fn with_stderr(&self, what: &str) -> String {
        self.front.with_stderr(what)
    }

    /// Ends all of it, the front first.
    pub fn close(self) -> Result<()> {
        self.front.end()?;
        self.server.map_or(Ok(()), Running::end)
    }
}
