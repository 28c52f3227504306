//! Whether the other end of a connection is gone, as far as the system knows it.

use super::local::LocalStream;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::TcpStream;

/// A second look at a client's connection, which is told of its end whoever reads and writes there.
pub enum Presence {
    Tcp(TcpStream),
    Local(LocalStream),
}

impl Presence {
    pub fn of_tcp(stream: &TcpStream) -> io::Result<Presence> {
        TcpStream::from_std(stream.as_fd().try_clone_to_owned()?.into()).map(Presence::Tcp)
    }

    pub fn of_local(stream: &LocalStream) -> io::Result<Presence> {
        LocalStream::from_std(stream.as_fd().try_clone_to_owned()?.into()).map(Presence::Local)
    }

    /// Waits until nobody is there any more.
    pub fn poll_gone(&self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            // A connection that is reset counts as writable. That it can be written to otherwise is no news.
            if ready!(self.poll_news(cx)).is_err() || self.is_gone() {
                return Poll::Ready(());
            }
            self.forget_news();
        }
    }

    fn poll_news(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Presence::Tcp(stream) => stream.poll_write_ready(cx),
            Presence::Local(stream) => stream.poll_write_ready(cx),
        }
    }

    fn forget_news(&self) {
        let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
        let _ = match self {
            Presence::Tcp(stream) => stream.try_io(Interest::WRITABLE, nothing),
            Presence::Local(stream) => stream.try_io(Interest::WRITABLE, nothing),
        };
    }

    fn is_gone(&self) -> bool {
        let socket = match self {
            Presence::Tcp(stream) => stream.as_fd(),
            Presence::Local(stream) => stream.as_fd(),
        };
        let mut asked = [PollFd::new(socket, PollFlags::empty())];
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        match poll(&mut asked, PollTimeout::ZERO) {
            Ok(_) => asked[0].revents().is_some_and(|told| told.intersects(gone)),
            Err(_) => true,
        }
    }
}
