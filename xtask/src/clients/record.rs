//! What one run left behind: the probe's record, the model's, and the driver's last line; and what they say.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::Value;

/// What the model thinks before it says that a tool is missing; see `run.rs`.
pub const PATIENCE_MS: u64 = 90_000;
/// Further apart than this are two events that are not one: the end of input and the end of a client, say.
const APART_MS: u64 = 1000;
/// The probe says this often that it lives.
const BEAT_MS: u64 = 1000;

pub struct Record {
    pub end: End,
    probe: Vec<Line>,
    model: Vec<Turn>,
    ended_at: u64,
}

/// The driver's last line.
#[derive(Clone, Debug, Deserialize)]
pub struct End {
    pub outcome: String,
    #[serde(default)]
    pub text: String,
}

/// One line of the probe. `at` is in milliseconds of the epoch, as everywhere here.
#[derive(Deserialize)]
pub struct Line {
    at: u64,
    pid: u32,
    dir: String,
    pub msg: Value,
}

impl Line {
    /// The client closed the probe's input or its output, or sent a signal.
    fn is_end(&self) -> bool {
        self.dir == "event" && ["eof", "signal", "stdout"].iter().any(|key| self.msg.get(key).is_some())
    }
}

/// One request to the model.
#[derive(Deserialize)]
struct Turn {
    at: u64,
    #[serde(default)]
    got: Vec<Value>,
    #[serde(default)]
    decision: Value,
}

/// How a client showed that it had given up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum How {
    Notification,
    Eof,
    /// Nothing was seen; the caller got an error.
    Nothing,
}

/// The end of a wait.
#[derive(Debug, PartialEq)]
pub struct GivenUp {
    pub age: u64,
    pub how: How,
}

impl Record {
    pub fn read(folder: &Path) -> Result<Self> {
        let said = fs::read_to_string(folder.join("stdout")).unwrap_or_default();
        let last = said.lines().last().with_context(|| format!("it said nothing: {}", stderr(folder)))?;
        let end = serde_json::from_str(last).with_context(|| format!("its last line is `{last}`"))?;
        // The driver's last line is the last thing that it does.
        let written = fs::metadata(folder.join("stdout"))?.modified()?.duration_since(UNIX_EPOCH)?;
        let (probe, model) = (lines(&folder.join("probe.jsonl")), lines(&folder.join("model.jsonl")));
        Ok(Self { end, probe, model, ended_at: u64::try_from(written.as_millis())? })
    }

    /// What the client sent first of this method.
    pub fn request(&self, method: &str) -> Option<&Line> {
        self.received().find(|line| line.msg["method"] == method)
    }

    pub fn calls(&self) -> u64 {
        self.received().filter(|line| line.msg["method"] == "tools/call").count() as u64
    }

    fn received(&self) -> impl Iterator<Item = &Line> {
        self.probe.iter().filter(|line| line.dir == "in")
    }

    /// When the client stopped waiting for the answer to the call, if it did.
    pub fn call_given_up(&self) -> Option<GivenUp> {
        let call = self.request("tools/call")?;
        let caller = self.caller_got(call).or_else(|| self.ended_by_itself());
        let cancelled = self.cancelled(call);
        let eof = self.closed(call).filter(|eof| caller.is_none_or(|got| eof + APART_MS < got));
        let (at, how) = match (cancelled, eof) {
            (Some(at), eof) if eof.is_none_or(|eof| at <= eof) => (at, How::Notification),
            (_, Some(at)) => (at, How::Eof),
            _ => (caller?, How::Nothing),
        };
        // A client that cancels late has told its caller before.
        let at = caller.map_or(at, |caller| at.min(caller));
        Some(GivenUp { age: at.saturating_sub(call.at), how })
    }

    /// When the client stopped waiting for the answer to this request of its beginning, if it did.
    pub fn begin_given_up(&self, method: &str) -> Option<u64> {
        let request = self.request(method)?;
        let ended = [self.cancelled(request), self.closed(request), self.ended_by_itself()];
        let at = ended.into_iter().flatten().min()?;
        // The only turn was over: the client ended because it had nothing left to do.
        let over = self.missed().map(|missed| missed + PATIENCE_MS);
        let answered = self.answered(request);
        let early = [over, answered].into_iter().flatten().all(|bound| at < bound);
        early.then(|| at.saturating_sub(request.at))
    }

