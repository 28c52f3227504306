//! Bodies in chunks: whatever we take, hyper takes too, and sees the same in it. Half of the bodies are
//! well-formed but for one byte: a fuzzer seldom finds those by itself, and that is where two readers differ.

#![no_main]

#[allow(dead_code)] // not all of it is read here
#[path = "../../crates/outlast/src/http1"]
mod http1 {
    pub mod body;
    pub mod fault;
    pub use fault::{Fault, HEADERS};
}

use http1::body::{Decoder, Framing};
use hyper::body::{Body, Incoming};
use hyper::rt::{Read, ReadBufCursor, Write};
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";

// The first byte says how the body is made, and how long the pieces are in which it comes.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((how, rest)) = bytes.split_first() else { return };
    let body = if how & 1 == 0 { rest.to_vec() } else { nearly_well_formed(rest) };
    let pieces = usize::from(how >> 1).max(1);
    if let Some(ours) = ours(&body, pieces) {
        assert_eq!(Some(ours), hypers(&body, pieces), "{:?}", String::from_utf8_lossy(&body));
    }
});

/// Data in chunks of one size, blanks, an extension and a trailer; then one byte is another.
fn nearly_well_formed(bytes: &[u8]) -> Vec<u8> {
    let [size, shape, odd, high, low, data @ ..] = bytes else { return Vec::new() };
    let blanks = &b" \t "[..usize::from(shape & 3)];
    let extension: &[u8] = if shape & 4 == 0 { b"" } else { b";a=b" };
    let trailer: &[u8] = if shape & 8 == 0 { b"" } else { b"X: y\r\n" };
    let mut body = Vec::new();
    for chunk in data.chunks(usize::from(*size).max(1)) {
        let digits = format!("{:x}", chunk.len());
        for part in [digits.as_bytes(), blanks, extension, b"\r\n", chunk, b"\r\n"] {
            body.extend_from_slice(part);
        }
    }
    for part in [b"0", blanks, b"\r\n", trailer, b"\r\n"] {
        body.extend_from_slice(part);
    }
    if shape & 16 != 0 {
        let at = usize::from(u16::from_be_bytes([*high, *low])) % body.len();
        body[at] = *odd;
    }
    body
}

/// What we read; `None` if it is no body, or not all of one.
fn ours(body: &[u8], pieces: usize) -> Option<Vec<u8>> {
    let (mut decoder, mut data) = (Decoder::new(Framing::Chunked), Vec::new());
    for mut piece in body.chunks(pieces) {
        while !piece.is_empty() && !decoder.is_done() {
            let found = decoder.next(piece).ok()?;
            data.extend_from_slice(&piece[found.clone()]);
            piece = &piece[found.end..];
        }
    }
    decoder.is_done().then_some(data)
}

/// What hyper reads.
fn hypers(body: &[u8], pieces: usize) -> Option<Vec<u8>> {
    let seen: Arc<Mutex<Option<Vec<u8>>>> = Arc::default();
    let service = hyper::service::service_fn(|request: hyper::Request<Incoming>| {
        let seen = seen.clone();
        async move {
            if let Some(data) = whole(request.into_body()).await {
                seen.lock().unwrap().get_or_insert(data);
            }
            Ok::<_, Infallible>(hyper::Response::new(String::new()))
        }
    });
    let input = Input { left: [HEAD, body].concat(), pieces };
    let connection = hyper::server::conn::http1::Builder::new().half_close(true).serve_connection(input, service);
    let mut connection = pin!(connection);
    // Nothing is ever waited for, so it comes to its end by being asked often enough.
    for _ in 0..100_000 {
        if connection.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready() {
            break;
        }
    }
    seen.lock().unwrap().take()
}

async fn whole(mut body: Incoming) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        if let Ok(part) = frame.ok()?.into_data() {
            data.extend_from_slice(&part);
        }
    }
    Some(data)
}

/// A connection on which everything is there, in pieces, and whose answers nobody wants.
struct Input {
    left: Vec<u8>,
    pieces: usize,
}

impl Read for Input {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut to: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let length = self.left.len().min(self.pieces).min(to.remaining());
        to.put_slice(&self.left[..length]);
        self.left.drain(..length);
        Poll::Ready(Ok(()))
    }
}

impl Write for Input {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
