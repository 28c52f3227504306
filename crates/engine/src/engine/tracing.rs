//! Which calls are parts of a trace, and what their servers are told of it.
//!
//! A call that is recorded is a span below that of its client, and each attempt is a span below that of the call. The
//! server is told the attempt's, so that what it records stands below the attempt: in `_meta` (SEP-414), and over HTTP in
//! the header, too. Where a request does not say to which trace it belongs, a new one begins. A trace that its client
//! does not have recorded is not recorded here either, and then nothing is changed.
//!
//! Without [`crate::Config::traces`] what a request says passes as it came: in `_meta` because nobody touches it, and in
//! its header because the header of its stream is kept.
//!
//! Not here: what `traceparent` means (`trace.rs`), how a request is changed (`seams.rs`).

use super::Engine;
use super::seams::{Mark, toward_server, toward_server_marked, trace_in};
use crate::calls::{Call, Request};
use crate::chance;
use crate::clients::{Client, Door, Way};
use crate::error::cut;
use crate::hash::IdMap;
use crate::http::{Head, TraceFields};
use crate::id::{AttemptId, JsonId, ServerId};
use crate::limits;
use crate::method::Method;
use crate::step::{Attempt, CallNo, Traced};
use crate::trace::{Context, SpanId, TraceId};
use crate::wire::{Edit, Field, Message};
use std::borrow::Cow;
use std::num::{NonZeroU64, NonZeroU128};

/// Calls that are recorded.
#[derive(Debug, Default)]
pub(super) struct Traces(IdMap<CallNo, Place>);

/// Where a call stands.
#[derive(Debug)]
struct Place {
    /// Its own span.
    context: Context,
    /// `tracestate`; may be empty.
    state: Box<str>,
}

impl Traces {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn has(&self, no: CallNo) -> bool {
        self.0.contains_key(&no)
    }

    /// A call is over.
    pub(super) fn end(&mut self, no: CallNo) {
        self.0.remove(&no);
    }

    /// What differs in the request of an attempt on its way to the server. Of a call that nobody follows this is not
    /// asked.
    #[cold]
    #[inline(never)]
    pub(super) fn toward_server(
        &self,
        seed: u64,
        (no, named): (CallNo, AttemptId),
        message: &Message,
        text: bool,
        method: &Method,
        attempt: AttemptId,
    ) -> Vec<Edit> {
        match self.mark(seed, no, named) {
            None => toward_server(message, text, method, attempt),
            Some(mark) => toward_server_marked(message, text, method, attempt, &mark),
        }
    }

    /// What the server of an attempt is told.
    fn mark(&self, seed: u64, no: CallNo, attempt: AttemptId) -> Option<Mark> {
        let place = self.0.get(&no)?;
        let context = Context { span: span(seed, no, attempt.0), ..place.context };
        Some(Mark { context, state: place.state.clone() })
    }
}

/// What the call itself has where its attempts have their numbers, which begin at 1; and the two halves of its trace.
const CALL: u64 = 0;
const HALVES: [u64; 2] = [u64::MAX, u64::MAX - 1];

/// The span of a call or of an attempt. An attempt is counted again if it has not left, so its number is its name.
fn span(seed: u64, no: CallNo, part: u64) -> SpanId {
    SpanId(NonZeroU64::new(chance::name(seed, no.0.get(), part)).unwrap_or(NonZeroU64::MIN))
}

fn new_trace(seed: u64, no: CallNo) -> TraceId {
    let [high, low] = HALVES.map(|part| u128::from(chance::name(seed, no.0.get(), part)));
    TraceId(NonZeroU128::new(high << 64 | low).unwrap_or(NonZeroU128::MIN))
}

impl Engine {
    /// A call begins that is told of: its place in a trace, if it is recorded.
    pub(super) fn enters_trace(
        &mut self,
        no: CallNo,
        request: &Request,
        message: Option<&Message>,
    ) -> Option<Box<Traced>> {
        if !self.config.traces {
            return None;
        }
        let said = self.said_of_trace(request, message);
        let parent = said.as_ref().and_then(|said| Context::parse(&said.parent));
        if parent.is_some_and(|parent| !parent.is_sampled()) {
            return None;
        }
        let context = self.own_context(no, parent);
        // Without a parent that is understood it belongs to nothing.
        let state = said.filter(|_| parent.is_some()).map(|said| said.state).unwrap_or_default();
        self.traces.0.insert(no, Place { context, state: state.clone() });
        let prompt = message.filter(|_| request.method == Method::PromptsGet);
        let prompt = prompt.and_then(|message| message.text(Field::ParamsName));
        let on_line = |client: &Client| matches!(client.door, Door::Line);
        Some(Box::new(Traced {
            context,
            parent: parent.map(|parent| parent.span),
            state,
            id: id_in_words(&request.id),
            prompt: prompt.map(|name| cut(&name, limits::NAME).into()),
            version: self.version_of(request, message),
            client_over_http: self.clients.get(&request.client).is_some_and(|client| !on_line(client)),
            server_over_http: self.is_remote(request.server),
        }))
    }

