//! One task: a call whose answer is fetched later, under a ticket.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `a_task_is_stored_before_its_handle_is_given` | new | stored | working | the handle to the client, the attempt to the server |
//! | `a_task_that_cannot_be_stored_is_a_plain_call` | new | not stored | – | the call is answered as if no task had been asked for |
//! | `a_slow_modern_call_becomes_a_task` | – | `task-after` is over | working | stored, then the handle |
//! | `an_answer_completes_a_task` | working | answer | completed | stored, then whoever waits gets it |
//! | `a_failed_tool_fails_a_legacy_task` | working | answer with `isError` | failed | legacy only; a modern task is completed |
//! | `an_error_fails_a_task` | working | error, limit, server gone | failed | stored, then whoever waits gets it |
//! | `a_cancelled_task_stays_cancelled` | working | client cancels | cancelled | the server is told; stored, then confirmed |
//! | `a_question_of_the_server_is_input_required` | working | server asks | input_required | until it is answered |
//! | `a_finished_task_expires` | completed, failed, cancelled | ttl is over | – | forgotten |
//!
//! Each row has a test of the same name, in `tests/engine/tasks.rs`.

use crate::calls::Request;
use crate::calls::resume::Resume;
use crate::clients::Way;
use crate::error::json_text;
use crate::id::{AskId, CallId, ClientId, JsonId, KeyNo};
use crate::record::{self, Answer, Body, Change, Faces, Head, Record, State, Ticket};
use crate::time::{Mono, Wall};
use crate::wire::{Field, Message, Scanned, scan};
use bytes::Bytes;

/// Whether a tool's calls may be tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskRule {
    /// Never.
    Forbidden,
    /// If the client asks.
    Optional,
    /// The client is told to ask; a plain call works all the same.
    Required,
}

/// What somebody who waits for a task wants to see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wants {
    /// The handle of a new task.
    Handle,
    /// The task itself.
    Task,
    /// The answer of its call.
    Result,
    /// The same as if there were no task.
    Answer,
    /// Only that it was done.
    Word,
    /// The same, when this submission is stored.
    Receipt(u64),
    /// The answer exactly as it came; at this time, that there is none yet.
    Until(Mono),
}

/// A request that is answered by what becomes of a task.
#[derive(Clone, Debug)]
pub(crate) struct Waiter {
    pub(crate) client: ClientId,
    pub(crate) way: Way,
    pub(crate) id: JsonId,
    pub(crate) wants: Wants,
}

/// One task.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) ticket: Ticket,
    pub(crate) principal: Box<str>,
    /// What its server is called in the store.
    pub(crate) server: Box<str>,
    /// Who made it.
    pub(crate) client: ClientId,
    pub(crate) modern: bool,
    /// In which epoch it became ours.
    pub(crate) epoch: u64,
    /// The revision that was last seen, if another process has it.
    pub(crate) theirs: Option<u64>,
    /// Its call, while it runs.
    pub(crate) call: Option<CallId>,
    /// What is remembered under the key of its call.
    pub(crate) key_no: Option<KeyNo>,
    pub(crate) state: State,
    pub(crate) created: Wall,
    pub(crate) updated: Wall,
    /// What else is stored of it.
    pub(crate) body: Body,
    /// When it last changed as far as that is stored: what may be shown.
    pub(crate) known: Wall,
    pub(crate) answer: Option<Answer>,
    /// Its state is stored, so that it may be shown.
    pub(crate) stored: bool,
    /// Its end is shown, but could not be stored yet.
    pub(crate) unwritten: bool,
    /// The request and its message, until they are sent.
    pub(crate) start: Option<(Box<Request>, Box<Message>)>,
    pub(crate) waiters: Vec<Waiter>,
    /// Clients that are told when it ends, and do not wait for it.
    pub(crate) followers: Vec<ClientId>,
    /// When it ended.
    pub(crate) ended: Option<Mono>,
    /// Under which names its client knows it.
    pub(crate) faces: Faces,
    /// What it calls.
    pub(crate) tool: Box<str>,
    /// When the first of those who wait stops.
    pub(crate) armed: Option<Mono>,
    /// What its server asks, in the modern era.
    pub(crate) input: Input,
    /// Its ticket is a resume token: see `calls/resume.rs`.
    pub(crate) resume: Option<Box<Resume>>,
    /// For whom it counts against `max-calls`, until it ends.
    pub(crate) payer: Option<Payer>,
}

/// A principal for whom something counts; nobody in particular without authentication.
#[derive(Clone, Debug)]
pub(crate) struct Payer(pub(crate) Option<Box<str>>);

/// What a modern task needs of its client.
#[derive(Clone, Debug, Default)]
pub(crate) struct Input {
    pub(crate) questions: Vec<Question>,
    /// How many there have been: no two have the same key.
    asked: u64,
    /// What the server wants back with the answers, as raw JSON.
    pub(crate) state: Option<Bytes>,
}

/// One request of a server.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    pub(crate) key: Box<str>,
    /// Its method and its params, as raw JSON.
    pub(crate) request: Bytes,
    pub(crate) asker: Asker,
    pub(crate) answer: Option<Bytes>,
}

/// How a server asked, and so how it is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Asker {
    /// By a request.
    Request(AskId),
    /// By an `input_required` result, under this name: the call is sent once more with all answers.
    Result(Box<str>),
    /// By a task of its own, under this name.
    Task(Box<str>),
}

