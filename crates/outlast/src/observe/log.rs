//! Notes as lines: for people, or an object each for programs.
//!
//! Names and texts come from servers, so every control character is escaped: one note is one line,
//! whatever it says.

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
        if note.level() > self.level {
            return None;
        }
        let level = match note.level() {
            Level::Error => "error",
            Level::Warn => "warn",
            Level::Info => "info",
            Level::Debug => "debug",
        };
        let text = escape(note.to_string());
        Some(match self.format {
            Format::Text => format!("outlast: {level}: {text}\n"),
            Format::Json => {
                let line = serde_json::json!({
                    "time": clock::timestamp(), "level": level, "kind": note.kind(), "message": text,
                });
                format!("{line}\n")
            }
        })
    }
}

/// Control characters, and those that turn the direction of writing, as escapes.
pub fn escape(text: String) -> String {
    let odd = |c: char| {
        c.is_control()
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text;
    }
    text.chars().fold(String::with_capacity(text.len()), |mut line, c| {
        if odd(c) {
            line.extend(c.escape_unicode());
        } else {
            line.push(c);
        }
        line
    })
}

/// A peer's text for a person: cut, and nothing in it can steer a terminal.
pub fn glimpse(bytes: &[u8], most: usize) -> String {
    let cut = &bytes[..bytes.len().min(most)];
    let dots = if cut.len() < bytes.len() { "…" } else { "" };
    escape(String::from_utf8_lossy(cut).into_owned()) + dots
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::event::Exit;

    #[test]
    fn a_peers_text_is_cut_and_cannot_steer_a_terminal() {
        assert_eq!(glimpse(b"a\x1b[2Jb\nc", 6), "a\\u{1b}[2Jb…");
    }

    #[test]
    fn a_note_is_one_line_whatever_it_says() {
        let server = "a\nb\u{1b}[31m\u{202e}c".into();
        let note = Note::Exited { server, exit: Exit::Code(1) };
        let log = Log { level: Level::Warn, format: Format::Text };
        let line = log.line(&note).unwrap();
        assert_eq!(line, "outlast: warn: `a\\u{a}b\\u{1b}[31m\\u{202e}c` ended: exit status 1\n");
        let json = Log { format: Format::Json, ..log }.line(&note).unwrap();
        let json: serde_json::Value = serde_json::from_str(&json).unwrap();
        assert_eq!((&json["level"], &json["kind"]), (&"warn".into(), &"exited".into()));
        assert_eq!(Log { level: Level::Error, ..log }.line(&note), None);
    }
}
