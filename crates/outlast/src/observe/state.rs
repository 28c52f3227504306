//! What is so right now, as JSON: one shape for `outlast top --json`, `/outlast/api/state` and what processes show each
//! other through the store.
//!
//! Times are in milliseconds since 1970, lengths in milliseconds. Elapsed time is not in it: whoever shows it counts from
//! `began`, so that a state changes only when something happens.

use bytes::Bytes;
use outlast_engine::store::Write;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

/// The version of the shape.
pub const VERSION: u32 = 1;

/// All of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// [`VERSION`].
    pub version: u32,
    /// When it was so.
    pub now: u64,
    /// Open calls beyond those that are here.
    pub more: u64,
    /// Open calls, the oldest first.
    pub calls: Vec<Call>,
    /// Servers.
    pub servers: Vec<Server>,
    /// As `outlast holds --json` tells them.
    pub holds: Vec<Value>,
    /// As `outlast tasks --json` tells them.
    pub tasks: Vec<Value>,
    /// What is known of how long tools take.
    pub tools: Vec<Tool>,
    /// Calls that are over, the newest first.
    pub ended: Vec<Ended>,
    /// What happened to calls that are here; only between processes, because each knows that of its own calls alone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stories: Vec<StoryOf>,
    /// The limits of tools, as things are; only between processes, which may have different ones.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<Limits>,
}

/// What happened to the call of an id.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoryOf {
    /// `PROCESS.NUMBER`.
    pub id: String,
    /// What happened, in order.
    pub steps: Vec<StoryStep>,
    /// Steps in the middle that were not kept.
    pub dropped: u64,
}

/// The limits of a tool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Limits {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// How long it may be silent; without a limit none.
    pub timeout_ms: Option<u64>,
    /// The longest that it may take.
    pub max_ms: u64,
}

/// An open call.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Call {
    /// `PROCESS.NUMBER`.
    pub id: String,
    /// The outlast process that has it.
    pub process: String,
    /// What people call its server.
    pub server: String,
    /// Its method.
    pub method: String,
    /// Its tool.
    pub tool: Option<String>,
    /// What its client calls itself, with its version; may be empty.
    pub client: String,
    /// The name of its token; empty without.
    pub principal: String,
    /// Where it is: `running`, `queued`, `parked`, `held`, `followed`, `joined`, `handed-off`.
    pub state: String,
    /// When it began.
    pub began: u64,
    /// How long it may be silent, if that is limited.
    pub timeout_ms: Option<u64>,
    /// How long it still may, at `now`. No change of the call by itself.
    pub timeout_left_ms: Option<u64>,
    /// The longest that it may take.
    pub max_ms: u64,
    /// When it last gave a sign of life, or began.
    pub last_sign: u64,
    /// How often it was sent.
    pub attempts: u32,
    /// It can be fetched later.
    pub ticket: bool,
    /// What its server last reported about it.
    pub message: Option<String>,
    /// The number of the question that a person is asked about it.
    pub hold: Option<u64>,
}

impl PartialEq for Call {
    /// Whether somebody who has seen the one need not be told of the other.
    fn eq(&self, other: &Call) -> bool {
        let known = |call: &Call| {
            let Call { id, state, last_sign, attempts, ticket, message, hold, .. } = call.clone();
            (id, state, last_sign, attempts, ticket, message, hold, call.timeout_ms, call.max_ms)
        };
        known(self) == known(other)
    }
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    /// What people call it.
    pub name: String,
    /// The outlast process that has it.
    pub process: String,
    /// How it is: `starting`, `ready`, `restarting`, `stopping`, `asleep`, `failed`, `ended`.
    pub state: String,
    /// The eras that it has shown it speaks: `legacy`, `modern`, `legacy+modern`, or empty.
    pub era: String,
    /// What it says it is; may be empty.
    pub version: String,
    /// Which process of it runs; the first is 0.
    pub run: u32,
    /// How often it was started again.
    pub restarts: u32,
    /// Since when it is as it is; 0 if that is not known.
    pub since: u64,
    /// Calls that it has.
    pub in_flight: u64,
    /// Calls that wait for it.
    pub waiting: u64,
    /// What was wrong with it last.
    pub error: Option<String>,
    /// The last lines of its stderr.
    pub stderr: Vec<String>,
}

/// What is known of how long a tool takes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Tool {
    /// Its server.
    pub server: String,
    /// Its name.
    pub tool: String,
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed, whoever said so.
    pub failures: u64,
    /// Those that a limit ended.
    pub cut_off: u64,
    /// Half of them were over within this.
    pub p50: u64,
    /// Ninety-nine of a hundred were.
    pub p99: u64,
    /// The longest.
    pub slowest: u64,
    /// How long it may be silent, as things are; without a limit none.
    pub timeout_ms: Option<u64>,
    /// The longest that it may take, as things are.
    pub max_ms: Option<u64>,
    /// Limits that follow from this.
    pub proposed: Option<Proposed>,
    /// Longest duration of a bucket of the histogram, and how many calls are in it.
    pub buckets: Vec<(u64, u64)>,
}

