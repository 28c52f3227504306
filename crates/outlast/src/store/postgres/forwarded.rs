//! Mailbox messages about sessions: what the client of a session says of calls that run where it was before.

use super::statement::{Statement, blob, text};
use super::writes::{Quick, kept};
use crate::store::id_of;
use crate::store::owner::Me;
use bytes::Bytes;
use outlast_engine::limits::FORWARDED;
use outlast_engine::store::{Bounds, Done, Name};
use tokio_postgres::Row;

/// A message, and a hint, to each former owner of a session that has room for it (`$4`), if there is room for all (`$6`).
const FORWARD: &str = "
WITH room AS (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM outlast.usage),
    session AS (SELECT name, former FROM outlast.sessions WHERE id = $1),
    put AS (INSERT INTO outlast.forwarded (owner, session, bytes, until)
        SELECT one, session.name, $2, outlast.clock() + $3 FROM session, unnest(session.former) AS one, room
        WHERE one <> $5 AND room.bytes + cardinality(session.former) * (64 + length($2)) <= $6
            AND (SELECT count(*) FROM outlast.forwarded WHERE forwarded.owner = one) < $4
        RETURNING owner, 64 + length(bytes) AS bytes)
SELECT 0::bigint, coalesce(sum(bytes), 0)::bigint,
    count(pg_notify('outlast', left(encode(sha256(owner), 'hex'), 32))) FROM put";

pub fn forward<'a>(session: &Name, message: &'a Bytes, me: &'a Me, left: &Bounds) -> Quick<'a> {
    let statement = Statement::new(FORWARD)
        .id(id_of(&session.0))
        .blob(message)
        .int(u64::try_from(FORWARDED.as_millis()).unwrap_or(u64::MAX))
        .int(left.mailbox)
        .text(&me.name)
        .int(left.bytes);
    Quick::counted(statement, kept)
}

/// Takes them out of the database with the statement that reads them.
const COLLECT: &str = "
DELETE FROM outlast.forwarded WHERE owner = $1
RETURNING 0::bigint, -(64 + length(bytes))::bigint, number, session, bytes";

pub fn collect(me: &Me) -> Quick<'_> {
    Quick::counted(Statement::new(COLLECT).text(&me.name), |rows| Some(Done::Forwarded(read(rows))))
}

/// The oldest first.
fn read(rows: &[Row]) -> Vec<(Name, Bytes)> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.get::<_, i64>(2));
    rows.into_iter().map(|row| (Name(text(row, 3)), blob(row, 4))).collect()
}

/// A batch of what nobody has taken for too long.
pub const EXPIRED: &str = "
WITH gone AS (DELETE FROM outlast.forwarded WHERE number IN
    (SELECT number FROM outlast.forwarded WHERE until <= outlast.clock() LIMIT $1 FOR UPDATE SKIP LOCKED)
    RETURNING 64 + length(bytes) AS bytes)
SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM gone";
