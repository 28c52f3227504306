//! Standard streams and pipes without blocking.

use nix::fcntl::{OFlag, open};
use nix::sys::socket::MsgFlags;
use nix::sys::stat::{Mode, SFlag, fstat};
use nix::unistd::pipe;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdUnixStream;
use std::thread::JoinHandle;
use tokio::io::{AsyncReadExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe as tokio_pipe;

/// One end of a pipe.
pub type End = OwnedFd;

/// Something to read from without blocking a thread.
#[derive(Debug)]
pub enum Source {
    /// A pipe, and whether it has been prepared for large messages.
    Pipe(tokio_pipe::Receiver, bool),
    /// A socket: Node gives its children sockets.
    Socket(UnixStream),
}

impl Source {
    /// The reading end of a pipe.
    pub fn pipe(end: OwnedFd) -> io::Result<Source> {
        Ok(Source::Pipe(tokio_pipe::Receiver::from_owned_fd(end)?, false))
    }

    /// Reads what is there into the room that is left; 0 at the end.
    pub async fn read(&mut self, space: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Source::Pipe(pipe, _) => pipe.read_buf(space).await,
            Source::Socket(socket) => socket.read_buf(space).await,
        }
    }

    /// Prepares for large messages.
    pub fn widen(&mut self) {
        if let Source::Pipe(pipe, wide @ false) = self {
            *wide = true;
            widen(pipe);
        }
    }
}

/// Something to write to without blocking a thread.
#[derive(Debug)]
pub enum Sink {
    /// A pipe.
    Pipe(tokio_pipe::Sender),
    /// A socket.
    Socket(UnixStream),
}

impl Sink {
    /// The writing end of a pipe.
    pub fn pipe(end: OwnedFd) -> io::Result<Sink> {
        Ok(Sink::Pipe(tokio_pipe::Sender::from_owned_fd(end)?))
    }

    /// Writes what fits at once.
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Sink::Pipe(pipe) => pipe.try_write(bytes),
            Sink::Socket(socket) => socket.try_write(bytes),
        }
    }

    /// The same of several parts.
    pub fn try_write_parts(&self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Sink::Pipe(pipe) => pipe.try_write_vectored(slices),
            Sink::Socket(socket) => socket.try_write_vectored(slices),
        }
    }

    /// Prepares for large messages.
    pub fn widen(&self) {
        if let Sink::Pipe(pipe) = self {
            widen(pipe);
        }
    }

    /// Waits until something fits.
    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Sink::Pipe(pipe) => pipe.writable().await,
            Sink::Socket(socket) => socket.writable().await,
        }
    }

    /// Waits until nobody reads any more.
    pub async fn closed(&self) {
        let interest = Interest::ERROR;
        let ended = match self {
            Sink::Pipe(pipe) => pipe.ready(interest).await.map(|_| ()),
            Sink::Socket(socket) => socket.ready(interest).await.map(|_| ()),
        };
        if ended.is_err() {
            // The reactor is gone, and with it everything that could wait here.
            std::future::pending::<()>().await;
        }
    }
}

/// Our standard input. A terminal, file or device is read by a thread of its own: O_NONBLOCK on a
/// terminal would leak into the shell that started us.
pub fn stdin_source() -> io::Result<Source> {
    let fd = io::stdin().as_fd().try_clone_to_owned()?;
    match kind_of(&fd)? {
        Kind::Pipe => Source::pipe(own_description(fd, OFlag::O_RDONLY)),
        Kind::Socket => Ok(Source::Socket(socket(fd)?)),
        Kind::Other => {
            let (reader, writer) = pipe()?;
            std::thread::Builder::new().name("stdin".into()).spawn(move || copy(fd, writer))?;
            Source::pipe(reader)
        }
    }
}

