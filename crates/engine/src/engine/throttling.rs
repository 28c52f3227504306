//! Calls that have to wait for their turn, because their server or their principal has a bound.
//!
//! Counted are the requests that make a server work. A call that is taken over from another process, or shares the
//! attempt of another, passes: it is no further work.

use super::Engine;
use crate::calls::{Call, Request};
use crate::clients::Way;
use crate::config::Bounds;
use crate::error::{Failure, Kind};
use crate::id::{CallId, ThrottleNo};
use crate::method::Method;
use crate::policy::Policy;
use crate::servers::Readiness;
use crate::settings::{Key, counted, setting, show_duration};
use crate::step::What;
use crate::throttles::{Blocked, Passage};
use crate::time::Mono;
use crate::wire::Message;
use std::time::Duration;

/// When to call again where nothing says when there will be room.
const LATER: Duration = Duration::from_secs(1);

/// Why a call is refused.
struct Refusal {
    kind: Kind,
    detail: String,
    setting: Box<str>,
    limit: Option<Duration>,
    after: Duration,
}

impl Engine {
    /// Gives a call its turn. `None` if it has to wait, or was refused.
    #[cold]
    pub(super) fn takes_passage(
        &mut self,
        now: Mono,
        mut call: Box<Call>,
        policy: &Policy,
        message: &Message,
    ) -> Option<Box<Call>> {
        let mut passage = Passage::new(self.throttles_of(&call.request, call.is_orphaned()));
        if let Err(blocked) = self.throttles.pass(now, &mut passage) {
            if let Some(refusal) = self.refusal_at(now, &passage, blocked) {
                self.throttles.leave(&mut self.timers, now, &passage, NOBODY);
                self.refuse_passage(now, &call, refusal);
            } else {
                self.make_repeatable(&mut call, policy, message);
                self.wait_for_passage(now, call, passage, message);
            }
            return None;
        }
        call.passage = Some(Box::new(passage));
        Some(call)
    }

    fn throttles_of(&mut self, request: &Request, orphaned: bool) -> Vec<ThrottleNo> {
        if orphaned || !makes_work(&request.method) {
            return Vec::new();
        }
        let principal = self.clients.get(&request.client).and_then(|client| client.principal.clone());
        let of_principal = principal.and_then(|name| {
            let bounds = self.config.rights.get(&name).map(|rights| &rights.bounds)?;
            bounds.is_bound().then(|| self.throttles.of_principal(&name, bounds))
        });
        let server = self.servers.get(&request.server);
        let of_server = server.and_then(|server| {
            let bounds = &server.config.bounds;
            bounds.is_bound().then(|| self.throttles.of_server(server.definition, bounds))
        });
        of_principal.into_iter().chain(of_server).collect()
    }

    /// Why a call may not even wait. `None` if it may.
    fn refusal_at(&self, now: Mono, passage: &Passage, blocked: Blocked) -> Option<Refusal> {
        let no = passage.next()?;
        let bounds = self.throttles.bounds(no);
        let full = self.throttles.queue_at(no) >= bounds.queue as usize;
        let allowed_at = self.throttles.rate_allows_at(now, no);
        let too_late = allowed_at.since(now) > bounds.queue_wait;
        match blocked {
            Blocked::Rate(_) if full || too_late => Some(self.bound_reached(now, no, Kind::RateLimited)),
            // Before those that wait have begun, its rate would not let it begin either.
            Blocked::InFlight if too_late => Some(self.bound_reached(now, no, Kind::RateLimited)),
            Blocked::InFlight if full && bounds.queue == 0 => {
                Some(self.bound_reached(now, no, Kind::TooManyCalls))
            }
            Blocked::InFlight if full => Some(self.bound_reached(now, no, Kind::QueueFull)),
            _ => None,
        }
    }

