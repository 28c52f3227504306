//! How a call becomes a task.

use super::{declares_tasks, millis};
use crate::action::Action;
use crate::calls::Request;
use crate::clients::{Open, Way};
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::error::Kind;
use crate::id::{CallId, ClientId, TaskNo};
use crate::json;
use crate::method::Method;
use crate::policy::CallFacts;
use crate::record::{Body, Faces, New, Origin, Ticket};
use crate::settings::counted;
use crate::store::Write;
use crate::tickets::{Task, TaskRule, Waiter, Wants};
use crate::time::Mono;
use crate::wire::{Edit, Field, Message};
use std::time::Duration;

impl Engine {
    /// A legacy client asks for a task. False if its call is an ordinary one.
    pub(in crate::engine) fn task_wanted(
        &mut self,
        now: Mono,
        request: &mut Request,
        message: &Message,
    ) -> bool {
        let ours = self.makes_legacy_tasks(request.server, self.is_merged(request.client));
        if !ours
            || request.modern
            || request.method != Method::ToolsCall
            || !message.is_object(Field::ParamsTask)
        {
            return false;
        }
        if self.task_rule(request) == TaskRule::Forbidden {
            let text = "Method not found: this tool cannot be called as a task";
            self.answer_error(request.client, request.way, &request.id.clone(), -32601, text);
            return true;
        }
        let Some(plain) = without_task(message) else { return false };
        let wish = wished_ttl(message);
        let waiter =
            Waiter { client: request.client, way: request.way, id: request.id.clone(), wants: Wants::Handle };
        if !self.has_room_for_task(now, request) {
            return true;
        }
        let Some(no) = self.make_task(request, &plain, (Faces::LEGACY_TASK, Duration::ZERO), wish, waiter)
        else {
            return false;
        };
        self.charge_task(request.client, no);
        self.clients.opens(request.client, request.id.key(), Open::Wait(no));
        let started = Request { way: Way::Ticket(no), task: false, ..request.clone() };
        self.tickets.starts_with(no, started, plain);
        true
    }

    /// Whether a principal may have one more call with a ticket; if not, it is told.
    pub(super) fn has_room_for_task(&mut self, now: Mono, request: &Request) -> bool {
        let room = self.clients.payer_of(request.client).is_none_or(|payer| self.has_room_for(&payer));
        if !room {
            let why =
                format!("{} in flight, tasks included (max-calls)", counted(self.config.max_calls, "call"));
            self.refuse_request(now, request, Kind::Overloaded, why);
        }
        room
    }

    /// From now on a call with a ticket counts for whoever made it, until it ends.
    pub(super) fn charge_task(&mut self, client: ClientId, no: TaskNo) {
        let Some(payer) = self.clients.payer_of(client) else { return };
        if self.tickets.charge(no, payer.clone()) {
            self.clients.charge(payer);
        }
    }

    /// Makes a task of a call that has run for a while, and has it stored. `None` without random bytes.
    pub(super) fn make_task(
        &mut self,
        request: &Request,
        message: &Message,
        (faces, ran): (Faces, Duration),
        wish: Option<Duration>,
        waiter: Waiter,
    ) -> Option<TaskNo> {
        let entropy = self.ledger.take_entropy()?;
        self.act(Action::NeedEntropy);
        // A model copies it: no longer than it must be.
        let enough = if faces == Faces::HAND_OFF { 16 } else { entropy.len() };
        let ticket = Ticket::of(&entropy[..enough]);
        // It is as old as its call, also to whoever finds it after a crash.
        let now = self.store_time();
        let callback = self.callback_for(request.client, message);
        let mut body = self.body_of_new(request, wish);
        if callback.is_some() || faces.has(Faces::RESUME) {
            body.request_id = Some(String::from_utf8_lossy(request.id.patch().as_slice()).into_owned());
        }
        body.callback = callback;
        let server = self.definition_of(request.server).identity.clone();
        let whose = (self.principal_of(request.client), server);
        let task = Task::new(ticket, whose, request, (faces, body), (now.before(ran), now), waiter);
        let origin = Origin {
            principal: task.principal.clone(),
            server: task.server.clone(),
            method: request.method.as_str().into(),
            tool: request.tool.clone().unwrap_or_default(),
            key: self.key_to_store(request.key_no),
        };
        let new = New {
            ticket: task.ticket.clone(),
            origin,
            faces,
            ran,
            seen: self.seen_under_key(request.key_no),
            body: task.body.encode(),
            request: message.bytes.clone(),
        };
        let no = self.add_task(task);
        self.key_has_ticket(request.key_no, no);
        self.submit(Pending::Made(no), Write::Create(Box::new(new)));
        Some(no)
    }

