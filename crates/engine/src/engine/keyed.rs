//! Calls that are one call, because they carry the same idempotency key.
//!
//! Of the calls of one principal with the same key, tool and arguments the first one has the attempt, and the
//! others are *joined* to it: each has its own id, token, progress and way back, and all get the same answer. If
//! the first one is given up, another takes its place, and the server notices nothing. Only when nobody is left
//! is the attempt cancelled; and if the last one was a modern client that hung up, only after `resume-wait`,
//! because it may ask again.
//!
//! What is remembered under a key lives as long as an open call, an answer that nobody has fetched, or a question
//! to the store. Everything that lasts longer is a record in the store, found by its key: `stored.rs`.
//!
//! Not here: what a key is and which arguments are equal (`idempotency.rs`).

mod repeats;
mod stored;

use super::Engine;
use super::from_server::forwarded;
use super::remote::error_code;
use crate::action::{Action, Note};
use crate::calls::{Call, Keyed, Parted, Request};
use crate::clients::{Open, Way};
use crate::error::{Failure, Kind};
use crate::id::{CallId, ClientId, JsonId, KeyNo, ServerId, TaskNo};
use crate::idempotency;
use crate::keys::{Meeting, Name, Overdue};
use crate::limits;
use crate::step::{Outcome, What};
use crate::store::Query;
use crate::tickets::Task;
use crate::time::Mono;
use crate::wire::{Field, Message, Outgoing, Scanned, scan, scan_tolerant};
use bytes::Bytes;
use std::time::Duration;

/// An answer for those who joined a call that is settled.
pub(super) struct Shared {
    answer: Outgoing,
    joined: Vec<CallId>,
    /// The task that has to be stored before anybody sees its answer.
    ticket: Option<TaskNo>,
}

// How a request comes in.
impl Engine {
    /// Takes a call of a tool: it is one of its own, or the same as another with its key.
    ///
    /// This function and the two that it ends in are parts of one: a request is large, and each would move it.
    #[inline(always)]
    pub(super) fn tool_call(&mut self, now: Mono, mut request: Request, message: &Message) {
        if self.is_taken_by_key(now, &mut request, message) {
            return;
        }
        self.begin_tool_call(now, request, message);
    }

    fn is_taken_by_key(&mut self, now: Mono, request: &mut Request, message: &Message) -> bool {
        let Some(key) = idempotency::key_of(&self.config.key_places, message) else {
            return self.has_rules(request.server) && self.is_a_repeat(now, request, message);
        };
        self.has_key(now, key, request, message)
    }

    #[inline(never)]
    fn has_key(&mut self, now: Mono, key: Box<str>, request: &mut Request, message: &Message) -> bool {
        if self.stands_for_itself(request, message) {
            return false;
        }
        let Some(definition) = self.definition(request.server) else { return false };
        let name = Name { whose: self.principal_of(request.client), definition, key };
        let arguments = idempotency::arguments(message);
        if let Some(no) = self.keys.named(&name) {
            return self.meets(now, no, request, message, arguments);
        }
        let asks = self.config.tasks
            || request.cap.is_some()
            || self.definition_of(request.server).rules.any_keeps_answers();
        let query = Query::Key {
            principal: name.whose.clone(),
            server: self.definition_of(request.server).identity.clone(),
            key: name.key.clone(),
        };
        let no = self.keys.add(name, request.tool.clone().unwrap_or_default(), arguments);
        request.key_no = Some(no);
        if asks {
            self.wait_for_key(no, request.clone(), message.owned());
            self.look_key_up(no, query);
        }
        asks
    }

    /// What continues something is not the call that began it, and a server's own tasks are its affair.
    fn stands_for_itself(&self, request: &Request, message: &Message) -> bool {
        let own = || self.has_its_own_tasks(request.server, request.client);
        message.has(Field::ParamsRequestState)
            || message.has(Field::ParamsInputResponses)
            || (request.task && (!self.config.tasks || own()))
    }

