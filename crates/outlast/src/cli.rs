//! The command line: read it, say what is wrong with it, run what it asks for.
//!
//! Each command has a file that reads its words and makes a [`Task`] of them; `run` does it. Here is which word
//! is which command.

mod cache;
mod completions;
mod doctor;
mod flags;
pub mod help;
mod install;
mod keep;
mod manual;
mod remote;
mod run;
mod serve;
mod tasks;
mod timeout_mcp;
mod token;
mod version;
mod words;
mod wrap;

pub(crate) use flags::distance;

use crate::config::{self, Settings};
use crate::install as installer;
use crate::observe::stderr::say;
use crate::store::Place;
use outlast_engine::settings::BadValue;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The status for a command line that cannot be understood.
const USAGE: u8 = 2;

/// Where `--keep` stands and cannot be meant.
const NO_KEEP: &str = "--keep is for a command: write: outlast --keep -- npx -y some-server";

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
    /// Forget what is kept for instant starts, here.
    ClearCache(Place),
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
        Ok(task) => run::run(task),
        Err(Wrong(why)) => {
            say(&why);
            ExitCode::from(USAGE)
        }
    }
}

/// These come first and read all that follows; everything else may stand behind options.
fn parse(mut words: Vec<OsString>) -> Result<Task, Wrong> {
    let first = words.first().and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    match first.as_str() {
        "timeout-mcp" => timeout_mcp::parse(words.split_off(1)),
        "doctor" => doctor::parse(words.split_off(1)),
        "serve" => serve::parse(words.split_off(1)),
        crate::sys::guardian::GUARDIAN => Ok(Task::Guardian(words.split_off(1))),
        crate::keep::SERVICE => keep::service(words.split_off(1)),
        _ => wrap::parse(words),
    }
}

/// A command that may stand behind options, which it does not take.
fn named_task(word: &OsStr, mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let word = word.to_string_lossy();
    let task = match &*word {
        "demo" => Task::Demo,
        "demo-server" => Task::DemoServer,
        "man" => Task::Print(manual::page()),
        "cache" => return cache::parse(parser),
        "completions" => return completions::parse(parser),
        "token" => return token::parse(parser),
        "tasks" => return tasks::parse(parser),
        "keep" => return keep::parse(parser),
        "install" => return install::parse(installer::Aim::Install, parser),
        "uninstall" => return install::parse(installer::Aim::Uninstall, parser),
        "help" => return help::parse(parser),
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

/// Everything before `--` is for us, everything after it is the server's command, untouched.
fn split_command(mut words: Vec<OsString>) -> (Vec<OsString>, Option<Vec<OsString>>) {
    let end = words.iter().position(|word| word == "--");
    let command = end.map(|end| words.split_off(end).split_off(1));
    (words, command)
}

fn not_understood(word: &OsStr) -> Wrong {
    Wrong(format!("`{}` is not understood here; see outlast --help", word.to_string_lossy()))
}

fn unknown_letter(letter: char) -> Wrong {
    Wrong(format!("unknown flag `-{letter}`; see outlast --help"))
}
