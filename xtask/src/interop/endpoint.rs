//! A program that listens: a server over HTTP, or `outlast serve`.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::client;

/// How long it may take from the start to the line that says where it listens.
const START_LIMIT: Duration = Duration::from_secs(15);
/// How long it may take to end when it is told to and nobody calls any more.
const STOP_LIMIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);

pub struct Endpoint {
    pub url: String,
    child: Option<Child>,
    command: Vec<String>,
    log: PathBuf,
}

impl Endpoint {
    /// Starts a program and waits for its word on stderr, `listening on URL`.
    pub fn start(command: &[String], log: &Path) -> Result<Self> {
        let log = log.with_extension("stderr");
        let mut endpoint = Self { url: String::new(), child: None, command: command.to_vec(), log };
        endpoint.listen("0")?;
        Ok(endpoint)
    }

    /// Starts the program, to listen on this port if it is a fixture and on any if that is 0.
    fn listen(&mut self, port: &str) -> Result<()> {
        let child = Command::new(&self.command[0])
            .args(&self.command[1..])
            .env("FIXTURE_PORT", port)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(&self.log)?)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {}", self.command[0]))?;
        self.child = Some(child);
        self.url = self.wait_for_url()?;
        Ok(())
    }

    /// Kills it and starts it again at its address.
    pub fn restart(&mut self) -> Result<()> {
        let before = std::mem::take(&mut self.url);
        let port = before.rsplit(':').next().and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let port = port.to_owned();
        self.kill();
        self.listen(&port)?;
        ensure!(self.url == before, "it came back at {} instead of {before}", self.url);
        Ok(())
    }

    fn kill(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        if let Ok(group) = i32::try_from(child.id()) {
            let _ = killpg(Pid::from_raw(group), Signal::SIGKILL);
        }
        let _ = child.wait();
    }

    fn wait_for_url(&mut self) -> Result<String> {
        let end = Instant::now() + START_LIMIT;
        loop {
            let words = std::fs::read(&self.log).unwrap_or_default();
            if let Some(url) = url_in(&String::from_utf8_lossy(&words)) {
                return Ok(url);
            }
            if self.child.as_mut().is_some_and(|child| !matches!(child.try_wait(), Ok(None))) {
                bail!("it ended before it listened (see {})", self.log.display());
            }
            if Instant::now() >= end {
                bail!("it does not listen after {} s (see {})", START_LIMIT.as_secs(), self.log.display());
            }
            std::thread::sleep(POLL);
        }
    }

    /// Tells it to end and waits until it has.
    pub fn stop(mut self) -> Result<()> {
        let Some(child) = self.child.take() else { return Ok(()) };
        kill(Pid::from_raw(i32::try_from(child.id())?), Signal::SIGTERM)?;
        let told = || format!("after SIGTERM (see {})", self.log.display());
        client::wait(child, STOP_LIMIT).with_context(told)?;
        Ok(())
    }

    pub fn pid(&self) -> Option<u32> {
        self.child.as_ref().map(Child::id)
    }

    /// What it said last, for a person who has to find out why.
    pub fn log(&self) -> &Path {
        &self.log
    }
}

/// An error on the way must not leave a program behind.
impl Drop for Endpoint {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The URL of the first whole line that names one.
fn url_in(words: &str) -> Option<String> {
    let (whole, _) = words.rsplit_once('\n')?;
    let (_, url) = whole.lines().find_map(|line| line.split_once("listening on http://"))?;
    Some(format!("http://{}", url.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_only_when_its_line_is_whole() {
        assert_eq!(url_in("note\nlistening on http://127.0.0.1:80"), None);
        let words = "note\noutlast: listening on http://127.0.0.1:80/mcp\n";
        assert_eq!(url_in(words).as_deref(), Some("http://127.0.0.1:80/mcp"));
    }

    #[test]
    fn a_program_that_ends_early_is_not_waited_for() {
        let log = std::env::temp_dir().join(format!("endpoint-{}.log", std::process::id()));
        let started = Instant::now();
        assert!(Endpoint::start(&["true".to_owned()], &log).is_err());
        assert!(started.elapsed() < START_LIMIT);
        let _ = std::fs::remove_file(log.with_extension("stderr"));
    }
}
