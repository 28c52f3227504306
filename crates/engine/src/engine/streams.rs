//! Streams of events to HTTP clients: how they begin, what they carry, how they are taken up again.
//!
//! A legacy stream begins at once, its events have ids, and they are kept for a client that comes
//! back. A modern stream has no ids; its response begins with the first thing there is to say, so that
//! an answer alone is plain JSON with a status of its own.

use super::Engine;
use crate::action::Action;
use crate::clients::{Carried, Door, Settled, Way};
use crate::http::{Body, Response};
use crate::id::{AskId, ClientId, ExchangeId, StreamId, own_id};
use crate::limits;
use crate::time::Mono;
use crate::wire::{Field, Outgoing, Patch, Piece, Shape, one_line_from, scan_message};
use bytes::Bytes;
use std::time::Duration;

/// The first revision whose clients know that a stream may end before its answer, and come back.
const POLLING: &str = "2025-11-25";

/// From here on a piece of an answer that is kept for others is not copied.
const SHARED: usize = 4 << 10;

impl Engine {
    /// Begins a response as a stream.
    pub(super) fn begin_stream(&mut self, id: StreamId) {
        let Some((exchange, session)) = self.clients.begins(id) else { return };
        let Some(stream) = self.clients.stream(id) else { return };
        let (client, last) = (stream.client, stream.last);
        let primed = stream.legacy
            && self.clients.get(&client).and_then(|client| client.session()).is_some_and(
                // Older clients take an event without data for a broken message.
                |session| &*session.version >= POLLING,
            );
        self.act(Action::Respond(
            exchange,
            Response { status: 200, session, retry_after: None, body: Body::Events },
        ));
        let first = if primed {
            let retry = Patch::number(self.config.resume_min_wait.as_millis() as u64, false);
            let mut event = self.id_of_event(client, id, last, 64);
            for part in [b"retry: ", retry.as_slice(), b"\ndata: \n\n"] {
                event.extend_from_slice(part);
            }
            self.clients.is_named(id);
            event
        } else {
            b": outlast\n\n".to_vec()
        };
        self.act(Action::Write(exchange, first.into()));
    }

    /// A handshake is refused: its response, unless it has begun, does not name a session that is gone.
    pub(super) fn names_no_session(&mut self, way: Way) {
        if let Way::Stream(id) = way {
            self.clients.names_session(id, None);
        }
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
        let stream = self.clients.stream(id).filter(|stream| !stream.begun)?;
        Some(if stream.legacy { self.config.stream_head } else { limits::BEGIN_STREAM })
    }

    /// The status that an answer gives its response, if it is one of its own.
    pub(super) fn set_status(&mut self, way: Way, code: Option<i64>) {
        let Way::Stream(id) = way else { return };
        let status = match code {
            Some(-32601) => 404,
            Some(-32700 | -32600 | -32022..=-32020) => 400,
            _ => 200,
        };
        self.clients.has_status(id, status);
    }

    /// What came too early for a bound: the status says so, and when to come again.
    pub(super) fn set_retry_after(&mut self, way: Way, after: Duration) {
        let Way::Stream(id) = way else { return };
        let seconds = after.as_millis().div_ceil(1000).clamp(1, u128::from(u32::MAX)) as u32;
        self.clients.has_status(id, 429);
        self.clients.may_come_after(id, seconds);
    }

    /// Sends something that is not the last word.
    pub(super) fn tell_stream(&mut self, id: StreamId, message: &Outgoing) {
        self.begin_stream(id);
        self.write_event(id, message);
    }

    /// Sends the answer to one of the requests of a stream.
    pub(super) fn answer_on_stream(&mut self, id: StreamId, answer: &Outgoing) {
        match self.clients.answers_plainly(id) {
            Some((exchange, status, retry_after)) => {
                let body = Body::Json(answer.to_vec().into());
                self.act(Action::Respond(exchange, Response { status, session: None, retry_after, body }));
            }
            None => self.tell_stream(id, answer),
        }
    }

    /// Sends the one answer of a stream, whose bytes are kept for others too: they are not copied, but leave in several
    /// parts. It must have no line ends.
    pub(super) fn answer_in_parts(&mut self, id: StreamId, answer: &Outgoing) {
        let split = self.clients.stream(id).is_some_and(|stream| stream.legacy && !stream.stored);
        if split {
            self.begin_stream(id);
            self.write_in_parts(id, answer);
        } else {
            self.answer_on_stream(id, answer);
        }
        self.settled_on_stream(self.at, id);
    }

    fn write_in_parts(&mut self, id: StreamId, answer: &Outgoing) {
        let Some(last) = self.clients.next_event(id) else { return };
        let Some(stream) = self.clients.stream(id) else { return };
        let (client, exchange) = (stream.client, stream.exchange);
        for part in event_in_parts(self.id_of_event(client, id, last, 64), answer) {
            self.clients.keep_event(id, last, &part);
            if let Some(exchange) = exchange {
                self.act(Action::Write(exchange, part));
            }
        }
        self.make_room(client);
    }

