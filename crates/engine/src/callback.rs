//! A callback: a message to an address that a person named, which says that a call with a ticket has ended, or that it
//! waits for a person.
//!
//! Stores keep callbacks in a queue, written in the same transaction as what they tell of. One process at a time
//! takes one: a taken callback comes back by itself after [`limits::CALLBACK_CLAIM`], so that nothing is lost with the
//! process that took it. It is sent at least once, always under the same id.
//!
//! Stores differ in where they put a callback, never in what becomes of it: that is decided here for all of them.
//! Not here: who is called back and when (`engine/calling_back.rs`), how it is sent (the edge).

use crate::limits;
use crate::time::Wall;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// When a call calls back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum When {
    /// If nobody who is connected hears what there is to tell.
    #[default]
    Disconnected,
    /// In any case.
    Always,
}

impl When {
    /// How they are written.
    pub const WORDS: [(&str, When); 2] = [("disconnected", When::Disconnected), ("always", When::Always)];
}

/// A callback that nobody has seen yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCallback {
    /// What a person calls the address.
    pub name: Box<str>,
    /// What is sent: JSON.
    pub body: Box<str>,
}

/// A stored callback.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Callback {
    /// Its place in the queue.
    pub number: u64,
    /// What is sent, and where.
    pub about: NewCallback,
    /// Since when it is to be sent. All times are on the store's clock.
    pub made: Wall,
    /// How often somebody has taken it.
    pub attempts: u64,
    /// When it is due; never, if it is parked.
    pub due: Option<Wall>,
    /// Why it was not delivered last time; empty before that.
    pub why: Box<str>,
}

/// What becomes of a callback.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is forgotten: it was delivered, or a person drops it.
    Gone,
    /// It is sent again after this time.
    Again(Duration, Box<str>),
    /// It stays where persons see it, and is sent only if one of them says so.
    Parked(Box<str>),
}

/// What came of one sending.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Delivery {
    /// The receiver has it.
    Done,
    /// The receiver wants nothing more of this kind.
    Unwanted(Box<str>),
    /// It did not arrive, or was not taken.
    Failed {
        /// Why, for people.
        why: Box<str>,
        /// How long the receiver wants us to wait.
        retry_after: Option<Duration>,
    },
}

impl Callback {
    /// A callback as it comes into a store.
    pub fn new(number: u64, about: NewCallback, now: Wall) -> Callback {
        Callback { number, about, made: now, attempts: 0, due: Some(now), why: "".into() }
    }

    /// What a receiver tells two sendings of the same callback by.
    pub fn id(&self) -> String {
        format!("cb_{:x}_{}", self.made.0, self.number)
    }

    /// Whether it is to be sent now.
    pub fn is_due(&self, now: Wall) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Whether nobody is interested any more.
    pub fn is_over(&self, now: Wall) -> bool {
        now.since(self.made) >= limits::CALLBACK_KEPT
    }

    /// Somebody sends it now. Nobody else does, for a while.
    pub fn take(&mut self, now: Wall) {
        self.attempts += 1;
        self.due = Some(now.after(limits::CALLBACK_CLAIM));
    }

    /// What comes of it. False if it is gone by that.
    pub fn settle(&mut self, fate: &Fate, now: Wall) -> bool {
        let (due, why) = match fate {
            Fate::Gone => return false,
            Fate::Again(wait, why) => (Some(now.after(*wait)), why),
            Fate::Parked(why) => (None, why),
        };
        self.due = due;
        if !why.is_empty() {
            self.why.clone_from(why);
        }
        true
    }
}

/// How long to wait after so many sendings that failed: it doubles each time. `chance`: from 0 up to 1.
pub fn backoff(attempts: u64, chance: f64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(u32::MAX).min(16);
    reached!(CALLBACK_BACKOFF if doublings == 0);
    let wait = limits::CALLBACK_BACKOFF.saturating_mul(1 << doublings).min(limits::CALLBACK_BACKOFF_MOST);
    reached!(CALLBACK_BACKOFF_MOST if wait == limits::CALLBACK_BACKOFF_MOST);
    // Receivers that come back would otherwise get everything at one moment.
    wait.mul_f64(1.0 - chance / 4.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn callback() -> Callback {
        Callback::new(7, NewCallback { name: "ops".into(), body: "{}".into() }, Wall(1_000))
    }

    #[test]
    fn a_taken_callback_comes_back_by_itself() {
        let mut callback = callback();
        assert!(callback.is_due(Wall(1_000)) && !callback.is_due(Wall(999)));
        callback.take(Wall(1_000));
        let back = Wall(1_000).after(limits::CALLBACK_CLAIM);
        assert!(!callback.is_due(Wall(back.0 - 1)) && callback.is_due(back));
        assert_eq!(callback.attempts, 1);
    }

    #[test]
    fn its_id_stays_the_same() {
        let mut callback = callback();
        let id = callback.id();
        callback.take(Wall(2_000));
        assert!(callback.settle(&Fate::Again(Duration::from_secs(1), "refused".into()), Wall(3_000)));
        assert_eq!((callback.id(), callback.due, &*callback.why), (id, Some(Wall(4_000)), "refused"));
    }

    #[test]
    fn a_parked_callback_is_never_due() {
        let mut callback = callback();
        assert!(callback.settle(&Fate::Parked("gone".into()), Wall(3_000)));
        assert!(!callback.is_due(Wall(u64::MAX)));
        // A person has it sent again, and still sees why it was parked.
        assert!(callback.settle(&Fate::Again(Duration::ZERO, "".into()), Wall(9_000)));
        assert_eq!((callback.is_due(Wall(9_000)), &*callback.why), (true, "gone"));
        assert!(!callback.settle(&Fate::Gone, Wall(9_000)));
    }

    #[test]
    fn waits_double_up_to_an_hour_and_are_spread() {
        let waits: Vec<u64> = (1..=12).map(|attempts| backoff(attempts, 0.0).as_secs()).collect();
        assert_eq!(waits, [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600]);
        assert_eq!(backoff(1, 1.0), Duration::from_millis(3_750));
        assert_eq!(backoff(u64::MAX, 0.0), limits::CALLBACK_BACKOFF_MOST);
    }
}
