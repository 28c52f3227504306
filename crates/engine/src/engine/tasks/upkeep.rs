//! What is done from time to time while tasks are open: letters are fetched, the lease is renewed, tasks of
//! other processes are watched, and those of processes that have ended are taken over.

use super::Pending;
use crate::action::Note;
use crate::engine::Engine;
use crate::id::TaskNo;
use crate::limits;
use crate::record::{Body, Head, Ticket};
use crate::store::{Done, Found, Letter, Loaded, Query, Stored, Trouble, Write};
use crate::task::Task;
use crate::time::Mono;
use crate::timers::Owner;

/// What was done when.
#[derive(Debug, Default)]
pub(in crate::engine) struct Upkeep {
    pub(in crate::engine) armed: Option<Mono>,
    renewed: Mono,
    claimed: Mono,
    expired: Mono,
    /// Questions to the store that are not answered.
    asks_for_mail: bool,
    watches: bool,
    /// Why the last write, the last question failed, if it did.
    pub(super) not_written: Option<String>,
    pub(super) not_read: Option<String>,
    /// What came of the last tries to store ends.
    last: LastTries,
}

/// Ends of calls that are being stored while everything ends.
#[derive(Debug, Default)]
struct LastTries {
    /// Stored, though not the first time.
    late: usize,
    lost: usize,
    why: String,
}

impl Engine {
    /// The process begins: what an earlier one left is taken over, and what is over is forgotten.
    pub(in crate::engine) fn take_up_what_was_left(&mut self) {
        let claim = Write::Claim { server: self.config.identity.clone() };
        self.submit_all(Pending::Claimed, vec![claim, Write::Expire(self.wall)]);
    }

    /// Somebody asks for a task of another process, which may have ended since we began.
    pub(super) fn claim_if_abandoned(&mut self, now: Mono) {
        if now.since(self.upkeep.claimed) >= limits::RENEW {
            self.upkeep.claimed = now;
            self.submit(Pending::Claimed, Write::Claim { server: self.config.identity.clone() });
        }
    }

    pub(super) fn arm_upkeep(&mut self, now: Mono) {
        if self.upkeep.armed.is_none() && !self.tasks.is_empty() {
            let at = now + limits::UPKEEP;
            self.timers.set(Owner::Tasks, &mut self.upkeep.armed, Some(at));
        }
    }

    pub(in crate::engine) fn tasks_due(&mut self, now: Mono) {
        self.upkeep.armed = None;
        self.forget_unstored(now);
        self.give_orphans_up(now);
        let ours = self.tasks.values().any(|task| task.theirs.is_none() && task.state.is_open());
        if ours && !self.upkeep.asks_for_mail {
            self.upkeep.asks_for_mail = true;
            self.load(Pending::Mail, Query::Mail);
        }
        self.leave_all_theirs();
        let theirs = |task: &Task| task.theirs.map(|revision| (task.ticket.clone(), revision));
        let theirs: Vec<(Ticket, u64)> = self.tasks.values().filter_map(theirs).collect();
        let watches = !theirs.is_empty();
        if watches && !self.upkeep.watches {
            self.upkeep.watches = true;
            self.load(Pending::Watched, Query::Changed(theirs));
        }
        if now.since(self.upkeep.renewed) >= limits::RENEW {
            self.upkeep.renewed = now;
            let mut writes = Vec::new();
            if ours {
                writes.push(Write::Renew);
            }
            if watches {
                writes.push(Write::Claim { server: self.config.identity.clone() });
            }
            self.submit_all(Pending::Claimed, writes);
            self.write_ends_again();
            self.say_who_waits();
        }
        if now.since(self.upkeep.expired) >= limits::EXPIRE {
            self.upkeep.expired = now;
            self.submit(Pending::Noted, Write::Expire(self.wall));
        }
        self.arm_upkeep(now);
    }

