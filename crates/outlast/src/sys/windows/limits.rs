//! What a process may take: Windows has no such bounds for handles, and its allocator returns what is freed.

use std::ffi::OsStr;

/// How many files a program may have open that is started without us: there is no such limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimit;

impl FileLimit {
    pub fn now() -> Option<FileLimit> {
        None
    }

    /// As a word of a command line.
    pub fn word(_: Option<FileLimit>) -> String {
        "-".to_owned()
    }

    pub fn take(_: &OsStr) {}
}

pub fn raise_file_limit() -> Option<FileLimit> {
    None
}

pub fn return_large_buffers() {}

/// The job object holds every process below us, whoever its parent is.
pub fn adopt_orphans() {}
