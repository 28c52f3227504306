//! What an HTTP client has that a stdio client has not: a session that outlives its connections, and
//! streams of events that outlive them too.

mod setup;

pub(crate) use setup::Setup;

use super::Way;
use crate::hex;
use crate::http::TraceFields;
use crate::id::{ClientId, ExchangeId, StreamId};
use crate::in_order::InOrder;
use crate::limits;
use crate::record::Ticket;
use crate::time::Mono;
use crate::wire::{Field, Message};
use bytes::Bytes;
use std::collections::VecDeque;
use std::fmt;

/// A legacy client's session.
#[derive(Debug)]
pub(crate) struct Session {
    /// `Mcp-Session-Id`.
    pub(crate) id: Box<str>,
    /// What the ids of its events begin with: unguessable, and another one in every process.
    pub(crate) mark: Box<str>,
    /// When it was last stored.
    pub(crate) stored: Mono,
    /// The epoch in which this process owns it in the store.
    pub(crate) epoch: u64,
    /// When that was last known.
    pub(crate) confirmed: Mono,
    /// Another process owns it: it is not found by its name here, and ends with its last call.
    pub(crate) disowned: bool,
    /// The version it asked for, and later the one that was agreed on.
    pub(crate) version: Box<str>,
    /// How it opened its handshake, as a number.
    pub(crate) handshake_digest: u64,
    /// Kept so that it can be woken on another process.
    pub(crate) initialize: Message,
    pub(crate) initialized: Option<Message>,
    /// The log level and subscriptions; kept so that the process it is woken on is told the same.
    pub(crate) setup: Setup,
    /// The same as it was stored last, and how often it is being stored since.
    pub(crate) stored_setup: Setup,
    pub(crate) keeps: u32,
    /// What opens its handshake, and where the answer goes, until it is stored for the first time.
    pub(crate) opening: Option<Box<(Message, Way)>>,
    /// It has been freed of everything but its name.
    pub(crate) asleep: bool,
    /// The stream that belongs to no request.
    pub(crate) standing: StreamId,
    /// All its streams, the oldest first.
    pub(crate) streams: InOrder<StreamId>,
    /// Those of them whose requests are settled.
    pub(crate) settled: InOrder<StreamId>,
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
    /// When its client may come again, in seconds.
    pub(crate) retry_after: Option<u32>,
    /// The number of the last event.
    pub(crate) last: u64,
    /// The number of the last event that was written to some connection.
    pub(crate) written: u64,
    /// The client knows the id of one of its events, so that it can come back.
    pub(crate) named: bool,
    /// Events with their numbers, the oldest first: all that came after `lost`. A long one may be there in parts that
    /// follow each other under its number.
    pub(crate) kept: VecDeque<(u64, Bytes)>,
    /// The number of the last event that is not kept; the stream is taken up from there at the earliest.
    pub(crate) lost: u64,
    /// When its last request was settled.
    pub(crate) settled: Option<Mono>,
    /// The resume token of its only request.
    pub(crate) ticket: Option<Ticket>,
    /// Its client was gone once, and its events are stored since.
    pub(crate) stored: bool,
    /// Its client reads it at another process, as far as is known until then.
    pub(crate) relayed: Option<Mono>,
    /// To which trace the head of its request says that it belongs.
    pub(crate) trace: Option<Box<TraceFields>>,
}

/// The id of an event: `MARK-STREAM-NUMBER`. It says nothing outside its session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EventId {
    pub(crate) mark: Box<str>,
    pub(crate) stream: StreamId,
    pub(crate) number: u64,
}

impl EventId {
    pub(crate) fn parse(text: &str) -> Option<EventId> {
        let mut parts = text.split('-');
        let (mark, stream, number) = (parts.next()?, parts.next()?, parts.next()?);
        let id = EventId {
            mark: mark.into(),
            stream: StreamId(stream.parse().ok()?),
            number: number.parse().ok()?,
        };
        parts.next().is_none().then_some(id)
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.mark, self.stream.0, self.number)
    }
}

