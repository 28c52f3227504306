//! Tells the steps of calls and servers to whoever looks on.
//!
//! A call that is told of has a number (`Request::no`). It gets it when it begins, or a second later if only slow calls
//! are told of, and keeps it for as long as it is open, whoever waits for it by then. Each hook on the way of a call
//! looks at that number first, so a call that nobody follows pays for nothing else.

use super::Engine;
use super::remote::error_code;
use crate::action::{Action, Note};
use crate::calls::{Call, EndedRequest, Request};
use crate::clients::Way;
use crate::durations::Durations;
use crate::era::Era;
use crate::error::cut;
use crate::http::SAME_USER;
use crate::id::{AttemptId, CallId, ServerId};
use crate::json;
use crate::limits;
use crate::method::Method;
use crate::policy::Policy;
use crate::servers::{Server, Waits};
use crate::step::{Began, CallNo, Ended, Observed, Outcome, ServerStep, ServerWhat, Step, What};
use crate::store::Measured;
use crate::wire::{Field, Message, Outgoing, Scanned, scan};
use std::num::NonZeroU64;
use std::time::Duration;

/// What is remembered between the steps.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// Calls that were told of.
    numbered: u64,
    /// How the call ends that is about to be settled.
    ends_as: Option<(CallNo, Outcome)>,
    /// How long tools took, for limits that adapt.
    durations: Durations,
}

impl Steps {
    /// What earlier processes have measured.
    pub(super) fn measured(&mut self, all: &[Measured]) {
        all.iter().for_each(|one| self.durations.join(&one.server, &one.tool, &one.tally));
    }

    fn number(&mut self) -> CallNo {
        self.numbered += 1;
        CallNo(NonZeroU64::MIN.saturating_add(self.numbered - 1))
    }
}

/// How a message begins that says how a tool failed. What has no such word in it is no failure.
const IS_ERROR: &[u8] = br#""isError""#;

// A call begins.
impl Engine {
    /// A call begins to be open, or to be refused.
    #[inline]
    pub(super) fn tell_of_new(&mut self, call: &mut Call, message: &Message) {
        match self.config.observed {
            Observed::Nothing => {}
            Observed::Slow => call.unseen = true,
            Observed::All => self.tell_began(call, message),
        }
    }

    #[cold]
    fn tell_began(&mut self, call: &mut Call, message: &Message) {
        let no = self.steps.number();
        call.request.no = Some(no);
        let mut began = self.began(&call.request, call.age(self.at));
        began.bytes = message.bytes.len() as u64;
        began.trace = self.enters_trace(no, &call.request, Some(message));
        self.step_of(no, What::Began(Box::new(began)));
        if matches!(call.request.way, Way::Ticket(_)) {
            self.step_of(no, What::BecameTask);
        }
    }

    /// A call has become so old that it is told of, and with it what has happened to it so far.
    #[cold]
    pub(super) fn tell_of_slow(&mut self, id: CallId) {
        reached!(SLOW if true);
        let no = self.steps.number();
        if !self.calls.is_numbered(id, no) {
            return;
        }
        let Some(call) = self.calls.get(id) else { return };
        let (attempt, server, ticket) =
            (u32::from(call.attempts), call.request.server, matches!(call.request.way, Way::Ticket(_)));
        let (sent, joined) = (call.attempt().is_some(), call.is_joined());
        let began = self.began(&call.request, call.age(self.at));
        let run = self.servers.get(&server).map(|server| server.run).unwrap_or_default();
        let hold = self.holds.get(id).and_then(|waiting| waiting.number);
        self.step_of(no, What::Began(Box::new(began)));
        match hold {
            Some(hold) => self.step_of(no, What::Held { hold }),
            None if joined => self.step_of(no, What::Joined { with: None }),
            None if sent => self.step_of(no, What::Sent { attempt, run, traced: None }),
            None => self.step_of(no, What::Queued),
        }
        if ticket {
            self.step_of(no, What::BecameTask);
        }
    }

    fn began(&self, request: &Request, ago: Duration) -> Began {
        Began {
            server: self.server_name(request.server),
            method: request.method.clone(),
            tool: request.tool.as_deref().map(|tool| cut(tool, limits::NAME).into()),
            client: self.client_in_words(request.client),
            principal: self.principal_in_words(request.client),
            bytes: 0,
            ago,
            trace: None,
        }
    }

