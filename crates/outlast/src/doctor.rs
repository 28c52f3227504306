//! `outlast doctor`: what a server or a client really does, measured instead of guessed.
//!
//! Two instruments: `doctor -- COMMAND` plays a client towards a server (`server.rs`), and
//! `doctor client` plays a server towards a client (`client.rs`). Neither is on the path of any
//! call, so they may be what the rest of outlast is not: threads that block, trees of JSON, and the
//! few names of MCP that stand below.
//!
//! Not here: what outlast does about an oddity. Each finding names the setting.

mod client;
mod server;

pub use client::run as client;
pub use server::{Options, run as server};

use crate::observe::text::glimpse;

/// The revision that legacy peers are spoken to in.
const LEGACY: &str = "2025-11-25";

/// The revision that modern peers are spoken to in.
const MODERN: &str = "2026-07-28";

/// The keys of a modern request's `_meta`.
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";

/// The key of a modern result's `_meta`.
const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

/// The modern extension for tasks.
const TASKS: &str = "io.modelcontextprotocol/tasks";

/// A time for a person.
fn show(time: std::time::Duration) -> String {
    match time.as_millis() {
        0 => "<1 ms".to_owned(),
        millis @ ..1000 => format!("{millis} ms"),
        _ => format!("{:.1} s", time.as_secs_f64()),
    }
}

/// A text in lines of at most this many characters, each after the first with this before it.
fn wrapped(text: &str, width: usize, indent: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let fits =
            |line: &&mut String| line.is_empty() || line.chars().count() + word.chars().count() < width;
        match lines.last_mut().filter(fits) {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines.join(&format!("\n{indent}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn files(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
    }

    /// It stands beside the path of every call: what that path needs of it belongs elsewhere.
    #[test]
    fn only_the_command_line_knows_the_doctor() {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let knows = |path: &PathBuf| std::fs::read_to_string(path).unwrap().contains("crate::doctor");
        let found: Vec<_> = files(&sources).into_iter().filter(knows).collect();
        let mut names = found.iter().map(|path| path.strip_prefix(&sources).unwrap());
        assert!(
            names.all(|name| name.starts_with("doctor")
                || name.starts_with("cli")
                || name == Path::new("doctor.rs")
                || name == Path::new("cli.rs")),
            "{found:?}"
        );
    }

    #[test]
    fn text_is_wrapped_between_words() {
        assert_eq!(wrapped("one two three", 8, "  "), "one two\n  three");
        assert_eq!(wrapped("incomprehensible", 8, "  "), "incomprehensible");
    }
}
