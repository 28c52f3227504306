//! The facts and the findings, for a person.

use super::ending::How;
use super::lists::{List, Outcome, declared_timeouts};
use super::odd::{Odd, exit_text};
use super::visit::{Handshake, Ping, Visit};
use super::{Facts, bounds};
use crate::doctor::{TASKS, glimpse, show, wrapped};
use crate::observe::terminal::{Colour, Stream};
use outlast_engine::settings::counted;
use serde_json::Value;
use std::fmt::Write;

/// Characters in a line of the findings.
const WIDTH: usize = 96;

/// A row: what it is about, and what was seen.
type Row = (&'static str, String);

/// What is examined.
pub fn heading(facts: &Facts) -> String {
    format!("{}\n\n", glimpse(facts.command.join(" ").as_bytes(), bounds::SHOWN))
}

/// The rows that are known, each with its name.
pub fn rows(facts: &Facts, odd: &[Odd]) -> Vec<Row> {
    let mark = |name| match odd.iter().any(|odd| odd.row == name) {
        true => Stream::Stdout.paint(Colour::Warning, "odd"),
        false => Stream::Stdout.paint(Colour::Good, "ok "),
    };
    let shown = |(name, seen)| (name, format!("  {}  {name:<9}  {seen}\n", mark(name)));
    seen(facts).into_iter().map(shown).collect()
}

/// What is odd, each with what helps.
pub fn findings(odd: &[Odd]) -> String {
    if odd.is_empty() {
        return "\nNothing is odd.\n".to_owned();
    }
    let mut text = format!("\nOdd ({}):\n", odd.len());
    for Odd { kind, says, helps, .. } in odd {
        let (says, helps) = (wrapped(&format!("{kind}: {says}"), WIDTH, "  "), wrapped(helps, WIDTH, "  "));
        let _ = writeln!(text, "- {says}\n  {helps}");
    }
    text
}

/// In the order in which it becomes known. Without the second visit: what that cannot change.
fn seen(facts: &Facts) -> Vec<Row> {
    let talked = facts.talked();
    let mut rows = Vec::new();
    if let Some(introduction) = talked.introduction() {
        rows.push(("server", or_nothing(&introduction.server, "does not say its name")));
    }
    rows.extend(facts.first_answer().map(|time| ("start", format!("first answer after {}", show(time)))));
    rows.push(("legacy", era("initialize", &facts.legacy)));
    if talked.introduction().is_some() || facts.modern.is_some() {
        rows.extend(of_talk(talked));
    }
    let Some(modern) = &facts.modern else { return rows };
    rows.push(("modern", era("server/discover", modern)));
    if talked.introduction().is_some() {
        rows.push(("tasks", tasks(facts)));
    }
    rows.push(("stdout", stdout(facts)));
    rows.push(("stderr", stderr(facts)));
    rows
}

/// What the visit showed that could ask most.
fn of_talk(talked: &Visit) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(introduction) = talked.introduction() {
        rows.push(("declares", or_nothing(&declared(&introduction.capabilities), "nothing")));
        rows.push(("timeouts", timeouts(talked)));
    }
    rows.extend(talked.ping.as_ref().map(|ping| ("ping", pinged(ping))));
    rows.extend(talked.lists.iter().map(|list| (list.name, listed(list))));
    rows.extend(talked.end.as_ref().map(|_| ("end", end(talked))));
    rows
}

fn or_nothing(text: &str, nothing: &str) -> String {
    if text.is_empty() { nothing.to_owned() } else { text.to_owned() }
}

fn era(method: &str, visit: &Visit) -> String {
    let took = show(visit.took);
    match &visit.handshake {
        Handshake::Works(introduction) => format!("{}, `{method}` took {took}", introduction.version),
        Handshake::Error { code, message, supported } => {
            let versions = match supported.as_slice() {
                [] => String::new(),
                versions => format!("; supports {}", versions.join(", ")),
            };
            format!("not spoken: `{method}` answered error {code} ({message}) after {took}{versions}")
        }
        Handshake::OddResult(_) => {
            format!("not spoken: `{method}` answered a result that is not a handshake, after {took}")
        }
        Handshake::Unreadable => format!("not spoken: the answer to `{method}` is not strict JSON"),
        Handshake::Silence => format!("not spoken: `{method}` got no answer in {took}"),
        Handshake::Ended(exit) => {
            format!(
                "not spoken: the server ended {took} after `{method}`, without an answer ({})",
                exit_text(*exit)
            )
        }
        Handshake::EndedUnasked(exit) => {
            format!("not asked: the server ended before that ({})", exit_text(*exit))
        }
    }
}

