//! Keys and the store: calls that join a ticket, and answers that are kept for them.

use super::Engine;
use crate::action::Action;
use crate::calls::{Keyed, Request};
use crate::clients::Open;
use crate::engine::ledger::Pending;
use crate::engine::tasks::{declares_tasks, with_task};
use crate::id::{CallId, KeyNo, TaskNo};
use crate::idempotency;
use crate::keys::Entry;
use crate::method::Method;
use crate::record::{Answer, Body, Change, Faces, New, Origin, Record, State, Ticket};
use crate::store::{Found, Loaded, Query, Write};
use crate::tickets::{Task, TaskRule, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Field, Message, Scanned, scan};
use std::time::Duration;

/// How soon a call looks again whether the task that it shares has been stored.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

impl Engine {
    pub(super) fn look_key_up(&mut self, no: KeyNo, query: Query) {
        self.load(Pending::Key(no), query);
    }

    /// The store has been asked for a key.
    pub(in crate::engine) fn key_was_looked_up(&mut self, now: Mono, no: KeyNo, outcome: &Loaded) {
        let record = match outcome {
            Ok(Found::Record(Some(record))) => record,
            _ => return self.forget_unopened(now, Some(no)),
        };
        let given = self.answers_others(record);
        self.keys.has_seen(no, record.head.number);
        let Some(key) = self.keys.get(Some(no)) else { return };
        let same = is_same_record(key, record);
        if same && !given {
            // It failed, or was cancelled: it may be tried again.
            return self.forget_unopened(now, Some(no));
        }
        let waiting = self.keys.take_waiting(no);
        self.keys.forget(&mut self.timers, no);
        for (mut request, message) in waiting {
            self.stops_waiting_for_key(&request, no);
            request.key_no = None;
            if same {
                self.join_record(now, &request, &message, record);
            } else {
                self.refuse_key(now, &request, "its idempotency key belongs to another call");
            }
        }
    }

    /// Whether a call is, or may become, an answer for others with its key. One of ours may have ended a moment ago,
    /// which the store does not know yet.
    fn answers_others(&self, record: &Record) -> bool {
        let known = self.tickets.named(&record.head.ticket).and_then(|no| self.tickets.get(no));
        let ending = |task: &&Task| task.theirs.is_none() && !task.state.is_open() && !task.unwritten;
        let (open, answer) = match known.filter(ending) {
            Some(task) => (false, &task.answer),
            None => (record.head.state.is_open(), &record.answer),
        };
        open || answer.as_ref().is_some_and(idempotency::may_be_given_again)
    }

    /// Answers a request by a call that has a record: at once if it has ended, else when it does.
    fn join_record(&mut self, now: Mono, request: &Request, message: &Message, record: &Record) {
        let handle = self.takes_handle(request, message);
        let face = if request.modern { Faces::MODERN_TASK } else { Faces::LEGACY_TASK };
        let known = record.head.faces.has(face);
        if request.task && !(handle && known) {
            return self.refuse_key(now, request, "the call with this idempotency key is no task");
        }
        let open = record.head.state.is_open();
        // Whoever would give up before the answer comes gets the ticket at once.
        let handed_off = open && request.cap.is_some() && record.head.faces.has(Faces::HAND_OFF);
        let shows_handle = handed_off || (known && handle && (open || request.task));
        let wants = if shows_handle { Wants::Handle } else { Wants::Answer };
        let waiter = waiter(request, wants);
        self.note_joined(request.server, request.tool.as_deref());
        let ours = self.tickets.named(&record.head.ticket);
        match (ours, shows_handle) {
            (Some(no), true) => self.show_task(no, &waiter),
            (Some(no), false) if self.tickets.get(no).is_some_and(Task::has_ended) => {
                self.show_task(no, &waiter);
            }
            (Some(no), false) => self.wait_for_ticket(no, waiter),
            (None, false) if open => {
                let task = Task::of_record(record, request.client);
                let no = self.add_task(Task { theirs: Some(record.head.revision), ..task });
                self.wait_for_ticket(no, waiter);
            }
            (None, _) => {
                let task = Task::of_record(record, request.client);
                self.show(&task, &waiter);
            }
        }
    }