impl Session {
    /// A session that has just opened its handshake. Of the random bytes the first half may be its name; the second is its
    /// mark.
    pub(crate) fn new(
        id: Box<str>,
        entropy: &[u8; 32],
        initialize: Message,
        standing: StreamId,
        now: Mono,
    ) -> Session {
        Session {
            id,
            mark: hex::encode(&entropy[16..]).into(),
            stored: now,
            epoch: 1,
            confirmed: now,
            disowned: false,
            version: version_wanted(&initialize),
            handshake_digest: crate::memory::client_of(&initialize).unwrap_or_default(),
            initialize,
            initialized: None,
            setup: Setup::default(),
            stored_setup: Setup::default(),
            keeps: 0,
            opening: None,
            asleep: false,
            standing,
            streams: InOrder::default(),
            settled: InOrder::default(),
            kept_bytes: 0,
            used: now,
            armed: None,
        }
    }

    /// An unguessable name.
    pub(crate) fn name(entropy: &[u8; 32]) -> Box<str> {
        hex::encode(&entropy[..16]).into()
    }
}

/// The revision that a handshake asks for.
pub(crate) fn version_wanted(initialize: &Message) -> Box<str> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        protocol_version: Box<str>,
    }
    let params = initialize.raw(Field::Params).and_then(|raw| serde_json::from_slice::<Params>(raw).ok());
    // The revision before there was a header for it.
    params.map_or_else(|| "2025-03-26".into(), |params| params.protocol_version)
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
            retry_after: None,
            last: 0,
            written: 0,
            named: false,
            kept: VecDeque::new(),
            lost: 0,
            settled: None,
            ticket: None,
            stored: false,
            relayed: None,
            trace: None,
        }
    }

    /// Keeps an event for a client that comes back; how many bytes more are kept.
    pub(crate) fn keep(&mut self, number: u64, event: Bytes) -> isize {
        let mut change = event.len() as isize;
        self.kept.push_back((number, event));
        while reached!(STREAM_EVENTS, self.kept.len() > limits::STREAM_EVENTS) {
            change -= self.drop_oldest().unwrap_or(0) as isize;
        }
        change
    }

    /// Lets go of the oldest event that is kept, and says how long it was.
    pub(crate) fn drop_oldest(&mut self) -> Option<usize> {
        let (number, event) = self.kept.pop_front()?;
        self.lost = number;
        Some(event.len())
    }

    /// An event cannot be kept: what came before it is of no use without it. How many bytes more are kept.
    pub(crate) fn lose(&mut self, number: u64) -> isize {
        let change = -(self.kept_bytes() as isize);
        self.kept.clear();
        self.lost = number;
        change
    }

    /// Events that were written to no connection.
    pub(crate) fn unread(&self) -> impl Iterator<Item = &Bytes> {
        self.kept.iter().filter(|(number, _)| *number > self.written).map(|(_, event)| event)
    }

    /// Events after this one, as far as they are kept.
    pub(crate) fn kept_after(&self, number: u64) -> Vec<Bytes> {
        self.kept.iter().filter(|(kept, _)| *kept > number).map(|(_, event)| event.clone()).collect()
    }

    /// Its events, each in one piece.
    pub(crate) fn whole_events(&self) -> Vec<(u64, Bytes)> {
        let mut whole: Vec<(u64, Bytes)> = Vec::new();
        for (number, part) in &self.kept {
            match whole.last_mut().filter(|(before, _)| before == number) {
                Some((_, event)) => *event = [&**event, part].concat().into(),
                None => whole.push((*number, part.clone())),
            }
        }
        whole
    }

    /// Bytes of events that it keeps.
    pub(crate) fn kept_bytes(&self) -> usize {
        self.kept.iter().map(|(_, event)| event.len()).sum()
    }

    /// Whether all events after this one are still there.
    pub(crate) fn can_resume_after(&self, number: u64) -> bool {
        (self.lost..=self.last).contains(&number)
    }
}
