//! What waits for a thread that nobody waits for: a queue with a bound, whose losses are counted.
//!
//! Whoever adds to it never waits: what does not fit is lost. The thread takes what is there, and is woken only when it
//! may have nothing to do.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A queue between whoever has something to tell and the thread that tells it.
#[derive(Debug)]
pub struct Backlog<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
    /// Bytes that may wait. One item may be as long as it is; beside it no other is taken.
    most: usize,
    /// So many items are worth waking somebody for who collects them.
    enough: usize,
    /// All items that were lost, here or later.
    lost: AtomicU64,
}

#[derive(Debug)]
struct Waiting<T> {
    items: VecDeque<Entry<T>>,
    bytes: usize,
    /// Lost since the last item that was taken.
    gap: u64,
    busy: bool,
    ends: bool,
}

#[derive(Debug)]
struct Entry<T> {
    item: T,
    bytes: usize,
    /// Lost before it.
    gap: u64,
}

/// The next thing to be told: first how many items are missing before it, then the item; it is not there yet where the
/// last ones were lost.
#[derive(Debug, PartialEq, Eq)]
pub struct Next<T> {
    /// Items that are missing.
    pub gap: u64,
    /// The item.
    pub item: Option<T>,
}

impl<T> Backlog<T> {
    /// A queue for so many bytes. Whoever collects items has enough of them then.
    pub fn new(most: usize, enough: usize) -> Backlog<T> {
        let waiting = Waiting { items: VecDeque::new(), bytes: 0, gap: 0, busy: false, ends: false };
        let (waiting, changed, lost) = (Mutex::new(waiting), Condvar::new(), AtomicU64::new(0));
        Backlog { waiting, changed, most, enough, lost }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an item, if there is room; else it is lost. Never waits.
    pub fn push(&self, item: T, bytes: usize) {
        let mut waiting = self.lock();
        if waiting.bytes > 0 && waiting.bytes + bytes > self.most {
            waiting.gap += 1;
            return self.lose(1);
        }
        let gap = std::mem::take(&mut waiting.gap);
        waiting.bytes += bytes;
        waiting.items.push_back(Entry { item, bytes, gap });
        let count = waiting.items.len();
        drop(waiting);
        if count == 1 || count == self.enough {
            self.changed.notify_all();
        }
    }

    /// Items were lost after they had left the queue.
    pub fn lose(&self, count: u64) {
        self.lost.fetch_add(count, Ordering::Relaxed);
    }

    /// How many were lost in all.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits for the next item, or until it is known that some are missing.
    pub fn next(&self) -> Next<T> {
        let mut waiting = self.rests();
        while waiting.items.is_empty() && waiting.gap == 0 {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        waiting.busy = true;
        match waiting.take() {
            Some(entry) => Next { gap: entry.gap, item: Some(entry.item) },
            None => Next { gap: std::mem::take(&mut waiting.gap), item: None },
        }
    }

    /// Waits for an item, and then for more of them until there are enough, or for so long. None, if the end has come.
    pub fn collect(&self, patience: Duration) -> Vec<T> {
        let mut waiting = self.rests();
        while waiting.items.is_empty() && !waiting.ends {
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
        let few = |waiting: &mut Waiting<T>| waiting.items.len() < self.enough && !waiting.ends;
        let waited = self.changed.wait_timeout_while(waiting, patience, few);
        let (mut waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        waiting.busy = !waiting.items.is_empty();
        std::iter::from_fn(|| waiting.take()).take(self.enough).map(|entry| entry.item).collect()
    }

    /// The thread has told what it took.
    fn rests(&self) -> MutexGuard<'_, Waiting<T>> {
        let mut waiting = self.lock();
        if std::mem::take(&mut waiting.busy) {
            self.changed.notify_all();
        }
        waiting
    }

    /// Lets the thread wait for a while; true if it must hurry, because the end has come.
    pub fn pause(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.lock(), time, |waiting| !waiting.ends);
        waited.unwrap_or_else(PoisonError::into_inner).0.ends
    }

    /// The end: waits a short while for what is left; what is not told then is lost.
    pub fn finish(&self, time: Duration) {
        let mut waiting = self.lock();
        waiting.ends = true;
        self.changed.notify_all();
        let left = |waiting: &mut Waiting<T>| waiting.busy || !waiting.items.is_empty() || waiting.gap > 0;
        let waited = self.changed.wait_timeout_while(waiting, time, left);
        let (waiting, _) = waited.unwrap_or_else(PoisonError::into_inner);
        self.lose(waiting.items.len() as u64);
    }
}

impl<T> Waiting<T> {
    fn take(&mut self) -> Option<Entry<T>> {
        let entry = self.items.pop_front()?;
        self.bytes -= entry.bytes;
        Some(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_lost_and_missed_where_it_was() {
        let backlog = Backlog::new(10, 1);
        for (item, bytes) in [('a', 6), ('b', 5), ('c', 4), ('d', 1)] {
            backlog.push(item, bytes);
        }
        assert_eq!(backlog.lost(), 2);
        assert_eq!(backlog.next(), Next { gap: 0, item: Some('a') });
        backlog.push('e', 2);
        assert_eq!(backlog.next(), Next { gap: 1, item: Some('c') });
        assert_eq!(backlog.next(), Next { gap: 1, item: Some('e') });
    }

    #[test]
    fn what_is_longer_than_the_bound_is_taken_by_itself() {
        let backlog = Backlog::new(10, 1);
        backlog.push('a', 11);
        backlog.push('b', 1);
        assert_eq!(backlog.next(), Next { gap: 0, item: Some('a') });
        assert_eq!(backlog.next(), Next { gap: 1, item: None }, "it is known before anything follows");
        backlog.push('c', 1);
        assert_eq!(backlog.next(), Next { gap: 0, item: Some('c') });
    }

    #[test]
    fn so_many_are_collected_at_once() {
        let backlog = Backlog::new(100, 2);
        (0..5).for_each(|item| backlog.push(item, 1));
        let long = Duration::from_secs(60);
        assert_eq!(backlog.collect(long), [0, 1]);
        assert_eq!(backlog.collect(long), [2, 3]);
        backlog.finish(Duration::ZERO);
        assert_eq!(backlog.lost(), 1, "nobody has told it by then");
        assert_eq!(backlog.collect(long), [4], "at the end nobody waits for more");
        assert!(backlog.collect(long).is_empty());
        assert!(backlog.pause(long));
    }
}
