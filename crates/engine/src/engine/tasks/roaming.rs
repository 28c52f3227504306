//! Calls that follow their principal from one device to another: all that can be resumed, and how each of them ends.
//!
//! A ticket is worth its call, so all of them are shown only to whoever has a name: without one nobody can tell which
//! calls are whose. To see them takes nothing over: another device that waits goes on waiting. One call is taken over
//! by `requests/resume` alone.

use super::asking::{About, Asked};
use super::client_resumes::status_of;
use crate::calls::Request;
use crate::calls::resume::Resume;
use crate::clients::Way;
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::error::json_text;
use crate::id::{ClientId, JsonId, TaskNo};
use crate::limits;
use crate::method::Method;
use crate::record::{Answer, Body, Faces, Head, State};
use crate::store::{Found, Loaded, Query};
use crate::tickets::Task;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing};

/// How a call is, for whoever asks from afar.
pub(super) struct Condition {
    pub(super) status: &'static str,
    /// There is something that nobody has read.
    pub(super) pending: bool,
    /// Its server waits for an answer of its client.
    pub(super) asked: bool,
}

impl Engine {
    /// Takes a request that is about all calls of a principal. False if it is about one.
    pub(super) fn all_requests(&mut self, request: &Request, message: &Message) -> bool {
        let follows = match request.method {
            Method::RequestsResumeAll => true,
            Method::RequestsStatusAll => false,
            _ => return false,
        };
        let asked = self.asked(request, About::See);
        if self.clients.get(&request.client).is_none_or(|client| client.principal.is_none()) {
            let text = format!(
                "Method not found: {} needs authentication: without a token (--token-file) nobody knows whose calls \
                 are whose",
                request.method.as_str()
            );
            self.answer_error(asked.client, asked.way, &asked.id, -32601, &text);
            return true;
        }
        let before = match message.text(Field::ParamsCursor).map(|cursor| cursor.parse::<u64>()) {
            None => None,
            Some(Ok(before)) => Some(before),
            Some(Err(_)) => {
                let text = "Invalid params: no such cursor";
                self.answer_error(asked.client, asked.way, &asked.id, -32602, text);
                return true;
            }
        };
        let merged = self.is_merged(request.client);
        let everybody = planted!(self, ShowsAllPrincipals);
        let query = Query::Heads {
            principal: Some(asked.principal.clone()).filter(|_| !everybody),
            server: (!merged).then(|| self.definition_of(request.server).identity.clone()),
            before,
            limit: limits::PAGE,
        };
        self.look_up(asked, query, |asked| Pending::Roams(asked, follows));
        true
    }

