//! The floor of the benchmark: `floor COMMAND...`, a process in the middle that only copies bytes.
//!
//! Every ratio of `cargo xtask bench` is against this program, so it is as fast as simple code can
//! be: one blocking thread per direction and one read and one write per chunk. It does not look at
//! a single byte. It does not use `splice` either, because a proxy that must see messages cannot.

#![allow(clippy::disallowed_methods, reason = "a program of its own: its arguments are real")]

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};

/// What a Linux pipe holds by default: a larger buffer would never be filled.
const CHUNK: usize = 64 * 1024;

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let Some(program) = words.next() else {
        return Err(io::Error::other("usage: floor COMMAND..."));
    };
    let mut child = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let to_child = child.stdin.take().map(OwnedFd::from);
    let from_child = child.stdout.take().map(OwnedFd::from);
    let (Some(to_child), Some(from_child)) = (to_child, from_child) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let stdin = unbuffered(io::stdin())?;
    let stdout = unbuffered(io::stdout())?;
    // Not joined: once the child's stdout is closed nothing more can come of what we would read.
    std::thread::spawn(move || copy(stdin, to_child.into()));
    copy(from_child.into(), stdout)?;
    let status = child.wait()?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// The standard handles of `std` lock and buffer; the floor should pay for neither.
fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Copies until end of file; dropping `to` closes it, which is how the end travels on.
fn copy(mut from: File, mut to: File) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&chunk[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