    /// A call was refused before it was open.
    #[inline]
    pub(super) fn tell_of_refused(&mut self, call: &Call, kind: &'static str, answer: &Outgoing) {
        if self.config.observed == Observed::All {
            self.tell_refused(call, kind, answer);
        }
    }

    #[cold]
    fn tell_refused(&mut self, call: &Call, kind: &'static str, answer: &Outgoing) {
        let no = call.request.no.unwrap_or_else(|| {
            let no = self.steps.number();
            let mut began = self.began(&call.request, Duration::ZERO);
            began.trace = self.enters_trace(no, &call.request, None);
            self.step_of(no, What::Began(Box::new(began)));
            no
        });
        let took = call.age(self.at);
        self.tell_over(no, (Outcome::Failed(kind), took), Some(answer));
    }
}

// What happens to it.
impl Engine {
    pub(super) fn step_of(&mut self, no: CallNo, what: What) {
        self.act(Action::Step(Step::Call(no, what)));
    }

    /// Something happened to a call.
    #[inline]
    pub(super) fn step(&mut self, id: CallId, what: impl FnOnce() -> What) {
        if self.config.observed != Observed::Nothing
            && let Some(no) = self.calls.get(id).and_then(|call| call.request.no)
        {
            self.step_of(no, what());
        }
    }

    /// An attempt of a call was sent.
    #[cold]
    pub(super) fn tell_sent(&mut self, no: CallNo, server: ServerId, attempts: u16, attempt: AttemptId) {
        let run = self.servers.get(&server).map(|server| server.run).unwrap_or_default();
        let traced = self.traced_attempt(no, attempt);
        self.step_of(no, What::Sent { attempt: attempts.into(), run, traced });
    }

    /// The words with which a server reports.
    pub(super) fn tell_words(&mut self, id: CallId, message: &Message) {
        self.step(id, || {
            let words = message.raw(Field::Params).and_then(|params| json::member(params, "message"));
            let words = words.and_then(|raw| serde_json::from_slice::<String>(raw).ok());
            What::Progress { message: words.map(|words| cut(&words, limits::NAME).into()) }
        });
    }

    /// A person is asked for a call; or is not any more. Where it is not known for which, it may be for any.
    pub(super) fn tell_asked(&mut self, server: ServerId, waits: Waits, what: &What) {
        if self.config.observed == Observed::Nothing {
            return;
        }
        let calls = match waits {
            Waits::Nobody => Vec::new(),
            Waits::Call(call) => vec![call],
            Waits::Server => self.calls.at(server, true),
        };
        for id in calls {
            self.step(id, || what.clone());
        }
    }
}

// A call ends.
impl Engine {
    /// Says how a call ends that is about to be settled.
    #[inline]
    pub(super) fn ends_as(&mut self, id: CallId, outcome: impl FnOnce() -> Outcome) {
        if self.config.observed != Observed::Nothing
            && let Some(no) = self.calls.get(id).and_then(|call| call.request.no)
        {
            self.steps.ends_as = Some((no, outcome()));
        }
    }

    /// A call is over.
    #[inline]
    pub(super) fn tell_of_end(&mut self, ended: &EndedRequest, answer: Option<&Outgoing>) {
        if let Some(no) = ended.no {
            let took = ended.age(self.at);
            let outcome = self.tell_ended(no, took, answer);
            if self.adapts {
                self.learn_duration(ended, took, outcome);
            }
        }
    }

    #[cold]
    fn tell_ended(&mut self, no: CallNo, took: Duration, answer: Option<&Outgoing>) -> Outcome {
        let known = self.steps.ends_as.take().filter(|(of, _)| *of == no).map(|(_, outcome)| outcome);
        // What was given up went on for somebody else, if it is answered now.
        let given_up = |outcome: &Outcome| matches!(outcome, Outcome::Cancelled | Outcome::Left);
        let known = known.filter(|outcome| answer.is_none() || !given_up(outcome));
        let outcome = known.or_else(|| answer.map(outcome_of)).unwrap_or(Outcome::Left);
        self.tell_over(no, (outcome, took), answer);
        outcome
    }

    fn tell_over(&mut self, no: CallNo, (outcome, took): (Outcome, Duration), answer: Option<&Outgoing>) {
        let failed = matches!(outcome, Outcome::Error | Outcome::Failed(_));
        let code = answer.filter(|_| failed && self.traces.has(no)).and_then(code_of);
        if !planted!(self, KeepsTraces) {
            self.traces.end(no);
        }
        let bytes = answer.map_or(0, Outgoing::len) as u64;
        self.step_of(no, What::Ended(Ended { outcome, took, bytes, code }));
    }

