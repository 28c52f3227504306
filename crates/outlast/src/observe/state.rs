//! What is so right now, as JSON: one shape for `outlast top --json`, `/outlast/api/state` and what processes show each
//! other through the store.
//!
//! Times are in milliseconds since 1970, lengths in milliseconds. Elapsed time is not in it: whoever shows it counts from
//! `began`, so that a state changes only when something happens.

use bytes::Bytes;
use outlast_engine::store::Write;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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
    /// The last words of its server about it.
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
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoryStep {
    /// When.
    pub at: u64,
    /// What, for programs.
    pub what: &'static str,
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
    }
}