    /// What could not be stored is kept in memory as long as the store would have kept it.
    fn forget_unstored(&mut self, now: Mono) {
        let over = |task: &Task| {
            let over = task.ended.is_some_and(|ended| now.since(ended) >= self.kept_after_end(task));
            over && task.waiters.is_empty() && task.stored
        };
        let gone: Vec<TaskNo> = self.tasks.iter().filter(|(_, task)| over(task)).map(|(no, _)| *no).collect();
        gone.into_iter().for_each(|no| drop(self.drop_task(no)));
    }

    /// The last of what is being stored tells how it went.
    pub(in crate::engine) fn stored_after_the_end(&mut self, number: u64, outcome: &Stored) {
        let Some(Pending::Changed(no)) = self.pending.remove(&number) else { return };
        let ended = self.tasks.get(&no).filter(|task| task.has_ended());
        match (ended, outcome) {
            (Some(task), Ok(_)) => self.upkeep.last.late += usize::from(task.unwritten),
            (Some(_), Err(Trouble::Failed(why))) => {
                self.upkeep.last.lost += 1;
                self.upkeep.last.why.clone_from(why);
            }
            // It runs on elsewhere, or another process has it.
            _ => {}
        }
        if self.pending.values().any(|pending| pending.changes().is_some()) {
            return;
        }
        let LastTries { late, lost, why } = std::mem::take(&mut self.upkeep.last);
        if late > 0 {
            self.note(Note::StoredAtLast { count: late });
        }
        if lost > 0 {
            self.note(Note::NeverStored { count: lost, why });
        }
    }

    // What the store says.

    pub(super) fn mail_looked_for(&mut self, outcome: &Loaded) {
        self.upkeep.asks_for_mail = false;
        if matches!(outcome, Ok(Found::Mail(true))) {
            self.submit(Pending::Collected, Write::Collect);
        }
    }

    pub(super) fn letters_came(&mut self, now: Mono, outcome: &Stored) {
        let letters = outcome.iter().flatten().filter_map(|done| match done {
            Done::Letters(letters) => Some(letters),
            _ => None,
        });
        for (ticket, letter) in letters.flatten() {
            let Some(no) = self.tickets.get(ticket).copied() else { continue };
            match letter {
                Letter::Cancel => self.end_by_cancel(now, no),
                Letter::Input(bytes) => self.take_input(now, no, bytes),
                Letter::Wake => self.is_waited_for_elsewhere(now, no),
            }
        }
    }

    /// Tasks of other processes have changed.
    pub(super) fn others_looked_at(&mut self, outcome: &Loaded) {
        self.upkeep.watches = false;
        let Ok(Found::Heads(heads)) = outcome else { return };
        for head in heads {
            let Some(no) = self.tickets.get(&head.ticket).copied() else { continue };
            let Some(task) = self.tasks.get_mut(&no).filter(|task| task.theirs.is_some()) else { continue };
            task.theirs = Some(head.revision);
            if head.state.is_open() {
                let body = Body::decode(&head.body).unwrap_or_default();
                let changed = (task.state, task.updated) != (head.state, head.updated) || task.body != body;
                (task.state, task.updated, task.known) = (head.state, head.updated, head.updated);
                task.body = body;
                if changed {
                    self.push_task(no);
                }
            } else {
                self.load(Pending::Fetched(no), Query::Record(head.ticket.clone()));
            }
        }
    }

    /// A task of another process has ended, and somebody here waits for it.
    pub(super) fn fetched(&mut self, no: TaskNo, outcome: &Loaded) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        if let Ok(Found::Record(Some(record))) = outcome {
            task.state = record.head.state;
            task.updated = record.head.updated;
            task.body = Body::decode(&record.head.body).unwrap_or_default();
            task.answer.clone_from(&record.answer);
        }
        self.task_may_be_shown(no);
        self.drop_task(no);
    }

    pub(super) fn claimed(&mut self, outcome: &Stored) {
        let heads: Vec<Head> = outcome
            .iter()
            .flatten()
            .filter_map(|done| match done {
                Done::Claimed(heads) => Some(heads.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        for head in heads {
            self.load(Pending::Orphaned, Query::Record(head.ticket));
        }
    }
}
