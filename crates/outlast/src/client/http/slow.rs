//! A client that does not take what is written to it.
//!
//! Who has stopped for a while may still go on, so it is waited for; who is gone without a word does not hold
//! a place for ever, and what it makes us hold is counted ([`Held`]).

use super::flow::Flow;
use super::held::{Held, Tab};
use crate::clock;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::Sleep;

/// A client that has taken nothing for this long is cut off while its principal holds more than `max-bytes`.
pub const IDLE: Duration = Duration::from_secs(5);

/// One that has taken nothing for this long is cut off in any case.
const WRITE_TIME: Duration = Duration::from_secs(5 * 60);

/// What is being written, and in whose name.
pub struct Load<'a> {
    /// Who pays for it.
    pub principal: &'a Option<Box<str>>,
    /// Bytes that are held by whoever writes.
    pub bytes: usize,
    /// Where more of it may wait.
    pub flow: Option<&'a Arc<Flow>>,
}

/// A client, for as long as it does not read.
pub struct Slow {
    tab: Arc<Tab>,
    cut: oneshot::Receiver<()>,
    flow: Option<Arc<Flow>>,
    /// How long it has taken nothing: not long, or longer than [`IDLE`].
    idle: bool,
    timed: bool,
}

impl Slow {
    /// It has taken nothing just now.
    pub fn new(held: &Arc<Held>, load: &Load<'_>) -> Slow {
        let (tab, cut) = held.slow(load.principal, load.bytes);
        if let Some(flow) = load.flow {
            flow.count_on(Some(tab.clone()));
        }
        Slow { tab, cut, flow: load.flow.cloned(), idle: false, timed: false }
    }

    /// It has taken something.
    pub fn takes(&mut self) {
        self.timed = false;
        if std::mem::take(&mut self.idle) {
            self.tab.takes();
        }
    }

    /// Waits until patience with it is over.
    pub fn poll_end(&mut self, patience: &mut Pin<Box<Sleep>>, cx: &mut Context<'_>) -> Poll<io::Error> {
        if !std::mem::replace(&mut self.timed, true) {
            patience.as_mut().reset(clock::in_future(IDLE).into());
        }
        while patience.as_mut().poll(cx).is_ready() {
            if std::mem::replace(&mut self.idle, true) {
                return Poll::Ready(io::ErrorKind::TimedOut.into());
            }
            self.tab.idles();
            patience.as_mut().reset(clock::in_future(WRITE_TIME - IDLE).into());
        }
        let over_the_bound = |_| io::Error::other("the client does not read, and max-bytes is reached");
        Pin::new(&mut self.cut).poll(cx).map(over_the_bound)
    }
}

impl Drop for Slow {
    fn drop(&mut self) {
        if let Some(flow) = &self.flow {
            flow.count_on(None);
        }
    }
}
