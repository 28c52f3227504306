//! A store in a PostgreSQL database, shared by outlast processes on any number of machines.
//!
//! One connection writes, two read, one listens to hints of other processes. The writer sends what waits as one transaction, and all of its statements in one
//! go: first what is written, then the end of the transaction, so that a transaction costs two round trips however much
//! is in it. Every write checks in its own statement whether it is allowed (the owner, the epoch, the room). If one is
//! not, the transaction is taken back, and each submission is made alone, with the reasons looked up.
//!
//! What other processes can see is decided by the database alone: its clock, its locks, its commits. Whether a commit
//! whose answer was lost has happened is told by the lease, which every transaction numbers ([`Writer::turn`]).
//!
//! | written | after the database's machine lost its power |
//! |---|---|
//! | records, decisions of persons | there |
//! | mailbox messages, streams, sessions, leases, notes about calls | the last moments may be gone |
//!
//! A database that is away is waited for ([`patience`]); after that writes fail, and the engine does without.

mod callbacks;
mod connection;
mod error;
mod forwarded;
mod hints;
mod holds;
mod leases;
mod mailbox;
mod notes;
mod patience;
mod place;
mod read;
mod records;
mod schema;
mod shown;
mod statement;
mod streams;
mod transaction;
mod writes;

#[cfg(all(test, unix))]
pub mod tests;

pub use place::Database;

use super::OnHint;
use super::desk::{Ledger, Reader};
use super::owner::Me;
use connection::Connection;
use error::Failure;
use outlast_engine::store::{Bounds, Done, Loaded, Query, Stored, Write};
use patience::Patience;
use statement::Statement;
use std::io;
use tokio::runtime::Runtime;
use transaction::Made;

/// Connections that only read.
const READERS: usize = 2;

/// How often a transaction is made again that others were in the way of.
const AGAIN: u32 = 5;

/// The writer.
#[derive(Debug)]
pub struct Writer {
    line: Line,
    bounds: Bounds,
    /// The number of the last transaction.
    turn: u64,
    /// What the last transaction did, if nobody knows whether it was committed.
    unsure: Option<Vec<Stored>>,
    /// Ids of records that may have been made although somebody was told that they were not.
    regretted: Vec<super::Id>,
    /// More is over than went at once.
    backlog: bool,
    /// Who hears hints, if somebody wants them.
    _listener: Option<hints::Listener>,
}

/// A connection that is made when it is needed, and again when it is gone.
#[derive(Debug)]
struct Line {
    database: Database,
    me: Me,
    runtime: Option<Runtime>,
    connection: Option<Connection>,
    patience: Patience,
}

/// Connects, and brings the tables to our version. The error is for people.
pub fn reach(database: &Database) -> Result<(), String> {
    let runtime = runtime().map_err(|error| error.to_string())?;
    let reached = runtime.block_on(async { schema::prepare(&Connection::open(database).await?).await });
    reached.map_err(|why| why.words().to_owned())
}

/// A key that all processes have that share the database: this one, if nobody gave one before. Waits for a database that
/// starts at the same time as we do. The error is for people.
pub fn shared_key(database: &Database, bytes: &[u8]) -> Result<Vec<u8>, String> {
    let mut patience = Patience::default();
    loop {
        let why = match key_of(database, bytes) {
            Ok(key) => return Ok(key),
            Err(why) => why,
        };
        match patience.fails(&why) {
            // No database tells us that it takes connections now, so we ask again after a while. Nothing runs on this
            // thread meanwhile: the program has not begun.
            Some(time) => std::thread::park_timeout(time),
            None => return Err(why.words().to_owned()),
        }
    }
}

fn key_of(database: &Database, bytes: &[u8]) -> Result<Vec<u8>, Failure> {
    let runtime = runtime().map_err(|error| database.shown().unreachable(&error.to_string()))?;
    runtime.block_on(async {
        let connection = Connection::open(database).await?;
        schema::prepare(&connection).await?;
        let insert = "INSERT INTO outlast.keys (name, bytes) VALUES ('identity', $1) ON CONFLICT DO NOTHING";
        connection.rows(&Statement::new(insert).blob(bytes)).await?;
        let select = "SELECT bytes FROM outlast.keys WHERE name = 'identity'";
        Ok(connection.one(&Statement::new(select)).await?.get(0))
    })
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()
}

impl Writer {
    pub fn new(database: Database, me: Me, bounds: Bounds) -> Writer {
        let line = Line::new(database, me);
        Writer { line, bounds, turn: 0, unsure: None, regretted: Vec::new(), backlog: false, _listener: None }
    }

