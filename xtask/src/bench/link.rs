//! One running target and the pipes to it.
//!
//! A write takes what fits into the pipe and never waits; waiting is done for both directions at
//! once. That keeps a pipelined exchange from a deadlock: a target that is stuck writing to us is
//! read from while we still have something to say. Every wait is bounded, so a hung target becomes
//! an error and not a hung benchmark.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use memchr::{memchr, memrchr};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::messages::{self, Call};
use super::running::Running;
use super::targets::{Programs, Target};

/// How long one measure may talk to one target before it counts as hung.
pub const LIMIT: Duration = Duration::from_secs(30);

/// At least this much room is offered to every read.
const CHUNK: usize = 256 * 1024;

pub struct Link {
    /// Taken when the conversation is over.
    stdin: Option<ChildStdin>,
    stdout: ChildStdout,
    running: Running,
    /// The server, where the target does not start it itself; it is ended with the link.
    _server: Option<Running>,
    /// Nothing on this link is waited for beyond this.
    deadline: Instant,
    bytes: Vec<u8>,
    filled: usize,
    next_id: u64,
}

impl Link {
    pub fn open(programs: &Programs, target: Target, flags: &[&str]) -> Result<Link> {
        Link::start(target, programs.command(target, flags), None)
    }

    /// Starts a target whose server needs this long before it reads anything.
    pub fn open_slow(programs: &Programs, target: Target, flags: &[&str], slow: Duration) -> Result<Link> {
        let mut command = programs.command(target, flags);
        command.env("ECHO_SLOW_START_MS", slow.as_millis().to_string());
        Link::start(target, command, None)
    }

    /// outlast on stdio, in front of a server on HTTP.
    pub fn open_remote(programs: &Programs) -> Result<Link> {
        let mut server = Running::start("server", programs.server(&[]))?;
        let command = programs.remote(server.address()?);
        Link::open_command(command, Some(server))
    }

    /// outlast under callgrind.
    pub fn open_counted(programs: &Programs, flags: &[&str]) -> Result<Link> {
        Link::open_command(programs.counted(flags), None)
    }

    /// outlast as a command of the caller's own, with a server that it does not start itself.
    pub fn open_command(command: Command, server: Option<Running>) -> Result<Link> {
        Link::start(Target::Outlast, command, server)
    }

    fn start(target: Target, mut command: Command, server: Option<Running>) -> Result<Link> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut running = Running::start(target.name(), command)?;
        let stdin = running.child.stdin.take().context("no pipe to the target")?;
        let stdout = running.child.stdout.take().context("no pipe from the target")?;
        fcntl(&stdin, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        Ok(Link {
            stdin: Some(stdin),
            stdout,
            deadline: running.started + LIMIT,
            running,
            _server: server,
            bytes: vec![0; 2 * CHUNK],
            filled: 0,
            next_id: 1,
        })
    }

    /// Starts a target and shakes hands with it.
    pub fn ready(programs: &Programs, target: Target, flags: &[&str]) -> Result<Link> {
        let mut link = Link::open(programs, target, flags)?;
        link.shake_hands()?;
        Ok(link)
    }

    pub fn shake_hands(&mut self) -> Result<()> {
        self.initialize()?;
        // An empty pipe takes a short message whole.
        self.write(messages::INITIALIZED)?;
        Ok(())
    }

    pub fn initialize(&mut self) -> Result<()> {
        let id = self.fresh_ids(1);
        self.exchange(&messages::initialize(id), id, |_| Ok(()))
    }

    pub fn list_tools(&mut self) -> Result<()> {
        let id = self.fresh_ids(1);
        self.exchange(&messages::list_tools(id), id, |_| Ok(()))
    }

    /// Reserves ids for `count` calls and gives the first.
    pub fn fresh_ids(&mut self, count: u64) -> u64 {
        let first = self.next_id;
        self.next_id += count;
        first
    }

    /// One call and what `pick` takes from its answer.
    pub fn call<T>(&mut self, call: &Call, pick: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let (request, id) = self.request(call);
        self.exchange(&request, id, pick)
    }

    /// The bytes of a call and its id, for a caller that must not write them in the time it takes.
    pub fn request(&mut self, call: &Call) -> (Vec<u8>, u64) {
        let id = self.fresh_ids(1);
        let mut request = Vec::new();
        call.append(id, &mut request);
        (request, id)
    }

