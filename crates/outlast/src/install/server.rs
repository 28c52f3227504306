//! A server as a client's file describes it, whatever the format of the file.
//!
//! The readers (`json.rs`, `toml.rs`, `yaml.rs`) find where words stand; `edit.rs` moves them. What lies
//! between is here: everything a reader knows is a place in the text, so that an edit can keep every
//! other byte as it was.

use std::ops::Range;

/// Bytes of a text.
pub type Span = Range<usize>;

/// The word that ends our own flags.
pub const DASHES: &str = "--";

/// The first argument of an entry that install has changed: alone, if install put outlast there; with a number, if
/// outlast was there and so many words were added behind it. Uninstall goes by it.
pub const INSTALLED: &str = "--installed";

/// A word as every format here may write it.
pub fn quoted(word: &str) -> String {
    serde_json::Value::from(word).to_string()
}

/// One server of a file.
#[derive(Debug)]
pub struct Server {
    pub name: String,
    /// Where its name stands, for messages.
    pub at: usize,
    pub kind: Kind,
    /// Its members that are numbers: one of them may be the client's limit.
    pub numbers: Vec<(String, f64)>,
}

#[derive(Debug)]
pub enum Kind {
    /// Started by the client as a process: ours to stand in front of.
    Stdio(Launch),
    /// Reached by a URL.
    Remote,
    /// Nothing is started: a builtin, or an entry that only switches a server off.
    NoCommand,
    /// Started somehow, but not in a way that we know how to change.
    Unclear(&'static str),
}

/// How a server is started.
#[derive(Debug)]
pub struct Launch {
    /// The program. Where `joined`, this is the first word of the list.
    pub command: Word,
    /// Its arguments, if the file has a list of them.
    pub list: Option<List>,
    /// Whether program and arguments are one list.
    pub joined: bool,
    /// How the list is written where there is none.
    pub missing: Missing,
    /// Names that may be shown to a person: `command`, `args`.
    pub keys: Vec<Span>,
}

/// A literal and what it means; `None` if it is not a text.
#[derive(Debug, Clone)]
pub struct Word {
    pub span: Span,
    pub text: Option<String>,
}

/// A list of words.
#[derive(Debug)]
pub struct List {
    /// From the opening to the closing bracket; of a list by lines, from the colon to the last word.
    pub span: Span,
    pub items: Vec<Word>,
    /// What stands between two words in front, in the manner of this list.
    pub joint: String,
    /// Whether each word has its own line and there are no brackets.
    pub by_lines: bool,
}

/// How a list of two words is written where there is none: before them, between them, after them.
#[derive(Debug)]
pub struct Missing {
    pub at: usize,
    pub before: String,
    pub between: String,
    pub after: &'static str,
}

impl Missing {
    /// The text of a list of our words and the command. A space follows its commas; `edit.rs` writes none when it
    /// fills a list that was there and empty. So uninstall knows which of the two it finds.
    pub fn text(&self, words: &[&str]) -> String {
        format!("{}{}{}", self.before, words.join(&self.between), self.after)
    }
}

impl Launch {
    /// Every word of the command line, program first.
    pub fn words(&self) -> Vec<Option<&str>> {
        let items = self.list.iter().flat_map(|list| &list.items);
        let command = (!self.joined).then_some(&self.command);
        command.into_iter().chain(items).map(|word| word.text.as_deref()).collect()
    }

    /// The arguments behind the program.
    pub fn arguments(&self) -> &[Word] {
        let items = self.list.as_ref().map(|list| list.items.as_slice()).unwrap_or_default();
        if self.joined { items.get(1..).unwrap_or_default() } else { items }
    }

    /// Whether install has changed the entry, and how.
    pub fn mark(&self) -> Option<Mark> {
        let first = self.arguments().first()?.text.as_deref()?;
        match first.strip_prefix(INSTALLED)? {
            "" => Some(Mark::Put),
            rest => rest.strip_prefix('=')?.parse().ok().map(Mark::Added),
        }
    }

    /// The flags of ours that an entry has.
    pub fn flags(&self) -> impl Iterator<Item = &str> {
        let words = self.arguments().iter().map_while(|word| word.text.as_deref());
        words.take_while(|word| *word != DASHES).filter(|word| word.starts_with("--"))
    }

