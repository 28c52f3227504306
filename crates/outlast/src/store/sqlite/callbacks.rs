//! Callbacks, in the file. What becomes of one is decided by the callback.

use super::error::Stop;
use super::read::{count, optional, text};
use super::{Page, int};
use outlast_engine::Wall;
use outlast_engine::callback::{Callback, Fate, NewCallback};
use outlast_engine::limits;
use outlast_engine::store::{Done, Refusal};
use rusqlite::{Connection, Params, Result, Row, params};

/// The columns of a callback, in the order in which [`callback_of`] reads them.
const CALLBACK: &str = "number, name, body, made, attempts, due, why";

impl Page<'_> {
    pub fn call_back(&self, new: &NewCallback) -> Result<Done, Stop> {
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO callbacks (name, body, made, attempts, due, why) VALUES (?1, ?2, ?3, 0, ?3, '')",
        )?;
        insert.execute(params![&*new.name, &*new.body, int(self.now.0)])?;
        Ok(Done::Kept)
    }

    pub fn take_callbacks(&self, names: &[Box<str>], limit: usize) -> Result<Done, Stop> {
        let names = serde_json::to_string(names).unwrap_or_default();
        let due = "due <= ?1 AND name IN (SELECT value FROM json_each(?2)) ORDER BY due, number LIMIT ?3";
        let mut due = callbacks(self.sql, due, params![int(self.now.0), names, int(limit as u64)])?;
        for callback in &mut due {
            callback.take(self.now);
            self.put_callback(callback)?;
        }
        Ok(Done::Callbacks(due))
    }

    fn put_callback(&self, callback: &Callback) -> Result<()> {
        let mut update = self
            .sql
            .prepare_cached("UPDATE callbacks SET attempts = ?2, due = ?3, why = ?4 WHERE number = ?1")?;
        let due = callback.due.map(|due| int(due.0));
        update.execute(params![int(callback.number), int(callback.attempts), due, &*callback.why])?;
        Ok(())
    }

    pub fn settle_callback(&self, number: u64, attempts: Option<u64>, fate: &Fate) -> Result<Done, Stop> {
        let found = callbacks(self.sql, "number = ?1", [int(number)])?.pop();
        let mut callback = found.ok_or(Stop::Refused(Refusal::Unknown))?;
        if attempts.is_some_and(|attempts| attempts != callback.attempts) {
            return Err(Stop::Refused(Refusal::Fenced));
        }
        if callback.settle(fate, self.now) {
            self.put_callback(&callback)?;
        } else {
            self.sql.prepare_cached("DELETE FROM callbacks WHERE number = ?1")?.execute([int(number)])?;
        }
        Ok(Done::Kept)
    }

    /// Forgets those that are over, and those that are too many; how many went.
    pub fn forget_callbacks(&self) -> Result<usize> {
        let before = int(self.now.before(limits::CALLBACK_KEPT).0);
        let over = self.sql.prepare_cached("DELETE FROM callbacks WHERE made <= ?1")?.execute([before])?;
        let mut trim = self.sql.prepare_cached(
            "DELETE FROM callbacks WHERE number IN (SELECT number FROM callbacks ORDER BY due IS NOT NULL, number
                LIMIT max(0, (SELECT count(*) FROM callbacks) - ?1))",
        )?;
        Ok(over + trim.execute([int(self.bounds.callbacks)])?)
    }
}

pub fn is_due(sql: &Connection, names: &[Box<str>], now: Wall) -> Result<bool> {
    let names = serde_json::to_string(names).unwrap_or_default();
    let mut select = sql.prepare_cached(
        "SELECT 1 FROM callbacks WHERE due <= ?1 AND name IN (SELECT value FROM json_each(?2)) LIMIT 1",
    )?;
    Ok(optional(select.query_row(params![int(now.0), names], |_| Ok(())))?.is_some())
}

pub fn all(sql: &Connection, limit: usize) -> Result<Vec<Callback>> {
    callbacks(sql, "1 ORDER BY number LIMIT ?1", [int(limit as u64)])
}

fn callbacks(sql: &Connection, wanted: &str, values: impl Params) -> Result<Vec<Callback>> {
    let mut select = sql.prepare_cached(&format!("SELECT {CALLBACK} FROM callbacks WHERE {wanted}"))?;
    select.query_map(values, callback_of)?.collect()
}

fn callback_of(row: &Row<'_>) -> Result<Callback> {
    Ok(Callback {
        number: count(row, 0)?,
        about: NewCallback { name: text(row, 1)?, body: text(row, 2)? },
        made: Wall(count(row, 3)?),
        attempts: count(row, 4)?,
        due: row.get::<_, Option<i64>>(5)?.map(|due| Wall(due.unsigned_abs())),
        why: text(row, 6)?,
    })
}
