//! What only a file has: versions that came before, and a disk with an end.

use super::schema::{self, MIGRATIONS, VERSION};
use super::*;
use crate::store::Store;
use crate::store::conformance::{FakeMachine, Process, new, ticket};
use outlast_engine::Wall;
use outlast_engine::record::{Answer, Body, Faces, State, Ticket};
use outlast_engine::store::{Found, Mail, Name, Usage};
use rusqlite::Connection;
use std::path::PathBuf;
use tempfile::TempDir;

/// A file as each version left it, with something of everything in it. What is added here stays.
const FILES: [&str; MIGRATIONS.len()] = [
    include_str!("../../../tests/store/v1.sql"),
    include_str!("../../../tests/store/v2.sql"),
    include_str!("../../../tests/store/v3.sql"),
    include_str!("../../../tests/store/v4.sql"),
    include_str!("../../../tests/store/v5.sql"),
    include_str!("../../../tests/store/v6.sql"),
    include_str!("../../../tests/store/v7.sql"),
    include_str!("../../../tests/store/v8.sql"),
    include_str!("../../../tests/store/v9.sql"),
];

/// What each migration was when it was published.
const FINGERPRINTS: [&str; MIGRATIONS.len()] = [
    "35f4c85724cc782856c9d217a79aa0a89e09e48f26467f1d630344ea6430087a",
    "3e93dafe7b82f9d4da2b026b09f4a70df3bf8d49fa7f741beac3ac36d4370437",
    "eb379cb045c42796957024e2458e68870187a3c06459faf4d18ac936f399d21e",
    "3164eb939bcd56c8aa1157f52689eed4c7500a0f4157e67b4dd69e056a4add50",
    "af6e1177808838b6c1bfd9bd2b4a1936a128dc7a0142002b51f1d87c138e5172",
    "8bfa5362168d8b1ab69c4da4f939eb2f6232669827d8fa60f0070c6c2c622de4",
    "9f3989cff327c19e2c0951f4a91eae9e93ea1eb3b834a97db0fc0e75d7dad4f1",
    "ea472d259d2a86de477d749a0b10897a92a97368429d04caf11c15f3b78a0b27",
    "1441f8f611ad3bd5959bef97563c2beb35c86a8eb79f7e374ae5e3f0c2cce79c",
];

/// What a session of a file of each version has set up.
const SETUPS: [&str; MIGRATIONS.len()] = ["", DEBUG, DEBUG, DEBUG, DEBUG, DEBUG, DEBUG, DEBUG, DEBUG];

const DEBUG: &str = r#"[{"jsonrpc":"2.0","id":4,"method":"logging/setLevel","params":{"level":"debug"}}]"#;

/// A folder with such a file.
fn left_by(file: &str) -> (TempDir, PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join(FILE);
    Connection::open(&path).unwrap().execute_batch(file).unwrap();
    (folder, path)
}

/// Every table, index and trigger, whatever its text was made from.
fn tables(path: &Path) -> Vec<(String, String)> {
    let connection = Connection::open(path).unwrap();
    let sql = "SELECT name, coalesce(sql, '') FROM sqlite_schema ORDER BY name";
    let mut select = connection.prepare(sql).unwrap();
    select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}

#[test]
fn a_published_migration_never_changes() {
    for (version, (text, published)) in MIGRATIONS.iter().zip(FINGERPRINTS).enumerate() {
        let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
        let found = outlast_engine::hex::encode(digest.as_ref());
        assert_eq!(found, published, "migration {}: what is new belongs into another one", version + 1);
    }
}

#[test]
fn what_an_earlier_version_left_is_read() {
    for (file, setup) in FILES.iter().zip(SETUPS) {
        let (folder, path) = left_by(file);
        let machine = FakeMachine::new();
        let process =
            Process::of(Store::open(folder.path(), machine.clone(), Bounds::default()).unwrap(), &machine);
        everything_is_there(&process, setup);
        drop(process);
        assert_eq!(version_of(&path), VERSION);
        let fresh = TempDir::new().unwrap();
        File::open(fresh.path()).unwrap();
        assert_eq!(tables(&path), tables(&fresh.path().join(FILE)), "it differs from a new file");
    }
}

