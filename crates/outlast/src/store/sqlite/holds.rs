//! Calls that wait for a person, in the file. What a word is good for is decided by the hold.

use super::error::Stop;
use super::read::{count, optional, text};
use super::{Page, int};
use outlast_engine::Wall;
use outlast_engine::hold::{Decision, Entry, Hold, Leave, NewHold, Standing, Verdict};
use outlast_engine::store::{Done, Refusal};
use rusqlite::types::{FromSqlError, Type};
use rusqlite::{Connection, Error, Params, Result, Row, params};
use std::time::Duration;

/// The columns of a hold, in the order in which [`hold_of`] reads them.
const HOLD: &str =
    "number, key, principal, server, name, tool, arguments, client, session, owner, asked, until, used,
    decision";

impl Page<'_> {
    pub fn hold(&self, new: &NewHold) -> Result<Done, Stop> {
        self.renew()?;
        let of_tool = params![&*new.principal, &*new.server, &*new.tool];
        for mut hold in holds(self.sql, "principal = ?1 AND server = ?2 AND tool = ?3", of_tool)? {
            let lives = self.is_alive(&hold.owner)?;
            if let Some(standing) = hold.meets(new, &self.me.name, self.now, lives) {
                self.put_hold(&hold)?;
                return Ok(Done::Held(standing));
            }
        }
        let open = "SELECT count(*) FROM holds WHERE decision IS NULL AND used = 0 AND until > ?1";
        let open = self.sql.prepare_cached(open)?.query_row([int(self.now.0)], |row| count(row, 0))?;
        if open >= self.bounds.holds {
            return Err(Stop::Refused(Refusal::Full("holds".into())));
        }
        let until = self.now.after(new.keep);
        let mut insert = self.sql.prepare_cached(
            "INSERT INTO holds (key, principal, server, name, tool, arguments, client, session, owner, asked, until,
                used) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, 0)",
        )?;
        let number = insert.insert(params![
            &*new.key,
            &*new.principal,
            &*new.server,
            &*new.name,
            &*new.tool,
            &*new.arguments,
            &*new.client,
            &*new.session,
            &*self.me.name,
            int(self.now.0),
            int(until.0),
        ])?;
        Ok(Done::Held(Standing::Asked(number as u64)))
    }

    pub fn is_alive(&self, owner: &str) -> Result<bool> {
        if *owner == *self.me.name {
            return Ok(true);
        }
        let mut select = self.sql.prepare_cached("SELECT until FROM leases WHERE owner = ?1")?;
        let until = optional(select.query_row([owner], |row| count(row, 0)))?.unwrap_or(0);
        Ok(!self.me.outlives(owner, until))
    }

    fn put_hold(&self, hold: &Hold) -> Result<()> {
        let decision = hold.decision.as_ref().and_then(|decision| serde_json::to_string(decision).ok());
        let mut update = self.sql.prepare_cached(
            "UPDATE holds SET client = ?2, session = ?3, owner = ?4, until = ?5, used = ?6, decision = ?7
             WHERE number = ?1",
        )?;
        update.execute(params![
            int(hold.number),
            &*hold.about.client,
            &*hold.about.session,
            &*hold.owner,
            int(hold.until.0),
            hold.used,
            decision,
        ])?;
        Ok(())
    }

    fn hold_numbered(&self, number: u64) -> Result<Option<Hold>> {
        Ok(holds(self.sql, "number = ?1", [int(number)])?.pop())
    }

    pub fn decide(&self, number: u64, verdict: &Verdict) -> Result<Done, Stop> {
        let Some(mut hold) = self.hold_numbered(number)? else { return Ok(Done::Decided(None)) };
        if hold.decide(verdict, self.now) {
            self.put_hold(&hold)?;
            self.note_decision(&hold)?;
        }
        Ok(Done::Decided(hold.decision.map(Box::new)))
    }

    fn note_decision(&self, hold: &Hold) -> Result<()> {
        let Some(entry) = Entry::of(hold) else { return Ok(()) };
        let entry = serde_json::to_string(&entry).unwrap_or_default();
        self.sql.prepare_cached("INSERT INTO audit (entry) VALUES (?1)")?.execute([entry])?;
        // Numbers only count up and only the oldest go, so they say how many there are.
        let mut delete = self
            .sql
            .prepare_cached("DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?1")?;
        delete.execute([int(self.bounds.audit)])?;
        Ok(())
    }

    pub fn ask_after(&self, number: u64, leave: Leave) -> Result<Done, Stop> {
        let Some(mut hold) = self.hold_numbered(number)? else { return Ok(Done::Decided(None)) };
        let decision = hold.ask_after(&self.me.name, leave, self.now);
        self.put_hold(&hold)?;
        Ok(Done::Decided(decision.map(Box::new)))
    }

    /// Forgets what nobody needs any more; how many went.
    pub fn forget_holds(&self) -> Result<usize> {
        let mut gone = 0;
        for hold in holds(self.sql, "until <= ?1", [int(self.now.0)])? {
            if hold.is_over(self.now) {
                gone += self
                    .sql
                    .prepare_cached("DELETE FROM holds WHERE number = ?1")?
                    .execute([int(hold.number)])?;
            }
        }
        Ok(gone)
    }
}

pub fn open(sql: &Connection, now: Wall) -> Result<Vec<Hold>> {
    let mut open = holds(sql, "1", [])?;
    open.retain(|hold| !hold.is_over(now));
    Ok(open)
}

pub fn decided(sql: &Connection, wanted: &[u64]) -> Result<Vec<u64>> {
    let mut select = sql.prepare_cached("SELECT decision IS NOT NULL FROM holds WHERE number = ?1")?;
    let mut found = Vec::new();
    for number in wanted {
        // One that is gone is asked after, too.
        if optional(select.query_row([int(*number)], |row| row.get(0)))?.unwrap_or(true) {
            found.push(*number);
        }
    }
    Ok(found)
}

pub fn audit(sql: &Connection, limit: usize) -> Result<Vec<Entry>> {
    let mut select = sql.prepare_cached("SELECT entry FROM audit ORDER BY number DESC LIMIT ?1")?;
    let rows = select.query_map([limit as i64], |row| json(row, 0))?;
    rows.collect()
}

fn holds(sql: &Connection, wanted: &str, values: impl Params) -> Result<Vec<Hold>> {
    let mut select =
        sql.prepare_cached(&format!("SELECT {HOLD} FROM holds WHERE {wanted} ORDER BY number"))?;
    select.query_map(values, hold_of)?.collect()
}

fn hold_of(row: &Row<'_>) -> Result<Hold> {
    let (asked, until) = (Wall(count(row, 10)?), Wall(count(row, 11)?));
    let about = NewHold {
        key: text(row, 1)?,
        principal: text(row, 2)?,
        server: text(row, 3)?,
        name: text(row, 4)?,
        tool: text(row, 5)?,
        arguments: text(row, 6)?,
        client: text(row, 7)?,
        session: text(row, 8)?,
        keep: Duration::ZERO,
    };
    let decision = match row.get_ref(13)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(json::<Decision>(row, 13)?),
    };
    Ok(Hold {
        number: count(row, 0)?,
        about,
        owner: text(row, 9)?,
        asked,
        until,
        decision,
        used: row.get(12)?,
    })
}

fn json<T: serde::de::DeserializeOwned>(row: &Row<'_>, column: usize) -> Result<T> {
    let wrong =
        |error| Error::FromSqlConversionFailure(column, Type::Text, Box::new(FromSqlError::other(error)));
    serde_json::from_str(&text(row, column)?).map_err(wrong)
}
