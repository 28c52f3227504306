//! What differs by operating system. Windows has no file here yet: see docs/platforms.md.

#[cfg(unix)]
pub mod alarm;
#[cfg(unix)]
pub mod lock;
#[cfg(unix)]
pub mod proc;
#[cfg(unix)]
pub mod unix;
#[cfg(not(unix))]
compile_error!("outlast runs on Linux and macOS; Windows is not supported yet (docs/platforms.md)");
