//! Databases that listen at a socket of this machine.

use std::io;
use std::path::Path;
use tokio::net::UnixStream;
use tokio_postgres::config::Host;

/// The folder of a host's socket, or the host's name.
pub fn folder_or_name(host: &Host) -> Result<&Path, &str> {
    match host {
        Host::Unix(folder) => Ok(folder),
        Host::Tcp(name) => Err(name),
    }
}

/// Connects to the socket.
pub async fn connect(path: &Path) -> io::Result<UnixStream> {
    UnixStream::connect(path).await
}
