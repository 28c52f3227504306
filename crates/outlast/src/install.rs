//! `outlast install` and `outlast uninstall`: puts outlast in front of the servers in a client's own
//! file, and takes it away again.
//!
//! Map: `clients` knows the files; `json`, `toml`, `yaml` find servers in them (`server` is what they
//! find); `fitting` says which flags fit a client and what will happen there; `edit` says what to change; `plan`
//! puts it together and checks it; `diff` shows it; `write` replaces the file; `report` is all of it for a program;
//! `list` tells what is there. This file talks to the person.

pub mod clients;
mod diff;
mod edit;
mod fitting;
pub mod json;
mod list;
mod plan;
mod report;
#[cfg(test)]
mod round_trips;
mod server;
mod toml;
pub mod write;
mod yaml;

pub use edit::Aim;
pub use server::{INSTALLED, is_outlast};

use crate::config;
use crate::observe::progress::Progress;
use crate::observe::stderr::say as tell;
use crate::observe::stdout::{self, Reader};
use crate::observe::terminal::{Colour, Stream};
use crate::sys::files::is_program;
use clients::{Client, Place, Scope};
pub use diff::visible;
use fitting::Fitting;
use plan::{Plan, Wish};
use report::Report;
use server::{Problem, Server, line_of};
use std::fs;
use std::io::{self, IsTerminal};
use std::path::Path;
use std::process::ExitCode;
use write::Original;

const NO_HOME: &str = "HOME is not set, so no file can be found";

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// In or out.
    pub aim: Aim,
    /// Which clients; without one, everything is listed.
    pub clients: Vec<&'static Client>,
    /// All of them were meant: those without a file are passed over.
    pub all: bool,
    /// Flags for outlast, as a person wrote them.
    pub flags: Vec<String>,
    /// Tell a program, not a person.
    pub json: bool,
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
    let mut report = Report::new(request.json);
    let mut outcome = Outcome::Done;
    for client in &request.clients {
        outcome = outcome.and(change(request, client, &mut report)?);
    }
    if request.clients.is_empty() {
        outcome = list::list(request.json)?;
    } else {
        if request.all && !report.found && outcome == Outcome::Done {
            tell(nothing_found());
            outcome = Outcome::Left;
        }
        report.print(outcome == Outcome::Done)?;
    }
    Ok(if outcome == Outcome::Done { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The name of a server, and its words if it is started as a process.
pub type StdioServer = (String, Option<Vec<String>>);

/// The servers of a file that are started as processes, with their words; `None` for any other.
pub fn stdio_servers(source: &str, shape: clients::Shape) -> Result<Vec<StdioServer>, String> {
    let found = plan::servers(source, shape).map_err(|problem| problem.what)?;
    let words = |server: Server| {
        let server::Kind::Stdio(launch) = &server.kind else { return (server.name, None) };
        let words = launch.words().into_iter().map(|word| word.map(str::to_owned)).collect();
        (server.name, words)
    };
    Ok(found.into_iter().map(words).collect())
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
    stdout::print(format!("{text}\n")).map(drop)
}

/// A path as a person may see it, and what it really is if that is somewhere else.
fn shown(place: &Place, original: &Original) -> String {
    let elsewhere = std::path::absolute(&place.path).is_ok_and(|path| path != original.path);
    let path = visible(&place.path.to_string_lossy());
    if elsewhere { format!("{path} -> {}", visible(&original.path.to_string_lossy())) } else { path }
}

fn change(request: &Request, client: &'static Client, report: &mut Report) -> io::Result<Outcome> {
    let word = own_word()?;
    let places = client.places(request.scope.unwrap_or(Scope::User));
    let (found, mut outcome) = existing(&places);
    report.found |= !found.is_empty();
    let fitting = Fitting::of(client);
    let flags = |server: &Server| wanted_flags(request, fitting.flags(server));
    let mut meant = 0;
    for (place, original) in &found {
        let ours = plan::ours(&word, place.shape);
        let wish = Wish { aim: request.aim, ours: &ours, only: &request.servers, flags: &flags };
        let waits = Progress::begin(&format!("reading {}", place.path.display()));
        let planned = plan::plan(&original.text, place.shape, wish);
        drop(waits);
        let one = match planned {
            Ok(plan) => {
                meant += plan.meant;
                let says = request.aim == Aim::Install;
                let job =
                    Job { request, client, place, original, plan: &plan, fitting: says.then_some(&fitting) };
                change_file(&job, report)?
            }
            Err(problem) => not_understood(place, original, &problem),
        };
        outcome = outcome.and(one);
    }
    if outcome == Outcome::Done && found.is_empty() && !request.all {
        outcome = missing(client, &places);
    } else if outcome == Outcome::Done && meant == 0 && !request.servers.is_empty() {
        outcome = no_such_server(request, &found);
    }
    mention_project(request, client, report)?;
    Ok(outcome)
}

/// The flags that fit, and those that a person wrote: of two of the same name the person's.
fn wanted_flags(request: &Request, fitting: Vec<String>) -> Vec<String> {
    let name = |flag: &str| flag.split('=').next().unwrap_or_default().to_owned();
    let written: Vec<String> =
        request.flags.iter().filter(|word| word.starts_with("--")).map(|word| name(word)).collect();
    let mut wanted = Vec::new();
    let mut overruled = false;
    for word in fitting {
        if word.starts_with("--") {
            overruled = written.contains(&word);
        }
        if !overruled {
            wanted.push(word);
        }
    }
    wanted.extend(request.flags.iter().cloned());
    if wanted.iter().any(|flag| flag == "--keep") {
        // A server that runs in the background has no start to wait for.
        wanted.retain(|flag| flag != "--instant");
    }
    wanted
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
        [] => tell(NO_HOME),
        looked => tell(&format!("{} has no file here; looked at {}", client.name, looked.join(", "))),
    }
    Outcome::Left
}

fn nothing_found() -> &'static str {
    match config::home() {
        Some(_) => "no file of a client was found; `outlast install` alone says where it looked",
        None => NO_HOME,
    }
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
fn mention_project(request: &Request, client: &Client, report: &Report) -> io::Result<()> {
    if request.scope.is_some() {
        return Ok(());
    }
    for place in client.places(Scope::Project).iter().filter(|place| place.path.exists()) {
        let path = place.path.display();
        report.say(&format!("This project has {path} too: add --scope project to change it."))?;
    }
    Ok(())
}

/// A file, what is to become of it, and who wants that.
struct Job<'a> {
    request: &'a Request,
    client: &'static Client,
    place: &'a Place,
    original: &'a Original,
    plan: &'a Plan,
    /// What will happen there, if outlast is to be there.
    fitting: Option<&'a Fitting<'a>>,
}

