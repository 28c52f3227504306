//! Whether a client that writes no more is still there.
//!
//! The end of what it writes may be all that it has to say: it waits for its response. Or it has hung up;
//! then its system resets the connection as soon as it gets something from us. Which of the two it is shows
//! once something was written.

use crate::http1::io::Io;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io;
use std::os::fd::AsFd;
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::{TcpStream, UnixStream};

/// A second look at a client's connection, which is told of its end whoever reads and writes there.
pub enum Presence {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Presence {
    /// Of whoever is at the other end.
    pub fn of(io: &Io) -> io::Result<Presence> {
        let copy = io.as_fd().try_clone_to_owned()?;
        match io {
            Io::Unix(_) => UnixStream::from_std(copy.into()).map(Presence::Unix),
            Io::Plain(_) | Io::Tls(_) => TcpStream::from_std(copy.into()).map(Presence::Tcp),
        }
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
            Presence::Unix(stream) => stream.poll_write_ready(cx),
        }
    }

    fn forget_news(&self) {
        let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
        let _ = match self {
            Presence::Tcp(stream) => stream.try_io(Interest::WRITABLE, nothing),
            Presence::Unix(stream) => stream.try_io(Interest::WRITABLE, nothing),
        };
    }

    fn is_gone(&self) -> bool {
        let socket = match self {
            Presence::Tcp(stream) => stream.as_fd(),
            Presence::Unix(stream) => stream.as_fd(),
        };
        let mut asked = [PollFd::new(socket, PollFlags::empty())];
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR;
        match poll(&mut asked, PollTimeout::ZERO) {
            Ok(_) => asked[0].revents().is_some_and(|told| told.intersects(gone)),
            Err(_) => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;
    use tokio::net::TcpListener;

    async fn tcp() -> (Io, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (Io::Plain(listener.accept().await.unwrap().0), client)
    }

    async fn is_there(presence: &Presence) -> bool {
        poll_fn(|cx| Poll::Ready(presence.poll_gone(cx).is_pending())).await
    }

    #[tokio::test]
    async fn a_client_that_only_writes_no_more_is_there() {
        let (mut ours, mut client) = tcp().await;
        client.shutdown().await.unwrap();
        let presence = Presence::of(&ours).unwrap();
        ours.write_all(b"still there?").await.unwrap();
        assert!(is_there(&presence).await);
        drop(client);
        let _ = ours.write_all(b"and now?").await;
        poll_fn(|cx| presence.poll_gone(cx)).await;
    }

    #[tokio::test]
    async fn a_client_that_has_hung_up_shows_it_when_something_is_written() {
        let (mut ours, client) = tcp().await;
        drop(client);
        let presence = Presence::of(&ours).unwrap();
        ours.write_all(b"still there?").await.unwrap();
        poll_fn(|cx| presence.poll_gone(cx)).await;
    }

    #[tokio::test]
    async fn on_this_machine_it_shows_at_once() {
        let (ours, mut client) = UnixStream::pair().unwrap();
        client.shutdown().await.unwrap();
        let presence = Presence::of(&Io::Unix(ours)).unwrap();
        assert!(is_there(&presence).await);
        drop(client);
        poll_fn(|cx| presence.poll_gone(cx)).await;
    }
}
