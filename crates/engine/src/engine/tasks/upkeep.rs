//! What is done from time to time while tasks, or calls whose streams are stored, are open: the mailbox is read, the
//! lease is renewed, tasks of other processes are watched, and those of processes that have ended are taken over.

use crate::action::Note;
use crate::clients::Open;
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::TaskNo;
use crate::record::{Head, Ticket};
use crate::store::{Done, Found, Loaded, Mail, Query, Stored, Trouble, Write};
use crate::tickets::{LastTries, Task, Theirs};
use crate::time::Mono;

impl Engine {
    /// The process begins: what an earlier one left is taken over, and what is over is forgotten.
    pub(in crate::engine) fn begin(&mut self) {
        self.take_over_orphans();
        self.look_for_callbacks();
    }

    fn take_over_orphans(&mut self) {
        let mut writes = self.claims();
        writes.push(Write::Expire);
        self.submit_all(Pending::Claimed, writes);
        if self.config.replicated {
            self.arm_upkeep(self.at, false);
        }
    }

    /// Takes over what is open at each of our servers and has lost its owner.
    fn claims(&self) -> Vec<Write> {
        let identities = self.config.definitions().map(|(_, server)| server.identity.clone());
        identities.map(|server| Write::Claim { server }).collect()
    }

    /// Somebody asks for a task of another process, which may have ended since we began.
    pub(super) fn claim_if_abandoned(&mut self, now: Mono) {
        if self.tickets.claims(now, self.config.replicated) {
            let claims = self.claims();
            self.submit_all(Pending::Claimed, claims);
        }
    }

    pub(in crate::engine) fn tasks_due(&mut self, now: Mono) {
        self.tickets.upkeep_rings();
        self.forget_unstored(now);
        self.give_orphans_up(now);
        let ours = self.tickets.has_unread()
            || self.tickets.values().any(|task| task.theirs.is_none() && task.state.is_open());
        let sessions =
            self.config.durable && self.tickets.hears_of_sessions(now, !self.clients.in_flight().is_empty());
        if (ours || sessions) && self.tickets.looks_for_mail() {
            self.load(Pending::Mail, Query::Mail);
        }
        self.leave_all_theirs();
        let theirs = |task: &Task| task.theirs.map(|revision| (task.ticket.clone(), revision));
        let theirs: Vec<(Ticket, u64)> = self.tickets.values().filter_map(theirs).collect();
        let watches = !theirs.is_empty();
        if watches && self.tickets.watches() {
            self.load(Pending::Watched, Query::Changed(theirs));
        }
        let (renews, mut writes) = (self.tickets.renews(now), Vec::new());
        if renews && (ours || self.has_stored_calls()) {
            writes.push(Write::Renew);
        }
        if self.looks_for_abandoned(now, watches, renews) {
            writes.extend(self.claims());
        }
        self.submit_all(Pending::Claimed, writes);
        if renews {
            self.write_ends_again();
            self.say_who_waits();
            self.tickets.take_unread().into_iter().for_each(|ticket| self.read_orphan(ticket));
        }
        if self.tickets.expires(now) {
            self.submit(Pending::Noted, Write::Expire);
        }
        self.arm_upkeep(now, sessions);
    }

    /// Whether tasks are looked for now that have lost their owner. Among replicas also those that nobody asks for: they go
    /// on, and are there when somebody comes for them.
    fn looks_for_abandoned(&mut self, now: Mono, watches: bool, renews: bool) -> bool {
        match self.config.replicated {
            true => (watches || renews) && self.tickets.claims(now, true),
            false => watches && renews,
        }
    }

    fn arm_upkeep(&mut self, now: Mono, in_flight: bool) {
        let more = in_flight || self.config.replicated || self.has_stored_calls();
        self.tickets.arm_upkeep(&mut self.timers, now, more);
    }

    /// Whether a timer runs although there is nothing here to look after.
    pub(in crate::engine) fn looks_for_orphans_at_rest(&self) -> bool {
        self.config.replicated && self.tickets.upkeep_armed().is_some()
    }

    /// What could not be stored is kept in memory as long as the store would have kept it.
    fn forget_unstored(&mut self, now: Mono) {
        let over = |task: &Task| {
            let over = task.ended.is_some_and(|ended| now.since(ended) >= self.kept_after_end(task));
            over && task.waiters.is_empty() && task.stored
        };
        self.tickets.numbers(over).into_iter().for_each(|no| drop(self.drop_task(no)));
    }

