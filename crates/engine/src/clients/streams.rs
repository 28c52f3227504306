//! Streams of events: which connection carries them, what is kept of them.

use super::session::Stream;
use super::{Client, Clients};
use crate::http::TraceFields;
use crate::id::{ClientId, ExchangeId, StreamId};
use crate::limits;
use crate::record::Ticket;
use crate::time::Mono;
use bytes::Bytes;
use std::time::Duration;

/// A stream that is taken up on another connection.
#[derive(Debug)]
pub(crate) struct Carried {
    /// The connection that carried it before.
    pub(crate) before: Option<ExchangeId>,
    /// What was said since.
    pub(crate) missed: Vec<Bytes>,
    /// Nothing more comes.
    pub(crate) over: bool,
}

/// The last request of a stream is settled.
#[derive(Debug)]
pub(crate) struct Settled {
    pub(crate) client: ClientId,
    pub(crate) legacy: bool,
    /// The connection that carried it, and whether its response had begun.
    pub(crate) exchange: Option<(ExchangeId, bool)>,
}

// Reading.
impl Clients {
    #[inline]
    pub(crate) fn stream(&self, id: StreamId) -> Option<&Stream> {
        self.streams.get(&id)
    }

    fn stream_at(&mut self, id: StreamId) -> Option<&mut Stream> {
        self.streams.get_mut(&id)
    }

    pub(crate) fn streams(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        self.streams.iter().map(|(id, stream)| (*id, stream))
    }

    /// Streams whose events are stored: few of all that there are.
    pub(crate) fn stored_streams(&self) -> impl Iterator<Item = (StreamId, &Stream)> {
        self.stored_streams.iter().filter_map(|id| Some((*id, self.stream(*id)?)))
    }

    /// The stream whose only request can be resumed with this token.
    pub(crate) fn stream_with(&self, ticket: &Ticket) -> Option<StreamId> {
        self.streams().find(|(_, stream)| stream.ticket.as_ref() == Some(ticket)).map(|(id, _)| id)
    }

    pub(crate) fn kept_events(&self) -> usize {
        self.kept_events
    }

    pub(crate) fn exchanges(&self) -> usize {
        self.exchanges.len()
    }

    /// The number that the next stream will have.
    pub(crate) fn next_stream(&self) -> StreamId {
        StreamId(self.next_stream)
    }

    pub(super) fn check_streams(&self) -> Result<(), String> {
        for (exchange, id) in &self.exchanges {
            if self.stream(*id).is_none_or(|stream| stream.exchange != Some(*exchange)) {
                return Err(format!("{exchange:?} leads to {id:?}, which does not know it"));
            }
        }
        for (id, stream) in self.streams() {
            if stream.exchange.is_some_and(|exchange| self.exchanges.get(&exchange) != Some(&id)) {
                return Err(format!("{:?} does not lead to {id:?}", stream.exchange));
            }
        }
        let stored = self.streams.values().filter(|stream| stream.stored).count();
        if stored != self.stored_streams.len() || self.stored_streams().count() != stored {
            return Err(format!("{stored} streams are stored, and {:?} are known", self.stored_streams));
        }
        let kept: usize = self.streams.values().map(Stream::kept_bytes).sum();
        if kept != self.kept_events {
            return Err(format!("streams keep {kept} bytes, and {} are counted", self.kept_events));
        }
        Ok(())
    }
}

// Beginning and end.
impl Clients {
    pub(crate) fn open_stream(
        &mut self,
        client: ClientId,
        exchange: Option<ExchangeId>,
        legacy: bool,
        open: usize,
    ) -> StreamId {
        let id = StreamId(self.next_stream);
        self.next_stream += 1;
        if let Some(exchange) = exchange {
            self.exchanges.insert(exchange, id);
        }
        self.streams.insert(id, Stream::new(client, exchange, legacy, open));
        if let Some(session) = self.at(client).and_then(Client::session_mut) {
            session.streams.insert(id);
        }
        id
    }

    /// The session that the response of a stream names.
    pub(crate) fn names_session(&mut self, id: StreamId, name: Option<Box<str>>) {
        if let Some(stream) = self.stream_at(id) {
            stream.names = name;
        }
    }

    /// To which trace the request of a stream belongs.
    pub(crate) fn keeps_trace(&mut self, id: StreamId, said: Box<TraceFields>) {
        if let Some(stream) = self.stream_at(id) {
            stream.trace = Some(said);
            self.heard_of_traces = true;
        }
    }

    /// Whether any request ever said to which trace it belongs: where none does, nobody looks for it.
    #[inline]
    pub(crate) fn has_heard_of_traces(&self) -> bool {
        self.heard_of_traces
    }

    /// The resume token of a stream's only request.
    pub(crate) fn has_ticket(&mut self, id: StreamId, ticket: Ticket) {
        if let Some(stream) = self.stream_at(id) {
            stream.ticket = Some(ticket);
        }
    }

    /// The events of a stream are stored from now on.
    pub(crate) fn stores_stream(&mut self, id: StreamId) {
        if let Some(stream) = self.stream_at(id) {
            stream.stored = true;
            self.stored_streams.insert(id);
        }
    }

