//! The parent of every server process: a small process of ours that outlives us by milliseconds.
//!
//! It is forked before any thread exists, has a session of its own and adopts orphans. It starts
//! and signals its server on request over a socket pair, and reports how it ended. When we are gone,
//! however that happened, the socket closes and it kills everything below it: grandchildren, double
//! forks, processes that ignore SIGTERM. A parent-death signal would reach only the first of them,
//! and would shoot a healthy server when the thread that started it ends.
//!
//! Requests are one byte, reports five.

use super::limits::{FileLimit, adopt_orphans};
use super::proc::{Root, Table, signal_descendants};
use super::streams::{CLOSED_ON_EXEC, End, close_on_exec, closed_on_exec_pipe};
use crate::program;
use crate::sys::report::Report;
use nix::cmsg_space;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use nix::sys::socket::{ControlMessage, ControlMessageOwned, MsgFlags, recvmsg, sendmsg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork, setsid};
use outlast_engine::event::{Exit, StartFailure};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::io::AsyncReadExt;

const START: u8 = b's';
const TERMINATE: u8 = b't';
const KILL: u8 = b'k';

/// How often descendants are killed that keep forking before the guardian gives up on them.
const KILL_ROUNDS: usize = 200;

/// Milliseconds that the start of a server may hold us up. It takes less than one; a program on a slow disk
/// takes longer, and then we need not be quick either.
const GO_FIRST: u8 = 5;

impl Report {
    /// Bytes of a report.
    const SIZE: usize = 5;

    fn encode(self) -> [u8; Report::SIZE] {
        let (kind, number) = match self {
            Report::Started => (b'r', 0),
            Report::StartFailed(StartFailure::NotFound) => (b'n', 0),
            Report::StartFailed(StartFailure::NotExecutable) => (b'x', 0),
            Report::StartFailed(StartFailure::Refused(errno)) => (b'f', errno),
            Report::Exited(Exit::Code(code)) => (b'c', i32::from(code)),
            Report::Exited(Exit::Signal(signal)) => (b'g', i32::from(signal)),
        };
        let [a, b, c, d] = number.to_be_bytes();
        [kind, a, b, c, d]
    }

    fn decode(bytes: [u8; Report::SIZE]) -> Option<Report> {
        let [kind, a, b, c, d] = bytes;
        let number = i32::from_be_bytes([a, b, c, d]);
        Some(match kind {
            b'r' => Report::Started,
            b'n' => Report::StartFailed(StartFailure::NotFound),
            b'x' => Report::StartFailed(StartFailure::NotExecutable),
            b'f' => Report::StartFailed(StartFailure::Refused(number)),
            b'c' => Report::Exited(Exit::Code(number as u8)),
            b'g' => Report::Exited(Exit::Signal(number as u8)),
            _ => return None,
        })
    }
}

/// Our guardians that live, by their process. Whoever starts one holds the lock until it is entered, so that
/// no guardian is ever taken for an orphan.
#[derive(Clone, Debug, Default)]
pub struct Guardians(Arc<Family>);

#[derive(Debug, Default)]
struct Family {
    living: Mutex<Vec<Pid>>,
    /// One of them was killed by somebody else.
    bereft: AtomicBool,
}

/// Our end of the line to the guardian.
#[derive(Debug)]
pub struct Guardian {
    socket: UnixStream,
    /// The guardian's process.
    pid: Pid,
    family: Guardians,
}

/// A server's three streams, as it gets them.
#[derive(Debug)]
struct Streams {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

/// The other ends of them.
#[derive(Debug)]
pub struct Ends {
    /// What it reads.
    pub to_server: End,
    /// What it writes.
    pub from_server: End,
    /// What it complains to.
    pub errors: End,
}

/// The guardian's reports, one after the other. None when the guardian is gone.
#[derive(Debug)]
pub struct Reports(UnixStream);

impl Reports {
    /// Waits on this thread.
    pub fn next(&mut self) -> Option<Report> {
        let mut bytes = [0; Report::SIZE];
        self.0.read_exact(&mut bytes).ok().and_then(|()| Report::decode(bytes))
    }

    /// Brings each to somebody.
    pub async fn each(self, mut told: impl FnMut(Report)) {
        let Ok(mut line) =
            self.0.set_nonblocking(true).and_then(|()| tokio::net::UnixStream::from_std(self.0))
        else {
            return;
        };
        let mut bytes = [0; Report::SIZE];
        while line.read_exact(&mut bytes).await.is_ok() {
            let Some(report) = Report::decode(bytes) else { return };
            told(report);
        }
    }
}

impl Guardians {
    /// Forks the guardian of a command. Must be called before any thread exists.
    pub fn fork(&self, command: &[OsString]) -> io::Result<Guardian> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut living = self.lock();
        // SAFETY: no other thread exists yet, so the child may use all of std.
        match unsafe { fork() }? {
            ForkResult::Parent { child } => {
                living.push(child);
                Ok(Guardian { socket: ours, pid: child, family: self.clone() })
            }
            ForkResult::Child => {
                drop(ours);
                let _ = guard(theirs, command);
                std::process::exit(0);
            }
        }
    }

