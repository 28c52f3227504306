//! The registry on loopback from which npm, pnpm and yarn get what was packed (`packaging/tools/registry.mjs`).

use super::super::Dist;
use super::home::Home;
use crate::shell::root;
use anyhow::{Context, Result};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// It ends when this is dropped.
pub struct Registry(Child);

impl Registry {
    /// Starts it and tells a home where it is.
    pub fn start(dist: &Dist, home: &Home) -> Result<Registry> {
        let mut node = Command::new("node");
        node.arg(root().join("packaging/tools/registry.mjs")).arg(dist.out.join("packages"));
        let mut child = node.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("no stdout")?;
        let mut url = String::new();
        BufReader::new(output).read_line(&mut url)?;
        fs::write(home.path.join("registry"), url.trim())?;
        Ok(Registry(child))
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Its standard input is closed, which ends it.
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}
