//! Who waits for a task.

use super::{Tickets, Waiter, Wants};
use crate::id::{ClientId, JsonId, TaskNo};
use crate::limits;
use crate::time::Mono;
use crate::timers::{Owner, Timers};

impl Tickets {
    /// When the first of those who wait for a task stops.
    pub(crate) fn armed(&self, no: TaskNo) -> Option<Mono> {
        self.get(no)?.armed
    }

    /// Whether one more may wait for a task; `None` if there is no such task.
    pub(crate) fn has_room_to_wait(&self, no: TaskNo) -> Option<bool> {
        self.get(no).map(|task| !reached!(WAITERS, task.waiters.len() >= limits::WAITERS))
    }

    pub(crate) fn wait(&mut self, timers: &mut Timers, no: TaskNo, waiter: Waiter) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.waiters.push(waiter);
        }
        self.arm_waits(timers, no);
    }

    /// One request does not wait any more.
    pub(crate) fn stop_waiting(&mut self, no: TaskNo, client: ClientId, id: &JsonId) -> Option<Waiter> {
        self.take_waiter(no, |waiter| waiter.client == client && waiter.id.key() == id.key())
    }

    /// The first that a rule is about does not wait any more.
    pub(crate) fn take_waiter(&mut self, no: TaskNo, about: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        let task = self.tasks.get_mut(&no)?;
        let at = task.waiters.iter().position(about)?;
        Some(task.waiters.remove(at))
    }

    /// Those that a rule is about do not wait any more.
    pub(crate) fn take_waiters(&mut self, no: TaskNo, about: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        let Some(task) = self.tasks.get_mut(&no) else { return Vec::new() };
        task.waiters.extract_if(.., |waiter| about(waiter)).collect()
    }

    /// Some have waited as long as they wanted to.
    pub(crate) fn waits_ring(&mut self, now: Mono, no: TaskNo) -> Vec<Waiter> {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.armed = None;
        }
        self.take_waiters(no, |waiter| matches!(waiter.wants, Wants::Until(at) if at <= now))
    }

    /// Sets the timer of a task to the first moment at which a wait for it is over.
    pub(crate) fn arm_waits(&mut self, timers: &mut Timers, no: TaskNo) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        let until = |waiter: &Waiter| match waiter.wants {
            Wants::Until(at) => Some(at),
            _ => None,
        };
        let next = task.waiters.iter().filter_map(until).min();
        timers.set(Owner::Wait(no), &mut task.armed, next);
    }
}
