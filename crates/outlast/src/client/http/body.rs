//! The stream of a response, and the visit that it belongs to.

use super::Door;
use super::flow::{Flow, Next};
use super::slow::Load;
use bytes::Bytes;
use outlast_engine::id::ExchangeId;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::Sleep;

/// A comment so often keeps whatever stands between from closing a quiet stream.
const BEAT: Duration = Duration::from_secs(15);

/// A stream of events.
#[derive(Debug)]
pub struct Events {
    flow: Arc<Flow>,
    visit: Visit,
    /// Made when there is something to wait for.
    beat: Option<Pin<Box<Sleep>>>,
}

impl Events {
    /// The stream of a visit.
    pub fn new(flow: Arc<Flow>, visit: Visit) -> Events {
        Events { flow, visit, beat: None }
    }

    /// What is written of it, in whose name.
    pub fn load(&self, bytes: usize) -> Load<'_> {
        Load { principal: &self.visit.principal, bytes, flow: Some(&self.flow) }
    }

    /// Waits for what comes next.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Next> {
        let next = self.flow.poll_next(context);
        match next {
            Poll::Ready(Next::End) => self.visit.is_over(),
            Poll::Ready(_) => {}
            Poll::Pending => {
                let beat = self.beat.get_or_insert_with(|| Box::pin(next_beat()));
                if beat.as_mut().poll(context).is_ready() {
                    beat.as_mut().set(next_beat());
                    let comment = Bytes::from_static(b":\n\n");
                    let length = comment.len();
                    return Poll::Ready(Next::Bytes([comment].into(), length));
                }
            }
        }
        next
    }
}

#[allow(clippy::disallowed_methods)] // a comment tells nobody anything and moves no limit
fn next_beat() -> Sleep {
    tokio::time::sleep(BEAT)
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
    pub fn principal(&self) -> &Option<Box<str>> {
        &self.principal
    }

    /// Counts bytes of its body. False if its principal has too many.
    pub fn hold(&mut self, bytes: usize) -> bool {
        let held = self.door.held.hold(&self.principal, bytes);
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
            self.door.held.release(&self.principal, self.bytes);
        }
        if let Some(exchange) = self.exchange {
            self.door.driver.hung_up(exchange);
        }
    }
}
