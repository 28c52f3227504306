//! What must come out, and how it differs from what did.
//!
//! A line `LEG REVISION SCENARIO PASSES` says what passes directly. Below it, a line
//! `- ROUTE, ROUTE lose|win CHECK: reason.` is an exception: a check that does not come out through
//! outlast as it does directly. Better than expected is as much a difference as worse: somebody
//! has to look at it and say why.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::Found;
use super::checks::Checks;
use super::route::Route;
use super::scenarios::{Leg, Scenario};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Lost,
    Won,
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Change::Lost => "lose",
            Change::Won => "win",
        })
    }
}

type Exception = (Route, Change, String);

#[derive(Default)]
struct Entry {
    passes: usize,
    exceptions: Vec<Exception>,
}

/// The file of expected results.
pub struct Expected(BTreeMap<Scenario, Entry>);

impl Expected {
    pub fn read(folder: &Path) -> Result<Self> {
        let path = folder.join("expected.txt");
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::parse(&text).with_context(|| path.display().to_string())
    }

    fn parse(text: &str) -> Result<Self> {
        let mut entries = BTreeMap::new();
        let mut last = None;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(words) = line.strip_prefix("- ") {
                let exceptions = exceptions(words).with_context(|| format!("cannot read `{line}`"))?;
                let entry: Option<&mut Entry> = last.as_ref().and_then(|scenario| entries.get_mut(scenario));
                entry.context("an exception before any scenario")?.exceptions.extend(exceptions);
            } else {
                let (scenario, passes) = count(line).with_context(|| format!("cannot read `{line}`"))?;
                last = Some(scenario.clone());
                let earlier = entries.insert(scenario, Entry { passes, ..Entry::default() });
                ensure!(earlier.is_none(), "`{line}` is there twice");
            }
        }
        Ok(Self(entries))
    }

    /// Everything that is not as it says here, about the scenarios that were run.
    pub fn complaints(&self, found: &Found, scenarios: &[Scenario]) -> Vec<String> {
        let mut complaints = Vec::new();
        let nothing = Entry::default();
        for scenario in scenarios {
            let entry = self.0.get(scenario).unwrap_or(&nothing);
            let Some(direct) = found.get(&(scenario.clone(), Route::Direct)) else { continue };
            complaints.extend(about_direct(scenario, entry, direct));
            for route in Route::ALL.into_iter().skip(1) {
                if let Some(through) = found.get(&(scenario.clone(), route)) {
                    complaints.extend(about_route(scenario, route, entry, direct, through));
                }
            }
        }
        complaints
    }

    /// Scenarios that the suite no longer has.
    pub fn gone(&self, all: &[Scenario]) -> Vec<String> {
        let gone = self.0.keys().filter(|scenario| !all.contains(scenario));
        gone.map(|scenario| format!("{scenario}: the suite has no such scenario")).collect()
    }
}

/// `LEG REVISION SCENARIO PASSES`
fn count(line: &str) -> Result<(Scenario, usize)> {
    let [leg, revision, name, passes] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        bail!("not four words");
    };
    let leg = [Leg::Server, Leg::Client].into_iter().find(|known| known.to_string() == leg);
    let leg = leg.context("neither server nor client")?;
    Ok((Scenario { leg, revision: revision.into(), name: name.into() }, passes.parse()?))
}

/// `ROUTE, ROUTE lose|win CHECK: reason.`
fn exceptions(words: &str) -> Result<Vec<Exception>> {
    let (what, reason) = words.split_once(": ").context("no reason")?;
    ensure!(reason.ends_with('.'), "the reason is not a sentence");
    for change in [Change::Lost, Change::Won] {
        let Some((routes, check)) = what.split_once(&format!(" {change} ")) else { continue };
        let route = |name: &str| Route::named(name).with_context(|| format!("no route `{name}`"));
        return routes.split(", ").map(|name| Ok((route(name)?, change, check.to_owned()))).collect();
    }
    bail!("neither lose nor win")
}

fn about_direct(scenario: &Scenario, entry: &Entry, direct: &Checks) -> Vec<String> {
    let mut complaints = Vec::new();
    if direct.passes() != entry.passes {
        let (found, expected) = (direct.passes(), entry.passes);
        complaints.push(format!("{scenario}: {found} checks pass directly, expected {expected}"));
    }
    let faulty = direct.0.iter().filter(|(_, tally)| tally.faults > 0);
    complaints
        .extend(faulty.map(|(check, tally)| format!("{scenario}: directly, {check}: {}", tally.reason)));
    complaints
}

