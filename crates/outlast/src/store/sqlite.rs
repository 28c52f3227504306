//! A store in one SQLite file, shared by all outlast processes of a user.
//!
//! The file is in WAL mode: readers never wait for the writer, and what was committed survives
//! `kill -9` at any moment. Whether it also survives a power cut is decided by what is written:
//!
//! | written | after `kill -9` | after a power cut |
//! |---|---|---|
//! | records | there | there: the commit waits for the disk, because a client was promised its ticket |
//! | callbacks | there | there; one that was sent may be sent again |
//! | decisions of persons | there | there: a yes must not be used twice |
//! | mailbox messages, streams, sessions, leases, notes about calls | there | the last moments may be gone; what is older is there |
//!
//! Either way the file stays whole. A network file system is not supported: its processes would not
//! see each other's locks, and a boot of another machine would be taken for one of ours.

mod callbacks;
mod error;
mod file;
mod forwarded;
mod holds;
mod leases;
mod mailbox;
mod notes;
mod read;
mod records;
mod schema;
mod shown;
mod streams;
#[cfg(test)]
mod tests;

pub use error::OpenError;

use super::desk::{Ledger, Reader};
use super::owner::Me;
use error::{Stop, replaced, unwritten};
use file::File;
pub use file::NAME as FILE;
use outlast_engine::Wall;
use outlast_engine::store::{Bounds, Committed, Done, Loaded, Query, Stored, Trouble, Write};
use rusqlite::{ErrorCode, Transaction, TransactionBehavior};
use std::path::Path;

/// Connections that only read.
const READERS: usize = 2;

/// Pages given back to the system after each time something was forgotten.
const VACUUM: &str = "PRAGMA incremental_vacuum(256)";

/// The writer's side of the file.
#[derive(Debug)]
pub struct Sqlite {
    file: File,
    me: Me,
    bounds: Bounds,
}

impl Sqlite {
    /// Opens the file in this folder; makes both where they are not there.
    pub fn open(folder: &Path, me: Me, bounds: Bounds) -> Result<Sqlite, OpenError> {
        Ok(Sqlite { file: File::open(folder)?, me, bounds })
    }

    fn try_commit(&mut self, group: &[Vec<Write>]) -> rusqlite::Result<Vec<Stored>> {
        self.file.wait_for_disk(group.iter().flatten().any(is_promise))?;
        let transaction = self.file.sql.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::still_ours(&transaction)?;
        // Read by whoever holds the file, so that it does not go back from one commit to the next.
        let now = self.me.wall();
        let ledger = Page { sql: &transaction, me: &self.me, bounds: &self.bounds, now };
        let outcomes = group.iter().map(|writes| ledger.submit(writes)).collect::<Result<Vec<_>, _>>()?;
        transaction.commit()?;
        Ok(outcomes)
    }

    /// If the file is another one by now, what is to be written now fails, so that somebody says so: records
    /// of ours may have been in the other one.
    fn follow(&mut self) -> Result<(), Trouble> {
        if self.file.follow()? { Err(replaced(&self.file.path)) } else { Ok(()) }
    }
}

/// Whether somebody was promised to find it again.
fn is_promise(write: &Write) -> bool {
    matches!(
        write,
        Write::Create(_)
            | Write::Change(_)
            | Write::Claim { .. }
            | Write::CallBack(_)
            | Write::Decide { .. }
            | Write::AskAfter { .. }
    )
}

impl Reader for Sqlite {
    fn find(&mut self, query: &Query) -> Loaded {
        self.file.find(query, &self.me)
    }
}

impl Ledger for Sqlite {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        if let Err(trouble) = self.follow() {
            return vec![Err(trouble); group.len()];
        }
        match self.try_commit(group) {
            Ok(outcomes) => {
                let mut done = outcomes.iter().flatten().flat_map(|committed| &committed.done);
                if done.any(|done| matches!(done, Done::Removed(1..))) {
                    // The room is used again in any case.
                    let _ = self.file.sql.execute_batch(VACUUM);
                }
                outcomes
            }
            // What one of them cannot have, such as more bytes than SQLite takes, is no reason against
            // the others.
            Err(error) if group.len() > 1 && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                group.chunks(1).flat_map(|one| self.commit(one)).collect()
            }
            Err(error) => vec![Err(unwritten(&self.file.path, &error)); group.len()],
        }
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        let reader = |_| -> Option<Box<dyn Reader>> {
            Some(Box::new(Beside { file: self.file.beside().ok()?, me: self.me.clone() }))
        };
        (0..READERS).filter_map(reader).collect()
    }
}

/// A connection that only reads.
struct Beside {
    file: File,
    me: Me,
}

impl Reader for Beside {
    fn find(&mut self, query: &Query) -> Loaded {
        self.file.find(query, &self.me)
    }
}

/// The file within one transaction.
struct Page<'a> {
    sql: &'a Transaction<'a>,
    me: &'a Me,
    bounds: &'a Bounds,
    /// What the store's clock shows.
    now: Wall,
}

impl Page<'_> {
    /// Writes all or nothing. The error is one of the file, not of what is written.
    fn submit(&self, writes: &[Write]) -> rusqlite::Result<Stored> {
        self.run("SAVEPOINT submission")?;
        let mut done = Vec::with_capacity(writes.len());
        for (at, write) in writes.iter().enumerate() {
            match self.write(write) {
                Ok(what) => done.push(what),
                Err(Stop::Broken(error)) => return Err(error),
                Err(Stop::Refused(why)) => {
                    self.run("ROLLBACK TO submission")?;
                    self.run("RELEASE submission")?;
                    return Ok(Err(Trouble::Refused { at, why }));
                }
            }
        }
        self.run("RELEASE submission")?;
        Ok(Ok(Committed { at: self.now, done }))
    }

    fn write(&self, write: &Write) -> Result<Done, Stop> {
        match write {
            Write::Create(new) => self.create(new),
            Write::Change(change) => self.change(change),
            Write::Remove(ticket) => self.remove(ticket),
            Write::Claim { server } => self.claim(server),
            Write::Renew => self.renew(),
            Write::Post { ticket, message } => self.post(ticket, message),
            Write::Collect => self.collect(),
            Write::Append { stream, keep, events } => self.append(stream, *keep, events),
            Write::Adopt(stream) => self.adopt(stream),
            Write::Forget { stream, through } => self.forget(stream, *through),
            Write::Session(session) => self.keep_session(session),
            Write::TakeSession { name, principal } => self.take_session(name, principal),
            Write::EndSession(name) => self.end_session(name),
            Write::Forward { session, message } => self.forward(session, message),
            Write::CollectForwarded => self.collect_forwarded(),
            Write::Hint(_) => Ok(Done::Kept),
            Write::Calls(notes) => self.note_calls(notes),
            Write::Show { process, shown } => self.show(process, shown),
            Write::Tell { process, what } => self.tell(process, what),
            Write::Measured(all) => self.measured(all),
            Write::Hold(new) => self.hold(new),
            Write::Decide { hold, verdict } => self.decide(*hold, verdict),
            Write::AskAfter { hold, leave } => self.ask_after(*hold, *leave),
            Write::CallBack(new) => self.call_back(new),
            Write::TakeCallbacks { names, limit } => self.take_callbacks(names, *limit),
            Write::SettleCallback { callback, attempts, fate } => {
                self.settle_callback(*callback, *attempts, fate)
            }
            Write::Expire => self.expire(),
        }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<usize> {
        self.sql.prepare_cached(sql)?.execute([])
    }
}

/// SQLite's integers have a sign; nothing of ours needs the last bit.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
