//! How a request becomes a call: its policy is resolved and the call planned, then it is admitted, then dispatched.
//!
//! The three steps are apart so that something can come between them: whoever is to wait for a person's yes is
//! admitted, because it counts, and not dispatched, because its server must not see it yet.

use super::Engine;
use super::settle::LET_GO;
use super::throttling::NOBODY;
use crate::calls::{Call, Request, State};
use crate::clients::{Open, Way};
use crate::error::Kind;
use crate::id::{CallId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::policy::{CallFacts, Policy};
use crate::servers::{Life, Readiness, Server};
use crate::settings::counted;
use crate::step::What;
use crate::time::Mono;
use crate::wire::{Field, Message};
use std::time::Duration;

/// A call that is planned, and not open yet.
pub(super) struct Planned<'a> {
    pub(super) call: Box<Call>,
    pub(super) policy: &'a Policy,
    /// The call with the same key whose attempt it shares.
    joins: Option<CallId>,
}

impl Engine {
    pub(super) fn begin_call(&mut self, now: Mono, mut request: Request, message: &Message) {
        let joins = self.call_to_join(&mut request);
        let Some(server) = self.servers.get(&request.server) else {
            return self.begin_without_server(now, &request);
        };
        let policy = self.policy_for(server, &request, message);
        let size = message.bytes.len();
        let (mut call, asking) = self.plan_call(now, request, server, &policy, message);
        self.tell_of_new(&mut call, message);
        let planned = Planned { call, policy: &policy, joins };
        if let Err(why) = self.admit(&planned, size) {
            return self.refuse_call(now, &planned.call, Kind::Overloaded, why);
        }
        let message = asking.as_deref().unwrap_or(message);
        if self.must_be_approved(&planned.call) && planned.joins.is_none() {
            return self.hold_call(now, planned, message);
        }
        self.dispatch(now, planned, message);
    }

    /// All limits and choices for a call, resolved once.
    #[inline]
    fn policy_for(&self, server: &Server, request: &Request, message: &Message) -> Policy {
        let mut policy = server.config.rules.for_call(CallFacts {
            method: &request.method,
            tool: request.tool.as_deref(),
            has_token: request.token.is_some(),
            cap: request.cap.filter(|_| request.method == Method::ToolsCall).map(Duration::from),
            silence: self.silence_of(request),
            wish: wish(message),
            declared: &server.declared,
        });
        if self.adapts && request.method == Method::ToolsCall {
            self.adapt(&mut policy, server, request.tool.as_deref());
        }
        if policy.honours_keys && message.has(Field::ParamsIdempotencyKey) {
            policy.repeatable.get_or_insert(true);
        }
        if self.config.manner.serves() && request.method.is_handshake() {
            policy.for_handshake_of_service();
        }
        policy
    }

    /// A call with all that it may become, and what is sent in its place if its server insists on a task.
    #[inline]
    fn plan_call(
        &self,
        now: Mono,
        request: Request,
        server: &Server,
        policy: &Policy,
        message: &Message,
    ) -> (Box<Call>, Option<Box<Message>>) {
        let mut call = Call::new(request, policy, server.config.rules.clone(), now, &server.clock);
        call.stream_at = self.stream_patience(call.request.way).map(|patience| now + patience);
        call.task_at = self.task_after(&call.request, message, now);
        self.plan_hand_off(&mut call, now);
        let keeps = call.task_at.is_some() || (call.keeps && call.request.key_no.is_some());
        call.kept_for_task = keeps.then(|| Box::new(message.owned()));
        if let Way::Ticket(no) = call.request.way {
            self.goes_on_with(now, &mut call, no, message);
        }
        let asking = self.as_servers_task(&mut call, message);
        (call, asking)
    }

