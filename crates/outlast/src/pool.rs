//! Read buffers that are used again.
//!
//! A ten-megabyte message costs more in page faults than in copying if its buffer is new each
//! time; and it costs memory for ever if it is kept. So buffers are kept while there is traffic and
//! given back after a second of quiet.

use bytes::Bytes;
use std::sync::{Arc, Mutex, PoisonError};

/// The size of a new buffer, and the most that is kept in quiet.
pub const SMALL: usize = 64 << 10;

/// Buffers kept at most; one more is freed.
const KEPT: usize = 4;

/// A few buffers between uses. Every buffer is initialised to its whole length.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

impl Pool {
    /// A buffer with at least `least` bytes.
    pub fn take(&self, least: usize) -> Vec<u8> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.iter().rposition(|buffer| buffer.len() >= least.max(SMALL));
        match fits {
            Some(index) => kept.swap_remove(index),
            None => vec![0; least.max(SMALL)],
        }
    }

    fn put(&self, buffer: Vec<u8>) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() < KEPT {
            kept.push(buffer);
        }
    }

    /// Turns a buffer's first `length` bytes into shared bytes; it comes back when all are dropped.
    pub fn share(&self, buffer: Vec<u8>, length: usize) -> Bytes {
        Bytes::from_owner(Shared { buffer, length, pool: self.clone() })
    }

    /// Frees what is kept.
    pub fn release(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

struct Shared {
    buffer: Vec<u8>,
    length: usize,
    pool: Pool,
}

impl AsRef<[u8]> for Shared {
    fn as_ref(&self) -> &[u8] {
        &self.buffer[..self.length]
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
        let mut buffer = pool.take(100_000);
        buffer[..2].copy_from_slice(b"ab");
        let address = buffer.as_ptr();
        let whole = pool.share(buffer, 2);
        let part = whole.slice(1..);
        drop(whole);
        assert_eq!(&part[..], b"b");
        drop(part);
        assert_eq!(pool.take(10).as_ptr(), address, "the same memory");
        assert_ne!(pool.take(10).as_ptr(), address);
    }

    #[test]
    fn the_pool_is_bounded_and_can_be_emptied() {
        let pool = Pool::default();
        for _ in 0..10 {
            pool.put(vec![0; SMALL]);
        }
        assert_eq!(pool.0.lock().unwrap().len(), KEPT);
        pool.release();
        assert!(pool.0.lock().unwrap().is_empty());
    }
}
