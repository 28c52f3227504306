//! Calls that are one call, because they carry the same idempotency key.
//!
//! Of the calls of one principal with the same key, tool and arguments the first one has the attempt, and the
//! others are *joined* to it: each has its own id, token, progress and way back, and all get the same answer. If
//! the first one is given up, another takes its place, and the server notices nothing. Only when nobody is left
//! is the attempt cancelled; and if the last one was a modern client that hung up, only after `resume-wait`,
//! because it may ask again.
//!
//! What is remembered under a key lives as long as an open call, an answer that nobody has fetched, or a question
//! to the store. Everything that lasts longer is a record in the store, found by its key: `tickets.rs`.
//!
//! Not here: what a key is and which arguments are equal (`idempotency.rs`).

mod tickets;

use super::Engine;
use super::from_server::forwarded;
use super::remote::error_code;
use crate::action::{Action, Note};
use crate::call::{Call, Request, State};
use crate::client::{Open, Way};
use crate::error::{Failure, Kind};
use crate::id::{CallId, ClientId, JointNo, JsonId, ServerId, TaskNo};
use crate::idempotency::{self, Arguments};
use crate::limits;
use crate::store::Query;
use crate::time::Mono;
use crate::timers::Owner;
use crate::wire::{Field, Message, Outgoing, Scanned, scan, scan_tolerant};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// Whose key it is, and the key.
type Name = (Box<str>, Box<str>);

/// What is remembered under keys.
#[derive(Debug, Default)]
pub(super) struct Joints {
    by_no: BTreeMap<JointNo, Joint>,
    by_name: BTreeMap<Name, JointNo>,
    last: u64,
    /// Bytes of arguments that are remembered.
    arguments: usize,
    /// Bytes of answers that nobody has fetched.
    answers: usize,
}

/// What is remembered under one key.
#[derive(Debug)]
struct Joint {
    name: Name,
    tool: Box<str>,
    arguments: Arguments,
    stage: Stage,
    /// Requests that wait until it is known what becomes of them.
    waiting: Vec<(Request, Message)>,
    /// The task that any of its calls was first.
    ticket: Option<TaskNo>,
    /// The newest record with this key that the store has shown.
    seen: u64,
    /// Another process has a call with this key, and ours runs beside it.
    elsewhere: bool,
    /// When a client that hung up is waited for no longer.
    armed: Option<Mono>,
}

#[derive(Debug)]
enum Stage {
    /// The store is asked for the key, or has yet to take the task of its call.
    Opening,
    /// A call has the attempt, and others are joined to it.
    Running { first: CallId, joined: Vec<CallId> },
    /// Answered; nobody has fetched it, or it is not stored yet.
    Answered(Box<Message>),
}

/// An answer for those who joined a call that is settled.
pub(super) struct Shared {
    answer: Outgoing,
    joined: Vec<CallId>,
    /// The task that has to be stored before anybody sees its answer.
    ticket: Option<TaskNo>,
}

impl Joints {
    pub(super) fn len(&self) -> usize {
        self.by_no.len()
    }

    pub(super) fn armed(&self, no: JointNo) -> Option<Mono> {
        self.by_no.get(&no)?.armed
    }

    /// Whether a client waits for what is known of a key.
    pub(super) fn waits(&self, no: JointNo, client: ClientId) -> bool {
        let is = |(request, _): &(Request, Message)| request.client == client;
        self.get(Some(no)).is_some_and(|joint| joint.waiting.iter().any(is))
    }

    pub(super) fn bytes(&self) -> usize {
        self.arguments + self.answers
    }

    fn get(&self, no: Option<JointNo>) -> Option<&Joint> {
        self.find(no?)
    }

    #[inline(never)]
    fn find(&self, no: JointNo) -> Option<&Joint> {
        self.by_no.get(&no)
    }

    fn get_mut(&mut self, no: Option<JointNo>) -> Option<&mut Joint> {
        self.find_mut(no?)
    }

