//! Calls that clients resume after a lost connection: the table is in `calls/resume.rs`.

use super::roaming::Condition;
use crate::calls::Request;
use crate::calls::resume::{Resume, declares, seconds};
use crate::clients::{Open, Way};
use crate::engine::Engine;
use crate::engine::keep_door::NUMBER;
use crate::engine::ledger::Pending;
use crate::engine::streams::message_in;
use crate::error::{Failure, Kind, Retry, ServerState};
use crate::id::{CallId, ClientId, JsonId, StreamId, TaskNo};
use crate::json;
use crate::method::Method;
use crate::record::{Answer, Faces, Head, Record, State, Ticket};
use crate::settings::show_duration;
use crate::step::What;
use crate::store::{Found, Loaded, Mail, Query, Write};
use crate::tickets::{Task, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing};
use bytes::Bytes;

/// The same for all that is refused, so that it reveals nothing.
const UNKNOWN: &str = "this call cannot be resumed: there is none with this id and token, or it was cancelled, or \
    nobody came back for it within resume-wait. Whether it ran is not known here.";

const SUPERSEDED: &str = "another requests/resume has taken this call over, and its answer goes there.";

/// Somebody who comes back for a call, or asks how it is.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Resuming {
    pub(super) client: ClientId,
    pub(in crate::engine) way: Way,
    pub(in crate::engine) id: JsonId,
    principal: Box<str>,
    /// The id of the call.
    call: JsonId,
    /// The number that a door of ours gave it, where the id is the one of the door's client.
    number: Option<JsonId>,
    /// To have it, not only to see how it is.
    takes: bool,
    /// The last event that it has seen.
    confirmed: Option<(StreamId, u64)>,
}

impl Resuming {
    fn names(&self, id: &JsonId) -> bool {
        self.number.as_ref().unwrap_or(&self.call).key() == id.key()
    }
}

/// What the door of `--keep` adds; the token is what lets anybody in, so no more is checked.
fn number_at_door(message: &Message) -> Option<JsonId> {
    json::member(message.raw(Field::ParamsMeta)?, NUMBER).and_then(JsonId::new)
}

impl Engine {
    pub(in crate::engine) fn learn_to_resume(&mut self, client: ClientId, initialize: &Message) {
        self.clients.resumes(client, declares(initialize));
    }

    // How a call gets its token.

    /// Gives a call a resume token if its client can use one. False if it is an ordinary call.
    pub(in crate::engine) fn make_resumable(
        &mut self,
        now: Mono,
        request: &Request,
        message: &Message,
    ) -> bool {
        let declared = self.clients.get(&request.client).is_some_and(|client| client.resumes);
        let wanted = declared && !request.modern && !request.task && request.method == Method::ToolsCall;
        if !wanted || !self.is_alone_on_its_way(request.way) {
            return false;
        }
        let waiter =
            Waiter { client: request.client, way: request.way, id: request.id.clone(), wants: Wants::Answer };
        if !self.has_room_for_task(now, request) {
            return true;
        }
        let face = (Faces::RESUME, std::time::Duration::ZERO);
        let Some(no) = self.make_task(request, message, face, None, waiter) else { return false };
        self.charge_task(request.client, no);
        let started = Request { way: Way::Ticket(no), ..request.clone() };
        self.tickets.starts_with(no, started, message.owned());
        let Some(ticket) = self.tickets.make_resumable(now, no, request.id.clone()) else { return false };
        self.clients.opens(request.client, request.id.key(), Open::Wait(no));
        self.name_stream(request.way, ticket);
        self.arm_resumes();
        true
    }

    pub(super) fn arm_resumes(&mut self) {
        self.tickets.arm_resumes(&mut self.timers, self.at + self.config.resume_wait);
    }

    /// What an array brings shares its stream with others, and cannot leave it alone.
    fn is_alone_on_its_way(&self, way: Way) -> bool {
        match way {
            Way::Line => true,
            Way::Stream(id) => {
                self.clients.stream(id).is_some_and(|stream| stream.legacy && stream.open == 1)
            }
            Way::Array(_) | Way::Ticket(_) | Way::Nowhere => false,
        }
    }

    fn name_stream(&mut self, way: Way, ticket: Ticket) {
        if let Way::Stream(id) = way {
            self.clients.has_ticket(id, ticket);
        }
    }

