//! The command line: read it, say what is wrong with it, run what it asks for.

mod doctor;
pub mod help;
mod install;
mod keep;
mod serve;
mod tasks;
mod timeout_mcp;

use crate::config::{self, Settings};
use crate::observe::Observers;
use crate::observe::stderr::{Stderr, say};
use crate::observe::trace::Trace;
use crate::store::Place;
use crate::{demo, install as installer, memory, wrap};
use lexopt::prelude::*;
use outlast_engine::settings::{BadValue, Kind, SETTINGS, Setting};
use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

/// The status for a command line that cannot be understood.
const USAGE: u8 = 2;

/// What is to be done.
enum Task {
    /// Print this and end.
    Print(String),
    /// Print this for a file, and tell that to the person, and end.
    PrintAndTell(String, String),
    Wrap(Box<Settings>, Vec<OsString>),
    Remote(Box<Settings>, std::sync::Arc<crate::server::http::Remote>),
    Serve(Box<Settings>, Box<crate::serve::Service>, crate::serve::Target),
    Guardian(Vec<OsString>),
    /// The service behind `--keep`, by the name of its files.
    KeepService(String, Box<Settings>, Vec<OsString>),
    Keep(crate::keep::Request),
    Demo,
    DemoServer,
    ClearCache,
    Install(installer::Request),
    Doctor(crate::doctor::Options, Vec<OsString>),
    DoctorClient,
    Tasks(crate::tasks::Request),
}

/// One line about what is wrong.
#[derive(Debug)]
struct Wrong(String);

impl From<BadValue> for Wrong {
    fn from(error: BadValue) -> Wrong {
        Wrong(error.0)
    }
}

impl From<lexopt::Error> for Wrong {
    fn from(error: lexopt::Error) -> Wrong {
        Wrong(error.to_string())
    }
}

/// The whole program.
pub fn main() -> ExitCode {
    let mut words = config::arguments();
    let program = words.next().unwrap_or_default();
    let called = std::path::Path::new(&program).file_name().unwrap_or_default().to_owned();
    let task =
        if called == "timeout-mcp" { timeout_mcp::parse(words.collect()) } else { parse(words.collect()) };
    match task {
        Ok(task) => run(task),
        Err(Wrong(why)) => {
            say(&why);
            ExitCode::from(USAGE)
        }
    }
}

fn run(task: Task) -> ExitCode {
    let done = match task {
        Task::Print(text) => std::io::stdout().write_all(text.as_bytes()).map(|()| ExitCode::SUCCESS),
        Task::PrintAndTell(text, told) => {
            say(&told);
            std::io::stdout().write_all(text.as_bytes()).map(|()| ExitCode::SUCCESS)
        }
        Task::Wrap(settings, command) => {
            return with_observers(*settings, |config, observers, place| {
                wrap::run(config, observers, place, &command)
            });
        }
        Task::Remote(settings, remote) => {
            return with_observers(*settings, |config, observers, place| {
                wrap::run_remote(config, observers, place, remote)
            });
        }
        Task::Serve(settings, service, target) => {
            return with_observers(*settings, |config, observers, place| {
                crate::serve::run(config, observers, place, *service, target)
            });
        }
        Task::KeepService(name, settings, command) => match keep::enter(&name, &settings, &command) {
            Ok(None) => Ok(ExitCode::SUCCESS),
            Ok(Some(service)) => {
                let target = crate::serve::Target::Command(command);
                return with_observers(*settings, |config, observers, place| {
                    crate::serve::run(config, observers, place, *service, target)
                });
            }
            Err(error) => Err(error),
        },
        Task::Keep(request) => crate::keep::run(&request),
        Task::Guardian(command) => crate::guardian::run(&command).map(|()| ExitCode::SUCCESS),
        Task::Demo => demo::run(),
        Task::ClearCache => memory::clear().map(|count| {
            say(&format!("{count} remembered server(s) forgotten"));
            ExitCode::SUCCESS
        }),
        Task::DemoServer => demo::server::run().map(|()| ExitCode::SUCCESS),
        Task::Install(request) => installer::run(&request),
        Task::Doctor(options, command) => crate::doctor::server(options, &command),
        Task::DoctorClient => crate::doctor::client(),
        Task::Tasks(request) => crate::tasks::run(&request),
    };
    done.unwrap_or_else(|error| {
        say(&error.to_string());
        ExitCode::FAILURE
    })
}

fn with_observers(
    settings: Settings,
    run: impl FnOnce(outlast_engine::Config, Observers, Place) -> std::io::Result<ExitCode>,
) -> ExitCode {
    for name in &settings.unknown {
        say(&format!("warn: the variable {name} is no setting of ours; ignored"));
    }
    let trace = match settings.trace.as_deref().map(Trace::open).transpose() {
        Ok(trace) => trace,
        Err(error) => {
            let path = settings.trace.unwrap_or_default();
            say(&format!("--trace-messages: cannot write `{path}`: {error}"));
            return ExitCode::from(USAGE);
        }
    };
    let place = settings.place();
    let observers = Observers::new(Stderr::default(), settings.log, trace);
    run(settings.engine, observers, place).unwrap_or_else(|error| {
        say(&format!("cannot start: {error}"));
        ExitCode::FAILURE
    })
}

