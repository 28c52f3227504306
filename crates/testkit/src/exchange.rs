//! HTTP clients as the engine sees them: their requests, and what may never come back on one.
//!
//! Every world with such clients plays with these. What holds for any of them is asserted here: one
//! response to a request, nothing after its end or after a hang-up, events only on a stream, and no
//! success with a session of somebody else.

use bytes::Bytes;
use outlast_engine::Event;
use outlast_engine::event::Line;
use outlast_engine::http::{Body, Head, Response};
use outlast_engine::id::ExchangeId;
use outlast_engine::wire::{Field, Scanned};

/// Who has a token.
pub(crate) const NAMES: [&str; 2] = ["alice", "bob"];

/// The revision without sessions.
pub(crate) const MODERN: &str = "2026-07-28";

/// A client's request and what became of it.
#[derive(Debug, Default)]
pub(crate) struct Exchange {
    principal: Option<Box<str>>,
    session: Option<Box<str>>,
    pub(crate) response: Option<u16>,
    streams: bool,
    finished: bool,
    pub(crate) gone: bool,
}

impl Exchange {
    /// Something may still come.
    pub(crate) fn is_open(&self) -> bool {
        !self.gone && !self.finished && (self.response.is_none() || self.streams)
    }
}

/// Every request of every client, and whose each session is.
#[derive(Debug, Default)]
pub(crate) struct Exchanges {
    all: Vec<Exchange>,
    pub(crate) sessions: Vec<(Box<str>, Option<Box<str>>)>,
}

impl Exchanges {
    /// A client sends a request with this head.
    pub(crate) fn open(&mut self, head: &Head, modern: bool) -> ExchangeId {
        // A modern request stands for itself, whatever session it names.
        let session = head.session.clone().filter(|_| !modern);
        self.all.push(Exchange { principal: head.principal.clone(), session, ..Exchange::default() });
        ExchangeId(self.all.len() as u64 - 1)
    }

    pub(crate) fn all(&self) -> &[Exchange] {
        &self.all
    }

    /// A client hangs up, if there is anything to hang up.
    pub(crate) fn hang_up(&mut self, id: ExchangeId) -> Option<Event> {
        let exchange = self.all.get_mut(id.0 as usize).filter(|exchange| exchange.is_open())?;
        exchange.gone = true;
        Some(Event::HungUp(id))
    }

    fn listening(&mut self, id: ExchangeId) -> &mut Exchange {
        let exchange = &mut self.all[id.0 as usize];
        assert!(!exchange.gone, "something for a client that has hung up: {id:?}");
        exchange
    }

    pub(crate) fn respond(&mut self, id: ExchangeId, response: &Response) {
        let exchange = self.listening(id);
        let before = exchange.response.replace(response.status);
        assert_eq!(before, None, "a second response to {id:?}");
        exchange.streams = response.body == Body::Events;
        let principal = exchange.principal.clone();
        let session = exchange.session.clone().filter(|_| response.session.is_none());
        let owner = self.sessions.iter().find(|(name, _)| Some(name) == session.as_ref());
        if let Some((_, owner)) = owner.filter(|(_, owner)| *owner != principal) {
            assert!(response.status >= 400, "{principal:?} used a session of {owner:?}");
        }
        self.sessions.extend(response.session.clone().map(|name| (name, principal)));
    }

    pub(crate) fn write(&mut self, id: ExchangeId) {
        let exchange = self.listening(id);
        assert!(exchange.streams && !exchange.finished, "events on a stream that is not open: {id:?}");
    }

    pub(crate) fn finish(&mut self, id: ExchangeId) {
        let exchange = self.listening(id);
        assert!(exchange.streams, "the end of what is no stream: {id:?}");
        assert!(!std::mem::replace(&mut exchange.finished, true), "a stream ended twice: {id:?}");
    }
}

/// Copies into a head what it mirrors of a message.
pub(crate) fn mirror(head: &mut Head, line: &Line) {
    if let Ok(Scanned::Message(message)) = line {
        head.method = message.text(Field::Method).map(|method| (&*method).into());
        head.name = message.text(Field::ParamsName).map(|name| (&*name).into());
    }
}

/// One event as a client reads it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    pub(crate) id: Option<String>,
    pub(crate) retry: Option<u64>,
    pub(crate) data: Option<Bytes>,
}

/// Takes apart what was written to a stream at once. Comments are no events.
pub(crate) fn read(written: &Bytes) -> Vec<Read> {
    let mut events = Vec::new();
    let mut event = Read::default();
    for line in written.split(|byte| *byte == b'\n') {
        let text = || String::from_utf8_lossy(line);
        if line.is_empty() {
            if event != Read::default() {
                events.push(std::mem::take(&mut event));
            }
        } else if let Some(data) = line.strip_prefix(b"data: ") {
            event.data = Some(written.slice_ref(data));
        } else if let Some(id) = text().strip_prefix("id: ") {
            event.id = Some(id.to_owned());
        } else if let Some(retry) = text().strip_prefix("retry: ") {
            event.retry = Some(retry.parse().expect("milliseconds"));
        } else {
            assert!(line.starts_with(b":"), "no line of an event: {line:?}");
        }
    }
    assert_eq!(event, Read::default(), "half an event");
    events
}
