//! `outlast --keep -- COMMAND`, the service behind it, and `outlast keep list|stop`.

use super::flags::{self, Flags, take};
use super::{Task, Wrong, help, unexpected};
use crate::client::http::addresses;
use crate::client::http::visitor::Doorman;
use crate::config::{self, Settings};
use crate::identity;
use crate::install::INSTALLED;
use crate::keep::{self, Request, Room, Way, What};
use crate::serve::{Entrance, Service};
use crate::server::http::{Options, Remote};
use crate::store::Place;
use crate::sys::guardian::missing;
use crate::sys::limits::FileLimit;
use http::Uri;
use lexopt::prelude::*;
use outlast_engine::profile::Learn;
use outlast_engine::settings::{Key, Mode, Setting};
use outlast_engine::{ClientCap, Transport};
use std::ffi::OsString;
use std::io;

const FORM: &str = "write: outlast keep list, or: outlast keep stop [NAME]";

/// A door adds no limits to those of its service, which knows the server and was told the options.
const NO_LIMITS: &str = "*=timeout:off,max:off,keep-alive:off,retries:0";

/// `outlast --keep [OPTIONS] -- COMMAND...`: the door. `words` is what stood before the command.
pub(super) fn door(
    flags: &Flags,
    mut words: Vec<OsString>,
    command: Vec<OsString>,
    mode: Mode,
) -> Result<Task, Wrong> {
    let is_ours = |word: &OsString| {
        word == "--keep" || word == "--keep=true" || word.to_string_lossy().starts_with(INSTALLED)
    };
    words.retain(|word| !is_ours(word));
    // What is wrong with them is said here, where a person reads it, and not in the service's log.
    let written = take(Settings::new(&command), flags, mode)?;
    if missing(&command).is_some() {
        // No service can help; without one the client is told so at once.
        return Ok(Task::Wrap(Box::new(written), command));
    }
    let Place::Folder(state) = written.place() else {
        let why = "--keep needs a folder for its socket and its tasks: name one with --state DIR";
        return Err(Wrong(why.into()));
    };
    let key = identity::Key::of(&written.place()).map_err(|error| {
        let shown = state.display();
        Wrong(format!("--keep cannot use `{shown}`: {error}; name another folder with --state DIR"))
    })?;
    let room = Room::open(&state, &keep::name(&key, &words, &command)).map_err(Wrong)?;
    let mut settings = Settings::new(&command);
    settings.engine.server_mut().transport = Transport::Http;
    settings.engine.door = true;
    // Its service knows the client too, and keeps the calls.
    (settings.engine.client_cap, settings.engine.learn) = (ClientCap::Off, Learn::Off);
    settings.engine.rules_mut().add(Key::Method, NO_LIMITS, "--keep")?;
    settings.engine.max_message = written.engine.max_message;
    settings.engine.drain = written.engine.drain;
    settings.log = written.log;
    settings.unknown = written.unknown;
    settings.state = Some("none".into());
    words.push("--".into());
    words.extend(command);
    let options = Options {
        url: Uri::from_static("http://localhost/mcp"),
        headers: Vec::new(),
        ca_file: None,
        // The way is on this machine.
        proxies: hyper_util::client::proxy::matcher::Matcher::builder().build(),
        way: Some(Way::new(room, words).map_err(Wrong)?),
        connect: written.remote.connect,
        pool_idle: written.remote.pool_idle,
        pool_max_idle: written.remote.pool_max_idle,
        max_message: written.engine.max_message,
    };
    Ok(Task::Remote(Box::new(settings), Remote::new(options).map_err(Wrong)?))
}

/// What a door starts: `keep-service NAME DESCRIPTORS [OPTIONS] -- COMMAND...`.
pub(super) fn service(words: Vec<OsString>) -> Result<Task, Wrong> {
    let wrong = || Wrong("this is started by outlast --keep".into());
    let mut words = words.into_iter();
    let name = words.next().and_then(|name| name.into_string().ok()).ok_or_else(wrong)?;
    FileLimit::take(&words.next().ok_or_else(wrong)?);
    let mut words: Vec<OsString> = words.collect();
    let end = words.iter().position(|word| word == "--").ok_or_else(wrong)?;
    let command = words.split_off(end).split_off(1);
    let mut flags = Flags::new();
    let mut parser = lexopt::Parser::from_args(words);
    while let Some(argument) = parser.next()? {
        let Long(name) = argument else { return Err(wrong()) };
        flags.push(flags::read(Setting::named(name).ok_or_else(wrong)?, &mut parser)?);
    }
    let mode = Mode { serves: false, keeps: true, remote: false };
    let settings = take(Settings::new(&command).serving(), &flags, mode)?;
    Ok(Task::KeepService(name, Box::new(settings), command))
}

/// Becomes the service; `None` in the process that is only to end.
pub(super) fn enter(
    name: &str,
    settings: &Settings,
    command: &[OsString],
) -> io::Result<Option<Box<Service>>> {
    let Place::Folder(state) = settings.place() else { return Err(io::ErrorKind::NotFound.into()) };
    let room = Room::open(&state, name).map_err(io::Error::other)?;
    let kept = keep::enter(room, name, &settings.engine.server.name, command)?;
    let doorman = Doorman { loopback: true, same_user: true, ..Doorman::default() };
    Ok(kept.map(|kept| {
        Box::new(Service {
            entrance: Entrance::Kept(kept),
            doorman,
            bounds: settings.service.bounds,
            addresses: addresses::Rules::default(),
            access: None,
        })
    }))
}

/// `outlast keep list|stop [NAME] [--json] [--state DIR]`.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut words, mut json, mut state) = (Vec::new(), false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("keep"))),
            Long("json") => json = true,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("keep", &other)),
        }
    }
    let what = match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["list"] => What::List,
        ["stop"] => What::Stop(None),
        ["stop", name] => What::Stop(Some(name.into())),
        _ => return Err(Wrong(FORM.into())),
    };
    if json && matches!(what, What::Stop(_)) {
        return Err(Wrong("--json is for `outlast keep list`".into()));
    }
    Ok(Task::Keep(Request { what, json, place: config::place(state.as_deref()) }))
}
