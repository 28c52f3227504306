//! Records: made, changed, let go.

use super::error::{Failure, Stop};
use super::read::{head, head_of};
use super::statement::{Statement, count};
use super::transaction::Transaction;
use super::writes::Quick;
use crate::store::owner::Me;
use crate::store::{id_of, weight};
use outlast_engine::record::{Answer, Change, Head, New, State, Ticket};
use outlast_engine::store::{Bounds, Done, Refusal};
use tokio_postgres::Row;

/// A record is made unless its ticket or its key is taken, or there is no room (`$15`, `$16`).
const CREATE: &str = "
WITH room AS (SELECT coalesce(sum(records), 0)::bigint AS records, coalesce(sum(bytes), 0)::bigint AS bytes
        FROM outlast.usage),
    made AS (
        INSERT INTO outlast.records (id, ticket, principal, server, method, tool, key, faces, state, created,
            updated, revision, epoch, owner, weight, body)
        SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, greatest(outlast.clock() - $10, 0), outlast.clock(), 1, 1, $11,
            $12, $13
        FROM room WHERE room.records < $15 AND room.bytes + $12 <= $16
        ON CONFLICT DO NOTHING RETURNING number),
    request AS (INSERT INTO outlast.requests (record, bytes) SELECT number, $14 FROM made)
SELECT 1::bigint, $12, number FROM made";

pub fn create<'a>(new: &'a New, me: &'a Me, left: &Bounds) -> Quick<'a> {
    let origin = &new.origin;
    let bytes = weight(&new.body, new.request.len() as u64, None);
    let statement = Statement::new(CREATE)
        .id(id_of(new.ticket.as_str()))
        .text(new.ticket.as_str())
        .text(&origin.principal)
        .text(&origin.server)
        .text(&origin.method)
        .text(&origin.tool)
        .maybe_blob(origin.key.as_deref().map(str::as_bytes))
        .int(u64::from(new.faces.0))
        .int(u64::from(State::Working.number()))
        .int(u64::try_from(new.ran.as_millis()).unwrap_or(u64::MAX))
        .text(&me.name)
        .int(bytes)
        .blob(&new.body)
        .blob(&new.request)
        .int(left.records)
        .int(left.bytes);
    Quick::counted(statement, |rows| rows.first().map(|_| Done::Written(1)))
}

/// A record is changed by its owner, in its epoch, while its call is open, if there is room (`$11`).
const CHANGE: &str = "
WITH old AS (SELECT number, weight, length(body)::bigint AS body FROM outlast.records WHERE id = $1 FOR UPDATE),
    room AS (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM outlast.usage),
    more AS (SELECT old.number, $10 + CASE WHEN $8::bytea IS NULL THEN 0 ELSE length($8) - old.body END AS bytes
        FROM old),
    changed AS (
        UPDATE outlast.records SET faces = faces | $4, state = $5, updated = greatest(updated, outlast.clock()),
            expires = outlast.clock() + $6::bigint, revision = revision + 1, body = coalesce($8, records.body),
            weight = weight + more.bytes
        FROM more, room
        WHERE records.number = more.number AND owner = $2 AND epoch = $3 AND state < 2
            AND (more.bytes <= 0 OR room.bytes + more.bytes <= $11)
        RETURNING records.number, revision, more.bytes),
    answer AS (INSERT INTO outlast.answers (record, failed, bytes) SELECT number, $7, $9 FROM changed
        WHERE $9::bytea IS NOT NULL),
    messages AS (DELETE FROM outlast.messages USING changed WHERE messages.record = changed.number AND $5 >= 2
        RETURNING 64 + length(messages.bytes) AS bytes)
SELECT 0::bigint, (changed.bytes - coalesce((SELECT sum(bytes) FROM messages), 0))::bigint, revision FROM changed";

pub fn change<'a>(change: &'a Change, me: &'a Me, room: u64) -> Quick<'a> {
    let answer = change.answer.as_ref().map(|answer| &answer.bytes()[..]);
    let keep = change.keep.map(|keep| u64::try_from(keep.as_millis()).unwrap_or(u64::MAX));
    let statement = Statement::new(CHANGE)
        .id(id_of(change.ticket.as_str()))
        .text(&me.name)
        .int(change.epoch)
        .int(u64::from(change.faces.0))
        .int(u64::from(change.state.number()))
        .maybe_int(keep)
        .flag(matches!(change.answer, Some(Answer::Error(_))))
        .maybe_blob(change.body.as_deref())
        .maybe_blob(answer)
        .int(answer.map_or(0, |answer| answer.len() as u64))
        .int(room);
    // An end without an answer, or an answer without an end, is for nobody.
    let read = if is_complete(change) { written } else { refused };
    Quick::counted(statement, read)
}

fn written(rows: &[Row]) -> Option<Done> {
    rows.first().map(|row| Done::Written(count(row, 2)))
}

fn refused(_: &[Row]) -> Option<Done> {
    None
}

