//! Notes as lines: for people, or an object each for programs. One note is one line, whatever it says.

use super::text::escape;
use crate::clock;
use outlast_engine::{Level, Note};

/// How lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `outlast: warn: …`
    Text,
    /// `{"time":…,"level":…,"kind":…,"message":…}`
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
        self.line_of(note.level(), note.kind(), || note.to_string())
    }

    /// The line for what an edge wants seen, if it is to be said.
    pub fn line_of(&self, level: Level, kind: &str, text: impl FnOnce() -> String) -> Option<String> {
        if level > self.level {
            return None;
        }
        let level = match level {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        };
        let text = escape(&text());
        Some(match self.format {
            Format::Text => format!("outlast: {level}: {text}\n"),
            Format::Json => {
                let line = serde_json::json!({
                    "time": clock::timestamp(), "level": level, "kind": kind, "message": text,
                });
                format!("{line}\n")
            }
        })
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
        assert_eq!(line, "outlast: warn: `a\\u{a}b\\u{9b}31m\\u{202e}c\\u{2028}` ended: exit status 1\n");
        let long = Note::Exited { server: "x".repeat(1 << 20).into(), exit: Exit::Code(1) };
        assert!(log.line(&long).unwrap().len() < 5_000);
        let json = Log { format: Format::Json, ..log }.line(&note).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["level"], &json["kind"]), (&"warn".into(), &"exited".into()));
        assert_eq!(Log { level: Level::Error, ..log }.line(&note), None);
    }
}