    #[inline(never)]
    fn find_mut(&mut self, no: JointNo) -> Option<&mut Joint> {
        self.by_no.get_mut(&no)
    }

    fn add(&mut self, name: Name, tool: Box<str>, arguments: &[u8]) -> JointNo {
        let no = JointNo(NonZeroU64::MIN.saturating_add(self.last));
        self.last += 1;
        let room = limits::KEYED_BYTES.saturating_sub(self.arguments);
        let arguments = Arguments::new(arguments, room);
        self.arguments += arguments.size();
        self.by_name.insert(name.clone(), no);
        let stage = Stage::Opening;
        let joint = Joint {
            name,
            tool,
            arguments,
            stage,
            waiting: Vec::new(),
            ticket: None,
            seen: 0,
            elsewhere: false,
            armed: None,
        };
        self.by_no.insert(no, joint);
        no
    }
}

impl Joint {
    fn is_same(&self, tool: Option<&str>, arguments: &[u8]) -> bool {
        *self.tool == *tool.unwrap_or_default() && self.arguments.equals(arguments)
    }

    fn joined(&self) -> &[CallId] {
        match &self.stage {
            Stage::Running { joined, .. } => joined,
            Stage::Opening | Stage::Answered(_) => &[],
        }
    }

    fn joined_mut(&mut self) -> Option<&mut Vec<CallId>> {
        match &mut self.stage {
            Stage::Running { joined, .. } => Some(joined),
            Stage::Opening | Stage::Answered(_) => None,
        }
    }

    fn first(&self) -> Option<CallId> {
        match &self.stage {
            Stage::Running { first, .. } => Some(*first),
            Stage::Opening | Stage::Answered(_) => None,
        }
    }
}

// How a request comes in.
impl Engine {
    /// Takes a call of a tool: it is one of its own, or the same as another with its key.
    pub(super) fn tool_call(&mut self, now: Mono, mut request: Request, message: &Message) {
        if self.is_taken_by_key(now, &mut request, message) {
            return;
        }
        self.begin_tool_call(now, request, message);
    }

    fn is_taken_by_key(&mut self, now: Mono, request: &mut Request, message: &Message) -> bool {
        let Some(key) = idempotency::key_of(&self.config.key_places, message) else { return false };
        self.has_key(now, key, request, message)
    }

    #[inline(never)]
    fn has_key(&mut self, now: Mono, key: Box<str>, request: &mut Request, message: &Message) -> bool {
        if self.stands_for_itself(request, message) {
            return false;
        }
        let name = (self.principal_of(request.client), key);
        let arguments = idempotency::arguments(message);
        if let Some(no) = self.joints.by_name.get(&name).copied() {
            return self.meets(now, no, request, message, arguments);
        }
        let asks = self.config.tasks || self.may_hand_off() || self.config.rules.any_keeps_answers();
        let query = Query::Key {
            principal: name.0.clone(),
            server: self.config.identity.clone(),
            key: name.1.clone(),
        };
        let no = self.joints.add(name, request.tool.clone().unwrap_or_default(), arguments);
        request.joint = Some(no);
        if asks {
            self.wait_for_key(no, request.clone(), message.owned());
            self.look_key_up(no, query);
        }
        asks
    }

    /// What continues something is not the call that began it, and a server's own tasks are its affair.
    fn stands_for_itself(&self, request: &Request, message: &Message) -> bool {
        let own = || self.servers.get(&request.server).is_some_and(|server| server.own_tasks);
        message.has(Field::ParamsRequestState)
            || message.has(Field::ParamsInputResponses)
            || (request.task && (!self.config.tasks || own()))
    }

