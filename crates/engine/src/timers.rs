//! One ordered set of what is due when.

use crate::id::{AskId, CallId, ServerId};
use crate::time::Mono;
use std::collections::BTreeSet;

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    Call(CallId),
    Ask(AskId),
    /// The server's life: see `server.rs`.
    Server(ServerId),
    /// The judgement after a limit fired.
    Grace(ServerId),
    /// The end of it all: see `ending.rs`.
    Ending,
}

#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<(Mono, Owner)>);

impl Timers {
    /// Moves an owner's timer. The owner remembers where it stands, in `armed`.
    pub(crate) fn set(&mut self, owner: Owner, armed: &mut Option<Mono>, at: Option<Mono>) {
        if *armed == at {
            return;
        }
        if let Some(old) = armed.take() {
            self.0.remove(&(old, owner));
        }
        if let Some(at) = at {
            self.0.insert((at, owner));
        }
        *armed = at;
    }

    pub(crate) fn next(&self) -> Option<Mono> {
        self.0.first().map(|(at, _)| *at)
    }

    /// Takes the next owner that is due. Its `armed` must be cleared by whoever handles it.
    pub(crate) fn pop_due(&mut self, now: Mono) -> Option<Owner> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().map(|(_, owner)| owner)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
