//! Streams of events to HTTP clients: how they begin, what they carry, how they are taken up again.
//!
//! A legacy stream begins at once, its events have ids, and they are kept for a client that comes
//! back. A modern stream has no ids; its response begins with the first thing there is to say, so that
//! an answer alone is plain JSON with a status of its own.

use super::Engine;
use crate::action::Action;
use crate::client::{Door, Way};
use crate::http::{Body, Response};
use crate::id::{ClientId, ExchangeId, StreamId};
use crate::limits;
use crate::session::Stream;
use crate::time::Mono;
use crate::wire::{Outgoing, Patch};
use bytes::Bytes;
use std::time::Duration;

/// The first revision whose clients know that a stream may end before its answer, and come back.
const POLLING: &str = "2025-11-25";

impl Engine {
    pub(super) fn new_stream(
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
        if let Some(session) = self.clients.get_mut(&client).and_then(|client| client.session_mut()) {
            session.streams.insert(id);
        }
        id
    }

    /// Begins a response as a stream.
    pub(super) fn begin_stream(&mut self, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let Some(exchange) = stream.exchange.filter(|_| !stream.begun) else { return };
        stream.begun = true;
        let session = stream.names.take();
        let (client, last) = (stream.client, stream.last);
        let primed = stream.legacy
            && self.clients.get(&client).and_then(|client| client.session()).is_some_and(
                // Older clients take an event without data for a broken message.
                |session| &*session.version >= POLLING,
            );
        self.act(Action::Respond(exchange, Response { status: 200, session, body: Body::Events }));
        let first = if primed {
            let retry = Patch::number(self.config.resume_min_wait.as_millis() as u64, false);
            let mut event = self.id_of_event(client, id, last, 64);
            for part in [b"retry: ", retry.as_slice(), b"\ndata: \n\n"] {
                event.extend_from_slice(part);
            }
            event
        } else {
            b": outlast\n\n".to_vec()
        };
        self.act(Action::Write(exchange, first.into()));
    }

    /// A modern request has waited long enough for an answer that would be a response of its own.
    pub(super) fn stream_is_due(&mut self, way: Way) {
        if let Way::Stream(id) = way {
            self.begin_stream(id);
        }
    }

    /// How long a response may wait for what it begins with.
    pub(super) fn stream_patience(&self, way: Way) -> Option<Duration> {
        let Way::Stream(id) = way else { return None };
        let stream = self.streams.get(&id).filter(|stream| !stream.begun)?;
        Some(if stream.legacy { self.config.stream_head } else { limits::BEGIN_STREAM })
    }

    /// The status that an answer gives its response, if it is one of its own.
    pub(super) fn set_status(&mut self, way: Way, code: Option<i64>) {
        let Way::Stream(id) = way else { return };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.status = match code {
            Some(-32601) => 404,
            Some(-32700 | -32600 | -32022..=-32020) => 400,
            _ => 200,
        };
    }

    /// Sends something that is not the last word.
    pub(super) fn tell_stream(&mut self, id: StreamId, message: &Outgoing) {
        self.begin_stream(id);
        self.write_event(id, message);
    }