/// `tools (listChanged), resources (subscribe), logging`
fn declared(capabilities: &Value) -> String {
    let shown = |(name, value): (&String, &Value)| {
        let is_on = |(_, value): &(&String, &Value)| **value == true || value.is_object();
        let inside: Vec<&str> =
            value.as_object().into_iter().flatten().filter(is_on).map(|(name, _)| name.as_str()).collect();
        let name = glimpse(name.as_bytes(), bounds::SHOWN);
        if inside.is_empty() { name } else { format!("{name} ({})", inside.join(", ")) }
    };
    let all: Vec<String> = capabilities.as_object().into_iter().flatten().map(shown).collect();
    glimpse(all.join(", ").as_bytes(), 4 * bounds::SHOWN)
}

fn listed(list: &List) -> String {
    let pages = if list.pages == 1 { "1 page".to_owned() } else { format!("{} pages", list.pages) };
    let read = match list.pages {
        0 => show(list.took),
        _ => format!("{} in {pages}, {}", list.count, show(list.took)),
    };
    match &list.outcome {
        Outcome::Whole if list.pages == 0 => format!("none, {read}"),
        Outcome::Whole => read,
        Outcome::Failed(code, _) => format!("error {code} after {read}"),
        Outcome::Unreadable => format!("unreadable after {read}"),
        Outcome::Silence => format!("no answer after {read}"),
        Outcome::Ended => format!("the server ended after {read}"),
        Outcome::Endless => format!("no end after {read}"),
    }
}

/// What each era says about tasks.
pub struct Tasks {
    pub legacy: bool,
    pub modern: bool,
    pub optional: usize,
    pub required: usize,
}

impl Tasks {
    pub fn of(facts: &Facts) -> Tasks {
        let declares = |visit: &Visit, pointer: &str| {
            visit.introduction().is_some_and(|it| it.capabilities.pointer(pointer).is_some())
        };
        // A slash inside a key is written ~1 in a pointer.
        let extension = format!("/extensions/{}", TASKS.replace('/', "~1"));
        let tools = facts.talked().lists.iter().find(|list| list.name == "tools").map(|list| &list.tools);
        Tasks {
            legacy: declares(&facts.legacy, "/tasks/requests/tools/call"),
            modern: facts.modern.as_ref().is_some_and(|visit| declares(visit, &extension)),
            optional: tools.map_or(0, |tools| tools.optional_tasks),
            required: tools.map_or(0, |tools| tools.required_tasks),
        }
    }
}

fn tasks(facts: &Facts) -> String {
    let Tasks { legacy, modern, optional, required } = Tasks::of(facts);
    let eras = match (legacy, modern) {
        (false, false) => "not offered",
        (true, false) => "as in 2025-11-25",
        (false, true) => "as in 2026-07-28",
        (true, true) => "as in 2025-11-25 and 2026-07-28",
    };
    match optional + required {
        0 => eras.to_owned(),
        _ => format!("{eras}; optional for {}, required for {required}", counted(optional, "tool")),
    }
}

fn timeouts(visit: &Visit) -> String {
    let declared = visit.introduction().map(|it| declared_timeouts(&it.capabilities)).unwrap_or_default();
    let shown: Vec<String> =
        declared.iter().map(|(method, seconds)| format!("{method} {seconds} s")).collect();
    or_nothing(&shown.join(", "), "none declared")
}

fn pinged(ping: &Ping) -> String {
    match ping {
        Ping::Answered(took) => format!("answered after {}", show(*took)),
        Ping::NotWithStringId(took) => {
            format!("answered after {}, but not if the id is a string", show(*took))
        }
        Ping::Unanswered => "no answer".to_owned(),
    }
}

fn end(visit: &Visit) -> String {
    let Some(end) = &visit.end else { return String::new() };
    let (exit, took) = (exit_text(end.exit), show(end.took));
    let how = match end.how {
        How::Before => format!("ended before the end of its input ({exit})"),
        How::Eof => format!("by itself, {took} after the end of its input ({exit})"),
        How::Term => format!("by SIGTERM, {took} after the end of its input ({exit})"),
        How::Kill => format!("by SIGKILL, {took} after the end of its input ({exit})"),
        How::Never => "not even by SIGKILL".to_owned(),
    };
    match end.orphans.len() {
        0 => how,
        1 => format!("{how}; 1 process left behind"),
        count => format!("{how}; {count} processes left behind"),
    }
}

fn stdout(facts: &Facts) -> String {
    let noted = &facts.noted;
    let bad = noted.noise.count + noted.no_message.count + noted.not_strict.count + noted.too_long;
    match bad {
        0 => "messages only".to_owned(),
        _ => format!("{} that a strict client refuses, in two starts", counted(bad, "line")),
    }
}

fn stderr(facts: &Facts) -> String {
    match (facts.noted.stderr_lines, facts.noted.stderr_bytes) {
        (_, 0) => "silent".to_owned(),
        (lines, bytes) => format!("{}, {}, in two starts", counted(lines, "line"), counted(bytes, "byte")),
    }
}
