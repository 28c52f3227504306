//! The floor of the benchmark: a process in the middle that only copies bytes.
//!
//! `floor COMMAND...` copies between its own pipes and those of a child; `floor --connect ADDRESS`
//! accepts connections on a loopback port that it names on stderr, and copies each to one of its own
//! to that address.
//!
//! Ratios of `cargo xtask bench` are against this program or shown beside it, so it is as fast as
//! simple code can be: on pipes one blocking thread per direction, and one read and one write per
//! chunk. It does not look at a single byte. It does not use `splice` either, because a proxy that must see
//! messages cannot.

#![allow(clippy::disallowed_methods, reason = "a program of its own: its arguments are real")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, ExitCode, Stdio};

use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

/// What a Linux pipe holds by default: a larger buffer would never be filled.
const CHUNK: usize = 64 * 1024;

fn main() -> io::Result<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let Some(first) = words.next() else {
        return Err(io::Error::other("usage: floor COMMAND... | floor --connect ADDRESS"));
    };
    if first != "--connect" {
        return between_pipes(first, words);
    }
    let address = words.next().and_then(|word| word.into_string().ok());
    between_sockets(&address.ok_or_else(|| io::Error::other("--connect needs an address"))?)
}

fn between_pipes(program: OsString, words: impl Iterator<Item = OsString>) -> io::Result<ExitCode> {
    let mut child = Command::new(program).args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let to_child = child.stdin.take().map(OwnedFd::from);
    let from_child = child.stdout.take().map(OwnedFd::from);
    let (Some(to_child), Some(from_child)) = (to_child, from_child) else {
        return Err(io::Error::other("the child has no pipes"));
    };
    let stdin = unbuffered(io::stdin())?;
    let stdout = unbuffered(io::stdout())?;
    // Not joined: once the child's stdout is closed nothing more can come of what we would read.
    std::thread::spawn(move || copy(stdin, File::from(to_child)));
    copy(File::from(from_child), stdout)?;
    let status = child.wait()?;
    Ok(ExitCode::from(u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)))
}

/// The standard handles of `std` lock and buffer; the floor should pay for neither.
fn unbuffered(stream: impl AsFd) -> io::Result<File> {
    Ok(File::from(stream.as_fd().try_clone_to_owned()?))
}

/// Serves until it is ended: one thread for all connections, because two threads for each cost more
/// than the copying.
fn between_sockets(address: &str) -> io::Result<ExitCode> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    eprintln!("floor: listening on http://{}/mcp", listener.local_addr()?);
    let epoll = Epoll::new(EpollCreateFlags::empty())?;
    epoll.add(&listener, EpollEvent::new(EpollFlags::EPOLLIN, LISTENER))?;
    let mut sockets = Sockets::default();
    let mut events = [EpollEvent::empty(); 256];
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = epoll.wait(&mut events, EpollTimeout::NONE)?;
        for event in &events[..count] {
            if event.data() != LISTENER {
                sockets.copy(event.data(), &mut chunk);
                continue;
            }
            let near = listener.accept()?.0;
            let far = TcpStream::connect(address)?;
            for (place, socket) in sockets.join(near, far)? {
                epoll.add(socket, EpollEvent::new(EpollFlags::EPOLLIN, place))?;
            }
        }
    }
}

/// The place of the listener among the sockets.
const LISTENER: u64 = u64::MAX;

/// Pairs of sockets, beside each other: the peer of place 2n is 2n + 1.
#[derive(Default)]
struct Sockets(Vec<Option<TcpStream>>);

impl Sockets {
    fn join(
        &mut self,
        near: TcpStream,
        far: TcpStream,
    ) -> io::Result<impl Iterator<Item = (u64, &TcpStream)>> {
        near.set_nodelay(true)?;
        far.set_nodelay(true)?;
        let place = self.0.len();
        self.0.extend([Some(near), Some(far)]);
        Ok((place as u64..).zip(self.0[place..].iter().flatten()))
    }

    /// Copies what is there. A write waits for its peer, which is only right for one that reads
    /// before it writes again, as ours does. A connection that ends, or breaks, takes its pair along.
    fn copy(&mut self, place: u64, chunk: &mut [u8]) {
        let (from, to) = (place as usize, (place ^ 1) as usize);
        let (Some(mut source), Some(mut sink)) = (self.0[from].as_ref(), self.0[to].as_ref()) else { return };
        let copied = source.read(chunk).and_then(|count| sink.write_all(&chunk[..count]).map(|()| count));
        if copied.unwrap_or(0) == 0 {
            self.0[from] = None;
            self.0[to] = None;
        }
    }
}

/// Copies until end of file; dropping `to` closes it, which is how the end travels on.
fn copy(mut from: File, mut to: File) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => to.write_all(&chunk[..count])?,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
