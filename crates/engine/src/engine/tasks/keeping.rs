//! What the store is given, and what it says.

use crate::action::{Action, Note};
use crate::calls::{Parted, Request};
use crate::clients::{Open, Way};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::{CallId, ServerId, TaskNo};
use crate::record::{Body, Change, Faces, State};
use crate::step::What;
use crate::store::{Loaded, Refusal, Stored, Trouble, Write};
use crate::tickets::{Made, Task, Waiter, Wants};
use crate::time::{Mono, Wall};

impl Engine {
    /// Has something written; the number under which it will be heard of.
    pub(in crate::engine) fn submit(&mut self, pending: Pending, write: Write) -> u64 {
        let number = self.ledger.submit(self.wall, pending);
        self.act(Action::Store(number, vec![write]));
        number
    }

    /// Has all of these written, or none.
    pub(in crate::engine) fn submit_all(&mut self, pending: Pending, writes: Vec<Write>) {
        if writes.is_empty() {
            return;
        }
        let number = self.ledger.submit(self.wall, pending);
        self.act(Action::Store(number, writes));
    }

    /// The present on the store's clock, which the times of records are on.
    pub(in crate::engine) fn store_time(&self) -> Wall {
        self.ledger.store_time(self.wall)
    }

    pub(in crate::engine) fn stored(&mut self, now: Mono, number: u64, outcome: &Stored) {
        let Some((pending, trouble)) = self.ledger.stored(self.wall, number, outcome) else { return };
        if let Some(why) = trouble.filter(|_| !is_of_another_process(&pending, outcome)) {
            self.note(Note::StoreFailed { why });
        }
        match (pending, outcome) {
            (Pending::Collected, outcome) => self.mail_came(now, outcome),
            (Pending::Claimed, outcome) => self.claimed(outcome),
            (Pending::CallbacksTaken, outcome) => self.callbacks_were_taken(outcome),
            (Pending::Kept(no), _) => self.answer_is_stored(no),
            (Pending::Held(call), outcome) => self.hold_was_stored(now, call, outcome),
            (Pending::AskedAfter(call), outcome) => self.hold_was_asked_after(now, call, outcome),
            (Pending::Released(call), outcome) => self.release_was_stored(now, call, outcome),
            (Pending::Made(no), Err(Trouble::Refused { why: Refusal::KeyTaken(ticket), .. })) => {
                self.key_was_taken(now, no, ticket);
            }
            (Pending::Made(no), Ok(committed)) => self.task_was_made(now, no, committed.at),
            (Pending::Made(no), Err(_)) => self.task_was_not_made(now, no),
            (Pending::Posted(no), outcome) => self.mail_was_posted(no, number, outcome),
            (Pending::Told(no), outcome) => self.owner_was_told(no, outcome),
            (Pending::Moved(no), outcome) => self.task_has_moved(no, outcome),
            (Pending::Session(knock), outcome) => self.session_was_looked_up(now, *knock, outcome),
            (Pending::KeptSession(client), outcome) => self.session_was_kept(now, client, outcome),
            (Pending::Retaken(client), outcome) => self.session_was_retaken(now, client, outcome),
            (
                Pending::Changed(no),
                Err(Trouble::Refused { why: Refusal::Fenced | Refusal::Ended(_), .. }),
            ) => {
                self.task_was_taken(no);
            }
            (Pending::Changed(_), Ok(_)) if planted!(self, LosesCommits) => {}
            (Pending::Changed(no), outcome) => self.change_was_stored(no, outcome),
            _ => {}
        }
    }

