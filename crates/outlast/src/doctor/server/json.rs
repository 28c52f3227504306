//! The facts and the findings, for a program: one object.

use super::Facts;
use super::ending::{End, How};
use super::lists::{List, Outcome, declared_timeouts};
use super::noted::Sample;
use super::odd::Odd;
use super::report::Tasks;
use super::visit::{Handshake, Ping, Visit};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// All of it. Times are in milliseconds.
pub fn object(facts: &Facts, odd: &[Odd]) -> Value {
    let talked = facts.talked();
    let introduction = talked.introduction();
    let found = |odd: &Odd| json!({"kind": odd.kind, "says": odd.says, "helps": odd.helps});
    let Tasks { legacy, modern, optional, required } = Tasks::of(facts);
    json!({
        "command": facts.command,
        "server": introduction.map(|it| &it.server),
        "firstAnswerMs": facts.first_answer().map(millis),
        "legacy": era_json(&facts.legacy),
        "modern": facts.modern.as_ref().map(era_json),
        "capabilities": introduction.map(|it| &it.capabilities),
        "lists": talked.lists.iter().map(list_json).collect::<serde_json::Map<_, _>>(),
        "tasks": {"legacy": legacy, "modern": modern, "optionalTools": optional, "requiredTools": required},
        "timeoutsSeconds": introduction.map(|it| {
            declared_timeouts(&it.capabilities).into_iter().collect::<BTreeMap<_, _>>()
        }),
        "ping": talked.ping.as_ref().map(ping_json),
        "end": talked.end.as_ref().map(end_json),
        "stdout": {
            "noise": sample_json(&facts.noted.noise),
            "noMessage": sample_json(&facts.noted.no_message),
            "notStrictJson": sample_json(&facts.noted.not_strict),
            "early": sample_json(&facts.noted.early),
            "otherIdType": sample_json(&facts.noted.ids),
            "noId": sample_json(&facts.noted.no_ids),
            "tooLong": facts.noted.too_long,
        },
        "stderr": {"lines": facts.noted.stderr_lines, "bytes": facts.noted.stderr_bytes},
        "odd": odd.iter().map(found).collect::<Vec<_>>(),
    })
}

/// Where there is nothing to examine.
pub fn not_started(command: &[String], why: &str) -> Value {
    let odd = json!({"kind": "not-started", "says": why, "helps": "Check the spelling and the path of the command."});
    json!({"command": command, "odd": [odd]})
}

fn millis(time: Duration) -> u64 {
    time.as_millis() as u64
}

fn era_json(visit: &Visit) -> Value {
    let mut era = match &visit.handshake {
        Handshake::Works(introduction) => json!({"reaction": "works", "version": introduction.version}),
        Handshake::Error { code, message, supported } => {
            json!({"reaction": "error", "code": code, "message": message, "supported": supported})
        }
        Handshake::OddResult(result) => json!({"reaction": "odd-result", "result": result}),
        Handshake::Unreadable => json!({"reaction": "unreadable"}),
        Handshake::Silence => json!({"reaction": "silence"}),
        Handshake::Ended(exit) | Handshake::EndedUnasked(exit) => {
            json!({"reaction": "exit", "exit": exit.map(|exit| exit.to_string())})
        }
    };
    era["works"] = visit.introduction().is_some().into();
    era["ms"] = millis(visit.took).into();
    era
}

fn list_json(list: &List) -> (String, Value) {
    let outcome = match &list.outcome {
        Outcome::Whole => "whole",
        Outcome::Failed(..) => "error",
        Outcome::Unreadable => "unreadable",
        Outcome::Silence => "silence",
        Outcome::Ended => "exit",
        Outcome::Endless => "endless",
    };
    let seen = json!({
        "outcome": outcome, "count": list.count, "pages": list.pages, "ms": millis(list.took),
        "largestBytes": list.bytes,
    });
    (list.name.to_owned(), seen)
}

fn ping_json(ping: &Ping) -> Value {
    match ping {
        Ping::Answered(took) => json!({"answered": true, "stringId": true, "ms": millis(*took)}),
        Ping::NotWithStringId(took) => json!({"answered": true, "stringId": false, "ms": millis(*took)}),
        Ping::Unanswered => json!({"answered": false}),
    }
}

fn end_json(end: &End) -> Value {
    let how = match end.how {
        How::Before => "before",
        How::Eof => "eof",
        How::Term => "sigterm",
        How::Kill => "sigkill",
        How::Never => "never",
    };
    let exit = end.exit.map(|exit| exit.to_string());
    json!({"how": how, "ms": millis(end.took), "exit": exit, "orphans": end.orphans})
}

fn sample_json(sample: &Sample) -> Value {
    json!({"count": sample.count, "first": sample.first})
}