    /// Has somebody told when there may be something new. Without a thread for that it is found all the same.
    pub fn with_hints(mut self, on_hint: OnHint) -> Writer {
        let Line { database, me, .. } = &self.line;
        self._listener = hints::listen(database.clone(), &me.name, on_hint).ok();
        self
    }

    /// Writes, and waits for a database that went away a moment ago.
    async fn write(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        let mut done = Vec::with_capacity(group.len());
        while let Err(why) = self.go_on(group, &mut done).await {
            if !self.line.waits_after(&why).await {
                self.give_up(group.get(done.len()..).unwrap_or_default());
                done.resize(group.len(), Err(why.unwritten()));
            }
        }
        if self.backlog {
            self.sweep().await;
        }
        self.backlog |= done.iter().any(leaves_more);
        done
    }

    /// Lets another batch go of what is over, in a transaction of its own.
    async fn sweep(&mut self) {
        let swept = self.alone(&[Write::Expire]).await;
        self.backlog = swept.as_ref().is_ok_and(leaves_more);
        if swept.is_err() {
            // It goes another time, and nobody waits to hear of it.
            (self.unsure, self.line.connection) = (None, None);
        }
    }

    /// Writes what is not written yet.
    async fn go_on(&mut self, group: &[Vec<Write>], done: &mut Vec<Stored>) -> Result<(), Failure> {
        let mut alone_until = 0;
        while done.len() < group.len() {
            self.line.connect().await?;
            if let Some(outcomes) = self.committed_after_all().await? {
                done.extend(outcomes);
                continue;
            }
            let rest = &group[done.len()..];
            let together = rest.iter().take_while(|writes| writes.iter().all(writes::is_quick)).count();
            if done.len() >= alone_until && together > 0 {
                match self.together(&rest[..together]).await? {
                    Some(outcomes) => done.extend(outcomes),
                    None => alone_until = done.len() + together,
                }
            } else {
                let outcome = self.alone(&rest[0]).await?;
                done.push(outcome);
            }
            self.line.patience.works();
        }
        Ok(())
    }

    /// One transaction for several submissions. `None` if something in it is not allowed: nothing was written then.
    async fn together(&mut self, group: &[Vec<Write>]) -> Result<Option<Vec<Stored>>, Failure> {
        let Some(connection) = &self.line.connection else { return Ok(None) };
        self.turn += 1;
        let transaction = self.transaction(connection, group.iter().flatten());
        match transaction.try_all(group).await {
            Ok(Made::All(outcomes)) => {
                self.unsure = Some(outcomes);
                match self.finish().await {
                    Err(Failure::Again) => Ok(None),
                    finished => finished.map(Some),
                }
            }
            Ok(Made::Refused) | Err(Failure::Again | Failure::Broken(_)) => {
                connection.run("ROLLBACK").await?;
                Ok(None)
            }
            Err(why) => Err(why),
        }
    }

    /// One transaction for one submission, again and again if others are in its way.
    async fn alone(&mut self, writes: &[Write]) -> Result<Stored, Failure> {
        for _ in 0..AGAIN {
            let Some(connection) = &self.line.connection else { break };
            self.turn += 1;
            let transaction = self.transaction(connection, writes.iter());
            let made = transaction.try_one(writes).await;
            if let Ok(stored @ Ok(_)) = made {
                self.unsure = Some(vec![stored]);
                match self.finish().await {
                    Ok(mut outcomes) if !outcomes.is_empty() => return Ok(outcomes.swap_remove(0)),
                    Ok(_) | Err(Failure::Again) => continue,
                    Err(why) => return Err(why),
                }
            }
            connection.run("ROLLBACK").await?;
            match made {
                Ok(refused) => return Ok(refused),
                Err(Failure::Again) => {}
                Err(why @ Failure::Broken(_)) => return Ok(Err(why.unwritten())),
                Err(why) => return Err(why),
            }
        }
        Ok(Err(Failure::Again.unwritten()))
    }

