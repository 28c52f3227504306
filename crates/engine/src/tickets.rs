//! The machine of tickets: every call that can be fetched later and that this process runs, or that somebody here
//! waits for. A ticket has three faces on the wire: a task id, a resume token, the ticket of a hand-off.
//!
//! Outside this folder a task can be read and not changed. What is to be written comes back from the methods here as
//! a [`Change`]: the router has it stored, and only what is stored is shown.
//!
//! Not here: what a client is told of a task (`engine/tasks/`), what is stored of it (`record.rs`).

mod input;
mod orphans;
mod task;
mod upkeep;
mod waits;

pub(crate) use orphans::Orphan;
pub use task::TaskRule;
pub(crate) use task::{Asker, Input, Payer, Question, Task, Waiter, Wants};

use crate::calls::Request;
use crate::calls::resume::Resume;
use crate::hash::IdMap;
use crate::id::{CallId, ClientId, JsonId, KeyNo, TaskNo};
use crate::limits;
use crate::record::{Answer, Body, Change, Faces, Head, Record, State, Ticket};
use crate::time::{Mono, Wall};
use crate::timers::{Owner, Timers};
use crate::wire::{Message, Outgoing};
use std::collections::BTreeMap;
use std::time::Duration;
pub(crate) use upkeep::LastTries;
use upkeep::Upkeep;

/// Every call with a ticket that is in memory.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    tasks: BTreeMap<TaskNo, Task>,
    by_ticket: IdMap<Ticket, TaskNo>,
    last: u64,
    /// When a call is due that can be resumed and that nobody came back for.
    resumes_armed: Option<Mono>,
    upkeep: Upkeep,
    /// Calls that an earlier process left and that wait for a server.
    orphans: Vec<Orphan>,
    /// One of them may go on now.
    orphans_due: bool,
}

/// A task was made, and what it waited for with that.
#[derive(Debug)]
pub(crate) struct Made {
    /// Who gets its handle.
    pub(crate) handle: Option<Waiter>,
    /// What begins now.
    pub(crate) start: Option<(Box<Request>, Box<Message>)>,
    pub(crate) call: Option<CallId>,
    pub(crate) key_no: Option<KeyNo>,
    /// It ended while it was being stored.
    pub(crate) ended: bool,
}

/// What a task that has ended leaves.
#[derive(Debug)]
pub(crate) struct EndedTask {
    /// What was asked through it and is not answered.
    pub(crate) input: Input,
    pub(crate) payer: Option<Payer>,
    /// Its end can be written: it is stored already.
    pub(crate) made: bool,
}

/// What another process's task looks like now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Theirs {
    Unchanged,
    Changed,
    Ended,
}

// Reading.
impl Tickets {
    pub(crate) fn get(&self, no: TaskNo) -> Option<&Task> {
        self.tasks.get(&no)
    }

    pub(crate) fn named(&self, ticket: &Ticket) -> Option<TaskNo> {
        self.by_ticket.get(ticket).copied()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (TaskNo, &Task)> {
        self.tasks.iter().map(|(no, task)| (*no, task))
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    pub(crate) fn len(&self) -> usize {
        self.tasks.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The numbers of those that a rule is about.
    pub(crate) fn numbers(&self, about: impl Fn(&Task) -> bool) -> Vec<TaskNo> {
        self.iter().filter(|(_, task)| about(task)).map(|(no, _)| no).collect()
    }

    pub(crate) fn is_resumable(&self, no: TaskNo) -> bool {
        self.get(no).is_some_and(|task| task.resume.is_some())
    }

    /// Every ticket leads to its task.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.by_ticket.len() != self.tasks.len() {
            return Err(format!("{} tickets lead to {} tasks", self.by_ticket.len(), self.tasks.len()));
        }
        match self.iter().find(|(no, task)| self.named(&task.ticket) != Some(*no)) {
            Some((no, _)) => Err(format!("{no:?} is not found by its ticket")),
            None => Ok(()),
        }
    }
}

// How a task comes and goes.
impl Tickets {
    /// Takes a task in, under a new number.
    pub(crate) fn add(&mut self, now: Mono, mut task: Task) -> TaskNo {
        if let Some(resume) = &mut task.resume {
            resume.seen = now;
        }
        self.last += 1;
        let no = TaskNo(self.last);
        self.by_ticket.insert(task.ticket.clone(), no);
        self.tasks.insert(no, task);
        no
    }

