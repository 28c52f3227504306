//! `outlast --keep -- COMMAND`: a service in the background for which this process is only the door, so
//! that calls outlive the client that made them.
//!
//! - `way`: how a door reaches the service, and starts it where there is none;
//! - `service`: what the service is besides any other: detached, and gone when nobody needs it;
//! - `list`: `outlast keep list|stop`.
//!
//! Doors and services meet in a folder of the user's state directory that nobody else can enter. Who is
//! there is told by locks, which end with their processes however those end:
//!
//! | file | held by |
//! |---|---|
//! | `NAME.lock` | a door while it starts the service: two doors never start two |
//! | `NAME.users` | every door, shared; the service alone while it ends, so that a new door waits for that |
//! | `NAME.card` | the service: a card that nobody holds is a dead one's |
//!
//! Beside them are the socket and the service's log.

mod list;
mod service;
mod way;

pub use list::{Request, What, run};
pub use service::{Kept, enter};
pub use way::Way;

use crate::config;
use crate::identity::{self, Key};
use crate::sys::files;
use crate::sys::local::LONGEST_PATH;
use crate::sys::lock::{self, Kind, Lock};
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The first word of the service's command line.
pub const SERVICE: &str = "keep-service";

/// The files of one service.
#[derive(Clone, Debug)]
pub struct Room {
    folder: PathBuf,
    name: String,
}

impl Room {
    /// The room of a service below a state folder; makes the folder. The error is for people.
    pub fn open(state: &Path, name: &str) -> Result<Room, String> {
        let folder = folder(state);
        let unusable = |why: &dyn std::fmt::Display| {
            format!("--keep cannot use `{}`: {why}; name another folder with --state DIR", folder.display())
        };
        files::make_own_folder(&folder).map_err(|error| unusable(&error))?;
        let room = Room { folder: folder.clone(), name: name.into() };
        if room.socket().as_os_str().len() > LONGEST_PATH {
            return Err(unusable(&"its path is too long for a socket"));
        }
        Ok(room)
    }

    /// The room that a file belongs to.
    fn of(path: &Path) -> Option<Room> {
        let (name, _) = path.file_name()?.to_str()?.split_once('.')?;
        Some(Room { folder: path.parent()?.into(), name: name.into() })
    }

    pub fn socket(&self) -> PathBuf {
        self.file("sock")
    }

    /// What the service writes; the one before it is beside it.
    pub fn log(&self) -> PathBuf {
        self.file("log")
    }

    /// Removes the files of a service that has ended and that nobody is about to use.
    fn tidy(&self, patience: Duration) -> io::Result<()> {
        let lock = |kind| lock_within(&self.file(kind), Kind::Exclusive, patience);
        let (Some(_turn), Some(_users)) = (lock("lock")?, lock("users")?) else { return Ok(()) };
        if let Ok(card) = File::open(self.file("card"))
            && lock::try_lock(card, Kind::Shared)?.is_err()
        {
            return Ok(());
        }
        let begin = format!("{}.", self.name);
        for entry in fs::read_dir(&self.folder)?.flatten() {
            if entry.file_name().to_string_lossy().starts_with(&begin) {
                fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    fn file(&self, kind: &str) -> PathBuf {
        self.folder.join(format!("{}.{kind}", self.name))
    }
}

/// Where doors and services meet.
fn folder(state: &Path) -> PathBuf {
    state.join("keep")
}

/// What a service is called: the same for the same user, version, options and server. What says who the
/// server is may hold secrets, so the name is a digest.
pub fn name(key: &Key, words: &[OsString], command: &[OsString]) -> String {
    let user = files::user();
    let mut parts: Vec<Vec<u8>> = vec![env!("CARGO_PKG_VERSION").into(), user.into_bytes()];
    let mut variables: Vec<_> = config::own_variables().collect();
    variables.sort();
    for (name, value) in variables {
        parts.push([name.as_encoded_bytes(), b"=", value.as_encoded_bytes()].concat());
    }
    parts.extend(words.iter().map(|word| word.as_encoded_bytes().to_vec()));
    parts.push(b"--".to_vec());
    parts.extend(identity::parts_of(&command.to_vec().into()));
    key.digest(&parts)
}

/// A lock of a file that need not be there; `None` if somebody else holds one that forbids it.
fn try_lock(path: &Path, kind: Kind) -> io::Result<Option<Lock>> {
    of_the_file_there(path, |file| lock::try_lock(file, kind).map(Result::ok))
}

/// The same lock, waited for.
fn lock_within(path: &Path, kind: Kind, time: Duration) -> io::Result<Option<Lock>> {
    of_the_file_there(path, |file| lock::lock_within(file, kind, time))
}

/// How often a file may be removed while its lock is waited for.
const REMOVED: usize = 10;

/// A lock of the file that has this name once the lock is there: the one that was opened may have been removed
/// meanwhile, and a lock of that keeps nobody out.
fn of_the_file_there(
    path: &Path,
    lock: impl Fn(File) -> io::Result<Option<Lock>>,
) -> io::Result<Option<Lock>> {
    for _ in 0..REMOVED {
        let Some(held) = lock(open(path)?)? else { return Ok(None) };
        if files::is_at(&held, path)? {
            return Ok(Some(held));
        }
    }
    Err(io::Error::other(format!("`{}` is removed again and again", path.display())))
}

fn open(path: &Path) -> io::Result<File> {
    files::private(File::options().read(true).write(true).create(true).truncate(false)).open(path)
}
