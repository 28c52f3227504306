//! `outlast callbacks`: what was not delivered yet, whichever outlast process of this user, or replica, sends it.
//!
//! Everything goes through the store. Beside the path of every call.

use crate::clock;
use crate::observe::stderr::say;
use crate::observe::text::escape;
use crate::store::Home;
use crate::tasks::shelf::Shelf;
use crate::tasks::{Problem, Status, print, rough};
use outlast_engine::Wall;
use outlast_engine::callback::{Callback, Fate};
use outlast_engine::limits;
use outlast_engine::settings::{counted, show_duration};
use outlast_engine::store::{Found, Query, Refusal, Trouble, Write};
use serde_json::{Value, json};
use std::io;
use std::process::ExitCode;
use std::time::Duration;

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
    /// What was not delivered yet.
    List,
    /// This callback is sent again now.
    Retry(u64),
    /// This callback is forgotten.
    Drop(u64),
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
        (What::List, shelf) => {
            let callbacks = shelf.as_ref().map(all).transpose()?.unwrap_or_default();
            print(shown(&callbacks, request.json).as_bytes())
        }
        (What::Retry(number), Some(shelf)) => {
            let fate = Fate::Again(Duration::ZERO, "".into());
            settle(&shelf, *number, fate, request.json, "is due now")
        }
        (What::Drop(number), Some(shelf)) => settle(&shelf, *number, Fate::Gone, request.json, "is dropped"),
        (What::Retry(number) | What::Drop(number), None) => Err(unknown(*number)),
    }
}

fn all(shelf: &Shelf) -> Result<Vec<Callback>, Problem> {
    match shelf.load(Query::Callbacks { limit: limits::PAGE })? {
        Found::Callbacks(callbacks) => Ok(callbacks),
        _ => Ok(Vec::new()),
    }
}

fn unknown(number: u64) -> Problem {
    let why = format!("there is no callback {number} (any more); `outlast callbacks` shows those there are");
    Problem(Status::Unknown, why)
}

fn settle(shelf: &Shelf, number: u64, fate: Fate, json: bool, said: &str) -> Result<Status, Problem> {
    match shelf.write(Write::SettleCallback { callback: number, attempts: None, fate }) {
        Ok(_) if json => print(format!("{}\n", json!({"callback": number, "done": said})).as_bytes()),
        Ok(_) => {
            say(&format!("callback {number} {said}"));
            Ok(Status::Done)
        }
        Err(Trouble::Refused { why: Refusal::Unknown, .. }) => Err(unknown(number)),
        Err(why) => Err(Problem(Status::StoreBroken, why.to_string())),
    }
}

fn shown(callbacks: &[Callback], json: bool) -> String {
    let now = clock::wall();
    if json {
        let callbacks: Vec<Value> = callbacks.iter().map(as_json).collect();
        return format!("{}\n", json!({"callbacks": callbacks}));
    }
    if callbacks.is_empty() {
        return "every callback was delivered\n".into();
    }
    callbacks.iter().map(|callback| as_text(callback, now)).collect()
}

fn as_json(callback: &Callback) -> Value {
    let body: Value = serde_json::from_str(&callback.about.body).unwrap_or_default();
    json!({
        "callback": callback.number,
        "name": callback.about.name,
        "id": callback.id(),
        "since": callback.made.timestamp(),
        "attempts": callback.attempts,
        "parked": callback.due.is_none(),
        "due": callback.due.map(Wall::timestamp),
        "why": callback.why,
        "body": body,
    })
}

fn as_text(callback: &Callback, now: Wall) -> String {
    let body: Value = serde_json::from_str(&callback.about.body).unwrap_or_default();
    let (kind, data) = (body["type"].as_str().unwrap_or_default(), &body["data"]);
    let [tool, server] = ["tool", "server"].map(|name| data[name].as_str().unwrap_or_default().to_owned());
    let what = format!("{}  to {}: {kind}, {tool} of {server}", callback.number, callback.about.name);
    let state = match callback.due {
        None => "parked".to_owned(),
        Some(due) if due <= now => "due now".to_owned(),
        Some(due) => format!("due in {}", show_duration(Duration::from_secs(due.since(now).as_secs() + 1))),
    };
    let attempts = usize::try_from(callback.attempts).unwrap_or(usize::MAX);
    let tried = format!("{state}, {} since {}", counted(attempts, "attempt"), rough(now, callback.made));
    let why = if callback.why.is_empty() { String::new() } else { format!(": {}", callback.why) };
    format!("{}\n    {}\n", escape(&what), escape(&format!("{tried}{why}")))
}
