//! How long a database that is away is waited for.
//!
//! Whatever is under way when the database goes away waits for it, [`PATIENCE`] at most; so a restart of the database
//! costs nobody anything. After that what comes fails at once, and once in [`LONGEST`] one of them tries the database.
//!
//! While the database was away nobody could say that he lives. So for the length of a lease after it came back nobody
//! is taken for dead because of his silence ([`Patience::is_wary`]).

use super::error::Failure;
use crate::clock;
use outlast_engine::limits::LEASE;
use std::time::Duration;

/// How long what is under way waits.
const PATIENCE: u64 = 10_000;

/// The first wait between two tries, doubled with each; and the longest.
const FIRST: u64 = 50;
const LONGEST: u64 = 1_000;

/// What is known of the database.
#[derive(Debug, Default)]
pub struct Patience {
    /// Why it does not work, since when, and the wait after the last try.
    trouble: Option<(Failure, u64, u64)>,
    /// Not asked before, if nobody waits.
    not_before: u64,
    /// When it last worked.
    worked: Option<u64>,
    wary_until: u64,
}

impl Patience {
    /// It works.
    pub fn works(&mut self) {
        self.works_at(clock::awake());
    }

    fn works_at(&mut self, now: u64) {
        let lease = LEASE.as_millis() as u64;
        let silent =
            self.trouble.take().map(|(_, since, _)| now.saturating_sub(self.worked.unwrap_or(since)));
        if silent.is_some_and(|silent| silent >= lease / 3) {
            self.wary_until = now + lease;
        }
        self.worked = Some(now);
    }

    /// It does not: how long to wait before the next try, if it is to be waited for.
    pub fn fails(&mut self, why: &Failure) -> Option<Duration> {
        self.fails_at(why, clock::awake())
    }

    fn fails_at(&mut self, why: &Failure, now: u64) -> Option<Duration> {
        let (since, last) = self.trouble.as_ref().map_or((now, 0), |(_, since, wait)| (*since, *wait));
        let wait = (last * 2).clamp(FIRST, LONGEST);
        self.trouble = Some((why.clone(), since, wait));
        let waits = matches!(why, Failure::Away(_)) && now + wait < since + PATIENCE;
        self.not_before = if waits { 0 } else { now + LONGEST };
        waits.then(|| Duration::from_millis(wait))
    }

    /// Why it is not even tried now.
    pub fn refuses(&self) -> Option<Failure> {
        self.refuses_at(clock::awake())
    }

    fn refuses_at(&self, now: u64) -> Option<Failure> {
        let (why, ..) = self.trouble.as_ref()?;
        (now < self.not_before).then(|| why.clone())
    }

    /// Whether others may not have been able to say that they live.
    pub fn is_wary(&self) -> bool {
        clock::awake() < self.wary_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn away() -> Failure {
        Failure::Away("no".into())
    }

    #[test]
    fn what_is_under_way_waits_and_what_comes_later_fails_at_once() {
        let mut patience = Patience::default();
        let (mut now, mut waits) = (0, Vec::new());
        while let Some(wait) = patience.fails_at(&away(), now) {
            waits.push(wait.as_millis() as u64);
            now += waits[waits.len() - 1];
        }
        assert_eq!(waits[..6], [50, 100, 200, 400, 800, 1_000]);
        assert!((PATIENCE - LONGEST..PATIENCE).contains(&now), "{now}");
        assert_eq!(patience.refuses_at(now + LONGEST - 1), Some(away()));
        assert_eq!(patience.refuses_at(now + LONGEST), None);
        assert_eq!(patience.fails_at(&away(), now + LONGEST), None);
        patience.works_at(now + 2 * LONGEST);
        assert_eq!(patience.refuses_at(now), None);
        assert_eq!(patience.fails_at(&away(), now + 3 * LONGEST), Some(Duration::from_millis(FIRST)));
    }

    #[test]
    fn what_cannot_be_mended_by_waiting_is_not_waited_for() {
        let mut patience = Patience::default();
        assert_eq!(patience.fails_at(&Failure::Useless("password".into()), 0), None);
    }

    #[test]
    fn after_an_outage_nobody_is_taken_for_dead_at_once() {
        let mut patience = Patience::default();
        patience.works_at(100);
        patience.fails_at(&away(), 1_000);
        patience.works_at(1_050);
        assert_eq!(patience.wary_until, 0, "a moment does not count");
        patience.fails_at(&away(), 2_000);
        patience.works_at(10_000);
        assert_eq!(patience.wary_until, 25_000);
    }
}
