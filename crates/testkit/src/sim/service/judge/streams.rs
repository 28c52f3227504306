//! What clients read: their own answers, once, on their own way, and nothing of anybody else.

use super::servers::number;
use super::{Judge, Kind, Request, Session, State, Stream, event_id, show};
use crate::exchange::read;
use crate::sim::blame::{SLACK, own_kind};
use crate::sim::process::{member, nonce};
use crate::sim::service::INTRUDER;
use crate::sim::service::session::message;
use crate::sim::service::visit::owner_of;
use bytes::Bytes;
use outlast_engine::http::{Body, Response};
use outlast_engine::id::{ExchangeId, ServerId};
use outlast_engine::limits;
use outlast_engine::method::Method;
use outlast_engine::wire::{Field, Message, Shape};
use std::time::Duration;

impl Judge {
    pub(in crate::sim::service) fn responded(
        &mut self,
        now: Duration,
        exchange: ExchangeId,
        response: &Response,
    ) {
        let reading = self.reading(exchange);
        reading.over = response.body != Body::Events;
        let intruded = reading.owner == INTRUDER && response.status < 400;
        assert!(!intruded, "somebody got in: {response:?}, {reading:?}");
        let wakes = reading.kind == Kind::Post && response.status < 400;
        let named = reading.session.clone().filter(|_| wakes);
        if let Some(session) = named.and_then(|name| self.sessions.get_mut(&name)) {
            session.sleepy = false;
        }
        if let Some(name) = &response.session {
            self.session_begins(now, exchange, name);
        }
        match &response.body {
            Body::Events => self.begins(exchange),
            Body::Json(_) if response.status >= 400 => self.refused(now, exchange, response),
            Body::Json(json) => self.message(now, exchange, json, false),
            Body::Empty => self.taken(exchange, response),
        }
    }

    fn session_begins(&mut self, now: Duration, exchange: ExchangeId, name: &str) {
        let reading = self.reading(exchange);
        reading.session = Some(name.into());
        let (owner, handshake) = (reading.owner.clone(), reading.requests[0]);
        let session =
            Session { owner, handshake, ended: false, used: now, sleepy: false, streams: 0, standing: None };
        self.by_id.insert((name.into(), self.requests[handshake].id.clone()), handshake);
        assert!(self.sessions.insert(name.into(), session).is_none(), "a session's name was used twice");
    }

    /// What asks for nothing was taken; or what was asked for is not wanted any more.
    fn taken(&mut self, exchange: ExchangeId, response: &Response) {
        let reading = self.reading(exchange);
        let (requests, cancels) = (reading.requests.clone(), reading.cancels);
        if let Some(index) = cancels {
            self.cancel(index);
        }
        // A task that is cancelled before it is made gets no handle.
        let open =
            |index: &&usize| self.requests[**index].state == State::Open && !self.requests[**index].task;
        assert_eq!(requests.iter().find(open), None, "{exchange:?} got nothing: {response:?}");
        requests.into_iter().for_each(|index| self.cancel(index));
    }

    /// A stream begins, or is taken up again: whoever carried it before does so no more.
    fn begins(&mut self, exchange: ExchangeId) {
        let reading = self.reading(exchange);
        let (kind, session) = (reading.kind, reading.session.clone());
        let Some(stream) = reading.stream.filter(|_| kind == Kind::Resumed) else { return };
        self.resumed += 1;
        let known = self.streams.get(&stream).expect("a stream that was seen");
        assert_eq!(session.as_ref(), Some(&known.session), "a stream of another session");
        for index in &known.requests {
            self.requests[*index].carrier = exchange;
        }
        for (index, other) in self.readings.iter_mut().enumerate() {
            let same = other.stream == Some(stream) && index as u64 != exchange.0 && !other.over;
            other.replaced |= same;
        }
    }