    fn bound_reached(&self, now: Mono, no: ThrottleNo, kind: Kind) -> Refusal {
        let bounds = self.throttles.bounds(no);
        let Bounds { max_in_flight, queue, queue_wait, rate } = &bounds;
        let key = match kind {
            Kind::TooManyCalls => Key::MaxInFlight,
            Kind::QueueFull => Key::Queue,
            Kind::QueueWait => Key::QueueWait,
            _ => Key::Rate,
        };
        let (whose, source) = self.whose_bound(no, key);
        let name = setting(key).name;
        let calls = counted(max_in_flight, "call");
        let detail = match kind {
            Kind::TooManyCalls => {
                format!("{whose} has {calls} in flight, and none may wait ({name}, {source})")
            }
            Kind::QueueFull => {
                format!("{whose} has {calls} in flight and {queue} waiting ({name}, {source})")
            }
            Kind::QueueWait => {
                let waited = show_duration(*queue_wait);
                format!("it has waited {waited} for its turn, and {whose} is still busy ({name}, {source})")
            }
            _ => {
                let rate = rate.as_ref().map(ToString::to_string).unwrap_or_default();
                format!("{whose} accepts calls at {rate} at most ({name}, {source})")
            }
        };
        let after = match kind {
            // What was shorter would be refused again by a client that rounds it down.
            Kind::RateLimited => {
                self.throttles.rate_allows_at(now, no).since(now).max(Duration::from_millis(1))
            }
            _ => LATER,
        };
        let limit = (kind == Kind::QueueWait).then_some(*queue_wait);
        Refusal { kind, detail, setting: source, limit, after }
    }

    /// Whose a throttle is, and where its bound is written.
    fn whose_bound(&self, no: ThrottleNo, key: Key) -> (String, Box<str>) {
        let server = self.throttles.server_of(no).and_then(|id| self.config.definition(id));
        if let Some(config) = server {
            let written = config.rules.written(key, &Method::ToolsCall, None);
            let source = written.first().map_or("built-in", |written| written.source);
            return (format!("server `{}`", config.name), source.into());
        }
        match self.throttles.principal_of(no).and_then(|name| Some((name, self.config.rights.get(name)?))) {
            Some((name, rights)) => (format!("token `{name}`"), rights.source.clone()),
            None => ("this token".into(), "built-in".into()),
        }
    }

    fn refuse_passage(&mut self, now: Mono, call: &Call, refusal: Refusal) {
        if !matches!(call.request.way, Way::Ticket(_)) {
            self.one_call_less(call.request.client);
        }
        let failure = self.failure_of_passage(now, call, refusal);
        self.refuse_with(call, failure);
    }

    fn failure_of_passage(&self, now: Mono, call: &Call, refusal: Refusal) -> Failure {
        let mut failure = self.failure(now, call, refusal.kind, None);
        failure.detail = Some(refusal.detail);
        failure.setting = Some(refusal.setting);
        failure.limit = refusal.limit;
        failure.retry_after = Some(refusal.after);
        failure
    }

    fn wait_for_passage(&mut self, now: Mono, mut call: Box<Call>, passage: Passage, message: &Message) {
        let wait = passage.next().map(|no| self.throttles.bounds(no).queue_wait).unwrap_or_default();
        call.state = crate::calls::State::Waiting(Box::new(message.owned()));
        call.retry_at = Some(now + wait);
        let waiting = passage.clone();
        call.passage = Some(Box::new(passage));
        let id = self.open_call(call);
        self.throttles.wait(&mut self.timers, now, &waiting, id);
        self.step(id, || What::Queued);
        self.arm_call(now, id);
    }

    /// A call is over that had passed its throttles, or waited at one.
    #[cold]
    pub(super) fn passage_is_over(&mut self, id: CallId, passage: &Passage) {
        if !planted!(self, KeepsTurns) {
            self.throttles.leave(&mut self.timers, self.at, passage, id);
        }
    }

    /// Those that waited may have their turn now.
    #[cold]
    pub(super) fn give_turns(&mut self, now: Mono) {
        #[cfg(feature = "planted")]
        if planted!(self, ForgetsTurns) {
            return self.throttles.forget_room();
        }
        while let Some(id) = self.throttles.next_through(&mut self.timers, now) {
            self.passage_opens(now, id);
        }
    }

