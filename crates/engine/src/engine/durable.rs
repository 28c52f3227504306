//! Sessions and streams over HTTP that outlive this process.
//!
//! A session's name and its handshake are stored when it begins, its log level and subscriptions when they come. A
//! request for a session that is not in memory waits until the session has been taken over in the store; if it is there,
//! and of the same principal, it is taken in asleep and woken as any other that slept. `ownership` says what becomes of
//! the process that had it before.
//!
//! The events of a stream are stored from the moment that its client is gone, to the end. With them goes what
//! the next process has to know: that the stream belongs to no request, or that its request is settled, or a
//! *fallback answer*, which counts if this process ends before there is a better one. A call with a ticket needs none: it
//! is found again by its ticket. A process that lives is not spoken for: the store says who owns a stream and whether
//! that process lives, and its fallback answer is told only if it does not.
//!
//! What is stored is found by the session's name and the stream's, both unguessable; and only on a server of the
//! same identity.

mod former;
mod ownership;
mod relaying;
mod rest;

pub(super) use former::About;

use super::Engine;
use super::ledger::Pending;
use crate::action::Action;
use crate::clients::session::{EventId, Session, Setup, Stream};
use crate::clients::{Client, Door, Entry, Open, Way};
use crate::error::{Kind, ServerState, Wording};
use crate::event::Line;
use crate::http::{Body, Head, Response};
use crate::id::{ClientId, ExchangeId, StreamId};
use crate::limits;
use crate::store::{self, Committed, Done, Found, Loaded, Name, Query, Stored, Write};
use crate::time::Mono;
use crate::wire::scan_message;
use bytes::Bytes;
use rest::{BEFORE, FALLBACK, Rest, SETTLED, STANDING};

/// How many events of a stream come between two times that the oldest are forgotten.
const FORGET_EVERY: u64 = 64;

/// A request for a session that the store is asked for.
#[derive(Clone, Debug)]
pub(super) struct Knock {
    pub(super) exchange: ExchangeId,
    head: Head,
    what: What,
}

#[derive(Clone, Debug)]
pub(super) enum What {
    Post(Box<Line>),
    Get,
    Delete,
}

/// A request for the events of a stream that is not in memory.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    pub(super) exchange: ExchangeId,
    client: ClientId,
    after: EventId,
}

impl Engine {
    // Sessions.

    /// Stores a session as it is now.
    pub(super) fn keep_session(&mut self, client: ClientId) {
        if !self.config.durable {
            return;
        }
        let Some(state) = self.clients.get(&client) else { return };
        let Some(session) = state.session().filter(|session| !session.disowned) else { return };
        let kept = store::Session {
            name: self.name_of_session(state.entry, &session.id),
            principal: state.principal.clone().unwrap_or_default(),
            initialize: session.initialize.bytes.clone(),
            initialized: session
                .initialized
                .as_ref()
                .map(|message| message.bytes.clone())
                .unwrap_or_default(),
            setup: session.setup.encode(),
            epoch: session.epoch,
        };
        self.clients.is_being_stored(client, self.at);
        self.submit(Pending::KeptSession(client), Write::Session(Box::new(kept)));
    }

    /// Stores a session again that has been used since, before the store takes it for forgotten.
    pub(super) fn keep_session_alive(&mut self, now: Mono, client: ClientId) {
        let Some(session) = self.clients.get(&client).and_then(Client::session) else { return };
        if session.used > session.stored && now.since(session.stored) >= limits::SLEEP / 4 {
            self.keep_session(client);
        }
    }

    pub(super) fn forget_stored_session(&mut self, client: ClientId, name: &str) {
        let entry = self.clients.get(&client).map(|client| client.entry);
        if let Some(entry) = entry.filter(|_| self.config.durable) {
            let stored = self.name_of_session(entry, name);
            self.submit(Pending::Ended(name.into()), Write::EndSession(stored));
        }
    }

    fn name_of_session(&self, entry: Entry, id: &str) -> Name {
        Name(format!("{}/{id}", self.address_of(entry)).into())
    }