    /// Sends a request of any size and waits for its answer.
    pub fn exchange<T>(&mut self, request: &[u8], id: u64, pick: impl Fn(&[u8]) -> Result<T>) -> Result<T> {
        let mut written = 0;
        let mut answer = None;
        loop {
            written += self.write(&request[written..])?;
            self.listen(written < request.len(), |line| {
                ensure!(
                    messages::id_of(line)? == id && messages::is_result(line),
                    "call {id} was answered with: {}",
                    messages::start_of(line)
                );
                answer = Some(pick(line)?);
                Ok(())
            })?;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
    }

    /// Writes without waiting; gives how much the pipe took, which may be nothing.
    pub fn write(&mut self, out: &[u8]) -> Result<usize> {
        let Some(stdin) = self.stdin.as_mut().filter(|_| !out.is_empty()) else {
            return Ok(0);
        };
        match stdin.write(out) {
            Ok(count) => Ok(count),
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error).context(self.running.with_stderr("cannot be written to")),
        }
    }

    /// Waits for lines, or for room in the pipe if there is `more` to write; hands each line that
    /// came to `each`.
    pub fn listen(&mut self, more: bool, each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let in_time = self.listen_until(self.deadline, more, each)?;
        if !in_time {
            let what = format!("was not done within {LIMIT:?}, the limit of a measure");
            bail!(self.running.with_stderr(&what));
        }
        Ok(())
    }

    /// The same with a time of the caller's; `false` if it was over before anything happened.
    pub fn listen_until(
        &mut self,
        until: Instant,
        more: bool,
        each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<bool> {
        let ready = self.wait(more, until)?;
        if ready.readable {
            self.read(each)?;
        }
        Ok(ready.readable || ready.writable)
    }

    /// Waits until the target has said something or, if `more` is to be written, takes more.
    fn wait(&self, more: bool, until: Instant) -> Result<Ready> {
        let stdin = self.stdin.as_ref().context("the conversation is over")?;
        let mut polled = [
            PollFd::new(self.stdout.as_fd(), PollFlags::POLLIN),
            PollFd::new(stdin.as_fd(), PollFlags::POLLOUT),
        ];
        let polled = &mut polled[..1 + usize::from(more)];
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            // Even for a target that still trickles bytes.
            return Ok(Ready::default());
        }
        // Rounded up: a wait that ends a little early would look like a hung target.
        let timeout = PollTimeout::try_from(left + Duration::from_millis(1))?;
        match poll(polled, timeout) {
            Ok(_) => {}
            // Nothing is ready, but time is not over either: the caller tries again.
            Err(Errno::EINTR) => {
                return Ok(Ready { readable: false, writable: true });
            }
            Err(error) => return Err(error).context("cannot poll"),
        }
        let any = |place: usize| polled.get(place).and_then(PollFd::any) == Some(true);
        Ok(Ready { readable: any(0), writable: any(1) })
    }

    /// Reads once. Only new bytes are searched for a newline, or a 10 MB answer would be quadratic.
    fn read(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.bytes.len() - self.filled < CHUNK {
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
        let count = match self.stdout.read(&mut self.bytes[self.filled..]) {
            Ok(0) => bail!("{}", self.running.with_stderr("closed its stdout")),
            Ok(count) => count,
            Err(error) if is_passing(&error) => return Ok(()),
            Err(error) => return Err(error).context(self.running.with_stderr("cannot be read")),
        };
        let fresh = self.filled;
        self.filled += count;
        let Some(last) = memrchr(b'\n', &self.bytes[fresh..self.filled]) else {
            return Ok(());
        };
        let complete = fresh + last + 1;
        let (mut start, mut searched) = (0, fresh);
        while let Some(length) = memchr(b'\n', &self.bytes[searched..complete]) {
            let end = searched + length;
            each(&self.bytes[start..end])?;
            start = end + 1;
            searched = start;
        }
        self.bytes.copy_within(complete..self.filled, 0);
        self.filled -= complete;
        Ok(())
    }

    /// Since the moment before the spawn.
    pub fn age(&self) -> Duration {
        self.running.started.elapsed()
    }

    pub fn own_processes(&self) -> Vec<u32> {
        self.running.own_processes()
    }

    /// Ends the conversation as a client does, by closing stdin.
    pub fn close(self) -> Result<()> {
        self.close_and_tell().map(drop)
    }

    /// The same; its process and all it wrote to stderr.
    pub fn close_and_tell(mut self) -> Result<(u32, String)> {
        self.stdin = None;
        self.running.wait_gone("its stdin was closed")?;
        Ok((self.running.child.id(), self.running.said()))
    }
}

#[derive(Default)]
struct Ready {
    readable: bool,
    writable: bool,
}

fn is_passing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}