    /// Counts a call for its principal. An error says which bound it would break.
    fn admit(&mut self, planned: &Planned<'_>, size: usize) -> Result<(), String> {
        let request = &planned.call.request;
        let queue_is_full = |server: &Server| {
            let full = server.waiting_bytes + size > limits::WAITING_BYTES;
            reached!(WAITING_BYTES, full && server.readiness() == Readiness::ComesBack)
        };
        let server = self.servers.get(&request.server).filter(|_| planned.joins.is_none());
        if planted!(self, OverloadsEverything) || self.calls.is_full() || server.is_some_and(queue_is_full) {
            return Err("too many calls are in flight".into());
        }
        if !matches!(request.way, Way::Ticket(_)) && !self.one_call_more(request.client) {
            return Err(format!("{} in flight (max-calls)", counted(self.config.max_calls, "call")));
        }
        Ok(())
    }

    /// Opens a call and sends it; or lets it wait for its server, or share the attempt of another.
    fn dispatch(&mut self, now: Mono, planned: Planned<'_>, message: &Message) {
        let Planned { mut call, policy, joins } = planned;
        if let Some(first) = joins {
            return self.join_call(now, call, first);
        }
        if self.bounded {
            let Some(next) = self.takes_passage(now, call, policy, message) else { return };
            call = next;
        }
        let Some(server) = self.servers.get(&call.request.server) else { return };
        let waits = server.life == Life::Down && call.is_kept_at_server();
        match if waits { Readiness::ComesBack } else { server.readiness() } {
            Readiness::IsGone => {
                if !matches!(call.request.way, Way::Ticket(_)) {
                    self.one_call_less(call.request.client);
                }
                if let Some(passage) = &call.passage {
                    self.passage_is_over(NOBODY, passage);
                }
                self.refuse_by_gone_server(now, &call);
            }
            Readiness::ComesBack => {
                self.make_repeatable(&mut call, policy, message);
                self.wait_for_server(now, call, message);
            }
            Readiness::Runs => {
                self.make_repeatable(&mut call, policy, message);
                let id = self.open_call(call);
                self.send_attempt(now, id, message);
                self.arm_call(now, id);
            }
        }
    }

    /// A call that waited for the store finds its server let go of: its client left meanwhile, or the process
    /// ended. It never ran, and whoever may still ask for it is told so.
    #[cold]
    pub(super) fn begin_without_server(&mut self, now: Mono, request: &Request) {
        self.refuse_request(now, request, Kind::ServerGone, LET_GO.into());
    }

    pub(super) fn open_call(&mut self, call: Box<Call>) -> CallId {
        let (client, key) = (call.request.client, call.request.id.key());
        let (server, way) = (call.request.server, call.request.way);
        let key_no = call.request.key_no.filter(|_| !call.is_joined());
        let id = self.calls.open(call);
        if let Way::Ticket(no) = way {
            self.task_runs(no, server, id);
        } else {
            self.clients.opens(client, key, Open::Call(id));
        }
        if let Some(key_no) = key_no {
            self.key_runs(key_no, id);
        }
        id
    }

    fn wait_for_server(&mut self, now: Mono, mut call: Box<Call>, message: &Message) {
        let server = call.request.server;
        call.state = State::Waiting(Box::new(message.owned()));
        let id = self.open_call(call);
        self.queue_at(server, id, message.bytes.len());
        self.arm_call(now, id);
    }

    /// A call waits until its server is there; one that sleeps is woken.
    pub(super) fn queue_at(&mut self, server: ServerId, id: CallId, size: usize) {
        self.servers.queue(server, id, size);
        self.step(id, || What::Queued);
        if !planted!(self, LetsSleepersLie) {
            self.wake_server(server);
        }
    }
}

/// The request's own limit, in milliseconds.
fn wish(message: &Message) -> Option<Duration> {
    message.has(Field::MetaTimeoutMs).then(|| read_wish(message)).flatten()
}

#[cold]
fn read_wish(message: &Message) -> Option<Duration> {
    // Python writes whole numbers as `300.0` too.
    let millis = message.number(Field::MetaTimeoutMs)?;
    Duration::try_from_secs_f64(millis / 1000.0).ok().filter(|time| *time >= Duration::from_millis(1))
}