    /// A request whose key is known. True if it is dealt with.
    fn meets(
        &mut self,
        now: Mono,
        no: KeyNo,
        request: &mut Request,
        message: &Message,
        arguments: &[u8],
    ) -> bool {
        if planted!(self, ForgetsKeys) {
            return false;
        }
        let Some(meeting) = self.keys.meet(no, request.tool.as_deref(), arguments) else { return false };
        request.key_no = Some(no);
        match meeting {
            Meeting::Conflict => {
                self.refuse_key(now, request, "its idempotency key belongs to another call");
            }
            Meeting::Full => {
                let why = format!("{} requests wait for this call already", limits::JOINED);
                self.refuse_request(now, request, Kind::Overloaded, why);
            }
            Meeting::Opening => self.wait_for_key(no, request.clone(), message.owned()),
            Meeting::Answered(answer) => self.hand_over(now, no, request, &answer),
            Meeting::Running => return self.knows_the_ticket(no, request, message),
        }
        true
    }

    /// Whether a person wrote anything about the calls of a server. Mostly nobody did.
    #[inline]
    fn has_rules(&self, server: ServerId) -> bool {
        !self.definition_of(server).rules.is_empty()
    }

    /// Begins a call that is not the same as one before; or the same as one that runs.
    #[inline(always)]
    fn begin_tool_call(&mut self, now: Mono, request: Request, message: &Message) {
        let key_no = request.key_no;
        self.begin_one(now, request, message);
        if key_no.is_some() {
            self.forget_unopened(now, key_no);
        }
    }

    #[inline(always)]
    fn begin_one(&mut self, now: Mono, mut request: Request, message: &Message) {
        let keyed = if self.has_rules(request.server) { self.with_own_key(&request, message) } else { None };
        let message = keyed.as_ref().unwrap_or(message);
        let ticketed = (self.config.tasks && self.task_wanted(now, &mut request, message))
            || (self.config.resumable && self.make_resumable(now, &request, message));
        if !ticketed {
            self.begin_call(now, request, message);
        }
    }

    /// The same call with a key, for a server that honours keys: its client's own, or a new one.
    fn with_own_key(&mut self, request: &Request, message: &Message) -> Option<Message> {
        let rules = &self.definition_of(request.server).rules;
        let wanted = rules.honours_keys(&request.method, request.tool.as_deref())
            && !message.has(Field::ParamsIdempotencyKey)
            && message.is_object(Field::Params);
        if !wanted {
            return None;
        }
        let key = idempotency::key_of(&self.config.key_places, message).or_else(|| {
            let entropy = self.ledger.take_entropy()?;
            self.act(Action::NeedEntropy);
            Some(crate::hex::encode(&entropy[..16]).into())
        })?;
        idempotency::with_key(message, &key)
    }

    fn refuse_key(&mut self, now: Mono, request: &Request, why: &str) {
        self.refuse_request(now, request, Kind::KeyConflict, why.into());
    }

    pub(super) fn refuse_request(&mut self, now: Mono, request: &Request, kind: Kind, why: String) {
        // Its limits do not matter any more, so neither does whose clock they run on.
        let clock = self.servers.get(&request.server).map(|server| server.clock).unwrap_or_default();
        let rules = self.definition_of(request.server).rules.clone();
        let policy = rules.for_ask(&request.method);
        let call = Call::new(Request { key_no: None, ..request.clone() }, &policy, rules, now, &clock);
        self.refuse_call(now, &call, kind, why);
    }

    /// Gives an answer that was waiting to a call that is the same.
    fn hand_over(&mut self, now: Mono, no: KeyNo, request: &Request, answer: &Message) {
        if request.task {
            return self.refuse_key(now, request, "the call with this idempotency key is no task");
        }
        self.note_joined(request.server, request.tool.as_deref());
        if self.keys.armed(no).is_some() {
            self.keys.forget(&mut self.timers, no);
        }
        self.give(request, answer);
    }

