//! Linux and macOS.

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

use nix::time::ClockId;
use std::time::Duration;

/// Milliseconds since the machine started, without those it slept: the same for all its processes.
pub fn awake() -> u64 {
    #[cfg(target_os = "linux")]
    let clock = ClockId::CLOCK_MONOTONIC;
    #[cfg(not(target_os = "linux"))]
    let clock = ClockId::from_raw(nix::libc::CLOCK_UPTIME_RAW);
    clock.now().map_or(0, |time| Duration::from(time).as_millis() as u64)
}
