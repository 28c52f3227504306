//! The server under examination as a process: started and stopped by the guardian, so that nothing
//! of it can outlive us, and heard on one channel.
//!
//! Not here: what its lines mean (`talk.rs`).

use super::{Failure, bounds};
use crate::clock::Clock;
use crate::doctor::glimpse;
use crate::lines::{Cut, Lines};
use crate::sys::guardian::{Guardian, Guardians, Reports};
use crate::sys::proc;
use crate::sys::report::Report;
use crate::sys::streams::End;
use bytes::Bytes;
use outlast_engine::Mono;
use outlast_engine::event::Exit;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Builder;

/// What comes from the server or its guardian.
#[derive(Debug)]
pub enum Heard {
    /// A line on stdout.
    Line(Bytes),
    /// A line on stdout that was too long.
    TooLong,
    /// The end of stdout.
    Closed,
    /// Bytes on stderr; none at its end.
    Stderr(Vec<u8>),
    /// What became of the process.
    Report(Report),
}

/// The number of the process that something is about.
type Run = u32;

/// The guardian's reports are about whatever runs.
const EVERY: Run = 0;

/// Where processes of one command are started, one after the other.
pub struct Lab {
    guardian: Guardian,
    clock: Clock,
    sender: SyncSender<(Run, Heard)>,
    heard: Receiver<(Run, Heard)>,
    run: Run,
    stdin: Option<SyncSender<Vec<u8>>>,
}

impl Lab {
    /// Forks the guardian. Must be called before any thread exists.
    pub fn open(command: &[OsString]) -> io::Result<Lab> {
        let guardian = Guardians::default().fork(command)?;
        let (sender, heard) = sync_channel(bounds::HEARD);
        let (reports, to) = (guardian.reports()?, sender.clone());
        Builder::new().name("reports".into()).spawn(move || hear_reports(reports, &to))?;
        Ok(Lab { guardian, clock: Clock::start(), sender, heard, run: EVERY, stdin: None })
    }

    pub fn now(&self) -> Mono {
        self.clock.now().mono
    }

    /// Starts a fresh process.
    pub fn start(&mut self) -> Result<(), Failure> {
        self.run += 1;
        let began = self.now();
        let ends = self.guardian.start()?;
        // Nobody listens to the new process yet, so nothing that it says can be missed here.
        loop {
            match self.next(began + bounds::EXEC) {
                Some(Heard::Report(Report::Started)) => break,
                Some(Heard::Report(Report::StartFailed(why))) => return Err(why.into()),
                Some(_) => {}
                None => return Err(io::Error::from(io::ErrorKind::TimedOut).into()),
            }
        }
        self.listen(ends.from_server, ends.errors)?;
        self.stdin = Some(write_on_a_thread(ends.to_server)?);
        Ok(())
    }

    fn listen(&self, stdout: End, stderr: End) -> io::Result<()> {
        let (run, to) = (self.run, self.sender.clone());
        Builder::new().name("stdout".into()).spawn(move || hear_stdout(stdout, run, &to))?;
        let to = self.sender.clone();
        Builder::new().name("stderr".into()).spawn(move || hear_stderr(stderr, run, &to))?;
        Ok(())
    }

    /// What comes next from the process that runs; nothing if it does not come in time.
    pub fn next(&mut self, until: Mono) -> Option<Heard> {
        loop {
            let left = until.since(self.now());
            // A server that never stops talking must not make time stand still.
            if left.is_zero() {
                return None;
            }
            let (run, heard) = self.heard.recv_timeout(left).ok()?;
            if run == EVERY || run == self.run {
                return Some(heard);
            }
        }
    }

    /// Sends a line, if the server reads.
    pub fn send(&self, line: &serde_json::Value) {
        if let Some(stdin) = &self.stdin {
            // A server that does not read will not answer, and that is noticed.
            let _ = stdin.try_send(format!("{line}\n").into_bytes());
        }
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Asks the process and its descendants to end.
    pub fn terminate(&self) {
        self.guardian.terminate();
    }

    /// Ends the process and its descendants.
    pub fn kill(&mut self) {
        self.close_stdin();
        self.guardian.kill();
    }

    /// What runs below the guardian: the process and its descendants, for a person.
    pub fn running(&self) -> Vec<String> {
        let name = |pid| format!("{} ({pid})", glimpse(proc::name(pid).as_bytes(), bounds::SHOWN));
        proc::descendants(&self.guardian.root()).into_iter().map(name).collect()
    }

    /// Ends everything.
    pub fn close(self) {
        self.guardian.finish();
    }
}

fn hear_reports(mut reports: Reports, to: &SyncSender<(Run, Heard)>) {
    loop {
        let report = reports.next();
        // Without a guardian there is no server either: everything below it went with it.
        let last = report.is_none();
        let report = report.unwrap_or(Report::Exited(Exit::Signal(9)));
        if to.send((EVERY, Heard::Report(report))).is_err() || last {
            return;
        }
    }
}

fn hear_stdout(pipe: End, run: Run, to: &SyncSender<(Run, Heard)>) {
    let mut pipe = File::from(pipe);
    let mut lines = Lines::new(bounds::LINE);
    let mut each = |cut| {
        let heard = match cut {
            Cut::Line(line) => Heard::Line(line),
            Cut::Oversized(_) => Heard::TooLong,
        };
        // Nobody listens any more only when we end.
        let _ = to.send((run, heard));
    };
    let mut bytes = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
        lines.add(&bytes[..count], &mut each);
    }
    lines.finish(&mut each);
    let _ = to.send((run, Heard::Closed));
}

fn hear_stderr(pipe: End, run: Run, to: &SyncSender<(Run, Heard)>) {
    let mut pipe = File::from(pipe);
    let mut bytes = [0; 8 << 10];
    while let Ok(count @ 1..) = pipe.read(&mut bytes) {
        if to.send((run, Heard::Stderr(bytes[..count].to_vec()))).is_err() {
            return;
        }
    }
    let _ = to.send((run, Heard::Stderr(Vec::new())));
}

/// The server may not read, so a thread of its own writes. It closes the pipe when nobody sends.
fn write_on_a_thread(pipe: End) -> io::Result<SyncSender<Vec<u8>>> {
    let (sender, lines) = sync_channel::<Vec<u8>>(bounds::UNREAD);
    Builder::new().name("stdin".into()).spawn(move || {
        let mut pipe = File::from(pipe);
        for line in lines {
            if pipe.write_all(&line).is_err() {
                return;
            }
        }
    })?;
    Ok(sender)
}