    fn give(&mut self, request: &Request, answer: &Message) {
        if request.modern && answer.has(Field::Error) {
            self.set_status(request.way, error_code(answer));
        }
        let outgoing = idempotency::under_id(answer, request.id.patch());
        self.reply(request.client, request.way, Some(&request.id), outgoing);
    }

    fn note_joined(&mut self, server: ServerId, tool: Option<&str>) {
        let server = self.server_name(server);
        self.note(Note::Joined { server, tool: tool.unwrap_or_default().into() });
    }
}

// How calls are joined, and how they part.
impl Engine {
    /// The call that a request joins, if there is one; they share a server.
    pub(super) fn call_to_join(&self, request: &mut Request) -> Option<CallId> {
        let first = self.keys.get(request.key_no)?.first()?;
        request.server = self.calls.get(first)?.request.server;
        Some(first)
    }

    /// Joins a call to the one that has the attempt.
    pub(super) fn join_call(&mut self, now: Mono, mut call: Box<Call>, first: CallId) {
        if self.calls.share(&mut call, first).is_none() {
            return;
        }
        let left_behind = self.calls.get(first).is_some_and(|first| first.request.way == Way::Nowhere);
        let (key_no, server) = (call.request.key_no, call.request.server);
        let own = self.clients.get(&call.request.client).is_some_and(|client| client.uses(server));
        if !own && !matches!(call.request.way, Way::Ticket(_)) {
            self.hold(&mut call);
        }
        self.note_joined(server, call.request.tool.as_deref());
        let id = self.open_call(call);
        let with = self.calls.get(first).and_then(|first| first.request.no);
        self.step(id, || What::Joined { with });
        self.keys.join(key_no, id);
        if left_behind {
            self.stop_waiting_for_client(key_no);
            self.leave_to_others(first);
        } else {
            self.arm_call(now, id);
        }
    }

    /// Keeps a server for a call whose client is gone, or needs another one.
    fn hold(&mut self, call: &mut Call) {
        if !std::mem::replace(&mut call.holds, true) {
            self.servers.is_held(call.request.server);
        }
    }

    /// Whoever made a call gives it up, and somebody else goes on with it. False if nobody is there.
    pub(super) fn leave_to_others(&mut self, id: CallId) -> bool {
        let key_no = self.calls.get(id).filter(|call| !call.is_joined()).and_then(|call| call.request.key_no);
        if self.keys.get(key_no).is_none_or(|key| key.joined().is_empty()) {
            return false;
        }
        let Some(left) = self.part(id) else { return false };
        self.settled_without_answer(left.client, left.way);
        true
    }

    /// Takes a request away from the call that it shares with others. It is still to be answered.
    fn part(&mut self, id: CallId) -> Option<Request> {
        let call = self.calls.get(id)?;
        let key_no = call.request.key_no;
        let parted = if call.is_joined() {
            self.keys.part(key_no, id);
            let call = self.take_joined(id)?;
            self.tell_parted(&call.request, call.age(self.at));
            Parted { request: call.request, held: call.holds }
        } else {
            let age = call.age(self.at);
            let heir = self.keys.take_heir(key_no)?;
            let parted = self.succeed(id, heir)?;
            self.tell_parted(&parted.request, age);
            parted
        };
        self.count_out(&parted.request, parted.held);
        Some(parted.request)
    }

    /// Removes a call that is joined to another, and nothing else.
    fn take_joined(&mut self, id: CallId) -> Option<Box<Call>> {
        let call = self.calls.take_shared(&mut self.timers, id)?;
        self.servers.call_is_over(call.request.server, id, None);
        self.clients.closes(call.request.client, &call.request.id, Open::Call(id));
        Some(call)
    }

