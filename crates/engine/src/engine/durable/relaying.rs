//! Streams that are written by one process and read at another.
//!
//! A call stays where it began; its client may come back for its stream anywhere. The process that it comes to tells it
//! what is stored of the stream, and then goes on: every [`limits::RELAY`], and when the store hints that there is something, it looks for what was added (one question for
//! all streams), until the call is settled or the client hangs up. The process that writes the stream is told that it is
//! read, now and every [`limits::RENEW`]: from then on it stores each progress, which it otherwise keeps back until
//! somebody reads, and says in silence that the call lives. If it does not know yet that its client is gone, it learns it
//! so, and stores what it has; for that long the client's request waits.
//!
//! If the writing process ends, its fallback answer is told, as to everybody who comes then.

use super::former::About;
use super::rest::Rest;
use crate::action::Action;
use crate::clients::Client;
use crate::clients::session::EventId;
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::id::{ClientId, ExchangeId};
use crate::limits;
use crate::relays::Relay;
use crate::store::{Found, Loaded, Name, News, Query};
use crate::time::Mono;
use std::collections::BTreeMap;

// Where it is read.
impl Engine {
    /// A connection has been told all there is of a stream that another process writes. False if it reads no more.
    pub(super) fn reads_on(
        &mut self,
        now: Mono,
        exchange: ExchangeId,
        client: ClientId,
        seen: &EventId,
    ) -> bool {
        let Some(stream) = self.stored_name_of(client, seen) else { return false };
        if self.relays.is_full() {
            return false;
        }
        self.relay(now, exchange, Relay::new(now, client, stream, seen.clone(), None));
        true
    }

    /// Nothing is stored of a stream: the process that writes it may not know yet that its client is gone.
    pub(super) fn waits_for_stream(
        &mut self,
        now: Mono,
        exchange: ExchangeId,
        client: ClientId,
        seen: &EventId,
    ) {
        let moved = self.clients.get(&client).and_then(Client::session).filter(|session| session.epoch > 1);
        let stream = moved.and_then(|_| self.stored_name_of(client, seen));
        let Some(stream) = stream.filter(|_| !self.relays.is_full()) else {
            return self.refuse_event(exchange);
        };
        let until = Some(now + limits::RELAY_WAIT);
        self.relay(now, exchange, Relay::new(now, client, stream, seen.clone(), until));
    }

    fn relay(&mut self, now: Mono, exchange: ExchangeId, relay: Relay) {
        let (client, seen) = (relay.client, relay.seen.clone());
        self.relays.open(&mut self.timers, now, exchange, relay);
        self.tell_former_owners(client, &About::Reads(seen));
    }

    pub(in crate::engine) fn relays_due(&mut self, now: Mono) {
        if let Some(known) = self.relays.looks(&mut self.timers, now) {
            self.load(Pending::News, Query::News(known));
        }
        for (client, seen) in self.relays.told_again(now) {
            self.tell_former_owners(client, &About::Reads(seen));
        }
    }

    pub(in crate::engine) fn news_came(&mut self, now: Mono, outcome: &Loaded) {
        let asked = self.relays.has_looked();
        // A store that does not answer now may answer the next time.
        let Ok(Found::News(all)) = outcome else { return };
        let all: BTreeMap<&str, &News> = all.iter().map(|news| (&*news.stream.0, news)).collect();
        for exchange in asked {
            let Some(relay) = self.relays.get(exchange).cloned() else { continue };
            match (all.get(&*relay.stream.0), relay.waits) {
                (Some(_), Some(_)) => self.stream_is_there(exchange, relay),
                (Some(news), None) => self.tell_news(exchange, &relay, news),
                (None, Some(until)) if now < until => {}
                (None, Some(_)) => self.refuse_missing_stream(exchange),
                // It is forgotten.
                (None, None) => self.end_relay(exchange),
            }
        }
    }

    fn stream_is_there(&mut self, exchange: ExchangeId, relay: Relay) {
        self.relays.end(&mut self.timers, exchange);
        self.look_for_events(exchange, relay.client, relay.seen);
    }

    fn refuse_missing_stream(&mut self, exchange: ExchangeId) {
        reached!(RELAY_WAIT if true);
        self.relays.end(&mut self.timers, exchange);
        self.refuse_event(exchange);
    }

    fn tell_news(&mut self, exchange: ExchangeId, relay: &Relay, news: &News) {
        let rest = Rest::of(&news.events, relay.seen.number, self.store_time());
        if !rest.is_whole_after(relay.seen.number) {
            // Who comes again is told what is missing.
            return self.end_relay(exchange);
        }
        let number = self.tell_rest(exchange, &rest, relay.seen.number);
        self.relays.has_told(exchange, number);
        if rest.settled {
            return self.end_relay(exchange);
        }
        if !news.lives && !self.clients.has_disowned(&relay.seen.mark) {
            let seen = EventId { number, ..relay.seen.clone() };
            self.tell_fallback_answer(exchange, relay.client, &rest, &seen);
            self.end_relay(exchange);
        }
    }

    fn end_relay(&mut self, exchange: ExchangeId) {
        match self.relays.end(&mut self.timers, exchange) {
            Some(Relay { waits: None, .. }) => self.act(Action::Finish(exchange)),
            Some(_) if self.ending.is_some() => self.refuse_stopped(exchange),
            Some(_) => self.refuse_ended(exchange),
            None => {}
        }
    }

    /// A client is gone, and what it reads.
    pub(in crate::engine) fn end_relays_of(&mut self, client: ClientId) {
        for exchange in self.relays.exchanges() {
            if self.relays.get(exchange).is_some_and(|relay| relay.client == client) {
                self.end_relay(exchange);
            }
        }
    }

    /// Nothing more is passed on.
    pub(in crate::engine) fn end_relays(&mut self) {
        self.relays.exchanges().into_iter().for_each(|exchange| self.end_relay(exchange));
    }
}

// Where it is written.
impl Engine {
    /// Whether a client of ours reads a stream at another process, or on another connection for another session of the
    /// same name here.
    pub(super) fn is_read_elsewhere(&mut self, client: ClientId, event: &EventId) -> bool {
        let id = event.stream;
        let Some(session) = self.clients.get(&client).and_then(Client::session) else { return false };
        if session.mark != event.mark || session.standing == id || !session.streams.contains(&id) {
            return false;
        }
        if let Some(exchange) = self.clients.hangs_up(id) {
            self.act(Action::Finish(exchange));
        }
        self.left_alone(id);
        self.clients.is_read_elsewhere(id, self.at + limits::RELAYED);
        if self.clients.stream(id).is_some_and(|stream| stream.stored) {
            // Nothing is new; but it is kept for as long again.
            self.append(id, Vec::new());
        } else {
            self.store_stream(id);
        }
        true
    }
}

impl Relay {
    fn new(now: Mono, client: ClientId, stream: Name, seen: EventId, waits: Option<Mono>) -> Relay {
        Relay { client, stream, seen, waits, told: now, asked: false }
    }
}
