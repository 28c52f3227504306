//! `outlast install` and `outlast uninstall`: puts outlast in front of the servers in a client's own
//! file, and takes it away again.
//!
//! Map: `clients` knows the files; `json`, `toml`, `yaml` find servers in them (`server` is what they
//! find); `edit` says what to change; `plan` puts it together and checks it; `diff` shows it; `write`
//! replaces the file; `list` tells what is there. This file talks to the person.

pub mod clients;
mod diff;
mod edit;
mod json;
mod list;
mod plan;
#[cfg(test)]
mod round_trips;
mod server;
mod toml;
mod write;
mod yaml;

pub use edit::Aim;

use crate::config;
use crate::observe::stderr::say as tell;
use crate::sys::files::is_program;
use clients::{Client, Place, Scope};
use diff::visible;
use plan::Plan;
use server::{Problem, line_of};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;
use write::Original;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// In or out.
    pub aim: Aim,
    /// Which client; without one, everything is listed.
    pub client: Option<&'static Client>,
    /// Whose file; without it the person's own.
    pub scope: Option<Scope>,
    /// Which servers; if none is named, all.
    pub servers: Vec<String>,
    /// Show, and change nothing.
    pub dry_run: bool,
    /// Change without asking.
    pub yes: bool,
}

/// How it went with one file. What is `Left` was asked for and not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Done,
    Left,
}

impl Outcome {
    fn and(self, other: Outcome) -> Outcome {
        if self == Outcome::Done { other } else { self }
    }
}

