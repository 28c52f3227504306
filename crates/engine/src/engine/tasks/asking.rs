//! What clients ask about tasks, and who waits for them.
//!
//! A task that is not in memory is looked up in the store: it has ended, or another process has it. What a
//! client may not see takes the same way as what is not there, and gets the same answer.

use super::push::Listening;
use crate::action::Action;
use crate::calls::Request;
use crate::clients::{Door, Entry, Open, Way};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::{ClientId, JsonId, TaskNo};
use crate::limits;
use crate::method::Method;
use crate::record::{Faces, Head, Record, State, Ticket};
use crate::store::{Found, Loaded, Mail, Query, Refusal, Stored, Trouble, Write};
use crate::tickets::{Task, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Field, Message};
use bytes::Bytes;

/// Tasks in one page of a list.
const PAGE: usize = 50;

/// What a client wants of a task.
#[derive(Clone, Debug)]
pub(in crate::engine) enum About {
    /// To see it as it is.
    See,
    /// Its answer, once there is one.
    Await,
    /// Its end.
    Cancel,
    /// That what was asked is answered.
    Update(Bytes),
    /// Its answer exactly as it came, if there is one by then.
    Fetch(Mono),
    /// The same as its end, of a call that was handed off.
    Stop,
    /// To be told of it.
    Listen(Box<Listening>),
}

/// A request about a task.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Asked {
    pub(super) client: ClientId,
    pub(in crate::engine) way: Way,
    pub(in crate::engine) id: JsonId,
    pub(super) principal: Box<str>,
    pub(super) modern: bool,
    pub(super) about: About,
}

impl Asked {
    fn waiter(&self, wants: Wants) -> Waiter {
        Waiter { client: self.client, way: self.way, id: self.id.clone(), wants }
    }

    /// What shows that a task was cancelled.
    fn receipt(&self) -> Waiter {
        let word = self.modern || matches!(self.about, About::Stop);
        self.waiter(if word { Wants::Word } else { Wants::Task })
    }
}

impl Engine {
    /// What a request asks, in the name of its client.
    pub(super) fn asked(&self, request: &Request, about: About) -> Asked {
        Asked {
            client: request.client,
            way: request.way,
            id: request.id.clone(),
            principal: self.principal_of(request.client),
            modern: request.modern,
            about,
        }
    }

    pub(super) fn about_task(&mut self, now: Mono, request: &Request, message: &Message) {
        let about = match request.method {
            Method::TasksResult => About::Await,
            Method::TasksCancel => About::Cancel,
            Method::TasksUpdate => About::Update(message.bytes.clone()),
            _ => About::See,
        };
        let asked = self.asked(request, about);
        let ticket = message.text(Field::ParamsTaskId).and_then(|text| Ticket::parse(&text));
        self.ask_about(now, ticket, asked);
    }

    /// Does with a ticket what was asked, if whoever asks may see it.
    pub(super) fn ask_about(&mut self, now: Mono, ticket: Option<Ticket>, asked: Asked) {
        let Some(ticket) = ticket else { return self.no_such_task(&asked) };
        match self.task_of(&ticket, &asked) {
            Some(no) => self.tell_about(now, no, asked),
            None => self.look_up(asked, Query::Record(ticket), Pending::Asked),
        }
    }

    fn no_such_task(&mut self, asked: &Asked) {
        if asked.face() == Faces::HAND_OFF {
            return self.ticket_unknown(asked);
        }
        let text = "Invalid params: no such task";
        self.answer_error(asked.client, asked.way, &asked.id, -32602, text);
    }

    /// A task in memory that whoever asks may see.
    fn task_of(&self, ticket: &Ticket, asked: &Asked) -> Option<TaskNo> {
        let no = self.tickets.named(ticket)?;
        let task = self.tickets.get(no)?;
        let seen = task.principal == asked.principal && task.faces.has(asked.face());
        (seen && self.is_behind(asked.client, &task.server)).then_some(no)
    }

    /// Does with a task in memory what was asked.
    fn tell_about(&mut self, now: Mono, no: TaskNo, asked: Asked) {
        let ended = self.tickets.get(no).is_none_or(Task::has_ended);
        match asked.about {
            About::See => self.show_task(no, &asked.waiter(Wants::Task)),
            About::Await if ended => self.show_task(no, &asked.waiter(Wants::Result)),
            About::Await => self.wait_for_task(no, asked.waiter(Wants::Result)),
            About::Cancel => self.cancel_task(now, no, asked.receipt()),
            About::Fetch(until) if ended || until <= now => {
                self.show_task(no, &asked.waiter(Wants::Until(until)));
            }
            About::Fetch(until) => self.wait_for_task(no, asked.waiter(Wants::Until(until))),
            About::Stop => self.cancel_task(now, no, asked.receipt()),
            About::Update(ref bytes) => self.update_task(now, no, bytes, &asked),
            // Whoever listens has been told already.
            About::Listen(_) => {}
        }
    }

