//! What the suite found out about one scenario.

use std::collections::BTreeMap;

use anyhow::Result;
use serde_json::Value;

/// How often one check came out well or badly in a scenario, and why badly.
#[derive(Clone, Default, PartialEq)]
pub struct Tally {
    pub passes: usize,
    pub faults: usize,
    pub reason: String,
}

/// The checks of a scenario. The suite uses an id and a name more than once, so they are counted.
#[derive(Clone, Default, PartialEq)]
pub struct Checks(pub BTreeMap<String, Tally>);

impl Checks {
    pub fn passes(&self) -> usize {
        self.0.values().map(|tally| tally.passes).sum()
    }

    /// Reads the suite's `checks.json`. What only informs or was skipped is neither good nor bad.
    pub fn read(json: &str) -> Result<Self> {
        let mut checks = Self::default();
        let list: Vec<Value> = serde_json::from_str(json)?;
        for check in list {
            let word = |field: &str| check[field].as_str().unwrap_or_default();
            let tally = checks.0.entry(format!("{} {}", word("id"), word("name"))).or_default();
            match word("status") {
                "SUCCESS" => tally.passes += 1,
                "FAILURE" | "WARNING" => {
                    tally.faults += 1;
                    word("errorMessage").clone_into(&mut tally.reason);
                }
                _ => {}
            }
        }
        Ok(checks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One id may stand for several checks; each of them counts.
    #[test]
    fn checks_with_the_same_name_are_counted() {
        let json = r#"[{"id":"a","name":"A","status":"SUCCESS"},{"id":"a","name":"A","status":"SUCCESS"},
            {"id":"a","name":"A","status":"WARNING","errorMessage":"why"},{"id":"b","name":"B","status":"INFO"}]"#;
        let checks = Checks::read(json).unwrap();
        assert_eq!(checks.passes(), 2);
        assert!(checks.0["a A"] == Tally { passes: 2, faults: 1, reason: "why".into() });
    }
}
