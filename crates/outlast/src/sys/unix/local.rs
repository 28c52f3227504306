//! Connections between processes of one user: sockets in a folder that nobody else can enter.

use nix::unistd::geteuid;
use socket2::SockRef;
use std::fs::Permissions;
use std::io;
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::Path;
use tokio::net::UnixListener;
pub use tokio::net::UnixStream as LocalStream;

/// The longest path of a socket that every system takes.
pub const LONGEST_PATH: usize = 103;

/// Where processes of this user come in.
#[derive(Debug)]
pub struct LocalListener(UnixListener);

impl LocalListener {
    pub(super) fn new(listener: std::os::unix::net::UnixListener) -> io::Result<LocalListener> {
        listener.set_nonblocking(true)?;
        UnixListener::from_std(listener).map(LocalListener)
    }

    /// The next connection; an error if it is not this user's.
    pub async fn accept(&mut self) -> io::Result<LocalStream> {
        let (stream, _) = self.0.accept().await?;
        // The folder keeps others out; this keeps out whom somebody let into the folder.
        match stream.peer_cred()?.uid() == geteuid().as_raw() {
            true => Ok(stream),
            false => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }
}

/// Listens at a path that nothing is at, for this user alone. Must be called inside a runtime.
pub fn listen(path: &Path) -> io::Result<LocalListener> {
    let listener = std::os::unix::net::UnixListener::bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    LocalListener::new(listener)
}

/// Connects, if somebody listens there.
pub async fn connect(path: &Path) -> io::Result<LocalStream> {
    LocalStream::connect(path).await
}

/// The same on a thread that may wait. Must be called inside a runtime.
pub fn connect_now(path: &Path) -> io::Result<LocalStream> {
    let stream = StdUnixStream::connect(path)?;
    stream.set_nonblocking(true)?;
    LocalStream::from_std(stream)
}

/// Looks at what came without taking it.
pub fn peek(stream: &LocalStream) -> io::Result<usize> {
    SockRef::from(stream).peek(&mut [MaybeUninit::uninit()])
}