    /// The last of what is being stored tells how it went.
    pub(in crate::engine) fn stored_after_the_end(&mut self, number: u64, outcome: &Stored) {
        let Some((Pending::Changed(no), _)) = self.ledger.stored(self.wall, number, outcome) else { return };
        match outcome {
            Ok(_) => self.tickets.was_tried_at_last(no, None),
            Err(Trouble::Failed(why)) => self.tickets.was_tried_at_last(no, Some(why)),
            // Another process has it.
            Err(Trouble::Refused { .. }) => {}
        }
        if self.ledger.writes().any(|pending| pending.changes().is_some()) {
            return;
        }
        let LastTries { late, lost, why } = self.tickets.take_last_tries();
        if late > 0 {
            self.note(Note::StoredAtLast { count: late });
        }
        if lost > 0 {
            self.note(Note::NeverStored { count: lost, why });
        }
    }

    // What the store says.

    /// There may be a mailbox message.
    pub(in crate::engine) fn mail_is_hinted(&mut self) {
        if self.tickets.looks_for_mail() {
            self.load(Pending::Mail, Query::Mail);
        }
    }

    pub(super) fn mail_looked_for(&mut self, outcome: &Loaded) {
        self.tickets.mail_was_looked_for();
        if matches!(outcome, Ok(Found::Mail(true))) {
            self.submit_all(Pending::Collected, vec![Write::Collect, Write::CollectForwarded]);
        }
    }

    pub(super) fn mail_came(&mut self, now: Mono, outcome: &Stored) {
        for done in outcome.iter().flat_map(|committed| &committed.done) {
            match done {
                Done::Mail(messages) => self.mail_to_tasks(now, messages),
                Done::Forwarded(messages) => self.mail_about_sessions(messages),
                _ => {}
            }
        }
    }

    fn mail_to_tasks(&mut self, now: Mono, messages: &[(Ticket, Mail)]) {
        for (ticket, message) in messages {
            let Some(no) = self.tickets.named(ticket) else { continue };
            match message {
                Mail::Cancel => self.end_by_cancel(now, no),
                Mail::Input(bytes) => self.take_input(now, no, bytes),
                Mail::Wake => self.is_waited_for_elsewhere(now, no),
            }
        }
    }

    /// Tasks of other processes have changed.
    pub(super) fn others_looked_at(&mut self, outcome: &Loaded) {
        self.tickets.others_were_looked_at();
        let Ok(Found::Heads(heads)) = outcome else { return };
        for head in heads {
            match self.tickets.look_at_theirs(head) {
                Some((no, Theirs::Changed)) => self.push_task(no),
                Some((no, Theirs::Ended)) => {
                    self.load(Pending::Fetched(no), Query::Record(head.ticket.clone()));
                }
                Some((_, Theirs::Unchanged)) | None => {}
            }
        }
    }

    /// A task of another process has ended, and somebody here waits for it.
    pub(super) fn fetched(&mut self, no: TaskNo, outcome: &Loaded) {
        match outcome {
            Ok(Found::Record(Some(record))) => {
                self.tickets.fetched(no, record);
                self.task_may_be_shown(no);
                self.drop_task(no);
            }
            // It is looked at again with the others, and read then.
            Err(_) => self.tickets.look_again(no),
            Ok(_) => self.theirs_is_gone(no),
        }
    }

    /// Another process's task has expired before anybody here saw its end.
    fn theirs_is_gone(&mut self, no: TaskNo) {
        let Some(task) = self.drop_task(no) else { return };
        for waiter in task.waiters {
            self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
            let text = "Invalid params: no such task";
            self.answer_error(waiter.client, waiter.way, &waiter.id, -32602, text);
        }
    }

    pub(super) fn claimed(&mut self, outcome: &Stored) {
        let heads: Vec<Head> = outcome
            .iter()
            .flat_map(|committed| &committed.done)
            .filter_map(|done| match done {
                Done::Claimed(heads) => Some(heads.clone()),
                _ => None,
            })
            .flatten()
            .collect();
        for head in heads {
            self.read_orphan(head.ticket);
        }
    }

    fn read_orphan(&mut self, ticket: Ticket) {
        self.load(Pending::Orphaned(ticket.clone()), Query::Record(ticket));
    }
}
