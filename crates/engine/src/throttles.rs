//! The machine of throttles: how many calls a server or a principal has in flight, how many may begin in a time, and
//! which calls wait for their turn.
//!
//! | at a throttle | event | what happens |
//! |---|---|---|
//! | room, and nobody waits | a call comes | it passes, and is counted until it ends |
//! | no room | a call comes | it waits, behind those that came before it |
//! | no room, and `queue` wait already | a call comes | it is refused |
//! | no room for as long as `queue-wait` | | the call that waited so long is refused |
//! | calls wait | a call that passed ends, or its time comes | the first of them passes |
//!
//! A call passes the throttle of its principal first and holds its place there while it waits at that of its server;
//! nobody waits the other way round, so no two calls can wait for each other.
//!
//! Not here: what a refused call is told, and what becomes of one that has passed (`engine/throttling.rs`).

use crate::config::{Bounds, Rate};
use crate::id::{CallId, DefinitionId, ThrottleNo};
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Numbers from here on are principals', in the order in which they came; those below are servers'.
const PRINCIPALS: u32 = 1 << 16;

/// Why a call has to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Others are in flight.
    InFlight,
    /// Others have begun just now; it may begin then.
    Rate(Mono),
}

/// The way of one call through its throttles.
#[derive(Clone, Debug)]
pub(crate) struct Passage {
    all: Vec<ThrottleNo>,
    /// How many of them it has passed.
    passed: usize,
}

#[derive(Debug, Default)]
struct Throttle {
    bounds: Bounds,
    in_flight: u32,
    waiting: VecDeque<CallId>,
    /// When the next call could begin if calls began evenly; those before it are a burst.
    even: Mono,
    armed: Option<Mono>,
}

#[derive(Debug, Default)]
pub(crate) struct Throttles {
    all: BTreeMap<ThrottleNo, Throttle>,
    principals: BTreeMap<Box<str>, ThrottleNo>,
    /// Where somebody may pass who waits.
    freed: BTreeSet<ThrottleNo>,
}

impl Passage {
    pub(crate) fn new(all: Vec<ThrottleNo>) -> Passage {
        Passage { all, passed: 0 }
    }

    /// Where it is to pass next.
    pub(crate) fn next(&self) -> Option<ThrottleNo> {
        self.all.get(self.passed).copied()
    }
}

// Who has one.
impl Throttles {
    /// The throttle of a server, with the bounds that are in force now.
    pub(crate) fn of_server(&mut self, definition: DefinitionId, bounds: &Bounds) -> ThrottleNo {
        self.renewed(ThrottleNo(definition.0.into()), bounds)
    }

    /// The bounds of a server are others now: those that wait may pass.
    pub(crate) fn is_redefined(&mut self, definition: DefinitionId, bounds: &Bounds) {
        let no = ThrottleNo(definition.0.into());
        if let Some(throttle) = self.all.get_mut(&no).filter(|throttle| throttle.bounds != *bounds) {
            throttle.bounds = bounds.clone();
            self.freed.insert(no);
        }
    }

    /// The bounds of a principal may be others now: those that wait may pass.
    pub(crate) fn principal_is_redefined(&mut self, name: &str, bounds: &Bounds) {
        let Some(no) = self.principals.get(name).copied() else { return };
        if let Some(throttle) = self.all.get_mut(&no).filter(|throttle| throttle.bounds != *bounds) {
            throttle.bounds = bounds.clone();
            self.freed.insert(no);
        }
    }

    /// The throttle of a principal.
    pub(crate) fn of_principal(&mut self, name: &str, bounds: &Bounds) -> ThrottleNo {
        let next = ThrottleNo(PRINCIPALS + self.principals.len() as u32);
        let no = *self.principals.entry(name.into()).or_insert(next);
        self.renewed(no, bounds)
    }

    fn renewed(&mut self, no: ThrottleNo, bounds: &Bounds) -> ThrottleNo {
        self.all.entry(no).or_default().bounds = bounds.clone();
        no
    }

    pub(crate) fn bounds(&self, no: ThrottleNo) -> Bounds {
        self.all.get(&no).map(|throttle| throttle.bounds.clone()).unwrap_or_default()
    }

    /// The server of a throttle; `None` if it is a principal's.
    pub(crate) fn server_of(&self, no: ThrottleNo) -> Option<DefinitionId> {
        u16::try_from(no.0).ok().map(DefinitionId)
    }

