//! What went wrong with a connection, in words that help. Never a path, a query or a header's value.

use outlast_engine::http::Trouble;
use std::error::Error;
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
pub fn broken(error: &hyper::Error) -> Trouble {
    if error.is_parse() {
        return Trouble::NotMcp(format!("the answer is not HTTP/1.1 ({error})").into());
    }
    Trouble::Broken(of_hyper(error).into())
}

/// An error of a connection.
pub fn of_hyper(error: &hyper::Error) -> String {
    match cause(error) {
        Some(cause) => of_io(cause),
        None if error.is_incomplete_message() => "the server closed the connection".into(),
        None if error.is_canceled() || error.is_closed() => "connection closed".into(),
        None => error.to_string(),
    }
}

/// The error of the system behind another.
fn cause(error: &hyper::Error) -> Option<&io::Error> {
    let mut next = error.source();
    while let Some(source) = next {
        if let Some(found) = source.downcast_ref() {
            return Some(found);
        }
        next = source.source();
    }
    None
}