    fn transaction<'a>(
        &'a self,
        connection: &'a Connection,
        mut writes: impl Iterator<Item = &'a Write>,
    ) -> transaction::Transaction<'a> {
        let waits = writes.any(writes::is_promise);
        let wary = self.line.patience.is_wary();
        transaction::Transaction::new(connection, &self.line.me, &self.bounds, waits, wary)
    }

    /// Commits what [`Writer::unsure`] says.
    async fn finish(&mut self) -> Result<Vec<Stored>, Failure> {
        let Some(connection) = &self.line.connection else { return Ok(Vec::new()) };
        match transaction::end(connection, &self.line.me, self.turn).await {
            // Nobody knows.
            Err(why @ Failure::Away(_)) => Err(why),
            Err(why) => {
                self.unsure = None;
                connection.run("ROLLBACK").await?;
                Err(why)
            }
            Ok(()) => Ok(self.unsure.take().unwrap_or_default()),
        }
    }

    /// What the last transaction did, if its commit was not answered and has happened.
    async fn committed_after_all(&mut self) -> Result<Option<Vec<Stored>>, Failure> {
        let Some(connection) = &self.line.connection else { return Ok(None) };
        if !self.regretted.is_empty() {
            leases::take_back(connection, &self.line.me, &self.regretted).await?;
            self.regretted.clear();
        }
        if self.unsure.is_none() {
            return Ok(None);
        }
        let turn = leases::last_turn(connection, &self.line.me).await?;
        Ok(self.unsure.take().filter(|_| turn == Some(self.turn)))
    }

    /// Somebody is told that these were not written.
    fn give_up(&mut self, group: &[Vec<Write>]) {
        if self.unsure.take().is_none() {
            return;
        }
        let made = group.iter().flatten().filter_map(|write| match write {
            Write::Create(new) => Some(super::id_of(new.ticket.as_str())),
            _ => None,
        });
        self.regretted.extend(made);
    }
}

/// Whether as much went as goes at once.
fn leaves_more(stored: &Stored) -> bool {
    let mut done = stored.iter().flat_map(|committed| &committed.done);
    done.any(|done| matches!(done, Done::Removed(streams::BATCH..)))
}

impl Line {
    fn new(database: Database, me: Me) -> Line {
        Line { database, me, runtime: None, connection: None, patience: Patience::default() }
    }

    /// The connection, made if there is none. A database that was away a moment ago is not asked again at once.
    async fn connect(&mut self) -> Result<(), Failure> {
        if self.connection.as_ref().is_some_and(|connection| !connection.is_closed()) {
            return Ok(());
        }
        if let Some(why) = self.patience.refuses() {
            return Err(why);
        }
        self.connection = None;
        let connection = Connection::open(&self.database).await?;
        schema::prepare(&connection).await?;
        self.connection = Some(connection);
        Ok(())
    }

    /// Notes what went wrong, and waits if waiting may help: whether it is to be tried again.
    async fn waits_after(&mut self, why: &Failure) -> bool {
        // What was not answered may be answered later, in the place of something else.
        self.connection = None;
        match self.patience.fails(why) {
            Some(time) => {
                // No database tells us that it is back, so it is asked again after a while. The store's own thread has
                // nothing else to do: what it is given meanwhile waits behind this.
                let _ = tokio::time::timeout(time, std::future::pending::<()>()).await;
                true
            }
            None => false,
        }
    }

    async fn patiently(&mut self, query: &Query) -> Loaded {
        loop {
            match self.look(query).await {
                Ok(found) => return Ok(found),
                Err(why) => {
                    if !self.waits_after(&why).await {
                        return Err(why.unread());
                    }
                }
            }
        }
    }

    async fn look(&mut self, query: &Query) -> Result<outlast_engine::store::Found, Failure> {
        self.connect().await?;
        let Some(connection) = &self.connection else {
            return Err(self.database.shown().unreachable("no connection"));
        };
        let found = read::find(connection, query, &self.me).await?;
        self.patience.works();
        Ok(found)
    }

    /// What the connection runs on, made when it is first needed; to be given back.
    fn take_runtime(&mut self) -> Result<Runtime, Failure> {
        let runtime = self.runtime.take().map_or_else(runtime, Ok);
        runtime.map_err(|error| self.database.shown().unreachable(&error.to_string()))
    }
}

/// A connection belongs to the runtime that it was made on, so both go in this order.
impl Drop for Line {
    fn drop(&mut self) {
        self.connection = None;
    }
}

impl Reader for Line {
    fn find(&mut self, query: &Query) -> Loaded {
        let runtime = self.take_runtime().map_err(|why| why.unread())?;
        let found = runtime.block_on(self.patiently(query));
        self.runtime = Some(runtime);
        found
    }
}

impl Reader for Writer {
    fn find(&mut self, query: &Query) -> Loaded {
        self.line.find(query)
    }
}

impl Ledger for Writer {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        let runtime = match self.line.take_runtime() {
            Ok(runtime) => runtime,
            Err(why) => return vec![Err(why.unwritten()); group.len()],
        };
        let done = runtime.block_on(self.write(group));
        self.line.runtime = Some(runtime);
        done
    }

    /// A database that is away is not waited for: then our lease ends by itself.
    fn leave(&mut self) {
        let (Some(runtime), Some(connection)) = (&self.line.runtime, &self.line.connection) else { return };
        let _ = runtime.block_on(leases::give_back(connection, &self.line.me));
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        let reader =
            |_| -> Box<dyn Reader> { Box::new(Line::new(self.line.database.clone(), self.line.me.clone())) };
        (0..READERS).map(reader).collect()
    }
}