fn about_route(
    scenario: &Scenario,
    route: Route,
    entry: &Entry,
    direct: &Checks,
    through: &Checks,
) -> Vec<String> {
    if through.0.is_empty() && !direct.0.is_empty() {
        return vec![format!("{scenario}: no findings about {route}")];
    }
    let seen = changes(direct, through);
    let explained =
        |change: Change, check: &str| entry.exceptions.contains(&(route, change, check.to_owned()));
    let unexplained = seen.iter().filter(|((change, check), _)| !explained(*change, check));
    let unseen = entry
        .exceptions
        .iter()
        .filter(|(on, change, check)| *on == route && !seen.contains_key(&(*change, check.clone())));
    let unexplained = unexplained
        .map(|((change, check), reason)| format!("{scenario}: {route} {change} {check}: {reason}"));
    let unseen =
        unseen.map(|(_, change, check)| format!("{scenario}: no longer true that {route} {change} {check}"));
    unexplained.chain(unseen).collect()
}

/// Which checks come out differently, and what the suite says about it.
fn changes(direct: &Checks, through: &Checks) -> BTreeMap<(Change, String), String> {
    let mut changes = BTreeMap::new();
    for check in direct.0.keys().chain(through.0.keys()) {
        let before = direct.0.get(check).cloned().unwrap_or_default();
        let after = through.0.get(check).cloned().unwrap_or_default();
        if after.passes < before.passes || after.faults > before.faults {
            let reason = if after.reason.is_empty() { "not passed".into() } else { after.reason };
            changes.insert((Change::Lost, check.clone()), reason);
        } else if after.passes > before.passes {
            changes.insert((Change::Won, check.clone()), "passed only through outlast".into());
        }
    }
    changes
}

/// What passes directly, as lines of the file.
pub fn counts(found: &Found) -> String {
    let direct = found.iter().filter(|((_, route), _)| *route == Route::Direct);
    direct.map(|((scenario, _), checks)| format!("{scenario} {}\n", checks.passes())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "# a comment\nserver 2025-11-25 ping 2\n  - http lose a A: outlast is not to blame.\n";

    fn scenario() -> Scenario {
        Scenario { leg: Leg::Server, revision: "2025-11-25".into(), name: "ping".into() }
    }

    fn checks(statuses: [&str; 2]) -> Checks {
        let [a, b] = statuses;
        let json =
            format!(r#"[{{"id":"a","name":"A","status":"{a}"}},{{"id":"b","name":"B","status":"{b}"}}]"#);
        Checks::read(&json).unwrap()
    }

    fn complaints(direct: [&str; 2], http: [&str; 2]) -> Vec<String> {
        let found = BTreeMap::from([
            ((scenario(), Route::Direct), checks(direct)),
            ((scenario(), Route::Http), checks(http)),
        ]);
        Expected::parse(FILE).unwrap().complaints(&found, &[scenario()])
    }

    #[test]
    fn an_explained_loss_is_no_complaint() {
        assert!(complaints(["SUCCESS", "SUCCESS"], ["FAILURE", "SUCCESS"]).is_empty());
        assert!(complaints(["SUCCESS", "SUCCESS"], ["INFO", "SUCCESS"]).is_empty());
    }

    #[test]
    fn an_unexplained_loss_is_one() {
        assert_eq!(complaints(["SUCCESS", "SUCCESS"], ["INFO", "WARNING"]).len(), 1);
    }

    /// A file that promises less than there is hides the next loss.
    #[test]
    fn better_than_expected_is_one_too() {
        assert_eq!(complaints(["SUCCESS", "SUCCESS"], ["SUCCESS", "SUCCESS"]).len(), 1);
    }

    /// A check that passes nowhere is a mistake of the fixture.
    #[test]
    fn what_fails_directly_is_one() {
        assert_eq!(complaints(["SUCCESS", "FAILURE"], ["INFO", "FAILURE"]).len(), 2);
    }

    #[test]
    fn an_exception_needs_a_sentence() {
        assert!(Expected::parse("server 2025-11-25 ping 2\n- http lose a A\n").is_err());
        assert!(Expected::parse("server 2025-11-25 ping 2\n- http lose a A: because\n").is_err());
    }
}
