//! `outlast check [FILE]`.

use super::{Task, Wrong, help};
use crate::config::file::{self, Mistake, Severity};
use crate::observe::stderr;
use lexopt::prelude::*;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut path = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("check"))),
            Value(word) if path.is_none() => path = Some(PathBuf::from(word)),
            other => return Err(Wrong(format!("{}; write: outlast check [FILE]", other.unexpected()))),
        }
    }
    Ok(Task::Check(or_default(path)?))
}

/// The file that was named, or the one that is looked for.
pub(super) fn or_default(path: Option<PathBuf>) -> Result<PathBuf, Wrong> {
    path.or_else(file::default_path).ok_or_else(|| Wrong("HOME is not set: name the file".into()))
}

/// Reads the file and says what is wrong with it.
pub(super) fn run(path: &Path) -> io::Result<ExitCode> {
    let (mistakes, servers) = match file::load_shown(path) {
        Ok(gateway) => (gateway.warnings, Some(gateway.servers.len())),
        Err(mistakes) => (mistakes, None),
    };
    for mistake in &mistakes {
        stderr::write(format!("{mistake}\n").as_bytes());
    }
    let count = |severity| mistakes.iter().filter(|mistake: &&Mistake| mistake.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let shown = path.display();
    match servers {
        Some(servers) => {
            let warned = if warnings == 0 { String::new() } else { format!(", {warnings} warning(s)") };
            writeln!(io::stdout(), "{shown}: {servers} server(s){warned}; nothing is wrong")?;
            Ok(ExitCode::SUCCESS)
        }
        None => {
            stderr::say(&format!("{shown}: {errors} error(s), {warnings} warning(s); it cannot be used"));
            Ok(ExitCode::FAILURE)
        }
    }
}