/// Our standard output, and the thread that carries it on where it cannot be written without
/// blocking; that thread ends when the sink is dropped and all is written.
pub fn stdout_sink() -> io::Result<(Sink, Option<JoinHandle<()>>)> {
    let fd = io::stdout().as_fd().try_clone_to_owned()?;
    match kind_of(&fd)? {
        Kind::Pipe => Ok((Sink::pipe(own_description(fd, OFlag::O_WRONLY))?, None)),
        Kind::Socket => Ok((Sink::Socket(socket(fd)?), None)),
        Kind::Other => {
            let (reader, writer) = pipe()?;
            let thread = std::thread::Builder::new().name("stdout".into()).spawn(move || copy(reader, fd))?;
            Ok((Sink::pipe(writer)?, Some(thread)))
        }
    }
}

enum Kind {
    Pipe,
    Socket,
    Other,
}

fn kind_of(fd: &OwnedFd) -> io::Result<Kind> {
    let mode = SFlag::from_bits_truncate(fstat(fd)?.st_mode) & SFlag::S_IFMT;
    Ok(match mode {
        SFlag::S_IFIFO => Kind::Pipe,
        SFlag::S_IFSOCK => Kind::Socket,
        _ => Kind::Other,
    })
}

/// The same pipe under a description of our own, so that O_NONBLOCK is nobody else's business.
/// Where that is not possible the shared one must do.
fn own_description(fd: OwnedFd, access: OFlag) -> OwnedFd {
    use std::os::fd::AsRawFd;
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    open(path.as_str(), access | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC, Mode::empty()).unwrap_or(fd)
}

fn socket(fd: OwnedFd) -> io::Result<UnixStream> {
    let socket = StdUnixStream::from(fd);
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

/// Copies until either side ends. Runs on a thread of its own, where blocking harms nobody.
fn copy(from: OwnedFd, to: OwnedFd) {
    let (mut from, mut to) = (File::from(from), File::from(to));
    let mut buffer = [0; 64 << 10];
    while let Ok(count) = from.read(&mut buffer) {
        if count == 0 || to.write_all(&buffer[..count]).is_err() {
            return;
        }
    }
}

/// Bytes that a pipe holds once large messages have been seen on it. By default it is 64 KiB, and
/// a message of ten megabytes changes sides a hundred and sixty times.
#[cfg(target_os = "linux")]
const LARGE_PIPE: i32 = 1 << 20;

/// Makes a pipe larger where the system allows it.
fn widen(pipe: &impl AsFd) {
    #[cfg(target_os = "linux")]
    // Beyond the user's share of pipe memory it stays as it is, and only speed is lost.
    let _ = nix::fcntl::fcntl(pipe, nix::fcntl::FcntlArg::F_SETPIPE_SZ(LARGE_PIPE));
    #[cfg(not(target_os = "linux"))]
    let _ = pipe;
}

/// A pipe whose ends are closed in every program that is started.
pub fn closed_on_exec_pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    #[cfg(target_os = "linux")]
    return Ok(nix::unistd::pipe2(OFlag::O_CLOEXEC)?);
    #[cfg(not(target_os = "linux"))]
    {
        let (reader, writer) = pipe()?;
        Ok((close_on_exec(reader), close_on_exec(writer)))
    }
}

/// Asks for descriptors that are closed in every program that is started; `close_on_exec` where the system cannot.
#[cfg(target_os = "linux")]
pub const CLOSED_ON_EXEC: MsgFlags = MsgFlags::MSG_CMSG_CLOEXEC;
#[cfg(not(target_os = "linux"))]
pub const CLOSED_ON_EXEC: MsgFlags = MsgFlags::empty();

/// The same descriptor, closed in every program that is started. On Linux it was made so.
pub fn close_on_exec(fd: OwnedFd) -> OwnedFd {
    #[cfg(not(target_os = "linux"))]
    // An open descriptor takes this flag always.
    let _ = nix::fcntl::fcntl(&fd, nix::fcntl::FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC));
    fd
}