    /// The client of a stream reads it at another process until then, or longer.
    pub(crate) fn is_read_elsewhere(&mut self, id: StreamId, until: Mono) {
        if let Some(stream) = self.stream_at(id) {
            stream.relayed = Some(until);
        }
    }

    /// The status of a response that is no stream.
    pub(crate) fn has_status(&mut self, id: StreamId, status: u16) {
        if let Some(stream) = self.stream_at(id) {
            stream.status = status;
        }
    }

    /// When its client may come again, in seconds.
    pub(crate) fn may_come_after(&mut self, id: StreamId, seconds: u32) {
        if let Some(stream) = self.stream_at(id) {
            stream.retry_after = Some(seconds);
        }
    }

    /// A response begins as a stream. Gives back its connection, and the session that it names; `None` if it has
    /// begun, or nobody reads it.
    pub(crate) fn begins(&mut self, id: StreamId) -> Option<(ExchangeId, Option<Box<str>>)> {
        let stream = self.stream_at(id)?;
        let exchange = stream.exchange.filter(|_| !stream.begun)?;
        stream.begun = true;
        Some((exchange, stream.names.take()))
    }

    /// A response is one answer and no stream. Gives back its connection and its status; `None` if it must be a
    /// stream.
    pub(crate) fn answers_plainly(&mut self, id: StreamId) -> Option<(ExchangeId, u16, Option<u32>)> {
        let stream = self.stream_at(id)?;
        let exchange = stream.exchange.take_if(|_| !stream.begun && !stream.legacy)?;
        stream.begun = true;
        let (status, retry_after) = (stream.status, stream.retry_after);
        self.exchanges.remove(&exchange);
        Some((exchange, status, retry_after))
    }

    /// The client knows the id of one of a stream's events. Whether it did before.
    pub(crate) fn is_named(&mut self, id: StreamId) -> bool {
        self.stream_at(id).is_some_and(|stream| std::mem::replace(&mut stream.named, true))
    }

    /// One request of a stream is settled. Gives back what ends with it, if it was the last.
    pub(crate) fn settles(&mut self, now: Mono, id: StreamId) -> Option<Settled> {
        let stream = self.stream_at(id)?;
        stream.open = stream.open.saturating_sub(1);
        if stream.open > 0 {
            return None;
        }
        stream.settled = Some(now);
        let (client, legacy, begun) = (stream.client, stream.legacy, stream.begun);
        let exchange = stream.exchange.take();
        if let Some(exchange) = exchange {
            self.exchanges.remove(&exchange);
        }
        if let Some(session) = self.at(client).and_then(Client::session_mut).filter(|_| legacy) {
            session.settled.insert(id);
        }
        Some(Settled { client, legacy, exchange: exchange.map(|exchange| (exchange, begun)) })
    }

    /// Forgets a stream and what was kept of it. Gives back the connection that carries it, and whether the response
    /// has begun.
    pub(crate) fn close_stream(&mut self, id: StreamId) -> Option<(ExchangeId, bool)> {
        let stream = self.streams.remove(&id)?;
        self.stored_streams.remove(&id);
        self.kept_more(stream.client, -(stream.kept_bytes() as isize));
        if let Some(session) = self.at(stream.client).and_then(Client::session_mut) {
            session.streams.remove(&id);
            session.settled.remove(&id);
        }
        let exchange = stream.exchange?;
        self.exchanges.remove(&exchange);
        Some((exchange, stream.begun))
    }

    /// Settled streams that nobody came back for.
    pub(crate) fn old_streams(&self, now: Mono, client: ClientId, wait: Duration) -> Vec<StreamId> {
        let Some(session) = self.get(&client).and_then(Client::session) else { return Vec::new() };
        let settled = |id: &StreamId| self.stream(*id).and_then(|stream| stream.settled);
        let old = |id: &&StreamId| settled(id).is_some_and(|settled| now.since(settled) >= wait);
        session.settled.iter().filter(old).copied().collect()
    }
}

// Connections.
impl Clients {
    /// The connection of a stream is gone, or is given up by us. Gives back the connection.
    pub(crate) fn hangs_up(&mut self, id: StreamId) -> Option<ExchangeId> {
        let exchange = self.stream_at(id)?.exchange.take()?;
        self.exchanges.remove(&exchange);
        Some(exchange)
    }

    /// A connection is gone. Gives back the stream that it carried.
    pub(crate) fn is_hung_up(&mut self, exchange: ExchangeId) -> Option<StreamId> {
        let id = self.exchanges.remove(&exchange)?;
        self.stream_at(id)?.exchange = None;
        Some(id)
    }

    /// Nothing more comes on any stream. Gives back all connections, in their order, and whether their responses
    /// have begun.
    pub(crate) fn hang_up_everywhere(&mut self) -> Vec<(ExchangeId, bool)> {
        let begun = |id: &StreamId| self.streams.get(id).is_some_and(|stream| stream.begun);
        let mut open: Vec<_> = self.exchanges.iter().map(|(exchange, id)| (*exchange, begun(id))).collect();
        open.sort_unstable();
        self.exchanges.clear();
        self.streams.values_mut().for_each(|stream| stream.exchange = None);
        open
    }