    /// What the address of a door is called in the store. That of one server has the server's own name, so that its
    /// sessions are found again whatever else the file says.
    fn address_of(&self, entry: Entry) -> &str {
        let definition = match entry {
            Entry::Server(definition) => self.config.definition(definition),
            Entry::Merged => None,
        };
        definition.map_or(&self.config.identity, |definition| &definition.identity)
    }

    /// Takes a session over that is not in memory. True if the request waits for that.
    pub(super) fn looks_for_session(
        &mut self,
        exchange: ExchangeId,
        head: &Head,
        what: impl FnOnce() -> What,
    ) -> bool {
        let Some(name) = head.session.as_deref().filter(|_| self.config.durable && self.ending.is_none())
        else {
            return false;
        };
        if self.clients.session_named(name).is_some()
            || !is_session_name(name)
            || self.ledger.ends_session(name)
        {
            return false;
        }
        if reached!(KNOCKS, self.ledger.exchanges() >= limits::KNOCKS) {
            self.refuse_for_now(exchange);
            return true;
        }
        let Ok(entry) = self.entry_of(head) else { return false };
        let principal = head.principal.clone().unwrap_or_default();
        let take = Write::TakeSession { name: self.name_of_session(entry, name), principal };
        let knock = Knock { exchange, head: head.clone(), what: what() };
        self.submit(Pending::Session(Box::new(knock)), take);
        true
    }

    pub(super) fn session_was_looked_up(&mut self, now: Mono, knock: Knock, outcome: &Stored) {
        let Knock { exchange, head, what } = knock;
        let Ok([Done::Session(found)]) = outcome.as_ref().map(|Committed { done, .. }| &done[..]) else {
            return self.refuse_for_now(exchange);
        };
        match found {
            Some(_) if !self.ledger.has_entropy() => return self.refuse_for_now(exchange),
            Some(kept) => self.take_in(now, &head, kept),
            None => {}
        }
        match what {
            What::Post(line) => self.post(now, exchange, &head, &line),
            What::Get => self.get(now, exchange, &head),
            What::Delete => self.delete(now, exchange, &head),
        }
    }

    /// Takes a stored session in, asleep.
    fn take_in(&mut self, now: Mono, head: &Head, kept: &store::Session) {
        let (Some(name), Ok(entry)) = (head.session.clone(), self.entry_of(head)) else { return };
        if let Some(client) = self.clients.session_named(&name) {
            // Another request was quicker.
            return self.clients.is_owned_in(client, kept.epoch);
        }
        let Some(initialize) = scan_message(kept.initialize.clone()) else { return };
        let Some(entropy) = self.ledger.take_entropy() else { return };
        self.act(Action::NeedEntropy);
        let standing = self.clients.next_stream();
        let mut session = Session::new(name.clone(), &entropy, initialize.clone(), standing, now);
        session.initialized = scan_message(kept.initialized.clone());
        session.setup = Setup::decode(&kept.setup);
        session.stored_setup = session.setup.clone();
        (session.asleep, session.epoch) = (true, kept.epoch);
        let client = self.clients.new_id();
        let door = Door::Session(Box::new(session));
        self.clients.open(client, Client::new(door, entry, head.principal.clone()));
        self.meet(client, &initialize);
        self.clients.open_stream(client, None, true, 1);
        self.session_was_used(now, client);
    }

    /// Whoever asked is gone, and has not been let in.
    pub(super) fn stop_knocking(&mut self, exchange: ExchangeId) {
        self.ledger.forget_exchange(exchange);
        self.relays.end(&mut self.timers, exchange);
    }

    // Streams.

    /// Nobody reads a stream any more: what is kept of it is stored, and all that comes from now on.
    pub(super) fn store_stream(&mut self, id: StreamId) {
        if !self.config.durable {
            return;
        }
        let Some(stream) = self.clients.stream(id).filter(|stream| stream.legacy) else { return };
        let session = self.clients.get(&stream.client).and_then(Client::session);
        let standing = session.is_some_and(|session| session.standing == id);
        let mut events = stream.whole_events();
        events.push((BEFORE, rest::moment(stream.last, self.store_time())));
        match (standing, stream.settled) {
            (true, _) => events.push((STANDING, Bytes::new())),
            (false, Some(_)) => events.push((SETTLED, Bytes::new())),
            // Of several requests in an array some may be answered later, and a fallback answer is not taken back.
            (false, None) if stream.open > 1 => {}
            (false, None) => events.extend(self.fallback_answer(id).map(|fallback| (FALLBACK, fallback))),
        }
        self.clients.stores_stream(id);
        self.append(id, events);
        self.tickets.arm_upkeep(&mut self.timers, self.at, true);
    }