    /// How long the request was left without an answer.
    pub fn watched(&self, method: &str) -> u64 {
        let Some(request) = self.request(method) else { return 0 };
        let over = self.missed().map(|missed| missed + PATIENCE_MS);
        let ends = [over, self.answered(request), Some(self.ended_at)];
        ends.into_iter().flatten().min().map_or(0, |end| end.saturating_sub(request.at))
    }

    /// The age of the request when the first turn began without the tool, if that was before the client gave it up.
    pub fn begins_without(&self, method: &str) -> Option<u64> {
        let request = self.request(method)?;
        let missed = self.missed()?;
        let still_waiting = self.closed(request).is_none_or(|closed| missed + APART_MS < closed);
        (still_waiting && self.answered(request).is_none_or(|answered| missed < answered))
            .then(|| missed.saturating_sub(request.at))
    }

    /// When the model was asked without being offered the tool.
    fn missed(&self) -> Option<u64> {
        self.model.iter().find(|turn| turn.decision["kind"] == "missing").map(|turn| turn.at)
    }

    /// Whether the client cancelled a call after it had got the answer.
    pub fn cancels_answered(&self) -> bool {
        let Some(call) = self.request("tools/call") else { return false };
        let cancelled = self.cancelled(call);
        self.answered(call).is_some_and(|answered| cancelled.is_some_and(|at| at >= answered))
    }

    /// Whether the client asked for the tools again after it was told that they have changed.
    pub fn lists_again(&self) -> bool {
        let told =
            |line: &&Line| line.dir == "out" && line.msg["method"] == "notifications/tools/list_changed";
        let Some(told) = self.probe.iter().find(told) else { return false };
        self.received().any(|line| line.msg["method"] == "tools/list" && line.at >= told.at)
    }

    /// The name under which the model got the tool, and whether it had to search for it.
    pub fn offered(&self) -> (Option<String>, bool) {
        let calls = || self.model.iter().map(|turn| &turn.decision["call"]).filter(|call| call.is_object());
        let full = |call: &Value| {
            let name = call["arguments"]["name"].as_str().or(call["name"].as_str())?;
            let namespace = call["namespace"].as_str().map(|space| format!("{space} / ")).unwrap_or_default();
            Some(format!("{namespace}{name}"))
        };
        let searched = calls().any(|call| is_search(&call["name"]));
        (calls().filter_map(full).find(|name| name.contains("slow_probe")), searched)
    }

    fn cancelled(&self, request: &Line) -> Option<u64> {
        let is_it = |line: &&Line| {
            line.msg["method"] == "notifications/cancelled"
                && line.msg["params"]["requestId"] == request.msg["id"]
                && line.pid == request.pid
        };
        self.received().find(is_it).map(|line| line.at)
    }

    /// When the probe lost its client, unless the driver ended both.
    fn closed(&self, request: &Line) -> Option<u64> {
        let later = || self.probe.iter().filter(|line| line.pid == request.pid && line.at >= request.at);
        let at = match later().find(|line| line.is_end()) {
            Some(end) => end.at,
            // A process that was killed says nothing: it stops saying that it lives.
            None => later().next_back().filter(|last| last.at + 3 * BEAT_MS < self.ended_at)?.at,
        };
        let by_driver = self.end.outcome == "deadline" && at + 10 * APART_MS > self.ended_at;
        (!by_driver).then_some(at)
    }

    fn ended_by_itself(&self) -> Option<u64> {
        (self.end.outcome != "deadline").then_some(self.ended_at)
    }

    fn answered(&self, request: &Line) -> Option<u64> {
        let is_it = |line: &&Line| {
            line.dir == "out" && line.msg["id"] == request.msg["id"] && line.pid == request.pid
        };
        self.probe.iter().find(is_it).filter(|line| line.msg.get("method").is_none()).map(|line| line.at)
    }

    /// When the model got what came of the call.
    fn caller_got(&self, call: &Line) -> Option<u64> {
        let real = |turn: &&Turn| turn.at >= call.at && turn.got.iter().any(|got| !is_search(&got["by"]));
        self.model.iter().find(real).map(|turn| turn.at)
    }
}

fn is_search(name: &Value) -> bool {
    name.as_str().is_some_and(|name| name.contains("tool_search"))
}