    /// A request whose key is known. True if it is dealt with.
    fn meets(
        &mut self,
        now: Mono,
        no: JointNo,
        request: &mut Request,
        message: &Message,
        arguments: &[u8],
    ) -> bool {
        let Some(joint) = self.joints.get(Some(no)) else { return false };
        if !joint.is_same(request.tool.as_deref(), arguments) {
            self.refuse_key(now, request, "its idempotency key belongs to another call");
            return true;
        }
        if joint.joined().len() + joint.waiting.len() >= limits::JOINED {
            let why = format!("{} requests wait for this call already", limits::JOINED);
            self.refuse_request(now, request, Kind::Overloaded, why);
            return true;
        }
        request.joint = Some(no);
        match &joint.stage {
            Stage::Opening => {
                self.wait_for_key(no, request.clone(), message.owned());
                true
            }
            Stage::Answered(answer) => {
                let answer = answer.clone();
                self.hand_over(now, no, request, &answer);
                true
            }
            Stage::Running { .. } => self.knows_the_ticket(no, request, message),
        }
    }

    /// Begins a call that is not the same as one before; or the same as one that runs.
    fn begin_tool_call(&mut self, now: Mono, mut request: Request, message: &Message) {
        let keyed = self.with_own_key(&request, message);
        let message = keyed.as_ref().unwrap_or(message);
        let joint = request.joint;
        let ticketed = (self.config.tasks && self.task_wanted(now, &mut request, message))
            || (self.config.resumable && self.make_resumable(now, &request, message));
        if !ticketed {
            self.begin_call(now, request, message);
        }
        self.forget_unopened(now, joint);
    }

    /// The same call with a key, for a server that honours keys: its client's own, or a new one.
    fn with_own_key(&mut self, request: &Request, message: &Message) -> Option<Message> {
        let wanted = self.config.rules.honours_keys(&request.method, request.tool.as_deref())
            && !message.has(Field::ParamsIdempotencyKey)
            && message.is_object(Field::Params);
        if !wanted {
            return None;
        }
        let key = idempotency::key_of(&self.config.key_places, message).or_else(|| {
            let entropy = self.entropy.pop()?;
            self.act(Action::NeedEntropy);
            Some(crate::hex::encode(&entropy[..16]).into())
        })?;
        idempotency::with_key(message, &key)
    }

    fn refuse_key(&mut self, now: Mono, request: &Request, why: &str) {
        self.refuse_request(now, request, Kind::KeyConflict, why.into());
    }

    pub(super) fn refuse_request(&mut self, now: Mono, request: &Request, kind: Kind, why: String) {
        let Some(server) = self.servers.get(&request.server) else { return };
        let policy = self.config.rules.for_ask(&request.method);
        let call = Call::new(Request { joint: None, ..request.clone() }, &policy, now, &server.clock);
        self.refuse_call(now, &call, kind, why);
    }