    /// The principal of a throttle.
    pub(crate) fn principal_of(&self, no: ThrottleNo) -> Option<&str> {
        self.principals.iter().find(|(_, other)| **other == no).map(|(name, _)| &**name)
    }

    /// Calls that are counted.
    pub(crate) fn in_flight(&self) -> usize {
        self.all.values().map(|throttle| throttle.in_flight as usize).sum()
    }

    /// Calls that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.all.values().map(|throttle| throttle.waiting.len()).sum()
    }

    /// Throttles, and so the most timers of them.
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether a call waits somewhere.
    pub(crate) fn holds(&self, id: CallId) -> bool {
        self.all.values().any(|throttle| throttle.waiting.contains(&id))
    }

    pub(crate) fn armed(&self, no: ThrottleNo) -> Option<Mono> {
        self.all.get(&no)?.armed
    }
}

// The way through.
impl Throttles {
    /// Passes what can be passed. Says why not all of them could.
    pub(crate) fn pass(&mut self, now: Mono, passage: &mut Passage) -> Result<(), Blocked> {
        while let Some(throttle) = passage.next().and_then(|no| self.all.get_mut(&no)) {
            throttle.has_room(now)?;
            throttle.takes(now);
            passage.passed += 1;
        }
        Ok(())
    }

    /// How many calls wait at a throttle.
    pub(crate) fn queue_at(&self, no: ThrottleNo) -> usize {
        self.all.get(&no).map_or(0, |throttle| throttle.waiting.len())
    }

    /// When the next call that comes could begin, as far as the rate alone goes.
    pub(crate) fn rate_allows_at(&self, now: Mono, no: ThrottleNo) -> Mono {
        self.all.get(&no).map_or(now, |throttle| throttle.allows_at(throttle.waiting.len() as u32))
    }

    /// A call waits at the next throttle of its way.
    pub(crate) fn wait(&mut self, timers: &mut Timers, now: Mono, passage: &Passage, id: CallId) {
        let Some(no) = passage.next() else { return };
        let Some(throttle) = self.all.get_mut(&no) else { return };
        throttle.waiting.push_back(id);
        throttle.arm(timers, no, now);
    }

    /// A call is over: what it has passed is free for the next, and where it waited it waits no longer.
    pub(crate) fn leave(&mut self, timers: &mut Timers, now: Mono, passage: &Passage, id: CallId) {
        let passed = passage.all.iter().take(passage.passed);
        for no in passed {
            if let Some(throttle) = self.all.get_mut(no) {
                throttle.in_flight = throttle.in_flight.saturating_sub(1);
                self.freed.extend((!throttle.waiting.is_empty()).then_some(*no));
            }
        }
        let Some(no) = passage.next() else { return };
        let Some(throttle) = self.all.get_mut(&no) else { return };
        throttle.waiting.retain(|waiting| *waiting != id);
        throttle.arm(timers, no, now);
    }

    /// The time of a throttle has come.
    pub(crate) fn is_due(&mut self, no: ThrottleNo) {
        if let Some(throttle) = self.all.get_mut(&no) {
            throttle.armed = None;
            self.freed.insert(no);
        }
    }

    /// Somebody may be able to pass who waits here.
    pub(crate) fn look_at(&mut self, no: ThrottleNo) {
        self.freed.insert(no);
    }

    /// Whether somebody may pass who waits.
    #[inline]
    pub(crate) fn have_room(&self) -> bool {
        !self.freed.is_empty()
    }

    /// The mistake of not looking whether somebody waits: for the simulation, which must find it.
    #[cfg(feature = "planted")]
    pub(crate) fn forget_room(&mut self) {
        self.freed.clear();
    }

    /// The next call that passes a throttle at which it has waited.
    pub(crate) fn next_through(&mut self, timers: &mut Timers, now: Mono) -> Option<CallId> {
        while let Some(no) = self.freed.first().copied() {
            if let Some(throttle) = self.all.get_mut(&no)
                && throttle.room(now).is_ok()
                && let Some(id) = throttle.waiting.pop_front()
            {
                throttle.takes(now);
                return Some(id);
            }
            self.freed.remove(&no);
            if let Some(throttle) = self.all.get_mut(&no) {
                throttle.arm(timers, no, now);
            }
        }
        None
    }
}

impl Passage {
    /// How many it has passed.
    pub(crate) fn passed(&self) -> usize {
        self.passed
    }

    /// It has waited at the next throttle, and passed it.
    pub(crate) fn has_passed(&mut self) {
        self.passed += 1;
    }
}

