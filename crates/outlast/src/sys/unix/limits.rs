//! What a process may take, and who inherits its children.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::ffi::OsStr;

/// How many file descriptors a program may have that is started without us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimit(u64);

impl FileLimit {
    /// The limit that we were started with. Ask before [`raise_file_limit`].
    pub fn now() -> Option<FileLimit> {
        getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| FileLimit(soft))
    }

    /// As it stands on the command line of a process of ours, which gives it back to what it starts.
    pub fn word(limit: Option<FileLimit>) -> String {
        limit.map_or_else(|| "-".to_owned(), |FileLimit(soft)| soft.to_string())
    }

    /// Takes such a word as the limit of this process. Programs that walk over all possible descriptors, or
    /// use `select`, break under a limit that was raised for us.
    pub fn take(word: &OsStr) {
        let soft: Option<u64> = word.to_str().and_then(|word| word.parse().ok());
        if let (Some(soft), Ok((_, hard))) = (soft, getrlimit(Resource::RLIMIT_NOFILE)) {
            // Where that is refused, it stays as it is.
            let _ = setrlimit(Resource::RLIMIT_NOFILE, soft.min(hard), hard);
        }
    }
}

/// More file descriptors for us; the limit before. Whatever starts programs gives them that one back.
pub fn raise_file_limit() -> Option<FileLimit> {
    let before = FileLimit::now();
    if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_NOFILE) {
        // Without it we only run out earlier.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
    before
}

/// Keeps large buffers out of the heap, so that freeing them gives them back to the system. By
/// default glibc raises this mark as soon as one such buffer is freed.
pub fn return_large_buffers() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets a number inside the allocator; any value is allowed.
    unsafe {
        nix::libc::mallopt(nix::libc::M_MMAP_THRESHOLD, 256 << 10);
    }
}

/// Orphans below us become our children instead of init's.
pub fn adopt_orphans() {
    #[cfg(target_os = "linux")]
    // Without it (an old kernel) a double fork can escape; nothing else changes.
    let _ = nix::sys::prctl::set_child_subreaper(true);
}
