//! What must hold of every ticket, whatever ended in between.

use super::clients::{Errand, Face};
use super::servers::{Back, odd_member};
use super::{Life, World};
use crate::ledger::Ledger;
use crate::sim::process::member;
use outlast_engine::id::ServerId;
use outlast_engine::record::{Record, State, Ticket};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What is known besides what clients see.
#[derive(Debug, Default)]
pub(super) struct Judge {
    /// Whose each run of a tool was.
    runs: Vec<String>,
    /// The last that was committed of each record.
    records: BTreeMap<String, Record>,
    /// The ids that each server was sent.
    pub(super) sent: BTreeSet<(usize, ServerId, u64)>,
    /// Questions of servers, and what is said once they are answered.
    pub(super) asked: BTreeMap<String, (Back, Value)>,
}

impl Judge {
    /// Whether the tool of this call has run.
    pub(super) fn ran(&self, nonce: &str) -> bool {
        self.runs.iter().any(|run| run == nonce)
    }

    /// A record never goes back, and has one end.
    pub(super) fn committed(&mut self, ledger: &Ledger) {
        for record in ledger.records() {
            let ticket = record.head.ticket.as_str();
            if let Some(before) = self.records.get(ticket).filter(|before| *before != record) {
                let (was, is) = (&before.head, &record.head);
                assert!(was.state.is_open(), "a record changed after its end: {before:?} became {record:?}");
                assert!(was.revision < is.revision && was.epoch <= is.epoch, "a record went back: {is:?}");
                assert!(was.updated <= is.updated && was.created == is.created, "back in time: {is:?}");
            }
            self.records.insert(ticket.to_owned(), record.clone());
        }
    }
}

/// What a server answered is read byte for byte, whichever way it took.
pub(super) fn is_as_it_was_said(bytes: &[u8]) {
    let nonce = member(bytes, "nonce");
    let answer = !nonce.is_empty() && memchr::memmem::find(bytes, b"\"run\":").is_some();
    let whole = memchr::memmem::find(bytes, odd_member(&nonce).as_bytes()).is_some();
    assert!(!answer || whole, "{nonce} has changed on its way: {}", String::from_utf8_lossy(bytes));
}

impl World {
    /// A tool runs. What acts runs once for each request of its client, and once for each ticket.
    pub(super) fn runs(&mut self, nonce: &str) -> usize {
        self.judge.runs.push(nonce.to_owned());
        let errand =
            self.clients.iter().flat_map(|client| &client.errands).find(|known| known.nonce == nonce);
        let errand = errand.unwrap_or_else(|| panic!("a call of nobody: {nonce}"));
        let runs = self.judge.runs.iter().filter(|run| *run == nonce).count();
        self.was_approved(errand, runs);
        if !errand.is_safe() && runs > 1 {
            assert!(runs <= errand.issued as usize, "{nonce} acted twice for one request");
            let records: Vec<&Record> = self.ledger.records().filter(|record| is_of(record, nonce)).collect();
            let stored_first = matches!(errand.face, Face::LegacyTask | Face::Resume);
            assert!(!stored_first || runs <= records.len(), "{nonce} acted twice for one ticket");
            let done = |record: &&&Record| record.head.state == State::Completed && !errand.fails();
            let kept = records.iter().find(done).filter(|_| !self.is_tardy());
            assert_eq!(kept, None, "{nonce} acted again although its answer is kept");
        }
        self.judge.runs.len() - 1
    }
}

impl World {
    /// A process has made, or will make, a record after another one took its place: it looked for the key
    /// before, and only open records exclude each other.
    pub(super) fn is_tardy(&self) -> bool {
        let tardy = |life: &Life| life.writes_late || life.moved || !life.stands_still_until.is_zero();
        self.lives.iter().any(tardy)
    }
}

/// Whether a result says that a person has declined the call.
pub(super) fn is_no(result: &Value) -> bool {
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    result["isError"] == true && text.contains("was not run: a person declined it")
}

fn is_of(record: &Record, nonce: &str) -> bool {
    let whole = format!("\"nonce\":\"{nonce}\"");
    record.request.windows(whole.len()).any(|part| part == whole.as_bytes())
}

/// What a call came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// By this run.
    Answered(u64),
    Failed(Value),
    /// By a person.
    Declined,
    Cancelled,
}

/// What a client has seen of its call.
#[derive(Debug, Default)]
pub(super) struct Sight {
    pub(super) ticket: Option<String>,
    created: Option<Value>,
    updated: String,
    status: String,
    ttl: Option<Value>,
    pub(super) end: Option<End>,
}