    // The store.

    pub(super) fn look_up(
        &mut self,
        asked: Asked,
        query: Query,
        pending: impl FnOnce(Box<Asked>) -> Pending,
    ) {
        let number = self.ledger.next_lookup();
        self.clients.opens(asked.client, asked.id.key(), Open::Look(number));
        self.load(pending(Box::new(asked)), query);
    }

    pub(super) fn found(&mut self, number: u64, asked: &Asked) {
        self.clients.closes(asked.client, &asked.id, Open::Look(number));
    }

    /// The store has been asked for a task.
    pub(super) fn looked_up(&mut self, now: Mono, number: u64, asked: Asked, outcome: &Loaded) {
        self.found(number, &asked);
        if matches!(asked.about, About::Listen(_)) {
            return self.listened_is_found(now, &asked, outcome);
        }
        let record = match outcome {
            Ok(Found::Record(Some(record))) if self.may_see(&record.head, &asked) => record,
            Err(_) => {
                let text = "Internal error: the store does not answer; the log of outlast says why";
                return self.answer_error(asked.client, asked.way, &asked.id, -32603, text);
            }
            _ => return self.no_such_task(&asked),
        };
        // It may have become ours meanwhile.
        if let Some(no) = self.task_of(&record.head.ticket, &asked) {
            return self.tell_about(now, no, asked);
        }
        if record.head.state.is_open() {
            self.tell_about_theirs(now, record, asked);
        } else {
            self.tell_about_ended(record, &asked);
        }
    }

    pub(super) fn may_see(&self, head: &Head, asked: &Asked) -> bool {
        head.origin.principal == asked.principal
            && self.is_behind(asked.client, &head.origin.server)
            && head.faces.has(asked.face())
    }

    /// Whether a client reaches the server that is called so in the store.
    pub(super) fn is_behind(&self, client: ClientId, identity: &str) -> bool {
        let entry = self.clients.get(&client).map(|client| client.entry);
        let called = self.definition_called(identity);
        called.is_some_and(|called| match entry {
            Some(Entry::Server(definition)) => definition == called,
            Some(Entry::Merged) => true,
            None => false,
        })
    }

    fn tell_about_ended(&mut self, record: &Record, asked: &Asked) {
        let task = Task::of_record(record, asked.client);
        match asked.about {
            About::See => self.show(&task, &asked.waiter(Wants::Task)),
            About::Await => self.show(&task, &asked.waiter(Wants::Result)),
            About::Update(_) => self.show(&task, &asked.waiter(Wants::Word)),
            About::Fetch(until) => self.show(&task, &asked.waiter(Wants::Until(until))),
            About::Cancel | About::Stop => self.too_late_to_cancel(&task, &asked.receipt()),
            About::Listen(_) => {}
        }
    }

    /// Another process has it.
    fn tell_about_theirs(&mut self, now: Mono, record: &Record, asked: Asked) {
        self.claim_if_abandoned(now);
        let task = Task::of_record(record, asked.client);
        let ticket = task.ticket.clone();
        match &asked.about {
            About::See => self.show(&task, &asked.waiter(Wants::Task)),
            About::Await => {
                let no = self.add_task(Task { theirs: Some(record.head.revision), ..task });
                self.wait_for_task(no, asked.waiter(Wants::Result));
            }
            About::Fetch(until) if *until <= now => self.show(&task, &asked.waiter(Wants::Until(*until))),
            About::Fetch(until) => {
                let no = self.add_task(Task { theirs: Some(record.head.revision), ..task });
                self.wait_for_task(no, asked.waiter(Wants::Until(*until)));
            }
            About::Cancel | About::Stop => {
                let no = self.add_task(Task { theirs: Some(record.head.revision), ..task });
                let receipt = asked.receipt();
                self.submit(Pending::Told(no), Write::Post { ticket, message: Mail::Cancel });
                self.wait_for_task(no, receipt);
            }
            About::Update(bytes) => {
                let no = self.add_task(Task { theirs: Some(record.head.revision), ..task });
                self.update_task(now, no, bytes, &asked);
            }
            About::Listen(_) => {}
        }
    }

    /// Passes on what a client answers, and says so once it cannot be lost on its way.
    fn update_task(&mut self, now: Mono, no: TaskNo, update: &Bytes, asked: &Asked) {
        let Some(task) = self.tickets.get(no) else { return };
        if task.theirs.is_none() || task.has_ended() {
            self.take_input(now, no, update);
            return self.show_task(no, &asked.waiter(Wants::Word));
        }
        let (ticket, message) = (task.ticket.clone(), Mail::Input(update.clone()));
        let number = self.submit(Pending::Posted(no), Write::Post { ticket, message });
        self.wait_for_task(no, asked.waiter(Wants::Receipt(number)));
    }

