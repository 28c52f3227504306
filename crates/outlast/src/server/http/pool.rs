//! Connections without use, for the next request.
//!
//! The last one that came is the first that goes, so that a quiet server keeps few. A connection
//! that the server closes meanwhile is noticed when it is wanted, or by the sweeper.

use super::link::Link;
use crate::clock;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use tokio::task::AbortHandle;

/// A connection that rested so long may be one that the server is just closing, so the system is asked
/// too. Hardly a server lets go of one sooner; of one that does we always ask.
const RESTED: Duration = Duration::from_millis(100);

/// How often it is looked whether the server has closed some that came since.
const LOOK: Duration = Duration::from_secs(5);

/// Idle connections of one server.
pub struct Pool {
    max_idle: usize,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    idle: Vec<Idle>,
    /// The server has let go of one that had hardly rested.
    hasty: bool,
    sweeper: Option<AbortHandle>,
}

struct Idle {
    link: Link,
    since: Instant,
    until: Instant,
}

impl Pool {
    /// Keeps at most `max_idle`.
    pub fn new(max_idle: usize) -> Arc<Pool> {
        Arc::new(Pool { max_idle, inner: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last one that came, and whether its server is hasty.
    fn pop(&self) -> Option<(Idle, bool)> {
        let mut inner = self.lock();
        inner.idle.pop().map(|idle| (idle, inner.hasty))
    }

    /// A connection that is still there.
    pub async fn take(&self) -> Option<Link> {
        loop {
            let (idle, hasty) = self.pop()?;
            let Idle { mut link, since, until } = idle;
            let now = clock::monotonic();
            if now > until {
                continue;
            }
            let rested = now.duration_since(since) >= RESTED;
            let ended = poll_fn(|cx| Poll::Ready(link.has_ended(cx))).await;
            if !ended && (!(rested || hasty) || link.is_silent()) {
                return Some(link);
            }
            if !rested {
                self.lock().hasty = true;
            }
        }
    }

    /// Keeps a connection that is ready for the next request for this long.
    pub fn give(self: &Arc<Pool>, link: Link, time: Duration) {
        let mut inner = self.lock();
        if time.is_zero() || inner.idle.len() >= self.max_idle {
            return;
        }
        let since = clock::monotonic();
        inner.idle.push(Idle { link, since, until: since.checked_add(time).unwrap_or(since) });
        if inner.sweeper.is_none() {
            inner.sweeper = Some(tokio::spawn(sweep(Arc::downgrade(self))).abort_handle());
        }
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().idle.len()
    }

    /// Lets go of what is over; when the next one will be. With nothing left the sweeper ends.
    fn clear(&self) -> Option<Instant> {
        let mut inner = self.lock();
        inner.idle.retain(|idle| !clock::is_past(idle.until));
        let next = inner.idle.iter().map(|idle| idle.until).min();
        if next.is_none() {
            inner.sweeper = None;
        }
        next
    }

    /// Lets go of what the server has closed.
    fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut inner = self.lock();
        let before = inner.idle.len();
        inner.idle.retain_mut(|idle| !idle.link.has_ended(cx));
        if inner.idle.len() < before { Poll::Ready(()) } else { Poll::Pending }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Some(sweeper) = self.lock().sweeper.take() {
            sweeper.abort();
        }
    }
}

/// Closes what is over, until there is nothing left.
async fn sweep(pool: Weak<Pool>) {
    while let Some(next) = pool.upgrade().and_then(|pool| pool.clear()) {
        let closed = poll_fn(|cx| pool.upgrade().map_or(Poll::Ready(()), |pool| pool.poll_closed(cx)));
        let look = next.min(clock::in_future(LOOK));
        let _ = tokio::time::timeout_at(look.into(), closed).await;
    }
}
