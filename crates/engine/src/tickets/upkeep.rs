//! What is done from time to time while tasks are open, and when it was done last.

use super::Tickets;
use crate::id::TaskNo;
use crate::limits;
use crate::record::Ticket;
use crate::time::Mono;
use crate::timers::{Owner, Timers};

/// What was done when.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    armed: Option<Mono>,
    /// When a call of an HTTP client was last open.
    called: Option<Mono>,
    renewed: Mono,
    claimed: Mono,
    expired: Mono,
    /// Questions to the store that are not answered.
    asks_for_mail: bool,
    watches: bool,
    /// Records of dead processes that are ours and could not be read.
    unread: Vec<Ticket>,
    last: LastTries,
}

/// What came of ends of calls that are stored while everything ends.
#[derive(Debug, Default)]
pub(crate) struct LastTries {
    /// Stored, though not the first time.
    pub(crate) late: usize,
    pub(crate) lost: usize,
    pub(crate) why: String,
}

/// Whether something is done now that was last done at `last`, and at most once in `interval`.
fn is_due(now: Mono, last: &mut Mono, interval: std::time::Duration) -> bool {
    let due = now.since(*last) >= interval;
    if due {
        *last = now;
    }
    due
}

impl Tickets {
    pub(crate) fn upkeep_armed(&self) -> Option<Mono> {
        self.upkeep.armed
    }

    /// As long as there are tasks, or something else to look after.
    pub(crate) fn arm_upkeep(&mut self, timers: &mut Timers, now: Mono, more: bool) {
        if self.upkeep.armed.is_none() && (more || !self.is_empty() || self.has_unread()) {
            timers.set(Owner::Tasks, &mut self.upkeep.armed, Some(now + limits::UPKEEP));
        }
    }

    /// A record that was claimed could not be read.
    pub(crate) fn is_unread(&mut self, ticket: Ticket) {
        self.upkeep.unread.push(ticket);
    }

    pub(crate) fn has_unread(&self) -> bool {
        !self.upkeep.unread.is_empty()
    }

    pub(crate) fn take_unread(&mut self) -> Vec<Ticket> {
        std::mem::take(&mut self.upkeep.unread)
    }

    pub(crate) fn upkeep_rings(&mut self) {
        reached!(UPKEEP if true);
        self.upkeep.armed = None;
    }

    /// Whether abandoned tasks are claimed now.
    pub(crate) fn claims(&mut self, now: Mono, replicated: bool) -> bool {
        if !replicated {
            return is_due(now, &mut self.upkeep.claimed, limits::RENEW);
        }
        reached!(CLAIM, is_due(now, &mut self.upkeep.claimed, limits::CLAIM))
    }

    /// Whether the lease is renewed now.
    pub(crate) fn renews(&mut self, now: Mono) -> bool {
        reached!(RENEW, is_due(now, &mut self.upkeep.renewed, limits::RENEW))
    }

    /// Whether what is over is thrown out of the store now.
    pub(crate) fn expires(&mut self, now: Mono) -> bool {
        reached!(EXPIRE, is_due(now, &mut self.upkeep.expired, limits::EXPIRE))
    }

    /// Whether the mailbox is looked at now: not while the last look is not answered.
    pub(crate) fn looks_for_mail(&mut self) -> bool {
        !std::mem::replace(&mut self.upkeep.asks_for_mail, true)
    }

    pub(crate) fn mail_was_looked_for(&mut self) {
        self.upkeep.asks_for_mail = false;
    }

    /// Whether other processes may have something to say of sessions that were here: their clients cancel, answer, and
    /// come back for what they have not read, also a moment after the last call.
    pub(crate) fn hears_of_sessions(&mut self, now: Mono, calls: bool) -> bool {
        if calls {
            self.upkeep.called = Some(now);
        }
        self.upkeep.called.is_some_and(|called| now.since(called) < limits::RELAYED)
    }

    /// Whether other processes' tasks are looked at now.
    pub(crate) fn watches(&mut self) -> bool {
        !std::mem::replace(&mut self.upkeep.watches, true)
    }

    /// An end was stored while everything ends; or was not, and why. What runs on elsewhere does not count.
    pub(crate) fn was_tried_at_last(&mut self, no: TaskNo, failed: Option<&str>) {
        let Some(late) = self.get(no).filter(|task| task.has_ended()).map(|task| task.unwritten) else {
            return;
        };
        let last = &mut self.upkeep.last;
        match failed {
            None => last.late += usize::from(late),
            Some(why) => {
                last.lost += 1;
                last.why = why.to_owned();
            }
        }
    }

    pub(crate) fn take_last_tries(&mut self) -> LastTries {
        std::mem::take(&mut self.upkeep.last)
    }

    pub(crate) fn others_were_looked_at(&mut self) {
        self.upkeep.watches = false;
    }
}