    /// Gives an answer that was waiting to a call that is the same.
    fn hand_over(&mut self, now: Mono, no: JointNo, request: &Request, answer: &Message) {
        if request.task {
            return self.refuse_key(now, request, "the call with this idempotency key is no task");
        }
        self.note_joined(request.server, request.tool.as_deref());
        if self.joints.armed(no).is_some() {
            self.drop_joint(no);
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
        let first = self.joints.get(request.joint)?.first()?;
        request.server = self.calls.get(first)?.request.server;
        Some(first)
    }

    /// Joins a call to the one that has the attempt.
    pub(super) fn join_call(&mut self, now: Mono, mut call: Box<Call>, first: CallId) {
        let Some(running) = self.calls.get(first) else { return };
        call.state = State::Shares;
        call.attempts = running.attempts;
        call.sign = running.sign;
        let left_behind = running.request.way == Way::Nowhere;
        let (joint, server) = (call.request.joint, call.request.server);
        let own = self.clients.get(&call.request.client).is_some_and(|client| client.server == server);
        if !own && !matches!(call.request.way, Way::Ticket(_)) {
            self.hold(&mut call);
        }
        self.note_joined(server, call.request.tool.as_deref());
        let id = self.open_call(call);
        if let Some(joined) = self.joints.get_mut(joint).and_then(Joint::joined_mut) {
            joined.push(id);
        }
        if left_behind {
            self.stop_waiting_for_client(joint);
            self.leave_to_others(first);
        } else {
            self.arm_call(now, id);
        }
    }

    /// Keeps a server for a call whose client is gone, or needs another one.
    fn hold(&mut self, call: &mut Call) {
        if let Some(server) = self.servers.get_mut(&call.request.server).filter(|_| !call.holds) {
            server.tickets += 1;
            call.holds = true;
        }
    }

    /// Whoever made a call gives it up, and somebody else goes on with it. False if nobody is there.
    pub(super) fn leave_to_others(&mut self, id: CallId) -> bool {
        let joint = self.calls.get(id).filter(|call| !call.shares()).and_then(|call| call.request.joint);
        if self.joints.get(joint).is_none_or(|joint| joint.joined().is_empty()) {
            return false;
        }
        let Some(left) = self.part(id) else { return false };
        match left.way {
            Way::Array(batch) => self.member_done(left.client, batch),
            Way::Stream(stream) => self.settled_on_stream(self.at, stream),
            Way::Line | Way::Ticket(_) | Way::Nowhere => {}
        }
        true
    }

    /// Takes a request away from the call that it shares with others. It is still to be answered.
    fn part(&mut self, id: CallId) -> Option<Request> {
        let call = self.calls.get(id)?;
        let joint = call.request.joint;
        let (request, holds) = if call.shares() {
            if let Some(joined) = self.joints.get_mut(joint).and_then(Joint::joined_mut) {
                joined.retain(|joined| *joined != id);
            }
            let call = self.take_joined(id)?;
            (call.request, call.holds)
        } else {
            let heir = self.joints.get_mut(joint)?.joined_mut().filter(|all| !all.is_empty())?.remove(0);
            self.succeed(id, heir)?
        };
        self.count_out(&request, holds);
        Some(request)
    }

    /// Removes a call that is joined to another, and nothing else.
    fn take_joined(&mut self, id: CallId) -> Option<Box<Call>> {
        let mut call = self.calls.remove(id)?;
        self.timers.set(Owner::Call(id), &mut call.armed, None);
        if let Some(server) = self.servers.get_mut(&call.request.server) {
            server.stalled.remove(&id);
        }
        if let Some(client) = self.clients.get_mut(&call.request.client) {
            client.close(&call.request.id, Open::Call(id));
        }
        Some(call)
    }

    /// One of those who joined takes the place of the first. The attempt and its limits stay.
    fn succeed(&mut self, id: CallId, heir: CallId) -> Option<(Request, bool)> {
        let left = self.calls.get(id)?.request.clone();
        if let Some(client) = self.clients.get_mut(&left.client) {
            client.close(&left.id, Open::Call(id));
        }
        let new = *self.take_joined(heir)?;
        for task in self.tasks.values_mut() {
            // A task of the first that is still being stored must not take the heir along: what it names is gone.
            task.call = match task.call {
                Some(call) if call == heir => Some(id),
                Some(call) if call == id => Some(heir),
                other => other,
            };
        }
        let call = self.calls.get_mut(id)?;
        call.request = new.request;
        call.progress = new.progress;
        call.keep_alive = new.keep_alive;
        call.heard = new.heard;
        call.stream_at = new.stream_at;
        call.task_at = new.task_at;
        call.kept_for_task = new.kept_for_task.or(call.kept_for_task.take());
        let holds = std::mem::replace(&mut call.holds, new.holds);
        let (client, key) = (call.request.client, call.request.id.key());
        if !matches!(call.request.way, Way::Ticket(_))
            && let Some(client) = self.clients.get_mut(&client)
        {
            client.open(key, Open::Call(id));
        }
        self.arm_call(self.at, id);
        Some((left, holds))
    }

    /// A modern client hung up. What has a key goes on for a while: it may ask again.
    pub(super) fn leave_behind(&mut self, now: Mono, client: ClientId) {
        let wait = self.config.resume_wait;
        if self.ending.is_some() || wait.is_zero() {
            return;
        }
        let open = self.clients.get(&client).map(|client| client.all_open().collect::<Vec<_>>());
        for open in open.unwrap_or_default() {
            let Open::Call(id) = open else { continue };
            let Some(call) = self.calls.get(id).filter(|call| !call.shares()) else { continue };
            let joint = call.request.joint;
            if self.joints.get(joint).is_none_or(|joint| !joint.joined().is_empty()) {
                continue;
            }
            self.goes_on_alone(id);
            let Some((no, state)) = joint.zip(self.joints.get_mut(joint)) else { continue };
            self.timers.set(Owner::Joint(no), &mut state.armed, Some(now + wait));
            self.arm_call(now, id);
        }
    }

    /// A call goes on for nobody.
    fn goes_on_alone(&mut self, id: CallId) {
        let Some(call) = self.calls.get_mut(id) else { return };
        let left = call.request.clone();
        let held = std::mem::replace(&mut call.holds, true);
        call.request.way = Way::Nowhere;
        call.request.token = None;
        call.keep_alive = None;
        call.stream_at = None;
        call.task_at = None;
        if let Some(client) = self.clients.get_mut(&left.client) {
            client.close(&left.id, Open::Call(id));
        }
        if let Some(server) = self.servers.get_mut(&left.server) {
            server.tickets += 1;
        }
        self.count_out(&left, held);
    }

    /// Somebody is there again, or a ticket is.
    pub(super) fn stop_waiting_for_client(&mut self, joint: Option<JointNo>) {
        if let Some((no, state)) = joint.zip(self.joints.get_mut(joint)) {
            self.timers.set(Owner::Joint(no), &mut state.armed, None);
        }
    }

    /// The client did not come back.
    pub(super) fn joint_due(&mut self, no: JointNo) {
        let Some(joint) = self.joints.get_mut(Some(no)) else { return };
        joint.armed = None;
        match joint.stage {
            Stage::Running { first, .. } => self.give_up(first, "the client hung up and did not come back"),
            Stage::Answered(_) => self.drop_joint(no),
            Stage::Opening => {}
        }
    }
}

// What those who joined get.
impl Engine {
    /// The server reported on a call: those who joined it hear it too, each on its own token.
    pub(super) fn progress_of_joined(&mut self, now: Mono, id: CallId, message: &Message, counts: bool) {
        for id in self.joined_to(id) {
            let Some(call) = self.calls.get_mut(id) else { continue };
            let Some(server) = self.servers.get(&call.request.server) else { continue };
            if counts {
                // Nothing is kept of it.
                let _ = call.shows_life(now, &server.clock);
            }
            let (client, way) = (call.request.client, call.request.way);
            let token = call.request.token.as_ref();
            let Some(report) = token.and_then(|token| forwarded(message, token, &mut call.progress)) else {
                continue;
            };
            call.heard = now;
            self.tell(client, way, report);
        }
    }

