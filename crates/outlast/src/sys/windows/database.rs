//! Databases that listen at a socket of this machine: PostgreSQL's driver knows none here.

use std::io;
use std::path::Path;
use tokio::net::TcpStream;
use tokio_postgres::config::Host;

/// The folder of a host's socket, or the host's name.
pub fn folder_or_name(host: &Host) -> Result<&Path, &str> {
    match host {
        Host::Tcp(name) => Err(name),
    }
}

/// Connects to the socket.
pub async fn connect(_: &Path) -> io::Result<TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}
