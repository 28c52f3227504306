//! `outlast holds` and `outlast audit`: calls that wait for a person's yes, whichever outlast process of this user
//! holds them, and what persons have said.
//!
//! Everything goes through the store's file: the process that holds a call looks there. Beside the path of every call.

use crate::observe::stderr::{self, say};
use crate::observe::stdout::{self, Reader};
use crate::observe::text::escape;
use crate::store::Home;
use crate::sys::signals::Interrupt;
use crate::tasks::shelf::Shelf;
use crate::tasks::{Problem, Status, print, rough};
use crate::{clock, config};
use outlast_engine::hold::{Decision, Entry, Hold, Scope, Verdict};
use outlast_engine::settings::show_duration;
use outlast_engine::store::{Done, Found, Query, Write};
use outlast_engine::{Wall, limits};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// How often `--watch` looks.
const LOOK: Duration = Duration::from_millis(500);

/// What is asked, of which store.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub what: What,
    /// For programs.
    pub json: bool,
    /// Where the store is.
    pub home: Home,
}

/// What is asked.
#[derive(Debug)]
pub enum What {
    /// Open questions, and approvals that are still in force; with `watch` also each change.
    List {
        /// Go on until interrupted.
        watch: bool,
    },
    /// A person says something of the hold with this number.
    Say(u64, Word),
    /// What persons have said, the newest last.
    Audit {
        /// How many.
        last: usize,
    },
}

/// What a person says.
#[derive(Clone, Debug)]
pub struct Word {
    /// The call may be sent.
    pub yes: bool,
    /// What that is good for.
    pub scope: Scope,
    /// Why.
    pub reason: String,
}

/// Does what is asked.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let status = act(request).unwrap_or_else(|Problem(status, why)| {
        say(&why);
        status
    });
    Ok(ExitCode::from(status as u8))
}

fn act(request: &Request) -> Result<Status, Problem> {
    let shelf = Shelf::open(&request.home)?;
    match (&request.what, shelf) {
        (What::List { watch: true }, Some(shelf)) => watch(&shelf, request.json),
        (What::List { .. }, shelf) => {
            let holds = shelf.as_ref().map(all).transpose()?.unwrap_or_default();
            print(shown(&holds, request.json).as_bytes())
        }
        (What::Audit { last }, shelf) => {
            let entries = shelf.as_ref().map(|shelf| entries(shelf, *last)).transpose()?.unwrap_or_default();
            print(audit(&entries, request.json).as_bytes())
        }
        (What::Say(number, word), Some(shelf)) => decide(&shelf, *number, word, request.json),
        (What::Say(number, _), None) => Err(unknown(*number)),
    }
}

fn unknown(number: u64) -> Problem {
    let why = format!("nobody is asked about call {number} (any more); `outlast holds` shows what waits");
    Problem(Status::Unknown, why)
}

/// Open questions, and approvals that are still in force.
pub fn all(shelf: &Shelf) -> Result<Vec<Hold>, Problem> {
    match shelf.load(Query::Holds)? {
        Found::Holds(holds) => Ok(holds),
        _ => Ok(Vec::new()),
    }
}

fn entries(shelf: &Shelf, last: usize) -> Result<Vec<Entry>, Problem> {
    match shelf.load(Query::Audit { limit: last.min(limits::AUDIT as usize) })? {
        Found::Audit(mut entries) => {
            entries.reverse();
            Ok(entries)
        }
        _ => Ok(Vec::new()),
    }
}

/// Says something, and tells what stands then: somebody else may have been faster.
fn decide(shelf: &Shelf, number: u64, word: &Word, json: bool) -> Result<Status, Problem> {
    let verdict = Verdict {
        yes: word.yes,
        scope: word.scope,
        reason: word.reason.as_str().into(),
        place: "command line".into(),
        by: config::user_name().into(),
    };
    let wanted = verdict.clone();
    let outcome = shelf.write(Write::Decide { hold: number, verdict: verdict.into() });
    let committed = outcome.map_err(|why| Problem(Status::StoreBroken, why.to_string()))?;
    let Some(Done::Decided(Some(decision))) = committed.done.into_iter().next() else {
        return Err(unknown(number));
    };
    let ours = decision.verdict == wanted;
    if json {
        print(format!("{}\n", json!({"hold": number, "counts": ours, "decision": *decision})).as_bytes())?;
    } else {
        say(&told(number, &decision, ours));
    }
    Ok(if ours { Status::Done } else { Status::Failed })
}