    pub(in crate::engine) fn loaded(&mut self, now: Mono, number: u64, outcome: &Loaded) {
        let Some((pending, trouble)) = self.ledger.loaded(number, outcome) else { return };
        if let Some(why) = trouble {
            self.note(Note::StoreUnread { why });
        }
        match pending {
            Pending::Asked(asked) => self.looked_up(now, number, *asked, outcome),
            Pending::Listed(asked) => self.listed(number, &asked, outcome),
            Pending::Roams(asked, follows) => {
                self.all_were_listed(now, number, (&*asked, follows), outcome);
            }
            Pending::Mail => self.mail_looked_for(outcome),
            Pending::Watched => self.others_looked_at(outcome),
            Pending::Fetched(no) => self.fetched(no, outcome),
            Pending::Orphaned(ticket) => self.orphan_was_read(ticket, outcome),
            Pending::CallbacksLooked => self.callbacks_were_looked_at(outcome),
            Pending::HoldsLooked => self.holds_were_looked_at(outcome),
            Pending::Held(_)
            | Pending::AskedAfter(_)
            | Pending::Released(_)
            | Pending::Made(_)
            | Pending::Changed(_)
            | Pending::Told(_)
            | Pending::Posted(_)
            | Pending::Moved(_)
            | Pending::Ended(_)
            | Pending::KeptSession(_)
            | Pending::Retaken(_)
            | Pending::Session(_)
            | Pending::Noted
            | Pending::CallbacksTaken
            | Pending::CallbackSettled
            | Pending::Collected
            | Pending::Kept(_)
            | Pending::Claimed => {}
            Pending::Key(no) => self.key_was_looked_up(now, no, outcome),
            Pending::Owned(client) => self.owner_was_looked_up(now, client, outcome),
            Pending::Replay(replay) => self.events_were_looked_up(now, &replay, outcome),
            Pending::News => self.news_came(now, outcome),
            Pending::Resuming(resuming) => self.found_to_resume(now, number, *resuming, outcome),
        }
    }

    pub(super) fn task_was_made(&mut self, now: Mono, no: TaskNo, at: Wall) {
        let Some(Made { handle, start, call, key_no, ended }) = self.tickets.made(no, at) else { return };
        if let Some(call) = call {
            if self.calls.get(call).is_none() {
                // It was answered, or given up, while its task was being stored: nobody knows the ticket.
                self.tickets.calls_nobody_back(no);
                return self.end_task(now, no, State::Cancelled, None);
            }
            self.detach_from_client(call, no);
            self.keep_names_at_server(call);
            self.approved_goes_on(now, call);
            self.call_back_about_hold(call);
        }
        if let Some(handle) = handle {
            self.clients.closes(handle.client, &handle.id, Open::Wait(no));
            self.show_task(no, &handle);
        }
        if let Some((request, message)) = start {
            self.send_resume_policy(no);
            self.begin_call(now, *request, &message);
        }
        self.forget_unopened(now, key_no);
        // It ended while it was being stored.
        if ended {
            self.write_end(no);
        }
    }

    /// Changes what is stored of a call besides its state, and writes it if it differs.
    pub(super) fn change_body(&mut self, no: TaskNo, change: impl FnOnce(&mut Body)) {
        if let Some(change) = self.tickets.change_body(no, change) {
            self.submit(Pending::Noted, Write::Change(Box::new(change)));
        }
    }

    /// What a server calls a call with a ticket is stored, so that another process can go on.
    pub(in crate::engine) fn keep_names_at_server(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let Way::Ticket(no) = call.request.way else { return };
        let task = call.server_task().and_then(|joined| serde_json::from_slice(&joined.task).ok());
        let policy = call.policy.as_ref().zip(call.attempt());
        let token = policy.map(|(policy, attempt)| (policy.token.to_string(), attempt.on_wire()));
        if task.is_none() && token.is_none() {
            return;
        }
        self.change_body(no, |body| {
            (body.server_task, body.server_attempt) = (task, token.as_ref().map(|(_, attempt)| *attempt));
            body.server_token = token.map(|(token, _)| token);
        });
    }

    /// The call of a task is open.
    pub(in crate::engine) fn task_runs(&mut self, no: TaskNo, server: ServerId, call: CallId) {
        self.tickets.has_call(no, call);
        if self.servers.is_held(server) {
            self.arm_server(server, None);
        }
    }

