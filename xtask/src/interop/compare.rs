//! What a client saw directly against what it saw through outlast.

use super::client::{Outcome, Run};

/// What is not the same through outlast as directly.
pub fn differences(direct: &Run, through: &Run) -> Vec<String> {
    let (mut complaints, mut missing) = (Vec::new(), Vec::new());
    for (check, before) in &direct.outcomes {
        // Why a check failed may be worded differently; what a good one saw may not.
        match through.outcomes.get(check) {
            None => missing.push(check.as_str()),
            Some(after) if after == before => {}
            Some(after) if after.ok == before.ok && before.ok != Outcome::PASSED => {}
            Some(after) => {
                complaints.push(format!("{check}: directly {before}, through outlast {after}"));
            }
        }
    }
    if !missing.is_empty() {
        complaints.push(format!("no result through outlast: {}", missing.join(", ")));
    }
    let new = through.outcomes.keys().filter(|check| !direct.outcomes.contains_key(*check));
    complaints.extend(new.map(|check| format!("{check}: only through outlast")));
    if !complaints.is_empty() || through.trouble.is_some() {
        complaints.extend(through.story());
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIRECT: &str = r#"{"check":"echo","ok":true,"detail":"5 characters"}
        {"check":"odd","ok":false,"detail":"one way"}"#;

    fn complaints(through: &str) -> Vec<String> {
        differences(&Run::said(DIRECT), &Run::said(through))
    }

    #[test]
    fn the_same_is_no_difference() {
        assert!(complaints(DIRECT).is_empty());
    }

    /// A failure that is explained may be worded differently; a success may not be.
    #[test]
    fn other_words_count_only_when_it_passed() {
        assert!(complaints(&DIRECT.replace("one way", "another")).is_empty());
        assert_eq!(complaints(&DIRECT.replace("5 char", "4 char")).len(), 1);
    }

    /// Passing through outlast what fails directly is as suspicious as the reverse.
    #[test]
    fn another_outcome_is_a_difference() {
        assert_eq!(complaints(&DIRECT.replace("true", "\"unsupported\"")).len(), 1);
        assert_eq!(complaints(&DIRECT.replace("false", "true")).len(), 1);
    }

    #[test]
    fn a_check_that_is_missing_or_new_is_a_difference() {
        assert_eq!(complaints(r#"{"check":"odd","ok":false,"detail":""}"#).len(), 1);
        assert_eq!(complaints(&format!("{DIRECT}\n{}", DIRECT.replace("echo", "new"))).len(), 1);
    }
}
