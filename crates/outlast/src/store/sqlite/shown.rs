//! What processes show each other and tell each other to do, and how long tools took.

use super::error::Stop;
use super::read::{blob, count, optional, text};
use super::{Page, int};
use crate::store::owner::Me;
use bytes::Bytes;
use outlast_engine::durations::{Durations, Tally};
use outlast_engine::store::{self, Done, Found, Measured, Refusal};
use outlast_engine::{Wall, limits};
use rusqlite::{Connection, Result, params};

/// Where a tool of a day has its sums.
const SUMS: i64 = -1;

impl Page<'_> {
    pub fn show(&self, process: &str, shown: &Bytes) -> Result<Done, Stop> {
        if shown.len() > limits::SHOWN_BYTES {
            return Err(Stop::Refused(Refusal::Full("bytes of what a process shows".into())));
        }
        self.renew()?;
        if shown.is_empty() {
            self.sql.prepare_cached("DELETE FROM shown WHERE owner = ?1")?.execute([&*self.me.name])?;
        } else {
            let mut upsert = self.sql.prepare_cached(
                "INSERT INTO shown (owner, process, body) VALUES (?1, ?2, ?3)
                 ON CONFLICT (owner) DO UPDATE SET process = excluded.process, body = excluded.body",
            )?;
            upsert.execute(params![&*self.me.name, process, &shown[..]])?;
        }
        let mut told = self.sql.prepare_cached("SELECT body FROM told WHERE process = ?1 ORDER BY number")?;
        let told = told.query_map([process], |row| blob(row, 0))?.collect::<Result<Vec<_>>>()?;
        if !told.is_empty() {
            self.sql.prepare_cached("DELETE FROM told WHERE process = ?1")?.execute([process])?;
        }
        Ok(Done::Told(told))
    }

    pub fn tell(&self, process: &str, what: &Bytes) -> Result<Done, Stop> {
        let mut owner = self.sql.prepare_cached("SELECT owner FROM shown WHERE process = ?1")?;
        let owner = optional(owner.query_row([process], |row| row.get::<_, String>(0)))?;
        let lives = owner.map(|owner| self.is_alive(&owner)).transpose()?.unwrap_or(false);
        if !lives {
            return Err(Stop::Refused(Refusal::Unknown));
        }
        let mut waiting = self.sql.prepare_cached("SELECT count(*) FROM told WHERE process = ?1")?;
        if waiting.query_row([process], |row| count(row, 0))? >= self.bounds.mailbox {
            return Err(Stop::Refused(Refusal::Full("mailbox".into())));
        }
        let mut insert = self.sql.prepare_cached("INSERT INTO told (process, body) VALUES (?1, ?2)")?;
        insert.execute(params![process, &what[..]])?;
        Ok(Done::Kept)
    }

    pub fn measured(&self, all: &[Measured]) -> Result<Done, Stop> {
        let today = int(store::day(self.now));
        let mut upsert = self.sql.prepare_cached(
            "INSERT INTO durations (day, server, tool, bucket, calls, failures, cut_off, slowest)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT (day, server, tool, bucket) DO UPDATE SET calls = calls + excluded.calls,
                failures = failures + excluded.failures, cut_off = cut_off + excluded.cut_off,
                slowest = max(slowest, excluded.slowest)",
        )?;
        for Measured { server, tool, tally } in all {
            let sums = [tally.calls, tally.failures, tally.cut_off, tally.slowest_ms].map(int);
            let rows = tally.buckets().map(|(bucket, count)| (bucket.into(), [count.into(), 0, 0, 0]));
            for (bucket, [calls, failures, cut_off, slowest]) in std::iter::once((SUMS, sums)).chain(rows) {
                upsert
                    .execute(params![today, &**server, &**tool, bucket, calls, failures, cut_off, slowest])?;
            }
        }
        self.bound_durations()?;
        Ok(Done::Kept)
    }

    fn bound_durations(&self) -> Result<()> {
        let mut rows = self.sql.prepare_cached("SELECT count(*) FROM durations")?;
        while rows.query_row([], |row| count(row, 0))? > self.bounds.measured {
            let oldest = "DELETE FROM durations WHERE day = (SELECT min(day) FROM durations)";
            self.sql.prepare_cached(oldest)?.execute([])?;
        }
        Ok(())
    }

    /// Forgets what dead processes show and were told, and days that are too long ago.
    pub fn forget_shown(&self) -> Result<()> {
        for sql in [
            "DELETE FROM shown WHERE NOT EXISTS (SELECT 1 FROM leases WHERE leases.owner = shown.owner)",
            "DELETE FROM told WHERE NOT EXISTS (SELECT 1 FROM shown WHERE shown.process = told.process)",
        ] {
            self.sql.prepare_cached(sql)?.execute([])?;
        }
        let mut old = self.sql.prepare_cached("DELETE FROM durations WHERE day <= ?1")?;
        old.execute([int(store::day(self.now)) - int(limits::MEASURED_DAYS)])?;
        Ok(())
    }
}

/// What processes show that live.
pub fn shown(sql: &Connection, me: &Me) -> Result<Found> {
    let mut select = sql.prepare_cached(
        "SELECT shown.owner, body, coalesce(until, 0) FROM shown LEFT JOIN leases ON leases.owner = shown.owner
         ORDER BY process",
    )?;
    let rows = select.query_map([], |row| Ok((row.get::<_, String>(0)?, blob(row, 1)?, count(row, 2)?)))?;
    let mut found = Vec::new();
    for row in rows {
        let (owner, body, until) = row?;
        if *owner == *me.name || !me.outlives(&owner, until) {
            found.push(body);
        }
    }
    Ok(Found::Shown(found))
}

/// How long tools took, added up.
pub fn measured(sql: &Connection, now: Wall) -> Result<Found> {
    let mut select = sql.prepare_cached(
        "SELECT server, tool, bucket, sum(calls), sum(failures), sum(cut_off), max(slowest) FROM durations
         WHERE day > ?1 GROUP BY server, tool, bucket ORDER BY server, tool, bucket",
    )?;
    let mut rows = select.query([int(store::day(now)) - int(limits::MEASURED_DAYS)])?;
    let mut all = Durations::default();
    while let Some(row) = rows.next()? {
        let (bucket, calls): (i64, u64) = (row.get(2)?, count(row, 3)?);
        let mut tally = Tally::default();
        if bucket == SUMS {
            (tally.calls, tally.failures, tally.cut_off, tally.slowest_ms) =
                (calls, count(row, 4)?, count(row, 5)?, count(row, 6)?);
        } else {
            tally.fill(u8::try_from(bucket).unwrap_or(u8::MAX), u32::try_from(calls).unwrap_or(u32::MAX));
        }
        all.join(&text(row, 0)?, &text(row, 1)?, &tally);
    }
    Ok(Found::Measured(store::measured(&all)))
}