    fn wait_for_ticket(&mut self, no: TaskNo, waiter: Waiter) {
        // Nothing else would begin its response before the answer comes.
        self.stream_is_due(waiter.way);
        self.wait_for_task(no, waiter);
    }

    /// Whether a client takes the handle of a task for an answer.
    fn takes_handle(&self, request: &Request, message: &Message) -> bool {
        let ours = self.config.tasks
            && request.method == Method::ToolsCall
            && !self.has_its_own_tasks(request.server, request.client);
        let wants = if request.modern { declares_tasks(message) } else { request.task };
        ours && wants && self.task_rule(request) != TaskRule::Forbidden
    }

    /// Gives the handle of the task that a call is already, to a client that takes it. False if there is none.
    pub(super) fn knows_the_ticket(&mut self, no: KeyNo, request: &Request, message: &Message) -> bool {
        let ticket = self.keys.get(Some(no)).and_then(|key| self.open_ticket(key));
        let known = ticket.filter(|no| {
            self.tickets.get(*no).is_some_and(|task| task.modern == request.modern && task.stored)
        });
        let Some(ticket) = known.filter(|_| self.takes_handle(request, message)) else { return false };
        self.note_joined(request.server, request.tool.as_deref());
        self.show_task(ticket, &waiter(request, Wants::Handle));
        true
    }

