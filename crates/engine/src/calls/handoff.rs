//! When a call is handed off, and what the tools are called that fetch it.
//!
//! A client whose limit is not reset by progress gives a slow call up at its cap. Shortly before, the call is
//! answered with a ticket, and goes on. Not here: how that is stored and said (`engine/tasks/handoff.rs`),
//! which clients have such a cap (`profile.rs`).

use crate::hash::fingerprint;
use crate::json;
use crate::limits;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::time::Duration;

/// The most that is left of a cap for storing the ticket, and for the way to the client.
const MARGIN: Duration = Duration::from_secs(5);

/// Cancels of a younger call are a person's.
pub(crate) const LIKELY: Duration = Duration::from_secs(10);

/// Characters of our tools' names at most. Model providers take 64, and many clients put the name of the server in
/// front.
const NAME: usize = 40;

/// What our tools are named after if the server has not said what it is called.
const UNNAMED: &str = "outlast";

/// Letters of a server's digest in the names of our tools.
const MARK: usize = 4;

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
    (are_alike(earlier, later) && shorter >= LIKELY).then(|| Duration::from_secs(shorter.as_secs()))
}

fn are_alike(one: Duration, other: Duration) -> bool {
    one.abs_diff(other) <= (one.min(other) / 50).max(Duration::from_secs(1))
}

/// The limit that a cancel's own reason names, if the call is as old as that: `timed out after 5s`, as the Python SDK
/// writes it. Once is enough.
pub(crate) fn stated_cap(reason: &str, age: Duration) -> Option<Duration> {
    let (_, rest) = reason.split_once("timed out after ")?;
    let number = rest.find(|c: char| !c.is_ascii_digit() && c != '.').map_or(rest, |end| &rest[..end]);
    let unit = rest[number.len()..].trim_start();
    let seconds = unit.starts_with('s') || unit.is_empty();
    let cap = Duration::try_from_secs_f64(number.parse().ok().filter(|_| seconds)?).ok()?;
    (cap >= Duration::from_secs(1) && are_alike(cap, age)).then_some(cap)
}

/// Whether a call that its client gave up only now shows that the client waits longer than that.
pub(crate) fn is_beyond(cap: Duration, age: Duration) -> bool {
    age > cap + (cap / 20).max(Duration::from_secs(1))
}

/// What must be known of a server's tools to hand its calls off.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    /// Those that promise structured content.
    schemas: BTreeSet<Box<str>>,
    /// Those that might be called as ours are.
    taken: BTreeSet<Box<str>>,
    /// What the server calls itself, as our tools' names begin.
    stem: Option<Box<str>>,
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

    /// The server says what it is called: in the answer to its handshake, or in every answer of the modern era. The
    /// first time counts, so that what a client has seen stays.
    pub(crate) fn learn_name(&mut self, result: &[u8]) {
        if self.stem.is_some() {
            return;
        }
        let modern = || json::member(json::member(result, "_meta")?, "io.modelcontextprotocol/serverInfo");
        let info = json::member(result, "serverInfo").or_else(modern);
        let name = info.and_then(|info| json::member(info, "name"));
        let name: Option<String> = name.and_then(|raw| serde_json::from_slice(raw).ok());
        self.stem = name.and_then(|name| stem(&name));
    }

    /// The names of our tools at this server, which is called `identity` in the store.
    pub(crate) fn names(&self, identity: &str) -> Names {
        let mark = mark(identity);
        Names { wait: self.free(&format!("{mark}_wait")), cancel: self.free(&format!("{mark}_cancel")) }
    }

    /// Whether a name may stand for one of our tools at all: most do not, and every call asks.
    pub(crate) fn may_be_own(tool: &str) -> bool {
        tool.contains("_wait") || tool.contains("_cancel")
    }

    /// Which of our tools a name stands for.
    pub(crate) fn own(&self, tool: &str, identity: &str) -> Option<OwnTool> {
        let names = self.names(identity);
        let own = |waits, certain| Some(OwnTool { waits, certain });
        match tool {
            _ if tool == names.wait => own(true, true),
            _ if tool == names.cancel => own(false, true),
            // An earlier process of ours may have known what the server calls itself.
            _ if self.stem.is_some() || self.taken.contains(tool) => None,
            _ if tool.ends_with("_wait") => own(true, false),
            _ if tool.ends_with("_cancel") => own(false, false),
            _ => None,
        }
    }

    /// `server_wait`; or, if the server has such a tool itself, `server_wait2`.
    fn free(&self, what: &str) -> String {
        let stem = self.stem.as_deref().unwrap_or(UNNAMED);
        let mut number = 1;
        loop {
            let end = if number == 1 { what.to_owned() } else { format!("{what}{number}") };
            let begin: String = stem.chars().take(NAME - end.len()).collect();
            let name = begin + &end;
            if !self.taken.contains(name.as_str()) {
                return name;
            }
            number += 1;
        }
    }
}

/// What tells our tools from those that another process of ours adds for another server of the same name: a client may
/// refuse two tools of one name, or ask the wrong server. Empty for a server that nothing can be stored of.
fn mark(identity: &str) -> String {
    let digest = identity.rsplit_once('#').and_then(|(_, digest)| digest.get(..MARK));
    digest.map(|digest| format!("_{digest}")).unwrap_or_default()
}

