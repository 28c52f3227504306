//! Read buffers that are used again.
//!
//! A ten-megabyte message costs more in page faults than in copying if its buffer is new each
//! time; and it costs memory for ever if it is kept. So buffers are kept while there is traffic and
//! given back after a second of quiet.

use bytes::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The size of a new buffer, and the most that is kept in quiet.
pub const SMALL: usize = 64 << 10;

/// Buffers kept at most; one more is freed.
const KEPT: usize = 4;

/// A few buffers between uses. They are empty, and have room: what is never written to costs no memory.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    buffers: Vec<Vec<u8>>,
    /// A large buffer that comes back now is not worth keeping.
    quiet: bool,
}

impl Pool {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer with room for at least `least` bytes.
    pub fn take(&self, least: usize) -> Vec<u8> {
        let least = least.max(SMALL);
        self.take_kept(least).unwrap_or_else(|| Vec::with_capacity(least))
    }

    /// The smallest kept buffer with room for at least `least` bytes.
    pub fn take_kept(&self, least: usize) -> Option<Vec<u8>> {
        let mut kept = self.lock();
        kept.quiet &= least <= SMALL;
        let fits = |(_, buffer): &(usize, &Vec<u8>)| buffer.capacity() >= least;
        let (index, _) =
            kept.buffers.iter().enumerate().filter(fits).min_by_key(|(_, buffer)| buffer.capacity())?;
        Some(kept.buffers.swap_remove(index))
    }

    fn put(&self, mut buffer: Vec<u8>) {
        buffer.clear();
        let mut kept = self.lock();
        if kept.buffers.len() < KEPT && !(kept.quiet && buffer.capacity() > SMALL) {
            kept.buffers.push(buffer);
        }
    }

    /// Turns a buffer into shared bytes; it comes back when all are dropped.
    pub fn share(&self, buffer: Vec<u8>) -> Bytes {
        Bytes::from_owner(Shared { buffer, pool: self.clone() })
    }

    /// Frees what is large, now and until a large one is asked for.
    pub fn release(&self) {
        let mut kept = self.lock();
        kept.quiet = true;
        kept.buffers.retain(|buffer| buffer.capacity() <= SMALL);
    }
}

struct Shared {
    buffer: Vec<u8>,
    pool: Pool,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.pool.put(std::mem::take(&mut self.buffer));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_comes_back_when_its_last_slice_is_dropped() {
        let pool = Pool::default();
        let whole = pool.share(b"ab".to_vec());
        let part = whole.slice(1..);
        drop(whole);
        assert_eq!(&part[..], b"b");
        assert_eq!(pool.take_kept(1), None);
        drop(part);
        assert_eq!(pool.take_kept(2), Some(Vec::new()));
        assert_eq!(pool.take_kept(1), None);
    }

    #[test]
    fn the_pool_is_bounded() {
        let pool = Pool::default();
        for _ in 0..10 {
            pool.put(vec![0; SMALL]);
        }
        assert_eq!(pool.lock().buffers.len(), KEPT);
    }

    #[test]
    fn in_quiet_large_buffers_are_freed_even_if_they_come_back_late() {
        let pool = Pool::default();
        pool.put(vec![0; 4 * SMALL]);
        let late = pool.share(vec![0; 4 * SMALL]);
        pool.release();
        drop(late);
        assert_eq!(pool.take_kept(SMALL), None);
        // With the next large message they are kept again.
        drop(pool.share(pool.take(2 * SMALL)));
        assert_eq!(pool.take(SMALL).capacity(), 2 * SMALL);
    }
}
