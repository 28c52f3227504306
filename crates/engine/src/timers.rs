//! What is due when.
//!
//! Nearly every timer is moved or given up before it rings, so that must cost next to nothing: unless it
//! is the first, the old entry is left in the heap, and whoever takes it out asks its owner whether it
//! still stands. When more than half of the entries are such leftovers, they are swept out together.

use crate::id::{AskId, AttemptId, CallId, ClientId, GatherNo, KeyNo, ServerId, TaskNo, ThrottleNo};
use crate::time::Mono;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::num::NonZeroU64;

/// Who is woken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Call(CallId),
    Ask(AskId),
    /// The server's life: see `servers/server.rs`.
    Server(ServerId),
    /// The judgement after a limit fired.
    Grace(ServerId),
    /// A session that may fall asleep.
    Session(ClientId),
    /// The standing stream of an HTTP server.
    Standing(ServerId),
    /// A server that may be quiet for too long.
    Quiet(ServerId),
    /// A server's lists: one that was asked for in vain, or that is asked for again.
    Lists(ServerId),
    /// A subscription whose stream broke.
    Listen(AttemptId),
    /// A call whose client may come back.
    Key(KeyNo),
    /// Tasks that ended long ago.
    Tasks,
    /// A wait for a task that lasts no longer.
    Wait(TaskNo),
    /// Calls that nobody came back for.
    Resumes,
    /// A request at the merged door that waits no longer.
    Gather(GatherNo),
    /// Questions to persons: whether they are decided.
    Holds,
    /// Streams of other processes that are read here.
    Relays,
    /// Callbacks: whether any is due.
    Callbacks,
    /// Calls that wait for a rate to let them begin.
    Throttle(ThrottleNo),
    /// The end of it all: see `ending.rs`.
    Ending,
}

/// A time and an owner in one number, because comparing one number is what a heap mostly does:
/// 64 bits of time, 4 of kind, 60 of id. A call's slot needs 32 of these, so 28 are left for its
/// generation; a timer never outlives its call, so that is plenty.
type Entry = u128;

const KIND: u32 = 60;
const GENERATION: u32 = 28;

/// The kind of what belongs to a server.
const SERVER: u64 = 2;

/// Leftovers that are always put up with.
const FEW: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    leftovers: usize,
}

impl Timers {
    /// Moves an owner's timer. The owner remembers where it stands, in `armed`.
    pub(crate) fn set(&mut self, owner: Owner, armed: &mut Option<Mono>, at: Option<Mono>) {
        if *armed == at {
            return;
        }
        if let Some(old) = *armed {
            self.leave(entry(old, owner));
        }
        if let Some(at) = at {
            self.heap.push(Reverse(entry(at, owner)));
        }
        *armed = at;
    }

    /// An entry stands no longer. The next one to ring is taken out at once: calls that come and go one by
    /// one would otherwise have us woken for each of them once more, long after.
    fn leave(&mut self, gone: Entry) {
        if self.heap.peek() == Some(&Reverse(gone)) {
            self.heap.pop();
        } else {
            self.leftovers += 1;
        }
    }

    /// When to look again; nothing may be due then, if that timer was moved since.
    pub(crate) fn next(&self) -> Option<Mono> {
        self.heap.peek().map(|Reverse(entry)| due(*entry))
    }

    /// Takes the next owner that is due. `stands` says whether an owner's timer is still at that
    /// time; its `armed` must be cleared by whoever handles it.
    pub(crate) fn pop_due(&mut self, now: Mono, stands: impl Fn(Owner, Mono) -> bool) -> Option<Owner> {
        while self.next()? <= now {
            let Reverse(entry) = self.heap.pop()?;
            match owner(entry).filter(|owner| stands(*owner, due(entry))) {
                Some(owner) => return Some(owner),
                None => self.leftovers = self.leftovers.saturating_sub(1),
            }
        }
        None
    }

    /// Whether it is time to sweep.
    pub(crate) fn is_cluttered(&self) -> bool {
        self.leftovers > FEW && self.leftovers > self.heap.len() / 2
    }

    /// Throws the leftovers out.
    pub(crate) fn sweep(&mut self, stands: impl Fn(Owner, Mono) -> bool) {
        self.heap.retain(|Reverse(entry)| owner(*entry).is_some_and(|owner| stands(owner, due(*entry))));
        self.leftovers = 0;
    }

    /// Timers that stand.
    pub(crate) fn len(&self) -> usize {
        self.heap.len().saturating_sub(self.leftovers)
    }
}

