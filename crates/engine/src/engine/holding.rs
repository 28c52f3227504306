//! Calls that wait for a person's yes before they are sent.
//!
//! A held call is admitted and open like any other: it counts, it can be cancelled, becomes a task or is handed off,
//! and its client is told that it lives. It is only not sent. Its own clock stands still; `max` runs. The question is
//! in the store, so that it can be decided wherever the person is; whoever decides writes there, and nothing else
//! decides. So a call is sent on a yes that is stored and used up, or not at all.
//!
//! Not here: what a yes is good for (`hold.rs`), where a held call stands (`holds.rs`).

use super::Engine;
use super::begin::Planned;
use super::ledger::Pending;
use super::tasks::named;
use crate::action::Note;
use crate::calls::{Call, Request};
use crate::clients::{Door, Way};
use crate::error::{Kind, ServerState, cut};
use crate::hold::{Decision, Leave, NewHold, Standing};
use crate::holds::Waiting;
use crate::id::{CallId, ClientId};
use crate::limits;
use crate::method::Method;
use crate::policy::HoldRule;
use crate::redact::redact_also;
use crate::store::{Done, Found, Loaded, Query, Stored, Write};
use crate::time::Mono;
use crate::wire::{Message, Outgoing};
use serde_json::json;
use std::time::Duration;

/// A client that cannot be kept patient is taken to leave after a minute; a little before, its call fails.
const IMPATIENT: Duration = Duration::from_secs(50);

/// How long the question for such a client stays open.
const STAYS_OPEN: Duration = Duration::from_secs(600);

/// How long the store may take to say whether somebody has decided in the last moment.
const LAST_WORD: Duration = Duration::from_secs(2);

/// Some time for the store beyond a call's patience.
const SLACK: Duration = Duration::from_secs(10);

// A call begins to wait.
impl Engine {
    /// Whether a person must say yes to a call. What an earlier process has sent is not asked about again.
    #[inline]
    pub(super) fn must_be_approved(&self, call: &Call) -> bool {
        call.request.method == Method::ToolsCall && !call.rules.is_empty() && self.is_held(call)
    }

    #[inline(never)]
    fn is_held(&self, call: &Call) -> bool {
        let tool = call.request.tool.as_deref();
        let harmless = || {
            let server = self.servers.get(&call.request.server);
            server.zip(tool).is_some_and(|(server, tool)| server.harmless.contains(tool))
        };
        !call.is_orphaned()
            && match call.rules.hold(tool) {
                HoldRule::Never => false,
                HoldRule::Always => true,
                HoldRule::Destructive => !harmless(),
            }
    }

    #[cold]
    pub(super) fn hold_call(&mut self, now: Mono, planned: Planned<'_>, message: &Message) {
        let Planned { mut call, policy, .. } = planned;
        let Some(clock) = self.servers.get(&call.request.server).map(|server| server.clock) else { return };
        if self.holds.is_full() || !self.calls.has_room_to_keep(message.bytes.len()) {
            if !matches!(call.request.way, Way::Ticket(_)) {
                self.one_call_less(call.request.client);
            }
            return self.refuse_call(now, &call, Kind::Overloaded, "too many calls wait for approval".into());
        }
        self.make_repeatable(&mut call, policy, message);
        let (patience, stays_open) = patience_of(&call);
        let about = self.question(&call.request, message, patience + stays_open.unwrap_or(SLACK));
        let id = self.open_call(call);
        let kept_for_this = self.calls.hold(now, id, message.owned(), now + patience, &clock);
        let waiting = Waiting {
            since: now,
            patience,
            stays_open,
            number: None,
            fetching: false,
            closing: false,
            kept_for_this,
        };
        self.holds.add(&mut self.timers, id, waiting);
        self.submit(Pending::Held(id), Write::Hold(Box::new(about)));
        self.arm_call(now, id);
    }

    /// What a person is asked about a call.
    fn question(&self, request: &Request, message: &Message, keep: Duration) -> NewHold {
        let definition = self.definition_of(request.server);
        let arguments = crate::idempotency::arguments(message);
        NewHold {
            key: String::from_utf8_lossy(arguments).into(),
            principal: self.principal_of(request.client),
            server: definition.identity.clone(),
            name: definition.name.clone(),
            tool: request.tool.clone().unwrap_or_default(),
            arguments: self.as_shown(arguments),
            client: self.client_in_words(request.client),
            session: self.session_of_holds(request.client),
            keep,
        }
    }