    /// An answer was left for the process that runs a task, or was not. What has ended needs none.
    pub(super) fn mail_was_posted(&mut self, no: TaskNo, number: u64, outcome: &Stored) {
        for waiter in self.tickets.take_waiters(no, |waiter| waiter.wants == Wants::Receipt(number)) {
            self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
            if arrived(outcome) {
                self.show_task(no, &waiter);
            } else {
                let text = "Internal error: the answer could not be left for the process that runs the task; \
                            the log of outlast says why";
                self.answer_error(waiter.client, waiter.way, &waiter.id, -32603, text);
            }
        }
        self.leave_theirs(no);
    }

    // Lists.

    pub(super) fn list_tasks(&mut self, request: &Request, message: &Message) {
        let known = self.clients.get(&request.client);
        if known.is_some_and(|client| !matches!(client.door, Door::Line) && client.principal.is_none()) {
            let text = "Method not found: tasks/list needs authentication";
            return self.answer_error(request.client, request.way, &request.id, -32601, text);
        }
        let before = match message.text(Field::ParamsCursor).map(|cursor| cursor.parse::<u64>()) {
            None => None,
            Some(Ok(before)) => Some(before),
            Some(Err(_)) => {
                let text = "Invalid params: no such cursor";
                return self.answer_error(request.client, request.way, &request.id, -32602, text);
            }
        };
        let merged = self.is_merged(request.client);
        let asked = self.asked(request, About::See);
        let query = Query::Heads {
            principal: Some(asked.principal.clone()),
            server: (!merged).then(|| self.definition_of(request.server).identity.clone()),
            before,
            limit: PAGE + 1,
        };
        self.look_up(asked, query, Pending::Listed);
    }