    /// Takes up a stream on another connection, from an event on.
    pub(crate) fn carry(&mut self, exchange: ExchangeId, id: StreamId, after: u64) -> Option<Carried> {
        let stream = self.stream_at(id)?;
        let over = stream.settled.is_some();
        let before = if over { stream.exchange.take() } else { stream.exchange.replace(exchange) };
        (stream.begun, stream.named) = (true, true);
        stream.written = stream.last;
        let missed = stream.kept_after(after);
        if let Some(before) = before {
            self.exchanges.remove(&before);
        }
        if !over {
            self.exchanges.insert(exchange, id);
        }
        Some(Carried { before, missed, over })
    }

    /// A connection that was given what an earlier process kept goes on as this stream. Gives back what was said
    /// here meanwhile.
    pub(crate) fn carry_on(&mut self, exchange: ExchangeId, id: StreamId) -> Option<(ClientId, Vec<Bytes>)> {
        let stream = self.stream_at(id)?;
        (stream.exchange, stream.begun) = (Some(exchange), true);
        let before = std::mem::replace(&mut stream.written, stream.last);
        let (client, missed) = (stream.client, stream.kept_after(before));
        self.exchanges.insert(exchange, id);
        Some((client, missed))
    }
}

// Events.
impl Clients {
    /// One more event: its number.
    pub(crate) fn next_event(&mut self, id: StreamId) -> Option<u64> {
        let stream = self.stream_at(id)?;
        stream.last += 1;
        if stream.exchange.is_some() {
            (stream.written, stream.named) = (stream.last, true);
        }
        Some(stream.last)
    }

    /// Keeps an event for a client that comes back. What is too large is not kept, and nothing before it either.
    pub(crate) fn keep_event(&mut self, id: StreamId, number: u64, event: &Bytes) {
        let long = reached!(SESSION_BYTES, event.len() > limits::SESSION_BYTES);
        let fits = !long && !reached!(EVENTS_BYTES, self.kept_events + event.len() > limits::EVENTS_BYTES);
        let Some(stream) = self.stream_at(id) else { return };
        let change = if fits { stream.keep(number, event.clone()) } else { stream.lose(number) };
        let client = stream.client;
        self.kept_more(client, change);
    }

    /// The newest event that is kept is outdated by this one.
    pub(crate) fn replace_newest(&mut self, id: StreamId, event: Bytes) {
        let Some(stream) = self.stream_at(id) else { return };
        let Some((_, newest)) = stream.kept.back_mut() else { return };
        let change = event.len() as isize - newest.len() as isize;
        *newest = event;
        let client = stream.client;
        self.kept_more(client, change);
    }

    /// Takes the newest event out that nobody has read and that `wanted` finds something in.
    pub(crate) fn take_unread<T>(&mut self, id: StreamId, wanted: impl Fn(&Bytes) -> Option<T>) -> Option<T> {
        let stream = self.stream_at(id)?;
        let written = stream.written;
        let unread = stream.kept.iter().enumerate().filter(|(_, (number, _))| *number > written);
        let (at, found) = unread.rev().find_map(|(at, (_, event))| Some((at, wanted(event)?)))?;
        let bytes = stream.kept.remove(at).map_or(0, |(_, event)| event.len());
        let client = stream.client;
        self.kept_more(client, -(bytes as isize));
        Some(found)
    }

    fn kept_more(&mut self, client: ClientId, change: isize) {
        self.kept_events = self.kept_events.saturating_add_signed(change);
        if let Some(session) = self.at(client).and_then(Client::session_mut) {
            session.kept_bytes = session.kept_bytes.saturating_add_signed(change);
        }
    }

    /// Makes room in what a session keeps, which is bounded: the oldest events go. Gives back a settled stream that
    /// is to be closed first; to be called again after that.
    pub(crate) fn make_room(&mut self, client: ClientId) -> Option<StreamId> {
        while let Some(victim) = self.too_much(client) {
            if self.stream(victim).is_some_and(|stream| stream.settled.is_some()) {
                return Some(victim);
            }
            let bytes = self.stream_at(victim).and_then(Stream::drop_oldest)?;
            self.kept_more(client, -(bytes as isize));
        }
        None
    }

    fn too_much(&self, client: ClientId) -> Option<StreamId> {
        let session = self.get(&client)?.session()?;
        let full = reached!(SESSION_BYTES, session.kept_bytes > limits::SESSION_BYTES);
        let many = reached!(SESSION_STREAMS, session.streams.len() > limits::SESSION_STREAMS);
        if !full && !many {
            return None;
        }
        let oldest = session.settled.first();
        let holds = |id: &&StreamId| self.stream(**id).is_some_and(|stream| !stream.kept.is_empty());
        oldest.or_else(|| session.streams.iter().find(holds).filter(|_| full)).copied()
    }
}
