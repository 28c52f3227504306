//! What goes wrong with the file, in words for the person whose file it is.

use outlast_engine::store::{Refusal, Trouble};
use rusqlite::ErrorCode;
use std::io;
use std::path::Path;

/// Why the store could not be opened. What it is for goes on in memory then.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// The folder or file cannot be made.
    #[error("cannot keep tickets in `{path}`: {why}; {ADVICE}")]
    Folder {
        /// The folder.
        path: String,
        /// What the system says.
        why: String,
    },
    /// A newer outlast has changed the file.
    #[error(
        "`{path}` was written by a newer outlast (format {found}, this one knows {known}); update outlast; {ADVICE}"
    )]
    Newer {
        /// The file.
        path: String,
        /// Its format.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The file belongs to another program.
    #[error("`{path}` is a database of another program; {ADVICE}")]
    Foreign {
        /// The file.
        path: String,
    },
    /// The file is damaged.
    #[error("`{path}` is damaged ({why}); move it away to start anew; {ADVICE}")]
    Damaged {
        /// The file.
        path: String,
        /// What SQLite says.
        why: String,
    },
    /// The file, its folder or its disk cannot be written.
    #[error("`{path}` cannot be written, only read; {ADVICE}")]
    ReadOnly {
        /// The file.
        path: String,
    },
    /// The disk is full.
    #[error("the disk of `{path}` is full; {ADVICE}")]
    Full {
        /// The file.
        path: String,
    },
    /// Another process does not let go of the file.
    #[error("`{path}` is held by another process; {ADVICE}")]
    Busy {
        /// The file.
        path: String,
    },
    /// Anything else.
    #[error("cannot open `{path}`: {why}; {ADVICE}")]
    Other {
        /// The file.
        path: String,
        /// What the system says.
        why: String,
    },
}

const ADVICE: &str = "until outlast is started again, or with another --state, it keeps tickets in memory";

/// What becomes of calls while an open file fails.
const MEANWHILE: &str =
    "meanwhile calls that ask for a task are answered plainly, and what ends is kept in memory";

impl OpenError {
    /// The folder or file cannot be made.
    pub fn folder(path: &Path, why: &io::Error) -> OpenError {
        let path = path.display().to_string();
        match why.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::Full { path },
            io::ErrorKind::ReadOnlyFilesystem => OpenError::ReadOnly { path },
            io::ErrorKind::WouldBlock => OpenError::Busy { path },
            _ => OpenError::Folder { path, why: why.to_string() },
        }
    }

    /// SQLite cannot open the file.
    pub fn of(path: &Path, error: rusqlite::Error) -> OpenError {
        let path = path.display().to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                OpenError::Damaged { path, why: error.to_string() }
            }
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => OpenError::ReadOnly { path },
            Some(ErrorCode::DiskFull) => OpenError::Full { path },
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => OpenError::Busy { path },
            _ => OpenError::Other { path, why: error.to_string() },
        }
    }

    /// The same for those who have nothing to keep in memory instead.
    pub fn without_fallback(&self) -> String {
        let text = self.to_string();
        text.strip_suffix(ADVICE).map_or(text.as_str(), |plain| plain.trim_end_matches("; ")).to_owned()
    }

    /// The system gives us no thread.
    pub fn thread(path: &Path, why: io::Error) -> OpenError {
        OpenError::Other { path: path.display().to_string(), why: why.to_string() }
    }
}

/// What is wrong with a file that could be opened, and what to do.
pub fn unread(path: &Path, error: &rusqlite::Error) -> Trouble {
    Trouble::Failed(words(path, error))
}

/// The same, and what happens meanwhile.
pub fn unwritten(path: &Path, error: &rusqlite::Error) -> Trouble {
    Trouble::Failed(format!("{}; {MEANWHILE}", words(path, error)))
}

fn words(path: &Path, error: &rusqlite::Error) -> String {
    let plain = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => "its disk is full; make room",
        Some(ErrorCode::ReadOnly) => "it cannot be written any more",
        Some(ErrorCode::DatabaseBusy) => "another process does not let go of it",
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            "it is damaged; move it away to start anew"
        }
        Some(ErrorCode::SchemaChanged) => "a newer outlast has changed it; restart this one with it",
        Some(ErrorCode::TooBig) => "this is more than SQLite takes",
        Some(ErrorCode::SystemIoFailure) => "its disk does not work, or takes no more",
        _ => &error.to_string(),
    };
    format!("`{}`: {plain}", path.display())
}

/// The file is not the one that was opened.
pub fn replaced(path: &Path) -> Trouble {
    let path = path.display();
    Trouble::Failed(format!("`{path}` was removed or replaced, and with it what was kept there; begun anew"))
}

/// The same, and another one cannot be opened.
pub fn lost(error: &OpenError) -> Trouble {
    Trouble::Failed(format!("{}; {MEANWHILE}", error.without_fallback()))
}

/// Why a write was not made.
#[derive(Debug)]
pub enum Stop {
    /// It is not allowed.
    Refused(Refusal),
    /// The file does not work.
    Broken(rusqlite::Error),
}

impl From<Refusal> for Stop {
    fn from(why: Refusal) -> Stop {
        Stop::Refused(why)
    }
}

impl From<rusqlite::Error> for Stop {
    fn from(error: rusqlite::Error) -> Stop {
        Stop::Broken(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_keeps_nothing_is_not_told_where_it_is_kept() {
        let newer = OpenError::Newer { path: "f".into(), found: 9, known: 1 };
        assert_eq!(
            newer.without_fallback(),
            "`f` was written by a newer outlast (format 9, this one knows 1); update outlast"
        );
        assert_eq!(OpenError::Full { path: "f".into() }.without_fallback(), "the disk of `f` is full");
    }
}
