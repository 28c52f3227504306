//! Time as the engine sees it: an argument, never a question.
//!
//! `Mono` does not count sleep and never steps back; every limit runs on it. `Wall` is what people
//! and records use; no limit depends on it.

use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the monotonic clock, in nanoseconds since an arbitrary start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mono(u64);

/// A point on the wall clock, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wall(pub u64);

/// Both clocks, read together by the edge that brings an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// For limits.
    pub mono: Mono,
    /// For people.
    pub wall: Wall,
}

impl Mono {
    /// The point this long after the clock's start.
    pub const fn after_start(elapsed: Duration) -> Mono {
        Mono(clamp(elapsed))
    }

    pub(crate) const fn nanos(self) -> u64 {
        self.0
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Mono {
        Mono(nanos)
    }

    /// Time from `earlier` until here; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Time since the clock's start.
    pub const fn since_start(self) -> Duration {
        Duration::from_nanos(self.0)
    }
}

/// 584 years fit; a longer limit is as good as that.
const fn clamp(duration: Duration) -> u64 {
    let nanos = duration.as_nanos();
    if nanos > u64::MAX as u128 { u64::MAX } else { nanos as u64 }
}

impl Add<Duration> for Mono {
    type Output = Mono;
    fn add(self, duration: Duration) -> Mono {
        Mono(self.0.saturating_add(clamp(duration)))
    }
}

impl Sub<Duration> for Mono {
    type Output = Mono;
    fn sub(self, duration: Duration) -> Mono {
        Mono(self.0.saturating_sub(clamp(duration)))
    }
}