    /// Forgets a task; the store may still have it.
    pub(crate) fn forget(&mut self, timers: &mut Timers, no: TaskNo) -> Option<Task> {
        let mut task = self.tasks.remove(&no)?;
        timers.set(Owner::Wait(no), &mut task.armed, None);
        self.by_ticket.remove(&task.ticket);
        if self.tasks.is_empty() {
            timers.set(Owner::Resumes, &mut self.resumes_armed, None);
        }
        Some(task)
    }

    /// What a task begins with, once it is stored.
    pub(crate) fn starts_with(&mut self, no: TaskNo, request: Request, message: Message) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.start = Some((Box::new(request), Box::new(message)));
        }
    }

    /// The call of a task is answered by another one, and not made.
    pub(crate) fn starts_no_more(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.start = None;
        }
    }

    /// For whom a task counts against `max-calls`, until it ends. False if it is gone.
    pub(crate) fn charge(&mut self, no: TaskNo, payer: Payer) -> bool {
        self.tasks.get_mut(&no).map(|task| task.payer = Some(payer)).is_some()
    }

    /// A task is stored since then. From now on its times are those of its record.
    pub(crate) fn made(&mut self, no: TaskNo, at: Wall) -> Option<Made> {
        let task = self.tasks.get_mut(&no)?;
        task.stored = true;
        task.created = at.before(task.known.since(task.created));
        (task.updated, task.known) = (at, at);
        let handle = task.waiters.iter().position(|waiter| waiter.wants == Wants::Handle);
        Some(Made {
            handle: handle.map(|at| task.waiters.remove(at)),
            start: task.start.take(),
            call: task.call,
            key_no: task.key_no,
            ended: !task.state.is_open(),
        })
    }

    /// Takes a record in as a task of ours; somebody may wait for it already.
    pub(crate) fn adopt(&mut self, no: TaskNo, record: Task) {
        if let Some(task) = self.tasks.get_mut(&no) {
            (task.theirs, task.epoch, task.body) = (None, record.epoch, record.body);
            task.state = record.state;
        }
    }
}

// Its call.
impl Tickets {
    /// The call of a task runs.
    pub(crate) fn has_call(&mut self, no: TaskNo, call: CallId) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.call = Some(call);
        }
    }

    /// The call of a task is answered. Whether it is a task of the legacy era; `None` if it has ended before.
    pub(crate) fn is_answered(&mut self, no: TaskNo) -> Option<bool> {
        let task = self.tasks.get_mut(&no).filter(|task| task.state.is_open())?;
        task.call = None;
        Some(task.faces.has(Faces::LEGACY_TASK))
    }

    /// Two calls change places.
    pub(crate) fn swap_calls(&mut self, one: CallId, other: CallId) {
        for task in self.tasks.values_mut() {
            task.call = match task.call {
                Some(call) if call == one => Some(other),
                Some(call) if call == other => Some(one),
                call => call,
            };
        }
    }

    /// A task of ours is about to be cancelled. Gives back its call, which may still be at the server; `None` if
    /// there is nothing to cancel.
    pub(crate) fn void(&mut self, no: TaskNo) -> Option<Option<CallId>> {
        let task = self.tasks.get_mut(&no).filter(|task| task.state.is_open() && task.theirs.is_none())?;
        task.start = None;
        Some(task.call.take())
    }
}

