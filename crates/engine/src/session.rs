//! What an HTTP client has that a stdio client has not: a session that outlives its connections, and
//! streams of events that outlive them too.

use crate::id::{ClientId, ExchangeId, StreamId};
use crate::limits;
use crate::record::Ticket;
use crate::time::Mono;
use crate::wire::Message;
use bytes::Bytes;
use std::collections::{BTreeSet, VecDeque};

/// A legacy client's session.
#[derive(Debug)]
pub(crate) struct Session {
    /// `Mcp-Session-Id`.
    pub(crate) id: Box<str>,
    /// The version it asked for, and later the one that was agreed on.
    pub(crate) version: Box<str>,
    /// How it said hello, as a number.
    pub(crate) hello: u64,
    /// Kept so that it can be woken on another process.
    pub(crate) initialize: Message,
    pub(crate) initialized: Option<Message>,
    /// It has been freed of everything but its name.
    pub(crate) asleep: bool,
    /// The stream that belongs to no request.
    pub(crate) standing: StreamId,
    /// All its streams, the oldest first.
    pub(crate) streams: BTreeSet<StreamId>,
    /// Bytes of events that are kept for a client that comes back.
    pub(crate) kept_bytes: usize,
    /// When it was last used.
    pub(crate) used: Mono,
    pub(crate) armed: Option<Mono>,
}

/// A stream of events to a client.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) client: ClientId,
    /// The connection that carries it now.
    pub(crate) exchange: Option<ExchangeId>,
    /// The response has begun.
    pub(crate) begun: bool,
    /// The session that the response names.
    pub(crate) names: Option<Box<str>>,
    /// Its events have ids, and can be asked for again.
    pub(crate) legacy: bool,
    /// Requests that are answered on it and are not settled.
    pub(crate) open: usize,
    /// The status of a response that is no stream.
    pub(crate) status: u16,
    /// The number of the last event.
    pub(crate) last: u64,
    /// The number of the last event that was written to some connection.
    pub(crate) written: u64,
    /// Events with their numbers, the oldest first.
    pub(crate) kept: VecDeque<(u64, Bytes)>,
    /// When its last request was settled.
    pub(crate) settled: Option<Mono>,
    /// The resume token of its only request.
    pub(crate) ticket: Option<Ticket>,
}

impl Stream {
    pub(crate) fn new(client: ClientId, exchange: Option<ExchangeId>, legacy: bool, open: usize) -> Stream {
        Stream {
            client,
            exchange,
            begun: false,
            names: None,
            legacy,
            open,
            status: 200,
            last: 0,
            written: 0,
            kept: VecDeque::new(),
            settled: None,
            ticket: None,
        }
    }

    /// Keeps an event for a client that comes back; how many bytes more are kept.
    pub(crate) fn keep(&mut self, number: u64, event: Bytes) -> isize {
        let mut change = event.len() as isize;
        self.kept.push_back((number, event));
        while self.kept.len() > limits::STREAM_EVENTS {
            change -= self.kept.pop_front().map_or(0, |(_, event)| event.len() as isize);
        }
        change
    }

    /// Bytes of events that it keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|(_, event)| event.len()).sum()
    }

    /// Whether all events after this one are still there.
    pub(crate) fn can_resume_after(&self, number: u64) -> bool {
        let first_kept = self.kept.front().map_or(self.last + 1, |(first, _)| *first);
        number <= self.last && first_kept <= number + 1
    }
}
