//! Traces for an OpenTelemetry collector: each call is a span, and each attempt of it one below that.
//!
//! This part follows calls by their steps, under the driver's lock, and makes spans of those that are over. What leaves
//! waits in a queue with a bound ([`MOST`]); a thread of its own sends it (`sender.rs`), so that neither a slow nor a dead
//! collector costs a call anything. What is lost is counted, and the log says so.
//!
//! A span never holds arguments, results, progress, uris of resources, or the id of a session.
//!
//! Not here: which call stands in which trace (`engine/tracing.rs`), how a span is written (`span.rs`).

mod sender;
mod span;
#[cfg(test)]
mod tests;

pub use sender::{Collector, endpoint};

use super::backlog::Backlog;
use outlast_engine::hash::IdMap;
use outlast_engine::step::{Attempt, Began, CallNo, Ended, Outcome, Step, Traced, What};
use outlast_engine::{Mono, Now};
use span::{Event, Kind, Span, Value};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of spans that may wait. More: lost, and counted.
const MOST: usize = 4 << 20;

/// Spans that are sent at once.
const BATCH: usize = 512;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_secs(1);

/// Events and attempts of one call that are kept. More: counted.
const EVENTS: usize = 32;
const ATTEMPTS: usize = 32;

/// How the log is told something; from whatever thread.
pub type Warn = Box<dyn Fn(String) + Send>;

/// Makes spans of calls.
#[derive(Debug)]
pub struct Otlp {
    open: IdMap<CallNo, Open>,
    spans: Arc<Backlog<Span>>,
    /// Until the thread runs.
    collector: Option<Collector>,
    /// How many lost spans have been told of.
    told: u64,
}

/// A call that is not over.
#[derive(Debug)]
struct Open {
    began: Began,
    traced: Traced,
    /// When it began: on the wall, in nanoseconds, and for what follows.
    start: u64,
    at: Mono,
    attempts: Vec<Sent>,
    /// Attempts in all.
    sent: u32,
    events: Vec<Event>,
    dropped: u32,
    keep_alives: u32,
}

/// An attempt.
#[derive(Debug)]
struct Sent {
    nth: u32,
    run: u32,
    traced: Attempt,
    start: u64,
    /// When it was given up, and why.
    over: Option<(u64, &'static str)>,
}

impl Otlp {
    /// Spans for a collector. Nothing is sent yet.
    pub fn new(collector: Collector) -> Otlp {
        let spans = Arc::new(Backlog::new(MOST, BATCH));
        Otlp { open: IdMap::default(), spans, collector: Some(collector), told: 0 }
    }

    /// From now on spans are sent, in the name of this process.
    pub fn start(&mut self, process: &str, warn: Warn) {
        if let Some(collector) = self.collector.take() {
            sender::spawn(self.spans.clone(), collector, process, warn);
        }
    }

    /// Something happened.
    pub fn step(&mut self, now: Now, step: &Step) {
        let Step::Call(no, what) = step else { return };
        match what {
            What::Began(began) => {
                if let Some(traced) = &began.trace {
                    self.open.insert(*no, Open::new(now, began, traced));
                }
            }
            What::Ended(ended) => {
                if let Some(open) = self.open.remove(no) {
                    open.ends(now, *ended, &self.spans);
                }
            }
            what => {
                if let Some(open) = self.open.get_mut(no) {
                    open.step(now, what);
                }
            }
        }
    }

    /// How many spans are lost, if that is to be told: the first, then each time there are ten times as many, and at the
    /// end.
    pub fn lost(&mut self, at_the_end: bool) -> Option<u64> {
        let lost = self.spans.lost();
        let least = if at_the_end { self.told + 1 } else { (self.told * 10).max(1) };
        let news = lost >= least;
        self.told = if news { lost } else { self.told };
        news.then_some(lost)
    }

