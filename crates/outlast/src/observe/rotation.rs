//! A log that a process writes for months stays small: at a bound it is moved aside, and begun anew.

use crate::sys::files::{private, replace_stderr};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of a log. More: it becomes the earlier one, in place of the one before, and a new one begins.
pub const LOG: u64 = 1 << 20;

/// Opens a log to go on with it, or a new one if it has become long.
pub fn open(path: &Path) -> io::Result<File> {
    let log = append(path)?;
    if log.metadata()?.len() <= LOG {
        return Ok(log);
    }
    fs::rename(path, earlier(path))?;
    append(path)
}

/// Where the log before this one is.
pub fn earlier(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

fn append(path: &Path) -> io::Result<File> {
    private(File::options().append(true).create(true)).open(path)
}

/// Our stderr where it is such a log.
#[derive(Debug)]
pub struct Rotation {
    path: PathBuf,
    /// Bytes in it.
    length: u64,
}

impl Rotation {
    /// Of a log that our stderr writes to.
    pub fn new(path: PathBuf) -> Rotation {
        let length = fs::metadata(&path).map_or(0, |log| log.len());
        Rotation { path, length }
    }

    /// So much has been written. Our stderr becomes a new log if that was enough for this one.
    pub fn wrote(&mut self, bytes: usize) {
        self.length += bytes as u64;
        if self.length > LOG && self.begin_anew().is_ok() {
            self.length = 0;
        }
    }

    fn begin_anew(&self) -> io::Result<()> {
        let log = open(&self.path)?;
        replace_stderr(&log)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_log_is_moved_aside_and_a_short_one_is_not() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("log");
        let length = |path: &Path| fs::metadata(path).map(|log| log.len()).ok();
        fs::write(&path, vec![b'x'; LOG as usize]).unwrap();
        drop(open(&path).unwrap());
        assert_eq!((length(&path), length(&earlier(&path))), (Some(LOG), None));
        for _ in 0..3 {
            fs::write(&path, vec![b'x'; LOG as usize + 1]).unwrap();
            drop(open(&path).unwrap());
            assert_eq!((length(&path), length(&earlier(&path))), (Some(0), Some(LOG + 1)));
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2, "one before it is enough");
    }
}