    fn refused(&mut self, now: Duration, exchange: ExchangeId, response: &Response) {
        let reading = &self.readings[exchange.0 as usize];
        self.bounds[1] += u64::from(response.status == 429);
        let no_room = reading.sleepy && response.status == 429;
        // Its session may end before its response begins.
        let session = reading.session.as_ref().and_then(|name| self.sessions.get(name));
        let over = session.is_some_and(|session| session.ended) && response.status == 404;
        assert!(!reading.sound || self.ending || no_room || over, "{exchange:?} was refused: {response:?}");
        let lives = session.filter(|session| session.lives(now) && session.owner == reading.owner);
        // A handshake may have failed while nobody read.
        let lives = lives.filter(|session| self.requests[session.handshake].state == State::Answered);
        assert!(lives.is_none() || response.status != 404, "a session was not found");
        if let (Kind::Resumed, Some(session), false) = (reading.kind, lives, self.ending) {
            let stream = &self.streams[&reading.stream.unwrap_or(0)];
            let kept =
                now < stream.broke + self.config.resume_wait && session.streams < limits::SESSION_STREAMS;
            // What nobody read is not seen here: it may have been more than is kept.
            let kept = kept && !self.floods && !no_room;
            assert!(!kept, "a stream was not kept: {response:?}");
        }
        if reading.cancels.is_some() {
            self.expected.clear();
        }
        if matches!(reading.kind, Kind::Post | Kind::Modern) {
            for index in reading.requests.clone() {
                self.requests[index].state = State::Answered;
                self.errors
                    .extend(message_of(response).as_ref().and_then(own_kind).map(|kind| (index, kind)));
            }
        }
    }

    /// Something is written to a stream.
    pub(in crate::sim::service) fn wrote(&mut self, now: Duration, exchange: ExchangeId, written: &Bytes) {
        for event in read(written) {
            let reading = self.reading(exchange);
            let first = !std::mem::replace(&mut reading.begun, true);
            // Who takes up a stream is told how long to wait the next time; that is no wish.
            let greeting = first && reading.kind != Kind::Post;
            reading.polled = event.retry.is_some() && event.data.is_none() && !greeting;
            match (event.id, event.data) {
                (id, Some(data)) if is_keep_alive(&data) => {
                    if let Some(id) = id {
                        self.first_id(now, exchange, event_id(&id));
                    }
                    self.message(now, exchange, &data, false);
                }
                (Some(id), Some(data)) => self.event(now, exchange, event_id(&id), &data),
                (None, Some(data)) => {
                    assert_eq!(self.reading(exchange).kind, Kind::Modern, "an event without an id");
                    self.message(now, exchange, &data, false);
                }
                (id, None) => assert_eq!(id, None, "an id without an event"),
            }
        }
    }

    /// The id of a keep-alive, which is not kept: only a client that knows no id of its stream is told one.
    fn first_id(&mut self, now: Duration, exchange: ExchangeId, (stream, number): (u64, u64)) {
        self.bind(now, exchange, stream);
        let reading = self.reading(exchange);
        assert_eq!((reading.last, number), (None, 0), "a keep-alive of {exchange:?} has an id");
        reading.last = Some(number);
    }

    /// An event of a session's stream: the next one, or one that was missed, exactly as it was.
    fn event(&mut self, now: Duration, exchange: ExchangeId, (stream, number): (u64, u64), data: &Bytes) {
        if self.reading(exchange).session.is_none() {
            return self.refused_handshake(now, exchange, data);
        }
        self.bind(now, exchange, stream);
        let reading = &mut self.readings[exchange.0 as usize];
        let known = self.streams.get_mut(&stream).expect("a stream");
        assert_eq!(Some(&known.session), reading.session.as_ref(), "a stream of another session");
        let seen = known.events.len() as u64;
        if data.is_empty() {
            assert_eq!(number, seen, "the first event of {exchange:?}");
            reading.last = Some(number);
            return;
        }
        // Of what nobody read in time the oldest is gone, and a question may find a better way.
        let standing = reading.kind == Kind::Standing;
        known.gaps |= (self.floods || self.asks && standing) && number > seen + 1;
        if known.gaps {
            reading.last = Some(number);
            let late = reading.kind != Kind::Post;
            return self.message(now, exchange, data, late);
        }
        // Who comes back to the standing stream without an id has read all that was written.
        let before = reading.last.unwrap_or(if reading.kind == Kind::Standing { seen } else { 0 });
        assert_eq!(number, before + 1, "{exchange:?} misses events of stream {stream}");
        reading.last = Some(number);
        if number <= seen {
            return assert_eq!(known.events[number as usize - 1], data, "{stream}-{number} has changed");
        }
        assert_eq!(number, seen + 1, "stream {stream} skips events");
        known.events.push(data.clone());
        // What is seen first by who comes back may have been said long before.
        let late = reading.kind != Kind::Post;
        self.message(now, exchange, data, late);
    }

