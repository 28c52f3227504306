//! Which scenarios there are: the suite is asked, so that a newer one cannot hide any.

use std::fmt;

use anyhow::{Context, Result, ensure};

use super::setup::Tools;

/// Which side of the protocol the suite examines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Leg {
    Server,
    Client,
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Leg::Server => "server",
            Leg::Client => "client",
        })
    }
}

/// A scenario at one revision, or `extension`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scenario {
    pub leg: Leg,
    pub revision: String,
    pub name: String,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.leg, self.revision, self.name)
    }
}

pub const EXTENSION: &str = "extension";

/// Client scenarios that are not about what outlast does: how a client logs in (outlast sends the
/// header it is given) and what an application does with skills.
const NOT_OURS: [&str; 2] = ["auth/", "sep-2640-"];

/// All scenarios that apply, each at every revision it has.
pub fn all(tools: &Tools) -> Result<Vec<Scenario>> {
    let output = tools.suite().arg("list").output().context("cannot start the suite")?;
    let scenarios = read(&String::from_utf8_lossy(&output.stdout));
    ensure!(
        !scenarios.is_empty(),
        "the suite lists no scenarios: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(scenarios)
}

fn read(list: &str) -> Vec<Scenario> {
    let mut leg = None;
    let mut scenarios = Vec::new();
    for line in list.lines() {
        if let Some((title, _)) = line.split_once(" scenarios (") {
            leg = match title {
                "Server" => Some(Leg::Server),
                "Client" => Some(Leg::Client),
                _ => None,
            };
        }
        let Some((leg, (name, revisions))) = leg.zip(entry(line)) else { continue };
        let ours = leg == Leg::Server || !NOT_OURS.iter().any(|prefix| name.starts_with(prefix));
        let revisions = revisions.split(',').filter(|_| ours);
        scenarios.extend(revisions.map(|revision| Scenario {
            leg,
            revision: revision.into(),
            name: name.into(),
        }));
    }
    scenarios
}

/// `  - NAME [REVISION,REVISION]`
fn entry(line: &str) -> Option<(&str, &str)> {
    line.strip_prefix("  - ")?.strip_suffix(']')?.split_once(" [")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The words are the suite's; if it changes them, this must notice.
    #[test]
    fn every_scenario_comes_with_each_of_its_revisions() {
        let list = "Server scenarios (test against a server):\n  - ping [2025-06-18,2025-11-25]\n  \
                    - tasks [extension]\n\nClient scenarios (test against a client):\n  - sse [2025-11-25]\n  \
                    - auth/x [2025-11-25]\n\nAuthorization server scenarios (test):\n  - other [2025-11-25]\n";
        let shown: Vec<_> = read(list).iter().map(ToString::to_string).collect();
        let expected = [
            "server 2025-06-18 ping",
            "server 2025-11-25 ping",
            "server extension tasks",
            "client 2025-11-25 sse",
        ];
        assert_eq!(shown, expected);
    }
}
