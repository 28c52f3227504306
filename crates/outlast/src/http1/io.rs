//! The bytes of a connection: plain, local or encrypted.

use crate::sys::local::{self, LocalStream};
use socket2::SockRef;
use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

/// A connection.
pub enum Io {
    /// To anywhere.
    Plain(TcpStream),
    /// On this machine.
    Local(LocalStream),
    /// Boxed: it is large, and the exception on a loopback.
    Tls(Box<TlsStream<TcpStream>>),
}

impl Io {
    /// Whether the system knows of nothing that came, above all of no end: the runtime may not have heard of it yet.
    pub fn is_silent(&self) -> bool {
        let peeked = match self {
            Io::Plain(io) => SockRef::from(io).peek(&mut [MaybeUninit::uninit()]),
            Io::Tls(io) => SockRef::from(io.get_ref().0).peek(&mut [MaybeUninit::uninit()]),
            Io::Local(io) => local::peek(io),
        };
        // The sockets of the runtime never wait.
        peeked.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Io {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_read(cx, to),
            Io::Local(io) => Pin::new(io).poll_read(cx, to),
            Io::Tls(io) => Pin::new(io).poll_read(cx, to),
        }
    }
}

impl AsyncWrite for Io {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Local(io) => Pin::new(io).poll_write(cx, bytes),
            Io::Tls(io) => Pin::new(io).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_flush(cx),
            Io::Local(io) => Pin::new(io).poll_flush(cx),
            Io::Tls(io) => Pin::new(io).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Io::Plain(io) => Pin::new(io).poll_shutdown(cx),
            Io::Local(io) => Pin::new(io).poll_shutdown(cx),
            Io::Tls(io) => Pin::new(io).poll_shutdown(cx),
        }
    }
}