    /// An event of a stream whose client was gone once, and may be gone again.
    pub(super) fn store_event(&mut self, id: StreamId, number: u64, event: &Bytes) {
        if !self.clients.stream(id).is_some_and(|stream| stream.stored) {
            return;
        }
        self.append(id, vec![(number, event.clone())]);
        // As in memory there are so many, and a few more.
        let through = number.saturating_sub(limits::STREAM_EVENTS as u64);
        if through > 0
            && number.is_multiple_of(FORGET_EVERY)
            && let Some(stream) = self.name_of_stream(id)
        {
            self.submit(Pending::Noted, Write::Forget { stream, through });
        }
    }

    /// The last request of a stream is settled.
    pub(super) fn store_settled(&mut self, id: StreamId) {
        if self.clients.stream(id).is_some_and(|stream| stream.stored) {
            self.append(id, vec![(SETTLED, Bytes::new())]);
        }
    }

    fn append(&mut self, id: StreamId, events: Vec<(u64, Bytes)>) {
        let Some(stream) = self.name_of_stream(id) else { return };
        let keep = self.config.resume_wait;
        let hint = self.is_relayed(id).then(|| Write::Hint(stream.clone()));
        let append = Write::Append { stream, keep, events };
        self.submit_all(Pending::Noted, [append].into_iter().chain(hint).collect());
    }

    /// A stream that is forgotten here is forgotten there too, unless its client is served by another process.
    pub(super) fn forget_stored_stream(&mut self, id: StreamId) {
        let Some(stream) = self.clients.stream(id).filter(|stream| stream.stored) else { return };
        let session = self.clients.get(&stream.client).and_then(Client::session);
        if session.is_some_and(|session| !session.disowned)
            && let Some(stream) = self.name_of_stream(id)
        {
            self.submit(Pending::Noted, Write::Forget { stream, through: u64::MAX });
        }
    }

    fn name_of_stream(&self, id: StreamId) -> Option<Name> {
        let client = self.clients.get(&self.clients.stream(id)?.client)?;
        let session = client.session()?;
        Some(self.stored_name(client.entry, session, &session.mark, id))
    }

    fn stored_name(&self, entry: Entry, session: &Session, mark: &str, id: StreamId) -> Name {
        Name(format!("{}/{}/{mark}-{}", self.address_of(entry), session.id, id.0).into())
    }

    fn stored_name_of(&self, client: ClientId, event: &EventId) -> Option<Name> {
        let client = self.clients.get(&client)?;
        Some(self.stored_name(client.entry, client.session()?, &event.mark, event.stream))
    }

    /// Whether a stream with an open call is stored: then others must see that we live.
    pub(super) fn has_stored_calls(&self) -> bool {
        let waits = |id: StreamId, stream: &Stream| {
            let session = self.clients.get(&stream.client).and_then(Client::session);
            stream.settled.is_none() && session.is_some_and(|session| session.standing != id)
        };
        self.clients.stored_streams().any(|(id, stream)| waits(id, stream))
    }

    /// What the open request of a stream is answered if this process ends before there is a better answer.
    fn fallback_answer(&self, id: StreamId) -> Option<Bytes> {
        let client = self.clients.get(&self.clients.stream(id)?.client)?;
        let mut calls = client.all_open().filter_map(|open| match open {
            Open::Call(call) => self.calls.get(call),
            _ => None,
        });
        let call = calls.find(|call| call.request.way == Way::Stream(id))?;
        let mut failure = self.failure(self.at, call, Kind::ServerGone, None);
        failure.state = ServerState::Gone;
        failure.detail = Some("outlast itself was ended during the call".into());
        Some(failure.answer(call.request.id.patch().as_slice(), false, Wording::Own).into())
    }

