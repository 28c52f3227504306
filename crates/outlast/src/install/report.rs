//! What install did, for a program: one JSON object with an item for each file. For a person, the same in words.

use super::{Job, say, shown};
use serde_json::{Value, json};
use std::io;

/// What is told, and to whom.
#[derive(Debug)]
pub struct Report {
    json: bool,
    files: Vec<Value>,
    /// There is a file of some client.
    pub found: bool,
}

impl Report {
    pub fn new(json: bool) -> Report {
        Report { json, files: Vec::new(), found: false }
    }

    /// Tells a person.
    pub fn say(&self, text: &str) -> io::Result<()> {
        if self.json { Ok(()) } else { say(text) }
    }

    /// Keeps what became of a file.
    pub fn add(&mut self, job: &Job<'_>, written: bool) -> io::Result<()> {
        let plan = job.plan;
        let servers = super::plan::servers(&job.original.text, job.place.shape).unwrap_or_default();
        let says = |name: &str| {
            let server = servers.iter().find(|server| server.name == name)?;
            Some(job.fitting?.says(server))
        };
        let changed: Vec<Value> = plan
            .changed
            .iter()
            .map(|(name, flags)| json!({"server": name, "flags": flags, "does": says(name)}))
            .collect();
        let left: Vec<Value> =
            plan.unclear.iter().map(|(_, name, why)| json!({"server": name, "why": why})).collect();
        self.files.push(json!({
            "client": job.client.name, "scope": job.place.scope.name(), "file": shown(job.place, job.original),
            "changed": written, "servers": changed, "leftAlone": left, "byHand": plan.by_hand,
        }));
        Ok(())
    }

    /// Tells a program, at the end.
    pub fn print(&self, done: bool) -> io::Result<()> {
        if self.json { say(&json!({"done": done, "files": self.files}).to_string()) } else { Ok(()) }
    }
}
