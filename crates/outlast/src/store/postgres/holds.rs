//! Calls that wait for a person, in the database. What a word is good for is decided by the hold.

use super::connection::Connection;
use super::error::{Failure, Stop};
use super::statement::{Statement, count, text};
use super::transaction::Transaction;
use outlast_engine::Wall;
use outlast_engine::hold::{Decision, Entry, Hold, Leave, NewHold, Standing, Verdict};
use outlast_engine::store::{Done, Refusal};
use std::time::Duration;
use tokio_postgres::Row;

/// The columns of a hold, in the order in which [`hold_of`] reads them.
macro_rules! hold {
    () => {
        "number, key, principal, server, name, tool, arguments, client, session, owner, asked, until, used, decision"
    };
}

/// Two calls of one tool are not held at the same moment, or one yes would do for both.
const LOCK: &str =
    "SELECT pg_advisory_xact_lock(hashtextextended(encode($1 || $2 || $3, 'hex'), 0)), 1::bigint";

const OF_TOOL: &str = concat!(
    "SELECT ",
    hold!(),
    " FROM outlast.holds WHERE principal = $1 AND server = $2 AND tool = $3 ORDER BY number FOR UPDATE"
);
const NUMBERED: &str = concat!("SELECT ", hold!(), " FROM outlast.holds WHERE number = $1 FOR UPDATE");
const ALL: &str = concat!("SELECT ", hold!(), ", outlast.clock() FROM outlast.holds ORDER BY number");
const OVER: &str = concat!(
    "SELECT ",
    hold!(),
    " FROM outlast.holds WHERE until <= $1 ORDER BY number LIMIT 1000 FOR UPDATE SKIP LOCKED"
);
const OPEN: &str = "SELECT count(*) FROM outlast.holds WHERE decision IS NULL AND NOT used AND until > $1";
const ASK: &str = "
INSERT INTO outlast.holds (key, principal, server, name, tool, arguments, client, session, owner, asked, until, used)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, false) RETURNING number";
const PUT: &str =
    "UPDATE outlast.holds SET client = $2, session = $3, owner = $4, until = $5, used = $6, decision = $7
    WHERE number = $1";
const GONE: &str = "DELETE FROM outlast.holds WHERE number = ANY ($1)";

/// Those that are gone are asked after, too.
const DECIDED: &str = "SELECT wanted FROM unnest($1::bigint[]) WITH ORDINALITY AS asked (wanted, place)
    LEFT JOIN outlast.holds ON number = wanted WHERE number IS NULL OR decision IS NOT NULL ORDER BY place";

const NOTE: &str = "INSERT INTO outlast.audit (entry) VALUES ($1)";
const TRIM: &str = "DELETE FROM outlast.audit WHERE number <= (SELECT max(number) FROM outlast.audit) - $1";
const AUDIT: &str = "SELECT entry FROM outlast.audit ORDER BY number DESC LIMIT $1";