    /// The first line of an event, with room for the others: as [`EventId`](crate::clients::session::EventId) is shown,
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

    /// Tells a client that its call lives, if it reads. Whoever comes back has no use for that, and a heap of it
    /// would push out what was really said; so it is not kept, and has an id only where its client knows none yet.
    pub(super) fn keep_stream_alive(&mut self, id: StreamId, message: &Outgoing) {
        self.begin_stream(id);
        let Some(exchange) = self.clients.stream(id).and_then(|stream| stream.exchange) else {
            return self.keep_alive_elsewhere(id, message);
        };
        let named = self.clients.is_named(id);
        let Some(stream) = self.clients.stream(id) else { return };
        let (client, last, room) = (stream.client, stream.last, message.len() + 16);
        let line = if stream.legacy && !named {
            self.id_of_event(client, id, last, room)
        } else {
            Vec::with_capacity(room)
        };
        self.act(Action::Write(exchange, event(line, message)));
    }

    /// Where its client is, only what has a number arrives.
    fn keep_alive_elsewhere(&mut self, id: StreamId, message: &Outgoing) {
        if self.is_relayed(id) {
            self.write_event(id, message);
        }
    }

    /// Whether another process tells the client of a stream what comes.
    pub(super) fn is_relayed(&self, id: StreamId) -> bool {
        let until = self.clients.stream(id).and_then(|stream| stream.relayed);
        until.is_some_and(|until| !reached!(RELAYED, self.at >= until))
    }

    /// Whether what nobody reads yet says the same, or is outdated by a message and gives it its place.
    fn is_told_already(&mut self, id: StreamId, message: &Outgoing) -> bool {
        let Some(stream) = self.clients.stream(id).filter(|stream| stream.legacy) else { return false };
        if says_that_something_changed(message) {
            // Whoever comes back looks once, however often it changed.
            let same = message.to_vec();
            return stream.unread().any(|event| message_in(event).is_some_and(|told| told == same));
        }
        let newest = stream.unread().last().and_then(message_in);
        let token = progress_token(Bytes::from(message.to_vec()));
        if token.is_none() || newest.and_then(progress_token) != token {
            return false;
        }
        let line = self.id_of_event(stream.client, id, stream.last, message.len() + 16);
        let event = event(line, message);
        self.clients.replace_newest(id, event);
        true
    }

    fn write_event(&mut self, id: StreamId, message: &Outgoing) {
        let Some(stream) = self.clients.stream(id) else { return };
        let (client, exchange, legacy) = (stream.client, stream.exchange, stream.legacy);
        if exchange.is_none() && !self.is_relayed(id) && self.is_told_already(id, message) {
            return;
        }
        let Some(last) = self.clients.next_event(id) else { return };
        let room = message.len() + 16;
        let line = if legacy { self.id_of_event(client, id, last, room) } else { Vec::with_capacity(room) };
        let event = event(line, message);
        self.store_event(id, last, &event);
        if legacy {
            self.clients.keep_event(id, last, &event);
            self.make_room(client);
        }
        if let Some(exchange) = exchange {
            self.act(Action::Write(exchange, event));
        }
    }

    /// Takes a question off the standing stream of a session, where nobody has read it.
    pub(super) fn take_unread_question(&mut self, id: AskId) -> Option<Bytes> {
        let ask = self.asks.get(id)?;
        let (client, number) = (ask.client, own_id(id.0, ask.id.is_text()));
        let standing = self.clients.get(&client)?.session()?.standing;
        if ask.way != Way::Stream(standing) {
            return None;
        }
        self.clients.take_unread(standing, |event| {
            let message = message_in(event).and_then(scan_message)?;
            let same = message.shape == Shape::Request && message.raw(Field::Id) == Some(number.as_slice());
            same.then_some(message.bytes)
        })
    }

