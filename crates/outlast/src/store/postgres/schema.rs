//! The tables, and how a database of an earlier version gets them.
//!
//! Everything lives in the schema `outlast` of one database. Migrations only go forward, under a lock, and a published
//! one never changes. Replicas of an earlier version may work on while a new one comes: each migration says the oldest
//! version that can still work with the tables that it leaves ([`Step::oldest`]), and a replica that is older than
//! that refuses to write. So a migration that replicas are to survive only adds.
//!
//! Texts are `bytea`: a tool, a key or a method is whatever a client wrote, and PostgreSQL takes no NUL in a text.
//! `convert_from(tool, 'UTF8')` shows one.

use super::connection::Connection;
use super::error::Failure;
use super::statement::Statement;

/// One migration.
pub struct Step {
    /// What it does.
    pub sql: &'static str,
    /// The oldest version that can work with what it leaves.
    pub oldest: u32,
}

/// What leads from each version to the next; the first one from an empty database.
pub const MIGRATIONS: [Step; 3] = [
    Step { sql: VERSION_1, oldest: 1 },
    Step { sql: VERSION_2, oldest: 1 },
    Step { sql: VERSION_3, oldest: 1 },
];

/// The version of a database that has them all.
pub const VERSION: u32 = MIGRATIONS.len() as u32;

/// Held while somebody migrates: one number for all, "outl".
const LOCK: i64 = 0x6f75_746c;

/// The clock is a function, so that all statements mean the same clock, and that of the tests can stand still. `began` is
/// when the database started: whoever had a lease then could not renew it while there was no database.
const VERSION_1: &str = "
CREATE FUNCTION outlast.clock() RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT (extract(epoch FROM now()) * 1000)::bigint';
CREATE FUNCTION outlast.began() RETURNS bigint LANGUAGE sql STABLE
    AS 'SELECT (extract(epoch FROM pg_postmaster_start_time()) * 1000)::bigint';

CREATE TABLE outlast.keys (name text PRIMARY KEY, bytes bytea NOT NULL);

CREATE TABLE outlast.records (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id        bytea NOT NULL UNIQUE,
    ticket    bytea NOT NULL,
    principal bytea NOT NULL,
    server    bytea NOT NULL,
    method    bytea NOT NULL,
    tool      bytea NOT NULL,
    key       bytea,
    faces     bigint NOT NULL,
    state     bigint NOT NULL,
    created   bigint NOT NULL,
    updated   bigint NOT NULL,
    expires   bigint,
    revision  bigint NOT NULL,
    epoch     bigint NOT NULL,
    owner     bytea NOT NULL,
    weight    bigint NOT NULL,
    body      bytea NOT NULL
) WITH (fillfactor = 80);
CREATE UNIQUE INDEX records_open_key ON outlast.records (principal, server, key)
    WHERE key IS NOT NULL AND state < 2;
CREATE INDEX records_key ON outlast.records (principal, server, key, number) WHERE key IS NOT NULL;
CREATE INDEX records_principal ON outlast.records (principal, number);
CREATE INDEX records_open ON outlast.records (server, owner) WHERE state < 2;
CREATE INDEX records_owner ON outlast.records (owner) WHERE state < 2;
CREATE INDEX records_ended ON outlast.records (updated, number) WHERE state >= 2;
CREATE INDEX records_expire ON outlast.records (expires) WHERE state >= 2 AND expires IS NOT NULL;

CREATE TABLE outlast.requests (
    record bigint PRIMARY KEY REFERENCES outlast.records ON DELETE CASCADE,
    bytes  bytea NOT NULL
);
CREATE TABLE outlast.answers (
    record bigint PRIMARY KEY REFERENCES outlast.records ON DELETE CASCADE,
    failed boolean NOT NULL,
    bytes  bytea NOT NULL
);