    /// A response with events and without a session is a handshake that was refused.
    fn refused_handshake(&mut self, now: Duration, exchange: ExchangeId, data: &Bytes) {
        let requests = self.reading(exchange).requests.clone();
        let begins = requests.iter().all(|index| self.requests[*index].method == Method::Initialize);
        assert!(begins, "events with ids belong to a session");
        if let Some(answer) = message(data) {
            assert!(answer.has(Field::Error), "a session without a name: {data:?}");
            self.message(now, exchange, data, false);
        }
    }

    /// The first event tells which stream a connection carries.
    fn bind(&mut self, now: Duration, exchange: ExchangeId, stream: u64) {
        let reading = self.reading(exchange);
        if let Some(known) = reading.stream.replace(stream) {
            return assert_eq!(known, stream, "{exchange:?} carries two streams");
        }
        let session = reading.session.clone().expect("events with ids belong to a session");
        let (kind, requests) = (reading.kind, reading.requests.clone());
        let of_session = self.sessions.get_mut(&session).expect("a session");
        of_session.streams += 1;
        if kind == Kind::Standing {
            of_session.standing = Some(stream);
        }
        let new = Stream { session, requests, events: Vec::new(), gaps: false, broke: now };
        assert!(self.streams.insert(stream, new).is_none(), "stream {stream} is another's");
    }

    /// A stream ends: everything on it is answered, or somebody else carries it on.
    pub(in crate::sim::service) fn finished(&mut self, now: Duration, exchange: ExchangeId) {
        let reading = &mut self.readings[exchange.0 as usize];
        reading.over = true;
        // A task that is cancelled before it is made gets no handle.
        let open = |index: &&usize| {
            let request = &self.requests[**index];
            // A server may end a subscription.
            let ended = request.sent.is_some_and(|(_, _, attempt)| self.blame.is_cancelled(attempt));
            request.state == State::Open && !request.task && !(ended && request.method == Method::Listen)
        };
        let open = reading.requests.iter().find(open);
        let may = reading.polled || reading.replaced || self.ending || open.is_none();
        assert!(may, "{exchange:?} ended before {:?} was answered", open.map(|index| &self.requests[*index]));
        // What ends as soon as it is taken up has ended before.
        let stream = reading.stream.filter(|_| reading.began < now);
        if let Some(stream) = stream.and_then(|stream| self.streams.get_mut(&stream)) {
            stream.broke = now;
        }
    }

    /// A message that a client sees for the first time; `late` if it may have been said long before.
    fn message(&mut self, now: Duration, exchange: ExchangeId, bytes: &Bytes, late: bool) {
        let message = message(bytes).unwrap_or_else(|| panic!("no message: {bytes:?}"));
        self.check_mark(exchange, &message);
        match message.shape {
            Shape::Answer => self.answer(now, exchange, &message, late),
            Shape::Request => {
                let id = message.raw(Field::Id).and_then(number).expect("an id of ours");
                assert!(self.asked.insert(id), "question {id} was asked twice");
            }
            Shape::Notification => self.notification(exchange, &message, late),
        }
    }

    /// Nothing of one principal is seen by another.
    fn check_mark(&self, exchange: ExchangeId, message: &Message) {
        let (mark, reading) = (nonce(&message.bytes), &self.readings[exchange.0 as usize]);
        let welcome = mark.ends_with(".handshake");
        // Where all share a server, what it says of no call in particular is for all.
        let for_all = self.shares_all() && (message.shape != Shape::Answer || welcome);
        let own = mark.is_empty() || owner_of(&mark) == reading.owner;
        assert!(own || for_all, "{} reads {mark}: {message:?}", reading.owner);
    }

