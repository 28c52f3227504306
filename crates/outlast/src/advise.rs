//! `outlast advise`: limits for tools, proposed from how long their calls took in the last thirty days.
//!
//! Everything is read from the store's file, where every outlast process of this user adds up what it measured. What is
//! proposed, and from how much, is decided by `outlast_engine::durations`; here it is shown.

use crate::import::quoted;
use crate::observe::feed;
use crate::observe::state::{Proposed, Tool};
use crate::observe::text::escape;
use crate::store::Place;
use crate::tasks::shelf::Shelf;
use crate::tasks::{Problem, Status, print};
use outlast_engine::durations::{Durations, ENOUGH, OTHERS, Tally, reason};
use outlast_engine::settings::show_duration;
use outlast_engine::store::{Found, Measured, Query};
use serde_json::json;
use std::fmt::Write;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// In which form it is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// As a part of a configuration file.
    Toml,
}

/// What is asked, of which store.
#[derive(Debug)]
pub struct Request {
    /// Only of this server.
    pub server: Option<String>,
    /// Only of this tool.
    pub tool: Option<String>,
    /// In which form.
    pub form: Form,
    /// Where the store is.
    pub place: Place,
}

/// Does what is asked.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let status = act(request).unwrap_or_else(|Problem(status, why)| {
        crate::observe::stderr::say(&why);
        status
    });
    Ok(ExitCode::from(status as u8))
}

fn act(request: &Request) -> Result<Status, Problem> {
    let mut all = match Shelf::open(&request.place.clone().into())? {
        Some(shelf) => measured(&shelf)?,
        None => Vec::new(),
    };
    let meant = |wanted: &Option<String>, name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    all.retain(|one| meant(&request.server, &one.server) && meant(&request.tool, &one.tool));
    all.retain(|one| *one.tool != *OTHERS);
    let text = match request.form {
        Form::Text => text(&all),
        Form::Json => json(&all),
        Form::Toml => toml(&all),
    };
    print(text.as_bytes())
}

fn measured(shelf: &Shelf) -> Result<Vec<Measured>, Problem> {
    match shelf.load(Query::Measured)? {
        Found::Measured(all) => Ok(all),
        _ => Ok(Vec::new()),
    }
}

/// What is known of one tool.
pub fn of_tool(place: &Place, server: &str, tool: &str) -> Option<Tally> {
    let all = measured(&Shelf::open(&place.clone().into()).ok()??).ok()?;
    let found = all.into_iter().find(|one| *one.server == *server && *one.tool == *tool);
    found.map(|one| one.tally)
}

/// What is known, and what follows from it, for each tool.
fn tools(all: &[Measured]) -> Vec<(Tool, &Tally)> {
    let mut durations = Durations::default();
    all.iter().for_each(|one| durations.join(&one.server, &one.tool, &one.tally));
    let tools = feed::tools(&durations, |_, _| None);
    tools.into_iter().zip(all.iter().map(|one| &one.tally)).collect()
}

/// Nothing is known yet.
const NOTHING: &str =
    "nothing measured yet: limits are proposed from calls that went through outlast in the last 30 days\n";

fn text(all: &[Measured]) -> String {
    if all.is_empty() {
        return NOTHING.into();
    }
    let mut text = String::new();
    for (tool, tally) in tools(all) {
        let _ = writeln!(text, "{} / {}", escape(&tool.server), escape(&tool.tool));
        let _ = writeln!(text, "    {}", reason(tally));
        match &tool.proposed {
            Some(proposed) => {
                let [timeout, max] = limits_of(proposed);
                let _ = writeln!(text, "    timeout = {timeout}, max = {max}");
            }
            None => {
                let _ = writeln!(text, "    too little data: at least {ENOUGH} calls are needed");
            }
        }
    }
    text
}

fn limits_of(proposed: &Proposed) -> [String; 2] {
    [proposed.timeout_ms, proposed.max_ms].map(|ms| show_duration(Duration::from_millis(ms)))
}

fn json(all: &[Measured]) -> String {
    let tools: Vec<Tool> = tools(all).into_iter().map(|(tool, _)| tool).collect();
    format!("{}\n", json!({"version": 1, "days": outlast_engine::limits::MEASURED_DAYS, "tools": tools}))
}

/// A fragment of a configuration file; what is known of a tool stands above it as a comment.
fn toml(all: &[Measured]) -> String {
    let mut text = String::new();
    for (tool, tally) in tools(all) {
        let Some(proposed) = &tool.proposed else {
            let _ = writeln!(
                text,
                "# {} / {}: too little data ({})\n",
                plain(&tool.server),
                plain(&tool.tool),
                reason(tally)
            );
            continue;
        };
        let [timeout, max] = limits_of(proposed);
        let _ = writeln!(text, "[servers.{}.tools.{}]", key(&tool.server), key(&tool.tool));
        let _ = writeln!(text, "# {}", proposed.why);
        let _ = writeln!(text, "timeout = \"{timeout}\"\nmax = \"{max}\"\n");
    }
    if text.is_empty() { format!("# {NOTHING}") } else { text }
}

/// A name as a key of TOML.
fn key(name: &str) -> String {
    let bare = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_');
    if bare { name.to_owned() } else { quoted(name) }
}

/// A name inside a comment, which ends with its line.
fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::step::Outcome;

    fn took(tool: &str, times: &[(u64, u64)]) -> Measured {
        let mut tally = Tally::default();
        for (ms, count) in times {
            (0..*count).for_each(|_| tally.add(Duration::from_millis(*ms), Outcome::Answered));
        }
        Measured { server: "ci".into(), tool: tool.into(), tally }
    }

    #[test]
    fn limits_are_shown_with_the_reason_in_numbers() {
        let all = [took("build", &[(900, 400), (20_000, 12)]), took("rare", &[(5, 2)])];
        assert_eq!(
            text(&all),
            "ci / build\n    412 calls, p50 959ms, p99 20s, slowest 20s, none cut off by a limit\n    \
             timeout = 45s, max = 3m\nci / rare\n    2 calls, p50 5ms, p99 5ms, slowest 5ms, none cut off by a limit\n    \
             too little data: at least 30 calls are needed\n"
        );
        assert_eq!(text(&[]), NOTHING);
    }

    #[test]
    fn a_fragment_of_a_file_is_one_that_a_file_may_have() {
        let all =
            [took("build", &[(900, 400)]), took("odd \"name\"\n]", &[(900, 400)]), took("rare", &[(5, 2)])];
        let fragment = toml(&all);
        let parsed: toml_edit::DocumentMut = fragment.parse().expect(&fragment);
        let tools = parsed["servers"]["ci"]["tools"].as_table().expect("tools");
        assert_eq!(tools["build"]["timeout"].as_str(), Some("10s"));
        assert_eq!(tools["odd \"name\"\n]"]["max"].as_str(), Some("1m"));
        assert!(fragment.contains("# ci / rare: too little data"), "{fragment}");
        toml(&[]).parse::<toml_edit::DocumentMut>().expect("a comment");
    }

    #[test]
    fn programs_get_the_histogram_too() {
        let shown: serde_json::Value = serde_json::from_str(&json(&[took("build", &[(900, 40)])])).unwrap();
        let tool = &shown["tools"][0];
        assert_eq!((&tool["calls"], &tool["proposed"]["timeoutMs"]), (&40.into(), &10_000.into()));
        assert_eq!(tool["buckets"], serde_json::json!([[959, 40]]));
    }
}
