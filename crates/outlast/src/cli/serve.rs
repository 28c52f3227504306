//! `outlast URL`, `outlast serve` and `outlast token`.

use super::{Task, Wrong};
use crate::client::http::addresses;
use crate::client::http::token::{self, Tokens};
use crate::client::http::visitor::{Doorman, is_loopback};
use crate::config::{self, Settings};
use crate::serve::{Entrance, Service, Target};
use crate::server::http::{Options, Remote, parse_header, proxies_of_environment};
use http::Uri;
use lexopt::prelude::*;
use outlast_engine::Manner;
use outlast_engine::settings::Setting;
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// Whether a word is the address of a remote server.
pub(super) fn is_url(word: &OsString) -> bool {
    word.to_str().is_some_and(|word| word.starts_with("http://") || word.starts_with("https://"))
}

/// Reads such an address.
fn url(word: &OsString) -> Result<Uri, Wrong> {
    let wrong = || Wrong("that is no URL of an MCP server; write: outlast https://host/mcp".into());
    let url: Uri = word.to_str().and_then(|word| word.parse().ok()).ok_or_else(wrong)?;
    let host = url.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
    // The parser takes any text for a port.
    let authority = url.authority().map_or("", |authority| authority.as_str());
    let port = authority.rsplit_once(host).and_then(|(_, rest)| rest.strip_prefix(':'));
    if port.is_some_and(|port| port.parse::<u16>().is_err()) {
        return Err(wrong());
    }
    Ok(url)
}

/// `outlast [OPTIONS] URL`.
pub(super) fn remote(word: &OsString, flags: &[(&'static Setting, String)]) -> Result<Task, Wrong> {
    let url = url(word)?;
    let settings = take(Settings::for_remote(&url), flags)?;
    let remote = reach(url, &settings)?;
    Ok(Task::Remote(Box::new(settings), remote))
}

/// `outlast serve --listen ADDR [OPTIONS] URL` or `-- COMMAND...`.
pub(super) fn serve(
    word: Option<&OsString>,
    command: Option<Vec<OsString>>,
    flags: &[(&'static Setting, String)],
) -> Result<Task, Wrong> {
    let (settings, target) = match (word, command) {
        (Some(word), None) => {
            let url = url(word)?;
            let settings = take(serving(Settings::for_remote(&url)), flags)?;
            let remote = reach(url, &settings)?;
            (settings, Target::Remote(remote))
        }
        (None, Some(command)) if !command.is_empty() => {
            let settings = take(serving(Settings::new(&command)), flags)?;
            (settings, Target::Command(command))
        }
        _ => {
            let how = "outlast serve --listen 127.0.0.1:7600 -- npx -y some-server";
            return Err(Wrong(format!(
                "one server to serve: write: {how} (or a URL in place of -- COMMAND)"
            )));
        }
    };
    let service = service(&settings)?;
    Ok(Task::Serve(Box::new(settings), Box::new(service), target))
}

/// What is built in for a service.
pub(super) fn serving(mut settings: Settings) -> Settings {
    settings.engine.manner = Manner::Serve;
    settings.engine.resumable = true;
    settings.engine.tasks = true;
    settings
}

pub(super) fn take(mut settings: Settings, flags: &[(&'static Setting, String)]) -> Result<Settings, Wrong> {
    settings.take_environment()?;
    for (setting, value) in flags {
        settings.take_flag(setting, value)?;
    }
    Ok(settings)
}

fn reach(url: Uri, settings: &Settings) -> Result<Arc<Remote>, Wrong> {
    let remote = &settings.remote;
    let read =
        |text: &String| parse_header(text, config::variable).map_err(|why| Wrong(format!("--header: {why}")));
    let proxies = proxies_of_environment(&url, config::any_variable).map_err(Wrong)?;
    let options = Options {
        url,
        headers: remote.headers.iter().map(read).collect::<Result<_, Wrong>>()?,
        ca_file: remote.ca_file.clone(),
        proxies,
        way: None,
        connect: remote.connect,
        pool_idle: remote.pool_idle,
        pool_max_idle: remote.pool_max_idle,
        max_message: settings.engine.max_message,
    };
    Remote::new(options).map_err(Wrong)
}

fn service(settings: &Settings) -> Result<Service, Wrong> {
    let written = &settings.service;
    let text = written
        .listen
        .as_deref()
        .ok_or_else(|| Wrong("where to listen? write: --listen 127.0.0.1:7600".into()))?;
    let listen = address(text)?;
    let tokens = match &written.token_file {
        Some(path) => Some(Tokens::read(path).map_err(|why| Wrong(format!("--token-file: {why}")))?),
        None => None,
    };
    let loopback = is_loopback(&listen);
    if !loopback && tokens.is_none() && !written.no_auth {
        return Err(Wrong(format!(
            "others can reach {listen}: say who may come in with --token-file FILE (outlast token new NAME makes a line for it), or let everybody in with --no-auth"
        )));
    }
    Ok(Service {
        entrance: Entrance::Address(listen),
        doorman: Doorman {
            loopback,
            hosts: written.hosts.clone(),
            origins: written.origins.clone(),
            tokens,
            same_user: false,
        },
        bounds: written.bounds,
        addresses: addresses::Rules {
            most: written.max_connections_per_address,
            trusted: written.trusted_proxies.clone(),
        },
    })
}

fn address(text: &str) -> Result<SocketAddr, Wrong> {
    let wrong =
        |why: String| Wrong(format!("--listen: `{text}` {why}; write an address and a port: 127.0.0.1:7600"));
    let mut found = text.to_socket_addrs().map_err(|error| wrong(format!("is no address ({error})")))?;
    found.next().ok_or_else(|| wrong("is no address".into()))
}

/// `outlast token new NAME`: what the file needs goes to stdout and so into the file; the secret does not.
pub(super) fn token(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let how = || Wrong("write: outlast token new NAME".into());
    let mut words: Vec<OsString> = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Value(word) => words.push(word),
            _ => return Err(how()),
        }
    }
    match words.as_slice() {
        [new, name] if new == "new" => {
            let (token, line) = token::new(&name.to_string_lossy()).map_err(Wrong)?;
            let told = format!("the token for the client, shown only here: {token}");
            Ok(Task::PrintAndTell(format!("{line}\n"), told))
        }
        _ => Err(how()),
    }
}
