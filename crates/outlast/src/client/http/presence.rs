//! Whether a client that writes no more is still there.
//!
//! The end of what it writes may be all that it has to say: it waits for its response. Or it has hung up;
//! then its system resets the connection as soon as it gets something from us. Which of the two it is shows
//! once something was written.

use crate::http1::io::Io;
pub use crate::sys::presence::Presence;
use std::io;

impl Presence {
    /// Of whoever is at the other end.
    pub fn of(io: &Io) -> io::Result<Presence> {
        match io {
            Io::Plain(stream) => Presence::of_tcp(stream),
            Io::Tls(stream) => Presence::of_tcp(stream.get_ref().0),
            Io::Local(stream) => Presence::of_local(stream),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use std::task::Poll;
    use tokio::io::AsyncWriteExt;
    use tokio::net::{TcpListener, TcpStream, UnixStream};

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
        let presence = Presence::of(&Io::Local(ours)).unwrap();
        assert!(is_there(&presence).await);
        drop(client);
        poll_fn(|cx| presence.poll_gone(cx)).await;
    }
}
