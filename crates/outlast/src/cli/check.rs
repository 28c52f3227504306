//! `outlast check [FILE]`.

use super::{Task, Wrong, help, unexpected};
use crate::config::file::{self, Mistake, Severity};
use crate::observe::terminal::Stream;
use crate::observe::{stderr, stdout};
use lexopt::prelude::*;
use outlast_engine::settings::counted;
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut path, mut json) = (None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("check"))),
            Long("json") => json = true,
            Value(word) if path.is_none() => path = Some(PathBuf::from(word)),
            other => return Err(unexpected("check", &other)),
        }
    }
    Ok(Task::Check(or_default(path)?, json))
}

/// The file that was named, or the one that is looked for.
pub(super) fn or_default(path: Option<PathBuf>) -> Result<PathBuf, Wrong> {
    path.or_else(file::default_path).ok_or_else(|| Wrong("HOME is not set: name the file".into()))
}

/// Reads the file and says what is wrong with it.
pub(super) fn run(path: &Path, json: bool) -> io::Result<ExitCode> {
    let (mistakes, servers) = match file::load_shown(path) {
        Ok(gateway) => {
            let names: Vec<String> =
                gateway.servers.iter().map(|server| server.config.name.to_string()).collect();
            (gateway.warnings, Some(names))
        }
        Err(mistakes) => (mistakes, None),
    };
    if json {
        stdout::print(format!("{}\n", object(path, &mistakes, servers.as_deref())))?;
    } else {
        tell(path, &mistakes, servers.as_deref())?;
    }
    Ok(if servers.is_some() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn tell(path: &Path, mistakes: &[Mistake], servers: Option<&[String]>) -> io::Result<()> {
    show(mistakes);
    let count = |severity| mistakes.iter().filter(|mistake: &&Mistake| mistake.severity == severity).count();
    let errors = counted(count(Severity::Error), "error");
    let warnings = match count(Severity::Warning) {
        0 => String::new(),
        some => format!(", {}", counted(some, "warning")),
    };
    let shown = path.display();
    match servers {
        Some(servers) => {
            let servers = counted(servers.len(), "server");
            stdout::print(format!("{shown}: {servers}{warnings}; nothing is wrong\n"))?;
        }
        None => stderr::say(&format!("{shown}: {errors}{warnings}; it cannot be used")),
    }
    Ok(())
}

/// Shows mistakes with their places, on stderr.
pub(crate) fn show(mistakes: &[Mistake]) {
    for mistake in mistakes {
        let text = mistake.to_string();
        let (severity, rest) = text.split_once(':').unwrap_or(("", &text));
        let colour = mistake.severity.colour();
        stderr::write(format!("{}:{rest}\n", Stream::Stderr.paint(colour, severity)).as_bytes());
    }
}

fn object(path: &Path, mistakes: &[Mistake], servers: Option<&[String]>) -> Value {
    let place = |mistake: &Mistake| mistake.spot.as_ref().map(|spot| (spot.line, spot.column)).unzip();
    let one = |mistake: &Mistake| {
        let (line, column) = place(mistake);
        json!({
            "severity": mistake.severity.name(), "what": mistake.what, "file": mistake.file,
            "line": line, "column": column, "help": mistake.help,
        })
    };
    let mistakes: Vec<Value> = mistakes.iter().map(one).collect();
    json!({"file": path.to_string_lossy(), "usable": servers.is_some(), "servers": servers, "mistakes": mistakes})
}