    /// The token is stored: its client may know it.
    pub(super) fn send_resume_policy(&mut self, no: TaskNo) {
        let Some(task) = self.tickets.get(no) else { return };
        let Some(resume) = &task.resume else { return };
        let id = resume.id.patch();
        let (least, most) = (seconds(self.config.resume_min_wait), seconds(self.config.resume_wait));
        let policy = [
            br#"{"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":"#,
            id.as_slice(),
            br#","resumeToken":""#,
            task.ticket.as_str().as_bytes(),
            br#"","minWait":"#,
            least.as_bytes(),
            br#","maxWait":"#,
            most.as_bytes(),
            b"}}",
        ]
        .concat();
        if let Some((client, way)) = self.attached(no) {
            self.tell(client, way, Outgoing::plain(policy));
        }
    }

    // Who hears of it.

    /// The generation that waits for a call, whether its connection lives or not.
    pub(in crate::engine) fn attached(&self, no: TaskNo) -> Option<(ClientId, Way)> {
        let task = self.tickets.get(no).filter(|task| task.resume.is_some())?;
        let waiter = task.waiters.iter().find(|waiter| waiter.wants == Wants::Answer)?;
        Some((waiter.client, waiter.way))
    }

    /// Whether what is said about a task is heard at once.
    pub(in crate::engine) fn is_heard(&self, no: TaskNo) -> bool {
        if !self.tickets.is_resumable(no) {
            return true;
        }
        match self.attached(no) {
            Some((_, Way::Stream(id))) => {
                self.clients.stream(id).is_some_and(|stream| stream.exchange.is_some())
            }
            attached => attached.is_some(),
        }
    }

    /// Nobody waits for a call just now. Of one that can be resumed only the newest progress is kept.
    pub(in crate::engine) fn tell_unattached(&mut self, client: ClientId, no: TaskNo, message: Outgoing) {
        if !self.tickets.is_resumable(no) {
            self.tell_client(client, message);
        }
    }

    pub(in crate::engine) fn tell_progress(&mut self, client: ClientId, way: Way, message: Outgoing) {
        if let Way::Ticket(no) = way
            && !matches!(self.attached(no), Some((_, Way::Stream(_))))
        {
            self.tickets.keep_newest(no, &message);
        }
        self.tell(client, way, message);
    }

    // Who comes back.

    /// Takes a request that is about resuming. False if it is the server's.
    pub(in crate::engine) fn resume_request(
        &mut self,
        now: Mono,
        request: &Request,
        message: &Message,
    ) -> bool {
        let about_resuming = matches!(
            request.method,
            Method::RequestsResume
                | Method::RequestsGetStatus
                | Method::RequestsStatusAll
                | Method::RequestsResumeAll
        );
        let declared = || self.clients.get(&request.client).is_some_and(|client| client.resumes);
        if !about_resuming || request.modern || !declared() {
            return false;
        }
        if self.all_requests(request, message) {
            return true;
        }
        let takes = request.method == Method::RequestsResume;
        if takes && !self.is_alone_on_its_way(request.way) {
            let text = "Invalid request: requests/resume inside an array";
            self.answer_error(request.client, request.way, &request.id, -32600, text);
            return true;
        }
        let token = message.raw(Field::Params).and_then(|params| json::member(params, "resumeToken"));
        let token = token.and_then(|raw| serde_json::from_slice::<String>(raw).ok());
        // Where the id of the call is taken on a new connection, the request has another one and says which is meant.
        let named = message.raw(Field::ParamsRequestId).and_then(JsonId::new);
        let call = named.or_else(|| takes.then(|| request.id.clone()));
        let resuming = Resuming {
            client: request.client,
            way: request.way,
            id: request.id.clone(),
            principal: self.principal_of(request.client),
            call: call.clone().unwrap_or_else(|| request.id.clone()),
            number: number_at_door(message),
            takes,
            confirmed: self.confirmed,
        };
        match token.and_then(|text| Ticket::parse(&text)).filter(|_| call.is_some()) {
            None => self.refuse_to_resume(&resuming),
            Some(ticket) => self.come_back(now, ticket, resuming),
        }
        true
    }

    fn come_back(&mut self, now: Mono, ticket: Ticket, resuming: Resuming) {
        if let Some(no) = self.task_to_resume(&ticket, &resuming) {
            return self.resume(now, no, resuming);
        }
        let number = self.ledger.next_lookup();
        self.clients.opens(resuming.client, resuming.id.key(), Open::Look(number));
        self.load(Pending::Resuming(Box::new(resuming)), Query::Record(ticket));
    }