    /// Arguments as a person may see them.
    fn as_shown(&self, arguments: &[u8]) -> Box<str> {
        let Ok(value) = serde_json::from_slice(arguments) else { return "".into() };
        let text = redact_also(value, &self.config.redact).to_string();
        reached!(HELD_ARGUMENTS if text.len() > limits::HELD_ARGUMENTS);
        cut(&text, limits::HELD_ARGUMENTS).into()
    }

    /// What a client calls itself.
    fn client_in_words(&self, client: ClientId) -> Box<str> {
        self.clients.identity_of(client).map(|identity| named(&identity.introduction)).unwrap_or_default()
    }

    /// What a yes "for this session" belongs to. Empty where there is no session.
    fn session_of_holds(&self, client: ClientId) -> Box<str> {
        match self.clients.get(&client).map(|client| &client.door) {
            Some(Door::Line) => format!("line {:016x} {}", self.config.seed, client.0).into(),
            Some(Door::Session(session)) => format!("session {}", session.id).into(),
            Some(Door::Exchange(_)) | None => "".into(),
        }
    }
}

/// How long a call waits for a yes, and how long the question stays open after that.
fn patience_of(call: &Call) -> (Duration, Option<Duration>) {
    let limit = call.rules.hold_timeout(call.request.tool.as_deref()).time;
    let patient =
        call.keep_alive.is_some() || call.task_at.is_some() || matches!(call.request.way, Way::Ticket(_));
    if patient { (limit, None) } else { (limit.min(IMPATIENT), Some(STAYS_OPEN)) }
}

// What the store says.
impl Engine {
    pub(super) fn hold_was_stored(&mut self, now: Mono, id: CallId, outcome: &Stored) {
        let standing = outcome.as_ref().ok().and_then(|committed| match committed.done.first() {
            Some(Done::Held(standing)) => Some(*standing),
            _ => None,
        });
        match standing {
            Some(Standing::Granted(_)) => self.release(now, id),
            Some(Standing::Asked(number)) => self.person_is_asked(id, number),
            None => {
                let why = outcome.as_ref().err().map(ToString::to_string).unwrap_or_default();
                self.fail_held(
                    now,
                    id,
                    Kind::Overloaded,
                    format!("nobody could be asked to approve it: {why}"),
                );
            }
        }
    }

    fn person_is_asked(&mut self, id: CallId, number: u64) {
        let Some(patience) = self.holds.is_asked(id, number).map(|waiting| waiting.patience) else {
            // The call is gone.
            self.submit(Pending::Noted, Write::AskAfter { hold: number, leave: Leave::Gone });
            return;
        };
        let Some(call) = self.calls.get(id) else { return };
        let (server, tool) = (self.server_name(call.request.server), call.name().into());
        self.note(Note::HoldAsked { server, tool, hold: number, patience });
    }

    /// It is time to look whether somebody has decided.
    pub(super) fn holds_due(&mut self, now: Mono) {
        let numbers = self.holds.looks(&mut self.timers, now);
        if !numbers.is_empty() {
            self.load(Pending::HoldsLooked, Query::Decided(numbers));
        }
        if self.holds.renews(now) {
            self.submit(Pending::Noted, Write::Renew);
        }
    }

    pub(super) fn holds_were_looked_at(&mut self, outcome: &Loaded) {
        let decided = match outcome {
            Ok(Found::Decided(decided)) => &decided[..],
            _ => &[],
        };
        for (call, hold) in self.holds.looked(decided) {
            self.submit(Pending::AskedAfter(call), Write::AskAfter { hold, leave: Leave::Waits });
        }
    }

    /// What somebody said is ours now; or nobody has said anything.
    pub(super) fn hold_was_asked_after(&mut self, now: Mono, id: CallId, outcome: &Stored) {
        let Some(waiting) = self.holds.fetched(id) else { return };
        let closing = waiting.closing;
        let decision = outcome.as_ref().ok().and_then(|committed| match committed.done.first() {
            Some(Done::Decided(decision)) => decision.clone(),
            _ => None,
        });
        match decision {
            Some(decision) => self.decided(now, id, &decision),
            None if closing => self.fail_hold(now, id),
            None => {}
        }
    }