fn change_file(job: &Job<'_>, report: &mut Report) -> io::Result<Outcome> {
    let outcome = tell_what_is_left(job, report)?;
    let changes = write_file(job, report, outcome)?;
    report.add(job, changes == Written::Yes)?;
    Ok(if changes == Written::No { Outcome::Left } else { outcome })
}

/// Names what is left alone, and why.
fn tell_what_is_left(job: &Job<'_>, report: &Report) -> io::Result<Outcome> {
    let path = shown(job.place, job.original);
    for (at, name, why) in &job.plan.unclear {
        let line = line_of(&job.original.text, *at);
        tell(&format!("{path}: line {line}: `{}` is left alone: {why}", visible(name)));
    }
    for name in &job.plan.by_hand {
        let name = visible(name);
        report.say(&format!(
            "{path}: `{name}` was put behind outlast by hand and stays so; --all takes it out too"
        ))?;
    }
    Ok(if job.plan.unclear.is_empty() { Outcome::Done } else { Outcome::Left })
}

/// Whether a file was changed, was not to be, or was to be and was not.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Yes,
    NotWanted,
    No,
}

fn write_file(job: &Job<'_>, report: &Report, outcome: Outcome) -> io::Result<Written> {
    let Job { request, client, place, original, plan, .. } = *job;
    let path = shown(place, original);
    let Some(text) = &plan.text else {
        let whole = outcome == Outcome::Done && (plan.meant > 0 || request.servers.is_empty());
        if whole && plan.by_hand.is_empty() {
            report.say(&format!("{path}: {}", nothing_to_do(request.aim)))?;
        }
        return Ok(Written::NotWanted);
    };
    report.say(&format!("{path}\n{}", coloured(plan.diff.trim_end())))?;
    for line in happens(job) {
        report.say(&line)?;
    }
    if request.dry_run {
        report.say("Nothing was changed: --dry-run.")?;
        return Ok(Written::NotWanted);
    }
    if !request.yes && !agreed(&path)? {
        return Ok(Written::No);
    }
    let waits = Progress::begin(&format!("writing {path}"));
    let replaced = write::replace(original, text);
    drop(waits);
    match replaced {
        Ok(backup) => {
            report.say(&format!("Changed. The old file is {}.", visible(&backup.to_string_lossy())))?;
            report.say(&format!("Restart {} for it to take effect.", client.name))?;
            Ok(Written::Yes)
        }
        Err(why) => {
            left(&place.path, &why);
            Ok(Written::No)
        }
    }
}

/// A difference as a terminal shows it.
fn coloured(diff: &str) -> String {
    let line = |line: &str| match line.as_bytes().first() {
        Some(b'-') => Stream::Stdout.paint(Colour::Bad, line),
        Some(b'+') => Stream::Stdout.paint(Colour::Good, line),
        _ => line.to_owned(),
    };
    diff.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// What will happen in the client: one line, or one for each server where they differ.
fn happens(job: &Job<'_>) -> Vec<String> {
    let Some(fitting) = job.fitting else { return Vec::new() };
    let servers = plan::servers(&job.original.text, job.place.shape).unwrap_or_default();
    let changed = |server: &&Server| job.plan.changed.iter().any(|(name, _)| *name == server.name);
    let says: Vec<(String, String)> =
        servers.iter().filter(changed).map(|server| (visible(&server.name), fitting.says(server))).collect();
    match says.first() {
        Some((_, first)) if says.iter().all(|(_, other)| other == first) => {
            vec![format!("In {}: {first}.", job.client.name)]
        }
        _ => {
            says.iter().map(|(server, says)| format!("In {}, `{server}`: {says}.", job.client.name)).collect()
        }
    }
}

fn nothing_to_do(aim: Aim) -> &'static str {
    match aim {
        Aim::Install => "nothing to do: every stdio server that we can change runs through outlast",
        Aim::Uninstall | Aim::UninstallAll => "nothing to do: no server runs through outlast",
    }
}

/// Asks whether a file is to be changed. Where nobody can be asked, it is not.
fn agreed(path: &str) -> io::Result<bool> {
    if !io::stdin().is_terminal() {
        tell(&format!("{path}: nothing was changed, since there is nobody to ask; add --yes"));
        return Ok(false);
    }
    if stdout::print("Change this file? [y/N] ")? == Reader::Gone {
        return Ok(false);
    }
    let mut answer = String::new();
    io::stdin().read_line(&mut answer)?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    if !yes {
        say("Nothing was changed.")?;
    }
    Ok(yes)
}
