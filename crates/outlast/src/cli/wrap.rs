//! `outlast [OPTIONS] -- COMMAND...`, and what else may follow the options.

use super::flags::{self, Flags, take};
use super::{
    NO_KEEP, Task, Wrong, help, keep, named_task, not_understood, remote, split_command, unknown_letter,
    version,
};
use crate::config::Settings;
use lexopt::prelude::*;
use std::ffi::OsString;

/// Reads a line that begins with no command of ours.
pub(super) fn parse(words: Vec<OsString>) -> Result<Task, Wrong> {
    let (words, command) = split_command(words);
    let (mut url, mut keeps, written) = (None, false, words.clone());
    let mut flags = Flags::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::text())),
            Long("version") | Short('V') => return version::parse(parser),
            Long("keep") => keeps = true,
            Long(name) => flags.push(flags::read(flags::named(name)?, &mut parser)?),
            Value(word) if remote::is_url(&word) && url.is_none() => url = Some(word),
            Value(word) if url.is_some() => return Err(not_understood(&word)),
            Value(word) => return named_task(&word, parser),
            Short(letter) => return Err(unknown_letter(letter)),
        }
    }
    let command = command.filter(|command| !command.is_empty());
    match (keeps, url, command) {
        (true, None, Some(command)) => keep::door(&flags, written, command),
        (true, ..) => Err(Wrong(NO_KEEP.into())),
        (false, Some(url), None) => remote::parse(&url, &flags),
        (false, None, Some(command)) => {
            Ok(Task::Wrap(Box::new(take(Settings::new(&command), &flags)?), command))
        }
        (false, ..) => {
            Err(Wrong("no command to run; write: outlast -- npx -y some-server (or outlast --help)".into()))
        }
    }
}
