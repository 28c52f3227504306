//! Locks of files, which processes share, waited for with a limit.

use super::files;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::sync::mpsc::channel;
use std::time::Duration;

/// A lock that is let go of when dropped, or when the process ends.
#[derive(Debug)]
pub struct Lock(File);

impl Deref for Lock {
    type Target = File;

    fn deref(&self) -> &File {
        &self.0
    }
}

impl DerefMut for Lock {
    fn deref_mut(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A copy of the file in another process would hold it otherwise.
        let _ = files::unlock(&self.0);
    }
}

/// Whom a lock keeps out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Those who want it for themselves.
    Shared,
    /// Everybody.
    Exclusive,
}

/// A lock, if it can be had at once; otherwise the file comes back.
pub fn try_lock(file: File, kind: Kind) -> io::Result<Result<Lock, File>> {
    Ok(if files::try_lock(&file, kind)? { Ok(Lock(file)) } else { Err(file) })
}

/// A lock, if it can be had within a time.
///
/// The system wakes whoever waits for a lock, but knows no limit for that: so a thread waits for the lock, and
/// we wait for the thread. A thread that gets it too late lets it go again.
pub fn lock_within(file: File, kind: Kind, time: Duration) -> io::Result<Option<Lock>> {
    let file = match try_lock(file, kind)? {
        Ok(lock) => return Ok(Some(lock)),
        Err(file) => file,
    };
    let (give, given) = channel();
    let thread = std::thread::Builder::new().name("lock".into());
    thread.spawn(move || drop(give.send(wait_for(file, kind))))?;
    given.recv_timeout(time).map_or(Ok(None), |lock| lock.map(Some))
}

fn wait_for(file: File, kind: Kind) -> io::Result<Lock> {
    loop {
        match files::lock(&file, kind) {
            Ok(()) => return Ok(Lock(file)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn open(path: &Path) -> File {
        File::options().write(true).create(true).truncate(false).open(path).unwrap()
    }

    #[test]
    fn the_second_gets_the_lock_when_the_first_lets_go() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let first = try_lock(open(&path), Kind::Exclusive).unwrap().unwrap();
        assert!(try_lock(open(&path), Kind::Shared).unwrap().is_err());
        assert!(lock_within(open(&path), Kind::Shared, Duration::ZERO).unwrap().is_none());
        let file = open(&path);
        let second = std::thread::spawn(move || lock_within(file, Kind::Exclusive, Duration::from_secs(20)));
        drop(first);
        assert!(second.join().unwrap().unwrap().is_some());
    }
}