    /// Sends the answer to one of the requests of a stream.
    pub(super) fn answer_on_stream(&mut self, id: StreamId, answer: &Outgoing) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        match stream.exchange.filter(|_| !stream.begun && !stream.legacy) {
            Some(exchange) => {
                let response = Response {
                    status: stream.status,
                    session: None,
                    body: Body::Json(answer.to_vec().into()),
                };
                stream.begun = true;
                stream.exchange = None;
                self.exchanges.remove(&exchange);
                self.act(Action::Respond(exchange, response));
            }
            None => self.tell_stream(id, answer),
        }
    }

    /// The first line of an event, with room for the others: as [`EventId`](crate::session::EventId) is shown,
    /// put together by hand because every answer of a session has two.
    fn id_of_event(&self, client: ClientId, stream: StreamId, number: u64, room: usize) -> Vec<u8> {
        let session = self.clients.get(&client).and_then(|client| client.session());
        let mark = session.map_or("", |session| &session.mark);
        let (stream, number) = (Patch::number(stream.0, false), Patch::number(number, false));
        let parts = [b"id: ", mark.as_bytes(), b"-", stream.as_slice(), b"-", number.as_slice(), b"\n"];
        let mut line = Vec::with_capacity(mark.len() + 64 + room);
        parts.into_iter().for_each(|part| line.extend_from_slice(part));
        line
    }

    fn write_event(&mut self, id: StreamId, message: &Outgoing) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        if stream.exchange.is_none() && stream.legacy && says_that_something_changed(message) {
            let same = message.to_vec();
            if stream.unread().any(|event| message_in(event).is_some_and(|told| told == same)) {
                // Whoever comes back looks once, however often it changed.
                return;
            }
        }
        stream.last += 1;
        let (client, exchange, legacy, last) = (stream.client, stream.exchange, stream.legacy, stream.last);
        if exchange.is_some() {
            stream.written = last;
        }
        let room = message.len() + 16;
        let line = if legacy { self.id_of_event(client, id, last, room) } else { Vec::with_capacity(room) };
        let event = event(line, message);
        self.store_event(id, last, &event);
        if legacy
            && self.kept_events + event.len() <= limits::EVENTS_BYTES
            && event.len() <= limits::SESSION_BYTES
        {
            let change = self.streams.get_mut(&id).map_or(0, |stream| stream.keep(last, event.clone()));
            self.kept_more(client, change);
            self.make_room(client);
        }
        if let Some(exchange) = exchange {
            self.act(Action::Write(exchange, event));
        }
    }

    /// One request of a stream is settled. After the last one the stream ends.
    pub(super) fn settled_on_stream(&mut self, now: Mono, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.open = stream.open.saturating_sub(1);
        if stream.open > 0 {
            return;
        }
        stream.settled = Some(now);
        let (client, legacy) = (stream.client, stream.legacy);
        if let Some(exchange) = stream.exchange.take() {
            self.exchanges.remove(&exchange);
            let never_begun = !stream.begun;
            if never_begun {
                // It was cancelled before there was anything to say.
                self.act(Action::Respond(
                    exchange,
                    Response { status: 202, session: None, body: Body::Empty },
                ));
            } else {
                self.act(Action::Finish(exchange));
            }
        }
        if legacy {
            if let Some(session) = self.clients.get_mut(&client).and_then(|client| client.session_mut()) {
                session.settled.insert(id);
            }
            self.store_settled(id);
            self.make_room(client);
        } else {
            self.close_stream(id);
            self.exchange_is_over(now, client);
        }
    }

    /// The server hung up a stream and wants to be polled: its client, if it knows that too, is asked to
    /// do the same. The call goes on, and what comes meanwhile is kept.
    pub(super) fn let_client_poll(&mut self, way: Way, retry: Duration) {
        let Way::Stream(id) = way else { return };
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.legacy) else { return };
        let session = self.clients.get(&stream.client).and_then(|client| client.session());
        if session.is_none_or(|session| &*session.version < POLLING) {
            return;
        }
        // A client can come back only with the id of an event.
        self.begin_stream(id);
        let Some(exchange) = self.streams.get_mut(&id).and_then(|stream| stream.exchange.take()) else {
            return;
        };
        self.exchanges.remove(&exchange);
        self.left_alone(id);
        self.store_stream(id);
        self.act(Action::Write(exchange, format!("retry: {}\n\n", retry.as_millis()).into()));
        self.act(Action::Finish(exchange));
    }

    /// Takes up a stream on another connection, from an event on. False if that is not possible.
    pub(super) fn take_up(&mut self, exchange: ExchangeId, id: StreamId, after: u64) -> bool {
        if !self.streams.get(&id).is_some_and(|stream| stream.can_resume_after(after)) {
            return false;
        }
        // Whoever asked has a response too, even if somebody guessed the id of its first event.
        self.begin_stream(id);
        let Some(stream) = self.streams.get_mut(&id) else { return false };
        let before = stream.exchange.replace(exchange);
        stream.begun = true;
        stream.written = stream.last;
        let over = stream.settled.is_some();
        let after = after + u64::from(planted!(self, ReplaysTooLittle));
        let after = if planted!(self, ResumesEmpty) { u64::MAX } else { after };
        let missed: Vec<Bytes> = stream
            .kept
            .iter()
            .filter(|(number, _)| *number > after)
            .map(|(_, event)| event.clone())
            .collect();
        if let Some(before) = before {
            self.exchanges.remove(&before);
            self.act(Action::Finish(before));
        }
        self.act(Action::Respond(exchange, Response { status: 200, session: None, body: Body::Events }));
        let retry = self.config.resume_min_wait.as_millis();
        self.act(Action::Write(exchange, format!(": outlast\nretry: {retry}\n\n").into()));
        for event in missed {
            self.act(Action::Write(exchange, event));
        }
        if over {
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.exchange = None;
            }
            self.act(Action::Finish(exchange));
        } else {
            self.exchanges.insert(exchange, id);
        }
        true
    }

    /// A connection that was given what an earlier process kept goes on as the standing stream.
    pub(super) fn go_on_with(&mut self, now: Mono, exchange: ExchangeId, id: StreamId) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        (stream.exchange, stream.begun) = (Some(exchange), true);
        let before = std::mem::replace(&mut stream.written, stream.last);
        let missed = stream.kept.iter().filter(|(number, _)| *number > before);
        let missed: Vec<Bytes> = missed.map(|(_, event)| event.clone()).collect();
        let client = stream.client;
        self.exchanges.insert(exchange, id);
        self.session_was_used(now, client);
        for event in missed {
            self.act(Action::Write(exchange, event));
        }
    }

    /// Forgets a stream and what was kept of it.
    pub(super) fn close_stream(&mut self, id: StreamId) {
        self.forget_stored_stream(id);
        let Some(stream) = self.streams.remove(&id) else { return };
        if let Some(exchange) = stream.exchange {
            self.exchanges.remove(&exchange);
            self.act(Action::Finish(exchange));
        }
        let bytes = stream.kept_bytes();
        if let Some(session) = self.clients.get_mut(&stream.client).and_then(|client| client.session_mut()) {
            session.streams.remove(&id);
            session.settled.remove(&id);
        }
        self.kept_more(stream.client, -(bytes as isize));
    }

    fn kept_more(&mut self, client: ClientId, change: isize) {
        self.kept_events = self.kept_events.saturating_add_signed(change);
        if let Some(session) = self.clients.get_mut(&client).and_then(|client| client.session_mut()) {
            session.kept_bytes = session.kept_bytes.saturating_add_signed(change);
        }
    }

    /// What a session keeps is bounded: the oldest settled streams go, then the oldest events.
    fn make_room(&mut self, client: ClientId) {
        while let Some(victim) = self.too_much(client) {
            let settled = self.streams.get(&victim).is_some_and(|stream| stream.settled.is_some());
            if settled {
                self.close_stream(victim);
                continue;
            }
            let dropped = self.streams.get_mut(&victim).and_then(|stream| stream.kept.pop_front());
            let Some((_, event)) = dropped else { return };
            self.kept_more(client, -(event.len() as isize));
        }
    }

    fn too_much(&self, client: ClientId) -> Option<StreamId> {
        let session = self.clients.get(&client)?.session()?;
        let full = session.kept_bytes > limits::SESSION_BYTES;
        if !full && session.streams.len() <= limits::SESSION_STREAMS {
            return None;
        }
        let oldest = session.settled.first();
        let holds = |id: &&StreamId| self.streams.get(id).is_some_and(|stream| !stream.kept.is_empty());
        oldest.or_else(|| session.streams.iter().find(holds).filter(|_| full)).copied()
    }

    /// Settled streams that nobody came back for.
    pub(super) fn forget_old_streams(&mut self, now: Mono, client: ClientId) {
        let Some(session) = self.clients.get(&client).and_then(|client| client.session()) else { return };
        let wait = self.config.resume_wait;
        let old = |id: &&StreamId| {
            self.streams
                .get(id)
                .and_then(|stream| stream.settled)
                .is_some_and(|settled| now.since(settled) >= wait)
        };
        let old: Vec<StreamId> = session.settled.iter().filter(old).copied().collect();
        for id in old {
            self.close_stream(id);
        }
    }

    /// A client's connection is gone. To a legacy client nothing is lost by that; a modern one has
    /// cancelled.
    pub(super) fn hung_up(&mut self, now: Mono, exchange: ExchangeId) {
        let Some(id) = self.exchanges.remove(&exchange) else { return self.stop_knocking(exchange) };
        let Some(stream) = self.streams.get_mut(&id) else { return };
        stream.exchange = None;
        let client = stream.client;
        if stream.legacy {
            self.session_was_used(now, client);
            self.left_alone(id);
            self.store_stream(id);
            return;
        }
        self.close_stream(id);
        self.hung_up_on_calls(client);
        self.leave_behind(now, client);
        self.cancel_everything(client);
        self.exchange_is_over(now, client);
    }

    fn exchange_is_over(&mut self, now: Mono, client: ClientId) {
        if self.clients.get(&client).is_some_and(|client| matches!(client.door, Door::Exchange(_))) {
            self.forget_client(now, client);
        }
    }
}

/// Whether a message says no more than that a resource or a list is not what it was.
fn says_that_something_changed(message: &Outgoing) -> bool {
    let has = |words: &[u8]| memchr::memmem::find(message.bytes(), words).is_some();
    has(b"\"notifications/resources/updated\"") || has(b"/list_changed\"")
}

/// The message of an event.
pub(super) fn message_in(event: &Bytes) -> Option<Bytes> {
    let start = memchr::memmem::find(event, b"data: ")? + b"data: ".len();
    Some(event.slice(start..event.len().checked_sub(2)?))
}

/// One event as it is written, after its first line. Messages hold no line breaks, so one `data` line is enough.
fn event(mut event: Vec<u8>, message: &Outgoing) -> Bytes {
    event.extend_from_slice(b"data: ");
    message.append_to(&mut event);
    event.extend_from_slice(b"\n\n");
    event.into()
}
