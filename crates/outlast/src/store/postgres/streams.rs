//! Streams of events, the sessions they belong to, and what is over.

use super::error::{Failure, Stop};
use super::forwarded::EXPIRED as EXPIRED_FORWARDED;
use super::read::{session, session_of, sleep};
use super::statement::{Statement, text};
use super::transaction::Transaction;
use super::writes::{Quick, kept, kept_if_any};
use crate::store::owner::Me;
use crate::store::{id_of, session_weight};
use bytes::Bytes;
use outlast_engine::store::{Bounds, Done, Name, Refusal, Session};
use outlast_engine::{Wall, limits};
use std::time::Duration;

/// Rows of one kind that go at once, so that nobody waits long for what goes.
pub const BATCH: u64 = 1_000;

/// Events for a stream of ours, or a new one, if there is room (`$8`).
const APPEND: &str = "
WITH room AS (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM outlast.usage),
    put AS (INSERT INTO outlast.streams (id, last, expires, owner, epoch)
        SELECT $1, $2, outlast.clock() + $3, $4, 1 FROM room WHERE room.bytes + $7 <= $8
        ON CONFLICT (id) DO UPDATE SET last = greatest(streams.last, excluded.last), expires = excluded.expires
        WHERE streams.owner = $4 RETURNING number),
    added AS (INSERT INTO outlast.events (stream, number, bytes)
        SELECT put.number, event.number, event.bytes FROM put, unnest($5::bigint[], $6::bytea[]) AS event (number, bytes)
        ON CONFLICT DO NOTHING RETURNING 64 + length(bytes) AS bytes)
SELECT 0::bigint, coalesce((SELECT sum(bytes) FROM added), 0)::bigint FROM put";

pub fn append<'a>(
    stream: &Name,
    keep: Duration,
    events: &'a [(u64, Bytes)],
    me: &'a Me,
    room: u64,
) -> Quick<'a> {
    let weight = events.iter().map(|(_, bytes)| crate::store::small_weight(bytes)).sum();
    let statement = Statement::new(APPEND)
        .id(id_of(&stream.0))
        .int(events.iter().map(|(number, _)| *number).max().unwrap_or(0))
        .int(u64::try_from(keep.as_millis()).unwrap_or(u64::MAX))
        .text(&me.name)
        .ints(events.iter().map(|(number, _)| *number))
        .blobs(events.iter().map(|(_, bytes)| &bytes[..]))
        .int(weight)
        .int(room);
    Quick::counted(statement, kept_if_any)
}

const OWNER: &str = "SELECT owner FROM outlast.streams WHERE id = $1 FOR UPDATE";

/// A new owner of a stream whose old one is gone.
const ADOPT: &str = "UPDATE outlast.streams SET owner = $2, epoch = epoch + 1 WHERE id = $1 AND owner = $3";

const FORGET: &str = "
WITH gone AS (DELETE FROM outlast.events USING outlast.streams
    WHERE events.stream = streams.number AND id = $1 AND events.number <= $2 RETURNING 64 + length(bytes) AS bytes)
SELECT 0::bigint, -coalesce((SELECT sum(bytes) FROM gone), 0)::bigint";

const FORGET_ALL: &str = "
WITH sums AS (SELECT coalesce(sum(64 + length(bytes)), 0)::bigint AS bytes FROM outlast.events
        JOIN outlast.streams ON events.stream = streams.number WHERE id = $1),
    gone AS (DELETE FROM outlast.streams WHERE id = $1)
SELECT 0::bigint, -bytes FROM sums";

pub fn forget(stream: &Name, through: u64) -> Quick<'_> {
    let id = id_of(&stream.0);
    let statement = match through {
        u64::MAX => Statement::new(FORGET_ALL).id(id),
        _ => Statement::new(FORGET).id(id).int(through),
    };
    Quick::counted(statement, kept)
}

/// A session of ours, or a new one, in place of those that were not used for the longest time.
const KEEP: &str = "
WITH idle AS (DELETE FROM outlast.sessions WHERE id IN
        (SELECT id FROM outlast.sessions WHERE id <> $1 ORDER BY used DESC OFFSET $11) RETURNING weight),
    old AS (SELECT weight FROM outlast.sessions WHERE id = $1),
    room AS (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM outlast.usage),
    put AS (INSERT INTO outlast.sessions AS kept (id, name, principal, initialize, initialized, setup, used, weight,
            owner, epoch)
        SELECT $1, $2, $3, $4, $5, $6, outlast.clock(), $7, $8, $9 FROM room WHERE room.bytes + $7 <= $10
        ON CONFLICT (id) DO UPDATE SET initialize = excluded.initialize, initialized = excluded.initialized,
            setup = excluded.setup, used = excluded.used, weight = excluded.weight
        WHERE kept.owner = excluded.owner AND kept.epoch = excluded.epoch RETURNING weight)
SELECT 0::bigint, (put.weight - coalesce((SELECT weight FROM old), 0)
    - coalesce((SELECT sum(weight) FROM idle), 0))::bigint FROM put";

