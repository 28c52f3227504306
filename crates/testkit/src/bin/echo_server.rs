//! The server behind `cargo xtask bench`: speaks just enough MCP, and costs next to nothing.
//!
//! `echo-server` speaks on stdio (`echo_server/stdio.rs`), `echo-server --http` on a loopback port
//! that it names on stderr (`echo_server/http.rs`); with `--sse` it answers every request with a
//! stream. Both eras of the protocol, as the client opens.
//!
//! Whatever this process spends is added to both sides of a ratio and hides what the proxy spends.
//! So fields are found by searching the raw bytes (`echo_server/messages.rs`); with `--parse` they are
//! parsed and written as JSON, as by a real server.
//!
//! The list of tools is empty, which costs no proxy anything; with `ECHO_TOOLS` it has so many.
//!
//! Tools: `echo` gives `payload` back, `later` answers after `ms` milliseconds, `never` does not
//! answer, `stats` tells how many calls and `notifications/cancelled` were seen.
//!
//! Not bounded: the length of a message and the number of pending calls. The only peer is our driver.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a server of its own in real time, not a part of the engine"
)]

#[path = "echo_server/http.rs"]
mod http;
#[path = "echo_server/messages.rs"]
mod messages;
#[path = "echo_server/stdio.rs"]
mod stdio;

use std::io;
use std::time::Duration;

use http::Form;
use messages::Reader;

fn main() -> io::Result<()> {
    let (mut parse, mut http, mut form) = (false, false, Form::Json);
    for word in std::env::args().skip(1) {
        match word.as_str() {
            "--parse" => parse = true,
            "--http" => http = true,
            "--sse" => form = Form::Stream,
            _ => return Err(io::Error::other("usage: echo-server [--parse] [--http [--sse]]")),
        }
    }
    start_slowly();
    let reader = Reader::new(parse);
    if http { http::serve(reader, form) } else { stdio::serve(reader) }
}

/// `ECHO_SLOW_START_MS`: as long as a launcher needs to load a server.
fn start_slowly() {
    if let Some(millis) = std::env::var("ECHO_SLOW_START_MS").ok().and_then(|text| text.parse().ok()) {
        std::thread::sleep(Duration::from_millis(millis));
    }
}
