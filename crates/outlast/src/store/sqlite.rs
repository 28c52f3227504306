//! A store in one SQLite file, shared by all outlast processes of a user.
//!
//! The file is in WAL mode: readers never wait for the writer, and what was committed survives
//! `kill -9` at any moment. Whether it also survives a power cut is decided by what is written:
//!
//! | written | after `kill -9` | after a power cut |
//! |---|---|---|
//! | records | there | there: the commit waits for the disk, because a client was promised its ticket |
//! | letters, streams, sessions, leases, notes about calls | there | the last moments may be gone; what is older is there |
//!
//! Either way the file stays whole. A network file system is not supported: its processes would not
//! see each other's locks, and a boot of another machine would be taken for one of ours.

mod error;
mod leases;
mod letters;
mod notes;
mod read;
mod records;
mod schema;
mod streams;

pub use error::OpenError;

use super::desk::{Ledger, Reader};
use super::owner::Me;
use error::{Stop, words};
use outlast_engine::store::{Bounds, Done, Loaded, Query, Stored, Trouble, Write};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in the state folder; SQLite puts two others beside it.
pub const FILE: &str = "store.db";

/// How long another process may hold the file. Its transactions take milliseconds.
const BUSY: Duration = Duration::from_secs(10);

/// Connections that only read.
const READERS: usize = 2;

/// Pages given back to the system after each time something was forgotten.
const VACUUM: &str = "PRAGMA incremental_vacuum(256)";

/// The writer's side of the file.
#[derive(Debug)]
pub struct Sqlite {
    path: PathBuf,
    connection: Connection,
    me: Me,
    bounds: Bounds,
    /// Whether commits wait for the disk just now.
    waits: bool,
}

impl Sqlite {
    /// Opens the file in this folder; makes both where they are not there.
    pub fn open(folder: &Path, me: Me, bounds: Bounds) -> Result<Sqlite, OpenError> {
        let path = folder.join(FILE);
        make_private(folder, &path).map_err(|why| OpenError::folder(folder, &why))?;
        let opening = || -> Result<Connection, OpenError> {
            let _turn = take_turn(folder).map_err(|why| OpenError::folder(folder, &why))?;
            let mut connection = connect(&path).map_err(|why| OpenError::of(&path, why))?;
            schema::prepare(&mut connection, &path)?;
            Ok(connection)
        };
        Ok(Sqlite { connection: opening()?, path, me, bounds, waits: false })
    }

    fn try_commit(&mut self, group: &[Vec<Write>]) -> rusqlite::Result<Vec<Stored>> {
        self.wait_for_disk(group.iter().flatten().any(is_promise))?;
        let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        schema::still_ours(&transaction)?;
        let ledger = Page { sql: &transaction, me: &self.me, bounds: &self.bounds };
        let outcomes = group.iter().map(|writes| ledger.submit(writes)).collect::<Result<Vec<_>, _>>()?;
        transaction.commit()?;
        Ok(outcomes)
    }

    fn wait_for_disk(&mut self, waits: bool) -> rusqlite::Result<()> {
        if self.waits != waits {
            self.connection.pragma_update(None, "synchronous", if waits { "FULL" } else { "NORMAL" })?;
            self.waits = waits;
        }
        Ok(())
    }
}

/// Whether somebody was promised to find it again.
fn is_promise(write: &Write) -> bool {
    matches!(write, Write::Create(_) | Write::Change(_) | Write::Claim { .. })
}

impl Reader for Sqlite {
    fn find(&mut self, query: &Query) -> Loaded {
        read::find(&self.connection, query, &self.me).map_err(|error| failed(&self.path, &error))
    }
}

impl Ledger for Sqlite {
    fn commit(&mut self, group: &[Vec<Write>]) -> Vec<Stored> {
        match self.try_commit(group) {
            Ok(outcomes) => {
                if outcomes.iter().flatten().flatten().any(|done| matches!(done, Done::Removed(1..))) {
                    // The room is used again in any case.
                    let _ = self.connection.execute_batch(VACUUM);
                }
                outcomes
            }
            // What one of them cannot have, such as more bytes than SQLite takes, is no reason against
            // the others.
            Err(error) if group.len() > 1 && error.sqlite_error_code() != Some(ErrorCode::DatabaseBusy) => {
                group.chunks(1).flat_map(|one| self.commit(one)).collect()
            }
            Err(error) => vec![Err(failed(&self.path, &error)); group.len()],
        }
    }

    fn readers(&self) -> Vec<Box<dyn Reader>> {
        let reader = |_| -> Option<Box<dyn Reader>> {
            let connection = connect(&self.path).ok()?;
            connection.pragma_update(None, "query_only", true).ok()?;
            Some(Box::new(Beside { path: self.path.clone(), connection, me: self.me.clone() }))
        };
        (0..READERS).filter_map(reader).collect()
    }
}

/// A connection that only reads.
struct Beside {
    path: PathBuf,
    connection: Connection,
    me: Me,
}

impl Reader for Beside {
    fn find(&mut self, query: &Query) -> Loaded {
        read::find(&self.connection, query, &self.me).map_err(|error| failed(&self.path, &error))
    }
}

fn failed(path: &Path, error: &rusqlite::Error) -> Trouble {
    Trouble::Failed(format!("`{}`: {}", path.display(), words(error)))
}

/// The file within one transaction.
struct Page<'a> {
    sql: &'a Transaction<'a>,
    me: &'a Me,
    bounds: &'a Bounds,
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
        Ok(Ok(done))
    }

    fn write(&self, write: &Write) -> Result<Done, Stop> {
        match write {
            Write::Create(new) => self.create(new),
            Write::Change(change) => self.change(change),
            Write::Remove(ticket) => self.remove(ticket),
            Write::Claim { server } => self.claim(server),
            Write::Renew => self.renew(),
            Write::Post { ticket, letter } => self.post(ticket, letter),
            Write::Collect => self.collect(),
            Write::Append { stream, expires, events } => self.append(stream, *expires, events),
            Write::Forget { stream, through } => self.forget(stream, *through),
            Write::Session(session) => self.keep_session(session),
            Write::EndSession(name) => self.end_session(name),
            Write::Calls(notes) => self.note_calls(notes),
            Write::Expire(now) => self.expire(*now),
        }
    }

    fn run(&self, sql: &str) -> rusqlite::Result<usize> {
        self.sql.prepare_cached(sql)?.execute([])
    }
}

/// Opens a connection that waits for others, and for the disk only at checkpoints.
fn connect(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    connection.pragma_update(None, "foreign_keys", true)?;
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", 16 << 20)?;
    Ok(connection)
}

/// Makes the folder and the file, for the user's eyes only. The file is opened here only if it was
/// not there: closing a file of SQLite would take the locks of this process away.
fn make_private(folder: &Path, path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    match File::options().write(true).create_new(true).mode(0o600).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => close_to_others(path),
        made => made.map(drop),
    }
}

fn close_to_others(path: &Path) -> io::Result<()> {
    if fs::metadata(path)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(path, Permissions::from_mode(0o600))?;
    }
    Ok(())
}

/// One process after the other makes or changes the schema; SQLite's own lock does not cover the
/// change to WAL mode. Let go when dropped, or when the process ends.
fn take_turn(folder: &Path) -> io::Result<nix::fcntl::Flock<File>> {
    let path = folder.join("store.lock");
    let file = File::options().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    nix::fcntl::Flock::lock(file, nix::fcntl::FlockArg::LockExclusive).map_err(|(_, why)| why.into())
}

/// SQLite's integers have a sign; nothing of ours needs the last bit.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