    /// Asks the store for the events after one that is not in memory.
    pub(super) fn looks_for_events(
        &mut self,
        exchange: ExchangeId,
        client: ClientId,
        after: EventId,
    ) -> bool {
        let own = self.clients.get(&client).and_then(Client::session).map(|session| &session.mark);
        if !self.config.durable || own.is_none_or(|own| *own == after.mark) {
            return false;
        }
        if reached!(KNOCKS, self.ledger.exchanges() >= limits::KNOCKS) {
            self.refuse_for_now(exchange);
        } else {
            self.look_for_events(exchange, client, after);
        }
        true
    }

    fn look_for_events(&mut self, exchange: ExchangeId, client: ClientId, after: EventId) {
        let Some(stream) = self.stored_name_of(client, &after) else { return };
        // With the event itself and the one before, which tell that it was sent; and with what is about the stream.
        let query = Query::Events { stream, after: after.number.saturating_sub(2).min(BEFORE - 1) };
        self.load(Pending::Replay(Box::new(Replay { exchange, client, after })), query);
    }

    pub(super) fn events_were_looked_up(&mut self, now: Mono, replay: &Replay, outcome: &Loaded) {
        let Replay { exchange, client, after } = replay;
        let (events, lives) = match outcome {
            Ok(Found::Events { events, lives, .. }) if !events.is_empty() => {
                // It may be one of ours, from before its session was taken over and came back.
                (events, *lives || self.clients.has_disowned(&after.mark))
            }
            Ok(_) => return self.waits_for_stream(now, *exchange, *client, after),
            Err(_) => return self.refuse_for_now(*exchange),
        };
        let Some(session) = self.clients.get(client).and_then(Client::session) else {
            return self.refuse_event(*exchange);
        };
        if events.len() >= limits::STREAM_EVENTS {
            // There are more, and what is known of the stream stands behind them.
            return self.refuse_old_event(*exchange);
        }
        let rest = Rest::of(events, after.number, self.store_time());
        if !rest.has_sent(after.number) {
            return self.refuse_future_event(*exchange);
        }
        if !rest.is_whole_after(after.number) {
            return self.refuse_old_event(*exchange);
        }
        let own = session.standing;
        if rest.standing && self.clients.stream(own).is_some_and(|stream| stream.exchange.is_some()) {
            return self.refuse_standing(*exchange);
        }
        self.act(Action::Respond(
            *exchange,
            Response { status: 200, session: None, retry_after: None, body: Body::Events },
        ));
        let retry = self.config.resume_min_wait.as_millis();
        self.act(Action::Write(*exchange, format!(": outlast\nretry: {retry}\n\n").into()));
        let told = self.tell_rest(*exchange, &rest, after.number);
        if rest.standing {
            return self.go_on_with(now, *exchange, own);
        }
        let seen = EventId { number: told, ..after.clone() };
        // While its process lives the call runs.
        if !lives {
            self.tell_fallback_answer(*exchange, *client, &rest, &seen);
        } else if !rest.settled && self.reads_on(now, *exchange, *client, &seen) {
            return;
        }
        self.act(Action::Finish(*exchange));
    }

    /// Passes events on that another process has written. Gives the number of the last one.
    fn tell_rest(&mut self, exchange: ExchangeId, rest: &Rest<'_>, after: u64) -> u64 {
        let mut told = after;
        for (number, event) in rest.after(after) {
            self.act(Action::Write(exchange, event.clone()));
            told = *number;
        }
        told
    }

    /// The process whose call it was is gone, and has left word.
    fn tell_fallback_answer(
        &mut self,
        exchange: ExchangeId,
        client: ClientId,
        rest: &Rest<'_>,
        seen: &EventId,
    ) {
        let Some((number, fallback)) = rest.fallback_after(seen.number, self.store_time()) else { return };
        let adopted = self.stored_name_of(client, seen);
        adopted.into_iter().for_each(|name| _ = self.submit(Pending::Noted, Write::Adopt(name)));
        let id = EventId { number, ..seen.clone() };
        let text = [format!("id: {id}\ndata: ").as_bytes(), &fallback, b"\n\n"].concat();
        self.act(Action::Write(exchange, text.into()));
    }
}

/// Whether it can be one of ours: then it costs a look into the store.
fn is_session_name(name: &str) -> bool {
    name.len() == 32 && name.bytes().all(|byte| byte.is_ascii_hexdigit())
}
