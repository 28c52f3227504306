//! Our stderr: our own lines and the server's bytes, never blocking a call.
//!
//! A host may stop reading stderr. So while calls run, a thread of its own writes it ([`Stderr`]), made when
//! there is first something to write; what it cannot write in time waits, up to a bound, and is then dropped.
//! Where no call can wait (commands for a person, before the start, after the end) [`say`] writes at once.
//!
//! Nothing else writes to stderr. Where even stderr is closed there is nobody to tell, so no failure is reported.

use super::rotation::Rotation;
use super::text::escape;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes of a server that may wait. More: dropped and counted.
const SERVER: usize = 1 << 20;

/// Bytes that may wait in all: our own lines are few, unless ten thousand limits fire at once.
const ALL: usize = 4 << 20;

/// Bytes that are written at once.
const PART: usize = 64 << 10;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_millis(300);

/// Says one line to the person, who may see every character of it.
pub fn say(text: &str) {
    write(format!("outlast: {}\n", escape(text)).as_bytes());
}

/// The same of a text of several lines.
pub fn say_lines(text: &str) {
    let lines: Vec<String> = text.lines().map(escape).collect();
    write(format!("outlast: {}\n", lines.join("\n")).as_bytes());
}

/// Writes bytes as they are.
pub fn write(bytes: &[u8]) {
    let _ = try_write(bytes);
}

/// The same for who counts what is lost.
#[allow(clippy::disallowed_methods)]
pub fn try_write(bytes: &[u8]) -> io::Result<()> {
    io::stderr().write_all(bytes)
}

/// Whether a person looks on.
#[allow(clippy::disallowed_methods)]
pub fn is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// The way to stderr while calls run.
#[derive(Debug, Default)]
pub struct Stderr {
    /// What this turn wrote; the thread is not woken for each line of it.
    turn: Vec<u8>,
    shared: Arc<Shared>,
    runs: bool,
    /// It is a log that must not grow; taken by the thread.
    rotation: Option<Rotation>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    dropped: usize,
    writing: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Stderr {
    /// Our stderr where it is a log of our own.
    pub fn rotated(rotation: Rotation) -> Stderr {
        Stderr { rotation: Some(rotation), ..Stderr::default() }
    }

    /// Takes a line of ours; it leaves with [`Stderr::flush`]. Never waits.
    pub fn line(&mut self, line: &[u8]) {
        if self.turn.len() + line.len() > ALL {
            self.flush();
        }
        self.turn.extend_from_slice(line);
    }

    /// Hands what this turn said to the thread that can wait.
    pub fn flush(&mut self) {
        if !self.turn.is_empty() {
            let turn = std::mem::take(&mut self.turn);
            self.hand_over(&turn, ALL);
        }
    }

    /// Passes a server's bytes on, after what was said before them. Never waits.
    pub fn server(&mut self, bytes: &[u8]) {
        self.flush();
        self.hand_over(bytes, SERVER);
    }

    fn hand_over(&mut self, bytes: &[u8], bound: usize) {
        self.shared.lock().take(bytes, bound);
        self.shared.changed.notify_all();
        if !self.runs {
            let (shared, rotation) = (self.shared.clone(), self.rotation.take());
            let thread = std::thread::Builder::new().name("stderr".into());
            self.runs = thread.spawn(move || write_all(&shared, rotation)).is_ok();
        }
    }

    /// Waits a short while for what is left.
    pub fn finish(&mut self) {
        self.flush();
        if !self.runs {
            return;
        }
        let waiting = self.shared.lock();
        let busy = |waiting: &mut Waiting| waiting.writing || !waiting.bytes.is_empty();
        let waited = self.shared.changed.wait_timeout_while(waiting, LAST, busy);
        drop(waited);
    }
}

impl Waiting {
    /// Adds what fits; says later how much did not.
    fn take(&mut self, bytes: &[u8], bound: usize) {
        if self.bytes.len() + bytes.len() > bound {
            self.dropped += bytes.len();
            return;
        }
        if self.dropped > 0 {
            let note = format!("outlast: {} bytes of stderr were dropped: nobody read them\n", self.dropped);
            self.bytes.extend_from_slice(note.as_bytes());
            self.dropped = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }
}

fn write_all(shared: &Shared, mut rotation: Option<Rotation>) {
    loop {
        let mut waiting = shared.lock();
        waiting.writing = false;
        shared.changed.notify_all();
        while waiting.bytes.is_empty() {
            waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.writing = true;
        let bytes = std::mem::take(&mut waiting.bytes);
        drop(waiting);
        for part in bytes.chunks(PART) {
            write(part);
            rotation.iter_mut().for_each(|rotation| rotation.wrote(part.len()));
        }
    }
}
