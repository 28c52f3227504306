//! Calls that an earlier process left and that have no server yet.

use super::Tickets;
use crate::calls::orphaned::Place;
use crate::id::{DefinitionId, TaskNo};
use crate::time::Mono;
use crate::wire::Message;

/// One such call.
#[derive(Debug)]
pub(crate) struct Orphan {
    pub(crate) no: TaskNo,
    pub(crate) message: Box<Message>,
    pub(crate) modern: bool,
    pub(crate) principal: Box<str>,
    /// What its server is one of.
    pub(crate) definition: DefinitionId,
    /// Where it is at its server.
    pub(crate) place: Option<Place>,
    /// Since when it waits.
    pub(crate) since: Mono,
}

impl Tickets {
    pub(crate) fn orphans(&self) -> usize {
        self.orphans.len()
    }

    pub(crate) fn add_orphan(&mut self, orphan: Orphan) {
        self.orphans.push(orphan);
    }

    /// Something happened that orphans may have waited for.
    pub(crate) fn orphans_may_go_on(&mut self) {
        self.orphans_due = true;
    }

    /// Whether something happened that orphans may have waited for, since this was asked last.
    #[inline]
    pub(crate) fn take_orphans_due(&mut self) -> bool {
        std::mem::take(&mut self.orphans_due)
    }

    pub(crate) fn take_orphans(&mut self) -> Vec<Orphan> {
        std::mem::take(&mut self.orphans)
    }

    /// Those that a rule is about do not wait any more.
    pub(crate) fn take_orphans_if(&mut self, over: impl Fn(&Tickets, &Orphan) -> bool) -> Vec<Orphan> {
        let (over, wait) = self.take_orphans().into_iter().partition(|orphan| over(self, orphan));
        self.orphans = wait;
        over
    }

    /// A call has ended while it waited for a server; only one that the server has must still be cancelled there.
    pub(super) fn forget_orphan(&mut self, no: TaskNo) {
        self.orphans.retain(|orphan| orphan.no != no || orphan.place.is_some());
    }
}