    /// One of those who joined takes the place of the first. The attempt and its limits stay.
    fn succeed(&mut self, id: CallId, heir: CallId) -> Option<Parted> {
        let left = self.calls.get(id)?.request.clone();
        self.clients.closes(left.client, &left.id, Open::Call(id));
        let new = *self.take_joined(heir)?;
        // A task of the first that is still being stored must not take the heir along: what it names is gone.
        self.tickets.swap_calls(id, heir);
        let parted = self.calls.succeed(id, new)?;
        let call = self.calls.get(id)?;
        let (client, key) = (call.request.client, call.request.id.key());
        if !matches!(call.request.way, Way::Ticket(_)) {
            self.clients.opens(client, key, Open::Call(id));
        }
        self.arm_call(self.at, id);
        Some(parted)
    }

    /// A modern client hung up. What has a key goes on for a while: it may ask again.
    pub(super) fn leave_behind(&mut self, now: Mono, client: ClientId) {
        if self.ending.is_some() || self.config.resume_wait.is_zero() {
            return;
        }
        let open = self.clients.get(&client).map(|client| client.all_open().collect::<Vec<_>>());
        for open in open.unwrap_or_default() {
            let Open::Call(id) = open else { continue };
            let Some(call) = self.calls.get(id).filter(|call| !call.is_joined()) else { continue };
            let key_no = call.request.key_no;
            let Some(key) = self.keys.get(key_no).filter(|key| key.joined().is_empty()) else { continue };
            let wait = key.repeats.unwrap_or(self.config.resume_wait);
            self.waits_for_client(now, id, wait);
        }
    }

    /// A call goes on until its client comes back for it, or its time is over.
    fn waits_for_client(&mut self, now: Mono, id: CallId, wait: Duration) {
        let key_no = self.calls.get(id).and_then(|call| call.request.key_no);
        self.goes_on_alone(id);
        let Some(no) = key_no else { return };
        self.keys.wait_for_client(&mut self.timers, no, now + wait);
        self.arm_call(now, id);
    }

    /// A call goes on for nobody.
    fn goes_on_alone(&mut self, id: CallId) {
        let Some(Parted { request: left, held }) = self.calls.goes_on_alone(id) else { return };
        self.clients.closes(left.client, &left.id, Open::Call(id));
        self.servers.is_held(left.server);
        self.count_out(&left, held);
    }

    /// Somebody is there again, or a ticket is.
    pub(super) fn stop_waiting_for_client(&mut self, key_no: Option<KeyNo>) {
        self.keys.stop_waiting_for_client(&mut self.timers, key_no);
    }

    /// The client did not come back.
    pub(super) fn key_due(&mut self, no: KeyNo) {
        match self.keys.ring(no) {
            Some(Overdue::Call(first)) => self.give_up(first, "the client gave up and did not come back"),
            Some(Overdue::Answer) => self.keys.forget(&mut self.timers, no),
            None => {}
        }
    }
}

// What those who joined get.
impl Engine {
    /// The server reported on a call: those who joined it hear it too, each on its own token.
    pub(super) fn progress_of_joined(&mut self, now: Mono, id: CallId, message: &Message, counts: bool) {
        for id in self.joined_to(id) {
            let Some(call) = self.calls.get(id) else { continue };
            let Some(server) = self.servers.get(&call.request.server) else { continue };
            let (client, way) = (call.request.client, call.request.way);
            if counts {
                self.calls.shows_life(now, id, &server.clock);
            }
            self.tell_words(id, message);
            let report = self.calls.report(now, id, |token, progress| forwarded(message, token, progress));
            let Some(report) = report else { continue };
            self.tell(client, way, report);
        }
    }

    /// The attempt is made again: its reports begin again.
    pub(super) fn joined_start_again(&mut self, key_no: Option<KeyNo>) {
        for id in self.keys.get(key_no).map(|key| key.joined().to_vec()).unwrap_or_default() {
            self.calls.starts_again(id);
        }
    }

    /// Those who are joined to a call.
    fn joined_to(&self, id: CallId) -> Vec<CallId> {
        let key_no = self.calls.get(id).and_then(|call| call.request.key_no);
        let key = self.keys.get(key_no).filter(|key| key.first() == Some(id));
        key.map(|key| key.joined().to_vec()).unwrap_or_default()
    }

