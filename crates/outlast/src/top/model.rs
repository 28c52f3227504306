//! What `top` shows: the state that outlast tells of itself as JSON. Read leniently, so that it can also look at an
//! outlast of another version.

use serde::Deserialize;
use serde_json::Value;

/// Everything that runs, at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct State {
    /// When, in milliseconds since 1970, as are all times here.
    pub now: u64,
    /// So many more calls are open than are listed.
    pub more: u64,
    pub calls: Vec<Call>,
    pub servers: Vec<Server>,
    pub holds: Vec<Hold>,
}

/// An open call.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Call {
    pub id: String,
    /// The outlast process that has it.
    pub process: String,
    pub server: String,
    pub method: String,
    pub tool: Option<String>,
    pub client: String,
    pub principal: String,
    pub state: String,
    pub began: u64,
    pub timeout_ms: Option<u64>,
    pub timeout_left_ms: Option<u64>,
    pub max_ms: Option<u64>,
    pub last_sign: Option<u64>,
    pub attempts: u64,
    pub message: Option<String>,
    /// The number of the question that a person is asked about it.
    pub hold: Option<u64>,
}

/// A server of one process.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Server {
    pub name: String,
    pub state: String,
    pub in_flight: u64,
}

/// A call that waits for a person.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Hold {
    pub hold: u64,
    pub server: String,
    pub tool: String,
    pub arguments: String,
    pub client: String,
    pub waited_ms: u64,
    pub open: bool,
}

/// Reads what an outlast says of itself.
pub fn read(value: &Value) -> Result<State, String> {
    State::deserialize(value).map_err(|error| format!("that is not what outlast says of itself: {error}"))
}

impl Call {
    /// What a person calls it.
    pub fn name(&self) -> &str {
        self.tool.as_deref().filter(|tool| !tool.is_empty()).unwrap_or(&self.method)
    }

    /// How much of its nearest limit has passed, in percent, if it has one.
    pub fn used(&self, now: u64) -> Option<u64> {
        let share = |passed: u64, limit: u64| (passed * 100).checked_div(limit).map(|share| share.min(100));
        let timeout = self.timeout_ms.zip(self.timeout_left_ms);
        let timeout = timeout.and_then(|(limit, left)| share(limit.saturating_sub(left), limit));
        timeout.max(self.max_ms.and_then(|max| share(now.saturating_sub(self.began), max)))
    }
}