/// Everything before `--` is for us, everything after it is the server's command, untouched.
fn parse(mut words: Vec<OsString>) -> Result<Task, Wrong> {
    let end = words.iter().position(|word| word == "--");
    if words.first().is_some_and(|word| word == "timeout-mcp") {
        return timeout_mcp::parse(words.split_off(1));
    }
    if words.first().is_some_and(|word| word == crate::guardian::GUARDIAN) {
        return Ok(Task::Guardian(words.split_off(1)));
    }
    if words.first().is_some_and(|word| word == crate::keep::SERVICE) {
        return keep::service(words.split_off(1));
    }
    if words.first().is_some_and(|word| word == "doctor") {
        return doctor::parse(words.split_off(1));
    }
    let command = end.map(|end| words.split_off(end).split_off(1));
    let serves = words.first().is_some_and(|word| word == "serve");
    if serves {
        words.remove(0);
    }
    let (mut url, mut keeps, written) = (None, false, words.clone());
    let mut parser = lexopt::Parser::from_args(words);
    let mut flags: Vec<(&'static Setting, String)> = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::text())),
            Long("version") | Short('V') => return Ok(Task::Print(help::version())),
            Long("keep") => keeps = true,
            Long(name) => {
                let setting = Setting::named(name).ok_or_else(|| unknown_flag(name))?;
                let value = match setting.kind {
                    Kind::Switch => parser.optional_value().unwrap_or_else(|| "true".into()),
                    _ => parser.value().map_err(|_| missing_value(setting))?,
                };
                flags.push((setting, value.to_string_lossy().into_owned()));
            }
            Value(word) if serve::is_url(&word) && url.is_none() => url = Some(word),
            Value(word) if serves || url.is_some() => {
                return Err(Wrong(format!(
                    "`{}` is not understood here; see outlast --help",
                    word.to_string_lossy()
                )));
            }
            Value(word) => return named_task(&word, parser),
            Short(letter) => return Err(Wrong(format!("unknown flag `-{letter}`; see outlast --help"))),
        }
    }
    if keeps {
        return match (serves, url, command) {
            (false, None, Some(command)) if !command.is_empty() => keep::door(&flags, written, command),
            _ => Err(Wrong("--keep is for a command: write: outlast --keep -- npx -y some-server".into())),
        };
    }
    if serves {
        return serve::serve(url.as_ref(), command, &flags);
    }
    match (url, command) {
        (Some(url), None) => serve::remote(&url, &flags),
        (None, Some(command)) if !command.is_empty() => wrap_task(&flags, command),
        _ => Err(Wrong("no command to run; write: outlast -- npx -y some-server (or outlast --help)".into())),
    }
}

fn named_task(word: &OsString, mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let word = word.to_string_lossy();
    let task = match &*word {
        "demo" => Task::Demo,
        "demo-server" => Task::DemoServer,
        "cache" => match parser.next()? {
            Some(Value(word)) if word == "clear" => Task::ClearCache,
            _ => return Err(Wrong("write: outlast cache clear".into())),
        },
        "token" => return serve::token(parser),
        "tasks" => return tasks::parse(parser),
        "keep" => return keep::parse(parser),
        "install" => return install::parse(installer::Aim::Install, parser),
        "uninstall" => return install::parse(installer::Aim::Uninstall, parser),
        "help" => match parser.next()? {
            Some(Value(topic)) if topic == "settings" => return Ok(Task::Print(help::reference())),
            None => return Ok(Task::Print(help::text())),
            Some(_) => return Err(Wrong("there is `outlast --help` and `outlast help settings`".into())),
        },
        _ => {
            return Err(Wrong(format!(
                "`{word}` is no command of ours; to put outlast in front of it write: outlast -- {word}"
            )));
        }
    };
    match parser.next()? {
        None => Ok(task),
        Some(_) => Err(Wrong(format!("`outlast {word}` takes nothing more"))),
    }
}

fn wrap_task(flags: &[(&'static Setting, String)], command: Vec<OsString>) -> Result<Task, Wrong> {
    let mut settings = Settings::new(&command);
    settings.take_environment()?;
    for (setting, value) in flags {
        settings.take_flag(setting, value)?;
    }
    Ok(Task::Wrap(Box::new(settings), command))
}

fn missing_value(setting: &Setting) -> Wrong {
    Wrong(format!("--{} needs a value: --{} {}", setting.name, setting.name, setting.placeholder()))
}

fn unknown_flag(name: &str) -> Wrong {
    let known = SETTINGS.iter().map(|setting| setting.name).chain(["help", "keep", "version"]);
    let nearest = known.min_by_key(|known| distance(known, name)).filter(|known| distance(known, name) <= 3);
    let hint =
        nearest.map_or_else(|| "see outlast --help".to_owned(), |known| format!("did you mean --{known}?"));
    Wrong(format!("unknown flag `--{name}`; {hint}"))
}

/// How many letters must be changed, added or left out to get from one word to the other.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
