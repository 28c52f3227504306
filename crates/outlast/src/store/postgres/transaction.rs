//! One transaction: many submissions in one go, or one with its reasons.

use super::connection::Connection;
use super::error::{Failure, Stop};
use super::leases::Lost;
use super::schema::VERSION;
use super::statement::{Statement, count, int};
use super::writes::{self, Quick};
use crate::store::owner::Me;
use outlast_engine::Wall;
use outlast_engine::limits::LEASE;
use outlast_engine::store::{Bounds, Committed, Done, Stored, Trouble, Write};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use tokio::sync::OnceCell;
use tokio_postgres::Row;

/// How a transaction begins. A process that is stopped in the middle of one must not hold what it has locked.
const BEGIN: [&str; 2] = [
    "BEGIN; SET LOCAL synchronous_commit = off; SET LOCAL idle_in_transaction_session_timeout = '5s';
     SET LOCAL statement_timeout = '8s'; SET LOCAL lock_timeout = '4s'",
    "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL idle_in_transaction_session_timeout = '5s';
     SET LOCAL statement_timeout = '8s'; SET LOCAL lock_timeout = '4s'",
];

/// The time, and whether these tables are still for us.
const HEAD: &str = "SELECT outlast.clock(), version, oldest FROM outlast.format";

/// Rows among which what is stored is counted, so that replicas do not wait for each other.
const SHARDS: u64 = 16;

/// A transaction that has not begun.
pub struct Transaction<'a> {
    pub sql: &'a Connection,
    pub me: &'a Me,
    pub bounds: &'a Bounds,
    /// Others may not have been able to say that they live.
    pub wary: bool,
    waits: bool,
    counted: Cell<Counted>,
    /// Who has left something open, once somebody has asked.
    pub lost: OnceCell<Lost>,
}

/// What became more or less.
#[derive(Clone, Copy, Default)]
pub struct Counted {
    pub records: i64,
    pub bytes: i64,
}

/// What came of several submissions.
pub enum Made {
    All(Vec<Stored>),
    Refused,
}

impl<'a> Transaction<'a> {
    pub fn new(
        sql: &'a Connection,
        me: &'a Me,
        bounds: &'a Bounds,
        waits: bool,
        wary: bool,
    ) -> Transaction<'a> {
        Transaction { sql, me, bounds, wary, waits, counted: Cell::default(), lost: OnceCell::new() }
    }

    /// Makes all of these; none is committed yet.
    pub async fn try_all(&self, group: &[Vec<Write>]) -> Result<Made, Failure> {
        let quick = self.quick(group);
        let (head, tally, lease) = (Statement::new(HEAD), tally(self), lease(self.me, 0));
        let statements = quick.iter().filter_map(|quick| quick.statement.as_ref());
        let statements: Vec<_> = [&head, &tally, &lease].into_iter().chain(statements).collect();
        self.sql.prepare(&statements).await?;
        let mut sent: Vec<Sending<'_, Option<Vec<Row>>>> = Vec::with_capacity(quick.len() + 2);
        sent.push(Box::pin(async { self.begin().await.map(|()| None) }));
        sent.push(Box::pin(async { self.sql.rows(&head).await.map(Some) }));
        for quick in &quick {
            if let Some(statement) = &quick.statement {
                sent.push(Box::pin(async { self.sql.rows(statement).await.map(Some) }));
            }
        }
        let mut answers = all(sent).await.into_iter();
        answers.next().transpose()?;
        let now = answers.next().transpose()?.flatten();
        let now = self.read_head(now.as_deref().and_then(<[Row]>::first))?;
        let mut done = Vec::with_capacity(quick.len());
        for quick in &quick {
            let rows = match &quick.statement {
                Some(_) => answers.next().transpose()?.flatten().unwrap_or_default(),
                None => Vec::new(),
            };
            let Some(what) = self.count(quick, &rows) else { return Ok(Made::Refused) };
            done.push(what);
        }
        self.tally().await?;
        let mut done = done.into_iter();
        let outcome =
            |writes: &Vec<Write>| Ok(Committed { at: now, done: done.by_ref().take(writes.len()).collect() });
        Ok(Made::All(group.iter().map(outcome).collect()))
    }

    /// Each write as one statement, with the room that those before it leave.
    fn quick<'b>(&'b self, group: &'b [Vec<Write>]) -> Vec<Quick<'b>> {
        let mut left = *self.bounds;
        let mut quick = Vec::new();
        for write in group.iter().flatten() {
            quick.extend(writes::quick(write, self.me, &left));
            let Counted { records, bytes } = writes::takes(write);
            left.records = left.records.saturating_sub(records.unsigned_abs());
            left.bytes = left.bytes.saturating_sub(bytes.unsigned_abs());
        }
        quick
    }

    /// Makes one submission; it is not committed yet.
    pub async fn try_one(&self, writes: &[Write]) -> Result<Stored, Failure> {
        self.begin().await?;
        let head = self.sql.one(&Statement::new(HEAD)).await?;
        let now = self.read_head(Some(&head))?;
        let mut done = Vec::with_capacity(writes.len());
        for (at, write) in writes.iter().enumerate() {
            match self.write(write, now).await {
                Ok(what) => done.push(what),
                Err(Stop::Refused(why)) => return Ok(Err(Trouble::Refused { at, why })),
                Err(Stop::Failed(why)) => return Err(why),
            }
        }
        self.tally().await?;
        Ok(Ok(Committed { at: now, done }))
    }

    async fn begin(&self) -> Result<(), Failure> {
        self.sql.run(BEGIN[usize::from(self.waits)]).await
    }

    fn read_head(&self, row: Option<&Row>) -> Result<Wall, Failure> {
        let row =
            row.ok_or_else(|| Failure::Broken("the tables of outlast have lost their version".into()))?;
        let number = |column| u32::try_from(count(row, column)).unwrap_or(u32::MAX);
        if number(2) > VERSION {
            return Err(self.sql.place().newer(number(1), VERSION));
        }
        Ok(Wall(count(row, 0)))
    }

    /// Makes a quick write, if it is allowed.
    pub async fn try_quick(&self, quick: &Quick<'_>) -> Result<Option<Done>, Failure> {
        let rows = match &quick.statement {
            Some(statement) => self.sql.rows(statement).await?,
            None => Vec::new(),
        };
        Ok(self.count(quick, &rows))
    }

    /// What a write did, and what that is for the room: the first two columns of its rows.
    fn count(&self, quick: &Quick<'_>, rows: &[Row]) -> Option<Done> {
        let done = (quick.read)(rows)?;
        if quick.counts {
            rows.iter().for_each(|row| self.counts(row.get(0), row.get(1)));
        }
        Some(done)
    }

    pub fn counts(&self, records: i64, bytes: i64) {
        let before = self.counted.get();
        self.counted.set(Counted { records: before.records + records, bytes: before.bytes + bytes });
    }

    /// The bounds, less what this transaction has taken.
    pub fn left(&self) -> Bounds {
        let Counted { records, bytes } = self.counted.get();
        let less = |bound: u64, taken: i64| int(bound).saturating_sub(taken).max(0).unsigned_abs();
        Bounds {
            records: less(self.bounds.records, records),
            bytes: less(self.bounds.bytes, bytes),
            ..*self.bounds
        }
    }

    /// Adds what was counted to what is stored.
    async fn tally(&self) -> Result<(), Failure> {
        let Counted { records: 0, bytes: 0 } = self.counted.get() else {
            return self.sql.rows(&tally(self)).await.map(drop);
        };
        Ok(())
    }
}

