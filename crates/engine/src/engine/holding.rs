//! Calls that wait for a person's yes before they are sent.
//!
//! A held call is admitted and open like any other: it counts, it can be cancelled, becomes a task or is handed off,
//! and its client is told that it lives. It is only not sent. Its own clock stands still; `max` runs. The question is
//! in the store, so that it can be decided wherever the person is; whoever decides writes there, and nothing else
//! decides. So a call is sent on a yes that is stored and used up, or not at all.
//!
//! Not here: what a yes is good for (`hold.rs`), where a held call stands (`holds.rs`), how its client is asked
//! (`holding/client.rs`).

mod client;

pub(super) use client::declares_elicitation;

use super::Engine;
use super::begin::Planned;
use super::ledger::Pending;
use super::tasks::named;
use crate::action::Note;
use crate::calls::{Call, Request};
use crate::clients::{Door, Open, Way};
use crate::error::{Kind, ServerState, cut};
use crate::hold::{Decision, Leave, NewHold, Standing};
use crate::holds::{Asking, Waiting};
use crate::id::{CallId, ClientId};
use crate::limits;
use crate::method::Method;
use crate::policy::{HoldRule, Rules};
use crate::redact::redact_also;
use crate::step::{Outcome, What};
use crate::store::{Done, Found, Loaded, Query, Stored, Write};
use crate::time::Mono;
use crate::wire::{Message, Outgoing};
use serde_json::json;
use std::time::Duration;

