//! `outlast import CLIENT…`.

use super::install::scope;
use super::{Task, Wrong, check, help, unexpected};
use crate::import::Request;
use crate::install::clients::{CLIENTS, Client, Scope};
use lexopt::prelude::*;
use outlast_engine::settings::nearest;
use std::path::PathBuf;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut request = Request { clients: Vec::new(), scope: Scope::User, output: None };
    let mut output: Option<PathBuf> = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("import"))),
            Long("scope") => request.scope = scope(&parser.value()?.to_string_lossy())?,
            Long("output") | Short('o') => output = Some(parser.value()?.into()),
            Value(word) if word == "all" => request.clients = CLIENTS.iter().collect(),
            Value(word) => request.clients.push(client(&word.to_string_lossy())?),
            other => return Err(unexpected("import", &other)),
        }
    }
    if request.clients.is_empty() {
        return Err(Wrong("which client? write: outlast import CLIENT; outlast install lists them".into()));
    }
    let prints = output.as_ref().is_some_and(|path| path.as_os_str() == "-");
    request.output = if prints { None } else { Some(check::or_default(output)?) };
    Ok(Task::Import(request))
}

fn client(word: &str) -> Result<&'static Client, Wrong> {
    let names = || CLIENTS.iter().map(|client| client.name);
    Client::named(word).ok_or_else(|| {
        let hint = match nearest(word, names()) {
            Some(meant) => format!("did you mean: outlast import {meant}"),
            None => format!("known are {}", names().collect::<Vec<_>>().join(", ")),
        };
        Wrong(format!("unknown client `{word}`; {hint}"))
    })
}
