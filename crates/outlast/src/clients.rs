//! `outlast clients`: what is known of clients, and what has been learned of them on this machine.
//!
//! Map: `learned` is the file of what was learned; `advice` says what outlast does for a client. Here: what is shown.

pub mod advice;
pub mod learned;

use crate::observe::stdout;
use crate::observe::table::table;
use crate::observe::text::escape;
use crate::store::Place;
use learned::Entry;
use outlast_engine::profile::{Origin, Profile, TABLE, rows};
use outlast_engine::settings::show_duration;
use serde_json::{Value, json};
use std::fmt::Write;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    pub what: What,
    pub json: bool,
    pub place: Place,
    /// What a person wrote of clients, in the environment.
    pub written: Vec<Profile>,
}

#[derive(Debug)]
pub enum What {
    /// Everything that is known.
    List,
    /// What was learned, and whether it counts.
    Learned,
    /// From now on it counts, of clients with this name.
    Accept(String),
    /// It is forgotten.
    Forget(String),
}

/// Does what was asked. Fails if nothing was learned of a client that was named.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    match &request.what {
        What::List => list(request)?,
        What::Learned => show_learned(&learned::load(&request.place), request.json)?,
        What::Accept(name) => {
            return changed(learned::accept(&request.place, name)?, name, "counts from now on");
        }
        What::Forget(name) => return changed(learned::forget(&request.place, name)?, name, "is forgotten"),
    }
    Ok(ExitCode::SUCCESS)
}

fn changed(entries: Vec<Entry>, name: &str, what: &str) -> io::Result<ExitCode> {
    for entry in &entries {
        let cap = entry.cap().map_or_else(|| "no cap yet".into(), show_duration);
        let (name, version) = (escape(&entry.name), escape(&entry.version));
        stdout::print(format!("{name} {version}: {cap} {what}\n"))?;
    }
    if entries.is_empty() {
        let why = format!("nothing was learned of a client called `{name}`; see: outlast clients learn");
        crate::observe::stderr::say(&why);
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// Every row: what a person wrote, what was learned and counts, the table.
fn known(request: &Request) -> Vec<Profile> {
    let learned = learned::load(&request.place);
    let accepted = learned.iter().filter(|entry| entry.accepted).filter_map(Entry::profile);
    let table = rows(TABLE).filter_map(|line| Profile::of_table(line).ok());
    request.written.iter().cloned().chain(accepted).chain(table).collect()
}

fn list(request: &Request) -> io::Result<()> {
    let rows = known(request);
    if request.json {
        let rows: Vec<Value> = rows.iter().map(as_json).collect();
        return stdout::print(format!("{}\n", json!({"clients": rows}))).map(drop);
    }
    let mut lines =
        vec![["CLIENT", "CALLS ITSELF", "VERSION", "WAITS", "OUTLAST DOES", "KNOWN FROM"].map(str::to_owned)];
    lines.extend(rows.iter().map(line));
    stdout::print(table(&lines)).map(drop)
}

fn line(row: &Profile) -> [String; 6] {
    let unknown = || "?".to_owned();
    let waits = match (row.cap, row.watched) {
        (Some(cap), _) => show_duration(cap),
        (None, Some(watched)) => format!(">{}", show_duration(watched)),
        (None, None) => unknown(),
    };
    let version = row.version.as_ref().map_or_else(|| "any".into(), ToString::to_string);
    let name = |text: &dyn std::fmt::Display| escape(&text.to_string());
    [name(&row.client), name(&row.glob), version, waits, advice::what_happens(row), origin(row)]
}

fn origin(row: &Profile) -> String {
    match &row.origin {
        Origin::Measured(day) => format!("measured {day}"),
        Origin::Reported => "reports".into(),
        Origin::Written(source) => source.to_string(),
        Origin::Learned => "learned here".into(),
    }
}

fn as_json(row: &Profile) -> Value {
    let millis = |time: Option<Duration>| time.map(|time| time.as_millis() as u64);
    json!({
        "client": row.client, "name": row.glob.to_string(), "version": row.version.as_ref().map(ToString::to_string),
        "revision": row.revision, "capabilities": row.capabilities, "token": row.token,
        "capMs": millis(row.cap), "watchedMs": millis(row.watched), "progress": row.progress,
        "totalMs": millis(row.total), "relists": row.relists, "tasks": row.tasks, "repeats": row.repeats,
        "startMs": millis(row.start), "listMs": millis(row.list), "from": origin(row),
        "does": advice::what_happens(row), "acts": row.is_certain(), "row": row.to_string(),
    })
}

fn show_learned(entries: &[Entry], as_json: bool) -> io::Result<()> {
    if as_json {
        let shown = |entry: &Entry| json!({"name": entry.name, "version": entry.version, "capMs": entry.cap_ms, "accepted": entry.accepted});
        let entries: Vec<Value> = entries.iter().filter(|entry| entry.cap_ms.is_some()).map(shown).collect();
        return stdout::print(format!("{}\n", json!({"learned": entries}))).map(drop);
    }
    let mut text = String::new();
    for entry in entries {
        let Some(cap) = entry.cap() else { continue };
        let (name, version, cap) = (escape(&entry.name), escape(&entry.version), show_duration(cap));
        let then = if entry.accepted {
            format!("counts; to forget it: outlast clients forget '{name}'")
        } else {
            format!("does not count yet; to accept it: outlast clients learn '{name}'")
        };
        let _ = writeln!(text, "{name} {version} gives up on silent calls after {cap}: {then}");
    }
    if text.is_empty() {
        text += "Nothing has been learned of any client here.\n";
    }
    stdout::print(text).map(drop)
}
