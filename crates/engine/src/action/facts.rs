//! What a note is about, for programs that read the log: an object with a field for each thing.
//!
//! Times are in milliseconds, and their names end in `Ms`. What an error tells its client is told here under the
//! same names.

use super::Note;
use serde_json::{Value, json};
use std::time::Duration;

fn millis(time: &Duration) -> u64 {
    time.as_millis() as u64
}

impl Note {
    /// What happened, for a person, without what stands in [`Note::facts`].
    pub fn message(&self) -> String {
        match self {
            Note::Failed(failure) => failure.message(),
            note => note.to_string(),
        }
    }

    /// What it is about: an object.
    pub fn facts(&self) -> Value {
        match self {
            Note::Failed(failure) => failure.facts(),
            Note::StoreFailed { why }
            | Note::StoreUnread { why }
            | Note::StoreLost { why }
            | Note::BadClientLine { why } => json!({"why": why}),
            Note::StoredAtLast { count } => json!({"count": count}),
            Note::NeverStored { count, why } => json!({"count": count, "why": why}),
            Note::SessionSleeps { session } => json!({"session": session}),
            Note::LikelyCap { cap, client, .. } => json!({"capMs": millis(cap), "client": client}),
            Note::CapKnown { client, cap, from } => {
                json!({"client": client, "capMs": millis(cap), "from": from})
            }
            Note::ClientUnclear { client } => json!({"client": client}),
            Note::WaitsLonger { client, cap, age } => {
                json!({"client": client, "capMs": millis(cap), "ageMs": millis(age)})
            }
            Note::UnknownAnswer { from, id } => json!({"from": from, "id": id}),
            Note::Slept { time } => json!({"timeMs": millis(time)}),
            Note::Ending { why, calls } => json!({"why": why, "calls": calls}),
            Note::Reloaded { added, removed, replaced, adjusted } => {
                json!({"new": added, "gone": removed, "restarted": replaced, "changed": adjusted})
            }
            Note::Revoked { names } => json!({"names": names}),
            Note::StaysAlone { server, clients } => json!({"server": server, "clients": clients}),
            Note::TooManyNames { count } => json!({"count": count}),
            Note::CallbackFailed { name, attempts, why, wait } => {
                json!({"callback": name, "attempts": attempts, "why": why, "waitMs": millis(wait)})
            }
            Note::CallbackParked { name, callback, why } => {
                json!({"callback": name, "number": callback, "why": why})
            }
            Note::StartFailed { command, why } => json!({"command": command, "why": why.to_string()}),
            note => note.facts_of_server(),
        }
    }

    /// Those about a server.
    fn facts_of_server(&self) -> Value {
        match self {
            Note::Unreachable { server, why }
            | Note::PostRefused { server, why }
            | Note::PostLost { server, why }
            | Note::RestartFailed { server, why } => json!({"server": server, "why": why}),
            Note::Retrying { server, why, wait } | Note::Restarting { server, why, wait } => {
                json!({"server": server, "why": why, "waitMs": millis(wait)})
            }
            Note::Started { server, run } => json!({"server": server, "run": run.0}),
            Note::Exited { server, exit } => json!({"server": server, "exit": exit.to_string()}),
            Note::Closed { server, what } => json!({"server": server, "what": what}),
            Note::ListLate { server, wait } => json!({"server": server, "waitMs": millis(wait)}),
            Note::ListFailed { server, method, why, wait, failed } => {
                json!({"server": server, "method": method, "why": why, "waitMs": millis(wait), "failed": failed})
            }
            Note::OddList { server, method, why } => {
                json!({"server": server, "method": method, "why": why})
            }
            Note::Restarted { server, took } | Note::SlowStart { server, took } => {
                json!({"server": server, "tookMs": millis(took)})
            }
            Note::Down { server, why, every } => {
                json!({"server": server, "why": why, "everyMs": millis(every)})
            }
            Note::Hung { server, silent, asked } => {
                json!({"server": server, "silentMs": millis(silent), "since": asked})
            }
            Note::FellAsleep { server, idle } => json!({"server": server, "idleMs": millis(idle)}),
            Note::BadLines { server, count, shown } => {
                json!({"server": server, "count": count, "last": shown})
            }
            Note::AllBadLines { server, count } => json!({"server": server, "count": count}),
            Note::LateAnswer { server, attempt } => json!({"server": server, "attempt": attempt}),
            Note::AskTimedOut { server, method, limit } => {
                json!({"server": server, "method": method, "limitMs": millis(limit)})
            }
            Note::MemoryWasWrong { server }
            | Note::OtherEra { server }
            | Note::OddDeclaration { server }
            | Note::TolerantAnswer { server }
            | Note::OtherIdType { server }
            | Note::StrayProgress { server }
            | Note::TooManyAsks { server } => json!({"server": server}),
            note => note.facts_of_call(),
        }
    }

    /// Those about one call of a server.
    fn facts_of_call(&self) -> Value {
        match self {
            Note::Repeated { server, method, attempt, why } => {
                json!({"server": server, "method": method, "attempt": attempt, "why": why})
            }
            Note::Joined { server, tool } => json!({"server": server, "tool": tool}),
            Note::HoldAsked { server, tool, hold, patience } => {
                json!({"server": server, "tool": tool, "hold": hold, "patienceMs": millis(patience)})
            }
            Note::HoldDecided { server, tool, yes, by, place, reason } => {
                json!({"server": server, "tool": tool, "yes": yes, "by": by, "place": place, "reason": reason})
            }
            _ => json!({}),
        }
    }
}
