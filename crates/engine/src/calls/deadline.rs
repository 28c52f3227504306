//! When a call's limits fire.
//!
//! Signs of life only note the time; the call's one timer finds out when it rings whether the limit
//! has really been reached, and goes back to sleep if not. So a million progress reports cost
//! nothing here.
//!
//! While a person is asked, `timeout` stands still: for the one call that the question belongs to, where that is known
//! (over HTTP, by the stream that the question came on), or else for every call of that server. It therefore runs on the server's
//! *working time* ([`WorkClock`]), which does not pass while the server waits, and a call has waits of its own.

use crate::life::Sample;
use crate::limits;
use crate::policy::{Layer, Limit, Policy};
use crate::time::{Mono, Span};
use std::time::Duration;

/// A server's working time: the monotonic clock without the waits for a person.
#[derive(Clone, Copy, Debug, Default)]
pub struct WorkClock {
    waited: Duration,
    waiting_since: Option<Mono>,
    waits: u32,
}

/// A point in working time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Work(Mono);

impl WorkClock {
    /// Working time now.
    pub fn at(&self, now: Mono) -> Work {
        Work(self.waiting_since.unwrap_or(now) - self.waited)
    }

    /// Whether it stands still.
    pub fn stands_still(&self) -> bool {
        self.waiting_since.is_some()
    }

    /// A person is asked.
    pub fn wait_begins(&mut self, now: Mono) {
        self.waits += 1;
        self.waiting_since.get_or_insert(now);
    }

    /// A person answered, or is waited for no longer. True when the clock runs again.
    pub fn wait_ends(&mut self, now: Mono) -> bool {
        self.waits = self.waits.saturating_sub(1);
        if self.waits > 0 {
            return false;
        }
        if let Some(since) = self.waiting_since.take() {
            self.waited += now.since(since);
        }
        true
    }
}

/// Which limit was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reached {
    /// No sign of life for as long as `timeout` allows.
    Timeout(Limit),
    /// `max`.
    Max(Limit),
}

/// What a call's limits want at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// Nothing.
    Nothing,
    /// The server's signs of life, to compare with later ones.
    FirstSample,
    /// The server's signs of life, to decide.
    LastSample,
    /// The call ends.
    End(Reached),
}

/// The limits of one call.
#[derive(Clone, Debug)]
pub struct Deadline {
    timeout: Option<Span>,
    max: Span,
    /// Who says so of either: beside each other they take half the room.
    layers: (Layer, Layer),
    samples: bool,
    max_at: Mono,
    /// Last sign of life of the call, or its beginning.
    sign: Work,
    sign_at: Mono,
    first_sample: Option<Box<Sample>>,
    /// It waits for a person while its server may work on.
    wait: Option<Box<Wait>>,
}

/// A wait of one call for persons.
#[derive(Clone, Copy, Debug)]
struct Wait {
    since: Work,
    /// Questions that are open.
    open: u32,
}

impl Deadline {
    /// Limits that begin to run now.
    pub fn new(policy: &Policy, now: Mono, clock: &WorkClock) -> Deadline {
        Deadline {
            timeout: policy.timeout.map(|timeout| timeout.time.into()),
            max: policy.max.time.into(),
            layers: (policy.timeout.map_or(Layer::BuiltIn, |timeout| timeout.layer), policy.max.layer),
            samples: policy.signs.server,
            max_at: now + policy.max.time,
            sign: clock.at(now),
            sign_at: now,
            first_sample: None,
            wait: None,
        }
    }

    /// A person is asked on behalf of this call alone.
    pub fn wait_begins(&mut self, now: Mono, clock: &WorkClock) {
        let wait = self.wait.get_or_insert_with(|| Box::new(Wait { since: clock.at(now), open: 0 }));
        wait.open += 1;
    }

    /// A person answered, or is waited for no longer: what passed of the server's working time was not the call's.
    pub fn wait_ends(&mut self, now: Mono, clock: &WorkClock) {
        let Some(wait) = &mut self.wait else { return };
        wait.open -= 1;
        if wait.open == 0 {
            self.sign.0 = self.sign.0 + clock.at(now).0.since(wait.since.0);
            self.first_sample = None;
            self.wait = None;
        }
    }

