//! One connection to a server.
//!
//! Whoever holds it drives it, so it needs no task of its own, and dropping it closes it. It carries
//! one request at a time: a response is read to its end before the next.

use super::io::Io;
use crate::http1::body::{Decoder, Framing};
use crate::http1::{Fault, HEAD_BYTES, head};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use std::future::poll_fn;
use std::io;
use std::ops::Range;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};

/// Bytes that are read at a time.
const READ: usize = 8 << 10;

/// How many times what has come is made room for because a server announces it: to announce costs
/// nothing.
const BELIEVED: usize = 16;

/// A connection that carries one request at a time.
pub struct Link {
    io: Io,
    buffer: BytesMut,
    /// Bytes at the beginning of the buffer that were handed out.
    spent: usize,
    body: Decoder,
    /// Another request may follow.
    keeps: bool,
}

/// Why there is no (whole) response.
#[derive(Debug)]
pub enum Broken {
    Io(io::Error),
    /// The server closed the connection.
    Closed,
    NotHttp(Fault),
}

/// A request without a response.
pub struct Unanswered {
    pub why: Broken,
    /// The request, if nothing of it was written.
    pub unsent: Option<Vec<u8>>,
}

impl Link {
    /// Takes a fresh connection.
    pub fn new(io: Io) -> Link {
        let body = Decoder::new(Framing::Length(0));
        Link { io, buffer: BytesMut::new(), spent: 0, body, keeps: true }
    }

    /// Sends a request and reads the head of its response, whichever comes first: a server may answer
    /// before it has read everything.
    pub async fn send(&mut self, mut request: Vec<u8>) -> Result<head::Response, Unanswered> {
        let (mut written, mut seen) = (0, 0);
        let sent = poll_fn(|cx| {
            if !request.is_empty() {
                match self.poll_write(cx, &request, &mut written) {
                    Poll::Pending => {}
                    Poll::Ready(Err(why)) if written == 0 => return Poll::Ready(Err(Broken::Io(why))),
                    // It is let go of here: an answer may take hours. If not all of it was taken, the
                    // response may say why.
                    Poll::Ready(done) => {
                        self.keeps = done.is_ok();
                        request = Vec::new();
                    }
                }
            }
            self.poll_head(cx, &mut seen)
        })
        .await;
        self.keeps &= request.is_empty();
        sent.map_err(|why| Unanswered { why, unsent: (written == 0).then_some(request) })
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &[u8],
        written: &mut usize,
    ) -> Poll<io::Result<()>> {
        while *written < bytes.len() {
            match ready!(Pin::new(&mut self.io).poll_write(cx, &bytes[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *written += more,
            }
        }
        Pin::new(&mut self.io).poll_flush(cx)
    }

    /// Reads a head; `seen` counts the bytes in which no end of one was found.
    fn poll_head(&mut self, cx: &mut Context<'_>, seen: &mut usize) -> Poll<Result<head::Response, Broken>> {
        loop {
            // The first bytes are looked at whatever they are: they may be no HTTP at all. A head that
            // comes in drops is read once.
            let present = self.buffer.len();
            let look =
                present > 0 && (*seen == 0 || head::ends_in(&self.buffer, *seen) || present >= HEAD_BYTES);
            if look && let Some((head, length)) = head::response(&self.buffer).map_err(Broken::NotHttp)? {
                self.buffer.advance(length);
                *seen = 0;
                match head.status {
                    101 => return Poll::Ready(Err(Broken::NotHttp(Fault("unexpected upgrade".into())))),
                    100..=199 => continue,
                    _ => {
                        self.body = Decoder::new(head.framing);
                        self.keeps &= head.keeps;
                        return Poll::Ready(Ok(head));
                    }
                }
            }
            *seen = present;
            if ready!(self.poll_read(cx)).map_err(Broken::Io)? == 0 {
                return Poll::Ready(Err(Broken::Closed));
            }
        }
    }

    /// Reads more into the buffer.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        self.buffer.reserve(if self.buffer.is_empty() { READ } else { 1 });
        pin!(self.io.read_buf(&mut self.buffer)).poll(cx)
    }

    /// The next part of a response's body; empty at its end.
    pub async fn next(&mut self) -> Result<&[u8], Broken> {
        let part = self.next_part().await?;
        Ok(&self.buffer[part])
    }

    /// Where the next part stands in the buffer.
    async fn next_part(&mut self) -> Result<Range<usize>, Broken> {
        loop {
            self.buffer.advance(std::mem::take(&mut self.spent));
            let part = self.body.next(&self.buffer).map_err(Broken::NotHttp)?;
            if !part.is_empty() || self.body.is_done() {
                self.spent = part.end;
                return Ok(part);
            }
            self.buffer.advance(part.end);
            if poll_fn(|cx| self.poll_read(cx)).await.map_err(Broken::Io)? == 0 {
                return if self.body.may_end() { Ok(0..0) } else { Err(Broken::Closed) };
            }
        }
    }

    /// All of a response's body; `None` if it has more than `max` bytes.
    pub async fn whole(&mut self, max: usize) -> Result<Option<Bytes>, Broken> {
        let mut whole = BytesMut::new();
        while (whole.len() as u64).saturating_add(self.body.missing()) <= max as u64 {
            let part = self.next_part().await?;
            if whole.is_empty() && self.body.is_done() {
                // Nearly always: it came in one read.
                return Ok(
                    Some(Bytes::copy_from_slice(&self.buffer[part])).filter(|whole| whole.len() <= max)
                );
            }
            whole.extend_from_slice(&self.buffer[part.clone()]);
            if self.body.has_length() {
                self.read_rest(&mut whole).await?;
            }
            if part.is_empty() || self.body.is_done() {
                return Ok(Some(whole.freeze()).filter(|whole| whole.len() <= max));
            }
        }
        Ok(None)
    }

    /// Reads the rest of a body of known length straight to where it belongs; the buffer holds none
    /// of it.
    async fn read_rest(&mut self, to: &mut BytesMut) -> Result<(), Broken> {
        while self.body.has_length() {
            let (before, missing) = (to.len(), usize::try_from(self.body.missing()).unwrap_or(usize::MAX));
            if to.capacity() == before {
                to.reserve(missing.min(BELIEVED * before));
            }
            if self.io.read_buf(&mut to.limit(missing)).await.map_err(Broken::Io)? == 0 {
                return Err(Broken::Closed);
            }
            self.body.next(&to[before..]).map_err(Broken::NotHttp)?;
        }
        Ok(())
    }

    /// Whether the body has been read.
    pub fn is_done(&self) -> bool {
        self.body.is_done()
    }

    /// Whether another request may be sent: the last response is read, and nothing came that nobody
    /// asked for.
    pub fn can_be_kept(&mut self) -> bool {
        self.buffer.advance(std::mem::take(&mut self.spent));
        self.keeps && self.body.is_done() && self.buffer.is_empty()
    }

    /// Whether nothing came since it was last used, above all no end. The runtime may not have heard
    /// of it yet; the system has.
    pub fn is_silent(&mut self, cx: &mut Context<'_>) -> bool {
        let flags = MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT;
        !self.has_ended(cx) && recv(self.io.socket(), &mut [0], flags) == Err(Errno::EAGAIN)
    }

    /// Whether it has ended, or something came that nobody asked for, which is as good as an end; tells
    /// the task when it does.
    pub fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let mut byte = [0];
        Pin::new(&mut self.io).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_ready()
    }
}
