//! What differs by operating system.
//!
//! Each name means the same everywhere and has one file in `unix/` and one in `windows/`; what is outside of this
//! folder knows neither. What was built or run where is told in docs/platforms.md.
//!
//! - `guardian`: the parent of a server's process, which takes down all that is below it
//! - `streams`: our standard streams and pipes to servers, without blocking
//! - `local`: connections between processes of one user; `service`: a process that outlives who started it
//! - `manager`: the service manager that has started us
//! - `presence`: whether the other end of a connection is gone
//! - `files`: files that are this user's alone; `proc`: what the system knows of processes
//! - `signals`: being asked to end, and asking others; `limits`: what a process may take
//! - `database`: a database's socket on this machine
//! - `terminal`: how wide our terminal is
//! - `browser`: the one of whoever sits in front of this machine
//! - `awake`: the clock that stands still while the machine sleeps

pub mod alarm;
pub mod browser;
pub mod lock;
pub mod report;

#[cfg(unix)]
mod unix;
#[cfg(unix)]
pub use unix::{
    awake, database, files, guardian, limits, local, manager, presence, proc, service, signals, streams,
    terminal,
};

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub use windows::{
    awake, database, files, guardian, limits, local, manager, presence, proc, service, signals, streams,
    terminal,
};

#[cfg(not(any(unix, windows)))]
compile_error!("outlast runs on Unix and Windows (docs/platforms.md)");