impl Input {
    /// Takes a question in, under a key that no other has, also after a restart of ours.
    pub(crate) fn ask(&mut self, epoch: u64, request: Bytes, asker: Asker) {
        self.asked += 1;
        let key = format!("{epoch}-{}", self.asked).into();
        self.questions.push(Question { key, request, asker, answer: None });
    }

    fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.answer.is_none())
    }

    /// Whether the client is waited for.
    pub(crate) fn is_needed(&self) -> bool {
        self.open().next().is_some()
    }
}

impl Task {
    /// A task of a call of ours, which is not stored yet. It began at the first of the two times.
    pub(crate) fn new(
        ticket: Ticket,
        (principal, server): (Box<str>, Box<str>),
        request: &Request,
        (faces, body): (Faces, Body),
        (created, now): (Wall, Wall),
        waiter: Waiter,
    ) -> Task {
        Task {
            ticket,
            principal,
            server,
            client: request.client,
            modern: request.modern,
            epoch: 1,
            theirs: None,
            call: None,
            key_no: request.key_no,
            state: State::Working,
            created,
            updated: now,
            body,
            known: now,
            answer: None,
            stored: false,
            unwritten: false,
            start: None,
            waiters: vec![waiter],
            followers: Vec::new(),
            ended: None,
            faces,
            tool: request.tool.clone().unwrap_or_default(),
            armed: None,
            input: Input::default(),
            resume: None,
            payer: None,
        }
    }

    /// A task as a store has it.
    pub(crate) fn of_head(head: &Head, client: ClientId) -> Task {
        Task {
            ticket: head.ticket.clone(),
            principal: head.origin.principal.clone(),
            server: head.origin.server.clone(),
            client,
            modern: head.faces.has(Faces::MODERN_TASK),
            epoch: head.epoch,
            theirs: None,
            call: None,
            key_no: None,
            state: head.state,
            created: head.created,
            updated: head.updated,
            // What a newer outlast wrote is left alone.
            body: Body::decode(&head.body).unwrap_or_default(),
            known: head.updated,
            answer: None,
            stored: true,
            unwritten: false,
            start: None,
            waiters: Vec::new(),
            followers: Vec::new(),
            ended: None,
            faces: head.faces,
            tool: head.origin.tool.clone(),
            armed: None,
            input: Input::default(),
            resume: None,
            payer: None,
        }
    }

    /// The same with its answer.
    pub(crate) fn of_record(record: &Record, client: ClientId) -> Task {
        let of_head = Task::of_head(&record.head, client);
        // What was handed off does not say by its name of which era it is.
        let modern = of_head.modern || is_modern(&record.request);
        let resume = Resume::of_record(record).map(Box::new);
        Task { modern, answer: record.answer.clone(), resume, ..of_head }
    }

    /// A write that says how far it has come, and nothing else.
    pub(crate) fn change(&self) -> Change {
        Change {
            ticket: self.ticket.clone(),
            epoch: self.epoch,
            state: self.state,
            faces: Faces::default(),
            keep: None,
            body: None,
            answer: None,
        }
    }

    /// What can be seen of it.
    pub(crate) fn summary(&self) -> Task {
        Task {
            ticket: self.ticket.clone(),
            principal: self.principal.clone(),
            server: self.server.clone(),
            body: self.body.clone(),
            answer: self.answer.clone(),
            start: None,
            waiters: Vec::new(),
            followers: Vec::new(),
            tool: self.tool.clone(),
            armed: None,
            input: self.input.clone(),
            resume: None,
            payer: None,
            ..*self
        }
    }

    /// Whether it is shown as ended.
    pub(crate) fn has_ended(&self) -> bool {
        !self.state.is_open() && self.stored
    }

    /// What may be seen of its state: an end only once it is stored.
    pub(crate) fn shown(&self) -> State {
        if self.state.is_open() || self.stored { self.state } else { State::Working }
    }

    /// Has what is asked stored with the next change of its state.
    pub(crate) fn store_questions(&mut self) {
        self.body.questions.clear();
        for open in self.input.open() {
            self.body.ask(record::Question { key: open.key.as_ref().into(), request: open.request.clone() });
        }
    }

    /// A member for a shown task: everything that is not answered yet. Of another process's task only the
    /// store knows it.
    pub(crate) fn questions(&self) -> Vec<u8> {
        let member = |key: &str, request: &[u8]| [&*json_text(key), b":", request].concat();
        let shown: Vec<Vec<u8>> = if self.input.is_needed() {
            self.input.open().map(|open| member(&open.key, &open.request)).collect()
        } else {
            self.body.questions.iter().map(|open| member(&open.key, &open.request)).collect()
        };
        [b",\"inputRequests\":{", &*shown.join(&b","[..]), b"}"].concat()
    }

    /// The `ttl` that its client was told, in milliseconds.
    pub(crate) fn ttl(&self) -> u64 {
        self.body.ttl_ms.unwrap_or_default()
    }

    /// How often a client may ask, in milliseconds: a young task soon ends, an old one not so soon.
    pub(crate) fn poll_interval(&self, now: Wall) -> u64 {
        let age = now.0.saturating_sub(self.created.0);
        (age / 10).clamp(500, 10_000)
    }
}

fn is_modern(request: &Bytes) -> bool {
    matches!(scan(request.clone()), Ok(Scanned::Message(request)) if request.has(Field::MetaProtocolVersion))
}
