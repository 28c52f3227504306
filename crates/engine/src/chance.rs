//! Numbers that spread things out. From a seed that the edge gives, so that a story can be replayed.

/// splitmix64.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// A number from 0 up to 1.
    pub(crate) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(STEP);
        (mixed(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }
}

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// A number in which each bit of another one counts: how splitmix64 ends.
fn mixed(number: u64) -> u64 {
    let z = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A number that nobody else has, made of a seed and of two numbers that were not taken together before.
pub(crate) fn name(seed: u64, first: u64, second: u64) -> u64 {
    let whole = mixed(seed.wrapping_add(mixed(first.wrapping_add(STEP))));
    mixed(whole.wrapping_add(second.wrapping_mul(STEP)))
}
