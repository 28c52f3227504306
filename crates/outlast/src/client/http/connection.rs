//! One connection of a client: its requests one after another.

use super::answer::{Answer, Dates, Manner, Out};
use super::body::Events;
use super::flow::Next;
use super::intake::Intake;
use crate::clock;
use crate::http1::body::Decoder;
use crate::http1::fields::Known;
use crate::http1::head::{self, Request};
use crate::http1::inbound::Inbound;
use crate::http1::io::Io;
use crate::http1::{Broken, Fault, HEAD_BYTES};
use bytes::Bytes;
use http::StatusCode;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::Sleep;

/// A connection without a request is closed after this long; we keep ours to servers for a shorter time, so
/// that another outlast does not meet one that is just being closed.
const IDLE_TIME: Duration = Duration::from_secs(120);

/// One that has begun a head and not ended it is closed after this long.
const HEAD_TIME: Duration = Duration::from_secs(60);

/// One that has taken nothing of what we write for this long is closed too: who has stopped for a while may
/// still go on, who is gone without a word does not hold a place for ever.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// Bytes that are copied together so that they leave in one write.
const COPIED: usize = 16 << 10;

/// How long a connection is silent after our last word on it before it is closed, and how much is read from
/// it until then: closed at once, the system may take back what the client has not read yet.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: usize = 64 << 20;

/// The longest time for all of that.
const LINGER_MOST: Duration = Duration::from_secs(30);

/// What came next.
pub enum Came {
    /// A request whose body may follow.
    Request(Box<Request>),
    /// Something else, to be answered with this.
    Unreadable(StatusCode),
    /// Nothing more.
    Nothing,
}

/// A client's connection.
pub struct Connection {
    inbound: Inbound,
    /// The client wants to hear that its body is welcome.
    expects: bool,
    patience: Pin<Box<Sleep>>,
}

impl Connection {
    /// On a stream that has just come.
    pub fn new(io: Io) -> Connection {
        let patience = Box::pin(tokio::time::sleep_until(clock::in_future(IDLE_TIME).into()));
        Connection { inbound: Inbound::new(io), expects: false, patience }
    }

