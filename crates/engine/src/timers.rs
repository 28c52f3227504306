//! One ordered set of what is due when.

use crate::id::{AskId, CallId, ServerId};
use crate::time::Mono;
use std::collections::BTreeSet;

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A time and an owner in one number, because comparing one number is what this set mostly does:
/// 64 bits of time, 3 of kind, 61 of id. A call's slot needs 32 of these, so 29 are left for its
/// generation; a timer never outlives its call, so that is plenty.
type Entry = u128;

const KIND: u32 = 61;
const GENERATION: u32 = 29;

#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeSet<Entry>);

impl Timers {
    /// Moves an owner's timer. The owner remembers where it stands, in `armed`.
    pub(crate) fn set(&mut self, owner: Owner, armed: &mut Option<Mono>, at: Option<Mono>) {
        if *armed == at {
            return;
        }
        if let Some(old) = armed.take() {
            self.0.remove(&entry(old, owner));
        }
        if let Some(at) = at {
            self.0.insert(entry(at, owner));
        }
        *armed = at;
    }

    pub(crate) fn next(&self) -> Option<Mono> {
        self.0.first().map(|entry| due(*entry))
    }

    /// Takes the next owner that is due. Its `armed` must be cleared by whoever handles it.
    pub(crate) fn pop_due(&mut self, now: Mono) -> Option<Owner> {
        if self.next()? > now {
            return None;
        }
        self.0.pop_first().and_then(owner)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

fn entry(at: Mono, owner: Owner) -> Entry {
    let (kind, id) = match owner {
        Owner::Call(CallId { slot, generation }) => {
            (0, u64::from(slot) << GENERATION | u64::from(generation))
        }
        Owner::Ask(AskId(id)) => (1, id),
        Owner::Server(ServerId(id)) => (2, u64::from(id)),
        Owner::Grace(ServerId(id)) => (3, u64::from(id)),
        Owner::Ending => (4, 0),
    };
    u128::from(at.nanos()) << 64 | u128::from(kind << KIND | id)
}

fn due(entry: Entry) -> Mono {
    Mono::from_nanos((entry >> 64) as u64)
}

fn owner(entry: Entry) -> Option<Owner> {
    let low = entry as u64;
    let id = low & ((1 << KIND) - 1);
    Some(match low >> KIND {
        0 => Owner::Call(CallId {
            slot: (id >> GENERATION) as u32,
            generation: id as u32 & CallId::GENERATIONS,
        }),
        1 => Owner::Ask(AskId(id)),
        2 => Owner::Server(ServerId(id as u32)),
        3 => Owner::Grace(ServerId(id as u32)),
        4 => Owner::Ending,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn owners_come_back_as_they_went_and_in_order() {
        let mut timers = Timers::default();
        let owners = [
            Owner::Call(CallId { slot: u32::MAX, generation: CallId::GENERATIONS }),
            Owner::Call(CallId { slot: 0, generation: 0 }),
            Owner::Ask(AskId(7)),
            Owner::Server(ServerId(u32::MAX)),
            Owner::Grace(ServerId(1)),
            Owner::Ending,
        ];
        let at = |index: usize| Mono::after_start(Duration::from_secs(index as u64));
        for (index, owner) in owners.iter().enumerate().rev() {
            timers.set(*owner, &mut None, Some(at(index)));
        }
        assert_eq!(timers.pop_due(Mono::after_start(Duration::from_millis(999))), Some(owners[0]));
        assert_eq!(timers.pop_due(Mono::after_start(Duration::from_millis(999))), None);
        for (index, owner) in owners.iter().enumerate().skip(1) {
            assert_eq!(timers.pop_due(at(index)), Some(*owner));
        }
    }
}