    #[cold]
    fn learn_duration(&mut self, request: &Request, took: Duration, outcome: Outcome) {
        if let Some(tool) = request.tool.as_deref() {
            let server = self.server_name(request.server);
            self.steps.durations.add(&server, tool, took, outcome);
        }
    }

    /// The timeout of a call follows what was measured, if a person wants that.
    #[cold]
    pub(super) fn adapt(&self, policy: &mut Policy, server: &Server, tool: Option<&str>) {
        let tally = tool.and_then(|tool| self.steps.durations.of(&server.config.name, tool));
        let limit = tally.and_then(|tally| server.config.rules.adapted(tool, tally));
        if let Some(limit) = limit {
            policy.adapt(limit);
        }
    }

    /// A request leaves the call that it shares with others.
    pub(super) fn tell_parted(&mut self, request: &Request, took: Duration) {
        if let Some(no) = request.no {
            self.tell_ended(no, took, None);
        }
    }
}

// Servers.
impl Engine {
    /// What a note says of a server.
    #[cold]
    pub(super) fn step_in(&mut self, note: &Note) {
        let (server, what) = match note {
            Note::Started { server, run } => (server, ServerWhat::Started { run: *run }),
            Note::Exited { server, exit } => (server, ServerWhat::Ended { exit: *exit }),
            Note::Restarting { server, why, .. } => (server, ServerWhat::Restarting { why }),
            Note::Down { server, why, .. } => (server, ServerWhat::Failed { why: (*why).into() }),
            Note::StartFailed { command, why } => {
                (command, ServerWhat::Failed { why: why.to_string().into() })
            }
            _ => return,
        };
        self.act(Action::Step(Step::Server(ServerStep { server: server.clone(), what })));
    }

    /// A server has answered its handshake.
    pub(super) fn tell_ready(&mut self, id: ServerId, method: &Method, result: &[u8]) {
        if self.config.observed == Observed::Nothing {
            return;
        }
        let era = if Era::of_handshake(method) == Some(Era::Modern) { "modern" } else { "legacy" };
        let version = what_it_is(result);
        self.servers.calls_itself(id, version.clone());
        let step = ServerStep { server: self.server_name(id), what: ServerWhat::Ready { era, version } };
        self.act(Action::Step(Step::Server(step)));
    }

    /// Whose calls these are, for people: the name of a token. A session's id is a secret.
    pub(super) fn principal_in_words(&self, client: crate::id::ClientId) -> Box<str> {
        let principal = self.clients.get(&client).and_then(|client| client.principal.clone());
        principal.filter(|name| **name != *SAME_USER).unwrap_or_default()
    }
}

/// How an answer says that its call went.
pub(super) fn outcome_in(message: &Message) -> Outcome {
    match message.raw(Field::Result) {
        None => Outcome::Error,
        Some(result) if says_error(result) => Outcome::ToolError,
        Some(_) => Outcome::Answered,
    }
}

fn says_error(result: &[u8]) -> bool {
    memchr::memmem::find(result, IS_ERROR).is_some() && json::member(result, "isError") == Some(b"true")
}

fn outcome_of(answer: &Outgoing) -> Outcome {
    match scan(answer.to_vec().into()) {
        Ok(Scanned::Message(message)) => outcome_in(&message),
        _ => Outcome::Answered,
    }
}

/// The code of an error.
fn code_of(answer: &Outgoing) -> Option<i64> {
    match scan(answer.to_vec().into()) {
        Ok(Scanned::Message(message)) => error_code(&message),
        _ => None,
    }
}

/// `serverInfo` in words.
fn what_it_is(result: &[u8]) -> Box<str> {
    let modern = || json::member(json::member(result, "_meta")?, "io.modelcontextprotocol/serverInfo");
    let info = json::member(result, "serverInfo").or_else(modern).unwrap_or_default();
    let text = |name: &str| -> Option<String> { serde_json::from_slice(json::member(info, name)?).ok() };
    let name = text("name").unwrap_or_default();
    let whole = [name, text("version").unwrap_or_default()].join(" ");
    cut(whole.trim(), limits::NAME).into()
}