    /// A call that is to become a task shares that of another call with its key. False if there is none.
    pub(in crate::engine) fn share_ticket(&mut self, now: Mono, id: CallId) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        let key = self.keys.get(call.request.key_no).filter(|key| !key.joined().is_empty());
        let Some(no) = key.and_then(|key| self.open_ticket(key)) else { return false };
        let same = |task: &&Task| {
            task.modern == call.request.modern && task.faces.has(Faces::HAND_OFF) == call.hands_off
        };
        let Some(task) = self.tickets.get(no).filter(same) else { return false };
        if !task.stored {
            self.calls.becomes_task_at(id, Some(now + LOOK_AGAIN));
            return true;
        }
        if let Some(request) = self.part(id) {
            self.show_task(no, &waiter(&request, Wants::Handle));
        }
        true
    }

    /// A call that joined one with a ticket waits until its answer is stored.
    pub(super) fn wait_for_ticket_instead(&mut self, id: CallId, no: TaskNo) {
        let Some(call) = self.take_joined(id) else { return };
        self.tell_parted(&call.request, call.age(self.at));
        self.count_out(&call.request, call.holds);
        self.wait_for_task(no, waiter(&call.request, Wants::Answer));
    }

    // What is stored.

    /// The key under which a new task is stored. One that shares its call has none: the first one is found.
    pub(in crate::engine) fn key_to_store(&self, key_no: Option<KeyNo>) -> Option<Box<str>> {
        let key = self.keys.get(key_no).filter(|key| !key.elsewhere && key.repeats.is_none())?;
        self.open_ticket(key).is_none().then(|| key.name.key.clone())
    }

    /// The newest record under a key that is known here.
    pub(in crate::engine) fn seen_under_key(&self, key_no: Option<KeyNo>) -> u64 {
        self.keys.get(key_no).map_or(0, |key| key.seen)
    }

    /// The task that a key belongs to. One that was cancelled leaves its call to others.
    pub(in crate::engine) fn open_ticket(&self, key: &Entry) -> Option<TaskNo> {
        key.ticket.filter(|no| self.tickets.get(*no).is_some_and(|task| task.state.is_open()))
    }

    pub(in crate::engine) fn key_has_ticket(&mut self, key_no: Option<KeyNo>, no: TaskNo) {
        let open = self.keys.get(key_no).and_then(|key| self.open_ticket(key));
        self.keys.has_ticket(key_no, open.unwrap_or(no));
    }

    /// Another process has a call with this key: ours joins it.
    pub(in crate::engine) fn key_was_taken(&mut self, now: Mono, no: TaskNo, ticket: &Ticket) {
        let key_no = self.tickets.get(no).filter(|task| task.start.is_some()).and_then(|task| task.key_no);
        let Some(entry_no) = key_no.filter(|no| self.keys.get(Some(*no)).is_some()) else {
            return self.make_task_without_key(now, no);
        };
        self.keys.has_no_ticket(entry_no);
        let Some(task) = self.drop_task(no) else { return };
        let task_ttl = task.ttl();
        let first =
            task.waiters.into_iter().find(|waiter| matches!(waiter.wants, Wants::Handle | Wants::Answer));
        let first = first.filter(|first| self.clients.contains_key(&first.client));
        if let (Some((request, message)), Some(first)) = (task.start, first) {
            self.clients.closes(first.client, &first.id, Open::Wait(no));
            let task = first.wants == Wants::Handle;
            let asking = task.then(|| with_task(&message, task_ttl)).flatten();
            let message = asking.unwrap_or(*message);
            let request = Request { way: first.way, task, ..*request };
            if !self.keys.get(Some(entry_no)).is_some_and(Entry::is_opening) {
                return self.joins_here(now, entry_no, request, &message);
            }
            self.wait_for_key(entry_no, request, message);
        }
        self.look_key_up(entry_no, Query::Record(ticket.clone()));
    }

    /// The call of another process came too late for ours, which runs or is answered: a request joins that one.
    fn joins_here(&mut self, now: Mono, no: KeyNo, request: Request, message: &Message) {
        self.keys.runs_elsewhere(Some(no));
        self.tool_call(now, request, message);
    }

    /// It runs already: too late to join another, and its client needs a ticket all the same.
    fn make_task_without_key(&mut self, now: Mono, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        let (key_no, call) = (task.key_no, task.call);
        self.task_was_not_made(now, no);
        let again = self.keys.runs_elsewhere(key_no);
        if let Some(id) = call.filter(|_| again) {
            self.calls.becomes_task_at(id, Some(now));
            self.arm_call(now, id);
        }
    }

    /// Has an answer stored under its key. False if it is none to be kept.
    pub(super) fn store_answer(
        &mut self,
        no: KeyNo,
        request: &Request,
        keyed: Keyed,
        answer: &Message,
    ) -> bool {
        let Some(entry) = self.keys.get(Some(no)) else { return false };
        if self.open_ticket(entry).is_some() {
            return false;
        }
        let (name, seen) = (entry.name.clone(), entry.seen);
        let result = answer.envelope.get(Field::Result);
        let result = result.map(|span| Answer::Result(answer.bytes.slice(span.start()..span.end())));
        let Some(result) = result.filter(idempotency::may_be_given_again) else { return false };
        let age = keyed.age(self.at);
        let Some(message) = keyed.message else { return false };
        let Some(entropy) = self.ledger.take_entropy() else { return false };
        self.act(Action::NeedEntropy);
        let ticket = Ticket::of(&entropy);
        let origin = Origin {
            principal: name.whose,
            server: self.definition_of(request.server).identity.clone(),
            method: request.method.as_str().into(),
            tool: request.tool.clone().unwrap_or_default(),
            key: Some(name.key),
        };
        let new = New {
            ticket: ticket.clone(),
            origin,
            faces: Faces::default(),
            seen,
            ran: age,
            body: Body::default().encode(),
            request: message.bytes,
        };
        let change = self.completed(ticket, result);
        let writes = vec![Write::Create(Box::new(new)), Write::Change(Box::new(change))];
        self.submit_all(Pending::Kept(no), writes);
        true
    }

    /// A call that has ended as it begins in the store.
    fn completed(&self, ticket: Ticket, result: Answer) -> Change {
        Change {
            ticket,
            epoch: 1,
            state: State::Completed,
            faces: Faces::default(),
            keep: Some(self.config.task_ttl),
            body: None,
            answer: Some(result),
        }
    }

    /// From now on it is found in the store; or, if that failed, not at all.
    pub(in crate::engine) fn answer_is_stored(&mut self, no: KeyNo) {
        if self.keys.get(Some(no)).is_some_and(Entry::is_answered) {
            self.keys.forget(&mut self.timers, no);
        }
    }
}

fn waiter(request: &Request, wants: Wants) -> Waiter {
    Waiter { client: request.client, way: request.way, id: request.id.clone(), wants }
}

/// Whether a record is of the same call.
fn is_same_record(key: &Entry, record: &Record) -> bool {
    let Ok(Scanned::Message(request)) = scan(record.request.clone()) else { return false };
    key.is_same(Some(&record.head.origin.tool), idempotency::arguments(&request))
}
