//! What the driver holds of each server: the way out to it, and how it is started.

use crate::callbacks::Callers;
use crate::driver::{Driver, Peer};
use crate::outbox::Outbox;
use crate::program::{Command, Program};
use crate::server::http::{Feed, Happening, Remote, Session};
use crate::server::stdio;
use crate::sys::guardian::{Ends, Guardian, Guardians};
use crate::sys::limits::FileLimit;
use crate::sys::proc::Root;
use crate::sys::streams::Sink;
use bytes::Bytes;
use outlast_engine::Event;
use outlast_engine::event::{Exit, StartFailure};
use outlast_engine::id::{Run, ServerId};
use outlast_engine::wire::Outgoing;
use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use tokio::sync::Notify;

/// More than this waiting at once is called large.
const LARGE: usize = 128 << 10;

/// A line on stderr that is longer is cut.
const LONG_LINE: usize = 8 << 10;

/// What the tasks of one peer wait for.
#[derive(Debug, Default)]
pub struct Signals {
    /// Something could not be written at once.
    pub backlog: Notify,
    /// It may be read from again.
    pub may_read: Notify,
}

/// One server.
#[derive(Debug)]
pub enum Link {
    /// Behind pipes.
    Process(Process),
    /// Behind HTTP.
    Remote(Session, Run),
}

/// A server's process.
#[derive(Debug)]
pub struct Process {
    /// Which of its lives.
    pub run: Run,
    /// The way to it.
    pub outlet: Outlet,
    /// Bytes that were read on stderr, for signs of life.
    pub stderr: u64,
    /// The beginning of a line on stderr whose end has not come.
    half_line: Vec<u8>,
    /// What its tasks wait for.
    pub signals: Arc<Signals>,
    /// Who guards it; nobody if it was lost.
    guardian: Option<Guardian>,
    /// What it was started by.
    command: Command,
}

impl Process {
    /// Cuts what it wrote to stderr into lines, each with its name before it.
    pub fn lines_of_stderr(&mut self, name: &str, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len() + 64);
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.half_line.extend_from_slice(part);
            if part.ends_with(b"\n") || self.half_line.len() > LONG_LINE {
                let line = std::mem::take(&mut self.half_line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                out.extend_from_slice(&[name.as_bytes(), b": ", line, b"\n"].concat());
            }
        }
        out
    }

    /// Its guardian, if that starts this command; another one is let go of.
    fn guardian_for(&mut self, command: &Command) -> Option<Guardian> {
        let guardian = self.guardian.take()?;
        if self.command == *command {
            return Some(guardian);
        }
        tokio::task::spawn_blocking(move || guardian.finish());
        None
    }

    /// The process that everything of it descends from.
    pub fn root(&self) -> Option<Root> {
        self.guardian.as_ref().map(Guardian::root)
    }

    /// Its guardian was killed: what it has left is to be ended. `None` if that is another one by now.
    pub fn lose_guardian(&mut self, root: &Root) -> Option<Guardian> {
        self.guardian.take_if(|guardian| guardian.root() == *root)
    }
}

impl Link {
    /// Which of its lives.
    pub fn run(&self) -> Run {
        match self {
            Link::Process(process) => process.run,
            Link::Remote(_, run) => *run,
        }
    }

    /// Nothing more will be sent to it.
    pub fn close_input(&mut self) {
        match self {
            Link::Process(process) => process.outlet.closing = true,
            Link::Remote(session, _) => session.close(),
        }
    }

    /// Asks it to end.
    pub fn terminate(&self) {
        match self {
            Link::Process(process) => process.guardian.iter().for_each(Guardian::terminate),
            Link::Remote(session, _) => session.kill(),
        }
    }

    /// Ends it.
    pub fn kill(&self) {
        match self {
            Link::Process(process) => process.guardian.iter().for_each(Guardian::kill),
            Link::Remote(session, _) => session.kill(),
        }
    }

    /// The guardian of its process, to be finished.
    pub fn guardian(self) -> Option<Guardian> {
        match self {
            Link::Process(process) => process.guardian,
            Link::Remote(..) => None,
        }
    }
}

/// How servers are started.
#[derive(Debug, Default)]
pub struct Starter {
    /// The guardian that was forked before there were threads, and the server that it has been asked for.
    pub forked: Option<(Guardian, Ends)>,
    /// How the servers of each definition are reached, by its name.
    pub programs: BTreeMap<Box<str>, Program>,
    /// All of them.
    pub guardians: Guardians,
    /// How many descriptors a server may have, if we have raised that for ourselves.
    pub file_limit: Option<FileLimit>,
    /// Who is called back.
    pub callers: Callers,
}

impl Starter {
    /// Starts a server, in place of the one that was there before.
    pub fn start(
        &mut self,
        driver: &Arc<Driver>,
        name: &str,
        (id, run): (ServerId, Run),
        before: Option<Link>,
    ) -> Result<(Link, Option<Event>), StartFailure> {
        let command = match self.programs.get(name) {
            Some(Program::Remote(remote)) => return Ok(connect(driver, remote, id, run, before)),
            Some(Program::Command(command)) => command.clone(),
            // The engine knows no more definitions than there are programs.
            None => return Err(StartFailure::NotFound),
        };
        let refused = |error: io::Error| StartFailure::Refused(error.raw_os_error().unwrap_or_default());
        let before = match before {
            Some(Link::Process(process)) => Some(process),
            _ => None,
        };
        let is_new = before.is_none();
        let (guardian, outbox, signals) = before
            .map(|mut process| (process.guardian_for(&command), process.outlet.outbox, process.signals))
            .unwrap_or_default();
        let (guardian, begun) = match guardian {
            Some(guardian) => (guardian, None),
            None => self.guard(driver, id, &command).map_err(refused)?,
        };
        if is_new {
            tokio::spawn(driver.clone().pump(Peer::Server(id)));
        }
        let outlet = Outlet { outbox, ..Outlet::default() };
        let begun = begun.map_or_else(|| guardian.start(), Ok);
        let guardian = Some(guardian);
        let mut process =
            Process { run, outlet, stderr: 0, half_line: Vec::new(), signals, guardian, command };
        if run > Run(0) {
            process.outlet.outbox.clear();
        }
        match begun.and_then(|ends| stdio::listen(driver, ends, id, run)) {
            Ok(sink) => {
                process.outlet.sink = Some(sink);
                Ok((Link::Process(process), None))
            }
            Err(error) => Ok((Link::Process(process), Some(Event::StartFailed(id, run, refused(error))))),
        }
    }

