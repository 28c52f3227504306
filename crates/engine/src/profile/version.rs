//! Which versions of a client a row is for.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A version, and whether later ones count too.
///
/// Later ones are those with the same first number: a client that was measured yesterday is released again today,
/// and a hand-off that was not needed costs less than a lost call. Earlier ones do not count: several clients have
/// raised their limits over time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions {
    from: Box<str>,
    and_later: bool,
}

impl Versions {
    /// Reads `1.2.3`, or `1.2.3+` for it and what comes later with the same first number.
    pub fn parse(text: &str) -> Versions {
        match text.strip_suffix('+') {
            Some(from) => Versions { from: from.into(), and_later: true },
            None => Versions { from: text.into(), and_later: false },
        }
    }

    /// Whether a version is among them.
    pub fn contain(&self, version: &str) -> bool {
        let (from, other) = (numbers(&self.from), numbers(version));
        let later = || !from.is_empty() && from.first() == other.first() && from <= other;
        *version == *self.from || (self.and_later && later())
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.from, if self.and_later { "+" } else { "" })
    }
}

/// The numbers that a version begins with; what follows a hyphen or a plus is a name.
fn numbers(version: &str) -> Vec<u64> {
    let plain = version.split(['-', '+']).next().unwrap_or_default();
    plain.trim_start_matches('v').split('.').map_while(|number| number.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_and_what_comes_later_with_the_same_first_number() {
        let later = Versions::parse("1.18.9+");
        for version in ["1.18.9", "1.18.10", "1.20.0", "1.18.9-beta.1", "v1.19"] {
            assert!(later.contain(version), "{version}");
        }
        for version in ["1.18.8", "1.9.0", "0.18.9", "2.0.0", "", "x"] {
            assert!(!later.contain(version), "{version}");
        }
        assert!(Versions::parse("0.1.0").contain("0.1.0") && !Versions::parse("0.1.0").contain("0.1.1"));
        assert!(Versions::parse("dev").contain("dev") && !Versions::parse("dev+").contain("other"));
        assert_eq!(later.to_string(), "1.18.9+");
    }
}
