//! Records: made, changed, let go.

use super::super::{id_of, weight};
use super::error::Stop;
use super::read::{HEAD, head_of, optional};
use super::{Page, int};
use outlast_engine::record::{Answer, Change, Head, New, Ticket};
use outlast_engine::store::{Done, Refusal};
use rusqlite::params;

impl Page<'_> {
    pub fn create(&self, new: &New) -> Result<Done, Stop> {
        let (id, origin) = (id_of(new.ticket.as_str()), &new.origin);
        if self.head(&new.ticket)?.is_some() {
            return Err(Refusal::Taken.into());
        }
        if let Some(holder) = self.holder(new)? {
            return Err(Refusal::KeyTaken(holder).into());
        }
        let bytes = weight(&new.body, new.request.len() as u64, None);
        self.make_room(1, bytes)?;
        self.renew()?;
        let head = Head::new(new, 0, &self.me.name, self.now);
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO records (id, ticket, principal, server, method, tool, key, faces, state, created,
                updated, expires, revision, epoch, owner, weight, body)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, NULL, ?12, ?13, ?14, ?15, ?16)",
        )?;
        let number = insert.insert(params![
            &id[..],
            new.ticket.as_str(),
            &*origin.principal,
            &*origin.server,
            &*origin.method,
            &*origin.tool,
            origin.key.as_deref(),
            head.faces.0,
            head.state.number(),
            int(head.created.0),
            int(head.updated.0),
            int(head.revision),
            int(head.epoch),
            &*head.owner,
            int(bytes),
            &head.body[..],
        ])?;
        let mut request = self.sql.prepare_cached("INSERT INTO requests (record, bytes) VALUES (?1, ?2)")?;
        request.execute(params![number, &new.request[..]])?;
        Ok(Done::Written(head.revision))
    }

    pub fn change(&self, change: &Change) -> Result<Done, Stop> {
        let mut head = self.head(&change.ticket)?.ok_or(Refusal::Unknown)?;
        head.admit(change, &self.me.name)?;
        let before = head.body.len() as u64;
        head.apply(change, self.now);
        let more = head.body.len() as u64 + change.answer.as_ref().map_or(0, |a| a.bytes().len() as u64);
        match self.make_room(0, more.saturating_sub(before)) {
            // A result is taken even where there is no room: its ticket was promised.
            Ok(()) | Err(Stop::Refused(_)) => {}
            Err(broken) => return Err(broken),
        }
        let mut update = self.sql.prepare_cached(
            "UPDATE records SET faces = ?2, state = ?3, updated = ?4, expires = ?5, revision = ?6, body = ?7,
                weight = weight + ?8 WHERE number = ?1",
        )?;
        update.execute(params![
            int(head.number),
            head.faces.0,
            head.state.number(),
            int(head.updated.0),
            head.expires.map(|expires| int(expires.0)),
            int(head.revision),
            &head.body[..],
            int(more) - int(before),
        ])?;
        if let Some(answer) = &change.answer {
            self.keep_answer(head.number, answer)?;
        }
        if !head.state.is_open() {
            self.drop_mailbox(head.number)?;
        }
        Ok(Done::Written(head.revision))
    }

    fn keep_answer(&self, number: u64, answer: &Answer) -> rusqlite::Result<()> {
        let mut insert =
            self.sql.prepare_cached("INSERT INTO answers (record, failed, bytes) VALUES (?1, ?2, ?3)")?;
        insert.execute(params![int(number), matches!(answer, Answer::Error(_)), &answer.bytes()[..]])?;
        Ok(())
    }

    pub fn remove(&self, ticket: &Ticket) -> Result<Done, Stop> {
        let Some(head) = self.head(ticket)? else { return Ok(Done::Removed(0)) };
        if head.state.is_open() {
            return Err(Refusal::Open.into());
        }
        self.sql.prepare_cached("DELETE FROM records WHERE number = ?1")?.execute([int(head.number)])?;
        Ok(Done::Removed(1))
    }

    /// The head of a ticket's record.
    pub fn head(&self, ticket: &Ticket) -> rusqlite::Result<Option<Head>> {
        let mut select = self.sql.prepare_cached(&format!("SELECT {HEAD} FROM records WHERE id = ?1"))?;
        optional(select.query_row([&id_of(ticket.as_str())[..]], head_of))
    }

    /// The record that has the same idempotency key.
    fn holder(&self, new: &New) -> rusqlite::Result<Option<Ticket>> {
        let Some(key) = new.origin.key.as_deref() else { return Ok(None) };
        let mut select = self.sql.prepare_cached(&format!(
            "SELECT {HEAD} FROM records WHERE principal = ?1 AND server = ?2 AND key = ?3
             AND (state < 2 OR number > ?4) ORDER BY state >= 2, number DESC"
        ))?;
        let mut heads = select
            .query_map(params![&*new.origin.principal, &*new.origin.server, key, int(new.seen)], head_of)?;
        let holder = heads.find(|head| head.as_ref().map_or(true, |head| head.holds_key_of(new, self.now)));
        Ok(holder.transpose()?.map(|head| head.ticket))
    }

    /// Lets go of what ended longest ago until so much more fits.
    pub fn make_room(&self, records: u64, bytes: u64) -> Result<(), Stop> {
        loop {
            let mut select = self.sql.prepare_cached("SELECT records, bytes FROM usage")?;
            let (used, filled): (i64, i64) = select.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let what = if used.saturating_add(int(records)) > int(self.bounds.records) {
                "records"
            } else if filled.saturating_add(int(bytes)) > int(self.bounds.bytes) {
                "bytes"
            } else {
                return Ok(());
            };
            let mut oldest = self.sql.prepare_cached(
                "DELETE FROM records WHERE number =
                    (SELECT number FROM records WHERE state >= 2 ORDER BY updated, number LIMIT 1)",
            )?;
            if oldest.execute([])? == 0 {
                return Err(Refusal::Full(what.into()).into());
            }
        }
    }
}