    /// From now on a call is answered by its task.
    pub(super) fn detach_from_client(&mut self, id: CallId, no: TaskNo) {
        let Some(Parted { request, held }) = self.calls.goes_to_ticket(id, no) else { return };
        let (client, server) = (request.client, request.server);
        let handed_off = self.tickets.get(no).is_some_and(|task| task.faces.has(Faces::HAND_OFF));
        self.step(id, || if handed_off { What::HandedOff } else { What::BecameTask });
        self.charge_task(client, no);
        self.one_call_less(client);
        self.clients.closes(client, &request.id, Open::Call(id));
        self.task_runs(no, server, id);
        if held {
            self.one_ticket_less(self.at, server);
        }
        self.stop_waiting_for_client(request.key_no);
    }

    /// No task, then: the call is made, or goes on, as an ordinary one.
    pub(in crate::engine) fn task_was_not_made(&mut self, now: Mono, no: TaskNo) {
        let Some(task) = self.drop_task(no) else { return };
        let wants = |waiter: &Waiter| matches!(waiter.wants, Wants::Handle | Wants::Answer);
        let handle = task.waiters.iter().find(|waiter| wants(waiter)).cloned();
        if let Some(handle) = &handle {
            self.clients.closes(handle.client, &handle.id, Open::Wait(no));
        }
        let handle = handle.filter(|handle| self.clients.contains_key(&handle.client));
        if let Some(handle) = handle.as_ref().filter(|_| task.answer.is_some()) {
            // A call with its key was answered meanwhile.
            self.show(&task, &Waiter { wants: Wants::Answer, ..handle.clone() });
        } else if let (Some((request, message)), Some(handle)) = (task.start, handle) {
            self.begin_call(now, Request { way: handle.way, ..*request }, &message);
        }
        if let Some(call) = task.call {
            self.approved_goes_on(now, call);
        }
        self.forget_unopened(now, task.key_no);
    }

    /// An end that could not be stored is kept in memory, shown all the same, and stored later: better than
    /// losing it.
    fn change_was_stored(&mut self, no: TaskNo, outcome: &Stored) {
        let failed = matches!(outcome, Err(Trouble::Failed(_)));
        if let Ok(committed) = outcome {
            self.tickets.was_changed_at(no, committed.at);
        }
        if self.tickets.end_was_written(no, failed) {
            self.task_may_be_shown(no);
        }
        if outcome.is_ok() && self.tickets.get(no).is_some_and(Task::has_ended) {
            self.drop_task(no);
        }
    }

    /// Has it written that a task waits for its client, or does not any more.
    pub(super) fn write_move(&mut self, no: TaskNo, from: State, change: Option<Change>) {
        let Some(change) = change else { return };
        let callback = self.callback_at_move(no, from, change.state);
        let calls_back = callback.is_some();
        let writes = [Some(Write::Change(Box::new(change))), callback].into_iter().flatten().collect();
        self.submit_all(Pending::Moved(no), writes);
        self.send_if(calls_back);
    }

    fn task_has_moved(&mut self, no: TaskNo, outcome: &Stored) {
        let at = outcome.as_ref().map_or_else(|_| self.store_time(), |committed| committed.at);
        if self.tickets.has_moved(no, at) {
            self.tell_status(no);
        }
    }

    /// Another process took us for dead and has the task now: what became of it is in its record.
    fn task_was_taken(&mut self, no: TaskNo) {
        self.tickets.was_taken(no);
        self.leave_theirs(no);
    }

    pub(super) fn task_may_be_shown(&mut self, no: TaskNo) {
        let Some(waiters) = self.tickets.may_be_shown(no) else { return };
        self.tell_status(no);
        for waiter in waiters {
            if planted!(self, ForgetsWaiters) {
                break;
            }
            self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
            self.show_task(no, &waiter);
        }
        self.tell_followers(no);
    }
}

/// Whether something was not written because another process has it now: a session, which is said in its own words, or
/// a callback that was taken from us because we were slow.
fn is_of_another_process(pending: &Pending, outcome: &Stored) -> bool {
    let Err(Trouble::Refused { why, .. }) = outcome else { return false };
    match pending {
        Pending::KeptSession(_) => *why == Refusal::Fenced,
        Pending::CallbackSettled => matches!(why, Refusal::Fenced | Refusal::Unknown),
        _ => false,
    }
}
