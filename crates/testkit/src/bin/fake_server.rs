//! A deterministic MCP server on stdio that misbehaves on request.
//!
//! Each fault is one tool (`fake_server/tools.rs`) or, where it concerns the whole process, one flag
//! (`fake_server/flags.rs`). Everything else answers as a good server would. A call runs on a thread
//! of its own, so that a fault in one call leaves the others alone; ids and tokens are kept as the
//! raw JSON that arrived and are written back as they are.
//!
//! At the end of its input it ends as soon as the calls that will answer have answered. Whatever
//! happens it ends after a minute, so that a failed test leaves nothing behind.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a process of its own in real time, which is told its faults on its command line"
)]

#[path = "fake_server/call.rs"]
mod call;
#[path = "fake_server/flags.rs"]
mod flags;
#[path = "fake_server/processes.rs"]
mod processes;
#[path = "fake_server/server.rs"]
mod server;
#[path = "fake_server/tasks.rs"]
mod tasks;
#[path = "fake_server/tools.rs"]
mod tools;

use std::io::{self, BufRead, BufReader};
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use flags::{Flags, Role};
use server::Server;

/// The longest that anything of this program lives.
const LIFETIME: Duration = Duration::from_secs(60);

fn main() -> io::Result<()> {
    thread::spawn(|| {
        thread::sleep(LIFETIME);
        exit(99);
    });
    match Flags::read() {
        Role::Sleeper { ignores_term } => processes::sleep_for_ever(ignores_term),
        Role::Daemon => processes::fork_away(),
        Role::Server(flags) => serve(*flags),
    }
}

fn serve(flags: Flags) -> io::Result<()> {
    flags.misbehave_at_the_start()?;
    let ignores_eof = flags.ignores_eof;
    let server = Arc::new(Server::new(flags)?);
    let mut input = BufReader::new(io::stdin().lock());
    let mut line = Vec::new();
    while input.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            line.pop();
        }
        server.take(&line);
        line.clear();
    }
    if ignores_eof {
        processes::park();
    }
    server.wait_for_calls();
    Ok(())
}
