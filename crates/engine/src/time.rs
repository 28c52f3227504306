//! Time as the engine sees it: an argument, never a question.
//!
//! `Mono` does not count sleep and never steps back; every limit runs on it. `Wall` is what people
//! and records use; no limit depends on it.

use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::ops::{Add, Sub};
use std::time::Duration;

/// A point on the monotonic clock, in nanoseconds since an arbitrary start. One more is stored, so that a
/// point that is not there costs no extra space: every call has several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub struct Mono(NonZeroU64);

/// A point on the wall clock, in milliseconds since 1970.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Wall(pub u64);

/// Both clocks, read together by the edge that brings an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Now {
    /// For limits.
    pub mono: Mono,
    /// For people.
    pub wall: Wall,
}

/// A length of time that every call keeps: it and its absence take half the room of a `Duration`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Span(NonZeroU64);

impl From<Duration> for Span {
    fn from(duration: Duration) -> Span {
        Span(NonZeroU64::MIN.saturating_add(clamp(duration)))
    }
}

impl From<Span> for Duration {
    fn from(span: Span) -> Duration {
        Duration::from_nanos(span.0.get() - 1)
    }
}

impl Wall {
    /// The point this long after here.
    pub fn after(self, duration: Duration) -> Wall {
        Wall(self.0.saturating_add(millis(duration)))
    }

    /// The point this long before here.
    pub fn before(self, duration: Duration) -> Wall {
        Wall(self.0.saturating_sub(millis(duration)))
    }

    /// Time from `earlier` until here; zero if `earlier` is in fact later.
    pub fn since(self, earlier: Wall) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0))
    }

    /// For a person or a message: `2026-11-15T09:30:00.123Z`.
    pub fn timestamp(self) -> String {
        let (days, rest) = (self.0 / 86_400_000, self.0 % 86_400_000);
        let (year, month, day) = civil(days as i64);
        let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
        format!(
            "{year}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{:03}Z",
            rest / 1000 % 60,
            rest % 1000
        )
    }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Year, month and day of a day counted from 1970-01-01, in the Gregorian calendar.
fn civil(days: i64) -> (i64, i64, i64) {
    // Counted from 0000-03-01, so that the leap day is the last of its year.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

/// As a recording has it: nanoseconds since the clock's start.
impl From<u64> for Mono {
    fn from(nanos: u64) -> Mono {
        Mono::from_nanos(nanos)
    }
}

impl From<Mono> for u64 {
    fn from(mono: Mono) -> u64 {
        mono.nanos()
    }
}

impl Default for Mono {
    /// The clock's start.
    fn default() -> Mono {
        Mono(NonZeroU64::MIN)
    }
}

impl Mono {
    /// The point this long after the clock's start.
    pub const fn after_start(elapsed: Duration) -> Mono {
        Mono::from_nanos(clamp(elapsed))
    }

    pub(crate) const fn nanos(self) -> u64 {
        self.0.get() - 1
    }

    pub(crate) const fn from_nanos(nanos: u64) -> Mono {
        Mono(NonZeroU64::MIN.saturating_add(nanos))
    }

    /// Time from `earlier` until here; zero if `earlier` is in fact later.
    pub const fn since(self, earlier: Mono) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }

    /// Time since the clock's start.
    pub const fn since_start(self) -> Duration {
        Duration::from_nanos(self.nanos())
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
        Mono::from_nanos(self.nanos().saturating_sub(clamp(duration)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_keep_their_distance_up_to_both_ends() {
        let start = Mono::default();
        assert_eq!(start, Mono::after_start(Duration::ZERO));
        let (soon, late) = (start + Duration::from_nanos(7), start + Duration::MAX);
        assert_eq!((soon.nanos(), soon.since(start)), (7, Duration::from_nanos(7)));
        assert_eq!((soon - Duration::from_nanos(7), soon - Duration::from_nanos(8)), (start, start));
        assert_eq!((late + Duration::from_nanos(1), start.since(late)), (late, Duration::ZERO));
        assert_eq!(size_of::<Option<Mono>>(), 8);
    }

    #[test]
    fn spans_are_as_long_as_they_were() {
        for duration in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(u32::MAX.into())] {
            assert_eq!(Duration::from(Span::from(duration)), duration);
        }
        assert_eq!(size_of::<Option<Span>>(), 8);
    }

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_772), (2026, 11, 15));
        assert_eq!(Wall(1_794_735_000_123).timestamp(), "2026-11-15T09:30:00.123Z");
    }
}
