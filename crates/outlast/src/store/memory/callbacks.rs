//! Callbacks, in memory. What becomes of one is decided by the callback.

use super::{Shelves, Turn};
use outlast_engine::Wall;
use outlast_engine::callback::{Callback, Fate, NewCallback};
use outlast_engine::store::{Done, Refusal};

impl Shelves {
    pub(super) fn call_back(&mut self, new: &NewCallback, turn: &Turn<'_>) -> Done {
        let number = self.next_number();
        self.callbacks.put(number, Callback::new(number, new.clone(), turn.now));
        Done::Kept
    }

    pub(super) fn take_callbacks(&mut self, names: &[Box<str>], limit: usize, turn: &Turn<'_>) -> Done {
        let due = |callback: &&Callback| callback.is_due(turn.now) && names.contains(&callback.about.name);
        let mut due: Vec<Callback> =
            self.callbacks.iter().map(|(_, callback)| callback).filter(due).cloned().collect();
        due.sort_by_key(|callback| (callback.due, callback.number));
        due.truncate(limit);
        for callback in &mut due {
            callback.take(turn.now);
            self.callbacks.put(callback.number, callback.clone());
        }
        Done::Callbacks(due)
    }

    pub(super) fn settle_callback(
        &mut self,
        number: u64,
        attempts: Option<u64>,
        fate: &Fate,
        turn: &Turn<'_>,
    ) -> Result<Done, Refusal> {
        let mut callback = self.callbacks.get(&number).cloned().ok_or(Refusal::Unknown)?;
        if attempts.is_some_and(|attempts| attempts != callback.attempts) {
            return Err(Refusal::Fenced);
        }
        if callback.settle(fate, turn.now) {
            self.callbacks.put(number, callback);
        } else {
            self.callbacks.take(&number);
        }
        Ok(Done::Kept)
    }

    pub(super) fn callback_is_due(&self, names: &[Box<str>], now: Wall) -> bool {
        let due = |callback: &Callback| callback.is_due(now) && names.contains(&callback.about.name);
        self.callbacks.iter().any(|(_, callback)| due(callback))
    }

    pub(super) fn all_callbacks(&self, limit: usize) -> Vec<Callback> {
        self.callbacks.iter().map(|(_, callback)| callback.clone()).take(limit).collect()
    }

    /// Forgets those that are over, and those that are too many; how many went.
    pub(super) fn forget_callbacks(&mut self, turn: &Turn<'_>) -> usize {
        let over = self.callbacks.take_where(|_, callback| callback.is_over(turn.now)).len();
        let too_many = self.callbacks.len().saturating_sub(turn.bounds.callbacks as usize);
        let mut left: Vec<(bool, u64)> =
            self.callbacks.iter().map(|(number, callback)| (callback.due.is_some(), *number)).collect();
        left.sort_unstable();
        let gone = left.iter().take(too_many).filter_map(|(_, number)| self.callbacks.take(number)).count();
        over + gone
    }
}
