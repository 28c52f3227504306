//! Maps from ids. Their order is never looked at, so a fixed hash keeps the engine deterministic;
//! whoever makes ids collide slows down only their own connection.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map from ids.
pub type IdMap<K, V> = HashMap<K, V, BuildHasherDefault<IdHasher>>;

/// Multiplies and folds: two or three instructions a word.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word ^ 0x9e37_79b9_7f4a_7c15) * 0xa076_1d64_78bd_642f;
        self.0 = (product as u64) ^ (product >> 64) as u64;
    }

    fn write_i64(&mut self, word: i64) {
        self.write_u64(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn write_isize(&mut self, word: isize) {
        self.write_u64(word as u64);
    }
}

/// A number that differs when bytes differ, as good as always.
pub fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = IdHasher(bytes.len() as u64);
    hasher.write(bytes);
    hasher.finish()
}