fn stderr(folder: &Path) -> String {
    let words = fs::read_to_string(folder.join("stderr")).unwrap_or_default();
    words.lines().last().unwrap_or_default().to_owned()
}

/// The lines of a record; one that was cut off by a kill is left out.
fn lines<T: for<'a> Deserialize<'a>>(path: &Path) -> Vec<T> {
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn line(at: u64, dir: &str, msg: Value) -> Line {
        Line { at, pid: 1, dir: dir.to_owned(), msg }
    }

    fn call(at: u64) -> Line {
        line(at, "in", json!({ "id": 3, "method": "tools/call" }))
    }

    fn cancel(at: u64) -> Line {
        line(at, "in", json!({ "method": "notifications/cancelled", "params": { "requestId": 3 } }))
    }

    fn eof(at: u64) -> Line {
        line(at, "event", json!({ "eof": true }))
    }

    fn got(at: u64) -> Turn {
        Turn {
            at,
            got: vec![json!({ "by": "x_slow_probe", "text": "timed out" })],
            decision: json!({ "kind": "last" }),
        }
    }

    fn record(outcome: &str, probe: Vec<Line>, model: Vec<Turn>, ended_at: u64) -> Record {
        Record { end: End { outcome: outcome.to_owned(), text: String::new() }, probe, model, ended_at }
    }

    #[test]
    fn a_cancel_is_told_from_silence() {
        let cancels =
            record("error", vec![call(100), cancel(60_100), eof(63_500)], vec![got(60_120)], 64_000);
        assert_eq!(cancels.call_given_up(), Some(GivenUp { age: 60_000, how: How::Notification }));
        let silent = record("error", vec![call(100), eof(63_500)], vec![got(60_120)], 64_000);
        assert_eq!(silent.call_given_up(), Some(GivenUp { age: 60_020, how: How::Nothing }));
    }

    #[test]
    fn a_server_that_is_closed_at_the_limit_is_told_from_one_that_ends_with_its_client() {
        let closes = record("error", vec![call(0), eof(60_000)], vec![got(62_000)], 66_000);
        assert_eq!(closes.call_given_up(), Some(GivenUp { age: 60_000, how: How::Eof }));
        let library = record("error", vec![call(0), eof(60_000)], vec![], 60_100);
        assert_eq!(library.call_given_up(), Some(GivenUp { age: 60_100, how: How::Nothing }));
    }

    #[test]
    fn a_server_that_was_killed_is_noticed_by_its_silence() {
        let asked = line(0, "in", json!({ "id": 0, "method": "initialize" }));
        let lives = |at| line(at, "event", json!({ "alive": true }));
        let killed = record("no-tools", vec![asked, lives(29_000), lives(30_000)], vec![], 60_000);
        assert_eq!(killed.begin_given_up("initialize"), Some(30_000));
    }

    #[test]
    fn the_drivers_deadline_is_no_limit_of_the_client() {
        let watched = record("deadline", vec![call(0), eof(600_000)], vec![], 600_200);
        assert_eq!(watched.call_given_up(), None);
        assert_eq!(watched.watched("tools/call"), 600_200);
    }

    #[test]
    fn a_client_that_begins_without_its_server_is_noticed() {
        let asked = || line(0, "in", json!({ "id": 0, "method": "initialize" }));
        let turn = || Turn { at: 900, got: vec![], decision: json!({ "kind": "missing" }) };
        let waits_on = record("no-tools", vec![asked(), eof(91_200)], vec![turn()], 91_300);
        assert_eq!(waits_on.begins_without("initialize"), Some(900));
        assert_eq!(waits_on.begin_given_up("initialize"), None);
        assert_eq!(waits_on.watched("initialize"), 90_900);
        let gives_up = record("no-tools", vec![asked(), eof(30_000)], vec![turn()], 91_300);
        assert_eq!(gives_up.begin_given_up("initialize"), Some(30_000));
    }

    #[test]
    fn a_cancel_after_the_answer_is_noticed() {
        let answer = || line(1100, "out", json!({ "id": 3, "result": {} }));
        assert!(record("result", vec![call(0), answer(), cancel(1200)], vec![], 5000).cancels_answered());
        assert!(!record("result", vec![call(0), answer()], vec![], 5000).cancels_answered());
        assert!(!record("error", vec![call(0), cancel(1000)], vec![], 5000).cancels_answered());
    }
}