    /// The store has been asked for a list.
    pub(super) fn listed(&mut self, number: u64, asked: &Asked, outcome: &Loaded) {
        self.found(number, asked);
        let Ok(Found::Heads(heads)) = outcome else {
            let text = "Internal error: the store does not answer; the log of outlast says why";
            return self.answer_error(asked.client, asked.way, &asked.id, -32603, text);
        };
        let shown: Vec<Vec<u8>> = heads
            .iter()
            .take(PAGE)
            .filter(|head| head.faces.has(asked.face()))
            .map(|head| {
                let ours = self.tickets.named(&head.ticket).and_then(|no| self.tickets.get(no));
                match ours {
                    Some(task) => self.legacy_task(task),
                    None => self.legacy_task(&Task::of_head(head, asked.client)),
                }
            })
            .collect();
        let next = heads.get(PAGE - 1).filter(|_| heads.len() > PAGE);
        let next = next.map(|head| format!(r#","nextCursor":"{}""#, head.number)).unwrap_or_default();
        let result = [b"{\"tasks\":[", &*shown.join(&b","[..]), b"]", next.as_bytes(), b"}"].concat();
        self.answer_result(asked.client, asked.way, &asked.id, &result);
    }

    // Waits.

    pub(in crate::engine) fn wait_for_task(&mut self, no: TaskNo, waiter: Waiter) {
        match self.tickets.has_room_to_wait(no) {
            None => return,
            Some(true) => {}
            Some(false) => {
                let text = format!("Internal error: {} requests wait for this task already", limits::WAITERS);
                return self.answer_error(waiter.client, waiter.way, &waiter.id, -32603, &text);
            }
        }
        self.clients.opens(waiter.client, waiter.id.key(), Open::Wait(no));
        let (client, way) = (waiter.client, waiter.way);
        let limited = matches!(waiter.wants, Wants::Until(_));
        let hears = limited || waiter.wants == Wants::Result;
        self.tickets.wait(&mut self.timers, no, waiter);
        if hears {
            self.pass_on_questions(no, client, way);
            // What waits over HTTP must see bytes, and the id of an event to come back with.
            self.stream_is_due(way);
        }
    }

    /// A client gives up a wait. The task goes on.
    pub(in crate::engine) fn stop_waiting(&mut self, client: ClientId, id: &JsonId, no: TaskNo) {
        self.clients.closes(client, id, Open::Wait(no));
        let Some(waiter) = self.tickets.stop_waiting(no, client, id) else { return };
        self.leave_theirs(no);
        self.forget_unstarted(no);
        self.settled_without_answer(client, waiter.way);
    }

    /// A client gives up a question to the store.
    pub(in crate::engine) fn stop_looking(&mut self, client: ClientId, id: &JsonId, number: u64) {
        self.clients.closes(client, id, Open::Look(number));
        let pending = self.ledger.forget(number);
        if let Some((_, way)) = pending.as_ref().and_then(Pending::looks) {
            self.settled_without_answer(client, way);
        }
    }

    /// A client that asked the store something is gone.
    pub(in crate::engine) fn forget_look(&mut self, client: ClientId, number: u64) {
        let pending = self.ledger.forget(number);
        if let Some((id, _)) = pending.as_ref().and_then(Pending::looks) {
            self.clients.closes(client, id, Open::Look(number));
        }
    }

    /// A client that waited is gone.
    pub(in crate::engine) fn forget_waiter(&mut self, client: ClientId, no: TaskNo) {
        let gone = self.tickets.take_waiters(no, |waiter| waiter.client == client);
        gone.iter().for_each(|waiter| self.clients.closes(client, &waiter.id, Open::Wait(no)));
        self.leave_theirs(no);
        self.left_for_good(no);
        self.forget_unstarted(no);
    }

    /// Whoever asked for a task has left before it was stored: nobody knows its ticket, and its call never begins.
    fn forget_unstarted(&mut self, no: TaskNo) {
        let unknown = |task: &Task| task.start.is_some() && task.waiters.is_empty();
        if self.tickets.get(no).is_some_and(unknown) {
            self.end_by_cancel(self.at, no);
        }
    }

    /// Another process's task is watched only while somebody waits for it or listens to it.
    pub(super) fn leave_theirs(&mut self, no: TaskNo) {
        let left = |task: &Task| task.theirs.is_some() && task.waiters.is_empty();
        let watched = |task: &Task| self.is_listened_to(&task.ticket) || self.is_followed(task);
        let unwatched = |task: &&Task| left(task) && !watched(task);
        if self.tickets.get(no).filter(unwatched).is_some() {
            self.drop_task(no);
        }
    }

    /// Nobody says so when the last one who listened is gone.
    pub(super) fn leave_all_theirs(&mut self) {
        let theirs = self.tickets.numbers(|task| task.theirs.is_some());
        theirs.into_iter().for_each(|no| self.leave_theirs(no));
    }

    /// A cancel was left for the process that runs a task, or was not. What has ended is seen without it.
    pub(super) fn owner_was_told(&mut self, no: TaskNo, outcome: &Stored) {
        if arrived(outcome) {
            return;
        }
        if self.tickets.get(no).is_none_or(|task| task.theirs.is_none()) {
            return;
        }
        let cancels = |waiter: &Waiter| matches!(waiter.wants, Wants::Task | Wants::Word);
        for waiter in self.tickets.take_waiters(no, cancels) {
            self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
            let text = "Internal error: the cancel could not be left for the process that runs the task; \
                        the log of outlast says why";
            self.answer_error(waiter.client, waiter.way, &waiter.id, -32603, text);
        }
        self.leave_theirs(no);
    }

    fn cancel_task(&mut self, now: Mono, no: TaskNo, waiter: Waiter) {
        let Some(task) = self.tickets.get(no) else { return };
        if !task.state.is_open() {
            let task = task.summary();
            return self.too_late_to_cancel(&task, &waiter);
        }
        if task.theirs.is_some() {
            let ticket = task.ticket.clone();
            self.submit(Pending::Told(no), Write::Post { ticket, message: Mail::Cancel });
            return self.wait_for_task(no, waiter);
        }
        self.wait_for_task(no, waiter);
        self.end_by_cancel(now, no);
    }

    /// Cancels a task of ours.
    pub(in crate::engine) fn end_by_cancel(&mut self, now: Mono, no: TaskNo) {
        let Some(call) = self.tickets.void(no) else { return };
        self.end_task(now, no, State::Cancelled, None);
        if let Some(call) = call {
            self.give_up(call, "the task was cancelled");
        }
    }

    fn too_late_to_cancel(&mut self, task: &Task, waiter: &Waiter) {
        if waiter.wants == Wants::Word {
            return self.show(task, waiter);
        }
        let text = format!("Invalid params: the task has ended: {}", task.state.as_str());
        self.answer_error(waiter.client, waiter.way, &waiter.id, -32602, &text);
    }
}

impl Engine {
    /// Asks the store, and notes why.
    pub(in crate::engine) fn load(&mut self, pending: Pending, query: Query) {
        let number = self.ledger.look_up(pending);
        self.act(Action::Load(number, query));
    }
}

/// Whether a mailbox message is in the store, or comes too late to be needed.
fn arrived(outcome: &Stored) -> bool {
    match outcome {
        Ok(_) => true,
        Err(trouble) => matches!(trouble, Trouble::Refused { why: Refusal::Ended(_), .. }),
    }
}