fn everything_is_there(process: &Process, setup: &str) {
    let task = process.record(&Ticket::parse(&"01".repeat(32)).unwrap()).unwrap();
    assert_eq!((task.head.state, task.head.faces), (State::Completed, Faces::LEGACY_TASK));
    assert_eq!((&*task.head.origin.principal, &*task.head.origin.tool), ("token:ann", "search"));
    assert_eq!((task.head.created, task.head.expires), (Wall(1_000), Some(Wall(3_602_000))));
    assert_eq!(task.answer, Some(Answer::Result(r#"{"content":[],"structuredContent":{"n":1.0}}"#.into())));
    assert_eq!(Body::decode(&task.head.body).unwrap().ttl_ms, Some(90_000_000));

    let server = "files#0011223344556677";
    let by_key = Query::Key { principal: "token:ann".into(), server: server.into(), key: "key-1".into() };
    assert!(matches!(process.load(by_key), Ok(Found::Record(Some(_)))));

    let Done::Claimed(claimed) = process.write(Write::Claim { server: server.into() }) else { panic!() };
    let build = Ticket::parse(&"02".repeat(16)).unwrap();
    assert_eq!(claimed.iter().map(|head| (&head.ticket, head.epoch)).collect::<Vec<_>>(), [(&build, 2)]);
    assert_eq!(process.write(Write::Collect), Done::Mail(vec![(build.clone(), Mail::Cancel)]));
    let request = process.record(&build).unwrap().request;
    assert!(request.starts_with(br#"{"jsonrpc":"2.0","id":3,"#));

    let events = process.load(Query::Events { stream: Name("stream-1".into()), after: 1 });
    assert_eq!(events, Ok(Found::Events { last: 2, events: vec![(2, "two".into())], lives: false }));
    let session = process.load(Query::Session(Name("session-1".into())));
    let Ok(Found::Session(Some(kept))) = session else { panic!() };
    assert_eq!((&*kept.principal, &kept.setup[..]), ("token:ann", setup.as_bytes()));
    assert!(matches!(process.load(Query::Calls { limit: 9 }), Ok(Found::Calls(notes)) if notes.len() == 1));
    // The mailbox message was taken.
    assert_eq!(process.usage(), Usage { records: 2, bytes: 1_749 - 64 + setup.len() as u64 });
}

fn version_of(path: &Path) -> u32 {
    Connection::open(path).unwrap().pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
}

#[test]
fn steps_that_were_not_made_are_made_in_order() {
    let (_folder, path) = left_by(FILES[0]);
    let mut connection = Connection::open(&path).unwrap();
    let steps = [MIGRATIONS[0], "CREATE TABLE two (a)", "INSERT INTO two SELECT ticket FROM records"];
    schema::migrate(&mut connection, &steps).unwrap();
    schema::migrate(&mut connection, &steps).unwrap();
    let moved: u32 = connection.query_row("SELECT count(*) FROM two", [], |row| row.get(0)).unwrap();
    assert_eq!((moved, version_of(&path)), (2, 3));
}

#[test]
fn a_step_that_fails_changes_nothing() {
    let (_folder, path) = left_by(FILES[0]);
    let before = tables(&path);
    let mut connection = Connection::open(&path).unwrap();
    let steps = [MIGRATIONS[0], "CREATE TABLE two (a)", "INSERT INTO three VALUES (1)"];
    assert!(schema::migrate(&mut connection, &steps).is_err());
    assert_eq!((tables(&path), version_of(&path)), (before, 1));
}

/// A newer outlast may come while this one runs.
#[test]
fn nothing_is_written_into_a_file_that_became_newer() {
    let folder = TempDir::new().unwrap();
    let machine = FakeMachine::new();
    let mut store = Sqlite::open(folder.path(), Me::new(machine), Bounds::default()).unwrap();
    store.file.sql.pragma_update(None, "user_version", VERSION + 1).unwrap();
    let why = told(&store.commit(&[vec![Write::Create(new(1).into())]])[0]);
    assert!(why.contains("a newer outlast has changed it; restart this one with it"), "{why}");
}

#[test]
fn a_full_disk_takes_what_fits_and_says_so_of_the_rest() {
    let folder = TempDir::new().unwrap();
    let mut store = Sqlite::open(folder.path(), Me::new(FakeMachine::new()), Bounds::default()).unwrap();
    let pages: u32 = store.file.sql.pragma_query_value(None, "page_count", |row| row.get(0)).unwrap();
    store.file.sql.pragma_update(None, "max_page_count", pages + 4).unwrap();
    let large = || vec![0; 100_000].into();
    let group = [new(1), outlast_engine::record::New { request: large(), ..new(2) }, new(3)];
    let outcomes = store.commit(&group.map(|new| vec![Write::Create(new.into())]));
    let written = Ok(Committed { at: Wall(1_000), done: vec![Done::Written(1)] });
    assert_eq!((&outcomes[0], &outcomes[2]), (&written, &written));
    let why = told(&outcomes[1]);
    assert!(why.contains("its disk is full; make room; meanwhile calls that ask for a task"), "{why}");
    assert!(matches!(store.find(&Query::Record(ticket(3))), Ok(Found::Record(Some(_)))));
}

fn told(outcome: &Stored) -> String {
    outcome.as_ref().unwrap_err().to_string()
}
