//! One connection to a server.
//!
//! Whoever holds it drives it, so it needs no task of its own, and dropping it closes it. It carries
//! one request at a time: a response is read to its end before the next.

use crate::http1::inbound::Inbound;
use crate::http1::io::Io;
use crate::http1::{Broken, Fault, head};
use bytes::{Bytes, BytesMut};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How many times what has come is made room for because a server announces it: to announce costs
/// nothing.
const BELIEVED: usize = 16;

/// A connection that carries one request at a time.
pub struct Link {
    inbound: Inbound,
    /// Another request may follow.
    keeps: bool,
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
        Link { inbound: Inbound::new(io), keeps: true }
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
            match ready!(Pin::new(&mut self.inbound.io).poll_write(cx, &bytes[*written..]))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                more => *written += more,
            }
        }
        Pin::new(&mut self.inbound.io).poll_flush(cx)
    }

    fn poll_head(&mut self, cx: &mut Context<'_>, seen: &mut usize) -> Poll<Result<head::Response, Broken>> {
        loop {
            let head = ready!(self.inbound.poll_head(cx, seen, head::response))?;
            match head.status {
                101 => return Poll::Ready(Err(Broken::NotHttp(Fault::Malformed("unexpected upgrade")))),
                // It is not the last word.
                100..=199 => {}
                _ => {
                    self.inbound.begin_body(head.framing);
                    self.keeps &= head.keeps;
                    return Poll::Ready(Ok(head));
                }
            }
        }
    }

    /// The next part of a response's body; empty at its end.
    pub async fn next(&mut self) -> Result<&[u8], Broken> {
        self.inbound.next().await
    }

    /// All of a response's body; `None` if it has more than `max` bytes.
    pub async fn whole(&mut self, max: usize) -> Result<Option<Bytes>, Broken> {
        if self.inbound.body().missing() > max as u64 {
            return Ok(None);
        }
        if let Some(whole) = self.inbound.body_at_hand() {
            return Ok(Some(whole));
        }
        let mut whole = BytesMut::new();
        while (whole.len() as u64).saturating_add(self.inbound.body().missing()) <= max as u64 {
            let part = self.inbound.next().await?;
            if part.is_empty() {
                return Ok(Some(whole.freeze()));
            }
            whole.extend_from_slice(part);
            while self.inbound.body().has_length() {
                if whole.len() == whole.capacity() {
                    let missing = usize::try_from(self.inbound.body().missing()).unwrap_or(usize::MAX);
                    whole.reserve(missing.min(BELIEVED * whole.len()));
                }
                self.inbound.read_into(&mut whole).await?;
            }
        }
        Ok(None)
    }

    /// Whether the body has been read.
    pub fn is_done(&self) -> bool {
        self.inbound.body().is_done()
    }

    /// Whether another request may be sent: the last response is read, and nothing came that nobody
    /// asked for.
    pub fn can_be_kept(&self) -> bool {
        self.keeps && self.is_done() && self.inbound.unused() == 0
    }

    /// Whether the system knows of nothing that came, above all of no end: the runtime may not have heard
    /// of it yet.
    pub fn is_silent(&self) -> bool {
        self.inbound.io.is_silent()
    }

    /// Whether it has ended, or something came that nobody asked for, which is as good as an end; tells
    /// the task when it does.
    pub fn has_ended(&mut self, cx: &mut Context<'_>) -> bool {
        let mut byte = [0];
        Pin::new(&mut self.inbound.io).poll_read(cx, &mut ReadBuf::new(&mut byte)).is_ready()
    }
}