    /// The attempt is made again: its reports begin again.
    pub(super) fn joined_start_again(&mut self, joint: Option<JointNo>) {
        for id in self.joints.get(joint).map(|joint| joint.joined().to_vec()).unwrap_or_default() {
            if let Some(call) = self.calls.get_mut(id) {
                call.progress.start_again();
            }
        }
    }

    /// Those who are joined to a call.
    fn joined_to(&self, id: CallId) -> Vec<CallId> {
        let joint = self.calls.get(id).and_then(|call| call.request.joint);
        let joint = self.joints.get(joint).filter(|joint| joint.first() == Some(id));
        joint.map(|joint| joint.joined().to_vec()).unwrap_or_default()
    }

    /// A call fails, and so do all that are joined to it, each in the words of its era.
    pub(super) fn fail_joined(&mut self, id: CallId, failure: &Failure) {
        for id in self.joined_to(id) {
            let Some(call) = self.calls.get(id) else { continue };
            let answer = self.error_for(call, failure);
            self.settle(id, Some(answer));
        }
    }

    /// A call is settled: says what becomes of its key, and who else gets the answer.
    pub(super) fn settle_key(
        &mut self,
        id: CallId,
        call: &mut Call,
        answer: Option<&Outgoing>,
    ) -> Option<Shared> {
        self.settle_joint(call.request.joint?, id, call, answer)
    }