// What is stored of it.
impl Tickets {
    /// Changes what is stored of a call besides its state. Gives what is to be written, if it differs.
    pub(crate) fn change_body(&mut self, no: TaskNo, change: impl FnOnce(&mut Body)) -> Option<Change> {
        let ours = |task: &&mut Task| task.theirs.is_none() && task.stored && task.state.is_open();
        let task = self.tasks.get_mut(&no).filter(ours)?;
        let before = task.body.clone();
        change(&mut task.body);
        (task.body != before).then(|| Change { body: Some(task.body.encode()), ..task.change() })
    }

    /// Whoever made a task knows already what there is to tell.
    pub(crate) fn calls_nobody_back(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.body.callback = None;
        }
    }

    /// A task waits for its client, or does not any more; with what else is stored of it.
    pub(crate) fn move_to(
        &mut self,
        no: TaskNo,
        state: State,
        at: Wall,
        change: impl FnOnce(&mut Body),
    ) -> Option<Change> {
        let task = self.tasks.get_mut(&no)?;
        change(&mut task.body);
        (task.state, task.updated) = (state, at);
        Some(Change { body: Some(task.body.encode()), ..task.change() })
    }

    /// A move is stored. False if the task has ended since.
    pub(crate) fn has_moved(&mut self, no: TaskNo, at: Wall) -> bool {
        let Some(task) = self.tasks.get_mut(&no).filter(|task| task.state.is_open()) else { return false };
        (task.updated, task.known) = (at, at);
        true
    }

    /// The end of a task was committed at this time.
    pub(crate) fn was_changed_at(&mut self, no: TaskNo, at: Wall) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.updated = at;
        }
    }

    /// A task ends, and says why if it has failed. It may be shown once that is stored.
    pub(crate) fn end(
        &mut self,
        now: Mono,
        at: Wall,
        no: TaskNo,
        state: State,
        answer: Option<Answer>,
        why: Option<String>,
    ) -> Option<EndedTask> {
        self.forget_orphan(no);
        let task = self.tasks.get_mut(&no)?;
        // One that is not stored yet is written when it is.
        let made = task.stored;
        task.body.questions.clear();
        task.body.status_message = why;
        task.state = state;
        task.answer = answer;
        task.updated = at;
        task.stored = false;
        task.ended = Some(now);
        Some(EndedTask { input: std::mem::take(&mut task.input), payer: task.payer.take(), made })
    }

    /// What is written of a task that has ended and is kept for so long.
    pub(crate) fn write_end(&mut self, no: TaskNo, kept: Duration) -> Option<Change> {
        let task = self.tasks.get_mut(&no)?;
        // One that was shown although it could not be stored stays shown.
        task.stored = task.unwritten;
        let ttl = task.updated.since(task.created).saturating_add(kept);
        task.body.ttl_ms = Some(u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX));
        let (answer, body) = (task.answer.clone(), Some(task.body.encode()));
        Some(Change { keep: Some(kept), answer, body, ..task.change() })
    }

    /// The write of an end was answered. Whether the end may be shown for the first time.
    pub(crate) fn end_was_written(&mut self, no: TaskNo, failed: bool) -> bool {
        let Some(task) = self.tasks.get_mut(&no) else { return false };
        let failed = failed && !task.state.is_open();
        !std::mem::replace(&mut task.unwritten, failed)
    }

    /// A task may be shown as it is. Gives back who waits for its end, if it has ended.
    pub(crate) fn may_be_shown(&mut self, no: TaskNo) -> Option<Vec<Waiter>> {
        let task = self.tasks.get_mut(&no)?;
        (task.stored, task.known) = (true, task.updated);
        task.has_ended().then(|| std::mem::take(&mut task.waiters))
    }
}

