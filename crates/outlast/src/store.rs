//! Where calls outlive their connections and processes: records, mailboxes, streams, sessions.
//!
//! One thread writes. It takes everything that waits, makes it one transaction, and answers each
//! submission after the commit; so a hundred tickets cost one disk write, and one ticket waits for one.
//! Readers work beside it. Nothing here ever blocks its caller, and a reply always comes on a thread of
//! the store, never from inside `submit` or `load`.
//!
//! - `desk`: the threads; `memory`, `sqlite` and `postgres`: where things are put; `substitute`: memory in place of a
//!   file that cannot be opened; `owner` and `machine`: which process owns a record, and whether it lives;
//! - `conformance`: what every place must do, in one suite.
//!
//! What may be written is decided in the engine (`record.rs`), not here.

mod desk;
mod machine;
mod memory;
mod owner;
mod postgres;
mod sqlite;
mod substitute;

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod tests;

pub use machine::Machine;
pub use owner::{Owner, World};
pub use postgres::{Database, reach, shared_key};
pub use sqlite::{FILE, OpenError};

use bytes::Bytes;
use desk::Desk;
use outlast_engine::limits;
use outlast_engine::record::Answer;
use outlast_engine::store::{Bounds, Hint, Loaded, Query, RECORD_OVERHEAD, Session, Stored, Write};
use owner::Me;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where a store is.
#[derive(Clone, Debug)]
pub enum Place {
    /// In this folder.
    Folder(PathBuf),
    /// Only in memory.
    Memory,
}

/// Where a process keeps what it wants to find again.
#[derive(Clone, Debug)]
pub struct Home {
    /// Of this machine.
    pub place: Place,
    /// Shared with other replicas: records, sessions, streams and what persons decide are there, if there is one.
    pub database: Option<Database>,
}

impl Home {
    /// Whether sessions outlive this process.
    pub fn is_durable(&self) -> bool {
        self.database.is_some() || matches!(self.place, Place::Folder(_))
    }
}

impl From<Place> for Home {
    fn from(place: Place) -> Home {
        Home { place, database: None }
    }
}

/// Why nothing can be looked for in a state folder, for people.
pub fn no_folder(folder: &Path, error: &io::Error) -> String {
    let shown = folder.display();
    match error.kind() {
        io::ErrorKind::NotADirectory => {
            format!("`{shown}` is not a folder; --state (OUTLAST_STATE) names the folder that {FILE} is in")
        }
        _ => format!("cannot look into `{shown}`: {error}"),
    }
}

/// Called once, on a thread of the store.
pub type Reply<T> = Box<dyn FnOnce(T) + Send>;

/// Called whenever there may be something new, on a thread of the store.
pub type OnHint = Box<dyn Fn(Hint) + Send>;

/// A store. Dropping it ends its threads once everything submitted is written.
#[derive(Debug)]
pub struct Store(Desk);

impl Store {
    /// A store in memory: it ends with the process.
    pub fn in_memory(world: Arc<dyn World>, bounds: Bounds) -> io::Result<Store> {
        let me = Me::new(world);
        Desk::start(move || Box::new(memory::Memory::new(me, bounds))).map(Store)
    }

    /// A store in a folder, opened now: for those who want to hear at once that it cannot be.
    pub fn open(folder: &Path, world: Arc<dyn World>, bounds: Bounds) -> Result<Store, OpenError> {
        let ledger = sqlite::Sqlite::open(folder, Me::new(world), bounds)?;
        Desk::start(move || Box::new(ledger)).map(Store).map_err(|why| OpenError::thread(folder, why))
    }

    /// A store in a folder, opened by its thread when the first thing is asked of it. If it cannot be
    /// opened, `trouble` hears why, and everything goes into memory.
    pub fn on_first_use(
        folder: PathBuf,
        world: Arc<dyn World>,
        bounds: Bounds,
        trouble: Reply<OpenError>,
    ) -> io::Result<Store> {
        let me = Me::new(world);
        let open = move || -> Box<dyn desk::Ledger> {
            match sqlite::Sqlite::open(&folder, me.clone(), bounds) {
                Ok(ledger) => Box::new(ledger),
                Err(error) => {
                    let why = error.without_fallback();
                    trouble(error);
                    Box::new(substitute::Substitute::new(memory::Memory::new(me, bounds), why))
                }
            }
        };
        Desk::start(open).map(Store)
    }

    /// A store in a database, reached when the first thing is asked of it, and again whenever it is gone.
    pub fn in_database(
        database: Database,
        world: Arc<dyn World>,
        bounds: Bounds,
        on_hint: Option<OnHint>,
    ) -> io::Result<Store> {
        let me = Me::new(world);
        let open = move || -> Box<dyn desk::Ledger> {
            let writer = postgres::Writer::new(database, me, bounds);
            match on_hint {
                Some(on_hint) => Box::new(writer.with_hints(on_hint)),
                None => Box::new(writer),
            }
        };
        Desk::start(open).map(Store)
    }

    /// A store, used for the first time; `trouble` hears if that is not possible, `on_hint` that there is something new
    /// where other processes can say so.
    pub fn at(home: Home, trouble: Reply<OpenError>, on_hint: Option<OnHint>) -> io::Result<Store> {
        let world = Arc::new(Machine::new());
        match home {
            Home { database: Some(database), .. } => {
                Store::in_database(database, world, Bounds::shared(), on_hint)
            }
            Home { place: Place::Folder(folder), .. } => {
                Store::on_first_use(folder, world, Bounds::default(), trouble)
            }
            Home { place: Place::Memory, .. } => Store::in_memory(world, Bounds::default()),
        }
    }

    /// Writes all of these or none, and says so once they would outlive this process.
    pub fn submit(&self, writes: Vec<Write>, reply: Reply<Stored>) {
        self.0.submit(writes, reply);
    }

    /// Looks something up. What was said to be written is found.
    pub fn load(&self, query: Query, reply: Reply<Loaded>) {
        self.0.load(query, reply);
    }

    /// Waits until everything is written and every reply was given.
    pub fn close(self) {
        self.0.close();
    }
}

/// What a record counts for.
fn weight(body: &Bytes, request: u64, answer: Option<&Answer>) -> u64 {
    RECORD_OVERHEAD + body.len() as u64 + request + answer.map_or(0, |answer| answer.bytes().len() as u64)
}

/// What a mailbox message or an event counts for.
fn small_weight(bytes: &[u8]) -> u64 {
    64 + bytes.len() as u64
}

/// What a session counts for.
fn session_weight(session: &Session) -> u64 {
    256 + (session.initialize.len() + session.initialized.len() + session.setup.len()) as u64
}

/// Notes who has owned a session before `new` does. The earliest goes for the one too many.
fn add_former_owner(former: &mut Vec<Box<str>>, old: &str, new: &str) {
    former.retain(|owner| **owner != *old && **owner != *new);
    former.push(old.into());
    let too_many = former.len().saturating_sub(limits::FORMER_OWNERS);
    former.drain(..too_many);
}

/// How a secret name is looked up: a search compares byte by byte, and how long it takes must not
/// tell how much of a guess was right.
type Id = [u8; 16];

fn id_of(name: &str) -> Id {
    let digest = ring::digest::digest(&ring::digest::SHA256, name.as_bytes());
    let mut id = Id::default();
    id.copy_from_slice(&digest.as_ref()[..16]);
    id
}