impl Sight {
    pub(super) fn handed(&mut self, ticket: &str) {
        let known = self.ticket.get_or_insert_with(|| ticket.to_owned());
        assert_eq!(known, ticket, "a call has two tickets");
    }

    /// A task as either era shows it.
    pub(super) fn task(&mut self, task: &Value) {
        self.handed(task["taskId"].as_str().expect("a task"));
        let created = self.created.get_or_insert_with(|| task["createdAt"].clone());
        assert_eq!(*created, task["createdAt"], "a task was made twice");
        let updated = task["lastUpdatedAt"].as_str().expect("a time").to_owned();
        assert!(self.updated <= updated, "a task went back from {} to {updated}", self.updated);
        self.updated = updated;
        let ttl = task.get("ttl").or(task.get("ttlMs")).expect("a time to live");
        assert_eq!(self.ttl.get_or_insert_with(|| ttl.clone()), ttl, "a task lives longer, or shorter");
        let status = task["status"].as_str().expect("a status").to_owned();
        let ended = |status: &str| !matches!(status, "" | "working" | "input_required");
        assert!(!ended(&self.status) || self.status == status, "{} became {status}", self.status);
        assert!(self.end.is_none() || ended(&status), "{:?} became {status}", self.end);
        self.status = status;
        match (&task["result"], &task["error"]) {
            (Value::Null, Value::Null) => {}
            (result, Value::Null) => self.answered(result),
            (_, error) => self.ends(End::Failed(error.clone())),
        }
        if self.status == "cancelled" {
            self.ends(End::Cancelled);
        }
    }

    /// The server's answer, or a person's no.
    pub(super) fn answered(&mut self, result: &Value) {
        if is_no(result) {
            return self.ends(End::Declined);
        }
        self.ends(End::Answered(result["run"].as_u64().unwrap_or_else(|| panic!("an answer: {result}"))));
    }

    pub(super) fn ends(&mut self, end: End) {
        let known = self.end.get_or_insert_with(|| end.clone());
        assert_eq!(*known, end, "one call, two ends");
    }
}

impl Errand {
    /// What another process can make again is not failed by one that ends.
    pub(super) fn may_end_so(&self, error: &Value) {
        let stopped = error["message"].as_str().is_some_and(|text| text.contains("outlast was stopped"));
        let lost = stopped && self.is_safe() && self.sight.ticket.is_some();
        assert!(!lost, "a call that others could have made again was failed: {self:?}");
    }

    /// Durable before visible: what a client knows of the end of a ticket would survive us.
    pub(super) fn is_stored(&self, ledger: &Ledger) {
        let Some(ticket) = self.sight.ticket.as_deref().and_then(Ticket::parse) else { return };
        let record = ledger.records().find(|record| record.head.ticket == ticket);
        let open = record.is_some_and(|record| record.head.state.is_open());
        assert!(self.sight.end.is_none() || !open, "an end was shown before it was stored: {self:?}");
    }

    /// Whoever was given a ticket has its end, and the same is stored.
    pub(super) fn got_what_it_was_promised(&self, ledger: &Ledger, tardy: bool) {
        let Some(ticket) = self.sight.ticket.as_deref().and_then(Ticket::parse) else { return };
        let end = self.sight.end.as_ref().unwrap_or_else(|| panic!("no end came to a ticket: {self:?}"));
        // Or nobody came back to the process that has it; or its client hung up there while it was being stored, and
        // found it by its key through another process before it was given up.
        let found_by_key = tardy && self.key && self.issued > 1;
        let given_up = self.cancelled || (tardy && self.face == Face::Resume) || found_by_key;
        assert!(*end != End::Cancelled || given_up, "who has cancelled it? {self:?}");
        let record = ledger.records().find(|record| record.head.ticket == ticket);
        let record = record.unwrap_or_else(|| panic!("a ticket is not in the store: {self:?}"));
        let answer = record.answer.as_ref().map(|answer| answer.bytes().clone()).unwrap_or_default();
        let stored: Value = serde_json::from_slice(&answer).unwrap_or_default();
        let same = match end {
            End::Cancelled => record.head.state == State::Cancelled,
            End::Answered(run) => stored["run"] == *run && stored["nonce"] == *self.nonce,
            End::Failed(error) => stored == *error,
            End::Declined => is_no(&stored),
        };
        assert!(same, "{end:?} was told and {record:?} is stored");
    }
}