    fn passage_opens(&mut self, now: Mono, id: CallId) {
        let Some(mut passage) = self.calls.take_passage(id) else { return };
        passage.has_passed();
        let blocked = self.throttles.pass(now, &mut passage).err();
        let refusal = blocked.and_then(|blocked| self.refusal_at(now, &passage, blocked));
        let waits = blocked.is_some() && refusal.is_none();
        let until = passage.next().map(|no| now + self.throttles.bounds(no).queue_wait);
        if waits {
            self.throttles.wait(&mut self.timers, now, &passage, id);
        }
        self.calls.has_passage(id, passage, until.filter(|_| waits));
        if let Some(refusal) = refusal {
            return self.fail_passage(now, id, refusal);
        }
        if waits { self.arm_call(now, id) } else { self.begin_waiting(now, id) }
    }

    /// A call that a person has approved takes its turn like any other. It may wait also where the queue is full: it
    /// was counted while it was held, and a yes would be lost.
    #[cold]
    pub(super) fn approved_takes_passage(&mut self, now: Mono, id: CallId) {
        let Some(request) = self.calls.get(id).map(|call| call.request.clone()) else { return };
        let mut passage = Passage::new(self.throttles_of(&request, false));
        let waits = self.throttles.pass(now, &mut passage).is_err();
        let until = passage.next().map(|no| now + self.throttles.bounds(no).queue_wait);
        if waits {
            self.throttles.wait(&mut self.timers, now, &passage, id);
        }
        self.calls.has_passage(id, passage, until.filter(|_| waits));
        if waits { self.arm_call(now, id) } else { self.begin_waiting(now, id) }
    }

    /// Nothing stands between a call and its server any more.
    fn begin_waiting(&mut self, now: Mono, id: CallId) {
        let Some(server_id) = self.calls.get(id).map(|call| call.request.server) else { return };
        let Some(server) = self.servers.get(&server_id) else { return };
        let readiness = server.readiness();
        if readiness == Readiness::IsGone {
            return self.fail_at_gone_server(now, id);
        }
        self.calls.restart_timeout(now, id, &server.clock);
        let Some(message) = self.calls.stop_waiting(id) else { return };
        if readiness == Readiness::Runs {
            self.send_attempt(now, id, &message);
        } else {
            let size = message.bytes.len();
            self.calls.wait(id, message);
            self.queue_at(server_id, id, size);
        }
        self.arm_call(now, id);
    }

    /// `queue-wait` is over. False if the call waits for something else.
    #[cold]
    pub(super) fn waited_too_long(&mut self, now: Mono, id: CallId) -> bool {
        let waits_at = self.calls.get(id).and_then(Call::waits_at);
        let Some(no) = waits_at else { return false };
        // The last moment may be the one in which there is room.
        self.throttles.look_at(no);
        self.give_turns(now);
        if self.calls.get(id).and_then(Call::waits_at) != Some(no) {
            return true;
        }
        let refusal = self.bound_reached(now, no, Kind::QueueWait);
        self.by_a_limit(|engine| engine.fail_passage(now, id, refusal));
        true
    }

    fn fail_passage(&mut self, now: Mono, id: CallId, refusal: Refusal) {
        let Some(call) = self.calls.get(id) else { return };
        let failure = self.failure_of_passage(now, call, refusal);
        self.fail(id, failure);
    }

    /// Whether anybody's calls are bounded at all.
    pub(super) fn bounds_calls(config: &crate::Config) -> bool {
        config.definitions().any(|(_, server)| server.bounds.is_bound())
            || config.rights.values().any(|rights| rights.bounds.is_bound())
    }
}

/// A call that was never taken in waits nowhere.
pub(super) const NOBODY: CallId = CallId { slot: u32::MAX, generation: 0 };

/// Whether a request makes its server work. Others are answered at once, or wait for what is counted already.
fn makes_work(method: &Method) -> bool {
    matches!(
        method,
        Method::ToolsCall | Method::PromptsGet | Method::ResourcesRead | Method::CompletionComplete
    )
}
