//! The body of a response, and the visit that it belongs to.

use super::Door;
use super::flow::{Flow, Next};
use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use outlast_engine::id::ExchangeId;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// A comment so often keeps whatever stands between from closing a quiet stream.
const BEAT: Duration = Duration::from_secs(15);

/// What follows the head of a response.
#[derive(Debug)]
pub enum Out {
    /// Nothing.
    Empty,
    /// One piece.
    Whole(Option<Bytes>),
    /// A stream.
    Events(Box<Events>),
}

/// A stream of events.
#[derive(Debug)]
pub struct Events {
    flow: Arc<Flow>,
    visit: Visit,
    beat: Pin<Box<Sleep>>,
}

impl Events {
    /// The stream of a visit.
    pub fn new(flow: Arc<Flow>, visit: Visit) -> Events {
        Events { flow, visit, beat: Box::pin(next_beat()) }
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<io::Result<Bytes>>> {
        match self.flow.poll_next(context) {
            Poll::Ready(Next::Bytes(bytes)) => Poll::Ready(Some(Ok(bytes))),
            Poll::Ready(Next::End) => {
                self.visit.is_over();
                Poll::Ready(None)
            }
            Poll::Ready(Next::Broken) => Poll::Ready(Some(Err(io::Error::other("the client does not read")))),
            Poll::Pending if self.beat.as_mut().poll(context).is_ready() => {
                self.beat.as_mut().set(next_beat());
                Poll::Ready(Some(Ok(Bytes::from_static(b":\n\n"))))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

#[allow(clippy::disallowed_methods)] // a comment tells nobody anything and moves no limit
fn next_beat() -> Sleep {
    tokio::time::sleep(BEAT)
}

impl Body for Out {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match &mut *self {
            Out::Empty => Poll::Ready(None),
            Out::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Out::Events(events) => events.poll(context).map(|next| next.map(|bytes| bytes.map(Frame::data))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Out::Empty | Out::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Out::Empty | Out::Whole(None) => SizeHint::with_exact(0),
            Out::Whole(Some(bytes)) => SizeHint::with_exact(bytes.len() as u64),
            Out::Events(_) => SizeHint::default(),
        }
    }
}

/// One request, for as long as somebody holds it. When it is let go of before its response is finished,
/// the client has hung up.
#[derive(Debug)]
pub struct Visit {
    door: Arc<Door>,
    principal: Option<Box<str>>,
    exchange: Option<ExchangeId>,
    bytes: usize,
}

impl Visit {
    /// Begins with nothing.
    pub fn new(door: Arc<Door>, principal: Option<Box<str>>) -> Visit {
        Visit { door, principal, exchange: None, bytes: 0 }
    }

    /// Whose it is.
    pub fn principal(&self) -> Option<&str> {
        self.principal.as_deref()
    }

    /// Counts bytes of its body. False if its principal has too many.
    pub fn hold(&mut self, bytes: usize) -> bool {
        let held = self.door.hold(&self.principal, bytes);
        self.bytes += if held { bytes } else { 0 };
        held
    }

    /// The engine knows of it from now on.
    pub fn begins(&mut self, exchange: ExchangeId) {
        self.exchange = Some(exchange);
    }

    /// Its response is finished.
    pub fn is_over(&mut self) {
        self.exchange = None;
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.door.release(&self.principal, self.bytes);
        }
        if let Some(exchange) = self.exchange {
            self.door.driver.hung_up(exchange);
        }
    }
}