    /// A call fails, and so do all that are joined to it, each in the words of its era.
    pub(super) fn fail_joined(&mut self, id: CallId, failure: &Failure) {
        for id in self.joined_to(id) {
            let Some(call) = self.calls.get(id) else { continue };
            let answer = self.error_for(call, failure);
            self.ends_as(id, || Outcome::Failed(failure.kind.name()));
            self.settle(id, Some(answer));
        }
    }

    /// A call is settled: says what becomes of its key, and who else gets the answer.
    #[inline(never)]
    pub(super) fn settle_key(
        &mut self,
        no: KeyNo,
        id: CallId,
        request: &Request,
        keyed: Keyed,
        answer: Option<&Outgoing>,
    ) -> Option<Shared> {
        if keyed.shared {
            self.keys.part(Some(no), id);
            return None;
        }
        let joined = self.keys.settle(no, id)?;
        if let Some(answer) = answer {
            self.answer_unstored(no, answer);
        }
        let kept = answer.is_some_and(|answer| self.keep_answer(no, request, keyed, answer));
        if !kept && !self.is_left_to_unstored(no) {
            self.keys.forget(&mut self.timers, no);
        }
        let ticket = match request.way {
            Way::Ticket(no) => Some(no),
            _ => None,
        };
        let answer = answer.filter(|_| !joined.is_empty())?.clone();
        Some(Shared { answer, joined, ticket })
    }

    /// The first call was given up while one that is to join it is being stored: the key is that one's now, and
    /// whoever comes meanwhile waits for it. False if there is none.
    fn is_left_to_unstored(&mut self, no: KeyNo) -> bool {
        let starts = |task: &Task| task.key_no == Some(no) && task.start.is_some();
        let Some(ticket) = self.tickets.numbers(starts).first().copied() else { return false };
        self.keys.opens_again(no, ticket);
        true
    }

    /// Gives the answer to those who are to join as soon as they are stored: there will be nothing left to join.
    fn answer_unstored(&mut self, no: KeyNo, answer: &Outgoing) {
        for ticket in self.tickets.numbers(|task| task.key_no == Some(no) && task.start.is_some()) {
            self.tickets.starts_no_more(ticket);
            self.task_answered(ticket, answer);
        }
    }

    /// Gives the answer to those who joined.
    pub(super) fn settle_joined(&mut self, shared: Shared) {
        let bytes: Bytes = shared.answer.to_vec().into();
        let strict = scan(bytes.clone());
        let is_strict = strict.is_ok();
        let answer = match strict {
            Ok(Scanned::Message(message)) => Some(message),
            _ => scan_tolerant(&bytes),
        };
        let Some(answer) = answer else { return };
        for id in shared.joined {
            if planted!(self, ForgetsJoined) {
                break;
            }
            let Some(call) = self.calls.get(id) else { continue };
            let (client, way, modern) = (call.request.client, call.request.way, call.request.modern);
            if let Some(ticket) = shared.ticket.filter(|_| !matches!(way, Way::Ticket(_))) {
                self.wait_for_ticket_instead(id, ticket);
                continue;
            }
            let outgoing = idempotency::under_id(&answer, call.request.id.patch());
            if let Way::Array(batch) = way
                && !is_strict
            {
                // One careless answer must not make a whole array unreadable.
                self.calls.leave_array(id);
                self.member_done(client, batch);
            }
            if modern && answer.has(Field::Error) {
                self.set_status(way, error_code(&answer));
            }
            self.settle(id, Some(outgoing));
        }
    }

    /// Keeps an answer that nobody got, or that a person wants kept. False if there is no reason to.
    fn keep_answer(&mut self, no: KeyNo, request: &Request, keyed: Keyed, answer: &Outgoing) -> bool {
        let unfetched = request.way == Way::Nowhere;
        if !unfetched && !keyed.keeps {
            return false;
        }
        let Ok(Scanned::Message(answer)) = scan(answer.to_vec().into()) else { return false };
        let made = self.keys.get(Some(no)).is_some_and(|key| key.repeats.is_some());
        let stored = keyed.keeps && !made && self.store_answer(no, request, keyed, &answer);
        let waits = unfetched && self.keys.has_room_for(&answer);
        if !stored && !waits {
            return false;
        }
        self.keys.keep_answer(no, answer);
        true
    }
}