    /// A call in memory that whoever asks may have.
    fn task_to_resume(&self, ticket: &Ticket, resuming: &Resuming) -> Option<TaskNo> {
        let no = self.tickets.named(ticket)?;
        let task = self.tickets.get(no)?;
        let named = task.resume.as_ref().is_some_and(|resume| resuming.names(&resume.id));
        // That it is cancelled may be told once it is stored: until then whoever asks waits.
        let void = task.state == State::Cancelled && task.stored;
        (named && task.principal == resuming.principal && !void).then_some(no)
    }

    fn resume(&mut self, now: Mono, no: TaskNo, resuming: Resuming) {
        self.tickets.somebody_is_there(now, no);
        if resuming.takes { self.take_over(no, resuming) } else { self.show_status(no, &resuming) }
    }

    /// The next generation of a call: what was not delivered, then what comes, then the answer.
    fn take_over(&mut self, no: TaskNo, resuming: Resuming) {
        let Resuming { client, way, id, confirmed, .. } = resuming;
        let earlier = self.attached(no).map(|(_, way)| way);
        let missed = self.end_generation(no, confirmed);
        let Some(task) = self.tickets.get(no) else { return };
        let (ticket, call) = (task.ticket.clone(), task.call);
        // A stream keeps all of it.
        let newest = task.resume.as_ref().filter(|_| !matches!(earlier, Some(Way::Stream(_))));
        let newest = newest.and_then(|resume| resume.newest.clone());
        if let Some(call) = call {
            self.calls.change_client(call, client);
            self.step(call, || What::Resumed);
        }
        // What the server asked on the earlier stream is answered by whoever reads the new one.
        if let Some(earlier) = earlier.filter(|way| *way != Way::Line) {
            self.asks.move_to(earlier, client, way);
        }
        self.name_stream(way, ticket);
        self.wait_for_task(no, Waiter { client, way, id, wants: Wants::Answer });
        if let Way::Stream(stream) = way {
            self.begin_stream(stream);
            missed.into_iter().for_each(|message| self.tell_stream(stream, &Outgoing::plain(message)));
        }
        if let Some(newest) = newest {
            self.tell(client, way, newest);
        }
        // One whose end could not be stored is kept here.
        if self.tickets.get(no).is_some_and(Task::has_ended) {
            self.task_may_be_shown(no);
        }
    }

    /// Ends the generation that waits, without cancelling anything. Gives what it has not confirmed.
    fn end_generation(&mut self, no: TaskNo, confirmed: Option<(StreamId, u64)>) -> Vec<Bytes> {
        let waiter = self.tickets.take_waiter(no, |waiter| waiter.wants == Wants::Answer);
        let Some(waiter) = waiter else { return Vec::new() };
        self.clients.closes(waiter.client, &waiter.id, Open::Wait(no));
        match waiter.way {
            Way::Stream(id) => self.take_from_stream(id, confirmed),
            way => {
                let answer = self.refusal_to_resume(&waiter.id, Kind::Superseded, SUPERSEDED);
                self.reply(waiter.client, way, Some(&waiter.id), answer);
                Vec::new()
            }
        }
    }

    /// Closes a stream and gives the messages on it that were not confirmed; not the answer, which is stored.
    fn take_from_stream(&mut self, id: StreamId, confirmed: Option<(StreamId, u64)>) -> Vec<Bytes> {
        let Some(stream) = self.clients.stream(id) else { return Vec::new() };
        let seen = confirmed.filter(|(stream, _)| *stream == id).map_or(0, |(_, number)| number);
        let answer = stream.settled.map(|_| stream.last);
        let left = stream.kept.iter().filter(|(number, _)| *number > seen && Some(*number) != answer);
        let messages = left.filter_map(|(_, event)| message_in(event)).collect();
        self.close_stream(id);
        messages
    }

    fn show_status(&mut self, no: TaskNo, resuming: &Resuming) {
        let Some(Condition { status, pending, asked }) = self.condition(no) else { return };
        self.tell_how_it_is(resuming, status, pending, asked);
    }

    pub(super) fn has_unwritten(&self, id: StreamId) -> bool {
        self.clients.stream(id).is_some_and(|stream| stream.written < stream.last)
    }

