//! The suite at every place there is, and what only a file can do.

use super::conformance::{Bench, FakeMachine, Process, conformance, ticket};
use super::memory::{Memory, Shelves};
use super::owner::{Me, World};
#[cfg(unix)]
use super::postgres::tests::InDatabase;
use super::{Desk, FILE, Store};
use outlast_engine::store::{Bounds, Found, Name, Query, Session, Write};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;

/// One memory for all processes of a test.
#[derive(Default)]
struct InMemory(Arc<Mutex<Shelves>>);

impl Bench for InMemory {
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store {
        let memory = Memory::sharing(self.0.clone(), Me::new(world), bounds);
        Store(Desk::start(move || Box::new(memory)).unwrap())
    }
}

/// One file for all processes of a test.
struct InFile(TempDir);

impl Default for InFile {
    fn default() -> InFile {
        InFile(tempfile::tempdir().unwrap())
    }
}

impl Bench for InFile {
    fn open(&self, world: Arc<dyn World>, bounds: Bounds) -> Store {
        Store::open(self.0.path(), world, bounds).unwrap()
    }
}

conformance!(in_memory, InMemory::default());
conformance!(in_a_file, InFile::default());
#[cfg(unix)]
conformance!(in_a_database, InDatabase::default());

/// Whoever heard that its session or its task is unknown would begin anew, and what it left is there.
#[test]
fn what_an_unusable_file_may_hold_is_not_denied() {
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join(FILE), "no database at all").unwrap();
    let machine = FakeMachine::new();
    let opened = Store::on_first_use(
        folder.path().into(),
        machine.clone(),
        Bounds::default(),
        Box::new(|error| assert!(error.to_string().contains("store.db"), "{error}")),
    );
    let process = Process::of(opened.unwrap(), &machine);
    let name = Name("s".into());
    let session = Query::Session(name.clone());
    let events = Query::Events { stream: name.clone(), after: 0 };
    for query in [Query::Record(ticket(1)), session.clone(), events.clone()] {
        assert!(process.load(query.clone()).is_err(), "{query:?}");
    }
    let take = Write::TakeSession { name: name.clone(), principal: "".into() };
    assert!(process.submit(vec![take]).is_err());
    // What has come since is in memory.
    let kept = Session {
        name: name.clone(),
        principal: "".into(),
        initialize: "{}".into(),
        initialized: "".into(),
        setup: "".into(),
        epoch: 1,
    };
    process.write(Write::Session(Box::new(kept.clone())));
    process.write(Write::Append {
        stream: name,
        keep: Duration::from_secs(9),
        events: vec![(1, "one".into())],
    });
    assert_eq!(process.load(session), Ok(Found::Session(Some(Box::new(kept)))));
    assert_eq!(
        process.load(events),
        Ok(Found::Events { last: 1, events: vec![(1, "one".into())], lives: false })
    );
}
