//! A process that outlives whoever started it. It says one byte on its standard output when it listens.

use super::local::LocalListener;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::windows::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use windows_sys::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, DETACHED_PROCESS};

/// Starts the service that is to listen at a path, and waits until it does; whether it began well.
pub fn start(mut command: Command, _: &Path, log: File) -> io::Result<bool> {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::from(log));
    // No console of ours: what ends ours must not end it.
    let mut service = command.creation_flags(DETACHED_PROCESS | CREATE_NEW_PROCESS_GROUP).spawn()?;
    let mut ready = [0];
    let said = service.stdout.take().map(|mut output| output.read_exact(&mut ready));
    Ok(matches!(said, Some(Ok(()))))
}

/// Where a service is reached.
#[derive(Debug)]
pub struct Entrance(PathBuf);

/// Whoever started us has let go of us already.
pub fn enter(path: &Path) -> io::Result<Option<Entrance>> {
    Ok(Some(Entrance(path.to_owned())))
}

impl Entrance {
    /// Begins to listen, and says so. Must be called inside a runtime.
    pub fn open(&self) -> io::Result<LocalListener> {
        let listener = LocalListener::new(&self.0)?;
        let mut output = io::stdout();
        output.write_all(b"\n").and_then(|()| output.flush())?;
        Ok(listener)
    }
}

/// The name of a pipe goes with it.
pub fn close(_: &Path) {}
