//! The tables, and how a file of an earlier version gets them.
//!
//! Migrations only go forward, and a published one never changes: a new need is a new item at the
//! end of [`MIGRATIONS`], with its fingerprint and a file of its version in `tests.rs`, which opens one of
//! every version there was.

use super::error::OpenError;
use rusqlite::{Connection, Error, TransactionBehavior, ffi};
use std::path::Path;

/// What leads from each version to the next; the first one from an empty file.
pub const MIGRATIONS: [&str; 9] =
    [VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7, VERSION_8, VERSION_9];

/// The version of a file that has them all.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// "outl": tells our file from those of other programs.
const APPLICATION: i32 = 0x6f75_746c;

/// Head, request and answer are three tables: SQLite writes a row as a whole, and a change of state must
/// not write megabytes of request again.
const VERSION_1: &str = "
CREATE TABLE records (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    id        BLOB NOT NULL UNIQUE,
    ticket    TEXT NOT NULL,
    principal TEXT NOT NULL,
    server    TEXT NOT NULL,
    method    TEXT NOT NULL,
    tool      TEXT NOT NULL,
    key       TEXT,
    faces     INTEGER NOT NULL,
    state     INTEGER NOT NULL,
    created   INTEGER NOT NULL,
    updated   INTEGER NOT NULL,
    expires   INTEGER,
    revision  INTEGER NOT NULL,
    epoch     INTEGER NOT NULL,
    owner     TEXT NOT NULL,
    weight    INTEGER NOT NULL,
    body      BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX records_open_key ON records (principal, server, key) WHERE key IS NOT NULL AND state < 2;
CREATE INDEX records_key ON records (principal, server, key, number) WHERE key IS NOT NULL;
CREATE INDEX records_principal ON records (principal, number);
CREATE INDEX records_open ON records (server, owner) WHERE state < 2;
CREATE INDEX records_owner ON records (owner) WHERE state < 2;
CREATE INDEX records_ended ON records (updated, number) WHERE state >= 2;
CREATE INDEX records_expire ON records (expires) WHERE state >= 2 AND expires IS NOT NULL;

CREATE TABLE requests (
    record INTEGER PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    bytes  BLOB NOT NULL
) STRICT;
CREATE TABLE answers (
    record INTEGER PRIMARY KEY REFERENCES records ON DELETE CASCADE,
    failed INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;

CREATE TABLE leases (owner TEXT PRIMARY KEY, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE letters (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    record INTEGER NOT NULL REFERENCES records ON DELETE CASCADE,
    kind   INTEGER NOT NULL,
    bytes  BLOB NOT NULL
) STRICT;
CREATE INDEX letters_record ON letters (record);

CREATE TABLE streams (
    number  INTEGER PRIMARY KEY,
    id      BLOB NOT NULL UNIQUE,
    last    INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX streams_expire ON streams (expires);
CREATE TABLE events (
    stream INTEGER NOT NULL REFERENCES streams ON DELETE CASCADE,
    number INTEGER NOT NULL,
    bytes  BLOB NOT NULL,
    PRIMARY KEY (stream, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE sessions (
    id          BLOB PRIMARY KEY,
    name        TEXT NOT NULL,
    principal   TEXT NOT NULL,
    initialize  BLOB NOT NULL,
    initialized BLOB NOT NULL,
    used        INTEGER NOT NULL,
    weight      INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_used ON sessions (used);

CREATE TABLE calls (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    server   TEXT NOT NULL,
    method   TEXT NOT NULL,
    tool     TEXT NOT NULL,
    outcome  TEXT NOT NULL,
    began    INTEGER NOT NULL,
    took     INTEGER NOT NULL,
    asked    INTEGER NOT NULL,
    answered INTEGER NOT NULL
) STRICT;

CREATE TABLE usage (records INTEGER NOT NULL, bytes INTEGER NOT NULL) STRICT;
INSERT INTO usage VALUES (0, 0);
CREATE TRIGGER record_comes AFTER INSERT ON records
    BEGIN UPDATE usage SET records = records + 1, bytes = bytes + NEW.weight; END;
CREATE TRIGGER record_changes AFTER UPDATE OF weight ON records WHEN OLD.weight <> NEW.weight
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight + NEW.weight; END;
CREATE TRIGGER record_goes AFTER DELETE ON records
    BEGIN UPDATE usage SET records = records - 1, bytes = bytes - OLD.weight; END;
CREATE TRIGGER letter_comes AFTER INSERT ON letters
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER letter_goes AFTER DELETE ON letters
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
CREATE TRIGGER event_comes AFTER INSERT ON events
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER event_goes AFTER DELETE ON events
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
CREATE TRIGGER session_comes AFTER INSERT ON sessions
    BEGIN UPDATE usage SET bytes = bytes + NEW.weight; END;
CREATE TRIGGER session_goes AFTER DELETE ON sessions
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight; END;
";

/// A session's log level and subscriptions.
const VERSION_2: &str = "ALTER TABLE sessions ADD COLUMN setup BLOB NOT NULL DEFAULT X'';";

/// Which process writes a stream. What an earlier version left belongs to nobody who lives.
const VERSION_3: &str = "
ALTER TABLE streams ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE streams ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
";

/// Which process serves a session, and how many have. What an earlier version left belongs to nobody who lives. A
/// session is changed in place now, so its weight is counted then too.
const VERSION_4: &str = "
ALTER TABLE sessions ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE sessions ADD COLUMN epoch INTEGER NOT NULL DEFAULT 1;
CREATE TRIGGER session_changes AFTER UPDATE OF weight ON sessions WHEN OLD.weight <> NEW.weight
    BEGIN UPDATE usage SET bytes = bytes - OLD.weight + NEW.weight; END;
";

/// Calls that wait for a person, and what persons said. What is never asked for by itself is one JSON text.
const VERSION_5: &str = "
CREATE TABLE holds (
    number    INTEGER PRIMARY KEY AUTOINCREMENT,
    key       TEXT NOT NULL,
    principal TEXT NOT NULL,
    server    TEXT NOT NULL,
    name      TEXT NOT NULL,
    tool      TEXT NOT NULL,
    arguments TEXT NOT NULL,
    client    TEXT NOT NULL,
    session   TEXT NOT NULL,
    owner     TEXT NOT NULL,
    asked     INTEGER NOT NULL,
    until     INTEGER NOT NULL,
    used      INTEGER NOT NULL,
    decision  TEXT
) STRICT;
CREATE INDEX holds_tool ON holds (principal, server, tool);
CREATE TABLE audit (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    entry  TEXT NOT NULL
) STRICT;
";

/// What processes show each other and tell each other to do, and how long tools took. A tool of a day has a row with
/// its sums, under bucket -1, and one for each bucket.
const VERSION_6: &str = "
CREATE TABLE shown (
    owner   TEXT PRIMARY KEY,
    process TEXT NOT NULL,
    body    BLOB NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE told (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    process TEXT NOT NULL,
    body    BLOB NOT NULL
) STRICT;
CREATE INDEX told_process ON told (process);
CREATE TABLE durations (
    day      INTEGER NOT NULL,
    server   TEXT NOT NULL,
    tool     TEXT NOT NULL,
    bucket   INTEGER NOT NULL,
    calls    INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    cut_off  INTEGER NOT NULL,
    slowest  INTEGER NOT NULL,
    PRIMARY KEY (day, server, tool, bucket)
) STRICT, WITHOUT ROWID;
";

/// Who owned a session before, a name in each line, and what its client says of calls that run there.
const VERSION_7: &str = "
ALTER TABLE sessions ADD COLUMN former TEXT NOT NULL DEFAULT '';
CREATE TABLE forwarded (
    number  INTEGER PRIMARY KEY AUTOINCREMENT,
    owner   TEXT NOT NULL,
    session TEXT NOT NULL,
    bytes   BLOB NOT NULL,
    until   INTEGER NOT NULL
) STRICT;
CREATE INDEX forwarded_owner ON forwarded (owner);
CREATE TRIGGER forwarded_comes AFTER INSERT ON forwarded
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER forwarded_goes AFTER DELETE ON forwarded
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
";

/// Callbacks that were not delivered yet. One that is parked is never due.
const VERSION_8: &str = "
CREATE TABLE callbacks (
    number   INTEGER PRIMARY KEY AUTOINCREMENT,
    name     TEXT NOT NULL,
    body     TEXT NOT NULL,
    made     INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    due      INTEGER,
    why      TEXT NOT NULL
) STRICT;
CREATE INDEX callbacks_due ON callbacks (due) WHERE due IS NOT NULL;
";

/// The table of the mailbox, its index and its triggers are named as in PostgreSQL.
const VERSION_9: &str = "
DROP TRIGGER letter_comes;
DROP TRIGGER letter_goes;
DROP INDEX letters_record;
ALTER TABLE letters RENAME TO messages;
CREATE INDEX messages_record ON messages (record);
CREATE TRIGGER message_comes AFTER INSERT ON messages
    BEGIN UPDATE usage SET bytes = bytes + 64 + length(NEW.bytes); END;
CREATE TRIGGER message_goes AFTER DELETE ON messages
    BEGIN UPDATE usage SET bytes = bytes - 64 - length(OLD.bytes); END;
";

/// Brings a file to our version, or says why it cannot be ours.
pub fn prepare(connection: &mut Connection, path: &Path) -> Result<(), OpenError> {
    let shown = || path.display().to_string();
    let broken = |error| OpenError::of(path, error);
    let found = version(connection).map_err(broken)?;
    if found > VERSION {
        return Err(OpenError::Newer { path: shown(), found, known: VERSION });
    }
    if !is_ours(connection).map_err(broken)? {
        return Err(OpenError::Foreign { path: shown() });
    }
    if connection.is_readonly("main").map_err(broken)? {
        return Err(OpenError::ReadOnly { path: shown() });
    }
    begin_log(connection).map_err(broken)?;
    migrate(connection, &MIGRATIONS).map_err(broken)
}

/// A file that is empty, or has our mark.
fn is_ours(connection: &Connection) -> rusqlite::Result<bool> {
    let mark: i32 = connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    Ok(mark == APPLICATION || mark == 0 && tables == 0)
}

fn begin_log(connection: &Connection) -> rusqlite::Result<()> {
    // Only an empty file takes this one.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    let mode: String = connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    match mode.as_str() {
        "wal" => Ok(()),
        other => Err(error(ffi::SQLITE_CANTOPEN, format!("the file system takes no WAL (mode {other})"))),
    }
}

/// Makes every step that a file has not made yet, all in one transaction.
pub fn migrate(connection: &mut Connection, steps: &[&str]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let made = version(&transaction)? as usize;
    for step in steps.iter().skip(made) {
        transaction.execute_batch(step)?;
    }
    if made < steps.len() {
        transaction.pragma_update(None, "application_id", APPLICATION)?;
        transaction.pragma_update(None, "user_version", steps.len() as u32)?;
    }
    transaction.commit()
}

/// Refuses to write once a newer outlast has changed the file under us.
pub fn still_ours(connection: &Connection) -> rusqlite::Result<()> {
    let found: u32 = connection.prepare_cached("PRAGMA user_version")?.query_row([], |row| row.get(0))?;
    if found == VERSION { Ok(()) } else { Err(error(ffi::SQLITE_SCHEMA, format!("format {found}"))) }
}

fn version(connection: &Connection) -> rusqlite::Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

fn error(code: i32, why: String) -> Error {
    Error::SqliteFailure(ffi::Error::new(code), Some(why))
}
