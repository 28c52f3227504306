//! The service manager that has started us: the socket that it passes, and what it wants to be told.
//!
//! This is systemd's protocol, which others speak, too. Without its variables nothing happens here.

use crate::config;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::socket::{getsockopt, sockopt};
use std::io;
use std::net::TcpListener;
use std::os::fd::{BorrowedFd, RawFd};
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The first descriptor that is passed.
const FIRST: RawFd = 3;

/// How long a manager may take to make room for a message.
const PATIENCE: Duration = Duration::from_secs(1);

/// The socket that was passed to us to listen on.
pub fn passed() -> io::Result<Option<TcpListener>> {
    let number = |name: &str| config::variable(name)?.parse::<u32>().ok();
    if number("LISTEN_PID") != Some(std::process::id()) {
        return Ok(None);
    }
    match number("LISTEN_FDS") {
        None | Some(0) => Ok(None),
        Some(1) => take().map(Some),
        Some(more) => Err(io::Error::other(format!("{more} sockets; outlast listens on one"))),
    }
}

fn take() -> io::Result<TcpListener> {
    // SAFETY: only looked at here; whether it is open is what the next call finds out.
    let passed = unsafe { BorrowedFd::borrow_raw(FIRST) };
    // Servers must not inherit it.
    fcntl(passed, FcntlArg::F_SETFD(FdFlag::FD_CLOEXEC))?;
    let listens = getsockopt(&passed, sockopt::AcceptConn).unwrap_or_default();
    let listener = TcpListener::from(passed.try_clone_to_owned()?);
    if !listens || listener.local_addr().is_err() {
        return Err(io::Error::other("something that is not a listening TCP socket"));
    }
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// We take requests.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={status}"));
}

/// We end, as soon as calls have ended.
pub fn stopping() {
    tell("STOPPING=1\nSTATUS=waiting for calls to end");
}

/// A manager that cannot be told finds out by itself.
fn tell(state: &str) {
    let Some(address) = config::variable("NOTIFY_SOCKET").and_then(|name| address(&name).ok()) else {
        return;
    };
    let Ok(socket) = UnixDatagram::unbound() else { return };
    let _ = socket.set_write_timeout(Some(PATIENCE));
    let _ = socket.send_to_addr(state.as_bytes(), &address);
}

/// A path, or with `@` a name that stands in no folder.
fn address(name: &str) -> io::Result<SocketAddr> {
    #[cfg(target_os = "linux")]
    if let Some(name) = name.strip_prefix('@') {
        return <SocketAddr as std::os::linux::net::SocketAddrExt>::from_abstract_name(name);
    }
    SocketAddr::from_pathname(name)
}
