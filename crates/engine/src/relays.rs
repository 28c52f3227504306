//! The machine of relays: connections whose client reads a stream that another process writes.
//!
//! What that process adds comes from the store, which is asked for all relays at once. A relay knows the stream's name
//! there and the last event that its client was told; who the client is and what an event means is the router's.

use crate::clients::session::EventId;
use crate::id::{ClientId, ExchangeId};
use crate::limits;
use crate::store::Name;
use crate::time::Mono;
use crate::timers::{Owner, Timers};
use std::collections::BTreeMap;

/// Every connection that reads what another process writes.
#[derive(Debug, Default)]
pub(crate) struct Relays {
    open: BTreeMap<ExchangeId, Relay>,
    armed: Option<Mono>,
    /// The store was asked what is new, and has not answered.
    looks: bool,
    /// When it was last asked.
    looked: Mono,
}

/// One of them.
#[derive(Clone, Debug)]
pub(crate) struct Relay {
    pub(crate) client: ClientId,
    pub(crate) stream: Name,
    /// The last event that its client knows.
    pub(crate) seen: EventId,
    /// It waits until then for its stream to be there; the response has not begun.
    pub(crate) waits: Option<Mono>,
    /// When the stream's owner was last told that it is read.
    pub(crate) told: Mono,
    /// The store is asked what is new, and has not answered.
    pub(crate) asked: bool,
}

impl Relays {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn is_full(&self) -> bool {
        reached!(RELAYS, self.len() >= limits::RELAYS)
    }

    pub(crate) fn get(&self, exchange: ExchangeId) -> Option<&Relay> {
        self.open.get(&exchange)
    }

    /// In the order of their connections.
    pub(crate) fn exchanges(&self) -> Vec<ExchangeId> {
        self.open.keys().copied().collect()
    }

    /// A client of this session reads one.
    pub(crate) fn has_reader(&self, client: ClientId) -> bool {
        self.open.values().any(|relay| relay.client == client)
    }

    pub(crate) fn armed(&self) -> Option<Mono> {
        self.armed
    }

    /// A connection reads a stream from now on.
    pub(crate) fn open(&mut self, timers: &mut Timers, now: Mono, exchange: ExchangeId, relay: Relay) {
        self.open.insert(exchange, relay);
        if self.armed.is_none() {
            timers.set(Owner::Relays, &mut self.armed, Some(now + limits::RELAY));
        }
    }

    /// A connection reads no more; the last one lets go of the timer.
    pub(crate) fn end(&mut self, timers: &mut Timers, exchange: ExchangeId) -> Option<Relay> {
        let relay = self.open.remove(&exchange);
        if self.open.is_empty() {
            timers.set(Owner::Relays, &mut self.armed, None);
        }
        relay
    }

    /// A client was told an event.
    pub(crate) fn has_told(&mut self, exchange: ExchangeId, number: u64) {
        if let Some(relay) = self.open.get_mut(&exchange) {
            relay.seen.number = number;
        }
    }

    /// It is time to look. Gives what is asked, unless the last look is not answered.
    pub(crate) fn looks(&mut self, timers: &mut Timers, now: Mono) -> Option<Vec<(Name, u64)>> {
        reached!(RELAY if true);
        (self.armed, self.looked) = (None, now);
        if self.open.is_empty() {
            return None;
        }
        timers.set(Owner::Relays, &mut self.armed, Some(now + limits::RELAY));
        if std::mem::replace(&mut self.looks, true) {
            return None;
        }
        let ask = |relay: &mut Relay| {
            relay.asked = true;
            (relay.stream.clone(), relay.seen.number)
        };
        Some(self.open.values_mut().map(ask).collect())
    }

    /// There may be something new: the next look is earlier.
    pub(crate) fn hurry(&mut self, timers: &mut Timers, now: Mono) {
        let soon = now.max(self.looked + limits::RELAY_HINTED);
        if self.armed.is_some_and(|at| at > soon) {
            reached!(RELAY_HINTED if true);
            timers.set(Owner::Relays, &mut self.armed, Some(soon));
        }
    }

    /// A look is answered. Gives the connections that it was about.
    pub(crate) fn has_looked(&mut self) -> Vec<ExchangeId> {
        self.looks = false;
        let asked = |(exchange, relay): (&ExchangeId, &mut Relay)| {
            std::mem::take(&mut relay.asked).then_some(*exchange)
        };
        self.open.iter_mut().filter_map(asked).collect()
    }

    /// Streams whose owners are to be told again that they are read.
    pub(crate) fn told_again(&mut self, now: Mono) -> Vec<(ClientId, EventId)> {
        let due = |relay: &&mut Relay| now.since(relay.told) >= limits::RENEW;
        let tell = |relay: &mut Relay| {
            relay.told = now;
            (relay.client, relay.seen.clone())
        };
        self.open.values_mut().filter(due).map(tell).collect()
    }
}