    /// One request of a stream is settled. After the last one the stream ends.
    pub(super) fn settled_on_stream(&mut self, now: Mono, id: StreamId) {
        let Some(Settled { client, legacy, exchange }) = self.clients.settles(now, id) else { return };
        match exchange {
            Some((exchange, true)) => self.act(Action::Finish(exchange)),
            // It was cancelled before there was anything to say.
            Some((exchange, false)) => self.respond(exchange, 202, Body::Empty),
            None => {}
        }
        if legacy {
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
        let Some(stream) = self.clients.stream(id).filter(|stream| stream.legacy) else { return };
        let session = self.clients.get(&stream.client).and_then(|client| client.session());
        if session.is_none_or(|session| &*session.version < POLLING) {
            return;
        }
        // A client can come back only with the id of an event.
        self.begin_stream(id);
        let Some(exchange) = self.clients.hangs_up(id) else { return };
        self.left_alone(id);
        self.store_stream(id);
        self.act(Action::Write(exchange, format!("retry: {}\n\n", retry.as_millis()).into()));
        self.act(Action::Finish(exchange));
    }

    /// Takes up a stream on another connection, from an event on. False if that is not possible.
    pub(super) fn take_up(&mut self, exchange: ExchangeId, id: StreamId, after: u64) -> bool {
        if !self.clients.stream(id).is_some_and(|stream| stream.can_resume_after(after)) {
            return false;
        }
        // Whoever asked has a response too, even if somebody guessed the id of its first event.
        self.begin_stream(id);
        let after = after + u64::from(planted!(self, ReplaysTooLittle));
        let after = if planted!(self, ResumesEmpty) { u64::MAX } else { after };
        let Some(Carried { before, missed, over }) = self.clients.carry(exchange, id, after) else {
            return false;
        };
        if let Some(before) = before {
            self.act(Action::Finish(before));
        }
        self.act(Action::Respond(
            exchange,
            Response { status: 200, session: None, retry_after: None, body: Body::Events },
        ));
        let retry = self.config.resume_min_wait.as_millis();
        self.act(Action::Write(exchange, format!(": outlast\nretry: {retry}\n\n").into()));
        for event in missed {
            self.act(Action::Write(exchange, event));
        }
        if over {
            self.act(Action::Finish(exchange));
        }
        true
    }

    /// A connection that was given what an earlier process kept goes on as the standing stream.
    pub(super) fn go_on_with(&mut self, now: Mono, exchange: ExchangeId, id: StreamId) {
        let Some((client, missed)) = self.clients.carry_on(exchange, id) else { return };
        self.session_was_used(now, client);
        for event in missed {
            self.act(Action::Write(exchange, event));
        }
    }

    /// Forgets a stream and what was kept of it.
    pub(super) fn close_stream(&mut self, id: StreamId) {
        self.forget_stored_stream(id);
        match self.clients.close_stream(id) {
            Some((exchange, true)) => self.act(Action::Finish(exchange)),
            // Its session was ended before there was anything to say: whoever asked has a response all the same.
            Some((exchange, false)) => self.refuse_ended(exchange),
            None => {}
        }
    }

    /// What a session keeps is bounded: the oldest settled streams go, then the oldest events.
    fn make_room(&mut self, client: ClientId) {
        while let Some(settled) = self.clients.make_room(client) {
            self.close_stream(settled);
        }
    }

    /// Settled streams that nobody came back for.
    pub(super) fn forget_old_streams(&mut self, now: Mono, client: ClientId) {
        for id in self.clients.old_streams(now, client, self.config.resume_wait) {
            self.close_stream(id);
        }
    }

    /// A client's connection is gone. To a legacy client nothing is lost by that; a modern one has
    /// cancelled.
    pub(super) fn hung_up(&mut self, now: Mono, exchange: ExchangeId) {
        let Some(id) = self.clients.is_hung_up(exchange) else { return self.stop_knocking(exchange) };
        let Some(stream) = self.clients.stream(id) else { return };
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
        self.exchange_is_over(now, client);
    }

    fn exchange_is_over(&mut self, now: Mono, client: ClientId) {
        if self.clients.get(&client).is_some_and(|client| matches!(client.door, Door::Exchange(_))) {
            self.end_client(now, client);
        }
    }
}

/// Whether a message says no more than that a resource or a list is not what it was.
fn says_that_something_changed(message: &Outgoing) -> bool {
    let has = |words: &[u8]| memchr::memmem::find(message.bytes(), words).is_some();
    has(b"\"notifications/resources/updated\"") || has(b"/list_changed\"")
}

/// What a message reports the progress of.
fn progress_token(message: Bytes) -> Option<Bytes> {
    let message = scan_message(message)?;
    let reports = message.raw(Field::Method) == Some(b"\"notifications/progress\"");
    message.raw(Field::ParamsProgressToken).filter(|_| reports).map(Bytes::copy_from_slice)
}

/// The message of an event.
pub(super) fn message_in(event: &Bytes) -> Option<Bytes> {
    let start = memchr::memmem::find(event, b"data: ")? + b"data: ".len();
    Some(event.slice(start..event.len().checked_sub(2)?))
}

/// One event as it is written, after its first line. A carriage return in a message would end the `data` line,
/// and what follows it could pass for an event of its own; so the message is made one line.
fn event(mut event: Vec<u8>, message: &Outgoing) -> Bytes {
    event.extend_from_slice(b"data: ");
    let start = event.len();
    message.append_to(&mut event);
    one_line_from(&mut event, start);
    event.extend_from_slice(b"\n\n");
    event.into()
}

/// The same in several parts: what passes unchanged is not copied.
fn event_in_parts(mut line: Vec<u8>, message: &Outgoing) -> Vec<Bytes> {
    let mut parts = Vec::new();
    line.extend_from_slice(b"data: ");
    message.for_each_piece(|piece| match piece {
        Piece::Kept(range) if range.len() >= SHARED => {
            parts.push(std::mem::take(&mut line).into());
            parts.push(message.bytes().slice(range));
        }
        Piece::Kept(range) => line.extend_from_slice(&message.bytes()[range]),
        Piece::New(bytes) => line.extend_from_slice(bytes),
    });
    line.extend_from_slice(b"\n\n");
    parts.push(line.into());
    parts
}
