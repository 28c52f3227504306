//! The machine of callbacks: which of them this process is sending, and when it looks for more.
//!
//! | this process | event | then |
//! |---|---|---|
//! | idle | a callback was written here, or it is time to look | it asks the store for what is due |
//! | asks | the store gives some | they are sent |
//! | asks | something else is due meanwhile | it asks once more |
//! | sends | one was sent, or was not | the store is told; if there may be more, it asks |
//!
//! Not here: what becomes of a callback (`callback.rs`), what it says (`engine/calling_back.rs`).

use crate::callback::Callback;
use crate::limits;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;

/// Which callbacks are on their way.
#[derive(Debug, Default)]
pub(crate) struct Callbacks {
    /// Those that are being sent, by their numbers.
    sending: BTreeMap<u64, Callback>,
    armed: Option<Mono>,
    /// The store is being asked whether there is anything.
    looking: bool,
    /// The store is being asked for more.
    asking: bool,
    /// There may be more than the store is being asked for, or than it gave.
    more: bool,
}

impl Callbacks {
    /// How many are being sent.
    pub(crate) fn len(&self) -> usize {
        self.sending.len()
    }

    pub(crate) fn armed(&self) -> Option<Mono> {
        self.armed
    }

    /// The time has come to look.
    pub(crate) fn ring(&mut self) {
        self.armed = None;
    }

    /// Looks again at this time, unless it does so before.
    pub(crate) fn look_at(&mut self, timers: &mut Timers, at: Mono) {
        if self.armed.is_none_or(|armed| at < armed) {
            timers.set(Owner::Callbacks, &mut self.armed, Some(at));
        }
    }

    /// Looks no more.
    pub(crate) fn rest(&mut self, timers: &mut Timers) {
        timers.set(Owner::Callbacks, &mut self.armed, None);
    }

    /// Whether the store may be asked whether there is anything: it is not being asked already.
    pub(crate) fn looks(&mut self) -> bool {
        !std::mem::replace(&mut self.looking, true)
    }

    /// It has answered.
    pub(crate) fn looked(&mut self) {
        self.looking = false;
    }

    /// Something may be due. How many the store is to be asked for; `None` if it is asked already, or if there is no
    /// room for more.
    pub(crate) fn asks(&mut self) -> Option<usize> {
        let room = limits::CALLBACKS_SENDING.saturating_sub(self.sending.len());
        let full = reached!(CALLBACKS_SENDING, room == 0);
        if self.asking || full {
            self.more = true;
            return None;
        }
        (self.asking, self.more) = (true, false);
        Some(room)
    }

    /// The store gave these, of so many that it was asked for, or it did not answer.
    pub(crate) fn took(&mut self, callbacks: &[Callback]) {
        self.asking = false;
        self.more |= self.sending.len() + callbacks.len() >= limits::CALLBACKS_SENDING;
        self.sending.extend(callbacks.iter().map(|callback| (callback.number, callback.clone())));
    }

    /// One was sent, or was not. `None` if it is not the one that is being sent.
    pub(crate) fn sent(&mut self, number: u64, attempts: u64) -> Option<Callback> {
        self.sending.get(&number).filter(|callback| callback.attempts == attempts)?;
        self.sending.remove(&number)
    }

    /// Whether there may be more to send.
    pub(crate) fn has_more(&self) -> bool {
        self.more
    }

    /// No more are sent at once than may be.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.len() {
            sending if sending > limits::CALLBACKS_SENDING => {
                Err(format!("{sending} callbacks are being sent"))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::callback::NewCallback;
    use crate::time::Wall;

    fn callback(number: u64) -> Callback {
        let about = NewCallback { name: "ops".into(), body: "{}".into() };
        let mut callback = Callback::new(number, about, Wall(0));
        callback.take(Wall(0));
        callback
    }

    #[test]
    fn no_more_are_sent_than_may_be() {
        let mut callbacks = Callbacks::default();
        assert_eq!(callbacks.asks(), Some(limits::CALLBACKS_SENDING));
        assert_eq!(callbacks.asks(), None, "the store is being asked");
        let all: Vec<Callback> = (0..limits::CALLBACKS_SENDING as u64).map(callback).collect();
        callbacks.took(&all);
        assert_eq!((callbacks.asks(), callbacks.has_more()), (None, true), "there is no room");
        assert_eq!(callbacks.sent(3, 2), None, "that was another sending");
        assert_eq!(callbacks.sent(3, 1).map(|sent| sent.number), Some(3));
        assert_eq!((callbacks.asks(), callbacks.has_more()), (Some(1), false));
        callbacks.took(&[]);
        assert!(!callbacks.has_more());
        assert!(callbacks.check().is_ok());
    }
}
