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

/// A moment that lies this far ahead.
pub fn in_future(time: Duration) -> Instant {
    let now = Instant::now();
    now.checked_add(time).unwrap_or(now)
}

/// Whether a moment has passed.
pub fn is_past(moment: Instant) -> bool {
    Instant::now() > moment
}

fn millis_since_1970(time: SystemTime) -> u64 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// The wall clock, for a person: `2026-11-15T09:30:00.123Z`.
pub fn timestamp() -> String {
    let millis = millis_since_1970(SystemTime::now());
    let (days, rest) = (millis / 86_400_000, millis % 86_400_000);
    let (year, month, day) = civil(days as i64);
    let (hours, minutes) = (rest / 3_600_000, rest / 60_000 % 60);
    format!("{year}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{:02}.{:03}Z", rest / 1000 % 60, rest % 1000)
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

#[cfg(test)]
mod tests {
    use super::civil;

    #[test]
    fn days_become_dates() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(civil(20_772), (2026, 11, 15));
    }
}
