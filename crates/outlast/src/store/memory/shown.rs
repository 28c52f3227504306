//! What processes show each other and tell each other to do, and how long tools took, in memory.

use super::super::owner::Me;
use super::{Shelves, Turn};
use bytes::Bytes;
use outlast_engine::durations::Durations;
use outlast_engine::store::{Done, Found, Measured, Refusal, day, measured};
use outlast_engine::{Wall, limits};

impl Shelves {
    pub(super) fn show(&mut self, process: &str, shown: &Bytes, me: &Me) -> Result<Done, Refusal> {
        if shown.len() > limits::SHOWN_BYTES {
            return Err(Refusal::Full("bytes of what a process shows".into()));
        }
        self.renew(me);
        if shown.is_empty() {
            self.shown.take(&me.name);
        } else {
            self.shown.put(me.name.clone(), (process.into(), shown.clone()));
        }
        let told = self.told.take_where(|(to, _), _| **to == *process);
        Ok(Done::Told(told.into_iter().map(|(_, what)| what).collect()))
    }

    pub(super) fn tell(&mut self, process: &str, what: &Bytes, turn: &Turn<'_>) -> Result<Done, Refusal> {
        let owner = self.shown.iter().find(|(_, (name, _))| **name == *process).map(|(owner, _)| owner);
        if !owner.is_some_and(|owner| self.shows(owner, turn.me)) {
            return Err(Refusal::Unknown);
        }
        let waiting = self.told.iter().filter(|((to, _), _)| **to == *process).count();
        if waiting as u64 >= turn.bounds.mailbox {
            return Err(Refusal::Full("mailbox".into()));
        }
        let number = self.next_number();
        self.told.put((process.into(), number), what.clone());
        Ok(Done::Kept)
    }

    fn shows(&self, owner: &str, me: &Me) -> bool {
        let until = self.leases.get(&Box::from(owner)).copied().unwrap_or(0);
        *owner == *me.name || !me.outlives(owner, until)
    }

    pub(super) fn find_shown(&self, me: &Me) -> Found {
        let mut found: Vec<_> = self.shown.iter().filter(|(owner, _)| self.shows(owner, me)).collect();
        found.sort_by_key(|(_, (process, _))| process);
        Found::Shown(found.into_iter().map(|(_, (_, body))| body.clone()).collect())
    }

    pub(super) fn measured(&mut self, all: &[Measured], turn: &Turn<'_>) -> Done {
        let today = day(turn.now);
        for Measured { server, tool, tally } in all {
            let key = (today, server.clone(), tool.clone());
            let mut sum = self.durations.get(&key).cloned().unwrap_or_default();
            sum.join(tally);
            self.durations.put(key, sum);
        }
        while self.rows_of_durations() > turn.bounds.measured {
            let Some(((oldest, ..), _)) = self.durations.first() else { break };
            self.durations.take_where(|(day, ..), _| *day == oldest);
        }
        Done::Kept
    }

    fn rows_of_durations(&self) -> u64 {
        self.durations.iter().map(|(_, tally)| 1 + tally.buckets().count() as u64).sum()
    }

    pub(super) fn find_measured(&self, now: Wall) -> Found {
        let mut all = Durations::default();
        let recent = self.durations.iter().filter(|((of, ..), _)| of + limits::MEASURED_DAYS > day(now));
        recent.for_each(|((_, server, tool), tally)| all.join(server, tool, tally));
        Found::Measured(measured(&all))
    }

    /// Forgets what dead processes show and were told, and days that are too long ago.
    pub(super) fn forget_shown(&mut self, now: Wall) {
        let leases = &self.leases;
        self.shown.take_where(|owner, _| leases.get(owner).is_none());
        let shown = &self.shown;
        self.told.take_where(|(to, _), _| !shown.iter().any(|(_, (process, _))| process == to));
        self.durations.take_where(|(of, ..), _| of + limits::MEASURED_DAYS <= day(now));
    }
}