/// Does what was asked. Fails if something that was asked for was left alone.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let outcome = match request.client {
        Some(client) => change(request, client)?,
        None => list::list()?,
    };
    Ok(if outcome == Outcome::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What a client would have to call to get this program: its name, if that is what the name means.
fn own_word() -> io::Result<String> {
    let program = config::own_program()?;
    let called =
        config::search_path().into_iter().map(|folder| folder.join("outlast")).find(|path| is_program(path));
    let ours = fs::canonicalize(&program)?;
    if called.and_then(|path| fs::canonicalize(path).ok()) == Some(ours) {
        return Ok("outlast".into());
    }
    let unwritable = || io::Error::other("the path of this program is not UTF-8, so no file can name it");
    program.into_os_string().into_string().map_err(|_| unwritable())
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

/// A path as a person may see it, and what it really is if that is somewhere else.
fn shown(place: &Place, original: &Original) -> String {
    let elsewhere = std::path::absolute(&place.path).is_ok_and(|path| path != original.path);
    let path = visible(&place.path.to_string_lossy());
    if elsewhere { format!("{path} -> {}", visible(&original.path.to_string_lossy())) } else { path }
}

fn change(request: &Request, client: &Client) -> io::Result<Outcome> {
    let word = own_word()?;
    let places = client.places(request.scope.unwrap_or(Scope::User));
    let (found, mut outcome) = existing(&places);
    let mut meant = 0;
    for (place, original) in &found {
        let ours = plan::ours(&word, place.shape);
        let one = match plan::plan(&original.text, place.shape, request.aim, &ours, &request.servers) {
            Ok(plan) => {
                meant += plan.meant;
                change_file(request, client, place, original, &plan)?
            }
            Err(problem) => not_understood(place, original, &problem),
        };
        outcome = outcome.and(one);
    }
    if outcome == Outcome::Done && found.is_empty() {
        outcome = missing(client, &places);
    } else if outcome == Outcome::Done && meant == 0 && !request.servers.is_empty() {
        outcome = no_such_server(request, &found);
    }
    mention_project(request, client)?;
    Ok(outcome)
}

/// The files that are there, each once; one that cannot be read is told of.
fn existing(places: &[Place]) -> (Vec<(&Place, Original)>, Outcome) {
    let mut found: Vec<(&Place, Original)> = Vec::new();
    let mut outcome = Outcome::Done;
    for place in places {
        match write::read(&place.path) {
            Ok(None) => {}
            Ok(Some(original)) if found.iter().any(|(_, other)| other.path == original.path) => {}
            Ok(Some(original)) => found.push((place, original)),
            Err(why) => outcome = left(&place.path, &why),
        }
    }
    (found, outcome)
}

fn not_understood(place: &Place, original: &Original, problem: &Problem) -> Outcome {
    left(&place.path, &format!("line {}: {}", line_of(&original.text, problem.at), problem.what))
}

fn left(path: &Path, why: &str) -> Outcome {
    tell(&format!("{}: {why}; it is left alone", visible(&path.to_string_lossy())));
    Outcome::Left
}

fn missing(client: &Client, places: &[Place]) -> Outcome {
    let looked: Vec<String> = places.iter().map(|place| visible(&place.path.to_string_lossy())).collect();
    match looked.as_slice() {
        [] => tell("HOME is not set, so no file can be found"),
        looked => tell(&format!("{} has no file here; looked at {}", client.name, looked.join(", "))),
    }
    Outcome::Left
}

fn no_such_server(request: &Request, found: &[(&Place, Original)]) -> Outcome {
    for (place, original) in found {
        let servers = plan::servers(&original.text, place.shape).unwrap_or_default();
        let names: Vec<String> = servers.iter().map(|server| visible(&server.name)).collect();
        let has = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let path = visible(&place.path.to_string_lossy());
        tell(&format!("{path}: no server is called {}; it has: {has}", request.servers.join(" or ")));
    }
    Outcome::Left
}

/// Without `--scope` only the person's own file is changed; a project's is shared, but worth a word.
fn mention_project(request: &Request, client: &Client) -> io::Result<()> {
    if request.scope.is_some() {
        return Ok(());
    }
    for place in client.places(Scope::Project).iter().filter(|place| place.path.exists()) {
        say(&format!("This project has {} too: add --scope project to change it.", place.path.display()))?;
    }
    Ok(())
}

fn change_file(
    request: &Request,
    client: &Client,
    place: &Place,
    original: &Original,
    plan: &Plan,
) -> io::Result<Outcome> {
    let path = shown(place, original);
    let mut outcome = Outcome::Done;
    for (at, name, why) in &plan.unclear {
        let line = line_of(&original.text, *at);
        tell(&format!("{path}: line {line}: `{}` is left alone: {why}", visible(name)));
        outcome = Outcome::Left;
    }
    let Some(text) = &plan.text else {
        if outcome == Outcome::Done && (plan.meant > 0 || request.servers.is_empty()) {
            say(&format!("{path}: {}", nothing_to_do(request.aim)))?;
        }
        return Ok(outcome);
    };
    say(&format!("{path}\n{}", plan.diff.trim_end()))?;
    if request.dry_run {
        say("Nothing was changed: --dry-run.")?;
        return Ok(outcome);
    }
    if !request.yes && !agreed(&path)? {
        return Ok(Outcome::Left);
    }
    match write::replace(original, text) {
        Ok(backup) => {
            say(&format!("Changed. The old file is {}.", visible(&backup.to_string_lossy())))?;
            say(&format!("Restart {} for it to take effect.", client.name))?;
            Ok(outcome)
        }
        Err(why) => Ok(left(&place.path, &why)),
    }
}

fn nothing_to_do(aim: Aim) -> &'static str {
    match aim {
        Aim::Install => "nothing to do: every stdio server that we can change runs through outlast",
        Aim::Uninstall => "nothing to do: no server runs through outlast",
    }
}

/// Asks whether a file is to be changed. Where nobody can be asked, it is not.
fn agreed(path: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        tell(&format!("{path}: nothing was changed, since there is nobody to ask; add --yes"));
        return Ok(false);
    }
    write!(io::stdout(), "Change this file? [y/N] ")?;
    io::stdout().flush()?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !yes {
        say("Nothing was changed.")?;
    }
    Ok(yes)
}
