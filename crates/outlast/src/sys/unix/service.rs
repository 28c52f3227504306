//! A process that outlives whoever started it, and listens before it runs.

use super::local::LocalListener;
use nix::unistd::{ForkResult, dup2_stdin, fork, setsid};
use std::fs::{self, File, Permissions};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Starts the service that is to listen at a path; whether it began well. The socket listens before the service
/// runs, so nobody waits for it to be ready.
pub fn start(mut command: Command, path: &Path, log: File) -> io::Result<bool> {
    // Whoever listened there is gone.
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    command.arg0("outlast").stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::null());
    let mut first = command.stderr(Stdio::from(log)).spawn()?;
    // It forks and ends: the service is nobody's child.
    first.wait().map(|status| status.success())
}

/// Where a service is reached.
#[derive(Debug)]
pub struct Entrance(UnixListener);

/// Leaves the session of whoever started us. `None` in the process that is only to end. Must be called
/// before any thread exists.
pub fn enter(_path: &Path) -> io::Result<Option<Entrance>> {
    // SAFETY: no other thread exists yet, so the child may use all of std.
    match unsafe { fork() }? {
        ForkResult::Parent { .. } => return Ok(None),
        ForkResult::Child => setsid()?,
    };
    let listener = UnixListener::from(io::stdin().as_fd().try_clone_to_owned()?);
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(Some(Entrance(listener)))
}

impl Entrance {
    /// Begins to listen. Must be called inside a runtime.
    pub fn open(&self) -> io::Result<LocalListener> {
        LocalListener::new(self.0.try_clone()?)
    }
}

/// Takes the name of a service that ends away, so that nobody finds it any more.
pub fn close(path: &Path) {
    let _ = fs::remove_file(path);
}