/// What a server calls itself, in letters that every model provider takes: ASCII letters, digits, `_` and `-`, not a
/// digit first. A long name is cut, and told from others that begin alike by a number. `None` if nothing is left.
fn stem(name: &str) -> Option<Box<str>> {
    const LONGEST: usize = NAME - "_ffff_cancel".len();
    const NUMBER: usize = "_ffff".len();
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let letters: String = name.chars().map(plain).collect();
    let words: Vec<&str> = letters.split('_').filter(|word| !word.is_empty()).collect();
    let mut stem = words.join("_").trim_matches(['-', '_']).to_owned();
    if stem.starts_with(|c: char| c.is_ascii_digit()) {
        stem.insert(0, '_');
    }
    if stem.len() > LONGEST {
        stem.truncate(LONGEST - NUMBER);
        stem += &format!("_{:04x}", fingerprint(name.as_bytes()) & 0xffff);
    }
    (!stem.is_empty()).then(|| stem.into())
}

/// A tool of ours that somebody calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnTool {
    /// It fetches a result; the other one cancels.
    pub(crate) waits: bool,
    /// Nobody else's tool has this name. If not, the ticket decides.
    pub(crate) certain: bool,
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
    fn a_cancel_may_say_itself_what_the_limit_is() {
        let stated = |reason, millis| stated_cap(reason, Duration::from_millis(millis));
        assert_eq!(stated("timed out after 5s", 5_010), Some(secs(5)));
        assert_eq!(stated("request 3 timed out after 300.0s", 300_100), Some(secs(300)));
        // A person, another time, no figure, another unit.
        for reason in [
            "",
            "user",
            "timed out after 60s",
            "Request timed out",
            "timed out after 5 m",
            "timed out after s",
        ] {
            assert_eq!(stated(reason, 5_000), None, "{reason}");
        }
    }

    fn named(name: &str) -> KnownTools {
        let mut known = KnownTools::default();
        known.learn_name(serde_json::json!({"serverInfo": {"name": name}}).to_string().as_bytes());
        known
    }

    #[test]
    fn tools_are_named_after_what_the_server_calls_itself() {
        for (name, wait) in [
            ("postgres", "postgres_wait"),
            ("Some Server (v2)", "Some_Server_v2_wait"),
            ("io.github.me/files@latest", "io_github_me_files_latest_wait"),
            ("7zip", "_7zip_wait"),
            ("-x-", "x_wait"),
            // Nothing is left of it, or it says nothing: never after a command.
            ("\u{670d}\u{52a1}", "outlast_wait"),
            ("", "outlast_wait"),
        ] {
            assert_eq!(named(name).names("").wait, wait, "{name}");
        }
        let mut modern = KnownTools::default();
        modern.learn_name(br#"{"tools":[],"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"files"}}}"#);
        assert_eq!(modern.names("").cancel, "files_cancel");
        modern.learn_name(br#"{"serverInfo":{"name":"other"}}"#);
        assert_eq!(modern.names("").cancel, "files_cancel", "the first name stays");
    }

    #[test]
    fn names_are_what_every_model_takes_and_nobody_elses() {
        let mut known = named("s");
        known.learn(br#"{"tools":[{"name":"s_wait"},{"name":"s_wait2","outputSchema":{}},{"nam":1}]}"#);
        let names = known.names("");
        assert_eq!((&*names.wait, &*names.cancel), ("s_wait3", "s_cancel"));
        let [long, other] =
            ["one", "two"].map(|end| named(&format!("{}{end}", "long".repeat(20))).names("x#0af3"));
        assert_ne!(long, other, "names that begin alike stay apart");
        assert_eq!(long.cancel.len(), NAME);
        assert!(long.cancel.starts_with("longlong") && long.cancel.ends_with("_cancel"), "{}", long.cancel);
    }

    /// Several processes of ours stand before servers that call themselves the same: two folders, two databases, or all
    /// that were made with one framework.
    #[test]
    fn servers_of_one_name_have_tools_of_different_names() {
        let [work, home] = ["files#0af3c2", "files#91bc07"].map(|identity| named("files").names(identity));
        assert_eq!((&*work.wait, &*work.cancel), ("files_0af3_wait", "files_0af3_cancel"));
        assert_eq!((&*home.wait, &*home.cancel), ("files_91bc_wait", "files_91bc_cancel"));
        assert_eq!(KnownTools::default().names("npx#1#0af3c2").wait, "outlast_0af3_wait");
        let own = |tool| named("files").own(tool, "files#0af3c2");
        assert_eq!(own("files_0af3_wait"), Some(OwnTool { waits: true, certain: true }));
        assert_eq!(own("files_91bc_wait"), None);
    }

    #[test]
    fn a_name_of_an_earlier_process_is_known_by_its_ticket() {
        let own = |known: &KnownTools, tool: &str| known.own(tool, "").map(|own| (own.waits, own.certain));
        let unnamed = KnownTools::default();
        assert_eq!(own(&unnamed, "outlast_wait"), Some((true, true)));
        assert_eq!(own(&unnamed, "files_wait"), Some((true, false)));
        assert_eq!(own(&unnamed, "files_cancel"), Some((false, false)));
        assert_eq!(own(&unnamed, "build"), None);
        assert_eq!(own(&named("files"), "other_wait"), None);
        assert_eq!(own(&named("files"), "files_wait"), Some((true, true)));
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