    /// Where the server's own program stands among the arguments, if they are ours: behind `--`.
    pub fn wrapped(&self) -> Option<usize> {
        let arguments = self.arguments();
        let dashes = arguments.iter().position(|word| word.text.as_deref() == Some(DASHES))?;
        arguments.get(dashes + 1).and_then(|word| word.text.as_ref()).map(|_| dashes + 1)
    }
}

/// What install did to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// It put outlast in front.
    Put,
    /// Outlast was there; so many words were added.
    Added(usize),
}

/// Whether a program is outlast: by its name, or because it is what we would write ourselves.
pub fn is_outlast(program: &str, ours: &str) -> bool {
    program == ours || program.rsplit('/').next() == Some("outlast")
}

/// Why a program cannot become an argument of ours, although the client starts it.
///
/// Some clients hand the command to a shell or expand it; an argument they pass on as it is.
pub fn not_movable(program: &str) -> Option<&'static str> {
    let first = program.split_whitespace().next();
    if program.trim().is_empty() {
        return Some("its command is empty");
    }
    if program.starts_with('~') {
        return Some(
            "its command begins with ~, which a client may expand in a command only; write the whole path",
        );
    }
    if first.is_some_and(|first| first != program && !first.contains('/')) || program.contains(" -") {
        return Some("its command is a line for a shell; put each argument into the list of arguments");
    }
    None
}

/// Whether a program may be shown: what carries a value may carry a secret.
pub fn may_show(program: &str) -> bool {
    !program.contains('=') && !program.contains("://")
}

/// Why a file, or a server in it, is left alone.
#[derive(Debug)]
pub struct Problem {
    pub at: usize,
    pub what: String,
}

impl Problem {
    pub fn new(at: usize, what: impl Into<String>) -> Problem {
        Problem { at, what: what.into() }
    }
}

/// The number of the line in which a place is, counted from 1.
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// Where the line of a place begins.
pub fn line_start(text: &str, at: usize) -> usize {
    text.get(..at).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
}

/// Where the line of a place ends, before its line ending.
pub fn line_end(text: &str, at: usize) -> usize {
    let Some(length) = text.get(at..).and_then(|rest| rest.find('\n')) else { return text.len() };
    let end = at + length;
    if text[..end].ends_with('\r') { end - 1 } else { end }
}

/// How the lines of a text end.
pub fn newline(text: &str) -> &'static str {
    let first = text.find('\n').unwrap_or(0);
    if text[..first].ends_with('\r') { "\r\n" } else { "\n" }
}

/// The line ending and indentation of a place that is the first on its line.
pub fn own_line(text: &str, at: usize) -> Option<String> {
    let indent = &text[line_start(text, at)..at];
    let first = line_start(text, at) > 0 && indent.chars().all(|letter| letter == ' ' || letter == '\t');
    first.then(|| format!("{}{indent}", newline(text)))
}

/// What stands between two words at the front of a list with commas.
pub fn joint(text: &str, items: &[Word]) -> String {
    let Some(first) = items.first() else { return ",".into() };
    if let Some(line) = own_line(text, first.span.start) {
        return format!(",{line}");
    }
    let gap = items.get(1).map(|second| &text[first.span.end..second.span.start]);
    match gap {
        Some(gap) if gap.strip_prefix(',').is_some_and(|rest| rest.bytes().all(|byte| byte == b' ')) => {
            gap.into()
        }
        _ => ", ".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_line_is_not_moved_but_a_path_with_a_space_is() {
        for line in ["npx -y server", "node server.js", "~/bin/server", " ", "/usr/bin/node --inspect x.js"] {
            assert!(not_movable(line).is_some(), "{line}");
        }
        for program in ["npx", "/Applications/My App/server", "./server", "${HOME}/server"] {
            assert!(not_movable(program).is_none(), "{program}");
        }
    }

    #[test]
    fn outlast_is_known_by_its_name_and_by_our_own_path() {
        assert!(is_outlast("outlast", "outlast") && is_outlast("/opt/bin/outlast", "outlast"));
        assert!(is_outlast("/opt/renamed", "/opt/renamed"));
        assert!(!is_outlast("outlast-x", "outlast") && !is_outlast("npx", "outlast"));
    }

    #[test]
    fn lines_end_as_the_first_one_does() {
        assert_eq!(newline("a\r\nb\n"), "\r\n");
        assert_eq!(newline("a\nb\r\n"), "\n");
        assert_eq!(newline("a"), "\n");
        assert_eq!(line_end("a\r\nb", 0), 1);
        assert_eq!(line_end("a\r\nb", 3), 4);
    }
}
