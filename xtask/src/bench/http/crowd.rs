//! Many connections at once, each with one call under way.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};

use super::client::CHUNK;
use super::reply::Reply;

/// Events taken at once.
const EVENTS: usize = 256;

pub struct Crowd {
    members: Vec<Member>,
    epoll: Epoll,
    events: Vec<EpollEvent>,
    chunk: Vec<u8>,
}

struct Member {
    stream: TcpStream,
    reply: Reply,
}

impl Crowd {
    pub fn connect(address: SocketAddr, count: usize) -> Result<Crowd> {
        let mut crowd = Crowd {
            members: Vec::with_capacity(count),
            epoll: Epoll::new(EpollCreateFlags::empty())?,
            events: vec![EpollEvent::empty(); EVENTS],
            chunk: vec![0; CHUNK],
        };
        for place in 0..count {
            let stream =
                TcpStream::connect(address).with_context(|| format!("cannot connect as number {place}"))?;
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)?;
            crowd.epoll.add(stream.as_fd(), EpollEvent::new(EpollFlags::EPOLLIN, place as u64))?;
            crowd.members.push(Member { stream, reply: Reply::default() });
        }
        Ok(crowd)
    }

    /// Sends a small request, which a connection without anything under way takes whole.
    pub fn send(&mut self, place: usize, request: &[u8]) -> Result<()> {
        let member = &mut self.members[place];
        member.reply = Reply::default();
        let written = member.stream.write(request).context("cannot be written to")?;
        ensure!(written == request.len(), "a socket took {written} of {} bytes", request.len());
        Ok(())
    }

    /// Waits for responses, at most until then; hands each that is complete to `each`, with the place
    /// of its connection. `false` if the time was over before anything came.
    pub fn listen(
        &mut self,
        until: Instant,
        mut each: impl FnMut(usize, &Reply) -> Result<()>,
    ) -> Result<bool> {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = EpollTimeout::try_from(left.as_millis())?;
        let count = match self.epoll.wait(&mut self.events, timeout) {
            Ok(count) => count,
            Err(Errno::EINTR) => return Ok(true),
            Err(error) => return Err(error).context("cannot wait"),
        };
        for event in &self.events[..count] {
            let place = event.data() as usize;
            let member = &mut self.members[place];
            if member.read(&mut self.chunk)? {
                each(place, &member.reply)?;
            }
        }
        Ok(count > 0)
    }

    /// How many have a stream on which more may come.
    pub fn open_streams(&self) -> usize {
        self.members.iter().filter(|member| member.reply.is_open_stream()).count()
    }
}

impl Member {
    /// Reads once; whether the response is complete.
    fn read(&mut self, chunk: &mut [u8]) -> Result<bool> {
        match self.stream.read(chunk) {
            Ok(0) => bail!("a connection was closed"),
            Ok(count) => self.reply.take(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => Ok(false),
            Err(error) => Err(error).context("cannot be read"),
        }
    }
}
