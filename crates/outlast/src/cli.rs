//! The command line: read it, say what is wrong with it, run what it asks for.
//!
//! Each command has a file that reads its words and makes a [`Task`] of them; `run` does it. Here is which word
//! is which command.

mod advise;
mod cache;
mod callbacks;
mod check;
mod clients;
mod completions;
mod doctor;
mod explain;
mod flags;
mod gateway;
pub mod help;
mod holds;
mod import;
mod install;
mod keep;
mod manual;
mod meant;
mod remote;
mod replay;
mod run;
mod serve;
mod servers;
mod tasks;
mod timeout_mcp;
mod token;
mod top;
mod ui;
mod version;
mod wrap;

use crate::config::{self, Settings};
use crate::install as installer;
use crate::observe::stderr::say_lines;
use crate::store::Place;
pub(crate) use check::show as show_mistakes;
use meant::{moved_first, unknown_command};
use outlast_engine::settings::BadValue;
use std::ffi::{OsStr, OsString};
use std::process::ExitCode;

/// The status for a command line that cannot be understood.
const USAGE: u8 = 2;

/// A file says which servers there are, and so does the command line.
const ONE_OF_THEM: &str = "write either --config FILE or the server itself, not both";

/// Where `--keep` stands and cannot be meant.
const NO_KEEP: &str = "--keep needs a command; write: outlast --keep -- npx -y some-server";

/// What is to be done.
enum Task {
    /// Print this and end.
    Print(String),
    /// Print this for a file, and tell that to the person, and end.
    PrintAndTell(String, String),
    Wrap(Box<Settings>, Vec<OsString>),
    Remote(Box<Settings>, std::sync::Arc<crate::server::http::Remote>),
    Serve(Box<Settings>, Box<crate::serve::Service>, Vec<crate::program::Program>),
    Guardian(Vec<OsString>),
    /// The service behind `--keep`, by the name of its files.
    KeepService(String, Box<Settings>, Vec<OsString>),
    Keep(crate::keep::Request),
    /// Say why this command cannot be started, and end as a shell would.
    CannotStart(OsString, outlast_engine::event::StartFailure),
    Demo,
    DemoServer,
    /// Forget what is kept for instant starts, here.
    ClearCache(Place),
    Install(installer::Request),
    Doctor(crate::doctor::Options, Vec<OsString>),
    DoctorClient,
    /// The servers of a file, for the client on our standard streams.
    Gateway(Box<Settings>, Vec<crate::program::Program>),
    Tasks(crate::tasks::Request),
    Holds(crate::holds::Request),
    Callbacks(crate::callbacks::queue::Request),
    Advise(crate::advise::Request),
    Ui(crate::dashboard::alone::Request),
    Clients(crate::clients::Request),
    Top(crate::top::Request),
    Servers(crate::servers::Request),
    /// Read this file and say what is wrong with it; to a program if so.
    Check(std::path::PathBuf, bool),
    Explain(crate::explain::Request),
    Import(crate::import::Request),
    Replay(crate::replay::Request),
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
            say_lines(&why);
            ExitCode::from(USAGE)
        }
    }
}

/// These read all that follows with options of their own; everything else is found behind ours.
fn parse(mut words: Vec<OsString>) -> Result<Task, Wrong> {
    let first = words.first().and_then(|word| word.to_str()).unwrap_or_default().to_owned();
    let misspelt = || meant::misspelt_option(&first, &words);
    if let Some(wrong) = meant::misspelt_second(&first, &words).or_else(misspelt) {
        return Err(wrong);
    }
    match first.as_str() {
        "timeout-mcp" => timeout_mcp::parse(words.split_off(1)),
        "doctor" => doctor::parse(words.split_off(1)),
        "serve" => serve::parse(words.split_off(1)),
        "install" => install::parse(installer::Aim::Install, words.split_off(1)),
        "uninstall" => install::parse(installer::Aim::Uninstall, words.split_off(1)),
        crate::sys::guardian::GUARDIAN => Ok(Task::Guardian(words.split_off(1))),
        crate::keep::SERVICE => keep::service(words.split_off(1)),
        _ => wrap::parse(words),
    }
}

/// A command that reads the rest of the line itself. `line` is all that was written.
fn named_task(word: &OsStr, mut parser: lexopt::Parser, line: &[OsString]) -> Result<Task, Wrong> {
    let word = word.to_string_lossy();
    match &*word {
        "demo" => without_options(&mut parser, "demo", Task::Demo),
        "demo-server" => without_options(&mut parser, "demo-server", Task::DemoServer),
        "man" => without_options(&mut parser, "man", Task::Print(manual::page())),
        "clients" => clients::parse(parser),
        "check" => check::parse(parser),
        "explain" => explain::parse(parser),
        "import" => import::parse(parser),
        "replay" => replay::parse(parser),
        "completions" => completions::parse(parser),
        "cache" => cache::parse(parser),
        "token" => token::parse(parser),
        "tasks" => tasks::parse(parser),
        "top" => top::parse(parser),
        "holds" => holds::parse(parser),
        "callbacks" => callbacks::parse(parser),
        "audit" => holds::audit(parser),
        "advise" => advise::parse(parser),
        "ui" => ui::parse(parser),
        "keep" => keep::parse(parser),
        "servers" => servers::parse(parser),
        "install" => install::parse(installer::Aim::Install, parser.raw_args()?.collect()),
        "uninstall" => install::parse(installer::Aim::Uninstall, parser.raw_args()?.collect()),
        "help" => help::parse(&parser.raw_args()?.collect::<Vec<_>>()),
        // These stand first, so that they can read options of their own.
        "doctor" | "serve" | "timeout-mcp" => {
            Err(Wrong(format!("write `{word}` first: {}", moved_first(&word, line))))
        }
        _ => Err(unknown_command(&word, line)),
    }
}

/// A command that takes nothing but `--help`.
fn without_options(parser: &mut lexopt::Parser, name: &str, task: Task) -> Result<Task, Wrong> {
    match parser.next()? {
        None => Ok(task),
        Some(lexopt::Arg::Long("help") | lexopt::Arg::Short('h')) => Ok(Task::Print(help::of(name))),
        Some(_) => Err(Wrong(format!("`outlast {name}` takes no arguments"))),
    }
}

/// Everything before `--` is for us, everything after it is the server's command, untouched.
fn split_command(mut words: Vec<OsString>) -> (Vec<OsString>, Option<Vec<OsString>>) {
    let end = words.iter().position(|word| word == "--");
    let command = end.map(|end| words.split_off(end).split_off(1));
    (words, command)
}

fn not_understood(word: &OsStr) -> Wrong {
    Wrong(format!("`{}` was not expected here; see outlast --help", word.to_string_lossy()))
}

/// An argument that a command does not know.
fn unexpected(command: &str, argument: &lexopt::Arg) -> Wrong {
    let what = match argument {
        lexopt::Arg::Long(name) => format!("unknown option `--{name}`"),
        lexopt::Arg::Short(letter) => format!("unknown option `-{letter}`"),
        lexopt::Arg::Value(word) => format!("`{}` was not expected here", word.to_string_lossy()),
    };
    Wrong(format!("{what}; see outlast {command} --help"))
}

fn unknown_letter(letter: char) -> Wrong {
    let hint =
        if letter == 'v' { "did you mean -V (the version) or --log debug?" } else { "see outlast --help" };
    Wrong(format!("unknown option `-{letter}`; {hint}"))
}
