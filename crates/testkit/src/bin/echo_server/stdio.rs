//! The server on stdio: reads a large chunk, answers every complete line of it and writes once.
//!
//! At end of file it ends at once; calls that are still pending are not answered.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use memchr::{memchr, memrchr};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

use super::messages::{self, Ask, Counts, ECHO, INITIALIZED, Message, NOTHING, Reader};

/// At least this much room is offered to every read.
const CHUNK: usize = 256 * 1024;

/// A payload from this size on is written from where it was read instead of being copied first.
const LARGE: usize = 64 * 1024;

/// The last wait before something is due is no longer than this.
const LAST_WAIT: Duration = Duration::from_millis(20);

/// Serves until end of file.
pub fn serve(reader: Reader) -> io::Result<()> {
    let mut input = Input::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut server = Server::new(stdout, reader);
    loop {
        let readable = wait(&input.from, server.next_due())?;
        if readable && !input.fill()? {
            return Ok(());
        }
        let now = Instant::now();
        for line in input.lines() {
            server.handle(line, now)?;
        }
        input.consume();
        server.answer_due(now);
        server.flush()?;
    }
}

/// Waits for input, at most until `due`; says whether there is input.
///
/// With nothing due the read itself is the wait: one system call less for each message.
///
/// A long wait ends early and is followed by a short one: Linux lets a poll be late by a thousandth
/// of its timeout, and the server's lateness would cover the proxy's.
fn wait(input: &File, due: Option<Instant>) -> io::Result<bool> {
    let Some(due) = due else { return Ok(true) };
    let left = due.saturating_duration_since(Instant::now());
    let left = left.checked_sub(LAST_WAIT).unwrap_or(left);
    let mut polled = [PollFd::new(input.as_fd(), PollFlags::POLLIN)];
    match ppoll(&mut polled, Some(TimeSpec::from_duration(left)), None) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::EINTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// What has been read and not yet been answered.
struct Input {
    from: File,
    bytes: Vec<u8>,
    filled: usize,
    /// Everything before this is complete lines.
    complete: usize,
    /// No newline stands before this.
    searched: usize,
}

impl Input {
    fn new(from: File) -> Input {
        Input { from, bytes: vec![0; 2 * CHUNK], filled: 0, complete: 0, searched: 0 }
    }

    /// Reads once; `false` at end of file. Only new bytes are searched for a newline: searching a
    /// 10 MB line from its start after every read would be quadratic.
    fn fill(&mut self) -> io::Result<bool> {
        if self.bytes.len() - self.filled < CHUNK {
            self.bytes.resize(2 * self.bytes.len(), 0);
        }
        let count = match self.from.read(&mut self.bytes[self.filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        self.searched = self.filled;
        self.filled += count;
        if let Some(newline) = memrchr(b'\n', &self.bytes[self.searched..self.filled]) {
            self.complete = self.searched + newline + 1;
        }
        Ok(true)
    }

    /// The complete lines, without their newlines.
    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let block = &self.bytes[..self.complete];
        let (mut start, mut searched) = (0, self.searched);
        std::iter::from_fn(move || {
            let end = searched + memchr(b'\n', block.get(searched..)?)?;
            let line = &block[start..end];
            start = end + 1;
            searched = start;
            Some(line)
        })
    }

    /// Forgets the complete lines and moves the begun one to the front.
    fn consume(&mut self) {
        self.bytes.copy_within(self.complete..self.filled, 0);
        self.filled -= self.complete;
        self.complete = 0;
        self.searched = self.filled;
    }
}

/// A `later` call: due first, then in the order of arrival.
type Pending = Reverse<(Instant, u64, Box<[u8]>)>;

struct Server {
    stdout: File,
    reader: Reader,
    /// Answers that leave with the next write.
    out: Vec<u8>,
    pending: BinaryHeap<Pending>,
    counts: Counts,
}

impl Server {
    fn new(stdout: File, reader: Reader) -> Server {
        Server {
            stdout,
            reader,
            out: Vec::with_capacity(CHUNK),
            pending: BinaryHeap::new(),
            counts: Counts::default(),
        }
    }

    fn handle(&mut self, line: &[u8], now: Instant) -> io::Result<()> {
        let message = self.reader.read(line)?;
        self.counts.note(&message);
        let Message::Request { id, ask } = message else { return Ok(()) };
        match ask {
            Ask::Initialize => self.answer(id, INITIALIZED),
            Ask::Same(result) => self.answer(id, result),
            Ask::Echo(payload) => self.echo(id, payload)?,
            Ask::Say(text) => {
                messages::say(id, &text, &mut self.out)?;
                self.out.push(b'\n');
            }
            Ask::Later(delay) => self.pending.push(Reverse((now + delay, self.counts.calls, id.into()))),
            Ask::Never => {}
            Ask::Stats => self.answer(id, &self.counts.result()),
        }
        Ok(())
    }

    fn echo(&mut self, id: &[u8], payload: &[u8]) -> io::Result<()> {
        messages::begin(id, &mut self.out);
        self.out.extend_from_slice(ECHO[0]);
        if payload.len() < LARGE {
            self.out.extend_from_slice(payload);
        } else {
            self.flush()?;
            self.stdout.write_all(payload)?;
        }
        self.out.extend_from_slice(ECHO[1]);
        self.out.extend_from_slice(b"}\n");
        Ok(())
    }

    fn answer(&mut self, id: &[u8], result: &[u8]) {
        messages::begin(id, &mut self.out);
        self.out.extend_from_slice(result);
        self.out.extend_from_slice(b"}\n");
    }

    fn next_due(&self) -> Option<Instant> {
        self.pending.peek().map(|Reverse((due, ..))| *due)
    }

    /// Answers that are due together leave in one write.
    fn answer_due(&mut self, now: Instant) {
        while self.next_due().is_some_and(|due| due <= now) {
            if let Some(Reverse((_, _, id))) = self.pending.pop() {
                self.answer(&id, NOTHING);
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.out.is_empty() {
            return Ok(());
        }
        self.stdout.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }
}
