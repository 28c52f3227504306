//! What the thread that reads and the probes share: the record, a bell for its changes, the output.

use super::profile;
use super::record::Record;
use crate::clock::Clock;
use outlast_engine::Mono;
use serde_json::Value;
use std::io::{self, Write};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub struct Desk {
    clock: Clock,
    record: Mutex<Record>,
    changed: Condvar,
}

impl Desk {
    pub fn new() -> Desk {
        Desk { clock: Clock::start(), record: Mutex::default(), changed: Condvar::new() }
    }

    pub fn now(&self) -> Mono {
        self.clock.now().mono
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn look<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&self.lock())
    }

    /// Changes the record, at a time, and wakes who waits for that.
    pub fn change<T>(&self, change: impl FnOnce(&mut Record, Mono) -> T) -> T {
        let changed = change(&mut self.lock(), self.now());
        self.changed.notify_all();
        changed
    }

    /// Waits until this long after a call began, as long as something holds; whether it still does.
    pub fn wait(&self, place: usize, time: Duration, holds: impl Fn(&Record) -> bool) -> bool {
        let record = self.lock();
        let left = (record.calls[place].began + time).since(self.now());
        let (record, _) = self
            .changed
            .wait_timeout_while(record, left, |record| holds(record))
            .unwrap_or_else(PoisonError::into_inner);
        holds(&record)
    }

    /// Sends one line. A client that does not listen any more closes our input soon.
    pub fn send(&self, message: &Value) {
        let mut out = io::stdout().lock();
        let _ = out.write_all(format!("{message}\n").as_bytes()).and_then(|()| out.flush());
    }

    /// The connection has ended: what was learned goes to stderr, where clients keep logs.
    pub fn close(&self) {
        let profile = self.change(|record, now| {
            // Both the end of input and a signal may end us, and the profile is said once.
            let said = record.closed;
            record.close(now);
            (!said).then(|| profile::text(record))
        });
        if let Some(profile) = profile {
            crate::observe::stderr::write(profile.as_bytes());
        }
    }
}
