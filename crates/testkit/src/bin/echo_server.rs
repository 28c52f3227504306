//! The server behind `cargo xtask bench`: speaks just enough MCP on stdio, and costs next to nothing.
//!
//! Whatever this process spends is added to both sides of a ratio and hides what the proxy spends.
//! So it reads a large chunk, answers every complete line of it and writes once; fields are found by
//! searching the raw bytes, no tree is built. That is only right for messages as the benchmark's
//! driver writes them: no blanks between tokens, `arguments` last, no member called `id`, `method`
//! or `name` before the one that is meant. A proxy may replace the id and add `_meta` to `params`.
//!
//! Tools: `echo` gives `payload` back, `later` answers after `ms` milliseconds, `never` does not
//! answer, `stats` tells how many calls and `notifications/cancelled` were seen.
//!
//! At end of file it ends at once; calls that are still pending are not answered.
//! Not bounded: the length of a line and the number of pending calls. The only peer is our driver.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server of its own in real time, not a part of the engine"
)]

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use memchr::{memchr, memchr2, memrchr};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::time::TimeSpec;

/// At least this much room is offered to every read.
const CHUNK: usize = 256 * 1024;

/// A payload from this size on is written from where it was read instead of being copied first.
const LARGE: usize = 64 * 1024;

/// The last wait before something is due is no longer than this.
const LAST_WAIT: Duration = Duration::from_millis(20);

const INITIALIZED: &[u8] = br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo-server","version":"1"}}"#;