    /// The store has been asked for all calls of a principal.
    pub(super) fn all_were_listed(
        &mut self,
        now: Mono,
        number: u64,
        (asked, follows): (&Asked, bool),
        outcome: &Loaded,
    ) {
        self.found(number, asked);
        let Ok(Found::Heads(heads)) = outcome else {
            let text = "Internal error: the store does not answer; the log of outlast says why";
            return self.answer_error(asked.client, asked.way, &asked.id, -32603, text);
        };
        let behind = |head: &&Head| self.is_behind(asked.client, &head.origin.server);
        let shown = heads.iter().filter(behind).filter_map(|head| Some((head, self.as_request(head)?)));
        let (listed, entries): (Vec<Head>, Vec<Vec<u8>>) =
            shown.map(|(head, entry)| (head.clone(), entry)).unzip();
        let full = reached!(PAGE, heads.len() >= limits::PAGE);
        let next = heads.last().filter(|_| full);
        let next = next.map(|head| format!(r#","nextCursor":"{}""#, head.number)).unwrap_or_default();
        let result = [b"{\"requests\":[", &*entries.join(&b","[..]), b"]", next.as_bytes(), b"}"].concat();
        self.answer_result(asked.client, asked.way, &asked.id, &result);
        if follows {
            self.claim_if_abandoned(now);
            listed.iter().for_each(|head| self.tell_end_of(head, asked.client));
        }
    }

    /// A call as it is listed; `None` if nobody could resume it.
    fn as_request(&self, head: &Head) -> Option<Vec<u8>> {
        let ours = self.tickets.named(&head.ticket);
        let ours = ours.filter(|no| self.tickets.get(*no).is_some_and(|task| task.theirs.is_none()));
        let state = ours.and_then(|no| self.tickets.get(no)).map_or(head.state, |task| task.state);
        if !head.faces.has(Faces::RESUME) || state == State::Cancelled {
            return None;
        }
        let id = Body::decode(&head.body).ok()?.request_id?;
        let Condition { status, pending, asked } =
            ours.and_then(|no| self.condition(no)).unwrap_or_else(|| self.condition_of(head));
        let (method, name) = (json_text(&head.origin.method), json_text(&head.origin.tool));
        let rest = format!(
            r#","createdAt":"{}","status":"{status}","hasPendingMessage":{pending},"hasInputRequest":{asked}}}"#,
            head.created.timestamp()
        );
        let token = head.ticket.as_str().as_bytes();
        Some(
            [
                br#"{"requestId":"#,
                id.as_bytes(),
                br#","resumeToken":""#,
                token,
                br#"","method":"#,
                &*method,
                br#","name":"#,
                &*name,
                rest.as_bytes(),
            ]
            .concat(),
        )
    }

    /// How a call of another process is, or one that has ended.
    fn condition_of(&self, head: &Head) -> Condition {
        let status = match head.state {
            State::Failed => "failed",
            State::Working | State::InputRequired => "processing",
            State::Completed | State::Cancelled => "completed",
        };
        let stream = self.clients.stream_with(&head.ticket);
        let unread = stream.is_none_or(|id| self.has_unwritten(id));
        Condition {
            status,
            pending: !head.state.is_open() && unread,
            asked: head.state == State::InputRequired,
        }
    }

    /// How a call is that is in memory.
    pub(super) fn condition(&self, no: TaskNo) -> Option<Condition> {
        let task = self.tickets.get(no)?;
        let server = task.call.and_then(|id| self.calls.get(id)).map(|call| call.request.server);
        let asked = task.state == State::InputRequired
            || server.is_some_and(|server| self.asks.iter().any(|(_, ask)| ask.server == server));
        let pending = match self.attached(no) {
            Some((_, Way::Stream(id))) => self.has_unwritten(id),
            Some(_) => false,
            None => task.resume.as_ref().is_some_and(|resume| resume.newest.is_some()),
        };
        let status = if task.has_ended() { status_of(task.answer.as_ref()) } else { "processing" };
        Some(Condition { status, pending, asked })
    }

    /// A client is told when a call ends. What is not ours, or has ended, is looked at like the task of another process.
    fn tell_end_of(&mut self, head: &Head, client: ClientId) {
        let no = self.tickets.named(&head.ticket).unwrap_or_else(|| {
            let id = Body::decode(&head.body).ok().and_then(|body| body.request_id);
            let id = id.and_then(|id| JsonId::new(id.as_bytes()));
            let resume = id.map(|id| Box::new(Resume { id, seen: self.at, newest: None }));
            let theirs = Task::of_head(head, client);
            self.add_task(Task { theirs: Some(0), state: State::Working, resume, ..theirs })
        });
        self.tickets.follow(no, client);
        if self.tickets.get(no).is_some_and(Task::has_ended) {
            self.tell_followers(no);
        }
    }

    /// Whether somebody follows a call and is there.
    pub(in crate::engine) fn is_followed(&self, task: &Task) -> bool {
        task.followers.iter().any(|client| self.clients.contains_key(client))
    }

    /// A call has ended: whoever follows it is told how.
    pub(super) fn tell_followers(&mut self, no: TaskNo) {
        let followers = self.tickets.take_followers(no);
        let Some(task) = self.tickets.get(no).filter(|_| !followers.is_empty()) else { return };
        let message = ended(task);
        for client in followers {
            if self.clients.contains_key(&client) {
                self.tell_client(client, message.clone());
            }
        }
    }
}

/// How a call has ended, as a notification.
fn ended(task: &Task) -> Outgoing {
    let id = task.resume.as_ref().map(|resume| resume.id.patch());
    let id = id.as_ref().map_or(&b"null"[..], |id| id.as_slice());
    let (name, answer): (&[u8], &[u8]) = match &task.answer {
        Some(Answer::Result(result)) => (b"result", result),
        Some(Answer::Error(error)) => (b"error", error),
        None => (b"error", br#"{"code":-32603,"message":"the call was cancelled"}"#),
    };
    let head = br#"{"jsonrpc":"2.0","method":"dev.outlast/requests/ended","params":{"requestId":"#;
    let token = task.ticket.as_str().as_bytes();
    Outgoing::plain(
        [&head[..], id, br#","resumeToken":""#, token, br#"",""#, name, br#"":"#, answer, b"}}"].concat(),
    )
}
