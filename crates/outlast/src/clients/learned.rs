//! What was learned of clients on this machine: one small file in the state directory.
//!
//! It is readable by its owner only, bounded, and changed under a lock, because every server of a client has an
//! outlast process of its own. What cannot be read or written is not learned; no call depends on it.

use crate::store::Place;
use crate::sys::files::{make_folder, private, read_small};
use crate::sys::lock::{self, Kind, Lock};
use outlast_engine::Config;
use outlast_engine::profile::{Learn, Profile, Sighting};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Clients that are remembered, by name and version; the longest ago goes.
const CLIENTS: usize = 100;

/// The longest name or version that is kept.
const NAME: usize = 256;

/// The longest file that is read.
const FILE: u64 = 256 << 10;

/// How long another process may keep us from the file.
const PATIENCE: Duration = Duration::from_secs(2);

/// What was seen of one version of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    pub name: String,
    pub version: String,
    /// How old the last silent call was that it gave up.
    age_ms: u64,
    /// The cap that it speaks for.
    pub cap_ms: Option<u64>,
    /// A person has said that it counts.
    pub accepted: bool,
}

impl Entry {
    pub fn cap(&self) -> Option<Duration> {
        self.cap_ms.map(Duration::from_millis)
    }

    /// The row that it is.
    pub fn profile(&self) -> Option<Profile> {
        Profile::learned(&self.name, &self.version, self.cap()?)
    }
}

#[derive(Default, Serialize, Deserialize)]
struct Kept {
    clients: Vec<Entry>,
}

fn path(place: &Place) -> Option<PathBuf> {
    match place {
        Place::Folder(state) => Some(state.join("clients.json")),
        Place::Memory => None,
    }
}

/// What was learned, the newest last.
pub fn load(place: &Place) -> Vec<Entry> {
    path(place).map(|path| read(&path)).unwrap_or_default()
}

fn read(path: &Path) -> Vec<Entry> {
    let bytes = read_small(path, FILE).unwrap_or_default();
    serde_json::from_slice::<Kept>(&bytes).unwrap_or_default().clients
}

/// Tells an engine what was learned, as far as it counts.
pub fn teach(config: &mut Config, place: &Place) {
    if config.learn == Learn::Off {
        return;
    }
    for entry in load(place) {
        let counts = entry.accepted || config.learn == Learn::Auto;
        match entry.profile() {
            Some(row) if counts => config.profiles.learned.push(row),
            _ => config.profiles.sightings.push(Sighting {
                name: entry.name.into(),
                version: entry.version.into(),
                age: Duration::from_millis(entry.age_ms),
                cap: None,
            }),
        }
    }
}

/// Keeps what a client's cancel says. With `accepted` a cap counts at once.
pub fn record(place: &Place, seen: &Sighting, accepted: bool) -> io::Result<()> {
    let known = |entry: &Entry| *entry.name == *seen.name && *entry.version == *seen.version;
    if seen.name.len() > NAME || seen.version.len() > NAME {
        return Ok(());
    }
    change(place, |entries| {
        let before = entries.iter().position(known).map(|at| entries.remove(at));
        let cap_ms = seen.cap.map(|cap| cap.as_millis() as u64);
        let older = before.filter(|before| cap_ms.is_none() || before.cap_ms == cap_ms);
        entries.push(Entry {
            name: seen.name.to_string(),
            version: seen.version.to_string(),
            age_ms: seen.age.as_millis() as u64,
            cap_ms: cap_ms.or(older.as_ref().and_then(|older| older.cap_ms)),
            accepted: (accepted && cap_ms.is_some()) || older.is_some_and(|older| older.accepted),
        });
        let excess = entries.len().saturating_sub(CLIENTS);
        entries.drain(..excess);
    })
}

/// From now on the caps of a client count. Gives back which.
pub fn accept(place: &Place, name: &str) -> io::Result<Vec<Entry>> {
    let mut accepted = Vec::new();
    change(place, |entries| {
        for entry in entries.iter_mut().filter(|entry| entry.name == name && entry.cap_ms.is_some()) {
            entry.accepted = true;
            accepted.push(entry.clone());
        }
    })?;
    Ok(accepted)
}

