//! The command lines of `install [CLIENT]` and `uninstall CLIENT`.

use super::flags::{self, Flags};
use super::meant::{instead, shown_line, with_dashes};
use super::{Task, Wrong, help, unexpected};
use crate::config::Settings;
use crate::install::clients::{CLIENTS, Client, Scope};
use crate::install::{Aim, Request};
use lexopt::prelude::*;
use outlast_engine::settings::Value::Switch;
use outlast_engine::settings::{Key, Mode, Setting, nearest};
use std::ffi::{OsStr, OsString};

pub(super) fn parse(aim: Aim, words: Vec<OsString>) -> Result<Task, Wrong> {
    let mut request = Request {
        aim,
        clients: Vec::new(),
        all: false,
        flags: Vec::new(),
        json: false,
        scope: None,
        servers: Vec::new(),
        dry_run: false,
        yes: false,
    };
    let line = words.clone();
    let (words, flags) = super::split_command(words);
    request.flags = own_flags(aim, flags.unwrap_or_default())?;
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("install"))),
            Long("dry-run") => request.dry_run = true,
            Long("yes") | Short('y') => request.yes = true,
            Long("json") => request.json = true,
            Long("all") if aim == Aim::Uninstall => request.aim = Aim::UninstallAll,
            Long("scope") => request.scope = Some(scope(&parser.value()?.to_string_lossy())?),
            Long("server") => request.servers.push(parser.value()?.to_string_lossy().into_owned()),
            Value(word) if request.clients.is_empty() && word == "all" => {
                (request.clients, request.all) = (CLIENTS.iter().collect(), true);
            }
            Value(word) if request.clients.is_empty() => {
                request.clients.push(client(aim, &word.to_string_lossy(), &line)?);
            }
            Long(name) if Setting::named(name).is_some() && aim == Aim::Install => {
                let dashed = OsString::from(format!("--{name}"));
                return Err(flag_of_ours(&dashed, &line));
            }
            other => return Err(unexpected("install", &other)),
        }
    }
    checked(request)
}

/// A flag for outlast that stands where those of install do.
fn flag_of_ours(flag: &OsStr, line: &[OsString]) -> Wrong {
    let line = with_dashes(flag, &[&[OsString::from("install")], line].concat());
    Wrong(format!("flags for outlast go after `--`; write: {line}"))
}

/// Flags for outlast itself, checked as if they were given to it in front of a command.
fn own_flags(aim: Aim, words: Vec<OsString>) -> Result<Vec<String>, Wrong> {
    if aim != Aim::Install && !words.is_empty() {
        return Err(Wrong("flags for outlast are for `outlast install`; uninstall takes them out".into()));
    }
    let written = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut parser = lexopt::Parser::from_args(words);
    let mut flags = Flags::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long(name) => flags.push(flags::read(flags::named(name)?, &mut parser)?),
            other => {
                let what = other.unexpected();
                return Err(Wrong(format!(
                    "{what}: behind `--` stand flags of outlast, such as --timeout 10m"
                )));
            }
        }
    }
    let keep = flags.iter().rev().find(|(setting, _)| setting.key == Key::Keep);
    let keeps = keep.map(|(setting, value)| setting.parse(value)).transpose()? == Some(Switch(true));
    let mode = Mode { serves: false, keeps, remote: false };
    let mut settings = Settings::new(&[]);
    for (setting, value) in &flags {
        if !setting.applies.to(mode) {
            return Err(flags::does_nothing(setting, mode));
        }
        settings.take_flag(setting, value)?;
    }
    Ok(written)
}

fn checked(request: Request) -> Result<Task, Wrong> {
    let command = request.aim.command();
    let options = request.scope.is_some()
        || request.yes
        || request.dry_run
        || !request.servers.is_empty()
        || !request.flags.is_empty();
    match (request.clients.as_slice(), request.scope) {
        ([client], Some(scope)) if !client.has(scope) => {
            let name = client.name;
            Err(Wrong(format!("{name} has no {} scope; leave --scope away", scope.name())))
        }
        ([], _) if request.aim != Aim::Install => {
            Err(Wrong("which client? write: outlast uninstall CLIENT; outlast install lists them".into()))
        }
        ([], _) if options => {
            Err(Wrong("which client? write: outlast install CLIENT; outlast install alone lists them".into()))
        }
        ([_, ..], _) if request.json && !request.yes && !request.dry_run => Err(Wrong(format!(
            "--json asks nobody: add --yes or --dry-run; write: outlast {command} CLIENT --json --yes"
        ))),
        _ => Ok(Task::Install(request)),
    }
}

pub(super) fn scope(word: &str) -> Result<Scope, Wrong> {
    match word {
        "project" => Ok(Scope::Project),
        "user" => Ok(Scope::User),
        _ => Err(Wrong(format!("--scope is project or user, not `{word}`"))),
    }
}

fn client(aim: Aim, word: &str, line: &[OsString]) -> Result<&'static Client, Wrong> {
    let names = || CLIENTS.iter().map(|client| client.name);
    Client::named(word).ok_or_else(|| {
        let hint = match nearest(word, names()) {
            Some(meant) => {
                let line = [&[aim.command().into()], instead(line, word, meant).as_slice()].concat();
                format!("did you mean: {}", shown_line(&line))
            }
            None => format!("known are {}", names().collect::<Vec<_>>().join(", ")),
        };
        Wrong(format!("unknown client `{word}`; {hint}"))
    })
}