    fn answer(&mut self, now: Duration, exchange: ExchangeId, message: &Message, late: bool) {
        let id = message.raw(Field::Id).map(show).unwrap_or_default();
        let reading = &self.readings[exchange.0 as usize];
        let index = reading.requests.iter().find(|index| self.requests[**index].id == id);
        let index = *index.unwrap_or_else(|| panic!("{exchange:?} did not ask {id}: {message:?}"));
        let mark = nonce(&message.bytes);
        let joined = self.answer_of_its_key(index, &mark);
        let request = &mut self.requests[index];
        let name = &request.nonce;
        assert!(request.state != State::Answered, "{name} was answered twice");
        assert!(request.state != State::Cancelled || late, "{name} was answered after its cancel");
        assert!(
            mark.is_empty()
                || mark.ends_with(".handshake")
                || mark == *name
                || joined.is_some()
                || request.method == Method::TasksResult,
            "{name} got the answer to {mark}"
        );
        // Of what shapes the connection we ask ourselves too, and add to it.
        let plain = !request.method.shapes_the_connection()
            && !request.method.is_handshake()
            && !matches!(request.method, Method::Listen | Method::TasksResult)
            && !request.task;
        let own = message.raw(Field::Result).or(message.raw(Field::Error)).filter(|_| plain);
        let sent = joined.or(request.sent.map(|(_, _, attempt)| attempt));
        let said = sent.and_then(|attempt| self.blame.said(attempt));
        let theirs = own_kind(message).is_none() && sent.is_some();
        assert!(
            !theirs || own.is_none() || said.map(|said| &said[..]) == own,
            "{name} reads {message:?}, and its server said {said:?}"
        );
        // A key is looked up first.
        let slack = request.key.as_ref().map_or(Duration::ZERO, |_| SLACK);
        assert!(late || now <= request.began.saturating_add(request.max + slack), "{name} outlived its max");
        request.state = State::Answered;
        if let Some(kind) = own_kind(message) {
            self.failed += 1;
            // Whoever comes back reads of what happened long before.
            if !late {
                self.errors.push((index, kind));
            }
        }
        let session = reading.session.as_ref().and_then(|name| self.sessions.get_mut(name));
        let refused = !message.has(Field::Result);
        if let Some(session) = session.filter(|session| session.handshake == index && refused) {
            // Who was not let in has no session.
            session.ended = true;
        }
    }

    /// The attempt of another call with the same key, to which this is the answer.
    fn answer_of_its_key(&self, index: usize, mark: &str) -> Option<u64> {
        let (request, other) = (&self.requests[index], &self.requests[*self.by_nonce.get(mark)?]);
        let same = request.key.is_some() && request.key == other.key && request.nonce != other.nonce;
        other.sent.filter(|_| same).map(|(_, _, attempt)| attempt)
    }

    /// A task of the session that reads, by its token.
    fn task_with(&self, exchange: ExchangeId, token: Option<&str>) -> Option<usize> {
        let session = &self.readings[exchange.0 as usize].session;
        let fits = |request: &Request| {
            let of = &self.readings[request.carrier.0 as usize].session;
            request.task && request.token.as_deref() == token && of == session
        };
        self.requests.iter().rposition(fits)
    }

    fn notification(&mut self, exchange: ExchangeId, message: &Message, late: bool) {
        if message.text(Field::Method).as_deref() != Some("notifications/progress") {
            return;
        }
        self.progress += 1;
        let token = message.raw(Field::ParamsProgressToken).map(show);
        let requests = &self.readings[exchange.0 as usize].requests;
        let index = requests.iter().find(|index| self.requests[**index].token == token).copied();
        // Progress of a task goes to whoever waits for it.
        let index = index.or_else(|| self.task_with(exchange, token.as_deref()));
        let index = index.unwrap_or_else(|| panic!("progress on {token:?} at {exchange:?}"));
        let request = &mut self.requests[index];
        let ended = request.state == State::Answered || (request.state == State::Cancelled && !late);
        // Progress of a task outlives its handle.
        let ended = ended && !request.task;
        assert!(!ended, "progress of {} after its end", request.nonce);
        let value = message.number(Field::ParamsProgress).expect("a number");
        let says = member(&message.bytes, "message");
        let from = says.strip_prefix("by server ").and_then(|server| server.parse().ok()).map(ServerId);
        let at = request.sent.map(|(server, _, _)| server);
        let joined = request.key.is_some() && at.is_none();
        let right = from.is_none() || from == at || joined;
        assert!(right, "{} is at {at:?}, and {from:?} speaks of it", request.nonce);
        // A task is heard of on several streams, and whoever comes back reads of it later.
        let rises = value > request.last_progress || (request.task && late);
        assert!(rises, "progress of {} does not rise", request.nonce);
        request.last_progress = value;
    }
}

/// Whether a message only says that a call lives.
fn is_keep_alive(data: &Bytes) -> bool {
    memchr::memmem::find(data, b"\"dev.outlast/keepAlive\":true").is_some()
}

fn message_of(response: &Response) -> Option<Message> {
    match &response.body {
        Body::Json(json) => message(json),
        Body::Empty | Body::Events => None,
    }
}
