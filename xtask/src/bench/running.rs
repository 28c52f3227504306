//! One running program of the benchmark, and its end.
//!
//! Its stderr goes to a file, because ten thousand warnings on a terminal would be what is measured;
//! errors show the end of it. Whatever happens, its processes are ended.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::options::scratch;
use super::processes;

/// How long a program may take to end once it was asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// How long one that listens may take to say where.
const ANNOUNCEMENT: Duration = Duration::from_secs(10);

const LISTENS: &str = "listening on http://";

pub struct Running {
    name: String,
    pub child: Child,
    stderr: PathBuf,
    /// The moment before the spawn.
    pub started: Instant,
}

impl Running {
    pub fn start(name: &str, mut command: Command) -> Result<Running> {
        let stderr = scratch().join(format!("{name}.stderr"));
        let log = File::create(&stderr).with_context(|| format!("cannot write {}", stderr.display()))?;
        command.stderr(log);
        let started = Instant::now();
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        Ok(Running { name: name.to_owned(), child, stderr, started })
    }

    /// Where it listens, which it says on stderr.
    pub fn address(&mut self) -> Result<SocketAddr> {
        let until = self.started + ANNOUNCEMENT;
        loop {
            let said = std::fs::read_to_string(&self.stderr).unwrap_or_default();
            if let Some((_, rest)) = said.split_once(LISTENS)
                && let Some((address, _)) = rest.split_once('/')
            {
                return address.parse().with_context(|| format!("{} listens on {address}", self.name));
            }
            if self.child.try_wait()?.is_some() || Instant::now() > until {
                bail!("{}", self.with_stderr("does not listen"));
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub fn own_processes(&self) -> Vec<u32> {
        processes::own(self.child.id())
    }

    /// Asks it to end and waits until it is gone.
    pub fn end(self) -> Result<()> {
        self.end_and_tell().map(drop)
    }

    /// The same; its process and all it wrote to stderr.
    pub fn end_and_tell(mut self) -> Result<(u32, String)> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        self.wait_gone("it was asked to end")?;
        Ok((self.child.id(), self.said()))
    }

    /// Waits until it is gone: its last work must not be done in the next measure's time.
    pub fn wait_gone(&mut self, after: &str) -> Result<()> {
        let until = Instant::now() + FAREWELL;
        while self.child.try_wait()?.is_none() {
            if Instant::now() > until {
                bail!("{} did not end within {FAREWELL:?} after {after}", self.name);
            }
            std::thread::sleep(Duration::from_micros(500));
        }
        Ok(())
    }

    /// All that it wrote to stderr.
    pub fn said(&self) -> String {
        let text = std::fs::read(&self.stderr).unwrap_or_default();
        String::from_utf8_lossy(&text).into_owned()
    }

    /// An error's text with the end of what it wrote to stderr.
    pub fn with_stderr(&self, what: &str) -> String {
        let name = &self.name;
        let text = std::fs::read(&self.stderr).unwrap_or_default();
        let tail = String::from_utf8_lossy(&text[text.len().saturating_sub(300)..]).into_owned();
        if tail.is_empty() {
            return format!("{name} {what}");
        }
        format!("{name} {what}; its stderr ends: {}", tail.trim_end())
    }
}

impl Drop for Running {
    /// After an error: ends what we started, each process by its own id.
    fn drop(&mut self) {
        if matches!(self.child.try_wait(), Ok(Some(_))) {
            return;
        }
        for pid in processes::tree(self.child.id()) {
            // One that is already gone is what we want.
            let _ = kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL);
        }
        let _ = self.child.wait();
    }
}
