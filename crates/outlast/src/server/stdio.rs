//! A server behind three pipes, started by the guardian.

use crate::driver::{Driver, Peer};
use crate::lines::{Cut, Lines};
use crate::sys::guardian::{Ends, Reports};
use crate::sys::proc::Root;
use crate::sys::report::Report;
use crate::sys::streams::{Sink, Source};
use bytes::Bytes;
use outlast_engine::event::Exit;
use outlast_engine::id::{Run, ServerId};
use outlast_engine::{Event, wire};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long a stream must be quiet before its large buffers are given back.
const QUIET: Duration = Duration::from_secs(1);

/// Bytes of stderr read at once.
const STDERR: usize = 8 << 10;

/// Begins to read what a server says, and gives a way to it.
pub fn listen(driver: &Arc<Driver>, ends: Ends, id: ServerId, run: Run) -> io::Result<Arc<Sink>> {
    let sink = Arc::new(Sink::pipe(ends.to_server)?);
    let source = Source::pipe(ends.from_server)?;
    let errors = Source::pipe(ends.errors)?;
    tokio::spawn(read(driver.clone(), source, id, run));
    tokio::spawn(read_stderr(driver.clone(), errors, id, run));
    Ok(sink)
}

/// Messages of one read after which others have their turn. A server that floods always has more to read, and would
/// keep everybody's calls waiting for a hundred reads.
const MANY: usize = 64;

async fn read(driver: Arc<Driver>, mut source: Source, id: ServerId, run: Run) {
    let mut lines = Lines::new(driver.max_message());
    driver.may_read(Peer::Server(id)).await;
    loop {
        let count = read_or_rest(&mut source, &mut lines).await;
        let mut messages = 0;
        let may_go_on = driver.turn_of_reader(Peer::Server(id), |state| {
            let mut feed = |cut| {
                messages += 1;
                match cut {
                    Cut::Line(line) => state.feed(Event::FromServer(id, run, wire::scan(line))),
                    Cut::Oversized(line) => state.feed(Event::ServerOversized(id, run, line)),
                }
            };
            match count {
                0 => {
                    lines.finish(&mut feed);
                    state.feed(Event::OutputClosed(id, run));
                }
                _ => lines.read(&mut feed),
            }
        });
        if count == 0 {
            return;
        }
        if !may_go_on {
            driver.may_read(Peer::Server(id)).await;
        }
        if messages > MANY {
            tokio::task::yield_now().await;
        }
    }
}

/// Reads what is there; 0 at the end or on an error. In quiet, large buffers are given back.
pub async fn read_or_rest(source: &mut Source, lines: &mut Lines) -> usize {
    if lines.is_large() {
        source.widen();
        let read = tokio::time::timeout(QUIET, source.read(lines.space())).await;
        match read {
            Ok(read) => return read.unwrap_or(0),
            Err(_quiet) => lines.release(),
        }
    }
    source.read(lines.space()).await.unwrap_or(0)
}

async fn read_stderr(driver: Arc<Driver>, mut source: Source, id: ServerId, run: Run) {
    let mut buffer = Vec::with_capacity(STDERR);
    while let Ok(1..) = source.read(&mut buffer).await {
        let bytes = Bytes::copy_from_slice(&buffer);
        buffer.clear();
        driver.turn(|state| state.stderr(id, run, bytes));
    }
}

/// Brings the guardian's reports; each is about the server that was started last.
pub async fn read_reports(driver: Arc<Driver>, id: ServerId, guardian: Root, reports: Reports) {
    let told = |report| {
        let run = driver.current_run(id);
        let event = match report {
            Report::Started => Event::Started(id, run),
            Report::StartFailed(why) => Event::StartFailed(id, run, why),
            Report::Exited(exit) => Event::Exited(id, run, exit),
        };
        driver.turn(|state| state.feed(event));
    };
    reports.each(told).await;
    // We let go of it, or somebody killed it. Then what it guarded is ended before another one is started.
    if let Some(guardian) = driver.lose_guardian(id, &guardian) {
        guardian.is_lost();
        // A thread that cannot be had leaves it to the end of the process.
        let _ = tokio::task::spawn_blocking(move || guardian.finish()).await;
        let run = driver.current_run(id);
        driver.turn(|state| state.feed(Event::Exited(id, run, Exit::Signal(9))));
    }
}
