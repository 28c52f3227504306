//! How much a part of the tests did: so many tests, calls, seeds, inputs.

use std::fmt;

/// Counts by what was counted, in the order in which they came.
#[derive(Default)]
pub struct Amount(Vec<(u64, &'static str)>);

impl Amount {
    pub fn add(&mut self, count: u64, what: &'static str) {
        match self.0.iter_mut().find(|(_, known)| *known == what) {
            Some((sum, _)) => *sum += count,
            None => self.0.push((count, what)),
        }
    }

    /// Counts what the runs of libtest in `said` report.
    pub fn add_tests(&mut self, said: &str) {
        let results = said.lines().filter_map(|line| line.split_once("test result: "));
        for (_, result) in results {
            let (_, counts) = result.split_once(". ").unwrap_or(("", result));
            for part in counts.split("; ") {
                match part.split_once(' ').map(|(count, what)| (count.parse(), what)) {
                    Some((Ok(passed), "passed")) => self.add(passed, "tests"),
                    Some((Ok(failed @ 1..), "failed")) => self.add(failed, "failed tests"),
                    _ => {}
                }
            }
        }
    }
}

impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts: Vec<String> =
            self.0.iter().map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        f.pad(&counts.join(", "))
    }
}

/// `1234567` as `1,234,567`.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_libtest_are_summed() {
        let mut amount = Amount::default();
        amount.add_tests(
            "running 2 tests\n..\ntest result: ok. 1200 passed; 0 failed; 0 ignored; finished in 0.1s\n\n\
             test result: FAILED. 34 passed; 2 failed; 0 ignored; finished in 0.1s\n",
        );
        assert_eq!(amount.to_string(), "1,234 tests, 2 failed tests");
    }

    #[test]
    fn what_has_one_name_is_one_count() {
        let mut amount = Amount::default();
        for (count, what) in [(999_999, "calls"), (3, "seeds"), (1, "calls")] {
            amount.add(count, what);
        }
        assert_eq!(amount.to_string(), "1,000,000 calls, 3 seeds");
        assert_eq!(Amount::default().to_string(), "");
    }
}