/// Forgets a client. Gives back what was known.
pub fn forget(place: &Place, name: &str) -> io::Result<Vec<Entry>> {
    let mut forgotten = Vec::new();
    change(place, |entries| forgotten.extend(entries.extract_if(.., |entry| entry.name == name)))?;
    Ok(forgotten)
}

fn change(place: &Place, edit: impl FnOnce(&mut Vec<Entry>)) -> io::Result<()> {
    let Some(path) = path(place) else { return Ok(()) };
    let _lock = lock(&path).map_err(|error| unwritable(&path, &error))?;
    let before = read(&path);
    let mut entries = before.clone();
    edit(&mut entries);
    if entries == before {
        return Ok(());
    }
    write(&path, &Kept { clients: entries }).map_err(|error| unwritable(&path, &error))
}

fn unwritable(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot write `{}`: {error}", path.display()))
}

fn lock(path: &Path) -> io::Result<Lock> {
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    make_folder(folder)?;
    let beside = path.with_extension("lock");
    let file = private(File::options().write(true).create(true).truncate(false)).open(beside)?;
    lock::lock_within(file, Kind::Exclusive, PATIENCE)?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

fn write(path: &Path, kept: &Kept) -> io::Result<()> {
    let beside = path.with_extension("new");
    let mut file = private(File::options().write(true).create(true).truncate(true)).open(&beside)?;
    file.write_all(serde_json::to_string(kept)?.as_bytes())?;
    drop(file);
    fs::rename(beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(name: &str, age: u64, cap: Option<u64>) -> Sighting {
        let cap = cap.map(Duration::from_secs);
        Sighting { name: name.into(), version: "1".into(), age: Duration::from_secs(age), cap }
    }

    fn taught(place: &Place, learn: Learn) -> (usize, usize) {
        let mut config = Config { learn, ..Config::default() };
        teach(&mut config, place);
        (config.profiles.learned.len(), config.profiles.sightings.len())
    }

    #[test]
    fn a_cap_counts_once_a_person_has_said_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::Folder(folder.path().join("state"));
        assert_eq!(taught(&place, Learn::Ask), (0, 0));
        record(&place, &seen("a", 60, None), false).expect("written");
        assert_eq!(taught(&place, Learn::Ask), (0, 1));
        record(&place, &seen("a", 61, Some(60)), false).expect("written");
        assert_eq!(taught(&place, Learn::Ask), (0, 1));
        assert_eq!(taught(&place, Learn::Auto), (1, 0));
        assert_eq!(taught(&place, Learn::Off), (0, 0));
        assert_eq!(accept(&place, "b").expect("read"), []);
        assert_eq!(accept(&place, "a").expect("written").len(), 1);
        assert_eq!(taught(&place, Learn::Ask), (1, 0));
        // A cap that is another one has to be accepted again.
        record(&place, &seen("a", 30, Some(30)), false).expect("written");
        assert_eq!(taught(&place, Learn::Ask), (0, 1));
        assert_eq!(forget(&place, "a").expect("written").len(), 1);
        assert_eq!(load(&place), []);
    }

    #[test]
    fn the_file_is_ours_alone_and_bounded_and_a_damaged_one_is_empty() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = Place::Folder(folder.path().into());
        for number in 0..CLIENTS + 5 {
            record(&place, &seen(&number.to_string(), 60, Some(60)), true).expect("written");
        }
        let kept = load(&place);
        assert_eq!((kept.len(), &*kept[0].name), (CLIENTS, "5"));
        record(&place, &seen(&"x".repeat(NAME + 1), 60, None), true).expect("left out");
        assert_eq!(load(&place).len(), CLIENTS);
        let file = folder.path().join("clients.json");
        assert!(crate::sys::files::is_private(&file).expect("there"));
        fs::write(&file, "{").expect("written");
        assert_eq!(load(&place), []);
        record(&Place::Memory, &seen("a", 60, None), true).expect("nowhere");
    }
}