    /// A guardian for a new server, the server if it has been asked for, and who listens to the guardian.
    fn guard(
        &mut self,
        driver: &Arc<Driver>,
        id: ServerId,
        command: &Command,
    ) -> io::Result<(Guardian, Option<Ends>)> {
        let (guardian, begun) = match self.forked.take() {
            Some((guardian, ends)) => (guardian, Some(ends)),
            None => (self.guardians.spawn(command, self.file_limit)?, None),
        };
        tokio::spawn(stdio::read_reports(driver.clone(), id, guardian.root(), guardian.reports()?));
        Ok((guardian, begun))
    }
}

/// The same run again is a connection that could not be made before; another one is a new session.
fn connect(
    driver: &Arc<Driver>,
    remote: &Arc<Remote>,
    id: ServerId,
    run: Run,
    before: Option<Link>,
) -> (Link, Option<Event>) {
    match before {
        Some(Link::Remote(session, same)) if same == run => {
            session.connect();
            (Link::Remote(session, run), None)
        }
        before => {
            if let Some(link) = before {
                link.kill();
            }
            let feed = Arc::new(Told { driver: Arc::downgrade(driver), id, run });
            let session = Session::new(remote.clone(), feed);
            (Link::Remote(session, run), Some(Event::Started(id, run)))
        }
    }
}

/// Brings what happens on a remote session to the engine.
struct Told {
    driver: Weak<Driver>,
    id: ServerId,
    run: Run,
}

impl Feed for Told {
    fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>) {
        let Some(driver) = self.driver.upgrade() else { return };
        let (id, run) = (self.id, self.run);
        driver.turn(|state| {
            for happening in happenings {
                match happening {
                    Happening::FromStream(attempt, line) => {
                        state.feed(Event::FromStream(id, run, attempt, line))
                    }
                    Happening::FromStanding(line) => state.feed(Event::FromServer(id, run, line)),
                    Happening::Oversized(line) => state.feed(Event::ServerOversized(id, run, line)),
                    Happening::StreamEnded(attempt, end) => {
                        state.feed(Event::StreamEnded(id, run, attempt, end))
                    }
                    Happening::StandingEnded(end) => state.feed(Event::StandingEnded(id, run, end)),
                    Happening::Trouble(attempt, trouble) => {
                        state.feed(Event::Trouble(id, run, attempt, trouble))
                    }
                    Happening::Undelivered(answer, why) => {
                        state.feed(Event::Undelivered(id, run, answer, why))
                    }
                    Happening::Connected => state.feed(Event::Started(id, run)),
                    Happening::Closed => {
                        state.feed(Event::OutputClosed(id, run));
                        state.feed(Event::Exited(id, run, Exit::Code(0)));
                    }
                }
            }
        });
    }

    fn congestion(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        let driver = self.driver.upgrade().filter(|driver| driver.client_is_full())?;
        Some(Box::pin(async move { driver.client_has_room().await }))
    }
}

/// The way out to one peer.
#[derive(Debug, Default)]
pub struct Outlet {
    /// What waits.
    pub outbox: Outbox,
    /// Where it goes.
    pub sink: Option<Arc<Sink>>,
    /// Close it when all is written.
    pub closing: bool,
    /// Nobody reads there any more.
    pub broken: bool,
    /// It has been prepared for large messages.
    wide: bool,
}

/// How much was written.
#[derive(Debug)]
pub enum Wrote {
    /// All there was.
    All,
    /// What fitted.
    Some,
    /// Nobody reads there any more; [`Outlet::take_unsent`] has the lines that never left.
    Broken,
}

impl Outlet {
    /// Adds a message.
    pub fn push(&mut self, message: &Outgoing) {
        if !self.broken {
            self.outbox.push(message);
        }
    }

    /// What feeds it must wait.
    pub fn is_full(&self) -> bool {
        self.outbox.is_congested() && !self.broken
    }

    /// The lines that can never leave, once nobody reads there any more.
    pub fn take_unsent(&mut self) -> Vec<Bytes> {
        let unsent = self.outbox.unsent();
        self.outbox.clear();
        unsent
    }

    /// Writes what fits at once.
    pub fn write(&mut self) -> Wrote {
        while let Some(sink) = self.sink.as_ref().filter(|_| !self.outbox.is_empty()) {
            let wrote = match self.outbox.only_part() {
                Some(part) => sink.try_write(part),
                None => {
                    let (slices, count) = self.outbox.slices();
                    sink.try_write_parts(&slices[..count])
                }
            };
            match wrote {
                Ok(count) => self.outbox.consume(count),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if !self.wide && self.outbox.len() > LARGE {
                        self.wide = true;
                        sink.widen();
                        continue;
                    }
                    return Wrote::Some;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.broken = true;
                    self.sink = None;
                    return Wrote::Broken;
                }
            }
        }
        if self.closing && self.outbox.is_empty() {
            self.sink = None;
        }
        Wrote::All
    }
}
