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
/// too. A server that lets go of one sooner closes them after each answer and does not say so.
const RESTED: Duration = Duration::from_millis(100);

/// After so many that the server closed so soon none is kept for a while: sooner or later a request
/// would leave on one just as it is closed, and nobody could say whether it arrived.
const HASTY: u32 = 2;
const SHUNNED: Duration = Duration::from_secs(60);

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
    /// Connections that the server closed at once, and until when none is kept for it.
    hasty: u32,
    shunned: Option<Instant>,
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

    /// A connection that is still there.
    pub async fn take(&self) -> Option<Link> {
        loop {
            let Idle { mut link, since, until } = self.lock().idle.pop()?;
            let now = clock::monotonic();
            if now > until {
                continue;
            }
            let rested = now.duration_since(since) >= RESTED;
            let ended = poll_fn(|cx| Poll::Ready(link.has_ended(cx))).await;
            if !ended && (!rested || link.is_silent()) {
                return Some(link);
            }
            self.lock().closed(since, now);
        }
    }

    /// Keeps a connection that is ready for the next request for this long.
    pub fn give(self: &Arc<Pool>, link: Link, time: Duration) {
        let mut inner = self.lock();
        let since = clock::monotonic();
        if time.is_zero() || inner.shuns(since) || inner.idle.len() >= self.max_idle {
            return;
        }
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
        let ended: Vec<Idle> = inner.idle.extract_if(.., |idle| idle.link.has_ended(cx)).collect();
        let now = clock::monotonic();
        ended.iter().for_each(|idle| inner.closed(idle.since, now));
        if ended.is_empty() { Poll::Pending } else { Poll::Ready(()) }
    }
}

impl Inner {
    /// The server has let go of one that rested since then.
    fn closed(&mut self, since: Instant, now: Instant) {
        self.hasty += u32::from(now.duration_since(since) < RESTED);
        if self.hasty >= HASTY {
            (self.hasty, self.shunned) = (0, now.checked_add(SHUNNED));
        }
    }

    /// Whether none is kept now.
    fn shuns(&self, now: Instant) -> bool {
        self.shunned.is_some_and(|until| now < until)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_closes_connections_at_once_gets_new_ones_for_a_while() {
        let (mut inner, start) = (Inner::default(), clock::monotonic());
        let soon = start + RESTED / 2;
        for _ in 0..9 {
            inner.closed(start, start + RESTED);
        }
        inner.closed(start, soon);
        assert!(!inner.shuns(soon), "once may be chance");
        inner.closed(start, soon);
        assert!(inner.shuns(soon) && !inner.shuns(soon + SHUNNED));
    }
}
