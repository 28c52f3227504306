//! Bodies of requests, as they come.
//!
//! One that did not come with its head is put together in memory that was used before: new memory costs
//! more in page faults than the copy. In quiet it is given back.

use crate::pool::Pool;
use bytes::Bytes;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::Notify;

/// After so long without a large body its memory is given back.
const QUIET: Duration = Duration::from_secs(1);

/// How much more than has come is taken because a client announces it: to announce costs nothing.
const BELIEVED: usize = 16;

/// Memory for large bodies.
#[derive(Debug, Default)]
pub struct Intake {
    pool: Pool,
    used: Notify,
    /// Somebody waits for quiet.
    watched: AtomicBool,
}

impl Intake {
    fn take(self: &Arc<Intake>, least: usize) -> Vec<u8> {
        self.used.notify_one();
        if !self.watched.swap(true, Ordering::Relaxed) {
            tokio::spawn(self.clone().rest());
        }
        self.pool.take(least)
    }

    async fn rest(self: Arc<Intake>) {
        while tokio::time::timeout(QUIET, self.used.notified()).await.is_ok() {}
        self.watched.store(false, Ordering::Relaxed);
        self.pool.release();
    }

    /// Makes room for the next `least` bytes of a body, where `announced` are said to follow.
    pub fn make_room(self: &Arc<Intake>, body: &mut Vec<u8>, least: usize, announced: usize) {
        let length = body.len() + least;
        if length > body.capacity() {
            let wanted = body.len().saturating_add(announced);
            let mut larger = self.take(wanted.clamp(2 * length, BELIEVED * length));
            larger.extend_from_slice(body);
            *body = larger;
        }
    }

    /// Adds a part to a body.
    pub fn add(self: &Arc<Intake>, body: &mut Vec<u8>, part: &[u8], announced: usize) {
        self.make_room(body, part.len(), announced);
        body.extend_from_slice(part);
    }

    /// The whole body.
    pub fn finish(&self, body: Vec<u8>) -> Bytes {
        if body.is_empty() { Bytes::new() } else { self.pool.share(body) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_body_is_whole_however_it_is_cut_and_announced() {
        let intake = Arc::new(Intake::default());
        let text: Vec<u8> = (0..200_000_u32).map(|n| n as u8).collect();
        for (step, announced) in [(1_000, 200_000), (1_000, 0), (70_000, 1), (200_000, 200_000), (7, 0)] {
            let mut body = Vec::new();
            for part in text.chunks(step) {
                let wanted = announced - announced.min(body.len());
                if part.len() % 2 == 0 {
                    intake.add(&mut body, part, wanted);
                    continue;
                }
                let mut left = part;
                while !left.is_empty() {
                    intake.make_room(&mut body, 1, wanted);
                    let (fits, rest) = left.split_at(left.len().min(body.capacity() - body.len()));
                    body.extend_from_slice(fits);
                    left = rest;
                }
            }
            assert_eq!(body.len(), text.len());
            assert!(intake.finish(body) == text, "{step} {announced}");
        }
        assert!(intake.finish(Vec::new()).is_empty());
    }

    #[tokio::test]
    async fn memory_is_used_again() {
        let intake = Arc::new(Intake::default());
        let part = vec![b'x'; 100_000];
        let whole = || {
            let mut body = Vec::new();
            (0..2).for_each(|_| intake.add(&mut body, &part, part.len()));
            intake.finish(body)
        };
        let first = whole().as_ptr();
        assert_eq!(whole().as_ptr(), first);
    }

    #[tokio::test]
    async fn an_announcement_alone_takes_no_memory() {
        let intake = Arc::new(Intake::default());
        let mut body = Vec::new();
        for sent in [50_000, 100_000, 2_000_000] {
            let part = vec![b'x'; sent - body.len()];
            intake.add(&mut body, &part, 64 << 20);
            assert!(body.capacity() <= BELIEVED * sent, "{sent} bytes came, {} taken", body.capacity());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn in_quiet_memory_is_given_back() {
        let intake = Arc::new(Intake::default());
        for _ in 0..3 {
            let mut body = Vec::new();
            (0..2).for_each(|_| intake.add(&mut body, &[0; 100_000], 100_000));
            intake.finish(body);
            assert!(intake.pool.take_kept(100_000).map(|kept| intake.pool.share(kept)).is_some());
            tokio::time::advance(QUIET / 2).await;
        }
        while intake.watched.load(Ordering::Relaxed) {
            tokio::task::yield_now().await;
            tokio::time::advance(QUIET).await;
        }
        assert!(intake.pool.take_kept(100_000).is_none());
    }
}
