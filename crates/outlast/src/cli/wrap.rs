//! `outlast [OPTIONS] -- COMMAND...`, and what else may follow the options.

use super::flags::{self, Flags, take};
use super::meant::no_command;
use super::{
    NO_KEEP, ONE_OF_THEM, Task, Wrong, gateway, help, keep, moved_first, named_task, not_understood, remote,
    split_command, unknown_letter, version,
};
use crate::config::{self, Settings};
use lexopt::prelude::*;
use outlast_engine::settings::{Key, Mode, setting};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Reads a line that does not begin with a command.
pub(super) fn parse(words: Vec<OsString>) -> Result<Task, Wrong> {
    let line = words.clone();
    let (words, command) = split_command(words);
    let (mut url, mut file, written) = (None, None, words.clone());
    let mut flags = Flags::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Short('h') => return Ok(Task::Print(help::short())),
            Long("help") if written.iter().any(|word| word == "--all") => {
                return Ok(Task::Print(help::all()));
            }
            Long("help") => return Ok(Task::Print(help::text())),
            Long("all") if written.iter().any(|word| word == "--help") => {}
            Long("version") | Short('V') => return version::parse(parser),
            // What `outlast install` marks its entries with.
            Long("installed") => drop(parser.optional_value()),
            Long("config") => file = Some(PathBuf::from(parser.value()?)),
            Long(name) => flags.push(flags::read(flags::named(name)?, &mut parser)?),
            Value(word) if remote::is_url(&word) && url.is_none() => url = Some(word),
            Value(word) if url.is_some() => return Err(not_understood(&word)),
            Value(word) => {
                let option = flags.first().map(|(setting, _)| setting.name);
                heeds_no_options(&word, option.or(file.is_some().then_some("config")), &line)?;
                return named_task(&word, parser, &line);
            }
            Short(letter) => return Err(unknown_letter(letter)),
        }
    }
    let command = command.filter(|command| !command.is_empty());
    if let Some(wrong) = command.as_deref().and_then(|command| no_command(command, &line)) {
        return Err(wrong);
    }
    if let Some(path) = file {
        let alone = url.is_none() && command.is_none();
        return if alone { gateway::wrap(&path, &flags) } else { Err(Wrong(ONE_OF_THEM.into())) };
    }
    let mode = Mode { serves: false, keeps: keeps(&flags)?, remote: url.is_some() };
    match (mode.keeps, url, command) {
        (true, None, Some(command)) => keep::door(&flags, written, command, mode),
        (true, ..) if is_flag(&flags) => Err(Wrong(NO_KEEP.into())),
        (_, Some(url), None) => remote::parse(&url, &flags, mode),
        (false, None, Some(command)) => {
            Ok(Task::Wrap(Box::new(take(Settings::new(&command), &flags, mode)?), command))
        }
        (_, Some(_), Some(_)) => Err(Wrong("write either a URL or a command after --, not both".into())),
        (_, None, None) => {
            Err(Wrong("no command to run; write: outlast -- npx -y some-server (or outlast --help)".into()))
        }
    }
}

/// A command reads its own options, behind it: those before it would do nothing.
fn heeds_no_options(word: &OsStr, option: Option<&str>, line: &[OsString]) -> Result<(), Wrong> {
    let word = word.to_string_lossy();
    match option.filter(|_| help::COMMANDS.iter().any(|command| command.name == word)) {
        None => Ok(()),
        Some(name) => Err(Wrong(format!(
            "--{name} has no effect before `{word}`; write `{word}` first: {}",
            moved_first(&word, line)
        ))),
    }
}

/// Whether `--keep` is on, by the flag or else by the variable.
fn keeps(flags: &Flags) -> Result<bool, Wrong> {
    let setting = setting(Key::Keep);
    let flag =
        flags.iter().rev().find(|(written, _)| written.key == Key::Keep).map(|(_, value)| value.clone());
    let variable = || config::variable(&setting.variable()).filter(|value| !value.is_empty());
    let Some(value) = flag.or_else(variable) else { return Ok(false) };
    Ok(setting.parse(&value)? == outlast_engine::settings::Value::Switch(true))
}

fn is_flag(flags: &Flags) -> bool {
    flags.iter().any(|(setting, _)| setting.key == Key::Keep)
}
