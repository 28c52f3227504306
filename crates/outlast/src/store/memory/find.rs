//! Looking things up in memory.

use super::super::owner::Me;
use super::super::{Id, id_of};
use super::Shelves;
use super::shelf::Shelf;
use outlast_engine::record::{Head, Record, Ticket};
use outlast_engine::store::{Found, Name, News, Query};
use outlast_engine::{Wall, limits};

impl Shelves {
    pub fn find(&self, query: &Query, me: &Me) -> Found {
        let now = me.wall();
        match query {
            Query::Record(ticket) => {
                let record = self.records.get(&id_of(ticket.as_str()));
                still(record.filter(|record| record.head.ticket == *ticket), now)
            }
            Query::Key { principal, server, key } => {
                let id = self.keys.get(&(principal.clone(), server.clone(), key.clone())).copied();
                let id = id.or_else(|| self.newest_with_key(principal, server, key));
                still(id.and_then(|id| self.records.get(&id)), now)
            }
            Query::Heads { principal, server, before, limit } => {
                let wanted = |head: &&Head| {
                    !head.is_over(now)
                        && principal.as_ref().is_none_or(|name| head.origin.principal == *name)
                        && server.as_ref().is_none_or(|name| head.origin.server == *name)
                };
                Found::Heads(
                    self.heads_before(*before)
                        .filter(wanted)
                        .take((*limit).min(limits::PAGE))
                        .cloned()
                        .collect(),
                )
            }
            Query::Changed(known) => {
                Found::Heads(known.iter().filter_map(|known| self.newer(known)).collect())
            }
            Query::Mail => Found::Mail(self.has_mail(me)),
            Query::Events { stream, after } => self.events_of(id_of(&stream.0), *after, me),
            Query::News(known) => Found::News(
                known.iter().filter_map(|(stream, after)| self.news_of(stream, *after, me)).collect(),
            ),
            Query::Session(name) => {
                let kept = self.sessions.get(&id_of(&name.0)).filter(|kept| !kept.is_over(now));
                Found::Session(kept.map(|kept| Box::new(kept.session.clone())))
            }
            Query::Calls { limit } => Found::Calls(newest(&self.calls, *limit)),
            Query::Shown => self.find_shown(me),
            Query::Measured => self.find_measured(now),
            Query::Holds => Found::Holds(self.open_holds(now)),
            Query::Decided(holds) => Found::Decided(self.decided(holds)),
            Query::Audit { limit } => Found::Audit(newest(&self.audit, *limit)),
            Query::CallbackDue(names) => Found::Due(self.callback_is_due(names, now)),
            Query::Callbacks { limit } => Found::Callbacks(self.all_callbacks(*limit)),
            Query::Usage => Found::Usage(self.usage),
        }
    }

    fn has_mail(&self, me: &Me) -> bool {
        self.mailboxes.iter().any(|((id, _), _)| self.is_open_for(id, me)) || self.has_forwarded(me)
    }

    /// Records made before one, the newest first.
    fn heads_before(&self, number: Option<u64>) -> impl Iterator<Item = &Head> {
        let older = self.order.range(..number.unwrap_or(u64::MAX)).rev();
        older.filter_map(|(_, id)| Some(&self.records.get(id)?.head))
    }

    /// A record that has changed since this revision.
    fn newer(&self, (ticket, revision): &(Ticket, u64)) -> Option<Head> {
        let head = &self.records.get(&id_of(ticket.as_str()))?.head;
        (head.revision > *revision).then(|| head.clone())
    }

    fn news_of(&self, stream: &Name, after: u64, me: &Me) -> Option<News> {
        match self.events_of(id_of(&stream.0), after, me) {
            Found::Events { last: 1.., events, lives } => {
                Some(News { stream: stream.clone(), events, lives })
            }
            _ => None,
        }
    }

    /// What is kept of a stream behind an event.
    fn events_of(&self, id: Id, after: u64, me: &Me) -> Found {
        let Some(stream) = self.streams.get(&id).filter(|stream| stream.expires > me.wall()) else {
            return Found::Events { last: 0, events: Vec::new(), lives: false };
        };
        let events = self.events.range((id, after.saturating_add(1))..=(id, u64::MAX));
        let events = events.take(limits::STREAM_EVENTS).map(|((_, number), bytes)| (*number, bytes.clone()));
        Found::Events { last: stream.last, events: events.collect(), lives: self.lives(&id, me) }
    }

    fn newest_with_key(&self, principal: &str, server: &str, key: &str) -> Option<Id> {
        let has = |record: &Record| {
            let origin = &record.head.origin;
            *origin.principal == *principal && *origin.server == *server && origin.key.as_deref() == Some(key)
        };
        let found = self.order.iter().rev().find(|(_, id)| self.records.get(id).is_some_and(has));
        found.map(|(_, id)| *id)
    }

    /// Whether another process owns a stream and lives.
    pub fn lives(&self, stream: &Id, me: &Me) -> bool {
        let Some(stream) = self.streams.get(stream) else { return false };
        let until = self.leases.get(&stream.owner).copied().unwrap_or(0);
        stream.owner != me.name && !me.outlives(&stream.owner, until)
    }

    /// Whether a record is open and ours.
    pub fn is_open_for(&self, id: &Id, me: &Me) -> bool {
        self.records.get(id).is_some_and(|record| record.head.state.is_open() && record.head.owner == me.name)
    }
}

/// A record, unless it is over.
fn still(record: Option<&Record>, now: Wall) -> Found {
    Found::Record(record.filter(|record| !record.head.is_over(now)).cloned().map(Box::new))
}

/// The last entries, the newest first.
fn newest<T: Clone>(all: &Shelf<u64, T>, limit: usize) -> Vec<T> {
    all.iter().rev().take(limit).map(|(_, one)| one.clone()).collect()
}
