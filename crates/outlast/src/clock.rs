//! The only reader of time.
//!
//! `Instant` is the monotonic clock that does not count sleep on Linux and macOS, which is what
//! limits need: a laptop that was closed for an hour has not used up anybody's hour.

#![allow(clippy::disallowed_methods)] // this is the one place

use outlast_engine::{Mono, Now, Wall};
use std::time::{Duration, Instant, SystemTime};

/// Reads both clocks, from a common start.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    start: Instant,
    wall_start: SystemTime,
}

impl Clock {
    /// Starts counting.
    pub fn start() -> Clock {
        Clock { start: Instant::now(), wall_start: SystemTime::now() }
    }

    /// Both clocks now. The wall clock is read where people see it, not here: what the engine gets
    /// is the start's wall time moved on by the monotonic clock, and sleeps are told to it apart.
    pub fn now(&self) -> Now {
        let elapsed = self.start.elapsed();
        let wall = self.wall_start + elapsed;
        Now { mono: Mono::after_start(elapsed), wall: Wall(millis_since_1970(wall)) }
    }

    /// When a point of the engine's clock will be.
    pub fn instant(&self, at: Mono) -> Instant {
        self.start + at.since_start()
    }

    /// Whether a moment has passed.
    pub fn is_past(&self, moment: Instant) -> bool {
        is_past(moment)
    }

    /// How far the wall clock has run ahead of the monotonic one since the last call: the machine
    /// slept, or somebody set the clock. Small differences are the usual drift.
    pub fn slept(&mut self) -> Option<Duration> {
        let expected = self.wall_start + self.start.elapsed();
        let ahead = SystemTime::now().duration_since(expected).ok()?;
        if ahead < Duration::from_secs(5) {
            return None;
        }
        self.wall_start += ahead;
        Some(ahead)
    }
}

/// Now, for what only measures how long something took.
pub fn monotonic() -> Instant {
    Instant::now()
}

/// A moment that lies this far ahead.
pub fn in_future(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

/// How far a moment still lies ahead; nothing if it has passed.
#[cfg(any(target_os = "linux", test))]
pub fn left_until(moment: Instant) -> Duration {
    moment.saturating_duration_since(Instant::now())
}

/// Milliseconds since the machine started, without those it slept: the same for all its processes.
pub fn awake() -> u64 {
    crate::sys::awake()
}

/// Whether a moment has passed.
pub fn is_past(moment: Instant) -> bool {
    Instant::now() > moment
}

fn millis_since_1970(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The wall clock, for what is stored and for people.
pub fn wall() -> Wall {
    Wall(millis_since_1970(SystemTime::now()))
}

/// The wall clock, for a person: `2026-11-15T09:30:00.123Z`.
pub fn timestamp() -> String {
    wall().timestamp()
}
