//! Callbacks, in the database. What becomes of one is decided by the callback; one replica at a time takes it.

use super::connection::Connection;
use super::error::{Failure, Stop};
use super::statement::{Statement, count, text};
use super::transaction::Transaction;
use super::writes::{Quick, kept};
use outlast_engine::Wall;
use outlast_engine::callback::{Callback, Fate, NewCallback};
use outlast_engine::limits;
use outlast_engine::store::{Done, Refusal};
use tokio_postgres::Row;

/// The columns of a callback, in the order in which [`callback_of`] reads them.
macro_rules! callback {
    () => {
        "number, name, body, made, attempts, due, why"
    };
}

const CALL_BACK: &str = "INSERT INTO outlast.callbacks (name, body, made, attempts, due, why)
    VALUES ($1, $2, outlast.clock(), 0, outlast.clock(), '')";

/// What another replica takes at this moment is not waited for.
const DUE: &str = concat!(
    "SELECT ",
    callback!(),
    " FROM outlast.callbacks WHERE due <= $1 AND name = ANY ($2) ORDER BY due, number LIMIT $3
     FOR UPDATE SKIP LOCKED"
);
const TAKEN: &str = "UPDATE outlast.callbacks SET attempts = attempts + 1, due = $2 WHERE number = ANY ($1)";
const NUMBERED: &str =
    concat!("SELECT ", callback!(), " FROM outlast.callbacks WHERE number = $1 FOR UPDATE");
const PUT: &str = "UPDATE outlast.callbacks SET due = $2, why = $3 WHERE number = $1";
const GONE: &str = "DELETE FROM outlast.callbacks WHERE number = $1";
const IS_DUE: &str = "SELECT EXISTS (SELECT FROM outlast.callbacks
    WHERE due <= outlast.clock() AND name = ANY ($1))";
const ALL: &str = concat!("SELECT ", callback!(), " FROM outlast.callbacks ORDER BY number LIMIT $1");

/// Of those that another replica is busy with nothing is waited for.
const OVER: &str = "DELETE FROM outlast.callbacks WHERE number IN (SELECT number FROM outlast.callbacks
    WHERE made <= $1 ORDER BY made LIMIT 1000 FOR UPDATE SKIP LOCKED) RETURNING number";
const TRIM: &str = "DELETE FROM outlast.callbacks WHERE number IN (
    SELECT number FROM outlast.callbacks ORDER BY due IS NOT NULL, number
    LIMIT greatest(0, (SELECT count(*) FROM outlast.callbacks) - $1)) RETURNING number";

pub fn call_back(new: &NewCallback) -> Quick<'_> {
    Quick::uncounted(Statement::new(CALL_BACK).text(&new.name).text(&new.body), kept)
}

impl Transaction<'_> {
    pub async fn take_callbacks(&self, names: &[Box<str>], limit: usize, now: Wall) -> Result<Done, Stop> {
        let due = Statement::new(DUE).int(now.0).blobs(bytes(names)).int(limit as u64);
        let mut taken = Vec::new();
        for row in self.sql.rows(&due).await? {
            let mut callback = callback_of(&row);
            callback.take(now);
            taken.push(callback);
        }
        if let Some(back) = taken.first().and_then(|callback| callback.due) {
            let numbers = taken.iter().map(|callback| callback.number);
            self.sql.rows(&Statement::new(TAKEN).ints(numbers).int(back.0)).await?;
        }
        Ok(Done::Callbacks(taken))
    }

    pub async fn settle_callback(
        &self,
        number: u64,
        attempts: Option<u64>,
        fate: &Fate,
        now: Wall,
    ) -> Result<Done, Stop> {
        let row = self.sql.maybe(&Statement::new(NUMBERED).int(number)).await?;
        let mut callback = row.map(|row| callback_of(&row)).ok_or(Refusal::Unknown)?;
        if attempts.is_some_and(|attempts| attempts != callback.attempts) {
            return Err(Refusal::Fenced.into());
        }
        let settled = match callback.settle(fate, now) {
            true => {
                Statement::new(PUT).int(number).maybe_int(callback.due.map(|due| due.0)).text(&callback.why)
            }
            false => Statement::new(GONE).int(number),
        };
        self.sql.rows(&settled).await?;
        Ok(Done::Kept)
    }

    /// Forgets those that are over, and those that are too many; how many went.
    pub async fn forget_callbacks(&self, now: Wall) -> Result<u64, Failure> {
        let over = Statement::new(OVER).int(now.before(limits::CALLBACK_KEPT).0);
        let over = self.sql.rows(&over).await?.len();
        let trimmed = self.sql.rows(&Statement::new(TRIM).int(self.bounds.callbacks)).await?.len();
        Ok((over + trimmed) as u64)
    }
}

pub async fn is_due(sql: &Connection, names: &[Box<str>]) -> Result<bool, Failure> {
    Ok(sql.one(&Statement::new(IS_DUE).blobs(bytes(names))).await?.get(0))
}

pub async fn all(sql: &Connection, limit: usize) -> Result<Vec<Callback>, Failure> {
    let rows = sql.rows(&Statement::new(ALL).int(limit as u64)).await?;
    Ok(rows.iter().map(callback_of).collect())
}

fn bytes(names: &[Box<str>]) -> impl Iterator<Item = &[u8]> {
    names.iter().map(|name| name.as_bytes())
}

fn callback_of(row: &Row) -> Callback {
    Callback {
        number: count(row, 0),
        about: NewCallback { name: text(row, 1), body: text(row, 2) },
        made: Wall(count(row, 3)),
        attempts: count(row, 4),
        due: row.get::<_, Option<i64>>(5).map(|due| Wall(due.unsigned_abs())),
        why: text(row, 6),
    }
}