    #[inline(never)]
    fn settle_joint(
        &mut self,
        no: JointNo,
        id: CallId,
        call: &mut Call,
        answer: Option<&Outgoing>,
    ) -> Option<Shared> {
        let joint = self.joints.get_mut(Some(no))?;
        if call.shares() {
            joint.joined_mut()?.retain(|joined| *joined != id);
            return None;
        }
        if joint.first() != Some(id) {
            return None;
        }
        let joined = joint.joined_mut().map(std::mem::take).unwrap_or_default();
        let kept = answer.is_some_and(|answer| self.keep_answer(no, call, answer));
        if !kept {
            self.drop_joint(no);
        }
        let ticket = match call.request.way {
            Way::Ticket(no) => Some(no),
            _ => None,
        };
        let answer = answer.filter(|_| !joined.is_empty())?.clone();
        Some(Shared { answer, joined, ticket })
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
            let Some(call) = self.calls.get_mut(id) else { continue };
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
                call.request.way = Way::Line;
                self.member_done(client, batch);
            }
            if modern && answer.has(Field::Error) {
                self.set_status(way, error_code(&answer));
            }
            self.settle(id, Some(outgoing));
        }
    }

    /// Keeps an answer that nobody got, or that a person wants kept. False if there is no reason to.
    fn keep_answer(&mut self, no: JointNo, call: &mut Call, answer: &Outgoing) -> bool {
        let unfetched = call.request.way == Way::Nowhere;
        if !unfetched && !call.keeps {
            return false;
        }
        let Ok(Scanned::Message(answer)) = scan(answer.to_vec().into()) else { return false };
        let stored = call.keeps && self.store_answer(no, call, &answer);
        let fits = self.joints.answers + answer.bytes.len() <= limits::UNFETCHED_BYTES;
        let waits = unfetched && fits;
        if !stored && !waits {
            return false;
        }
        self.joints.answers += answer.bytes.len();
        if let Some(joint) = self.joints.get_mut(Some(no)) {
            joint.stage = Stage::Answered(Box::new(answer));
        }
        true
    }
}

// What is remembered, and how it goes.
impl Engine {
    /// A call runs under a key: whoever waited to know joins it.
    pub(super) fn key_runs(&mut self, no: JointNo, first: CallId) {
        let Some(joint) = self.joints.get_mut(Some(no)) else { return };
        joint.stage = Stage::Running { first, joined: Vec::new() };
        let waiting = std::mem::take(&mut joint.waiting);
        for (request, message) in waiting {
            self.stops_waiting_for_key(&request, no);
            if !self.knows_the_ticket(no, &request, &message) {
                self.begin_tool_call(self.at, request, &message);
            }
        }
    }

    /// The call that was to run under a key does not: the next one does, or the key is forgotten.
    pub(super) fn forget_unopened(&mut self, now: Mono, no: Option<JointNo>) {
        let Some((no, joint)) = no.zip(self.joints.get_mut(no)) else { return };
        let starts = joint.ticket.and_then(|ticket| self.tasks.get(&ticket));
        if !matches!(joint.stage, Stage::Opening) || starts.is_some_and(|task| task.start.is_some()) {
            return;
        }
        joint.ticket = None;
        if joint.waiting.is_empty() {
            return self.drop_joint(no);
        }
        let (request, message) = joint.waiting.remove(0);
        self.stops_waiting_for_key(&request, no);
        self.begin_tool_call(now, request, &message);
    }