/// Limits that follow from what was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Proposed {
    /// How long a call may be silent.
    pub timeout_ms: u64,
    /// The longest that it may take.
    pub max_ms: u64,
    /// The reason, in numbers.
    pub why: String,
}

/// A call that is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Ended {
    /// `PROCESS.NUMBER`.
    pub id: String,
    /// Its server.
    pub server: String,
    /// Its tool.
    pub tool: Option<String>,
    /// Its method.
    pub method: String,
    /// What its client calls itself.
    pub client: String,
    /// The name of its token; empty without.
    pub principal: String,
    /// When it began.
    pub began: u64,
    /// How long its client waited.
    pub took_ms: u64,
    /// `answered`, `tool-error`, `error`, `failed`, `cancelled`, `left`, `declined`.
    pub outcome: String,
    /// The kind of our error, if it was one.
    pub kind: Option<String>,
}

/// The story of one call.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Story {
    /// The call: [`Call`] while it is open, [`Ended`] after that.
    pub call: Value,
    /// What happened, in order.
    pub steps: Vec<StoryStep>,
    /// Steps in the middle that were not kept.
    pub dropped: u64,
}

/// One thing that happened to a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StoryStep {
    /// When.
    pub at: u64,
    /// What, for programs.
    pub what: Cow<'static, str>,
    /// What, for people.
    pub text: String,
}

/// What a process is told to do by another.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Told {
    /// Cancel the call of this id.
    pub cancel: Option<String>,
    /// Start the server of this name again.
    pub restart: Option<String>,
    /// Who says so, and where.
    pub by: String,
}

impl Told {
    /// The write that tells a process to do this.
    pub fn write(&self, process: &str) -> Write {
        Write::Tell { process: process.into(), what: serde_json::to_vec(self).unwrap_or_default().into() }
    }
}

impl State {
    /// What processes show, together. What cannot be read is left out: another version may have written it.
    pub fn together(now: u64, shown: &[Bytes]) -> State {
        let mut all = State { version: VERSION, now, ..State::default() };
        let read = shown.iter().filter_map(|body| serde_json::from_slice::<State>(body).ok());
        read.filter(|state| state.version == VERSION).for_each(|state| all.join(state));
        all
    }

    /// What another process shows, beside ours.
    pub fn join(&mut self, other: State) {
        self.more += other.more;
        self.calls.extend(other.calls);
        self.calls.sort_by_key(|call| call.began);
        self.servers.extend(other.servers);
        self.ended.extend(other.ended);
        self.ended.sort_by_key(|ended| std::cmp::Reverse(ended.began + ended.took_ms));
        self.stories.extend(other.stories);
        self.limits.extend(other.limits);
    }

    /// The story of a call that some process shows; without steps, where it shows no more of it.
    pub fn story(&self, id: &str) -> Option<Value> {
        let open = self.calls.iter().find(|call| call.id == id).map(|call| json!(call));
        let call = open.or_else(|| self.ended.iter().find(|call| call.id == id).map(|call| json!(call)))?;
        let story = self.stories.iter().find(|story| story.id == id).cloned().unwrap_or_default();
        Some(json!({"call": call, "steps": story.steps, "dropped": story.dropped}))
    }

    /// The limits of a tool, if all processes that show some have the same.
    pub fn limits_of(&self, server: &str, tool: &str) -> Option<(Option<Duration>, Duration)> {
        let mut all = self.limits.iter().filter(|limits| limits.server == server && limits.tool == tool);
        let first = all.next()?;
        let millis = Duration::from_millis;
        all.all(|other| other == first).then(|| (first.timeout_ms.map(millis), millis(first.max_ms)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shows(max_ms: u64, id: &str) -> Bytes {
        let limits = Limits { server: "ci".into(), tool: "build".into(), timeout_ms: None, max_ms };
        let step = StoryStep { at: 3, what: "sent".into(), text: "sent".into() };
        let state = State {
            version: VERSION,
            calls: vec![Call { id: id.into(), ..Call::default() }],
            stories: vec![StoryOf { id: id.into(), steps: vec![step], dropped: 2 }],
            limits: vec![limits],
            ..State::default()
        };
        serde_json::to_vec(&state).unwrap().into()
    }

    #[test]
    fn every_process_tells_the_stories_of_its_own_calls() {
        let all = State::together(9, &[shows(1, "p.1"), shows(1, "q.1")]);
        let story = all.story("q.1").unwrap();
        assert_eq!((&story["call"]["id"], &story["steps"][0]["what"]), (&json!("q.1"), &json!("sent")));
        assert_eq!(story["dropped"], 2);
        assert_eq!(all.story("r.1"), None);
    }

    #[test]
    fn a_limit_is_shown_if_all_processes_have_it() {
        let limit = Some((None, Duration::from_millis(1)));
        assert_eq!(State::together(9, &[shows(1, "p.1"), shows(1, "q.1")]).limits_of("ci", "build"), limit);
        assert_eq!(State::together(9, &[shows(1, "p.1"), shows(2, "q.1")]).limits_of("ci", "build"), None);
        assert_eq!(State::together(9, &[shows(1, "p.1")]).limits_of("ci", "test"), None);
    }
}
