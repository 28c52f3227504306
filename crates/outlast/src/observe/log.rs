//! Notes as lines: for people, or an object each for programs. One note is one line, whatever it says.

use super::text::escape;
use crate::clock;
use outlast_engine::{Level, Note};
use serde_json::Value;

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `2026-11-15T09:30:00.123Z outlast: warn: …`
    Text,
    /// `{"time":…,"level":…,"kind":…,"message":…,…}`, with a field for each thing that it is about.
    Json,
}

/// What is said, and how.
#[derive(Clone, Copy, Debug)]
pub struct Log {
    /// The least important level that is said.
    pub level: Level,
    /// How.
    pub format: Format,
}

impl Log {
    /// The line for a note, if it is to be said.
    pub fn line(&self, note: &Note) -> Option<String> {
        if note.level() > self.level {
            return None;
        }
        Some(match self.format {
            Format::Text => text_line(note.level(), &note.to_string()),
            Format::Json => json_line(note.level(), note.kind(), &note.message(), note.facts()),
        })
    }

    /// The line for what an edge wants seen, if it is to be said.
    pub fn line_of(&self, level: Level, kind: &str, text: impl FnOnce() -> String) -> Option<String> {
        if level > self.level {
            return None;
        }
        Some(match self.format {
            Format::Text => text_line(level, &text()),
            Format::Json => json_line(level, kind, &text(), Value::Null),
        })
    }
}

fn text_line(level: Level, text: &str) -> String {
    format!("{} outlast: {}: {}\n", clock::timestamp(), name(level), escape(text))
}

fn json_line(level: Level, kind: &str, message: &str, facts: Value) -> String {
    let mut line = serde_json::json!({
        "time": clock::timestamp(), "level": name(level), "kind": kind, "message": escape(message),
    });
    if let (Some(line), Value::Object(facts)) = (line.as_object_mut(), facts) {
        for (name, fact) in facts {
            line.entry(name).or_insert_with(|| bounded(fact));
        }
    }
    format!("{line}\n")
}

/// A fact whose texts cannot steer a terminal, and are not longer than a line of the log.
fn bounded(fact: Value) -> Value {
    match fact {
        Value::String(text) => escape(&text).into(),
        Value::Object(facts) => facts.into_iter().map(|(name, fact)| (name, bounded(fact))).collect(),
        other => other,
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::event::Exit;

    #[test]
    fn a_note_is_one_line_whatever_it_says() {
        let server = "a\nb\u{9b}31m\u{202e}c\u{2028}".into();
        let note = Note::Exited { server, exit: Exit::Code(1) };
        let log = Log { level: Level::Warn, format: Format::Text };
        let line = log.line(&note).unwrap();
        let (time, line) = line.split_once(' ').unwrap();
        assert!(time.len() == 24 && time.ends_with('Z'), "{time}");
        assert_eq!(line, "outlast: warn: `a\\u{a}b\\u{9b}31m\\u{202e}c\\u{2028}` ended: exit status 1\n");
        let long = Note::Exited { server: "x".repeat(1 << 20).into(), exit: Exit::Code(1) };
        assert!(log.line(&long).unwrap().len() < 5_000);
        let json = Log { format: Format::Json, ..log }.line(&note).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["level"], &json["kind"]), (&"warn".into(), &"exited".into()));
        assert_eq!(json["exit"], "exit status 1");
        assert_eq!(json["server"], "a\\u{a}b\\u{9b}31m\\u{202e}c\\u{2028}");
        assert_eq!(Log { level: Level::Error, ..log }.line(&note), None);
    }
}
