//! The command lines of `install [CLIENT]` and `uninstall CLIENT`.

use super::{Task, Wrong, help};
use crate::install::clients::{CLIENTS, Client, Scope};
use crate::install::{Aim, Request};
use lexopt::prelude::*;
use outlast_engine::settings::nearest;

pub(super) fn parse(aim: Aim, mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut request =
        Request { aim, client: None, scope: None, servers: Vec::new(), dry_run: false, yes: false };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("install"))),
            Long("dry-run") => request.dry_run = true,
            Long("yes") | Short('y') => request.yes = true,
            Long("scope") => request.scope = Some(scope(&parser.value()?.to_string_lossy())?),
            Long("server") => request.servers.push(parser.value()?.to_string_lossy().into_owned()),
            Value(word) if request.client.is_none() => {
                request.client = Some(client(&word.to_string_lossy())?)
            }
            other => return Err(Wrong(format!("{}; see outlast install --help", other.unexpected()))),
        }
    }
    checked(request)
}

fn checked(request: Request) -> Result<Task, Wrong> {
    match (request.client, request.scope) {
        (Some(client), Some(scope)) if !client.has(scope) => {
            let name = client.name;
            Err(Wrong(format!("{name} has no {} scope; leave --scope away", scope.name())))
        }
        (None, _) if request.aim == Aim::Uninstall => {
            Err(Wrong("which client? write: outlast uninstall CLIENT; outlast install lists them".into()))
        }
        (None, scope) if scope.is_some() || request.yes || request.dry_run || !request.servers.is_empty() => {
            Err(Wrong("which client? write: outlast install CLIENT; outlast install alone lists them".into()))
        }
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