/// A client that cannot be kept patient is assumed to give up after a minute; a little before, its call fails.
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
        call.request.method == Method::ToolsCall
            && (!call.rules.is_empty() || matches!(call.request.way, Way::Ticket(_)))
            && self.is_held(call)
    }

    #[inline(never)]
    fn is_held(&self, call: &Call) -> bool {
        !call.is_orphaned() && (self.was_held(call) || self.is_held_by(&call.rules, &call.request))
    }

    fn is_held_by(&self, rules: &Rules, request: &Request) -> bool {
        let tool = request.tool.as_deref();
        let harmless = || {
            let server = self.servers.get(&request.server);
            server.zip(tool).is_some_and(|(server, tool)| server.harmless.contains(tool))
        };
        match rules.hold(tool) {
            HoldRule::Never => false,
            HoldRule::Always => true,
            HoldRule::Destructive => !harmless(),
        }
    }

    /// Whether an earlier process has held a call, and never sent it.
    fn was_held(&self, call: &Call) -> bool {
        match call.request.way {
            Way::Ticket(no) => self.tickets.get(no).is_some_and(|task| task.body.held),
            _ => false,
        }
    }

    /// Whether a call that gets a ticket now waits for a person, or will as soon as it begins.
    pub(super) fn waits_for_a_yes(&self, request: &Request) -> bool {
        let open = self.clients.get(&request.client).and_then(|client| client.named(&request.id.key()));
        if let Some(Open::Call(id)) = open {
            return self.holds.has(id);
        }
        let server = self.servers.get(&request.server);
        request.method == Method::ToolsCall
            && server.is_some_and(|server| self.is_held_by(&server.config.rules, request))
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
        let brought = self.brought_word(call.request.client, &call.rules, message);
        let (message, asking) = match &brought {
            Some((plain, asking)) => (plain, asking.clone()),
            None => (message, Asking::Not),
        };
        if let Some(kept) = call.kept_for_task.as_mut().filter(|_| brought.is_some()) {
            **kept = message.owned();
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
            approved: false,
            asking,
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
            principal: self.principal_of_request(request),
            server: definition.identity.clone(),
            name: definition.name.clone(),
            tool: request.tool.clone().unwrap_or_default(),
            arguments: self.as_shown(arguments),
            client: self.client_in_words(request.client),
            session: self.session_of_holds(request.client),
            keep,
        }
    }

    /// Whose a call is; the client of one that was taken over from another process is not here.
    fn principal_of_request(&self, request: &Request) -> Box<str> {
        let task = match request.way {
            Way::Ticket(no) => self.tickets.get(no),
            _ => None,
        };
        task.map_or_else(|| self.principal_of(request.client), |task| task.principal.clone())
    }

    /// Arguments as a person may see them.
    fn as_shown(&self, arguments: &[u8]) -> Box<str> {
        let Ok(value) = serde_json::from_slice(arguments) else { return "".into() };
        let text = redact_also(value, &self.config.redact).to_string();
        reached!(HELD_ARGUMENTS if text.len() > limits::HELD_ARGUMENTS);
        cut(&text, limits::HELD_ARGUMENTS).into()
    }

    /// What a client calls itself.
    pub(super) fn client_in_words(&self, client: ClientId) -> Box<str> {
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
            Some(Standing::Granted(_)) => self.was_granted(now, id),
            Some(Standing::Asked(_)) if planted!(self, SendsUnasked) => self.release(now, id),
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
        let Some(waiting) = self.holds.is_asked(id, number) else {
            // The call is gone.
            self.submit(Pending::Noted, Write::AskAfter { hold: number, leave: Leave::Gone });
            return;
        };
        let patience = waiting.patience;
        if let Asking::Said(verdict) = &waiting.asking {
            let verdict = (**verdict).clone();
            return self.say_for_client(id, number, verdict);
        }
        let Some(call) = self.calls.get(id) else { return };
        let (server, tool) = (self.server_name(call.request.server), call.name().into());
        self.step(id, || What::Held { hold: number });
        self.note(Note::HoldAsked { server, tool, hold: number, patience });
        self.call_back_about_hold(id);
        self.ask_client(id, number);
    }

    /// Somebody has said yes already. A no of the client itself counts all the same: it is its call.
    fn was_granted(&mut self, now: Mono, id: CallId) {
        let refused = match self.holds.get(id).map(|waiting| &waiting.asking) {
            Some(Asking::Said(verdict)) if !verdict.yes => Some(verdict.reason.clone()),
            _ => None,
        };
        match refused {
            Some(reason) => self.decline(id, &reason),
            None => {
                self.step(id, || What::Decided { yes: true, by: "".into(), place: "an earlier yes".into() });
                self.release(now, id);
            }
        }
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
        if waiting.approved {
            return;
        }
        let closing = waiting.closing;
        let decision = outcome.as_ref().ok().and_then(|committed| match committed.done.last() {
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
        self.step(id, || What::Decided { yes, by: by.clone(), place: place.clone() });
        self.note(Note::HoldDecided { server, tool, yes, by, place, reason: reason.clone() });
        if yes || planted!(self, SendsDeclined) { self.release(now, id) } else { self.decline(id, &reason) }
    }
}

// How it ends.
impl Engine {
    /// A person said yes: the call is sent, once the record of its ticket says no longer that it never was. Otherwise the
    /// next process would take it for one that may still be sent.
    fn release(&mut self, now: Mono, id: CallId) {
        let task = self.tickets.numbers(|task| task.call == Some(id) && task.body.held).pop();
        let Some(no) = task.filter(|_| !planted!(self, SendsUnmarked)) else {
            return self.send_approved(now, id);
        };
        self.holds.is_approved(id);
        // One whose record is still being made goes on when that is there.
        if let Some(change) = self.tickets.change_body(no, |body| body.held = false) {
            self.submit(Pending::Released(id), Write::Change(Box::new(change)));
        }
    }

    /// The record of a ticket is there, or there is none.
    pub(super) fn approved_goes_on(&mut self, now: Mono, id: CallId) {
        if self.holds.get(id).is_some_and(|waiting| waiting.approved) {
            self.release(now, id);
        }
    }

    /// The record of a call says that it is sent, or could not be changed.
    pub(super) fn release_was_stored(&mut self, now: Mono, id: CallId, outcome: &Stored) {
        match outcome {
            Ok(_) => self.send_approved(now, id),
            Err(why) => {
                self.fail_held(now, id, Kind::Overloaded, format!("its start could not be stored: {why}"))
            }
        }
    }

    fn send_approved(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.stop_holding(id) else { return };
        let Some(call) = self.calls.get(id) else { return };
        let Some(clock) = self.servers.get(&call.request.server).map(|server| server.clock) else { return };
        self.calls.release(now, id, &clock);
        if self.bounded {
            self.approved_takes_passage(now, id);
        } else {
            self.try_again(now, id);
        }
        if planted!(self, SendsApprovedTwice) {
            self.try_again(now, id);
        }
        if waiting.kept_for_this {
            self.calls.keep_no_longer(id);
        }
    }

    /// A person said no: the model is told, so that it can act on that.
    fn decline(&mut self, id: CallId, reason: &str) {
        self.stop_holding(id);
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
        self.ends_as(id, || Outcome::Declined);
        self.settle(id, Some(Outgoing::plain(answer.concat())));
    }

    /// The time of a held call is over. What was said in the last moment still counts.
    pub(super) fn hold_is_over(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.holds.get(id) else { return };
        if waiting.approved {
            return self.calls.retry_at(id, now + LAST_WORD);
        }
        let leave = waiting.stays_open.map_or(Leave::Gone, Leave::Open);
        let Some(hold) = self.holds.closes(id) else {
            return self.by_a_limit(|engine| engine.fail_hold(now, id));
        };
        self.submit(Pending::AskedAfter(id), Write::AskAfter { hold, leave });
        self.calls.retry_at(id, now + LAST_WORD);
        self.arm_call(now, id);
    }

    fn fail_hold(&mut self, now: Mono, id: CallId) {
        let Some(waiting) = self.holds.get(id) else { return };
        let detail = match (waiting.number, waiting.stays_open) {
            (Some(number), Some(_)) => {
                format!(
                    "it may leave at 60s; `outlast holds approve {number}` within 10m lets the same call pass"
                )
            }
            _ => "`outlast holds approve NUMBER` approves the next one".to_owned(),
        };
        self.fail_held(now, id, Kind::HoldTimeout, detail);
    }

    fn fail_held(&mut self, now: Mono, id: CallId, kind: Kind, detail: String) {
        let Some(waiting) = self.stop_holding(id) else { return };
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
        let Some(waiting) = self.stop_holding(id) else { return };
        if let Some(hold) = waiting.number.filter(|_| !planted!(self, KeepsQuestions)) {
            self.submit(Pending::Noted, Write::AskAfter { hold, leave: Leave::Gone });
        }
    }
}
