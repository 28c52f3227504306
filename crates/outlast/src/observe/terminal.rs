//! What only a terminal gets: colours, and a line that is written over. Nothing depends on either.

use super::stderr;
use crate::config;
pub use crate::sys::terminal::columns;
use std::io::{self, IsTerminal};

/// What a word means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Colour {
    Good,
    Warning,
    Bad,
}

/// Where something is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

/// Removes the line that is written over.
pub const CLEAR: &str = "\r\x1b[K";

/// A line in the place of the last one. It is not wrapped at the edge of a narrow terminal, because only one line can
/// be written over.
pub fn over(line: &str) -> String {
    format!("{CLEAR}\x1b[?7l{line}\x1b[?7h")
}

impl Stream {
    /// Whether this is a terminal that understands escapes.
    pub fn is_terminal(self) -> bool {
        let terminal = match self {
            Stream::Stdout => io::stdout().is_terminal(),
            Stream::Stderr => stderr::is_terminal(),
        };
        terminal && config::any_variable("TERM").is_none_or(|name| name != "dumb")
    }

    /// Whether colours are wanted, and understood.
    pub fn has_colours(self) -> bool {
        let unwanted = config::any_variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        self.is_terminal() && !unwanted
    }

    /// A text in a colour, where colours are wanted.
    pub fn paint(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Good => 32,
            Colour::Warning => 33,
            Colour::Bad => 31,
        };
        if self.has_colours() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
