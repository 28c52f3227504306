//! The command line of `doctor`: `[--json] [--timeout TIME] -- COMMAND…`, or `client`.

use super::meant::with_dashes;
use super::remote::is_url;
use super::{Task, Wrong, help, unexpected};
use crate::doctor::Options;
use lexopt::prelude::*;
use outlast_engine::settings::parse_duration;
use std::ffi::OsString;

/// A remote server has no process, no stdout and no end to look at; what it answers can be recorded.
const NO_URL: &str = "doctor examines stdio servers and cannot examine a URL; to see what a remote server answers, \
                      write: outlast --trace-messages - URL";

const FORM: &str = "write: outlast doctor -- npx -y some-server, or: outlast doctor client";

pub(super) fn parse(mut words: Vec<OsString>) -> Result<Task, Wrong> {
    let line = words.clone();
    let end = words.iter().position(|word| word == "--");
    let command = end.map(|end| words.split_off(end).split_off(1)).unwrap_or_default();
    let mut options = Options::default();
    let mut client = false;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("doctor"))),
            Long("json") => options.json = true,
            Long("timeout") => {
                let value = parser.value().map_err(|_| Wrong(format!("--timeout needs a value; {FORM}")))?;
                options.timeout = parse_duration(&value.to_string_lossy())?;
            }
            Value(word) if word == "client" && !client => client = true,
            Value(word) if is_url(&word) => return Err(Wrong(NO_URL.into())),
            Value(word) if client || !command.is_empty() => {
                let word = word.to_string_lossy();
                return Err(Wrong(format!("`{word}` was not expected here; {FORM}")));
            }
            Value(word) => {
                let line = with_dashes(&word, &[&[OsString::from("doctor")], line.as_slice()].concat());
                let word = word.to_string_lossy();
                return Err(Wrong(format!(
                    "`{word}` was not expected before `--`; to examine a server, write: {line}"
                )));
            }
            other => return Err(unexpected("doctor", &other)),
        }
    }
    if command.first().is_some_and(is_url) {
        return Err(Wrong(NO_URL.into()));
    }
    match (client, command.is_empty()) {
        (true, true) if !options.json => Ok(Task::DoctorClient),
        (true, _) => Err(Wrong("`outlast doctor client` takes no arguments".into())),
        (false, true) => Err(Wrong(format!("no command to examine; {FORM}"))),
        (false, false) => Ok(Task::Doctor(options, command)),
    }
}