    /// What is stored of a new task besides its request: how long it is kept, and why it may be repeated.
    fn body_of_new(&self, request: &Request, wish: Option<Duration>) -> Body {
        let policy = self.policy_of(request);
        let least = policy.max.time + self.config.task_ttl;
        let most = self.config.task_ttl_max.max(least);
        Body {
            ttl_ms: Some(millis(wish.unwrap_or(least).clamp(least, most))),
            repeatable: self.why_repeatable(request, &policy).map(str::to_owned),
            held: self.waits_for_a_yes(request) && !self.joins_by_key(request),
            ..Body::default()
        }
    }

    /// Whether a call shares the attempt of another with its key, which has the key in the store. A process that finds
    /// only records cannot join them again, and would send both.
    fn joins_by_key(&self, request: &Request) -> bool {
        self.keys.get(request.key_no).is_some_and(|key| self.open_ticket(key).is_some())
    }

    /// A modern call has taken so long that its client gets a handle.
    pub(in crate::engine) fn task_is_due(&mut self, now: Mono, id: CallId) {
        if self.share_ticket(now, id) {
            return;
        }
        if !self.ledger.has_entropy() {
            // Others were due at the same moment.
            self.calls.becomes_task_at(id, Some(now + Duration::from_millis(1)));
            return self.act(Action::NeedEntropy);
        }
        self.calls.becomes_task_at(id, None);
        let Some(call) = self.calls.get(id) else { return };
        let faces = if call.hands_off { Faces::HAND_OFF } else { Faces::MODERN_TASK };
        let ran = call.age(now);
        let request = call.request.clone();
        let Some(message) = call.kept_for_task.clone() else { return };
        let waiter =
            Waiter { client: request.client, way: request.way, id: request.id.clone(), wants: Wants::Handle };
        let Some(no) = self.make_task(&request, &message, (faces, ran), None, waiter) else { return };
        self.tickets.has_call(no, id);
    }

    /// When a call becomes a task, if it is not answered before.
    pub(in crate::engine) fn task_after(
        &self,
        request: &Request,
        message: &Message,
        now: Mono,
    ) -> Option<Mono> {
        let may_be = self.config.tasks && request.modern;
        may_be.then(|| self.task_in_time(request, message, now)).flatten()
    }

    #[inline(never)]
    fn task_in_time(&self, request: &Request, message: &Message, now: Mono) -> Option<Mono> {
        // What has a ticket and is made again after a crash keeps its ticket.
        let ours = !matches!(request.way, Way::Ticket(_))
            && request.method == Method::ToolsCall
            && !self.has_its_own_tasks(request.server, request.client)
            && declares_tasks(message)
            && self.task_rule(request) != TaskRule::Forbidden;
        ours.then(|| now + self.config.task_after)
    }

    pub(super) fn policy_of(&self, request: &Request) -> crate::policy::Policy {
        let declared = crate::policy::Declared::default();
        let declared = self.servers.get(&request.server).map_or(&declared, |server| &server.declared);
        self.definition_of(request.server).rules.for_call(CallFacts {
            method: &request.method,
            tool: request.tool.as_deref(),
            has_token: true,
            cap: None,
            silence: None,
            wish: None,
            declared,
        })
    }

    /// What a person says about a tool, unless its server forbids tasks.
    pub(in crate::engine) fn task_rule(&self, request: &Request) -> TaskRule {
        let forbids = request.tool.as_ref().zip(self.servers.get(&request.server));
        if forbids.is_some_and(|(tool, server)| server.forbids_tasks.contains(tool)) {
            return TaskRule::Forbidden;
        }
        self.policy_of(request).task
    }
}

/// The same call without `params.task`.
pub(in crate::engine) fn without_task(message: &Message) -> Option<Message> {
    let span = message.envelope.get(Field::ParamsTask)?;
    message.edited(Edit::remove_member(&message.bytes, span))
}

/// The same call with it.
pub(in crate::engine) fn with_task(message: &Message, ttl: u64) -> Option<Message> {
    let task = format!(r#""task":{{"ttl":{ttl}}}"#);
    message.edited(json::insert_member(&message.bytes, message.raw(Field::Params)?, task.as_bytes())?)
}

pub(super) fn wished_ttl(message: &Message) -> Option<Duration> {
    let ttl = json::member(message.raw(Field::ParamsTask)?, "ttl")?;
    let millis: f64 = serde_json::from_slice(ttl).ok()?;
    Duration::try_from_secs_f64(millis / 1000.0).ok()
}
