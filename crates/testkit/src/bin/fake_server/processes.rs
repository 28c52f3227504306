//! Processes: children that outstay their welcome, signals, and the raw standard streams.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, thread};

use nix::sys::signal::{SigHandler, Signal, raise, signal};
use nix::unistd::{dup2_stdin, setsid};

/// Waits until somebody ends this process.
pub fn park() -> ! {
    loop {
        thread::park();
    }
}

pub fn sleep_for_ever(ignores_term: bool) -> ! {
    if ignores_term {
        ignore_term();
    }
    park()
}

pub fn ignore_term() {
    // SAFETY: ignoring a signal runs no code in a handler.
    let _ = unsafe { signal(Signal::SIGTERM, SigHandler::SigIgn) };
}

/// Waits until a test has made a file.
pub fn wait_for(gate: &Path) {
    while !gate.exists() {
        thread::sleep(Duration::from_millis(2));
    }
}

/// Ends this process by a signal.
pub fn die_by(number: i32) {
    if let Ok(signal) = Signal::try_from(number) {
        let _ = raise(signal);
    }
}

/// Writes to stderr as it is; nothing is buffered.
pub fn complain(bytes: &[u8]) -> io::Result<()> {
    io::stderr().write_all(bytes)
}

/// A child that holds this process's stdout and stderr open.
pub fn start_grandchild() -> io::Result<Child> {
    itself(&["--sleep"])?.spawn()
}

/// A process that has left this one's session and lost its parent; its number.
pub fn start_daemon() -> io::Result<u32> {
    let mut middle = itself(&["--daemon"])?.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
    let mut number = String::new();
    if let Some(mut stdout) = middle.stdout.take() {
        stdout.read_to_string(&mut number)?;
    }
    middle.wait()?;
    number.trim().parse().map_err(io::Error::other)
}

/// The middle process of a double fork.
pub fn fork_away() -> io::Result<()> {
    setsid()?;
    let mut command = itself(&["--sleep", "--ignore-term"])?;
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    writeln!(io::stdout(), "{}", child.id())
}

/// Lets go of stdin and lives on. Nobody reads the pipe any more, which who writes there can see.
pub fn close_stdin() -> io::Result<()> {
    dup2_stdin(File::open("/dev/null")?)?;
    Ok(())
}

fn itself(flags: &[&str]) -> io::Result<Command> {
    let mut command = Command::new(env::current_exe()?);
    command.args(flags).stdin(Stdio::null());
    Ok(command)
}
