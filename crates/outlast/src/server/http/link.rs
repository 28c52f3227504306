//! One connection to a server.
//!
//! Whoever holds it drives it: every wait here first lets the connection read and write. So it
//! needs no task of its own, and dropping it closes it.

use super::io::{Io, Whole};
use bytes::Bytes;
use hyper::body::{Body, Incoming};
use hyper::client::conn::TrySendError;
use hyper::client::conn::http1::{Builder, Connection, SendRequest};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::future::poll_fn;
use std::os::fd::RawFd;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// A connection that carries one request at a time.
pub struct Link {
    sender: SendRequest<Whole>,
    /// The socket below, as long as the connection has not ended.
    socket: RawFd,
    /// `None` once it has ended.
    connection: Option<Box<Connection<TokioIo<Io>, Whole>>>,
}

impl Link {
    /// Takes a fresh connection.
    pub async fn new(io: Io) -> Result<Link, hyper::Error> {
        let socket = io.socket();
        let (sender, connection) = Builder::new().handshake(TokioIo::new(io)).await?;
        let mut link = Link { sender, socket, connection: Some(Box::new(connection)) };
        // A request is taken only by a connection that has asked for one.
        poll_fn(|cx| Poll::Ready(link.has_ended(cx))).await;
        Ok(link)
    }

    /// Sends a request. The error holds the request if nothing of it was written.
    pub fn send(
        &mut self,
        request: Request<Whole>,
    ) -> impl Future<Output = Result<Response<Incoming>, TrySendError<Request<Whole>>>> {
        let reply = self.sender.try_send_request(request);
        let connection = &mut self.connection;
        async move {
            let mut reply = pin!(reply);
            poll_fn(|cx| {
                drive(connection, cx);
                reply.as_mut().poll(cx)
            })
            .await
        }
    }

    /// The next part of a response's body; `None` at its end.
    pub async fn next(&mut self, body: &mut Incoming) -> Option<Result<Bytes, hyper::Error>> {
        poll_fn(|cx| {
            drive(&mut self.connection, cx);
            loop {
                match Pin::new(&mut *body).poll_frame(cx) {
                    // Trailers mean nothing here.
                    Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                        Ok(data) => return Poll::Ready(Some(Ok(data))),
                        Err(_trailers) => {}
                    },
                    Poll::Ready(Some(Err(error))) => return Poll::Ready(Some(Err(error))),
                    Poll::Ready(None) => return Poll::Ready(None),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// Whether it can carry another request; pending while the last one is not quite done.
    pub fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        drive(&mut self.connection, cx);
        match (&self.connection, self.sender.is_ready()) {
            (None, _) => Poll::Ready(false),
            (Some(_), true) => Poll::Ready(true),
            (Some(_), false) => Poll::Pending,
        }
    }

    /// Whether nothing came that nobody asked for, above all no end. The runtime may not have heard of
    /// it yet; the system has.
    pub fn is_silent(&self) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        self.connection.is_some() && recv(self.socket, &mut [0], flags) == Err(Errno::EAGAIN)
    }

    /// Whether it has ended; tells the task when it does.
    pub fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        drive(&mut self.connection, cx);
        self.connection.is_none()
    }
}

/// Lets a connection read and write. How it ended shows in what was waited for.
fn drive(connection: &mut Option<Box<Connection<TokioIo<Io>, Whole>>>, cx: &mut Context<'_>) {
    if let Some(running) = connection
        && Pin::new(&mut **running).poll(cx).is_ready()
    {
        *connection = None;
    }
}
