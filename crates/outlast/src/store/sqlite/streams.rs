//! Streams of events and the sessions they belong to.

use super::super::{Id, id_of, session_weight, small_weight};
use super::error::Stop;
use super::read::{SESSION, lives, optional, session_of, text};
use super::{Page, int};
use bytes::Bytes;
use outlast_engine::limits;
use outlast_engine::store::{Done, Name, Refusal, Session};
use rusqlite::params;
use std::time::Duration;

impl Page<'_> {
    pub fn append(&self, stream: &Name, keep: Duration, events: &[(u64, Bytes)]) -> Result<Done, Stop> {
        let id = id_of(&stream.0);
        if self.owner_of(&id)?.is_some_and(|owner| *owner != *self.me.name) {
            return Err(Refusal::Fenced.into());
        }
        self.make_room(0, events.iter().map(|(_, bytes)| small_weight(bytes)).sum())?;
        self.renew()?;
        let last = events.iter().map(|(number, _)| *number).max().unwrap_or(0);
        let mut upsert = self.sql.prepare_cached(
            "INSERT INTO streams (id, last, expires, owner) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET last = max(last, excluded.last), expires = excluded.expires
             RETURNING number",
        )?;
        let values = params![&id[..], int(last), int(self.now.after(keep).0), &*self.me.name];
        let stream: i64 = upsert.query_row(values, |row| row.get(0))?;
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO events (stream, number, bytes) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING",
        )?;
        for (number, bytes) in events {
            insert.execute(params![stream, int(*number), &bytes[..]])?;
        }
        Ok(Done::Kept)
    }

    fn owner_of(&self, id: &Id) -> rusqlite::Result<Option<Box<str>>> {
        let mut select = self.sql.prepare_cached("SELECT owner FROM streams WHERE id = ?1")?;
        optional(select.query_row([&id[..]], |row| text(row, 0)))
    }

    pub fn adopt(&self, stream: &Name) -> Result<Done, Stop> {
        let id = id_of(&stream.0);
        if lives(self.sql, &id, self.me)? {
            return Err(Refusal::Fenced.into());
        }
        let mut update = self.sql.prepare_cached(
            "UPDATE streams SET owner = ?2, epoch = epoch + 1 WHERE id = ?1 AND owner <> ?2",
        )?;
        update.execute(params![&id[..], &*self.me.name])?;
        Ok(Done::Kept)
    }

    pub fn forget(&self, stream: &Name, through: u64) -> Result<Done, Stop> {
        let id = id_of(&stream.0);
        if through == u64::MAX {
            self.sql.prepare_cached("DELETE FROM streams WHERE id = ?1")?.execute([&id[..]])?;
            return Ok(Done::Kept);
        }
        let mut delete = self.sql.prepare_cached(
            "DELETE FROM events WHERE stream = (SELECT number FROM streams WHERE id = ?1) AND number <= ?2",
        )?;
        delete.execute(params![&id[..], int(through)])?;
        Ok(Done::Kept)
    }

    pub fn keep_session(&self, session: &Session) -> Result<Done, Stop> {
        let id = id_of(&session.name.0);
        let mut idle = self.sql.prepare_cached(
            "DELETE FROM sessions WHERE id IN
                (SELECT id FROM sessions WHERE id <> ?2 ORDER BY used DESC LIMIT -1 OFFSET ?1)",
        )?;
        idle.execute(params![int(self.bounds.sessions.max(1)) - 1, &id[..]])?;
        self.make_room(0, session_weight(session))?;
        let mut upsert = self.sql.prepare_cached(
            "INSERT INTO sessions (id, name, principal, initialize, initialized, setup, used, weight, owner, epoch)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (id) DO UPDATE SET initialize = excluded.initialize, initialized = excluded.initialized,
                setup = excluded.setup, used = excluded.used, weight = excluded.weight
             WHERE owner = excluded.owner AND epoch = excluded.epoch",
        )?;
        let written = upsert.execute(params![
            &id[..],
            &*session.name.0,
            &*session.principal,
            &session.initialize[..],
            &session.initialized[..],
            &session.setup[..],
            int(self.now.0),
            int(session_weight(session)),
            &*self.me.name,
            int(session.epoch),
        ])?;
        if written == 0 { Err(Refusal::Fenced.into()) } else { Ok(Done::Kept) }
    }

    pub fn take_session(&self, name: &Name, principal: &str) -> Result<Done, Stop> {
        let mut update = self.sql.prepare_cached(&format!(
            "UPDATE sessions SET epoch = epoch + (owner <> ?3), owner = ?3, used = ?4, former = ?6
             WHERE id = ?1 AND principal = ?2 AND used > ?5 RETURNING {SESSION}"
        ))?;
        let slept = self.now.before(limits::SLEEP);
        let id = id_of(&name.0);
        let former = self.former_owners_before_us(&id)?;
        let (me, now, slept) = (&*self.me.name, int(self.now.0), int(slept.0));
        let values = params![&id[..], principal, me, now, slept, former];
        Ok(Done::Session(optional(update.query_row(values, session_of))?))
    }

    pub fn end_session(&self, name: &Name) -> Result<Done, Stop> {
        self.sql.prepare_cached("DELETE FROM sessions WHERE id = ?1")?.execute([&id_of(&name.0)[..]])?;
        Ok(Done::Kept)
    }

    pub fn expire(&self) -> Result<Done, Stop> {
        let delete = |sql: &str, before: u64| self.sql.prepare_cached(sql)?.execute([int(before)]);
        let now = self.now;
        let asleep = now.before(limits::SLEEP).0;
        let records =
            delete("DELETE FROM records WHERE state >= 2 AND expires IS NOT NULL AND expires <= ?1", now.0)?;
        let streams = delete("DELETE FROM streams WHERE expires <= ?1", now.0)?;
        let sessions = delete("DELETE FROM sessions WHERE used <= ?1", asleep)?;
        let forwarded = delete("DELETE FROM forwarded WHERE until <= ?1", now.0)?;
        let holds = self.forget_holds()? + self.forget_callbacks()?;
        self.forget_owners()?;
        self.forget_shown()?;
        Ok(Done::Removed((records + streams + sessions + forwarded + holds) as u64))
    }
}