// Tasks of other processes.
impl Tickets {
    /// Another process took us for dead and has the task now: what became of it is in its record.
    pub(crate) fn was_taken(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no) {
            (task.theirs, task.state, task.answer, task.ended) = (Some(0), State::Working, None, None);
            task.stored = true;
        }
    }

    /// What the store shows of another process's task. `None` if it is not watched.
    pub(crate) fn look_at_theirs(&mut self, head: &Head) -> Option<(TaskNo, Theirs)> {
        let no = self.named(&head.ticket)?;
        let task = self.tasks.get_mut(&no).filter(|task| task.theirs.is_some())?;
        task.theirs = Some(head.revision);
        if !head.state.is_open() {
            return Some((no, Theirs::Ended));
        }
        let body = Body::decode(&head.body).unwrap_or_default();
        let changed = (task.state, task.updated) != (head.state, head.updated) || task.body != body;
        (task.state, task.updated, task.known) = (head.state, head.updated, head.updated);
        task.body = body;
        Some((no, if changed { Theirs::Changed } else { Theirs::Unchanged }))
    }

    /// What the store has of another process's task could not be read: it is looked at again.
    pub(crate) fn look_again(&mut self, no: TaskNo) {
        if let Some(task) = self.tasks.get_mut(&no).filter(|task| task.theirs.is_some()) {
            task.theirs = Some(0);
        }
    }

    /// Calls that have yet to be stored before they begin.
    pub(crate) fn starting(&self) -> usize {
        self.values().filter(|task| task.start.is_some()).count()
    }

    /// The end of another process's task.
    pub(crate) fn fetched(&mut self, no: TaskNo, record: &Record) {
        if let Some(task) = self.tasks.get_mut(&no) {
            task.state = record.head.state;
            task.updated = record.head.updated;
            task.body = Body::decode(&record.head.body).unwrap_or_default();
            task.answer.clone_from(&record.answer);
        }
    }
}

// Calls that can be resumed.
impl Tickets {
    /// A ticket is a resume token.
    pub(crate) fn make_resumable(&mut self, now: Mono, no: TaskNo, id: JsonId) -> Option<Ticket> {
        let task = self.tasks.get_mut(&no)?;
        task.resume = Some(Box::new(Resume { id, seen: now, newest: None }));
        Some(task.ticket.clone())
    }

    fn resume_mut(&mut self, no: TaskNo) -> Option<&mut Resume> {
        self.tasks.get_mut(&no)?.resume.as_deref_mut()
    }

    /// Somebody is there for a call that can be resumed, or was until now. False if it cannot.
    pub(crate) fn somebody_is_there(&mut self, now: Mono, no: TaskNo) -> bool {
        self.resume_mut(no).map(|resume| resume.seen = now).is_some()
    }

    /// A client wants to be told when a call ends. One too many is not.
    pub(crate) fn follow(&mut self, no: TaskNo, client: ClientId) {
        let Some(task) = self.tasks.get_mut(&no) else { return };
        let full = reached!(WAITERS, task.followers.len() >= limits::WAITERS);
        if !full && !task.followers.contains(&client) {
            task.followers.push(client);
        }
    }

    /// Whoever wants to be told that a call has ended.
    pub(crate) fn take_followers(&mut self, no: TaskNo) -> Vec<ClientId> {
        self.tasks.get_mut(&no).map(|task| std::mem::take(&mut task.followers)).unwrap_or_default()
    }

    /// Keeps the newest progress, for a line that cannot say what it has missed.
    pub(crate) fn keep_newest(&mut self, no: TaskNo, message: &Outgoing) {
        if let Some(resume) = self.resume_mut(no) {
            resume.newest = Some(message.clone());
        }
    }

    pub(crate) fn resumes_armed(&self) -> Option<Mono> {
        self.resumes_armed
    }

    /// Looks at those that nobody came back for at this time, unless it does so before.
    pub(crate) fn arm_resumes(&mut self, timers: &mut Timers, at: Mono) {
        if self.resumes_armed.is_none() {
            timers.set(Owner::Resumes, &mut self.resumes_armed, Some(at));
        }
    }

    /// The time has come to look.
    pub(crate) fn resumes_ring(&mut self) {
        self.resumes_armed = None;
    }
}
