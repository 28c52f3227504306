//! Time without the waits for persons, as the judge counts it: while one is asked, no `timeout` runs.

use std::collections::BTreeSet;
use std::time::Duration;

/// The server's working time, seen from outside.
#[derive(Debug, Default)]
pub(super) struct WorkTime {
    asked: BTreeSet<String>,
    since: Duration,
    waited: Duration,
}

impl WorkTime {
    pub(super) fn at(&self, now: Duration) -> Duration {
        let waiting = if self.asked.is_empty() { Duration::ZERO } else { now - self.since };
        now - self.waited - waiting
    }

    /// A person is asked.
    pub(super) fn asks(&mut self, now: Duration, question: String) {
        if self.asked.is_empty() {
            self.since = now;
        }
        self.asked.insert(question);
    }

    /// A person has answered, or is not asked any more.
    pub(super) fn answers(&mut self, now: Duration, question: &str) {
        if self.asked.remove(question) && self.asked.is_empty() {
            self.waited += now - self.since;
        }
    }

    /// Whoever asked is gone.
    pub(super) fn nobody_asks(&mut self, now: Duration) {
        if !std::mem::take(&mut self.asked).is_empty() {
            self.waited += now - self.since;
        }
    }
}
