//! Calls that a process left behind when it ended: never silently lost, never run twice unasked.
//!
//! A call that may be repeated is made again as soon as there is a server to make it at: in wrap mode when the
//! client has said hello to it, in serve mode at once. If no client does within `resume-wait`, and if it may not
//! be repeated, it has failed, and says why.

use crate::action::Note;
use crate::call::Request;
use crate::client::Way;
use crate::engine::Engine;
use crate::error::{Failure, Kind, Retry, ServerState, Wording};
use crate::id::{ClientId, JsonId, ServerId, TaskNo};
use crate::method::Method;
use crate::record::{Body, Record};
use crate::store::{Found, Loaded};
use crate::task::Task;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, Scanned, scan};
use std::time::Duration;

/// Whose client is gone for good.
const NOBODY: ClientId = ClientId(u64::MAX);

/// Its client may be at another process, and would wait there for ever.
const NOT_BACK: &str =
    "outlast was ended while it ran, and its client did not come back here within resume-wait";

impl Engine {
    /// A record that is ours now has been read.
    pub(super) fn orphan_was_read(&mut self, now: Mono, outcome: &Loaded) {
        let Ok(Found::Record(Some(record))) = outcome else { return };
        if !record.head.state.is_open() {
            return;
        }
        let no = self.adopt(record);
        let repeatable = Body::decode(&record.head.body).is_ok_and(|body| body.repeatable.is_some());
        let message = match scan(&record.request) {
            Ok(Scanned::Message(message)) if repeatable => message,
            _ => return self.fail_orphan(no, "outlast was ended while it ran"),
        };
        self.orphans.push((no, now, Box::new(message)));
        self.start_orphans(now);
    }

    /// Takes a record in as a task of ours; somebody may wait for it already.
    fn adopt(&mut self, record: &Record) -> TaskNo {
        let adopted = Task::of_record(record, NOBODY);
        match self.tickets.get(&record.head.ticket).copied() {
            Some(no) => {
                if let Some(task) = self.tasks.get_mut(&no) {
                    (task.theirs, task.epoch) = (None, record.head.epoch);
                }
                no
            }
            None => self.add_task(adopted),
        }
    }

    fn fail_orphan(&mut self, no: TaskNo, why: &str) {
        let Some(task) = self.tasks.get(&no) else { return };
        let failure = Failure {
            kind: Kind::ServerGone,
            server: self.config.server_name.clone(),
            method: Method::ToolsCall.as_str().into(),
            tool: Some(task.tool.clone()).filter(|tool| !tool.is_empty()),
            elapsed: Duration::from_millis(self.wall.0.saturating_sub(task.created.0)),
            limit: None,
            setting: None,
            attempts: 1,
            state: ServerState::Gone,
            retry: Retry::Unsafe,
            last_sign: None,
            plain: false,
            detail: Some(why.into()),
            stderr: None,
        };
        let answer = failure.answer(b"0", task.modern, Wording::Own);
        self.note(Note::Failed(Box::new(failure)));
        self.task_answered(no, &Outgoing::plain(answer));
    }

    /// Makes the calls again that wait for a server.
    pub(in crate::engine) fn start_orphans(&mut self, now: Mono) {
        for (no, since, message) in std::mem::take(&mut self.orphans) {
            let Some(task) = self.tasks.get(&no).filter(|task| task.state.is_open()) else { continue };
            match self.server_of_orphan(now, task.modern, &task.principal.clone()) {
                Some(server) => self.start_orphan(now, no, server, &message),
                None if now.since(since) < self.config.resume_wait => self.orphans.push((no, since, message)),
                None => self.fail_orphan(no, NOT_BACK),
            }
        }
    }

    /// A server that can take a call of a client that is gone, in the same name and era.
    fn server_of_orphan(&mut self, now: Mono, modern: bool, principal: &str) -> Option<ServerId> {
        if !self.config.manner.serves() {
            let (id, server) = self.servers.iter().next()?;
            // The modern era has no hello: a client that speaks it is enough.
            let spoken = || self.clients.values().any(|client| client.modern);
            let greeted = server.handshake.initialized.is_some() || (modern && spoken());
            return greeted.then_some(*id);
        }
        if modern {
            return Some(self.server_for_exchange(now, principal.strip_prefix("token:")));
        }
        let named = |client: ClientId| self.principal_of(client).as_ref() == principal;
        let greeted = self.servers.iter().filter(|(_, server)| server.handshake.done);
        greeted
            .filter(|(_, server)| server.clients.iter().any(|client| named(*client)))
            .map(|(id, _)| *id)
            .next()
    }

    fn start_orphan(&mut self, now: Mono, no: TaskNo, server: ServerId, message: &Message) {
        let id = message.raw(Field::Id).and_then(JsonId::new);
        let Some((task, id)) = self.tasks.get(&no).zip(id) else { return };
        let request = Request {
            client: task.client,
            server,
            id,
            method: Method::of(message),
            tool: message.text(Field::ParamsName).map(|name| name.as_ref().into()),
            modern: task.modern,
            task: false,
            way: Way::Ticket(no),
            logs: false,
            token: None,
            hello: None,
            cap: None,
            joint: None,
        };
        self.begin_call(now, request, message);
    }
}