    fn own_context(&self, no: CallNo, parent: Option<Context>) -> Context {
        let seed = self.config.seed;
        let span = span(seed, no, CALL);
        match parent {
            Some(parent) => Context { span, ..parent },
            None => Context { trace: new_trace(seed, no), span, flags: Context::SAMPLED },
        }
    }

    /// To which trace a request says that it belongs. What the message says itself goes before its header.
    fn said_of_trace(&self, request: &Request, message: Option<&Message>) -> Option<TraceFields> {
        let own = message.and_then(|message| trace_in(message.raw(Field::ParamsMeta)?));
        own.or_else(|| self.header_of(request.way).cloned())
    }

    /// The revision of the protocol that a request is made in, as far as it is known.
    fn version_of(&self, request: &Request, message: Option<&Message>) -> Box<str> {
        let own = message.and_then(|message| message.text(Field::MetaProtocolVersion));
        let session = || Some(&*self.clients.get(&request.client)?.session()?.version);
        let agreed = || self.servers.get(&request.server)?.handshake.version.as_deref();
        own.as_deref()
            .or_else(session)
            .or_else(agreed)
            .map(|version| cut(version, limits::NAME).into())
            .unwrap_or_default()
    }

    /// An attempt as those who look on are told of it, if its call is recorded.
    pub(super) fn traced_attempt(&self, no: CallNo, id: AttemptId) -> Option<Attempt> {
        let mark = self.traces.mark(self.config.seed, no, id);
        mark.map(|mark| Attempt { span: mark.context.span, id })
    }
}

/// A request's id as a span shows it: a string without its quotes.
fn id_in_words(id: &JsonId) -> Box<str> {
    let raw = id.patch();
    let text = String::from_utf8_lossy(raw.as_slice());
    cut(text.trim_matches('"'), limits::NAME).into()
}

// The headers of HTTP.
impl Engine {
    /// The header of a request is kept for as long as its stream.
    pub(super) fn keep_trace(&mut self, way: Way, head: &Head) {
        if let (Some(said), Way::Stream(stream)) = (&head.trace, way) {
            self.clients.keeps_trace(stream, said.clone());
        }
    }

    fn header_of(&self, way: Way) -> Option<&TraceFields> {
        let Way::Stream(stream) = way else { return None };
        self.clients.stream(stream)?.trace.as_deref()
    }

    /// What the server of an attempt is told in the head of its request.
    #[inline]
    pub(super) fn add_trace(
        &self,
        server: ServerId,
        attempt: Option<AttemptId>,
        headers: &mut Vec<(Cow<'static, str>, Box<str>)>,
    ) {
        if self.config.traces || self.clients.has_heard_of_traces() {
            self.add_trace_of(server, attempt, headers);
        }
    }

    #[cold]
    fn add_trace_of(
        &self,
        server: ServerId,
        attempt: Option<AttemptId>,
        headers: &mut Vec<(Cow<'static, str>, Box<str>)>,
    ) {
        let call = attempt.and_then(|attempt| self.calls.get(self.calls.of(server, attempt)?));
        let Some(TraceFields { parent, state }) = call.and_then(|call| self.trace_fields(call)) else {
            return;
        };
        headers.push(("traceparent".into(), parent));
        if !state.is_empty() {
            headers.push(("tracestate".into(), state));
        }
    }

    fn trace_fields(&self, call: &Call) -> Option<TraceFields> {
        let told = call.request.no.zip(call.attempt());
        match told.and_then(|(no, attempt)| self.traces.mark(self.config.seed, no, attempt)) {
            Some(mark) => Some(TraceFields { parent: mark.context.to_string().into(), state: mark.state }),
            None => self.header_of(self.real_way(call).1).cloned(),
        }
    }
}
