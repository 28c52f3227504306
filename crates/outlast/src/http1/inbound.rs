//! What comes in on a connection: a head, its body, the next head.

use super::body::{Decoder, Framing};
use super::io::Io;
use super::{Broken, HEAD_BYTES, head};
use bytes::{Buf, BufMut, Bytes, BytesMut};
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::ops::Range;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncReadExt, ReadBuf};

/// Bytes that are read at a time.
const READ: usize = 16 << 10;

/// A connection, seen by its reader.
pub struct Inbound {
    /// What is read from.
    pub io: Io,
    buffer: BytesMut,
    /// Bytes at the beginning of the buffer that were handed out.
    spent: usize,
    body: Decoder,
}

impl Inbound {
    /// On a fresh connection.
    pub fn new(io: Io) -> Inbound {
        Inbound { io, buffer: BytesMut::new(), spent: 0, body: Decoder::new(Framing::Length(0)) }
    }

    /// Reads what has come; how much that was. The buffer grows by no more: whoever waits for long holds
    /// no memory for it.
    pub fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = [const { MaybeUninit::uninit() }; READ];
        let mut read = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.io).poll_read(cx, &mut read))?;
        self.buffer.extend_from_slice(read.filled());
        Poll::Ready(Ok(read.filled().len()))
    }

    /// Lets go of what was handed out.
    fn let_go(&mut self) {
        self.buffer.advance(std::mem::take(&mut self.spent));
    }

    /// Reads a head; `seen` counts the bytes in which none was found.
    pub fn poll_head<T>(
        &mut self,
        cx: &mut Context<'_>,
        seen: &mut usize,
        parse: impl Fn(&[u8]) -> head::Found<T>,
    ) -> Poll<Result<T, Broken>> {
        self.let_go();
        loop {
            // The first bytes are looked at whatever they are: they may be no HTTP at all. After that one
            // that comes in drops is read once.
            let present = self.buffer.len();
            let look = match *seen {
                0 => present > 0,
                seen => present >= HEAD_BYTES || head::ends_in(&self.buffer, seen),
            };
            if look && let Some((head, length)) = parse(&self.buffer).map_err(Broken::NotHttp)? {
                self.buffer.advance(length);
                *seen = 0;
                return Poll::Ready(Ok(head));
            }
            *seen = present;
            if ready!(self.poll_read(cx)).map_err(Broken::Io)? == 0 {
                return Poll::Ready(Err(Broken::Closed));
            }
        }
    }

    /// A body follows that ends so.
    pub fn begin_body(&mut self, framing: Framing) {
        self.body = Decoder::new(framing);
    }

    /// How the body stands.
    pub fn body(&self) -> &Decoder {
        &self.body
    }

    /// Bytes that came and were not used.
    pub fn unused(&self) -> usize {
        self.buffer.len() - self.spent
    }

    /// All of the body, if it has a known length and is here.
    pub fn body_at_hand(&mut self) -> Option<Bytes> {
        self.let_go();
        let length = usize::try_from(self.body.missing()).ok()?;
        if !(self.body.is_done() || self.body.has_length()) || self.buffer.len() < length {
            return None;
        }
        self.body = Decoder::new(Framing::Length(0));
        let body = Bytes::copy_from_slice(&self.buffer[..length]);
        self.buffer.advance(length);
        Some(body)
    }

    /// The next part of the body; empty at its end.
    pub async fn next(&mut self) -> Result<&[u8], Broken> {
        let part = self.next_part().await?;
        Ok(&self.buffer[part])
    }

    /// Where the next part stands in the buffer.
    async fn next_part(&mut self) -> Result<Range<usize>, Broken> {
        loop {
            self.let_go();
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

    /// Reads more of a body of known length straight to where it belongs; what the buffer holds of it
    /// must have been taken.
    pub async fn read_into(&mut self, to: &mut impl BufMut) -> Result<usize, Broken> {
        let missing = usize::try_from(self.body.missing()).unwrap_or(usize::MAX);
        match self.io.read_buf(&mut to.limit(missing)).await.map_err(Broken::Io)? {
            0 => Err(Broken::Closed),
            read => {
                self.body.took(read as u64);
                Ok(read)
            }
        }
    }
}