pub fn keep_session<'a>(session: &'a Session, me: &'a Me, left: &Bounds) -> Quick<'a> {
    let statement = Statement::new(KEEP)
        .id(id_of(&session.name.0))
        .text(&session.name.0)
        .text(&session.principal)
        .blob(&session.initialize)
        .blob(&session.initialized)
        .blob(&session.setup)
        .int(session_weight(session))
        .text(&me.name)
        .int(session.epoch)
        .int(left.bytes)
        .int(left.sessions.max(1) - 1);
    Quick::counted(statement, kept_if_any)
}

const TAKE: &str = concat!(
    "UPDATE outlast.sessions SET epoch = epoch + (owner <> $3)::int, owner = $3, used = outlast.clock(),
        former = CASE WHEN owner = $3 THEN former ELSE array_remove(array_remove(
            former[greatest(1, cardinality(former) - $5::int + 2):], $3), owner) || owner END
     WHERE id = $1 AND principal = $2 AND used > outlast.clock() - $4 RETURNING ",
    session!()
);

pub fn take_session<'a>(name: &Name, principal: &'a str, me: &'a Me) -> Quick<'a> {
    let statement = Statement::new(TAKE)
        .id(id_of(&name.0))
        .text(principal)
        .text(&me.name)
        .int(sleep())
        .int(limits::FORMER_OWNERS as u64);
    Quick::uncounted(statement, |rows| Some(Done::Session(rows.first().map(session_of))))
}

const END: &str = "
WITH gone AS (DELETE FROM outlast.sessions WHERE id = $1 RETURNING weight)
SELECT 0::bigint, -coalesce((SELECT sum(weight) FROM gone), 0)::bigint";

pub fn end_session(name: &Name) -> Quick<'_> {
    Quick::counted(Statement::new(END).id(id_of(&name.0)), kept)
}

const EXPIRED_RECORDS: &str = "
WITH gone AS (DELETE FROM outlast.records WHERE number IN
    (SELECT number FROM outlast.records WHERE state >= 2 AND expires IS NOT NULL AND expires <= outlast.clock()
     LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING weight)
SELECT count(*), coalesce(sum(weight), 0)::bigint FROM gone";

const EXPIRED_STREAMS: &str = "
WITH old AS (SELECT number FROM outlast.streams WHERE expires <= outlast.clock() LIMIT $1 FOR UPDATE SKIP LOCKED),
    sums AS (SELECT coalesce(sum(64 + length(bytes)), 0)::bigint AS bytes FROM outlast.events
        WHERE stream IN (SELECT number FROM old)),
    gone AS (DELETE FROM outlast.streams WHERE number IN (SELECT number FROM old) RETURNING number)
SELECT (SELECT count(*) FROM gone), bytes FROM sums";

const EXPIRED_SESSIONS: &str = "
WITH gone AS (DELETE FROM outlast.sessions WHERE id IN
    (SELECT id FROM outlast.sessions WHERE used <= outlast.clock() - $2 LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING weight)
SELECT count(*), coalesce(sum(weight), 0)::bigint FROM gone";

impl Transaction<'_> {
    /// Whether a stream is ours, or nobody's.
    pub async fn may_append(&self, stream: &Name) -> Result<(), Stop> {
        match self.owner_of(stream).await? {
            Some(owner) if *owner != *self.me.name => Err(Refusal::Fenced.into()),
            _ => Ok(()),
        }
    }

    async fn owner_of(&self, stream: &Name) -> Result<Option<Box<str>>, Failure> {
        let owner = self.sql.maybe(&Statement::new(OWNER).id(id_of(&stream.0))).await?;
        Ok(owner.map(|row| text(&row, 0)))
    }

    pub async fn adopt(&self, stream: &Name) -> Result<Done, Stop> {
        let Some(owner) = self.owner_of(stream).await?.filter(|owner| **owner != *self.me.name) else {
            return Ok(Done::Kept);
        };
        if self.is_alive(&owner).await? {
            return Err(Refusal::Fenced.into());
        }
        let adopt = Statement::new(ADOPT).id(id_of(&stream.0)).text(&self.me.name).text(&owner);
        self.sql.rows(&adopt).await?;
        Ok(Done::Kept)
    }

    /// Forgets what is over, a batch of each kind; what is left goes the next time.
    pub async fn expire(&self, now: Wall) -> Result<Done, Stop> {
        let records = self.let_go(&Statement::new(EXPIRED_RECORDS).int(BATCH), true).await?;
        let streams = self.let_go(&Statement::new(EXPIRED_STREAMS).int(BATCH), false).await?;
        let sessions = self.let_go(&Statement::new(EXPIRED_SESSIONS).int(BATCH).int(sleep()), false).await?;
        let forwarded = self.let_go(&Statement::new(EXPIRED_FORWARDED).int(BATCH), false).await?;
        let holds = self.forget_holds(now).await? + self.forget_callbacks(now).await?;
        self.forget_owners().await?;
        self.forget_shown(now).await?;
        Ok(Done::Removed(records + streams + sessions + forwarded + holds))
    }

    async fn let_go(&self, statement: &Statement<'_>, records: bool) -> Result<u64, Failure> {
        let row = self.sql.one(statement).await?;
        let (gone, bytes): (i64, i64) = (row.get(0), row.get(1));
        self.counts(if records { -gone } else { 0 }, -bytes);
        Ok(gone.unsigned_abs())
    }
}
