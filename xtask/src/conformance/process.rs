//! A server that runs as long as it is needed: ready when it says so, gone when it is dropped.

use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

const READY_LIMIT: Duration = Duration::from_secs(30);
/// How long a server may take to end after it was asked to.
const END_LIMIT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(10);

/// Variables that would send local requests to a proxy.
const PROXIES: [&str; 4] = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"];

pub struct Server {
    child: Child,
    pub url: String,
}

impl Server {
    /// Starts a server, which says `listening on URL` when it is ready. Its words go to `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        let words = File::create(log)?;
        without_proxies(&mut command);
        command.stdin(Stdio::null()).stdout(words.try_clone()?).stderr(words).process_group(0);
        let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let mut server = Self { child, url: String::new() };
        server.url = server.wait_until_ready(log)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, log: &Path) -> Result<String> {
        let end = Instant::now() + READY_LIMIT;
        loop {
            let words = fs::read_to_string(log)?;
            if let Some(url) = url_in(&words) {
                return Ok(url);
            }
            if let Some(status) = self.child.try_wait()? {
                bail!("the server ended with {status}: {words}");
            }
            if Instant::now() >= end {
                bail!("the server did not say where it listens: {words}");
            }
            std::thread::sleep(POLL);
        }
    }
}

/// The address in the first whole line that has one.
fn url_in(words: &str) -> Option<String> {
    let whole = words.rsplit_once('\n')?.0;
    let url = whole.lines().find_map(|line| line.split_once("listening on "))?.1;
    Some(url.trim().to_owned())
}

impl Drop for Server {
    fn drop(&mut self) {
        let Ok(id) = i32::try_from(self.child.id()) else { return };
        let _ = kill(Pid::from_raw(id), Signal::SIGTERM);
        let end = Instant::now() + END_LIMIT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(POLL);
        }
        let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

/// Everything here is on this machine.
pub fn without_proxies(command: &mut Command) {
    for name in PROXIES {
        command.env_remove(name);
    }
}

/// A file for the words of one program.
pub fn log(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that is still being written may lack the end of its port.
    #[test]
    fn only_a_whole_line_says_where_a_server_listens() {
        assert_eq!(url_in("outlast: listening on http://127.0.0.1:76"), None);
        let words = "a warning\noutlast: listening on http://127.0.0.1:7600/mcp\n";
        assert_eq!(url_in(words).as_deref(), Some("http://127.0.0.1:7600/mcp"));
    }
}
