//! What came of everything: each verdict printed as soon as it is known, and the sum at the end.

use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};

use super::say;
use crate::amount::Amount;

/// What came of one pair: a line if it is well, the complaints if it is not.
pub type Verdict = Result<String, Vec<String>>;

/// Counts verdicts and prints each as soon as it is known, whole.
#[derive(Default)]
pub struct Tally(Mutex<Counts>);

#[derive(Default)]
struct Counts {
    passed: usize,
    failed: usize,
    /// What to type to see each failure again.
    repeat: Vec<String>,
}

impl Tally {
    pub fn add(&self, name: &str, verdict: Verdict) {
        let mut counts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match verdict {
            Ok(line) => {
                counts.passed += 1;
                say(&format!("ok    {name:<32} {line}"));
            }
            Err(complaints) => {
                counts.failed += 1;
                counts.repeat.push(format!("cargo xtask interop {name}"));
                complain(name, &complaints);
            }
        }
    }

    /// What went wrong beside the pairs, such as a server that does not start.
    pub fn add_trouble(&self, whose: &str, trouble: &anyhow::Error) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failed += 1;
        complain(whose, &[format!("{trouble:#}")]);
    }

    /// A server that outlives its client is a failure of its own; whose, its command line tells.
    pub fn add_leftovers(&self, leftovers: &[String]) {
        if !leftovers.is_empty() {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).failed += 1;
            complain("processes left behind", leftovers);
        }
    }

    pub fn finish(&self, amount: &mut Amount) -> Result<()> {
        let counts = self.0.lock().ok().context("a worker panicked")?;
        for command in &counts.repeat {
            say(&format!("to repeat: {command}"));
        }
        say(&format!("{} passed, {} failed", counts.passed, counts.failed));
        amount.add(counts.passed as u64, "meetings");
        ensure!(counts.failed == 0, "interop tests failed");
        Ok(())
    }
}

fn complain(name: &str, complaints: &[String]) {
    say(&format!("FAIL  {name}"));
    for complaint in complaints {
        say(&format!("      {complaint}"));
    }
}
