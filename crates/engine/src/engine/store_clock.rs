//! The clock of the store, as far as this process knows it.
//!
//! Times in records are the store's. Ours may differ by an hour, so whoever compares a record with the present needs
//! the store's time. Every commit tells it. A commit lies between the moment at which it was asked for and the moment at
//! which we heard of it, so it proves a little about the difference, and the difference that is assumed changes
//! only if a commit proves it wrong: two clocks that agree are never corrected for the time that a disk takes.

use crate::time::Wall;

/// By how many milliseconds the store's clock is ahead of ours.
#[derive(Debug, Default)]
pub(super) struct StoreClock(i64);

impl StoreClock {
    /// What the store's clock shows when ours shows this.
    pub(super) fn shows(&self, ours: Wall) -> Wall {
        Wall(ours.0.saturating_add_signed(self.0))
    }

    /// Something that was asked for and heard of at these times of ours was committed at this time of the store.
    pub(super) fn learn(&mut self, asked: Wall, committed: Wall, heard: Wall) {
        let least = difference(committed, asked.max(heard));
        let most = difference(committed, asked.min(heard));
        self.0 = self.0.clamp(least, most);
    }
}

fn difference(one: Wall, other: Wall) -> i64 {
    let distance = i64::try_from(one.0.abs_diff(other.0)).unwrap_or(i64::MAX);
    if one >= other { distance } else { -distance }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    #[test]
    fn a_slow_disk_is_not_taken_for_another_time() {
        let mut clock = StoreClock::default();
        clock.learn(Wall(1_000), Wall(8_000), Wall(9_000));
        clock.learn(Wall(10_000), Wall(10_000), Wall(19_000));
        assert_eq!(clock.shows(Wall(20_000)), Wall(20_000));
    }

    #[test]
    fn a_store_that_is_an_hour_off_is_believed() {
        let mut clock = StoreClock::default();
        clock.learn(Wall(HOUR), Wall(10), Wall(HOUR + 30));
        assert_eq!(clock.shows(Wall(2 * HOUR)), Wall(HOUR + 10));
        // The next commit was quicker, and agrees.
        clock.learn(Wall(2 * HOUR), Wall(HOUR + 5), Wall(2 * HOUR + 8));
        assert_eq!(clock.shows(Wall(2 * HOUR)), Wall(HOUR + 5));
        // Ours was set right.
        clock.learn(Wall(HOUR + 10), Wall(HOUR + 11), Wall(HOUR + 12));
        assert_eq!(clock.shows(Wall(2 * HOUR)), Wall(2 * HOUR - 1));
    }

    #[test]
    fn no_time_is_beyond_counting() {
        let mut clock = StoreClock::default();
        clock.learn(Wall(0), Wall(u64::MAX), Wall(0));
        assert_eq!(clock.shows(Wall(u64::MAX)), Wall(u64::MAX));
        clock.learn(Wall(u64::MAX), Wall(0), Wall(u64::MAX));
        assert_eq!(clock.shows(Wall(0)), Wall(0));
    }
}