impl Throttle {
    /// Whether a call that comes now may pass: nobody overtakes those that wait.
    fn has_room(&self, now: Mono) -> Result<(), Blocked> {
        let room = self.room(now);
        if room.is_ok() && !self.waiting.is_empty() { Err(Blocked::InFlight) } else { room }
    }

    fn room(&self, now: Mono) -> Result<(), Blocked> {
        if self.in_flight >= self.bounds.max_in_flight {
            return Err(Blocked::InFlight);
        }
        let at = self.allows_at(0);
        if at > now { Err(Blocked::Rate(at)) } else { Ok(()) }
    }

    /// When one call may begin that comes after so many others: as many at once as the rate has, then evenly.
    fn allows_at(&self, before: u32) -> Mono {
        let Some(rate) = &self.bounds.rate else { return Mono::default() };
        let interval = rate.interval();
        self.even + interval * before - (rate.every - interval)
    }

    fn takes(&mut self, now: Mono) {
        self.in_flight += 1;
        if let Some(interval) = self.bounds.rate.as_ref().map(Rate::interval) {
            self.even = self.even.max(now) + interval;
        }
    }

    /// It rings when the rate lets the first pass who waits; a place that is free needs no timer.
    fn arm(&mut self, timers: &mut Timers, no: ThrottleNo, now: Mono) {
        let at = match self.room(now) {
            Err(Blocked::Rate(at)) if !self.waiting.is_empty() => Some(at),
            _ => None,
        };
        timers.set(Owner::Throttle(no), &mut self.armed, at);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NO: ThrottleNo = ThrottleNo(0);

    fn at(millis: u64) -> Mono {
        Mono::after_start(Duration::from_millis(millis))
    }

    fn call(slot: u32) -> CallId {
        CallId { slot, generation: 0 }
    }

    #[test]
    fn a_rate_allows_a_burst_and_then_evenly() {
        let rate = Some(Rate { calls: 2, every: Duration::from_secs(1) });
        let bounds = Bounds { rate, ..Bounds::default() };
        let (mut throttles, mut timers) = (Throttles::default(), Timers::default());
        throttles.of_server(DefinitionId(0), &bounds);
        let mut comes = |millis| {
            let mut passage = Passage::new(vec![NO]);
            let passed = throttles.pass(at(millis), &mut passage);
            throttles.leave(&mut timers, at(millis), &passage, call(0));
            passed
        };
        assert_eq!((comes(5_000), comes(5_000)), (Ok(()), Ok(())));
        assert_eq!(comes(5_000), Err(Blocked::Rate(at(5_500))));
        assert_eq!((comes(5_499), comes(5_500)), (Err(Blocked::Rate(at(5_500))), Ok(())));
        assert_eq!(comes(5_600), Err(Blocked::Rate(at(6_000))));
        assert_eq!((comes(9_000), comes(9_000), comes(9_000).is_err()), (Ok(()), Ok(()), true));
    }

    #[test]
    fn nobody_overtakes_and_nothing_is_left() {
        let bounds = Bounds { max_in_flight: 1, ..Bounds::default() };
        let (mut throttles, mut timers) = (Throttles::default(), Timers::default());
        throttles.of_server(DefinitionId(0), &bounds);
        let mut passages = vec![Passage::new(vec![NO]); 3];
        let passed: Vec<_> = passages.iter_mut().map(|passage| throttles.pass(at(0), passage)).collect();
        assert_eq!(passed, [Ok(()), Err(Blocked::InFlight), Err(Blocked::InFlight)]);
        throttles.wait(&mut timers, at(0), &passages[1], call(1));
        throttles.wait(&mut timers, at(0), &passages[2], call(2));
        throttles.leave(&mut timers, at(1), &passages[0], call(0));
        assert!(throttles.have_room());
        assert_eq!(throttles.pass(at(1), &mut Passage::new(vec![NO])), Err(Blocked::InFlight));
        assert_eq!(throttles.next_through(&mut timers, at(1)), Some(call(1)));
        assert_eq!(throttles.next_through(&mut timers, at(1)), None);
        // One that waits gives up; the one that passed ends.
        throttles.leave(&mut timers, at(2), &passages[2], call(2));
        passages[1].has_passed();
        throttles.leave(&mut timers, at(2), &passages[1], call(1));
        assert_eq!((throttles.in_flight(), throttles.waiting(), timers.len()), (0, 0, 0));
        assert_eq!(throttles.next_through(&mut timers, at(2)), None);
    }
}