// What is remembered, and how it goes.
impl Engine {
    /// A call runs under a key: whoever waited to know joins it.
    pub(super) fn key_runs(&mut self, no: KeyNo, first: CallId) {
        for (request, message) in self.keys.runs(no, first) {
            self.stops_waiting_for_key(&request, no);
            if !self.knows_the_ticket(no, &request, &message) {
                self.begin_tool_call(self.at, request, &message);
            }
        }
    }

    /// The call that was to run under a key does not: the next one does, or the key is forgotten.
    pub(super) fn forget_unopened(&mut self, now: Mono, no: Option<KeyNo>) {
        // One after the other: as many as may wait would be too deep for calls within calls.
        while let Some((no, key)) = no.zip(self.keys.get(no)) {
            let starts = key.ticket.and_then(|ticket| self.tickets.get(ticket));
            if !key.is_opening() || starts.is_some_and(|task| task.start.is_some()) {
                return;
            }
            let Some((request, message)) = self.keys.take_next(no) else {
                return self.keys.forget(&mut self.timers, no);
            };
            self.stops_waiting_for_key(&request, no);
            self.begin_one(now, request, &message);
        }
    }

    fn wait_for_key(&mut self, no: KeyNo, request: Request, message: Message) {
        self.clients.opens(request.client, request.id.key(), Open::Key(no));
        self.keys.wait(no, request, message);
    }

    fn stops_waiting_for_key(&mut self, request: &Request, no: KeyNo) {
        self.clients.closes(request.client, &request.id, Open::Key(no));
    }

    /// A client gives up a call of which nothing is known yet.
    pub(super) fn stop_asking_for_key(&mut self, client: ClientId, id: &JsonId, no: KeyNo) {
        let Some(request) = self.keys.stop_waiting(no, client, id) else { return };
        self.stops_waiting_for_key(&request, no);
        self.settled_without_answer(client, request.way);
    }

    /// A client is gone of whose call nothing is known yet.
    pub(super) fn forget_asking_for_key(&mut self, client: ClientId, no: KeyNo) {
        for request in self.keys.forget_client(no, client) {
            self.stops_waiting_for_key(&request, no);
        }
    }

    /// Nothing will become of those who wait.
    pub(super) fn refuse_waiting_for_keys(&mut self, now: Mono) {
        let all: Vec<KeyNo> = self.keys.iter().map(|(no, _)| no).collect();
        for no in all {
            for (request, _) in self.keys.take_waiting(no) {
                self.stops_waiting_for_key(&request, no);
                self.refuse_request(now, &request, Kind::ServerGone, "outlast was stopped".into());
            }
        }
    }

    /// Whether what is remembered belongs to something that is there.
    pub(super) fn check_keys(&self) -> Result<(), String> {
        self.keys.check()?;
        for (no, key) in self.keys.iter() {
            let of_it = |id: &CallId| self.calls.get(*id).is_some_and(|call| call.request.key_no == Some(no));
            if !key.joined().iter().chain(&key.first()).all(of_it) {
                return Err(format!("{no:?} names a call that is gone"));
            }
            if key.joined().iter().any(|id| !self.calls.get(*id).is_some_and(Call::is_joined)) {
                return Err(format!("{no:?} joins a call that is not joined"));
            }
        }
        let is_lost = |(id, call): &(CallId, &Call)| {
            call.is_joined()
                && !self.keys.get(call.request.key_no).is_some_and(|key| key.joined().contains(id))
        };
        match self.calls.iter().find(is_lost) {
            Some((id, _)) => Err(format!("call {id:?} is joined to nothing")),
            None => Ok(()),
        }
    }
}