    fn stands_still(&self, clock: &WorkClock) -> bool {
        self.wait.is_some() || clock.stands_still()
    }

    /// The call has run for so long already: that counts for `max`.
    pub fn has_run(&mut self, now: Mono, before: Duration) {
        self.max_at = now + Duration::from(self.max).saturating_sub(before);
    }

    /// A sign of life that resets `timeout`.
    pub fn sign(&mut self, now: Mono, clock: &WorkClock) {
        self.sign = clock.at(now);
        self.sign_at = now;
        self.first_sample = None;
        if let Some(wait) = &mut self.wait {
            wait.since = self.sign;
        }
    }

    /// When it last gave a sign of life, or began.
    pub fn sign_at(&self) -> Mono {
        self.sign_at
    }

    /// Keeps what the server looked like before the limit.
    pub fn keep_sample(&mut self, sample: Sample) {
        self.first_sample = Some(Box::new(sample));
    }

    /// What the server looked like before the limit.
    pub fn first_sample(&self) -> Option<&Sample> {
        self.first_sample.as_deref()
    }

    /// What is due.
    pub fn due(&self, now: Mono, clock: &WorkClock) -> Due {
        if now >= self.max_at {
            return Due::End(Reached::Max(Limit { time: self.max.into(), layer: self.layers.1 }));
        }
        let Some(timeout) = self.timeout().filter(|_| !self.stands_still(clock)) else { return Due::Nothing };
        let silent = clock.at(now).0.since(self.sign.0);
        if silent >= timeout.time {
            return if self.samples { Due::LastSample } else { Due::End(Reached::Timeout(timeout)) };
        }
        if self.samples && self.first_sample.is_none() && silent >= timeout.time - lead(timeout) {
            return Due::FirstSample;
        }
        Due::Nothing
    }

    /// How old a sample may be that serves this call. Always younger than the time between the two
    /// that are compared, or a call would be judged by one sample alone.
    pub fn sample_age(&self) -> Duration {
        let Some(timeout) = self.timeout() else { return Duration::ZERO };
        reached!(SAMPLE_SHARED if lead(timeout) / 4 > limits::SAMPLE_SHARED);
        limits::SAMPLE_SHARED.min(lead(timeout) / 4)
    }

    /// Whether the server's signs of life move it.
    pub fn samples(&self) -> bool {
        self.samples
    }

    /// When `max` ends it.
    pub fn ends_at(&self) -> Mono {
        self.max_at
    }

    /// The limit that a server without signs of life has reached.
    pub fn timeout(&self) -> Option<Limit> {
        self.timeout.map(|time| Limit { time: time.into(), layer: self.layers.0 })
    }

    /// How long it may still be silent.
    pub fn timeout_left(&self, now: Mono, clock: &WorkClock) -> Option<Duration> {
        let silent = if self.wait.is_some() { Duration::ZERO } else { clock.at(now).0.since(self.sign.0) };
        Some(self.timeout()?.time.saturating_sub(silent))
    }

    /// The longest that it may take.
    pub fn max(&self) -> Duration {
        self.max.into()
    }

    /// When to look again.
    pub fn wake_at(&self, now: Mono, clock: &WorkClock) -> Mono {
        let Some(timeout) = self.timeout().filter(|_| !self.stands_still(clock)) else { return self.max_at };
        let silent = clock.at(now).0.since(self.sign.0);
        let first = timeout.time - lead(timeout);
        let next =
            if self.samples && self.first_sample.is_none() && silent < first { first } else { timeout.time };
        self.max_at.min(now + next.saturating_sub(silent))
    }
}

/// How long before a limit the first of the two samples is taken.
fn lead(timeout: Limit) -> Duration {
    reached!(SAMPLE_LEAD if timeout.time / 4 > limits::SAMPLE_LEAD);
    limits::SAMPLE_LEAD.min(timeout.time / 4)
}