    /// Starts the guardian of a command as a program of its own, because there are threads by now.
    pub fn spawn(&self, command: &program::Command, limit: Option<FileLimit>) -> io::Result<Guardian> {
        let (ours, theirs) = UnixStream::pair()?;
        let mut living = self.lock();
        let mut guardian = Command::new(crate::config::this_program()?);
        if let Some(directory) = &command.directory {
            guardian.current_dir(directory);
        }
        let child = guardian
            .envs(command.variables.iter().cloned())
            .arg0("outlast")
            .arg(GUARDIAN)
            .arg(FileLimit::word(limit))
            .args(&command.words)
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let pid = Pid::from_raw(child.id() as i32);
        living.push(pid);
        Ok(Guardian { socket: ours, pid, family: self.clone() })
    }

    /// Finishes the last of them; and what a killed one has left, if that has not been done yet.
    pub fn finish(&self, last: Vec<Guardian>) {
        last.into_iter().for_each(Guardian::finish);
        if self.0.bereft.load(Ordering::Relaxed) {
            end_orphans(&self.lock());
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Pid>> {
        self.0.living.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guardian {
    /// A second handle on the line, to read reports from.
    pub fn reports(&self) -> io::Result<Reports> {
        self.socket.try_clone().map(Reports)
    }

    /// What everything that it guards is below.
    pub fn root(&self) -> Root {
        self.pid
    }

    /// Starts the server on fresh pipes. What is left of an earlier one is killed first.
    pub fn start(&self) -> io::Result<Ends> {
        let (stdin, to_server) = closed_on_exec_pipe()?;
        let (from_server, stdout) = closed_on_exec_pipe()?;
        let (errors, stderr) = closed_on_exec_pipe()?;
        let fds = [&stdin, &stdout, &stderr].map(AsRawFd::as_raw_fd);
        let rights = [ControlMessage::ScmRights(&fds)];
        let request = [IoSlice::new(&[START])];
        sendmsg::<()>(self.socket.as_raw_fd(), &request, &rights, MsgFlags::empty(), None)?;
        Ok(Ends { to_server, from_server, errors })
    }

    /// Steps back for a moment, until the server that was asked for runs. A forked process often waits for
    /// the processor of the one that forked it: if we went on, the server would start when we have nothing
    /// more to do, instead of while we prepare ourselves.
    pub fn go_first(&self) {
        let mut report = [PollFd::new(self.socket.as_fd(), PollFlags::POLLIN)];
        // However it ends, the report is read later.
        let _ = poll(&mut report, PollTimeout::from(GO_FIRST));
    }

    /// Asks the server and all its descendants to end.
    pub fn terminate(&self) {
        self.request(TERMINATE);
    }

    /// Ends the server and all its descendants.
    pub fn kill(&self) {
        self.request(KILL);
    }

    fn request(&self, request: u8) {
        // A guardian that is gone has reported so by closing the line.
        let _ = (&self.socket).write_all(&[request]);
    }

    /// Waits for its end, but not for ever: somebody may have stopped it.
    fn wait(&self) -> nix::Result<WaitStatus> {
        for _ in 0..KILL_ROUNDS * 5 {
            match waitpid(self.pid, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => let_them_end(),
                ended => return ended,
            }
        }
        let _ = nix::sys::signal::kill(self.pid, Signal::SIGKILL);
        waitpid(self.pid, None)
    }

    /// Lets go of the line and waits until the guardian has ended, and with it everything below. What a
    /// guardian leaves that was killed is ended too.
    pub fn finish(self) {
        // Other handles on the line may still be around; this closes it for all of them.
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
        let ended = self.wait();
        let mut living = self.family.lock();
        living.retain(|pid| *pid != self.pid);
        if !matches!(ended, Ok(WaitStatus::Exited(..))) {
            end_orphans(&living);
        }
    }

    /// Somebody killed it: its line has closed by itself.
    pub fn is_lost(&self) {
        self.family.0.bereft.store(true, Ordering::Relaxed);
    }
}

/// Ends what guardians have left that were killed. It has come to us, because we adopt orphans too; it is
/// in no session of ours, because every guardian begins one; and nobody who guards is among it.
fn end_orphans(living: &[Pid]) {
    for _ in 0..KILL_ROUNDS {
        let table = Table::read();
        let mut orphans = table.children_elsewhere(Pid::this());
        orphans.retain(|pid| !living.contains(pid));
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            for pid in table.below(&orphan).into_iter().chain([orphan]) {
                // It may have ended since.
                let _ = nix::sys::signal::kill(pid, Signal::SIGKILL);
            }
            // Nobody else takes leave of it.
            let _ = waitpid(orphan, Some(WaitPidFlag::WNOHANG));
        }
        let_them_end();
    }
}

/// Gives processes that are ending a millisecond for it. There is no event to wait for: a SIGCHLD or a pidfd tells of one
/// process, and most of a tree become our children only when their parents have ended, so whom to wait for is known
/// only by looking at all of them again. Each loop that does so has a bound, and this between two rounds.
fn let_them_end() {
    let _ = poll(&mut [], PollTimeout::from(1u8));
}

/// What a guardian that was started as a program is called with.
pub const GUARDIAN: &str = "guardian-of";

/// The life of such a guardian: its line is its standard input, and its first word is the limit of
/// descriptors that its server gets.
pub fn run(words: &[OsString]) -> io::Result<()> {
    let (limit, command) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    FileLimit::take(limit);
    let line = std::io::stdin().as_fd().try_clone_to_owned()?;
    guard(UnixStream::from(line), command)
}

/// The guardian's life: serves requests until the line closes, then takes everything down.
fn guard(mut line: UnixStream, command: &[OsString]) -> io::Result<()> {
    let _ = setsid();
    adopt_orphans();
    let mut server = Ward::default();
    // The first request comes at once, and somebody waits for the server: everything else has time.
    let ended = match serve(&mut line, command, &mut server) {
        Ok(true) => watch(line, command, server),
        ended => ended.map(drop),
    };
    kill_all();
    ended
}

/// Serves requests and tells of the server's end, until the line closes.
fn watch(mut line: UnixStream, command: &[OsString], mut server: Ward) -> io::Result<()> {
    let_go_of_standard_streams()?;
    let (mut children, wake) = UnixStream::pair()?;
    children.set_nonblocking(true)?;
    signal_hook::low_level::pipe::register(signal_hook::consts::SIGCHLD, wake)?;
    // It may have ended before anybody listened.
    reap(&mut server, &mut line)?;
    loop {
        let mut ready =
            [PollFd::new(line.as_fd(), PollFlags::POLLIN), PollFd::new(children.as_fd(), PollFlags::POLLIN)];
        match poll(&mut ready, PollTimeout::NONE) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        let readable = |fd: &PollFd<'_>| fd.revents().is_some_and(|events| !events.is_empty());
        let (asked, child) = (readable(&ready[0]), readable(&ready[1]));
        if child {
            while matches!(children.read(&mut [0; 64]), Ok(count) if count > 0) {}
            reap(&mut server, &mut line)?;
        }
        if asked && !serve(&mut line, command, &mut server)? {
            return Ok(());
        }
    }
}

/// The server that is guarded.
#[derive(Default)]
struct Ward {
    /// Its process, while it runs.
    pid: Option<Pid>,
    /// Something was started before, of which descendants may be left.
    used: bool,
}

/// The client must see our streams close when we end, not when the guardian does.
fn let_go_of_standard_streams() -> io::Result<()> {
    let nowhere = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    nix::unistd::dup2_stdin(&nowhere)?;
    nix::unistd::dup2_stdout(&nowhere)?;
    nix::unistd::dup2_stderr(&nowhere)?;
    Ok(())
}

/// Serves one request; false when the line has closed.
fn serve(line: &mut UnixStream, command: &[OsString], ward: &mut Ward) -> io::Result<bool> {
    let Some((request, streams)) = receive(line)? else { return Ok(false) };
    let own = Pid::this();
    match (request, streams) {
        (START, Some(streams)) => {
            if std::mem::replace(&mut ward.used, true) {
                kill_all();
            }
            let report = match start(command, streams) {
                Ok(pid) => {
                    ward.pid = Some(pid);
                    Report::Started
                }
                Err(error) => Report::StartFailed(failure(&error)),
            };
            line.write_all(&report.encode())?;
        }
        (TERMINATE, _) => drop(signal_descendants(own, Signal::SIGTERM)),
        (KILL, _) => drop(signal_descendants(own, Signal::SIGKILL)),
        _ => {}
    }
    Ok(true)
}

fn receive(line: &UnixStream) -> io::Result<Option<(u8, Option<Streams>)>> {
    let mut byte = [0];
    let mut space = cmsg_space!([RawFd; 3]);
    let mut parts = [IoSliceMut::new(&mut byte)];
    let message = recvmsg::<()>(line.as_raw_fd(), &mut parts, Some(&mut space), CLOSED_ON_EXEC)?;
    if message.bytes == 0 {
        return Ok(None);
    }
    let mut fds = Vec::new();
    for control in message.cmsgs()? {
        if let ControlMessageOwned::ScmRights(received) = control {
            // SAFETY: the kernel has just made these descriptors for us alone.
            fds.extend(received.into_iter().map(|fd| close_on_exec(unsafe { OwnedFd::from_raw_fd(fd) })));
        }
    }
    let streams = <[OwnedFd; 3]>::try_from(fds).ok();
    let streams = streams.map(|[stdin, stdout, stderr]| Streams { stdin, stdout, stderr });
    Ok(Some((byte[0], streams)))
}

fn start(command: &[OsString], streams: Streams) -> io::Result<Pid> {
    let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let mut command = Command::new(program);
    command.args(arguments);
    for (name, _) in crate::config::own_variables() {
        command.env_remove(name);
    }
    command.stdin(Stdio::from(streams.stdin)).stdout(Stdio::from(streams.stdout));
    command.stderr(Stdio::from(streams.stderr)).process_group(0);
    let child = command.spawn()?;
    Ok(Pid::from_raw(child.id() as i32))
}

/// Why a command can certainly not be started, as far as its file tells without starting it.
pub fn missing(command: &[OsString]) -> Option<StartFailure> {
    use nix::unistd::{AccessFlags, access};
    let program = std::path::Path::new(command.first()?);
    let folders = match program.components().count() {
        // A bare name is looked for; anything else is a path from here.
        1 if !program.as_os_str().to_string_lossy().contains('/') => crate::config::search_path(),
        _ => vec![std::path::PathBuf::new()],
    };
    let found: Vec<_> =
        folders.iter().map(|folder| folder.join(program)).filter(|path| path.is_file()).collect();
    if found.is_empty() {
        return Some(StartFailure::NotFound);
    }
    let runs = found.iter().any(|path| access(path, AccessFlags::X_OK).is_ok());
    (!runs).then_some(StartFailure::NotExecutable)
}

fn failure(error: &io::Error) -> StartFailure {
    match error.kind() {
        io::ErrorKind::NotFound => StartFailure::NotFound,
        io::ErrorKind::PermissionDenied => StartFailure::NotExecutable,
        _ => match error.raw_os_error() {
            Some(nix::libc::ENOEXEC) => StartFailure::NotExecutable,
            errno => StartFailure::Refused(errno.unwrap_or_default()),
        },
    }
}

/// Takes leave of every child that has ended; reports the server among them.
fn reap(ward: &mut Ward, line: &mut UnixStream) -> io::Result<()> {
    loop {
        let (pid, exit) = match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::Exited(pid, code)) => (pid, Exit::Code(code as u8)),
            Ok(WaitStatus::Signaled(pid, signal, _)) => (pid, Exit::Signal(signal as u8)),
            Ok(WaitStatus::StillAlive) | Err(_) => return Ok(()),
            Ok(_) => continue,
        };
        if ward.pid == Some(pid) {
            ward.pid = None;
            line.write_all(&Report::Exited(exit).encode())?;
        }
    }
}

/// Kills everything below us until nothing is left. Orphans come to us, so each round reaches what
/// the one before uncovered.
fn kill_all() {
    for _ in 0..KILL_ROUNDS {
        signal_descendants(Pid::this(), Signal::SIGKILL);
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => break,
                Ok(_) => {}
                Err(_) => return,
            }
        }
        let_them_end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process in a session of its own, as a guardian and its orphans are.
    fn in_another_session() -> std::process::Child {
        let mut command = Command::new("cat");
        command.stdin(Stdio::piped()).stdout(Stdio::null());
        // SAFETY: setsid may be called between fork and exec.
        unsafe { command.pre_exec(|| setsid().map(drop).map_err(io::Error::from)) };
        command.spawn().unwrap()
    }

    #[test]
    fn what_a_killed_guardian_left_is_ended_and_its_neighbours_are_not() {
        let (mut guardian, mut orphan) = (in_another_session(), in_another_session());
        let mut ours = Command::new("cat").stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        end_orphans(&[Pid::from_raw(guardian.id() as i32)]);
        assert!(guardian.try_wait().unwrap().is_none(), "it guards");
        assert!(ours.try_wait().unwrap().is_none(), "it is in our session, so no guardian started it");
        assert!(!matches!(orphan.try_wait(), Ok(None)), "it was nobody's");
        for mut child in [guardian, ours] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn reports_survive_the_line() {
        for report in [
            Report::Started,
            Report::StartFailed(StartFailure::NotFound),
            Report::StartFailed(StartFailure::NotExecutable),
            Report::StartFailed(StartFailure::Refused(11)),
            Report::Exited(Exit::Code(255)),
            Report::Exited(Exit::Signal(9)),
        ] {
            assert_eq!(Report::decode(report.encode()), Some(report));
        }
        assert_eq!(Report::decode([0; 5]), None);
    }
}