    fn drop_joint(&mut self, no: JointNo) {
        let Some(mut joint) = self.joints.by_no.remove(&no) else { return };
        self.joints.by_name.remove(&joint.name);
        self.joints.arguments -= joint.arguments.size();
        if let Stage::Answered(answer) = &joint.stage {
            self.joints.answers -= answer.bytes.len();
        }
        self.timers.set(Owner::Joint(no), &mut joint.armed, None);
    }

    fn wait_for_key(&mut self, no: JointNo, request: Request, message: Message) {
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.open(request.id.key(), Open::Joint(no));
        }
        if let Some(joint) = self.joints.get_mut(Some(no)) {
            joint.waiting.push((request, message));
        }
    }

    fn stops_waiting_for_key(&mut self, request: &Request, no: JointNo) {
        if let Some(client) = self.clients.get_mut(&request.client) {
            client.close(&request.id, Open::Joint(no));
        }
    }

    /// A client gives up a call of which nothing is known yet.
    pub(super) fn stop_asking_for_key(&mut self, client: ClientId, id: &JsonId, no: JointNo) {
        let is = |(request, _): &(Request, Message)| request.client == client && request.id.key() == id.key();
        let Some(joint) = self.joints.get_mut(Some(no)) else { return };
        let Some(at) = joint.waiting.iter().position(is) else { return };
        let (request, _) = joint.waiting.remove(at);
        self.stops_waiting_for_key(&request, no);
        match request.way {
            Way::Array(batch) => self.member_done(client, batch),
            Way::Stream(stream) => self.settled_on_stream(self.at, stream),
            Way::Line | Way::Ticket(_) | Way::Nowhere => {}
        }
    }

    /// A client is gone of whose call nothing is known yet.
    pub(super) fn forget_asking_for_key(&mut self, client: ClientId, no: JointNo) {
        let Some(joint) = self.joints.get_mut(Some(no)) else { return };
        let gone: Vec<_> = joint.waiting.extract_if(.., |(request, _)| request.client == client).collect();
        gone.iter().for_each(|(request, _)| self.stops_waiting_for_key(request, no));
    }

    /// Requests that wait to know what becomes of their keys.
    pub(super) fn waiting_for_keys(&self) -> usize {
        self.joints.by_no.values().map(|joint| joint.waiting.len()).sum()
    }

    /// Nothing will become of them any more.
    pub(super) fn refuse_waiting_for_keys(&mut self, now: Mono) {
        let all: Vec<JointNo> = self.joints.by_no.keys().copied().collect();
        for no in all {
            let Some(joint) = self.joints.get_mut(Some(no)) else { continue };
            for (request, _) in std::mem::take(&mut joint.waiting) {
                self.stops_waiting_for_key(&request, no);
                self.refuse_request(now, &request, Kind::ServerGone, "outlast was stopped".into());
            }
        }
    }

    /// Whether what is remembered belongs to something that is there.
    pub(super) fn check_joints(&self) -> Result<(), String> {
        for (no, joint) in &self.joints.by_no {
            if self.joints.by_name.get(&joint.name) != Some(no) {
                return Err(format!("{no:?} is not found by its name"));
            }
            let of_it = |id: &CallId| self.calls.get(*id).is_some_and(|call| call.request.joint == Some(*no));
            if !joint.joined().iter().chain(&joint.first()).all(of_it) {
                return Err(format!("{no:?} names a call that is gone"));
            }
            if joint.joined().iter().any(|id| !self.calls.get(*id).is_some_and(Call::shares)) {
                return Err(format!("{no:?} joins a call that is not joined"));
            }
        }
        let lost = self.calls.ids().filter_map(|id| Some((id, self.calls.get(id)?))).find(|(id, call)| {
            call.shares() && !self.joints.get(call.request.joint).is_some_and(|j| j.joined().contains(id))
        });
        match lost {
            Some((id, _)) => Err(format!("call {id:?} is joined to nothing")),
            None => Ok(()),
        }
    }
}
