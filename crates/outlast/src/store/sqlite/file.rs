//! The file: made, opened, and looked after. It may be damaged when it is opened, and it may be removed or
//! replaced while it is open.

use super::error::{self, OpenError, lost, unread};
use super::{read, schema};
use crate::store::owner::Me;
use crate::sys::files;
use crate::sys::lock::{Kind, Lock, lock_within};
use outlast_engine::store::{Found, Loaded, Query, Trouble};
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The file in the state folder; SQLite puts two others beside it.
pub const NAME: &str = "store.db";

/// How long another process may hold the file. Its transactions take milliseconds.
const BUSY: Duration = Duration::from_secs(10);

/// How SQLite's log begins, in either byte order of its checksums.
const LOG_BEGINS: [[u8; 4]; 2] = [[0x37, 0x7f, 0x06, 0x82], [0x37, 0x7f, 0x06, 0x83]];

/// A connection, and which file it is open on.
#[derive(Debug)]
pub struct File {
    folder: PathBuf,
    pub path: PathBuf,
    pub sql: Connection,
    /// Device and number: a name can come to mean another file.
    identity: Option<(u64, u64)>,
    /// Whether commits wait for the disk just now.
    waits: bool,
    only_reads: bool,
}

impl File {
    /// Opens the file in this folder; makes both where they are not there.
    pub fn open(folder: &Path) -> Result<File, OpenError> {
        let path = folder.join(NAME);
        let of_folder = |why: io::Error| OpenError::folder(folder, &why);
        make_private(folder, &path).map_err(of_folder)?;
        let _turn = take_turn(folder).map_err(of_folder)?;
        check_log(&path)?;
        let mut sql = connect(&path).map_err(|why| OpenError::of(&path, why))?;
        schema::prepare(&mut sql, &path)?;
        let identity = files::identity(&path).ok();
        Ok(File { folder: folder.to_owned(), path, sql, identity, waits: false, only_reads: false })
    }

    /// The same file once more, for somebody who only reads.
    pub fn beside(&self) -> rusqlite::Result<File> {
        let file = File {
            folder: self.folder.clone(),
            path: self.path.clone(),
            sql: connect(&self.path)?,
            identity: self.identity,
            waits: false,
            only_reads: true,
        };
        file.restrict()?;
        Ok(file)
    }

    fn restrict(&self) -> rusqlite::Result<()> {
        self.sql.pragma_update(None, "query_only", self.only_reads)
    }

    /// Says whether a commit waits until it is on the disk.
    pub fn wait_for_disk(&mut self, waits: bool) -> rusqlite::Result<()> {
        if self.waits != waits {
            self.sql.pragma_update(None, "synchronous", if waits { "FULL" } else { "NORMAL" })?;
            self.waits = waits;
        }
        Ok(())
    }

    /// Opens what is there now if it is not the file that was opened, or nothing is there: whether that
    /// was so.
    pub fn follow(&mut self) -> Result<bool, Trouble> {
        let same = match files::identity(&self.path) {
            Ok(found) => Some(found) == self.identity,
            Err(why) => why.kind() != io::ErrorKind::NotFound,
        };
        if !same {
            let new = File::open(&self.folder).map_err(|error| lost(&error))?;
            *self = File { only_reads: self.only_reads, ..new };
            self.restrict().map_err(|error| unread(&self.path, &error))?;
        }
        Ok(!same)
    }

    /// Looks something up. What is not in a file that was begun anew was not always unknown.
    pub fn find(&mut self, query: &Query, me: &Me) -> Loaded {
        let replaced = self.follow()?;
        match read::find(&self.sql, query, me) {
            Ok(Found::Record(None)) if replaced => Err(error::replaced(&self.path)),
            found => found.map_err(|error| unread(&self.path, &error)),
        }
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
    files::make_folder(folder)?;
    match files::private(fs::File::options().write(true).create_new(true)).open(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => files::close_to_others(path),
        made => made.map(drop),
    }
}

/// One process after the other makes or changes the schema; SQLite's own lock does not cover the
/// change to WAL mode. Let go when dropped, or when the process ends.
fn take_turn(folder: &Path) -> io::Result<Lock> {
    let path = folder.join("store.lock");
    let file = files::private(fs::File::options().write(true).create(true).truncate(false)).open(path)?;
    let turn = lock_within(file, Kind::Exclusive, BUSY)?;
    turn.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// SQLite takes a log that does not begin as one for an empty one, and what was only there would be gone
/// without a word. One of zeros was never written: the power failed before anybody was promised anything.
fn check_log(path: &Path) -> Result<(), OpenError> {
    let log = path.with_file_name(format!("{NAME}-wal"));
    let mut begins = [0; 4];
    let read = fs::File::open(&log).and_then(|mut file| file.read_exact(&mut begins));
    if read.is_err() || begins == [0; 4] || LOG_BEGINS.contains(&begins) {
        return Ok(());
    }
    Err(OpenError::Damaged { path: log.display().to_string(), why: "it is not a log of SQLite".into() })
}