fn entry(at: Mono, owner: Owner) -> Entry {
    let (kind, id) = match owner {
        Owner::Call(CallId { slot, generation }) => {
            (0, u64::from(slot) << GENERATION | u64::from(generation))
        }
        Owner::Ask(AskId(id)) => (1, id),
        Owner::Server(server) => of_server(0, server),
        Owner::Grace(server) => of_server(1, server),
        Owner::Standing(server) => of_server(2, server),
        Owner::Quiet(server) => of_server(3, server),
        Owner::Lists(server) => of_server(4, server),
        Owner::Ending => (4, 0),
        Owner::Gather(GatherNo(id)) => (13, id),
        Owner::Throttle(ThrottleNo(id)) => (14, u64::from(id)),
        Owner::Session(ClientId(id)) => (5, id),
        Owner::Listen(AttemptId(id)) => (7, id),
        Owner::Tasks => (8, 0),
        Owner::Key(KeyNo(id)) => (12, id.get()),
        Owner::Wait(TaskNo(id)) => (9, id),
        Owner::Resumes => (10, 0),
        // One kind is enough for owners that there is one of each.
        Owner::Holds => (15, 0),
        Owner::Relays => (15, 1),
        Owner::Callbacks => (15, 2),
    };
    u128::from(at.nanos()) << 64 | u128::from(kind << KIND | id)
}

/// The timers of a server share a kind: an id of theirs leaves room for which of them it is.
fn of_server(which: u64, server: ServerId) -> (u64, u64) {
    (SERVER, which << 32 | u64::from(server.0))
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
        SERVER => {
            let server = ServerId(id as u32);
            match id >> 32 {
                0 => Owner::Server(server),
                1 => Owner::Grace(server),
                2 => Owner::Standing(server),
                3 => Owner::Quiet(server),
                4 => Owner::Lists(server),
                _ => return None,
            }
        }
        4 => Owner::Ending,
        13 => Owner::Gather(GatherNo(id)),
        14 => Owner::Throttle(ThrottleNo(id as u32)),
        5 => Owner::Session(ClientId(id)),
        7 => Owner::Listen(AttemptId(id)),
        8 => Owner::Tasks,
        12 => Owner::Key(KeyNo(NonZeroU64::new(id)?)),
        9 => Owner::Wait(TaskNo(id)),
        10 => Owner::Resumes,
        15 if id == 0 => Owner::Holds,
        15 if id == 1 => Owner::Relays,
        15 => Owner::Callbacks,
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
            Owner::Session(ClientId(9)),
            Owner::Standing(ServerId(2)),
            Owner::Quiet(ServerId(6)),
            Owner::Lists(ServerId(u32::MAX)),
            Owner::Listen(AttemptId(3)),
            Owner::Tasks,
            Owner::Wait(TaskNo(4)),
            Owner::Resumes,
            Owner::Holds,
            Owner::Relays,
            Owner::Callbacks,
        ];
        let at = |index: usize| Mono::after_start(Duration::from_secs(index as u64));
        for (index, owner) in owners.iter().enumerate().rev() {
            timers.set(*owner, &mut None, Some(at(index)));
        }
        let always = |_, _| true;
        assert_eq!(timers.pop_due(Mono::after_start(Duration::from_millis(999)), always), Some(owners[0]));
        assert_eq!(timers.pop_due(Mono::after_start(Duration::from_millis(999)), always), None);
        for (index, owner) in owners.iter().enumerate().skip(1) {
            assert_eq!(timers.pop_due(at(index), always), Some(*owner));
        }
    }

    #[test]
    fn a_timer_that_was_moved_rings_once_and_leaves_nothing_behind() {
        let mut timers = Timers::default();
        let at = |millis| Mono::after_start(Duration::from_millis(millis));
        let mut armed = None;
        timers.set(Owner::Tasks, &mut None, Some(at(1)));
        for millis in (2..=5_000).rev() {
            timers.set(Owner::Ending, &mut armed, Some(at(millis)));
        }
        assert!(timers.is_cluttered());
        assert_eq!(timers.len(), 2);
        let stands = |_, when| when <= at(2);
        timers.sweep(stands);
        assert!(!timers.is_cluttered());
        assert_eq!(timers.pop_due(at(9_999), stands), Some(Owner::Tasks));
        assert_eq!(timers.pop_due(at(9_999), stands), Some(Owner::Ending));
        assert_eq!(timers.pop_due(at(9_999), stands), None);
        assert_eq!(timers.len(), 0);
    }

    #[test]
    fn calls_that_come_and_go_leave_nothing_to_wake_up_for() {
        let mut timers = Timers::default();
        let at = |millis| Mono::after_start(Duration::from_millis(millis));
        timers.set(Owner::Session(ClientId(1)), &mut None, Some(at(9_999)));
        for millis in 1..100 {
            let (mut armed, call) = (None, Owner::Call(CallId { slot: 0, generation: millis as u32 }));
            timers.set(call, &mut armed, Some(at(millis)));
            assert_eq!(timers.next(), Some(at(millis)));
            timers.set(call, &mut armed, None);
            assert_eq!(timers.next(), Some(at(9_999)));
        }
    }
}