CREATE TABLE outlast.leases (
    owner bytea PRIMARY KEY,
    until bigint NOT NULL,
    turn  bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE outlast.messages (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    record bigint NOT NULL REFERENCES outlast.records ON DELETE CASCADE,
    kind   bigint NOT NULL,
    bytes  bytea NOT NULL
);
CREATE INDEX messages_record ON outlast.messages (record);

CREATE TABLE outlast.streams (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id      bytea NOT NULL UNIQUE,
    last    bigint NOT NULL,
    expires bigint NOT NULL,
    owner   bytea NOT NULL,
    epoch   bigint NOT NULL
) WITH (fillfactor = 80);
CREATE INDEX streams_expire ON outlast.streams (expires);
CREATE TABLE outlast.events (
    stream bigint NOT NULL REFERENCES outlast.streams ON DELETE CASCADE,
    number bigint NOT NULL,
    bytes  bytea NOT NULL,
    PRIMARY KEY (stream, number)
);

CREATE TABLE outlast.sessions (
    id          bytea PRIMARY KEY,
    name        bytea NOT NULL,
    principal   bytea NOT NULL,
    initialize  bytea NOT NULL,
    initialized bytea NOT NULL,
    setup       bytea NOT NULL,
    used        bigint NOT NULL,
    weight      bigint NOT NULL,
    owner       bytea NOT NULL,
    epoch       bigint NOT NULL
);
CREATE INDEX sessions_used ON outlast.sessions (used);

CREATE TABLE outlast.calls (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    server   bytea NOT NULL,
    method   bytea NOT NULL,
    tool     bytea NOT NULL,
    outcome  bytea NOT NULL,
    began    bigint NOT NULL,
    took     bigint NOT NULL,
    asked    bigint NOT NULL,
    answered bigint NOT NULL
);

CREATE TABLE outlast.holds (
    number    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    key       bytea NOT NULL,
    principal bytea NOT NULL,
    server    bytea NOT NULL,
    name      bytea NOT NULL,
    tool      bytea NOT NULL,
    arguments bytea NOT NULL,
    client    bytea NOT NULL,
    session   bytea NOT NULL,
    owner     bytea NOT NULL,
    asked     bigint NOT NULL,
    until     bigint NOT NULL,
    used      boolean NOT NULL,
    decision  bytea
);
CREATE INDEX holds_tool ON outlast.holds (principal, server, tool);
CREATE TABLE outlast.audit (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    entry  bytea NOT NULL
);

CREATE TABLE outlast.shown (
    owner   bytea PRIMARY KEY,
    process bytea NOT NULL,
    body    bytea NOT NULL
);
CREATE TABLE outlast.told (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    process bytea NOT NULL,
    body    bytea NOT NULL
);
CREATE INDEX told_process ON outlast.told (process);
CREATE TABLE outlast.durations (
    day      bigint NOT NULL,
    server   bytea NOT NULL,
    tool     bytea NOT NULL,
    bucket   bigint NOT NULL,
    calls    bigint NOT NULL,
    failures bigint NOT NULL,
    cut_off  bigint NOT NULL,
    slowest  bigint NOT NULL,
    PRIMARY KEY (day, server, tool, bucket)
);

CREATE TABLE outlast.usage (
    shard   bigint PRIMARY KEY,
    records bigint NOT NULL,
    bytes   bigint NOT NULL
) WITH (fillfactor = 50);
";

/// Who owned a session before, and what its client says of calls that run there. A replica of an earlier version is told
/// nothing, and tells nothing.
const VERSION_2: &str = "
ALTER TABLE outlast.sessions ADD COLUMN former bytea[] NOT NULL DEFAULT '{}';
CREATE TABLE outlast.forwarded (
    number  bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner   bytea NOT NULL,
    session bytea NOT NULL,
    bytes   bytea NOT NULL,
    until   bigint NOT NULL
);
CREATE INDEX forwarded_owner ON outlast.forwarded (owner);
";

/// Callbacks that were not delivered yet. One that is parked is never due.
const VERSION_3: &str = "
CREATE TABLE outlast.callbacks (
    number   bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name     bytea NOT NULL,
    body     bytea NOT NULL,
    made     bigint NOT NULL,
    attempts bigint NOT NULL,
    due      bigint,
    why      bytea NOT NULL
);
CREATE INDEX callbacks_due ON outlast.callbacks (due, number) WHERE due IS NOT NULL;
CREATE INDEX callbacks_made ON outlast.callbacks (made);
";

/// The first two statements of a new database, before its first migration.
const BASE: &str = "CREATE TABLE outlast.format (version bigint NOT NULL, oldest bigint NOT NULL);
    INSERT INTO outlast.format VALUES (0, 0)";

/// Read from the catalog itself: whoever has just waited for the lock may still have names in a cache that were not
/// there before somebody else made them.
const HAS_SCHEMA: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_namespace WHERE nspname = 'outlast')";
const HAS_FORMAT: &str = "SELECT EXISTS (SELECT FROM pg_catalog.pg_class
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = 'outlast' AND relname = 'format')";

/// What a database says of its tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Format {
    version: u32,
    oldest: u32,
}

/// Brings a database to our version, or says why it cannot be used. Whoever comes at the same time waits.
pub async fn prepare(connection: &Connection) -> Result<(), Failure> {
    if let Some(format) = format(connection).await? {
        check(connection, format)?;
        if format.version >= VERSION {
            return Ok(());
        }
    }
    migrate(connection, &MIGRATIONS).await
}

/// Refuses what is too new for us.
fn check(connection: &Connection, found: Format) -> Result<(), Failure> {
    if found.oldest > VERSION {
        return Err(connection.place().newer(found.version, VERSION));
    }
    Ok(())
}

/// Makes every step that a database has not made yet, all in one transaction.
pub async fn migrate(connection: &Connection, steps: &[Step]) -> Result<(), Failure> {
    let text = format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})");
    connection.run(&text).await?;
    let migrated = steps_of(connection, steps).await;
    connection.run(if migrated.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    migrated
}

async fn steps_of(connection: &Connection, steps: &[Step]) -> Result<(), Failure> {
    let made = match format(connection).await? {
        // Somebody else was faster.
        Some(format) => format.version as usize,
        None => {
            make_schema(connection).await?;
            0
        }
    };
    for step in steps.iter().skip(made) {
        connection.run(step.sql).await?;
    }
    if let Some(last) = steps.get(made..).and_then(<[Step]>::last) {
        let (version, oldest) = (steps.len(), last.oldest);
        connection.run(&format!("UPDATE outlast.format SET version = {version}, oldest = {oldest}")).await?;
    }
    Ok(())
}

/// A schema that somebody made for us is as good as one of our own making.
async fn make_schema(connection: &Connection) -> Result<(), Failure> {
    let there = Statement::new(HAS_SCHEMA);
    if !connection.one(&there).await?.get::<_, bool>(0) {
        connection.run("CREATE SCHEMA outlast").await.map_err(|why| connection.place().no_schema(why))?;
    }
    connection.run(BASE).await.map_err(|why| connection.place().no_schema(why))
}

async fn format(connection: &Connection) -> Result<Option<Format>, Failure> {
    let there = Statement::new(HAS_FORMAT);
    if !connection.one(&there).await?.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = connection.one(&Statement::new("SELECT version, oldest FROM outlast.format")).await?;
    let number = |column: usize| u32::try_from(row.get::<_, i64>(column)).unwrap_or(u32::MAX);
    Ok(Some(Format { version: number(0), oldest: number(1) }))
}