impl Transaction<'_> {
    pub async fn hold(&self, new: &NewHold, now: Wall) -> Result<Done, Stop> {
        let of_tool = |text| Statement::new(text).text(&new.principal).text(&new.server).text(&new.tool);
        self.sql.rows(&of_tool(LOCK)).await?;
        for row in self.sql.rows(&of_tool(OF_TOOL)).await? {
            let mut hold = hold_of(&row)?;
            let lives = self.is_alive(&hold.owner).await?;
            if let Some(standing) = hold.meets(new, &self.me.name, now, lives) {
                self.put_hold(&hold).await?;
                return Ok(Done::Held(standing));
            }
        }
        let open = self.sql.one(&Statement::new(OPEN).int(now.0)).await?;
        if count(&open, 0) >= self.bounds.holds {
            return Err(Refusal::Full("holds".into()).into());
        }
        let asked = self.sql.one(&ask(new, &self.me.name, now)).await?;
        Ok(Done::Held(Standing::Asked(count(&asked, 0))))
    }

    async fn put_hold(&self, hold: &Hold) -> Result<(), Failure> {
        let decision = hold.decision.as_ref().and_then(|decision| serde_json::to_vec(decision).ok());
        let put = Statement::new(PUT)
            .int(hold.number)
            .text(&hold.about.client)
            .text(&hold.about.session)
            .text(&hold.owner)
            .int(hold.until.0)
            .flag(hold.used)
            .maybe_blob(decision.as_deref());
        self.sql.rows(&put).await.map(drop)
    }

    async fn hold_numbered(&self, number: u64) -> Result<Option<Hold>, Failure> {
        let row = self.sql.maybe(&Statement::new(NUMBERED).int(number)).await?;
        row.map(|row| hold_of(&row)).transpose()
    }

    pub async fn decide(&self, number: u64, verdict: &Verdict, now: Wall) -> Result<Done, Stop> {
        let Some(mut hold) = self.hold_numbered(number).await? else { return Ok(Done::Decided(None)) };
        if hold.decide(verdict, now) {
            self.put_hold(&hold).await?;
            self.note_decision(&hold).await?;
        }
        Ok(Done::Decided(hold.decision.map(Box::new)))
    }

    async fn note_decision(&self, hold: &Hold) -> Result<(), Failure> {
        let Some(entry) = Entry::of(hold) else { return Ok(()) };
        let entry = serde_json::to_vec(&entry).unwrap_or_default();
        self.sql.rows(&Statement::new(NOTE).blob(&entry)).await?;
        // Numbers only count up and only the oldest go, so they say how many there are, at most.
        self.sql.rows(&Statement::new(TRIM).int(self.bounds.audit)).await.map(drop)
    }

    pub async fn ask_after(&self, number: u64, leave: Leave, now: Wall) -> Result<Done, Stop> {
        let Some(mut hold) = self.hold_numbered(number).await? else { return Ok(Done::Decided(None)) };
        let decision = hold.ask_after(&self.me.name, leave, now);
        self.put_hold(&hold).await?;
        Ok(Done::Decided(decision.map(Box::new)))
    }

    /// Forgets what nobody needs any more; how many went.
    pub async fn forget_holds(&self, now: Wall) -> Result<u64, Failure> {
        let mut over = Vec::new();
        for row in self.sql.rows(&Statement::new(OVER).int(now.0)).await? {
            let hold = hold_of(&row)?;
            if hold.is_over(now) {
                over.push(hold.number);
            }
        }
        let gone = over.len() as u64;
        if gone > 0 {
            self.sql.rows(&Statement::new(GONE).ints(over)).await?;
        }
        Ok(gone)
    }
}

fn ask<'a>(new: &'a NewHold, owner: &'a str, now: Wall) -> Statement<'a> {
    Statement::new(ASK)
        .text(&new.key)
        .text(&new.principal)
        .text(&new.server)
        .text(&new.name)
        .text(&new.tool)
        .text(&new.arguments)
        .text(&new.client)
        .text(&new.session)
        .text(owner)
        .int(now.0)
        .int(now.after(new.keep).0)
}

pub async fn open(sql: &Connection) -> Result<Vec<Hold>, Failure> {
    let mut open = Vec::new();
    for row in sql.rows(&Statement::new(ALL)).await? {
        let hold = hold_of(&row)?;
        if !hold.is_over(Wall(count(&row, 14))) {
            open.push(hold);
        }
    }
    Ok(open)
}

pub async fn decided(sql: &Connection, wanted: &[u64]) -> Result<Vec<u64>, Failure> {
    let decided = Statement::new(DECIDED).ints(wanted.iter().copied());
    Ok(sql.rows(&decided).await?.iter().map(|row| count(row, 0)).collect())
}

pub async fn audit(sql: &Connection, limit: usize) -> Result<Vec<Entry>, Failure> {
    let rows = sql.rows(&Statement::new(AUDIT).int(limit as u64)).await?;
    rows.iter().map(|row| json(row.get(0))).collect()
}

fn hold_of(row: &Row) -> Result<Hold, Failure> {
    let about = NewHold {
        key: text(row, 1),
        principal: text(row, 2),
        server: text(row, 3),
        name: text(row, 4),
        tool: text(row, 5),
        arguments: text(row, 6),
        client: text(row, 7),
        session: text(row, 8),
        keep: Duration::ZERO,
    };
    Ok(Hold {
        number: count(row, 0),
        about,
        owner: text(row, 9),
        asked: Wall(count(row, 10)),
        until: Wall(count(row, 11)),
        used: row.get(12),
        decision: row.get::<_, Option<&[u8]>>(13).map(json::<Decision>).transpose()?,
    })
}

fn json<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(bytes)
        .map_err(|error| Failure::Broken(format!("a stored decision cannot be read: {error}")))
}
