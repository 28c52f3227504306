//! The mailbox: what others want the owner of a call to do.

use super::error::Stop;
use super::read::mail;
use super::statement::Statement;
use super::transaction::Transaction;
use super::writes::{Quick, kept_if_any};
use crate::store::id_of;
use crate::store::owner::Me;
use outlast_engine::record::Ticket;
use outlast_engine::store::{Bounds, Done, Mail, Refusal};
use tokio_postgres::Row;

/// A message to an open record, and a hint to its owner, whose call does not end meanwhile.
const POST: &str = "
WITH room AS (SELECT coalesce(sum(bytes), 0)::bigint AS bytes FROM outlast.usage),
    record AS (SELECT number, owner FROM outlast.records WHERE id = $1 AND state < 2 FOR SHARE),
    put AS (INSERT INTO outlast.messages (record, kind, bytes) SELECT record.number, $2, $3 FROM record, room
        WHERE (SELECT count(*) FROM outlast.messages WHERE messages.record = record.number) < $4
            AND room.bytes + 64 + length($3) <= $5
        RETURNING 64 + length(bytes) AS bytes)
SELECT 0::bigint, put.bytes::bigint, pg_notify('outlast', left(encode(sha256(owner), 'hex'), 32))::text
FROM put, record";

pub fn post<'a>(ticket: &Ticket, message: &'a Mail, left: &Bounds) -> Quick<'a> {
    let (kind, bytes) = written(message);
    let statement = Statement::new(POST)
        .id(id_of(ticket.as_str()))
        .int(u64::from(kind))
        .blob(bytes)
        .int(left.mailbox)
        .int(left.bytes);
    Quick::counted(statement, kept_if_any)
}

/// Takes them out of the database with the statement that reads them.
const COLLECT: &str = "
DELETE FROM outlast.messages USING outlast.records
WHERE records.number = messages.record AND owner = $1 AND state < 2
RETURNING 0::bigint, -(64 + length(messages.bytes))::bigint, messages.number, ticket, kind, messages.bytes";

pub fn collect(me: &Me) -> Quick<'_> {
    Quick::counted(Statement::new(COLLECT).text(&me.name), |rows| Some(Done::Mail(read(rows))))
}

/// The oldest first.
fn read(rows: &[Row]) -> Vec<(Ticket, Mail)> {
    let mut rows: Vec<&Row> = rows.iter().collect();
    rows.sort_by_key(|row| row.get::<_, i64>(2));
    rows.into_iter().filter_map(|row| mail(row, 3)).collect()
}

impl Transaction<'_> {
    /// Whether there is anybody to write to.
    pub async fn may_post(&self, ticket: &Ticket) -> Result<(), Stop> {
        let head = self.head(ticket).await?.ok_or(Refusal::Unknown)?;
        if head.state.is_open() { Ok(()) } else { Err(Refusal::Ended(head.state).into()) }
    }
}

pub fn written(message: &Mail) -> (u8, &[u8]) {
    match message {
        Mail::Cancel => (0, b""),
        Mail::Input(bytes) => (1, bytes),
        Mail::Wake => (2, b""),
    }
}