fn tally<'a>(transaction: &Transaction<'a>) -> Statement<'a> {
    let Counted { records, bytes } = transaction.counted.get();
    let text = "INSERT INTO outlast.usage (shard, records, bytes) VALUES ($1, $2, $3)
        ON CONFLICT (shard) DO UPDATE
        SET records = usage.records + excluded.records, bytes = usage.bytes + excluded.bytes";
    let shard = u64::from(crate::store::id_of(&transaction.me.name)[0]) % SHARDS;
    Statement::new(text).int(shard).signed(records).signed(bytes)
}

/// Says that we live, and which transaction this is.
fn lease(me: &Me, turn: u64) -> Statement<'_> {
    let text = "INSERT INTO outlast.leases (owner, until, turn) VALUES ($1, outlast.clock() + $2, $3)
        ON CONFLICT (owner) DO UPDATE SET until = greatest(leases.until, excluded.until), turn = excluded.turn";
    Statement::new(text).text(&me.name).int(LEASE.as_millis() as u64).int(turn)
}

/// Ends a transaction that was made: it is committed, unless this fails.
pub async fn end(sql: &Connection, me: &Me, turn: u64) -> Result<(), Failure> {
    let lease = lease(me, turn);
    sql.prepare(&[&lease]).await?;
    let sent: Vec<Sending<'_, ()>> = vec![
        Box::pin(async { sql.rows(&lease).await.map(drop) }),
        Box::pin(async { sql.run("COMMIT").await }),
    ];
    // After an error a commit is none, although it says nothing about that.
    all(sent).await.into_iter().collect()
}

type Sending<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failure>> + 'a>>;

/// Sends all of these in their order, and waits for all answers.
async fn all<T>(mut sent: Vec<Sending<'_, T>>) -> Vec<Result<T, Failure>> {
    let mut answers: Vec<Option<Result<T, Failure>>> = sent.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waits = false;
        for (sending, answer) in sent.iter_mut().zip(&mut answers) {
            if answer.is_none() {
                match sending.as_mut().poll(context) {
                    Poll::Ready(done) => *answer = Some(done),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    answers.into_iter().flatten().collect()
}
