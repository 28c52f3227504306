//! What will happen, and when.

use outlast_engine::Mono;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct Agenda<P> {
    pub(super) now: Duration,
    plans: BTreeMap<(Duration, u64), P>,
    next: u64,
    /// When the last message of each line arrives.
    last_arrival: BTreeMap<u64, Duration>,
}

/// What comes next.
#[derive(Debug)]
pub(super) enum Next<P> {
    Happens(P),
    /// The engine's own time has come.
    Due,
    Nothing,
}

impl<P> Agenda<P> {
    pub(super) fn new() -> Agenda<P> {
        Agenda { now: Duration::ZERO, plans: BTreeMap::new(), next: 0, last_arrival: BTreeMap::new() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.plans.is_empty()
    }

    pub(super) fn plan(&mut self, after: Duration, plan: P) {
        self.next += 1;
        self.plans.insert((self.now + after, self.next), plan);
    }

    /// Plans a message that keeps its place behind the earlier ones of its line.
    pub(super) fn plan_in_order(&mut self, line: u64, after: Duration, plan: P) {
        let last = self.last_arrival.entry(line).or_default();
        let arrival = (*last).max(self.now + after);
        *last = arrival;
        self.plan(arrival - self.now, plan);
    }

    /// Moves time to what comes next.
    pub(super) fn advance(&mut self, due: Option<Mono>) -> Next<P> {
        let planned = self.plans.first_key_value().map(|((at, _), _)| *at);
        let due = due.map(Mono::since_start);
        match (planned, due) {
            (None, None) => Next::Nothing,
            (Some(planned), due) if due.is_none_or(|due| planned < due) => {
                self.now = planned;
                self.plans.pop_first().map_or(Next::Nothing, |(_, plan)| Next::Happens(plan))
            }
            (_, due) => {
                self.now = due.map_or(self.now, |due| self.now.max(due));
                Next::Due
            }
        }
    }
}
