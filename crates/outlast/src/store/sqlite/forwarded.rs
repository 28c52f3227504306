//! Mailbox messages about sessions: what the client of a session says of calls that run where it was before.

use super::error::Stop;
use super::read::{blob, optional, text};
use super::{Page, int};
use crate::store::{Id, add_former_owner, id_of, small_weight};
use bytes::Bytes;
use outlast_engine::limits;
use outlast_engine::store::{Done, Name};
use rusqlite::params;

impl Page<'_> {
    pub fn forward(&self, session: &Name, message: &Bytes) -> Result<Done, Stop> {
        for owner in self.former_owners(&id_of(&session.0))?.1 {
            let full = self.waiting_for(&owner)? >= int(self.bounds.mailbox);
            if *owner == *self.me.name || full {
                continue;
            }
            match self.make_room(0, small_weight(message)) {
                Ok(()) => {}
                Err(Stop::Refused(_)) => break,
                Err(broken) => return Err(broken),
            }
            let mut insert = self.sql.prepare_cached(
                "INSERT INTO forwarded (owner, session, bytes, until) VALUES (?1, ?2, ?3, ?4)",
            )?;
            let until = int(self.now.after(limits::FORWARDED).0);
            insert.execute(params![&*owner, &*session.0, &message[..], until])?;
        }
        Ok(Done::Kept)
    }

    fn waiting_for(&self, owner: &str) -> rusqlite::Result<i64> {
        let mut count = self.sql.prepare_cached("SELECT count(*) FROM forwarded WHERE owner = ?1")?;
        count.query_row([owner], |row| row.get(0))
    }

    /// Who owns a session, and who did before.
    fn former_owners(&self, id: &Id) -> rusqlite::Result<(Box<str>, Vec<Box<str>>)> {
        let mut select = self.sql.prepare_cached("SELECT owner, former FROM sessions WHERE id = ?1")?;
        let found = optional(select.query_row([&id[..]], |row| Ok((text(row, 0)?, text(row, 1)?))))?;
        let (owner, former) = found.unwrap_or_default();
        Ok((owner, former.lines().map(Box::from).collect()))
    }

    /// Who will have owned a session before us, a name in each line.
    pub fn former_owners_before_us(&self, id: &Id) -> rusqlite::Result<String> {
        let (owner, mut former) = self.former_owners(id)?;
        if *owner != *self.me.name {
            add_former_owner(&mut former, &owner, &self.me.name);
        }
        Ok(former.join("\n"))
    }

    /// Takes them out of the file in the same transaction in which they are read.
    pub fn collect_forwarded(&self) -> Result<Done, Stop> {
        let mut select = self
            .sql
            .prepare_cached("SELECT session, bytes FROM forwarded WHERE owner = ?1 ORDER BY number")?;
        let messages = select.query_map([&*self.me.name], |row| Ok((Name(text(row, 0)?), blob(row, 1)?)))?;
        let messages = messages.collect::<rusqlite::Result<Vec<_>>>()?;
        if !messages.is_empty() {
            self.sql.prepare_cached("DELETE FROM forwarded WHERE owner = ?1")?.execute([&*self.me.name])?;
        }
        Ok(Done::Forwarded(messages))
    }
}