    /// Waits for the next request; not for one that has not begun when we stop.
    pub async fn request(&mut self, stop: &mut watch::Receiver<bool>) -> Came {
        self.patience.as_mut().reset(clock::in_future(IDLE_TIME).into());
        let (mut seen, mut begun) = (0, false);
        let mut stopped = pin!(stop.changed());
        let came = poll_fn(|cx| {
            if let Poll::Ready(came) = self.inbound.poll_head(cx, &mut seen, head::request) {
                return Poll::Ready(Some(came));
            }
            if seen > 0 && !std::mem::replace(&mut begun, true) {
                self.patience.as_mut().reset(clock::in_future(HEAD_TIME).into());
            }
            match self.patience.as_mut().poll(cx) {
                Poll::Ready(()) => Poll::Ready(None),
                Poll::Pending if begun => Poll::Pending,
                Poll::Pending => stopped.as_mut().poll(cx).map(|_| None),
            }
        });
        match came.await {
            Some(Ok(request)) => {
                self.inbound.begin_body(request.framing);
                self.expects = !request.old && request.fields.lists(Known::Expect, "100-continue");
                Came::Request(Box::new(request))
            }
            Some(Err(Broken::NotHttp(Fault::TooLarge))) => {
                Came::Unreadable(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            }
            Some(Err(Broken::NotHttp(_))) => Came::Unreadable(StatusCode::BAD_REQUEST),
            Some(Err(Broken::Io(_) | Broken::Closed)) | None => Came::Nothing,
        }
    }

    /// How the body stands.
    pub fn body(&self) -> &Decoder {
        self.inbound.body()
    }

    /// All of the body, if it has come with the head.
    pub fn body_at_hand(&mut self) -> Option<Bytes> {
        self.inbound.body_at_hand()
    }

    /// Reads more of a body; how much, and nothing at its end.
    pub async fn read(&mut self, intake: &Arc<Intake>, body: &mut Vec<u8>) -> Result<usize, Broken> {
        if std::mem::take(&mut self.expects) && self.inbound.unused() == 0 {
            let welcome = b"HTTP/1.1 100 Continue\r\n\r\n";
            self.inbound.io.write_all(welcome).await.map_err(Broken::Io)?;
        }
        let missing = usize::try_from(self.body().missing()).unwrap_or(usize::MAX);
        if self.body().has_length() && self.inbound.unused() == 0 {
            intake.make_room(body, 1, missing);
            return self.inbound.read_into(body).await;
        }
        let part = self.inbound.next().await?;
        intake.add(body, part, missing);
        Ok(part.len())
    }

    /// Waits for something, but not longer than the client is there.
    pub async fn unless_gone<T>(&mut self, mut poll: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Option<T> {
        poll_fn(|cx| match poll(cx) {
            Poll::Ready(value) => Poll::Ready(Some(value)),
            Poll::Pending if self.is_gone(cx) => Poll::Ready(None),
            Poll::Pending => Poll::Pending,
        })
        .await
    }

    /// Whether the client has hung up. To know it one must read, and what is read is its next request; of
    /// that no more is taken than a head may be long.
    fn is_gone(&mut self, cx: &mut Context<'_>) -> bool {
        while self.inbound.unused() < HEAD_BYTES {
            match self.inbound.poll_read(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(_) => return true,
                Poll::Pending => return false,
            }
        }
        false
    }

    /// Writes a response. An error if the client is gone, or does not read.
    pub async fn respond(&mut self, answer: Answer, dates: &Dates, manner: Manner) -> io::Result<()> {
        let mut out = Vec::with_capacity(512);
        answer.write_head(&mut out, dates, manner);
        match answer.body {
            _ if manner.head_only => {}
            Out::Empty => {}
            Out::Whole(bytes) if bytes.len() <= COPIED => out.extend_from_slice(&bytes),
            Out::Whole(bytes) => {
                self.write(&out).await?;
                return self.write(&bytes).await;
            }
            Out::Events(events) => return self.stream(out, events, !manner.old).await,
        }
        self.write(&out).await
    }

    /// Writes a stream to its end. What is there leaves together.
    async fn stream(&mut self, mut out: Vec<u8>, mut events: Box<Events>, chunks: bool) -> io::Result<()> {
        loop {
            let unwritten = !out.is_empty();
            let next = self.unless_gone(|cx| match events.poll(cx) {
                Poll::Ready(next) => Poll::Ready(Some(next)),
                Poll::Pending if unwritten => Poll::Ready(None),
                Poll::Pending => Poll::Pending,
            });
            let Some(next) = next.await else { return Err(io::ErrorKind::ConnectionAborted.into()) };
            match next {
                Some(Next::Bytes(parts, length)) => {
                    if chunks {
                        write_size(&mut out, length);
                    }
                    for part in parts {
                        if part.len() > COPIED {
                            self.write(&out).await?;
                            self.write(&part).await?;
                            out.clear();
                        } else {
                            out.extend_from_slice(&part);
                        }
                    }
                    if chunks {
                        out.extend_from_slice(b"\r\n");
                    }
                    if out.len() <= COPIED {
                        continue;
                    }
                }
                Some(Next::End) => {
                    if chunks {
                        out.extend_from_slice(b"0\r\n\r\n");
                    }
                    return self.write(&out).await;
                }
                Some(Next::Broken) => return Err(io::Error::other("the client does not read")),
                None => {}
            }
            self.write(&out).await?;
            // A quiet stream holds no memory for the next event.
            out = Vec::new();
        }
    }

    /// Writes all of it, as long as the client takes some.
    async fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let mut waits = false;
            let written = poll_fn(|cx| {
                let written = Pin::new(&mut self.inbound.io).poll_write(cx, bytes);
                if written.is_ready() {
                    return written;
                }
                if !std::mem::replace(&mut waits, true) {
                    self.patience.as_mut().reset(clock::in_future(WRITE_TIME).into());
                }
                self.patience.as_mut().poll(cx).map(|()| Err(io::ErrorKind::TimedOut.into()))
            });
            match written.await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                length => bytes = &bytes[length..],
            }
        }
        self.inbound.io.flush().await
    }

    /// Ends the connection so that the client can read our last word on it.
    pub async fn close(mut self) {
        let goodbye = async {
            self.inbound.io.shutdown().await?;
            let (mut left, mut scratch) = (LINGER_BYTES, vec![0; 16 << 10]);
            while left > 0 {
                match tokio::time::timeout(LINGER, self.inbound.io.read(&mut scratch)).await?? {
                    0 => break,
                    read => left = left.saturating_sub(read),
                }
            }
            io::Result::Ok(())
        };
        let _ = tokio::time::timeout(LINGER_MOST, goodbye).await;
    }
}

/// The line before a chunk.
fn write_size(to: &mut Vec<u8>, size: usize) {
    let digits = (usize::BITS - size.leading_zeros()).div_ceil(4).max(1);
    let digit = |place: u32| b"0123456789abcdef"[size >> (4 * place) & 0xf];
    to.extend((0..digits).rev().map(digit));
    to.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_written_in_hexadecimal() {
        for size in [0, 1, 9, 10, 15, 16, 255, 256, 0xabcdef, usize::MAX] {
            let mut line = Vec::new();
            write_size(&mut line, size);
            assert_eq!(line, format!("{size:x}\r\n").into_bytes());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn who_takes_nothing_is_let_go_of_at_last() {
        let (ours, _theirs) = tokio::net::UnixStream::pair().unwrap();
        let mut connection = Connection::new(Io::Unix(ours));
        let answer = Answer::json(StatusCode::OK, vec![b' '; 8 << 20].into());
        let written = connection.respond(answer, &Dates::default(), Manner::LAST).await;
        assert_eq!(written.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }
}