fn main() -> io::Result<()> {
    start_slowly();
    let mut input = Input::new(File::from(io::stdin().as_fd().try_clone_to_owned()?));
    let stdout = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    let mut server = Server::new(stdout);
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

/// `ECHO_SLOW_START_MS`: as long as a launcher needs to load a server.
fn start_slowly() {
    if let Some(millis) = std::env::var("ECHO_SLOW_START_MS").ok().and_then(|text| text.parse().ok()) {
        std::thread::sleep(Duration::from_millis(millis));
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

/// Searchers for the members that matter, built once.
struct Members {
    id: Finder<'static>,
    method: Finder<'static>,
    name: Finder<'static>,
    payload: Finder<'static>,
    ms: Finder<'static>,
}

impl Members {
    fn new() -> Members {
        Members {
            id: Finder::new(br#""id":"#),
            method: Finder::new(br#""method":""#),
            name: Finder::new(br#""name":""#),
            payload: Finder::new(br#""payload":""#),
            ms: Finder::new(br#""ms":"#),
        }
    }
}

/// What follows the first occurrence of a member's name.
fn after<'a>(line: &'a [u8], member: &Finder<'_>) -> Option<&'a [u8]> {
    let at = member.find(line)?;
    Some(&line[at + member.needle().len()..])
}

/// A string without its quotes, escapes left as they are; `text` begins after the opening quote.
fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(&text[..at]);
        }
        at += 2;
    }
}

/// A number or a string with its quotes: whatever stands before the next member or the end.
fn scalar(text: &[u8]) -> Option<&[u8]> {
    Some(&text[..memchr2(b',', b'}', text)?])
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(scalar(text)?).ok()?.parse().ok()
}

/// A `later` call: due first, then in the order of arrival.
type Pending = Reverse<(Instant, u64, Box<[u8]>)>;

struct Server {
    stdout: File,
    members: Members,
    /// Answers that leave with the next write.
    out: Vec<u8>,
    pending: BinaryHeap<Pending>,
    calls: u64,
    cancelled: u64,
}

impl Server {
    fn new(stdout: File) -> Server {
        Server {
            stdout,
            members: Members::new(),
            out: Vec::with_capacity(CHUNK),
            pending: BinaryHeap::new(),
            calls: 0,
            cancelled: 0,
        }
    }

    /// Takes one message; one that is not understood is an error, since it would spoil a figure.
    fn handle(&mut self, line: &[u8], now: Instant) -> io::Result<()> {
        let method = after(line, &self.members.method).and_then(string);
        let method = method.ok_or_else(|| strange(line))?;
        if method.starts_with(b"notifications/") {
            self.cancelled += u64::from(method == b"notifications/cancelled");
            return Ok(());
        }
        let id = after(line, &self.members.id).and_then(scalar);
        let id = id.ok_or_else(|| strange(line))?;
        match method {
            b"tools/call" => return self.call(line, id, now),
            b"initialize" => self.answer(id, INITIALIZED),
            b"tools/list" => self.answer(id, br#"{"tools":[]}"#),
            b"ping" => self.answer(id, b"{}"),
            _ => return Err(strange(line)),
        }
        Ok(())
    }

    fn call(&mut self, line: &[u8], id: &[u8], now: Instant) -> io::Result<()> {
        self.calls += 1;
        match after(line, &self.members.name).and_then(string) {
            Some(b"echo") => {
                let payload = after(line, &self.members.payload).and_then(string);
                self.echo(id, payload.ok_or_else(|| strange(line))?)?;
            }
            Some(b"later") => {
                let ms = after(line, &self.members.ms).and_then(number);
                let delay = Duration::from_millis(ms.ok_or_else(|| strange(line))?);
                self.pending.push(Reverse((now + delay, self.calls, id.into())));
            }
            Some(b"never") => {}
            Some(b"stats") => self.stats(id),
            _ => return Err(strange(line)),
        }
        Ok(())
    }

    fn echo(&mut self, id: &[u8], payload: &[u8]) -> io::Result<()> {
        self.begin(id);
        self.out.extend_from_slice(br#"{"content":[{"type":"text","text":""#);
        if payload.len() < LARGE {
            self.out.extend_from_slice(payload);
        } else {
            self.flush()?;
            self.stdout.write_all(payload)?;
        }
        self.out.extend_from_slice(b"\"}]}}\n");
        Ok(())
    }

    fn stats(&mut self, id: &[u8]) {
        let counts = format!(
            r#"{{"content":[],"structuredContent":{{"cancelled":{},"calls":{}}}}}"#,
            self.cancelled, self.calls
        );
        self.answer(id, counts.as_bytes());
    }

    fn answer(&mut self, id: &[u8], result: &[u8]) {
        self.begin(id);
        self.out.extend_from_slice(result);
        self.out.extend_from_slice(b"}\n");
    }

    /// The front of an answer, up to the result.
    fn begin(&mut self, id: &[u8]) {
        self.out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        self.out.extend_from_slice(id);
        self.out.extend_from_slice(br#","result":"#);
    }

    fn next_due(&self) -> Option<Instant> {
        self.pending.peek().map(|Reverse((due, ..))| *due)
    }

    /// Answers that are due together leave in one write.
    fn answer_due(&mut self, now: Instant) {
        while self.next_due().is_some_and(|due| due <= now) {
            if let Some(Reverse((_, _, id))) = self.pending.pop() {
                self.answer(&id, br#"{"content":[]}"#);
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

fn strange(line: &[u8]) -> io::Error {
    let start = String::from_utf8_lossy(&line[..line.len().min(200)]);
    io::Error::other(format!("echo-server does not understand: {start}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy may put its own id and a progress token into the request.
    #[test]
    fn members_are_found_behind_what_a_proxy_adds() {
        let line = br#"{"jsonrpc":"2.0","id":"o-7","method":"tools/call","params":{"_meta":{"progressToken":7},"name":"later","arguments":{"ms":250}}}"#;
        let members = Members::new();
        let id = after(line, &members.id).and_then(scalar);
        assert_eq!(id, Some(&br#""o-7""#[..]));
        let name = after(line, &members.name).and_then(string);
        assert_eq!(name, Some(&b"later"[..]));
        assert_eq!(after(line, &members.ms).and_then(number), Some(250));
    }

    #[test]
    fn string_ends_at_the_first_quote_that_is_not_escaped() {
        assert_eq!(string(br#"a\"b\\","c""#), Some(&br#"a\"b\\"#[..]));
        assert_eq!(string(b"never closed\\"), None);
    }
}
