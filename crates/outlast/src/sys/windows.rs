//! Windows. Type-checked by `cargo xtask dist check`; nobody has run it yet (docs/platforms.md).

pub mod database;
pub mod files;
pub mod guardian;
pub mod limits;
pub mod local;
pub mod manager;
pub mod presence;
pub mod proc;
pub mod service;
pub mod signals;
pub mod streams;
pub mod terminal;

mod job;

use std::ffi::OsStr;
use std::io;
use std::os::windows::ffi::OsStrExt;
use windows_sys::Win32::Foundation::FALSE;
use windows_sys::Win32::System::WindowsProgramming::QueryUnbiasedInterruptTime;
use windows_sys::core::BOOL;

/// Milliseconds since the machine started, without those it slept: the same for all its processes.
pub fn awake() -> u64 {
    let mut hundreds_of_nanos = 0;
    // SAFETY: it writes one number to where it is told.
    unsafe { QueryUnbiasedInterruptTime(&mut hundreds_of_nanos) };
    hundreds_of_nanos / 10_000
}

/// What the system gives to say that it failed.
fn check(done: BOOL) -> io::Result<()> {
    if done == FALSE { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// A text as the system reads it: ended by a zero.
fn wide(text: impl AsRef<OsStr>) -> Vec<u16> {
    text.as_ref().encode_wide().chain([0]).collect()
}
