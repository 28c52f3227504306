//! The only source of randomness: the system's.

use ring::rand::{SecureRandom, SystemRandom};

/// Bytes that nobody can guess.
#[allow(clippy::disallowed_methods)]
pub fn bytes<const LENGTH: usize>() -> [u8; LENGTH] {
    let mut bytes = [0; LENGTH];
    SystemRandom::new().fill(&mut bytes).expect("the system has a secure random source");
    bytes
}
