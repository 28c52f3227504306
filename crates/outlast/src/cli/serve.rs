//! `outlast serve --listen ADDR [OPTIONS] URL` or `-- COMMAND...`.

use super::flags::{self, Flags, take};
use super::meant::{no_command, with_dashes};
use super::remote::{is_url, reach, url};
use super::{
    NO_KEEP, ONE_OF_THEM, Task, Wrong, check, gateway, help, not_understood, split_command, unknown_letter,
    version,
};
use crate::client::http::addresses;
use crate::client::http::token::Tokens;
use crate::client::http::visitor::{Access, Doorman, is_loopback};
use crate::config::Settings;
use crate::program::Program;
use crate::serve::{Entrance, Service};
use crate::sys::guardian::missing;
use crate::sys::manager;
use lexopt::prelude::*;
use outlast_engine::settings::Mode;
use std::ffi::OsString;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::PathBuf;

const WHICH: &str = "which server? write: outlast serve --listen 127.0.0.1:7600 -- npx -y some-server (or a URL in \
                     place of -- COMMAND)";

/// Reads what follows `serve`.
pub(super) fn parse(words: Vec<OsString>) -> Result<Task, Wrong> {
    let line = [&[OsString::from("serve")], words.as_slice()].concat();
    let (words, command) = split_command(words);
    let (mut url, mut file, mut flags) = (None, None, Flags::new());
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("serve"))),
            Long("version") | Short('V') => return version::parse(parser),
            Long("keep") => return Err(Wrong(NO_KEEP.into())),
            Long("config") => file = Some(PathBuf::from(parser.value()?)),
            Long(name) => flags.push(flags::read(flags::named(name)?, &mut parser)?),
            Value(word) if is_url(&word) && url.is_none() => url = Some(word),
            Value(word) if url.is_some() || command.is_some() => return Err(not_understood(&word)),
            Value(word) => {
                let line = with_dashes(&word, &line);
                let word = word.to_string_lossy();
                return Err(Wrong(format!(
                    "`{word}` was not expected before `--`; to serve a command, write: {line}"
                )));
            }
            Short(letter) => return Err(unknown_letter(letter)),
        }
    }
    if let Some(wrong) = command.as_deref().and_then(|command| no_command(command, &line)) {
        return Err(wrong);
    }
    if url.is_none() && command.is_none() {
        let named = file.is_some();
        let path = check::or_default(file)?;
        if !named && !path.exists() {
            return Err(Wrong(format!("{WHICH}; or describe servers in {}", path.display())));
        }
        return gateway::serve(&path, &flags);
    }
    if file.is_some() {
        return Err(Wrong(ONE_OF_THEM.into()));
    }
    serve(url.as_ref(), command, &flags)
}

fn serve(word: Option<&OsString>, command: Option<Vec<OsString>>, flags: &Flags) -> Result<Task, Wrong> {
    let (settings, program) = match (word, command) {
        (Some(word), None) => {
            let url = url(word)?;
            let mode = Mode { serves: true, keeps: false, remote: true };
            let settings = take(Settings::for_remote(&url).serving(), flags, mode)?;
            let remote = reach(url, &settings)?;
            (settings, Program::Remote(remote))
        }
        (None, Some(command)) if !command.is_empty() => {
            let mode = Mode { serves: true, keeps: false, remote: false };
            let settings = take(Settings::new(&command).serving(), flags, mode)?;
            (settings, Program::Command(command.into()))
        }
        _ => return Err(Wrong(WHICH.into())),
    };
    let service = service(&settings)?;
    if let Program::Command(command) = &program
        && let Some(why) = missing(&command.words)
    {
        return Ok(Task::CannotStart(command.words[0].clone(), why));
    }
    Ok(Task::Serve(Box::new(settings), Box::new(service), vec![program]))
}

pub(super) fn service(settings: &Settings) -> Result<Service, Wrong> {
    let written = &settings.service;
    let (entrance, listen) = entrance(written.listen.as_deref())?;
    let of_file = match &written.token_file {
        Some(path) => Some(Tokens::read(path).map_err(|why| Wrong(format!("--token-file: {why}")))?),
        None => None,
    };
    let tokens = Tokens::default().and(written.tokens.iter().cloned());
    let access = Access::new(of_file, tokens, written.reach.clone());
    let loopback = is_loopback(&listen);
    if !loopback && !access.is_asked_for() && !written.no_auth {
        return Err(Wrong(format!(
            "other machines can reach {listen}: say who may connect with --token-file FILE (`outlast token new NAME` makes a line of it) or [tokens.NAME] in the file, or allow everybody with --no-auth"
        )));
    }
    Ok(Service {
        entrance,
        doorman: Doorman {
            loopback,
            hosts: written.hosts.clone(),
            origins: written.origins.clone(),
            access,
            same_user: false,
        },
        bounds: written.bounds,
        addresses: addresses::Rules {
            most: written.max_connections_per_address,
            trusted: written.trusted_proxies.clone(),
        },
        // Opened only when it is certain that we serve.
        access: None,
    })
}

/// A socket that the service manager passes goes before the address that was written.
fn entrance(written: Option<&str>) -> Result<(Entrance, SocketAddr), Wrong> {
    let not_ours = |why| Wrong(format!("the service manager passes {why} (LISTEN_FDS)"));
    if let Some(socket) = manager::passed().map_err(not_ours)? {
        let listen = socket.local_addr().map_err(not_ours)?;
        return Ok((Entrance::Passed(socket), listen));
    }
    let text = written.ok_or_else(|| Wrong("where to listen? write: --listen 127.0.0.1:7600".into()))?;
    let listen = address(text)?;
    Ok((Entrance::Address(listen), listen))
}

fn address(text: &str) -> Result<SocketAddr, Wrong> {
    let wrong =
        |why: String| Wrong(format!("--listen: `{text}` {why}; write an address and a port: 127.0.0.1:7600"));
    let mut found = text.to_socket_addrs().map_err(|error| wrong(format!("is not an address ({error})")))?;
    found.next().ok_or_else(|| wrong("is not an address".into()))
}