    fn tell_how_it_is(&mut self, resuming: &Resuming, status: &str, pending: bool, asked: bool) {
        let call = resuming.call.patch();
        let rest =
            format!(r#","status":"{status}","hasPendingMessage":{pending},"hasInputRequest":{asked}}}"#);
        let result = [br#"{"requestId":"#, call.as_slice(), rest.as_bytes()].concat();
        self.answer_result(resuming.client, resuming.way, &resuming.id, &result);
    }

    fn refuse_to_resume(&mut self, resuming: &Resuming) {
        let answer = self.refusal_to_resume(&resuming.id, Kind::TicketUnknown, UNKNOWN);
        self.reply(resuming.client, resuming.way, Some(&resuming.id), answer);
    }

    fn refusal_to_resume(&self, id: &JsonId, kind: Kind, detail: &str) -> Outgoing {
        let state = match kind {
            Kind::Superseded => ServerState::Running,
            _ => ServerState::NeverReached,
        };
        let failure = Failure {
            kind,
            server: self.config.server.name.clone(),
            method: Method::RequestsResume.as_str().into(),
            tool: None,
            elapsed: std::time::Duration::ZERO,
            limit: None,
            setting: None,
            retry_after: None,
            attempts: 0,
            state,
            retry: Retry::Pointless,
            last_sign: None,
            plain: false,
            detail: Some(detail.to_owned()),
            stderr: None,
        };
        Outgoing::plain(failure.answer(id.patch().as_slice(), false, self.config.manner.wording()))
    }

    // What is not in memory.

    pub(super) fn found_to_resume(&mut self, now: Mono, number: u64, resuming: Resuming, outcome: &Loaded) {
        self.clients.closes(resuming.client, &resuming.id, Open::Look(number));
        let record = match outcome {
            Ok(Found::Record(Some(record))) if self.may_resume(record, &resuming) => record,
            Err(_) => {
                let text = "Internal error: the store does not answer; the log of outlast says why";
                return self.answer_error(resuming.client, resuming.way, &resuming.id, -32603, text);
            }
            _ => return self.refuse_to_resume(&resuming),
        };
        // It may have become ours meanwhile.
        if let Some(no) = self.task_to_resume(&record.head.ticket, &resuming) {
            return self.resume(now, no, resuming);
        }
        if let Some(no) = self.tickets.named(&record.head.ticket) {
            return self.resume_cancelled(now, no, resuming);
        }
        if record.head.state.is_open() {
            self.resume_theirs(record, resuming);
        } else {
            self.resume_ended(record, resuming);
        }
    }

    /// It was cancelled a moment ago. Until that is stored it runs for all who ask: if we ended now, another process
    /// would go on with it.
    fn resume_cancelled(&mut self, now: Mono, no: TaskNo, resuming: Resuming) {
        if !resuming.takes && self.tickets.get(no).is_none_or(Task::has_ended) {
            return self.refuse_to_resume(&resuming);
        }
        self.resume(now, no, resuming);
    }

    fn may_resume(&self, record: &Record, resuming: &Resuming) -> bool {
        let Head { origin, state, .. } = &record.head;
        let id = Resume::of_record(record).map(|resume| resume.id);
        origin.principal == resuming.principal
            && self.is_behind(resuming.client, &origin.server)
            && *state != State::Cancelled
            && id.is_some_and(|id| resuming.names(&id))
    }

    /// Another process has it: its messages are there, its answer can be waited for.
    fn resume_theirs(&mut self, record: &Record, resuming: Resuming) {
        self.claim_if_abandoned(self.at);
        self.say_somebody_waits(record.head.ticket.clone());
        if !resuming.takes {
            let asked = record.head.state == State::InputRequired;
            return self.tell_how_it_is(&resuming, "processing", false, asked);
        }
        let theirs = Some(record.head.revision);
        let no = self.add_task(Task { theirs, ..Task::of_record(record, resuming.client) });
        self.take_over(no, resuming);
    }

    /// Tells the processes that have calls which somebody here came back for: they cannot see it themselves.
    pub(super) fn say_who_waits(&mut self) {
        let waits = |task: &&Task| task.theirs.is_some() && task.resume.is_some() && !task.waiters.is_empty();
        let tickets: Vec<Ticket> =
            self.tickets.values().filter(waits).map(|task| task.ticket.clone()).collect();
        tickets.into_iter().for_each(|ticket| self.say_somebody_waits(ticket));
    }

    fn say_somebody_waits(&mut self, ticket: Ticket) {
        self.submit(Pending::Noted, Write::Post { ticket, message: Mail::Wake });
    }

    /// Somebody waits for a call at another process.
    pub(super) fn is_waited_for_elsewhere(&mut self, now: Mono, no: TaskNo) {
        self.tickets.somebody_is_there(now, no);
    }

    fn resume_ended(&mut self, record: &Record, resuming: Resuming) {
        let ticket = &record.head.ticket;
        let stream = self.clients.stream_with(ticket);
        if !resuming.takes {
            let pending = stream.is_none_or(|id| self.has_unwritten(id));
            return self.tell_how_it_is(&resuming, status_of(record.answer.as_ref()), pending, false);
        }
        let missed = stream.map(|id| self.take_from_stream(id, resuming.confirmed)).unwrap_or_default();
        if let Way::Stream(own) = resuming.way {
            self.name_stream(resuming.way, ticket.clone());
            missed.into_iter().for_each(|message| self.tell_stream(own, &Outgoing::plain(message)));
        }
        let waiter =
            Waiter { client: resuming.client, way: resuming.way, id: resuming.id, wants: Wants::Answer };
        self.show(&Task::of_record(record, waiter.client), &waiter);
    }

    // Who does not come back.

    /// A client cancels a call that can be resumed: nobody resumes it any more.
    pub(in crate::engine) fn cancel_resumable(
        &mut self,
        client: ClientId,
        id: &JsonId,
        no: TaskNo,
        message: &Message,
    ) {
        self.stop_waiting(client, id, no);
        if let Some(call) = self.void(no) {
            self.cancel_call(call, message);
        }
    }

    /// Ends what has a token, if it has not ended by itself. Gives the call that is still at the server.
    fn void(&mut self, no: TaskNo) -> Option<CallId> {
        let call = self.tickets.void(no)?;
        self.end_task(self.at, no, State::Cancelled, None);
        call
    }

    /// The connection of a stream is gone; its call waits for somebody to come back.
    pub(in crate::engine) fn left_alone(&mut self, stream: StreamId) {
        let ticket = self.clients.stream(stream).and_then(|stream| stream.ticket.as_ref());
        if let Some(no) = ticket.and_then(|ticket| self.tickets.named(ticket)) {
            self.tickets.somebody_is_there(self.at, no);
        }
    }

    /// A client is gone for good. Where a session is its own principal, nobody can come back.
    pub(super) fn left_for_good(&mut self, no: TaskNo) {
        if !self.tickets.somebody_is_there(self.at, no) {
            return;
        }
        let Some(task) = self.tickets.get(no) else { return };
        if (task.principal.starts_with("session:") || task.start.is_some())
            && let Some(call) = self.void(no)
        {
            self.give_up(call, "the client hung up");
        }
    }

    /// Looks for calls that nobody came back for.
    pub(in crate::engine) fn resumes_due(&mut self, now: Mono) {
        self.tickets.resumes_ring();
        let wait = self.config.resume_wait;
        let open = |task: &Task| task.resume.is_some() && task.state.is_open() && task.theirs.is_none();
        let mut next = None;
        for no in self.tickets.numbers(open) {
            if self.is_heard(no) || self.tickets.get(no).is_some_and(|task| self.is_followed(task)) {
                self.tickets.somebody_is_there(now, no);
            }
            let resume = self.tickets.get(no).and_then(|task| task.resume.as_ref());
            let Some(at) = resume.map(|resume| resume.seen + wait) else { continue };
            if at <= now {
                self.expire(no);
            } else {
                next = Some(next.map_or(at, |next: Mono| next.min(at)));
            }
        }
        if let Some(at) = next {
            self.tickets.arm_resumes(&mut self.timers, at);
        }
    }

    fn expire(&mut self, no: TaskNo) {
        self.end_generation(no, None);
        let wait = show_duration(self.config.resume_wait);
        if let Some(call) = self.void(no) {
            self.give_up(call, &format!("nobody came back for it within {wait} (resume-wait)"));
        }
    }
}

/// What has ended: with an error, or with a result, whatever it says.
pub(super) fn status_of(answer: Option<&Answer>) -> &'static str {
    match answer {
        Some(Answer::Error(_)) => "failed",
        _ => "completed",
    }
}