fn is_complete(change: &Change) -> bool {
    change.answer.is_some() != change.state.is_open() || change.state == State::Cancelled
}

/// A record that has ended is let go. One that is open says so.
const REMOVE: &str = "
WITH gone AS (DELETE FROM outlast.records WHERE id = $1 AND state >= 2 RETURNING weight)
SELECT -(SELECT count(*) FROM gone), -(SELECT coalesce(sum(weight), 0) FROM gone)::bigint,
    EXISTS (SELECT FROM outlast.records WHERE id = $1 AND state < 2)";

pub fn remove(ticket: &Ticket) -> Quick<'_> {
    let removed = |rows: &[Row]| {
        let row = rows.first()?;
        let gone: i64 = row.get(0);
        (!row.get::<_, bool>(2)).then(|| Done::Removed(gone.unsigned_abs()))
    };
    Quick::counted(Statement::new(REMOVE).id(id_of(ticket.as_str())), removed)
}

/// Who else has the key of a record. `$5`: the newest that its maker knows of.
const HOLDER: &str = concat!(
    "SELECT ",
    head!(),
    " FROM outlast.records WHERE principal = $1 AND server = $2 AND key = $3 AND id <> $4
     AND (state < 2 OR number > $5) ORDER BY state >= 2, number DESC"
);

/// What ended longest ago.
const OLDEST: &str = "DELETE FROM outlast.records WHERE number =
    (SELECT number FROM outlast.records WHERE state >= 2 ORDER BY updated, number LIMIT 1 FOR UPDATE SKIP LOCKED)
    RETURNING weight";

const USED: &str =
    "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM outlast.usage";

const BY_ID: &str = concat!("SELECT ", head!(), " FROM outlast.records WHERE id = $1");

impl Transaction<'_> {
    pub async fn create(&self, new: &New) -> Result<Done, Stop> {
        if self.head(&new.ticket).await?.is_some() {
            return Err(Refusal::Taken.into());
        }
        if let Some(holder) = self.holder(new).await? {
            return Err(Refusal::KeyTaken(holder).into());
        }
        self.make_room(1, weight(&new.body, new.request.len() as u64, None)).await?;
        let made = self.try_quick(&create(new, self.me, &self.left())).await?;
        // Whoever had the key until this moment has ended, or still has it.
        match self.holder(new).await? {
            Some(holder) => Err(Refusal::KeyTaken(holder).into()),
            None => made.ok_or(Stop::Failed(Failure::Again)),
        }
    }

    pub async fn change(&self, change: &Change) -> Result<Done, Stop> {
        let head = self.head(&change.ticket).await?.ok_or(Refusal::Unknown)?;
        head.admit(change, &self.me.name)?;
        let before = change.body.as_ref().map_or(0, |_| head.body.len() as u64);
        let more = super::writes::takes(&outlast_engine::store::Write::Change(Box::new(change.clone())));
        match self.make_room(0, more.bytes.unsigned_abs().saturating_sub(before)).await {
            // A result is taken even where there is no room: its ticket was promised.
            Ok(()) | Err(Stop::Refused(_)) => {}
            Err(failed) => return Err(failed),
        }
        let made = self.try_quick(&self::change(change, self.me, u64::MAX)).await?;
        made.ok_or(Stop::Failed(Failure::Again))
    }

    /// The head of a ticket's record.
    pub async fn head(&self, ticket: &Ticket) -> Result<Option<Head>, Failure> {
        let row = self.sql.maybe(&Statement::new(BY_ID).id(id_of(ticket.as_str()))).await?;
        row.map(|row| head_of(&row)).transpose()
    }

    /// The record that has the same idempotency key.
    async fn holder(&self, new: &New) -> Result<Option<Ticket>, Failure> {
        let Some(key) = new.origin.key.as_deref() else { return Ok(None) };
        let statement = Statement::new(HOLDER)
            .text(&new.origin.principal)
            .text(&new.origin.server)
            .text(key)
            .id(id_of(new.ticket.as_str()))
            .int(new.seen);
        let now = self.now().await?;
        for row in self.sql.rows(&statement).await? {
            let head = head_of(&row)?;
            if head.holds_key_of(new, now) {
                return Ok(Some(head.ticket));
            }
        }
        Ok(None)
    }

    /// Lets go of what ended longest ago until so much more fits.
    pub async fn make_room(&self, records: u64, bytes: u64) -> Result<(), Stop> {
        loop {
            let (used, left) = (self.sql.one(&Statement::new(USED)).await?, self.left());
            let what = if count(&used, 0).saturating_add(records) > left.records {
                "records"
            } else if count(&used, 1).saturating_add(bytes) > left.bytes {
                "bytes"
            } else {
                return Ok(());
            };
            let Some(gone) = self.sql.maybe(&Statement::new(OLDEST)).await? else {
                return Err(Refusal::Full(what.into()).into());
            };
            self.counts(-1, -gone.get::<_, i64>(0));
        }
    }
}