    /// What is still to be sent, if anybody sends it.
    pub fn last_spans(&self) -> Option<LastSpans> {
        self.collector.is_none().then(|| LastSpans(self.spans.clone()))
    }
}

/// Spans at the end.
#[derive(Debug)]
pub struct LastSpans(Arc<Backlog<Span>>);

impl LastSpans {
    /// Waits a short while until they are sent; what is not sent then is lost.
    pub fn finish(&self) {
        self.0.finish(LAST);
    }
}

impl Open {
    fn new(now: Now, began: &Began, traced: &Traced) -> Open {
        Open {
            began: Began { trace: None, ..began.clone() },
            traced: traced.clone(),
            start: now.wall.before(began.ago).0.saturating_mul(1_000_000),
            at: now.mono - began.ago,
            attempts: Vec::new(),
            sent: 0,
            events: Vec::new(),
            dropped: 0,
            keep_alives: 0,
        }
    }

    /// A moment on the wall, in nanoseconds.
    fn moment(&self, now: Now) -> u64 {
        let since = now.mono.since(self.at).as_nanos();
        self.start.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    fn step(&mut self, now: Now, what: &What) {
        match what {
            What::Sent { attempt, run, traced: Some(traced) } => self.is_sent(now, *attempt, run.0, *traced),
            What::Retried { why } => self.gives_attempt_up(now, why),
            What::Queued => self.gives_attempt_up(now, "it did not leave"),
            // Who was told how often is a number; one of them has a time.
            What::KeepAlive => self.keep_alives += 1,
            _ => {}
        }
        let is_event = match what {
            What::Sent { .. } | What::Progress { .. } | What::Began(_) | What::Ended(_) => false,
            What::KeepAlive => self.keep_alives == 1,
            _ => true,
        };
        if is_event {
            self.add_event(now, what);
        }
    }

    fn is_sent(&mut self, now: Now, nth: u32, run: u32, traced: Attempt) {
        self.gives_attempt_up(now, "it was sent again");
        self.sent += 1;
        if self.attempts.len() < ATTEMPTS {
            let start = self.moment(now);
            self.attempts.push(Sent { nth, run, traced, start, over: None });
        }
    }

    fn gives_attempt_up(&mut self, now: Now, why: &'static str) {
        let at = self.moment(now);
        if let Some(last) = self.attempts.last_mut().filter(|last| last.over.is_none()) {
            last.over = Some((at, why));
        }
    }

    fn add_event(&mut self, now: Now, what: &What) {
        if self.events.len() == EVENTS {
            self.dropped += 1;
            return;
        }
        let attributes = match what {
            What::Retried { why } => vec![("outlast.reason", (*why).into())],
            What::Decided { yes, place, .. } => {
                vec![("outlast.approved", Value::Truth(*yes)), ("outlast.place", (&**place).into())]
            }
            What::CancelAsked { by } => vec![("outlast.by", (&**by).into())],
            _ => Vec::new(),
        };
        self.events.push(Event { at: self.moment(now), name: what.word(), attributes });
    }

    fn ends(mut self, now: Now, ended: Ended, spans: &Backlog<Span>) {
        let end = self.moment(now);
        let mut all: Vec<Span> = self.attempts.iter().map(|sent| self.span_of(sent, end, ended)).collect();
        all.insert(0, self.own_span(end, ended));
        for span in all {
            let weight = span.weight();
            spans.push(span, weight);
        }
    }

    /// The call as its client sees it.
    fn own_span(&mut self, end: u64, ended: Ended) -> Span {
        let Open { began, traced, .. } = &*self;
        let mut attributes = self.common(&traced.id, traced.client_over_http);
        attributes.extend(failure_of(ended));
        attributes.push(("outlast.outcome", ended.outcome.word().into()));
        attributes.push(("outlast.attempts", Value::Number(self.sent.into())));
        for (name, text) in [("outlast.client", &began.client), ("outlast.principal", &began.principal)] {
            if !text.is_empty() {
                attributes.push((name, (&**text).into()));
            }
        }
        if self.keep_alives > 0 {
            attributes.push(("outlast.keep_alives", Value::Number(self.keep_alives.into())));
        }
        Span {
            context: traced.context,
            parent: traced.parent,
            state: traced.state.clone(),
            name: self.name(),
            kind: Kind::Server,
            start: self.start,
            end,
            attributes,
            failed: failed(ended.outcome).then_some(""),
            events: std::mem::take(&mut self.events),
            dropped: self.dropped,
        }
    }

    /// One attempt, as its server sees it.
    fn span_of(&self, sent: &Sent, end: u64, ended: Ended) -> Span {
        let Open { traced, .. } = self;
        let mut attributes = self.common(&sent.traced.id.on_wire().to_string(), traced.server_over_http);
        let failed = match sent.over {
            Some((_, why)) => {
                attributes.push(("error.type", "_OTHER".into()));
                Some(why)
            }
            None => {
                attributes.extend(failure_of(ended));
                failed(ended.outcome).then_some("")
            }
        };
        attributes.push(("outlast.attempt", Value::Number(sent.nth.into())));
        attributes.push(("outlast.run", Value::Number(sent.run.into())));
        Span {
            context: outlast_engine::trace::Context { span: sent.traced.span, ..traced.context },
            parent: Some(traced.context.span),
            state: traced.state.clone(),
            name: self.name(),
            kind: Kind::Client,
            start: sent.start,
            end: sent.over.map_or(end, |(at, _)| at),
            attributes,
            failed,
            events: Vec::new(),
            dropped: 0,
        }
    }

    /// `tools/call TOOL`, `prompts/get PROMPT`, or the method.
    fn name(&self) -> Box<str> {
        let method = self.began.method.as_str();
        match self.began.tool.as_deref().or(self.traced.prompt.as_deref()) {
            Some(target) => format!("{method} {target}").into(),
            None => method.into(),
        }
    }

    /// What both kinds of spans say, by the semantic conventions for MCP.
    fn common(&self, id: &str, over_http: bool) -> Vec<(&'static str, Value)> {
        let Open { began, traced, .. } = self;
        let mut all = Vec::with_capacity(16);
        all.push(("mcp.method.name", began.method.as_str().into()));
        if let Some(tool) = began.tool.as_deref() {
            all.push(("gen_ai.operation.name", "execute_tool".into()));
            all.push(("gen_ai.tool.name", tool.into()));
        }
        if let Some(prompt) = traced.prompt.as_deref() {
            all.push(("gen_ai.prompt.name", prompt.into()));
        }
        all.push(("jsonrpc.request.id", id.into()));
        if !traced.version.is_empty() {
            all.push(("mcp.protocol.version", (&*traced.version).into()));
        }
        all.push(("network.transport", if over_http { "tcp" } else { "pipe" }.into()));
        if over_http {
            all.push(("network.protocol.name", "http".into()));
            all.push(("network.protocol.version", "1.1".into()));
        }
        all.push(("outlast.server", (&*began.server).into()));
        all
    }
}

/// Whether a span is marked as failed: what its client gave up is not, and neither is what a person declined.
fn failed(outcome: Outcome) -> bool {
    outcome.is_failure()
}

/// How a failure is told by the semantic conventions.
fn failure_of(ended: Ended) -> impl Iterator<Item = (&'static str, Value)> {
    let code = ended.code.map(|code| code.to_string());
    let kind = match ended.outcome {
        Outcome::ToolError => Some("tool_error"),
        Outcome::Error => Some(code.as_deref().unwrap_or("_OTHER")),
        Outcome::Failed(kind) => Some(kind),
        Outcome::Answered | Outcome::Cancelled | Outcome::Left | Outcome::Declined => None,
    };
    let kind = kind.map(|kind| ("error.type", kind.into()));
    kind.into_iter().chain(code.map(|code| ("rpc.response.status_code", (&*code).into())))
}
