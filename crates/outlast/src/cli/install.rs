//! The command lines of `install [CLIENT]` and `uninstall CLIENT`.

use super::flags;
use super::{Task, Wrong, help};
use crate::config::Settings;
use crate::install::clients::{CLIENTS, Client, Scope};
use crate::install::{Aim, Request};
use lexopt::prelude::*;
use outlast_engine::settings::nearest;
use std::ffi::OsString;

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
                request.clients.push(client(&word.to_string_lossy())?);
            }
            other => return Err(Wrong(format!("{}; see outlast install --help", other.unexpected()))),
        }
    }
    checked(request)
}

/// Flags for outlast itself, checked as if they were given to it.
fn own_flags(aim: Aim, words: Vec<OsString>) -> Result<Vec<String>, Wrong> {
    if aim != Aim::Install && !words.is_empty() {
        return Err(Wrong("flags for outlast are for `outlast install`; uninstall takes them out".into()));
    }
    let written = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut parser = lexopt::Parser::from_args(words);
    let mut settings = Settings::new(&[]);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("keep") => {}
            Long(name) => {
                let (setting, value) = flags::read(flags::named(name)?, &mut parser)?;
                settings.take_flag(setting, &value)?;
            }
            other => {
                let what = other.unexpected();
                return Err(Wrong(format!(
                    "{what}: behind `--` stand flags of outlast, such as --timeout 10m"
                )));
            }
        }
    }
    Ok(written)
}

fn checked(request: Request) -> Result<Task, Wrong> {
    let command = if request.aim == Aim::Install { "install" } else { "uninstall" };
    let options = request.scope.is_some()
        || request.yes
        || request.dry_run
        || request.json
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
        (_, _) if request.json && !request.yes && !request.dry_run => Err(Wrong(format!(
            "--json asks nobody: add --yes or --dry-run; write: outlast {command} CLIENT --json --yes"
        ))),
        _ => Ok(Task::Install(request)),
    }
}

fn scope(word: &str) -> Result<Scope, Wrong> {
    match word {
        "project" => Ok(Scope::Project),
        "user" => Ok(Scope::User),
        _ => Err(Wrong(format!("--scope is project or user, not `{word}`"))),
    }
}

fn client(word: &str) -> Result<&'static Client, Wrong> {
    Client::named(word).ok_or_else(|| {
        let meant = nearest(word, CLIENTS.iter().map(|client| client.name));
        let hint = meant.map_or_else(
            || {
                format!(
                    "known are {}",
                    CLIENTS.iter().map(|client| client.name).collect::<Vec<_>>().join(", ")
                )
            },
            |name| format!("did you mean {name}?"),
        );
        Wrong(format!("unknown client `{word}`; {hint}"))
    })
}
