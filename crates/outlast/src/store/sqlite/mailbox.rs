//! The mailbox: what others want the owner of a call to do.

use super::error::Stop;
use super::read::{blob, text};
use super::{Page, int};
use crate::store::small_weight;
use bytes::Bytes;
use outlast_engine::record::Ticket;
use outlast_engine::store::{Done, Mail, Refusal};
use rusqlite::params;

impl Page<'_> {
    pub fn post(&self, ticket: &Ticket, message: &Mail) -> Result<Done, Stop> {
        let head = self.head(ticket)?.ok_or(Refusal::Unknown)?;
        if !head.state.is_open() {
            return Err(Refusal::Ended(head.state).into());
        }
        let mut count = self.sql.prepare_cached("SELECT count(*) FROM messages WHERE record = ?1")?;
        let waiting: i64 = count.query_row([int(head.number)], |row| row.get(0))?;
        if waiting >= int(self.bounds.mailbox) {
            return Err(Refusal::Full("mailbox messages".into()).into());
        }
        let (kind, bytes) = written(message);
        self.make_room(0, small_weight(bytes))?;
        let mut insert =
            self.sql.prepare_cached("INSERT INTO messages (record, kind, bytes) VALUES (?1, ?2, ?3)")?;
        insert.execute(params![int(head.number), kind, bytes])?;
        Ok(Done::Kept)
    }

    /// Takes them out of the file in the same transaction in which they are read.
    pub fn collect(&self) -> Result<Done, Stop> {
        let mut select = self.sql.prepare_cached(
            "SELECT messages.number, ticket, kind, bytes FROM messages JOIN records ON records.number = record
             WHERE owner = ?1 AND state < 2 ORDER BY messages.number",
        )?;
        let mut rows = select.query([&*self.me.name])?;
        let mut delete = self.sql.prepare_cached("DELETE FROM messages WHERE number = ?1")?;
        let mut messages = Vec::new();
        while let Some(row) = rows.next()? {
            let ticket = Ticket::parse(&text(row, 1)?);
            let message = read(row.get(2)?, blob(row, 3)?);
            messages.push((row.get::<_, i64>(0)?, ticket.zip(message)));
        }
        drop(rows);
        for (number, _) in &messages {
            delete.execute([number])?;
        }
        Ok(Done::Mail(messages.into_iter().filter_map(|(_, message)| message).collect()))
    }

    pub fn drop_mailbox(&self, record: u64) -> rusqlite::Result<()> {
        self.sql.prepare_cached("DELETE FROM messages WHERE record = ?1")?.execute([int(record)])?;
        Ok(())
    }
}

fn written(message: &Mail) -> (u8, &[u8]) {
    match message {
        Mail::Cancel => (0, b""),
        Mail::Input(bytes) => (1, bytes),
        Mail::Wake => (2, b""),
    }
}

fn read(kind: u8, bytes: Bytes) -> Option<Mail> {
    match kind {
        0 => Some(Mail::Cancel),
        1 => Some(Mail::Input(bytes)),
        2 => Some(Mail::Wake),
        _ => None,
    }
}
