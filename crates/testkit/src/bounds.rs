//! What a scenario says of a bound of `limits.rs`: that it was reached.

use outlast_engine::reached::Bound;

/// Lives while a scenario is played.
#[derive(Debug)]
#[must_use = "it looks at the end of the scenario"]
pub struct Reaches(Vec<(Bound, u64)>);

/// The scenario that begins here reaches these bounds; it fails if it does not.
pub fn reaches(bounds: &[Bound]) -> Reaches {
    Reaches(bounds.iter().map(|bound| (*bound, bound.count())).collect())
}

impl Drop for Reaches {
    fn drop(&mut self) {
        let missed = self.0.iter().find(|(bound, before)| bound.count() == *before);
        assert!(missed.is_none() || std::thread::panicking(), "{missed:?} was not reached");
    }
}
