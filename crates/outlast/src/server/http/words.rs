//! What went wrong with a connection, in words that help. Never a path, a query or a header's value.

use crate::http1::Broken;
use outlast_engine::http::Trouble;
use std::io;

/// An error of the system.
pub fn of_io(error: &io::Error) -> String {
    let known = match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused",
        io::ErrorKind::ConnectionReset => "connection reset",
        io::ErrorKind::ConnectionAborted => "connection aborted",
        io::ErrorKind::BrokenPipe => "connection closed",
        io::ErrorKind::UnexpectedEof => "connection closed",
        io::ErrorKind::TimedOut => "connection timed out",
        io::ErrorKind::HostUnreachable => "no route to the host",
        io::ErrorKind::NetworkUnreachable => "the network is unreachable",
        _ => {
            let text = error.to_string();
            let text = text.split(" (os error").next().unwrap_or_default();
            return text.strip_prefix("failed to lookup address information: ").unwrap_or(text).to_owned();
        }
    };
    known.to_owned()
}

/// A connection that failed after a request may have left on it.
pub fn broken(why: &Broken) -> Trouble {
    match why {
        Broken::NotHttp(_) => Trouble::NotMcp(of(why).into()),
        Broken::Io(_) | Broken::Closed => Trouble::Broken(of(why).into()),
    }
}

/// What broke a connection.
pub fn of(why: &Broken) -> String {
    match why {
        Broken::Io(error) => of_io(error),
        Broken::Closed => "the server closed the connection".into(),
        Broken::NotHttp(fault) => format!("the answer is not HTTP/1.1 ({fault})"),
    }
}

/// A status with its usual name.
pub fn of_status(status: u16) -> String {
    http::StatusCode::from_u16(status).map_or_else(|_| status.to_string(), |status| status.to_string())
}
