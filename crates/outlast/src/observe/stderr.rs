//! Our stderr: our own lines and the server's bytes, never blocking a call.
//!
//! A host may stop reading stderr. So a thread of its own writes it, made when there is first
//! something to write; what it cannot write in time waits, up to a bound, and is then dropped.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Bytes that may wait. More: dropped and counted.
const BOUND: usize = 1 << 20;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_millis(300);

/// The way to stderr.
#[derive(Debug, Default)]
pub struct Stderr {
    shared: Arc<Shared>,
    runs: bool,
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
    /// Queues bytes; never waits.
    pub fn write(&mut self, bytes: &[u8]) {
        {
            let mut waiting = self.shared.lock();
            if waiting.bytes.len() + bytes.len() > BOUND {
                waiting.dropped += bytes.len();
                return;
            }
            if waiting.dropped > 0 {
                let note =
                    format!("outlast: {} bytes of stderr were dropped: nobody read them\n", waiting.dropped);
                waiting.bytes.extend_from_slice(note.as_bytes());
                waiting.dropped = 0;
            }
            waiting.bytes.extend_from_slice(bytes);
        }
        self.shared.changed.notify_all();
        if !self.runs {
            let shared = self.shared.clone();
            let thread = std::thread::Builder::new().name("stderr".into());
            self.runs = thread.spawn(move || write_all(&shared)).is_ok();
        }
    }

    /// Waits a short while for what is left.
    pub fn finish(&mut self) {
        if !self.runs {
            return;
        }
        let waiting = self.shared.lock();
        let busy = |waiting: &mut Waiting| waiting.writing || !waiting.bytes.is_empty();
        let waited = self.shared.changed.wait_timeout_while(waiting, LAST, busy);
        drop(waited);
    }
}

fn write_all(shared: &Shared) {
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
        // A stderr that is closed takes nothing; there is nowhere to say so.
        let _ = std::io::stderr().write_all(&bytes);
    }
}