    fn decided(&mut self, now: Mono, id: CallId, decision: &Decision) {
        let Some(call) = self.calls.get(id) else { return };
        let (server, tool) = (self.server_name(call.request.server), call.name().into());
        let verdict = decision.verdict.clone();
        let (yes, by, place, reason) = (verdict.yes, verdict.by, verdict.place, verdict.reason);
        self.note(Note::HoldDecided { server, tool, yes, by, place, reason: reason.clone() });
        if yes { self.release(now, id) } else { self.decline(id, &reason) }
    }
}

// How it ends.
impl Engine {
    /// A person said yes: the call is sent.
    fn release(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.holds.take(&mut self.timers, id) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let Some(clock) = self.servers.get(&call.request.server).map(|server| server.clock) else { return };
        self.calls.release(now, id, &clock);
        self.try_again(now, id);
        if waiting.kept_for_this {
            self.calls.keep_no_longer(id);
        }
    }

    /// A person said no: the model is told, so that it can act on that.
    fn decline(&mut self, id: CallId, reason: &str) {
        self.holds.take(&mut self.timers, id);
        let Some(call) = self.calls.get(id) else { return };
        let tool = cut(call.name(), limits::NAME);
        let reason = cut(reason, limits::NAME);
        let why = if reason.is_empty() { ".".to_owned() } else { format!(": {reason}") };
        let text = format!("`{tool}` was not run: a person declined it{why}");
        let mut result = json!({"content": [{"type": "text", "text": text}], "isError": true});
        if call.request.modern {
            result["resultType"] = "complete".into();
        }
        let id_text = call.request.id.patch();
        let result = result.to_string();
        let answer =
            [br#"{"jsonrpc":"2.0","id":"#, id_text.as_slice(), br#","result":"#, result.as_bytes(), b"}"];
        self.settle(id, Some(Outgoing::plain(answer.concat())));
    }

    /// The time of a held call is over. What was said in the last moment still counts.
    pub(super) fn hold_is_over(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.holds.get(id) else { return };
        let leave = waiting.stays_open.map_or(Leave::Gone, Leave::Open);
        let Some(hold) = self.holds.closes(id) else { return self.fail_hold(now, id) };
        self.submit(Pending::AskedAfter(id), Write::AskAfter { hold, leave });
        self.calls.retry_at(id, now + LAST_WORD);
        self.arm_call(now, id);
    }

    fn fail_hold(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.holds.get(id) else { return };
        let detail = match (waiting.number, waiting.stays_open) {
            (Some(number), Some(_)) => {
                format!("within 10 minutes `outlast holds approve {number}` lets the same call pass")
            }
            _ => "see `outlast holds`".to_owned(),
        };
        self.fail_held(now, id, Kind::HoldTimeout, detail);
    }

    fn fail_held(&mut self, now: Mono, id: CallId, kind: Kind, detail: String) {
        let Some(waiting) = self.holds.take(&mut self.timers, id) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let written = call.rules.hold_timeout(call.request.tool.as_deref());
        let mut failure = self.failure(now, call, kind, Some(written));
        if kind == Kind::HoldTimeout {
            failure.limit = Some(waiting.patience);
        } else {
            (failure.limit, failure.setting) = (None, None);
        }
        failure.detail = Some(detail);
        failure.state = ServerState::NeverReached;
        self.fail(id, failure);
    }

    /// A call ends while it waits: nobody is asked about it any more.
    #[inline]
    pub(super) fn hold_ends(&mut self, id: CallId) {
        if self.holds.has(id) {
            self.take_question_back(id);
        }
    }

    #[cold]
    fn take_question_back(&mut self, id: CallId) {
        let Some(waiting) = self.holds.take(&mut self.timers, id) else { return };
        if let Some(hold) = waiting.number {
            self.submit(Pending::Noted, Write::AskAfter { hold, leave: Leave::Gone });
        }
    }
}
