//! Where something stands in a file, and what is said when it is wrong: in the manner of the Rust compiler.

use crate::install::visible;
use crate::observe::terminal::Colour;
use std::fmt;
use std::path::PathBuf;

/// How much of a long line is shown.
const SHOWN: usize = 100;

/// A place in one of the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    pub file: u16,
    pub start: u32,
    pub end: u32,
}

/// A file as it was read.
#[derive(Debug)]
pub struct Source {
    pub path: PathBuf,
    /// What it is called in messages.
    pub name: String,
    pub text: String,
    /// Where each line begins.
    lines: Vec<u32>,
}

impl Source {
    pub fn new(path: PathBuf, name: String, text: String) -> Source {
        let breaks = memchr::memchr_iter(b'\n', text.as_bytes()).map(|at| at as u32 + 1);
        let lines = std::iter::once(0).chain(breaks).collect();
        Source { path, name, text, lines }
    }

    /// The number of a line, counted from 1.
    pub fn line(&self, start: u32) -> usize {
        self.lines.partition_point(|line| *line <= start)
    }

    fn text_of_line(&self, line: usize) -> &str {
        let start = line.checked_sub(1).and_then(|index| self.lines.get(index)).map_or(0, |at| *at as usize);
        self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default()
    }

    /// Where something stands. A `secret` line is shown with its letters hidden.
    pub fn spot(&self, at: At, secret: bool) -> Spot {
        let line = self.line(at.start);
        let start = self.lines.get(line.wrapping_sub(1)).map_or(0, |start| *start as usize);
        let text = self.text_of_line(line);
        let letters = |from: usize, to: usize| self.text.get(from..to).map_or(0, |part| part.chars().count());
        let before = letters(start, at.start as usize);
        let end = (at.end as usize).min(start + text.len());
        let width = letters(at.start as usize, end).max(1);
        let shown = if secret { hidden(text) } else { text.to_owned() };
        Spot { line, column: before + 1, width, text: shown }
    }
}

/// A line of which nobody may read the values.
fn hidden(line: &str) -> String {
    let (name, value) = line.split_at(line.find(['=', ':']).map_or(0, |at| at + 1));
    let hide = |c: char| if c.is_alphanumeric() { '*' } else { c };
    name.chars().chain(value.chars().map(hide)).collect()
}

/// A line, and what in it is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    pub line: usize,
    pub column: usize,
    width: usize,
    text: String,
}

/// How bad a mistake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// It can, and somebody should look.
    Warning,
}

impl Severity {
    /// As it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }

    /// How it looks on a terminal.
    pub fn colour(self) -> Colour {
        match self {
            Severity::Error => Colour::Bad,
            Severity::Warning => Colour::Warning,
        }
    }
}

/// Something that is wrong with a file, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub what: String,
    /// The file, as it is called in messages.
    pub file: String,
    /// Where in it; `None` if the file could not be read.
    pub spot: Option<Spot>,
    /// What would help.
    pub help: Option<String>,
}

impl Mistake {
    /// In one line, for a log.
    pub fn line(&self) -> String {
        let place = self.spot.as_ref().map(|spot| format!(":{}:{}", spot.line, spot.column));
        let help = self.help.as_ref().map(|help| format!("; {help}"));
        visible(&format!(
            "{}{}: {}{}",
            self.file,
            place.unwrap_or_default(),
            self.what,
            help.unwrap_or_default()
        ))
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.severity.name(), visible(&self.what))?;
        let margin = self.spot.as_ref().map_or(1, |spot| spot.line.to_string().len());
        let file = visible(&self.file);
        match &self.spot {
            None => writeln!(f, "{:margin$}--> {file}", "")?,
            Some(spot) => {
                writeln!(f, "{:margin$}--> {file}:{}:{}", "", spot.line, spot.column)?;
                spot.show(f, margin)?;
            }
        }
        match &self.help {
            Some(help) => writeln!(f, "{:margin$} = help: {}", "", visible(help)),
            None => Ok(()),
        }
    }
}

impl Spot {
    /// The line with a mark below it. Of a long line a part is shown, with what is meant in it.
    fn show(&self, f: &mut fmt::Formatter<'_>, margin: usize) -> fmt::Result {
        let skipped = if self.column > SHOWN { self.column - SHOWN / 2 } else { 0 };
        let part: String = self.text.replace('\t', " ").chars().skip(skipped).take(SHOWN).collect();
        let before: String = part.chars().take(self.column - 1 - skipped).collect();
        let room = SHOWN.saturating_sub(before.chars().count()).max(1);
        let indent = visible(&before).chars().count();
        writeln!(f, "{:margin$} |", "")?;
        writeln!(f, "{} | {}", self.line, visible(&part).trim_end())?;
        writeln!(f, "{:margin$} | {:indent$}{}", "", "", "^".repeat(self.width.min(room)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistake(text: &str, start: u32, end: u32, secret: bool) -> String {
        let source = Source::new("x".into(), "outlast.toml".into(), text.into());
        let spot = Some(source.spot(At { file: 0, start, end }, secret));
        let what = "unknown key `timout`".into();
        let help = Some("did you mean `timeout`?".into());
        Mistake { severity: Severity::Error, what, file: source.name.clone(), spot, help }.to_string()
    }

    #[test]
    fn a_mistake_is_shown_as_the_compiler_would() {
        assert_eq!(
            mistake("[defaults]\r\n  timout = \"5s\"\n", 14, 20, false),
            "error: unknown key `timout`\n --> outlast.toml:2:3\n  |\n2 |   timout = \"5s\"\n  |   ^^^^^^\n  = help: did you mean `timeout`?\n"
        );
    }

    #[test]
    fn a_secret_is_not_shown_and_a_long_line_is_cut() {
        assert!(mistake("TOKEN = \"abc1\"", 0, 5, true).contains("1 | TOKEN = \"****\"\n  | ^^^^^\n"));
        let long = mistake(&"x".repeat(5000), 3000, 5000, false);
        assert!(long.lines().all(|line| line.chars().count() < 110), "{long}");
        assert!(mistake("", 0, 0, false).contains("outlast.toml:1:1"));
    }
}
