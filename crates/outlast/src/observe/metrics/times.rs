//! How long calls took, for a histogram with fixed edges: they must stay the same for as long as somebody collects
//! them, so they are powers of two from 8 ms to 37 hours, which covers all that a call may take.

use std::time::Duration;

/// The power of two of the first edge, in milliseconds.
const FIRST: u32 = 3;

/// Edges. What takes longer is only in the sum.
const EDGES: usize = 25;

/// A histogram.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Calls up to each edge that are above the one before; the last are above all.
    counts: [u64; EDGES + 1],
    sum: Duration,
}

impl Times {
    /// One call more.
    pub fn add(&mut self, took: Duration) {
        self.counts[slot(took)] += 1;
        self.sum = self.sum.saturating_add(took);
    }

    /// Each edge in seconds, and how many calls took no longer.
    pub fn up_to(&self) -> impl Iterator<Item = (f64, u64)> {
        let mut sum = 0;
        self.counts.iter().take(EDGES).enumerate().map(move |(at, count)| {
            sum += count;
            (edge(at) as f64 / 1000.0, sum)
        })
    }

    /// All of them.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// The time of all together, in seconds.
    pub fn sum(&self) -> f64 {
        self.sum.as_secs_f64()
    }
}

/// In milliseconds.
fn edge(at: usize) -> u64 {
    1 << (FIRST as usize + at)
}

/// The first edge that is not below.
fn slot(took: Duration) -> usize {
    let micros = took.as_micros();
    let ms = u64::try_from(micros.div_ceil(1000)).unwrap_or(u64::MAX);
    let power = u64::BITS - ms.saturating_sub(1).leading_zeros();
    (power.saturating_sub(FIRST) as usize).min(EDGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_counts_up_to_the_first_edge_that_is_not_below() {
        let ms = Duration::from_millis;
        for (took, at) in [
            (Duration::ZERO, 0),
            (ms(8), 0),
            (Duration::from_micros(8_001), 1),
            (ms(16), 1),
            (ms(17), 2),
            (ms(1 << 27), EDGES - 1),
            (ms((1 << 27) + 1), EDGES),
            (Duration::MAX, EDGES),
        ] {
            assert_eq!(slot(took), at, "{took:?}");
        }
        assert_eq!((edge(0), edge(EDGES - 1)), (8, 1 << 27));
    }

    #[test]
    fn edges_count_all_that_is_below_them() {
        let mut times = Times::default();
        [5, 20, 300_000_000].into_iter().for_each(|ms| times.add(Duration::from_millis(ms)));
        let up_to: Vec<(f64, u64)> = times.up_to().collect();
        assert_eq!((up_to[0], up_to[1], up_to[2]), ((0.008, 1), (0.016, 1), (0.032, 2)));
        assert_eq!((up_to[EDGES - 1], times.count()), ((134_217.728, 2), 3));
        assert_eq!(times.sum(), 300_000.025);
    }
}
