//! When a call is handed off, and what the tools are called that fetch it.
//!
//! A client whose limit no progress moves gives a slow call up at its cap. Shortly before, the call is
//! answered with a ticket, and goes on. Not here: how that is stored and said (`engine/tasks/handoff.rs`),
//! which clients have such a cap (`profile.rs`).

use crate::json;
use crate::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::time::Duration;

/// The most that is left of a cap for storing the ticket, and for the way to the client.
const MARGIN: Duration = Duration::from_secs(5);

/// Cancels of a younger call are a person's.
const LIKELY: Duration = Duration::from_secs(10);

/// Characters of a tool's name that every model provider takes.
const NAME: usize = 64;

/// How long a call of a client with this cap may wait for its answer.
pub(crate) fn patience(cap: Duration) -> Duration {
    cap - (cap / 10).min(MARGIN)
}

/// How long a wait may take: as long as its client wishes, within its cap.
pub(crate) fn wait(cap: Duration, wish: Option<f64>) -> Duration {
    let wish = wish.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok());
    wish.unwrap_or(cap).min(patience(cap))
}

/// The cap that two cancels of silent calls speak for, as a person would write it.
pub(crate) fn likely_cap(earlier: Duration, later: Duration) -> Option<Duration> {
    let shorter = earlier.min(later);
    let apart = earlier.abs_diff(later);
    let same = apart <= (shorter / 50).max(Duration::from_secs(1));
    (same && shorter >= LIKELY).then(|| Duration::from_secs(shorter.as_secs()))
}

/// What must be known of a server's tools to hand its calls off.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    /// Those that promise structured content.
    schemas: BTreeSet<Box<str>>,
    /// Those that might be called as ours are.
    taken: BTreeSet<Box<str>>,
}

impl KnownTools {
    /// Learns from a page of a list.
    pub(crate) fn learn(&mut self, result: &[u8]) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Tool<'a> {
            name: Box<str>,
            #[serde(borrow)]
            output_schema: Option<&'a RawValue>,
        }
        let tools = json::member(result, "tools").and_then(json::elements).unwrap_or_default();
        for tool in tools {
            let Ok(tool) = serde_json::from_slice::<Tool<'_>>(tool) else { continue };
            if (tool.name.contains("_wait") || tool.name.contains("_cancel"))
                && self.taken.len() < limits::KNOWN_TOOLS
            {
                self.taken.insert(tool.name.clone());
            }
            if tool.output_schema.is_none() {
                self.schemas.remove(&tool.name);
            } else if !reached!(KNOWN_TOOLS, self.schemas.len() >= limits::KNOWN_TOOLS) {
                self.schemas.insert(tool.name);
            }
        }
    }

    /// Whether a plain text would break what a tool promises.
    pub(crate) fn has_schema(&self, tool: &str) -> bool {
        self.schemas.contains(tool)
    }

    /// The names of our tools at this server.
    pub(crate) fn names(&self, server: &str) -> Names {
        Names { wait: self.free(server, "_wait"), cancel: self.free(server, "_cancel") }
    }

    /// `server_wait`; or, if the server has such a tool itself, `server_wait2`.
    fn free(&self, server: &str, what: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let mut number = 1;
        loop {
            let end = if number == 1 { what.to_owned() } else { format!("{what}{number}") };
            let begin: String = server.chars().map(plain).take(NAME - end.len()).collect();
            let name = begin + &end;
            if !self.taken.contains(name.as_str()) {
                return name;
            }
            number += 1;
        }
    }
}

/// What our tools are called at one server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Names {
    pub(crate) wait: String,
    pub(crate) cancel: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn secs(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn a_tenth_of_the_cap_is_left_but_never_more_than_five_seconds() {
        assert_eq!(patience(secs(60)), secs(55));
        assert_eq!(patience(secs(240)), secs(235));
        assert_eq!(patience(secs(10)), secs(9));
        assert_eq!(patience(Duration::from_nanos(1)), Duration::from_nanos(1));
    }

    #[test]
    fn a_wait_stays_within_the_cap_whatever_is_wished() {
        let cap = secs(60);
        assert_eq!(wait(cap, None), secs(55));
        assert_eq!(wait(cap, Some(20.5)), Duration::from_millis(20_500));
        for much in [56.0, 1e300, f64::INFINITY] {
            assert_eq!(wait(cap, Some(much)), secs(55));
        }
        for little in [0.0, -3.0, f64::NEG_INFINITY] {
            assert_eq!(wait(cap, Some(little)), Duration::ZERO);
        }
    }

    #[test]
    fn two_cancels_speak_for_a_cap_if_they_are_old_and_alike() {
        assert_eq!(likely_cap(secs(60), Duration::from_millis(61_200)), Some(secs(60)));
        assert_eq!(likely_cap(Duration::from_millis(10_900), secs(10)), Some(secs(10)));
        assert_eq!(likely_cap(secs(60), secs(62)), None);
        assert_eq!(likely_cap(secs(9), secs(9)), None);
        assert_eq!(likely_cap(secs(240), secs(244)), Some(secs(240)));
    }

    #[test]
    fn names_are_what_every_model_takes_and_nobody_elses() {
        let mut known = KnownTools::default();
        let names = known.names("some.server@latest");
        assert_eq!((&*names.wait, &*names.cancel), ("some_server_latest_wait", "some_server_latest_cancel"));
        known.learn(br#"{"tools":[{"name":"s_wait"},{"name":"s_wait2","outputSchema":{}},{"nam":1}]}"#);
        let names = known.names("s");
        assert_eq!((&*names.wait, &*names.cancel), ("s_wait3", "s_cancel"));
        let long = known.names(&"ü".repeat(99));
        assert_eq!((long.wait.len(), long.cancel.len()), (64, 64));
        assert!(long.cancel.ends_with("_cancel"));
    }

    #[test]
    fn a_schema_is_known_until_it_is_gone() {
        let mut known = KnownTools::default();
        known.learn(br#"{"tools":[{"name":"a","outputSchema":{"type":"object"}},{"name":"b"}]}"#);
        assert!(known.has_schema("a") && !known.has_schema("b"));
        known.learn(br#"{"tools":[{"name":"a"}]}"#);
        assert!(!known.has_schema("a"));
    }
}