fn told(number: u64, decision: &Decision, ours: bool) -> String {
    let Verdict { yes, scope, by, place, .. } = &decision.verdict;
    let word = if *yes { "approved" } else { "declined" };
    match ours {
        true if *yes && *scope != Scope::Once => format!("call {number} is {word}, for {}", scope.words()),
        true => format!("call {number} is {word}"),
        false => format!("call {number} was {word} before, by {by} ({place})"),
    }
}

/// Shows what waits, and each change, until Ctrl-C.
fn watch(shelf: &Shelf, json: bool) -> Result<Status, Problem> {
    let interrupt = Interrupt::new()?;
    let mut last = None;
    loop {
        let holds = all(shelf)?;
        let state: Vec<_> =
            holds.iter().map(|hold| (hold.number, hold.decision.is_some(), hold.owner.clone())).collect();
        if last.as_ref() != Some(&state) {
            if stderr::is_terminal() && !json {
                stderr::write(b"\x07");
            }
            if stdout::print(shown(&holds, json))? == Reader::Gone {
                return Ok(Status::Done);
            }
            last = Some(state);
        }
        if interrupt.wait(Some(LOOK))? {
            return Ok(Status::Interrupted);
        }
    }
}

// What is shown.

fn shown(holds: &[Hold], json: bool) -> String {
    let now = clock::wall();
    if json {
        let holds: Vec<Value> = holds.iter().map(|hold| as_json(hold, now)).collect();
        return format!("{}\n", json!({"holds": holds}));
    }
    if holds.is_empty() {
        return "no call waits for approval\n".into();
    }
    holds.iter().map(|hold| as_text(hold, now)).collect()
}

/// One hold for programs.
pub fn as_json(hold: &Hold, now: Wall) -> Value {
    let about = &hold.about;
    json!({
        "hold": hold.number,
        "server": about.name,
        "tool": about.tool,
        "arguments": about.arguments,
        "client": about.client,
        "principal": about.principal,
        "asked": hold.asked.timestamp(),
        "waitedMs": now.since(hold.asked).as_millis() as u64,
        "until": hold.until.timestamp(),
        "open": hold.is_open(now),
        "waits": !hold.owner.is_empty(),
        "grants": hold.grants(now),
        "decision": hold.decision,
    })
}

fn as_text(hold: &Hold, now: Wall) -> String {
    let about = &hold.about;
    let client = if about.client.is_empty() { "a client" } else { &*about.client };
    let what = format!("{}  {} of {}, for {client}", hold.number, about.tool, about.name);
    let state = match (&hold.decision, hold.grants(now)) {
        (Some(decision), Some(scope)) => {
            format!("approved for {} by {}", scope.words(), decision.verdict.by)
        }
        (Some(decision), None) => {
            format!("{}, not fetched yet", if decision.verdict.yes { "approved" } else { "declined" })
        }
        (None, _) if hold.owner.is_empty() => "the client has left; a yes lets the same call pass".to_owned(),
        (None, _) => format!(
            "waiting for {}, {} left",
            rough(now, hold.asked),
            show_duration(Duration::from_secs(hold.until.since(now).as_secs()))
        ),
    };
    let arguments = if about.arguments.is_empty() { "" } else { &*about.arguments };
    format!("{}\n    {}\n    {}\n", escape(&what), escape(&state), escape(arguments))
}

fn audit(entries: &[Entry], json: bool) -> String {
    if json {
        return entries.iter().map(|entry| format!("{}\n", line_json(entry))).collect();
    }
    if entries.is_empty() {
        return "nobody has decided anything yet\n".into();
    }
    let line = |entry: &Entry| {
        let Verdict { yes, scope, reason, place, by } = &entry.decision.verdict;
        let word = if *yes { "approved" } else { "declined" };
        let scope = if *yes { format!(" for {}", scope.words()) } else { String::new() };
        let why = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let whose = Some(&entry.principal).filter(|name| !matches!(&***name, "" | "stdio"));
        let whose = whose.map(|name| format!(" for {name}")).unwrap_or_default();
        let what = format!("{} of {}{whose} {}", entry.tool, entry.server, entry.arguments);
        format!("{}  {by} ({place}) {word} {what}{scope}{why}", entry.decision.at.timestamp())
    };
    entries.iter().map(|entry| escape(&line(entry)) + "\n").collect()
}

fn line_json(entry: &Entry) -> Value {
    let mut value = serde_json::to_value(entry).unwrap_or_default();
    if let Some(members) = value.as_object_mut() {
        members.insert("at".into(), entry.decision.at.timestamp().into());
    }
    value
}
