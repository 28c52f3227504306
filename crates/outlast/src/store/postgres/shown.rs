//! What processes show each other and tell each other to do, and how long tools took.

use super::connection::Connection;
use super::error::{Failure, Stop};
use super::statement::{Statement, blob, count, text};
use super::transaction::Transaction;
use crate::store::owner::Me;
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::durations::{Durations, Tally};
use outlast_engine::limits::{self, LEASE};
use outlast_engine::store::{self, Done, Found, Measured, Refusal};

const SHOW: &str = "INSERT INTO outlast.shown (owner, process, body) VALUES ($1, $2, $3)
    ON CONFLICT (owner) DO UPDATE SET process = excluded.process, body = excluded.body";
const HIDE: &str = "DELETE FROM outlast.shown WHERE owner = $1";
const TAKE: &str = "DELETE FROM outlast.told WHERE process = $1 RETURNING number, body";
const OWNER: &str = "SELECT owner FROM outlast.shown WHERE process = $1";
const WAITING: &str = "SELECT count(*) FROM outlast.told WHERE process = $1";
const TELL: &str = "INSERT INTO outlast.told (process, body) VALUES ($1, $2)";

/// Sums have bucket 0, and each bucket has the number after its own.
const MEASURE: &str = "
INSERT INTO outlast.durations AS known (day, server, tool, bucket, calls, failures, cut_off, slowest)
SELECT $1, $2, $3, * FROM unnest($4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[])
ON CONFLICT (day, server, tool, bucket) DO UPDATE SET calls = known.calls + excluded.calls,
    failures = known.failures + excluded.failures, cut_off = known.cut_off + excluded.cut_off,
    slowest = greatest(known.slowest, excluded.slowest)";
const ROWS: &str = "SELECT count(*) FROM outlast.durations";
const OLDEST: &str = "DELETE FROM outlast.durations WHERE day = (SELECT min(day) FROM outlast.durations)";

const FORGET: [&str; 2] = [
    "DELETE FROM outlast.shown WHERE NOT EXISTS (SELECT FROM outlast.leases WHERE leases.owner = shown.owner)",
    "DELETE FROM outlast.told WHERE NOT EXISTS (SELECT FROM outlast.shown WHERE shown.process = told.process)",
];
const FORGET_DAYS: &str = "DELETE FROM outlast.durations WHERE day + $2 <= $1";

const SHOWN: &str = "SELECT shown.owner, body, coalesce(until, 0) > outlast.clock()
        OR outlast.began() + $1 > outlast.clock()
    FROM outlast.shown LEFT JOIN outlast.leases ON leases.owner = shown.owner ORDER BY process";
const MEASURED: &str = "
SELECT server, tool, bucket, sum(calls)::bigint, sum(failures)::bigint, sum(cut_off)::bigint, max(slowest)
FROM outlast.durations WHERE day + $1 > outlast.clock() / 86400000 GROUP BY server, tool, bucket
ORDER BY server, tool, bucket";

impl Transaction<'_> {
    pub async fn show(&self, process: &str, shown: &Bytes) -> Result<Done, Stop> {
        if shown.len() > limits::SHOWN_BYTES {
            return Err(Refusal::Full("bytes of what a process shows".into()).into());
        }
        let statement = match shown.is_empty() {
            true => Statement::new(HIDE).text(&self.me.name),
            false => Statement::new(SHOW).text(&self.me.name).text(process).blob(shown),
        };
        self.sql.rows(&statement).await?;
        let mut told = self.sql.rows(&Statement::new(TAKE).text(process)).await?;
        told.sort_by_key(|row| count(row, 0));
        Ok(Done::Told(told.iter().map(|row| blob(row, 1)).collect()))
    }

    pub async fn tell(&self, process: &str, what: &Bytes) -> Result<Done, Stop> {
        let owner = self.sql.maybe(&Statement::new(OWNER).text(process)).await?;
        let owner = owner.map(|row| text(&row, 0)).ok_or(Refusal::Unknown)?;
        if !self.is_alive(&owner).await? {
            return Err(Refusal::Unknown.into());
        }
        let waiting = self.sql.one(&Statement::new(WAITING).text(process)).await?;
        if count(&waiting, 0) >= self.bounds.mailbox {
            return Err(Refusal::Full("mailbox".into()).into());
        }
        self.sql.rows(&Statement::new(TELL).text(process).blob(what)).await?;
        Ok(Done::Kept)
    }

    pub async fn measured(&self, all: &[Measured], now: Wall) -> Result<Done, Stop> {
        for one in all {
            self.measure(one, now).await?;
        }
        while count(&self.sql.one(&Statement::new(ROWS)).await?, 0) > self.bounds.measured {
            self.sql.rows(&Statement::new(OLDEST)).await?;
        }
        Ok(Done::Kept)
    }

    async fn measure(&self, Measured { server, tool, tally }: &Measured, now: Wall) -> Result<(), Failure> {
        let sums = (0, [tally.calls, tally.failures, tally.cut_off, tally.slowest_ms]);
        let buckets = tally.buckets().map(|(bucket, calls)| (1 + u64::from(bucket), [calls.into(), 0, 0, 0]));
        let rows: Vec<(u64, [u64; 4])> = std::iter::once(sums).chain(buckets).collect();
        let column = |at: usize| rows.iter().map(move |(_, row)| row[at]);
        let statement = Statement::new(MEASURE)
            .int(store::day(now))
            .text(server)
            .text(tool)
            .ints(rows.iter().map(|(bucket, _)| *bucket))
            .ints(column(0))
            .ints(column(1))
            .ints(column(2))
            .ints(column(3));
        self.sql.rows(&statement).await.map(drop)
    }

    /// Forgets what dead processes show and were told, and days that are too long ago.
    pub async fn forget_shown(&self, now: Wall) -> Result<(), Failure> {
        for text in FORGET {
            self.sql.rows(&Statement::new(text)).await?;
        }
        let days = Statement::new(FORGET_DAYS).int(store::day(now)).int(limits::MEASURED_DAYS);
        self.sql.rows(&days).await.map(drop)
    }
}

/// What processes show that live.
pub async fn shown(sql: &Connection, me: &Me) -> Result<Found, Failure> {
    let rows = sql.rows(&Statement::new(SHOWN).int(LEASE.as_millis() as u64)).await?;
    let lives = |owner: &str, heard: bool| *owner == *me.name || heard && !me.sees_the_end_of(owner);
    let living = rows.iter().filter(|row| lives(&text(row, 0), row.get(2)));
    Ok(Found::Shown(living.map(|row| blob(row, 1)).collect()))
}

/// How long tools took, added up.
pub async fn measured(sql: &Connection) -> Result<Found, Failure> {
    let mut all = Durations::default();
    for row in sql.rows(&Statement::new(MEASURED).int(limits::MEASURED_DAYS)).await? {
        let (bucket, calls) = (count(&row, 2), count(&row, 3));
        let mut tally = Tally::default();
        match bucket.checked_sub(1) {
            None => {
                (tally.calls, tally.failures, tally.cut_off, tally.slowest_ms) =
                    (calls, count(&row, 4), count(&row, 5), count(&row, 6));
            }
            Some(bucket) => {
                let calls = u32::try_from(calls).unwrap_or(u32::MAX);
                tally.fill(u8::try_from(bucket).unwrap_or(u8::MAX), calls);
            }
        }
        all.join(&text(&row, 0), &text(&row, 1), &tally);
    }
    Ok(Found::Measured(store::measured(&all)))
}
