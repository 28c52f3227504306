//! `outlast doctor -- COMMAND`: visits a server as a client would, twice, and says what is odd.
//!
//! The first process is spoken to in the old way (`initialize`), a second, fresh one in the new way
//! (`server/discover`): a server that does not know the new way may fall silent or end, and must not
//! spoil what the first showed. Every wait is bounded (`bounds.rs`), and the guardian takes down
//! whatever is left, however we end.
//!
//! Map: `visit` decides what is asked; `talk` is the conversation, `process` the process below it;
//! `lists` and `ending` are the two longer questions; `noted` is what shows beside the answers; `odd`
//! reads the facts; `report` and `json` show them.

mod bounds;
mod ending;
mod json;
mod lists;
mod noted;
mod odd;
mod process;
mod report;
mod talk;
mod visit;

use crate::observe::stderr::say;
use noted::Noted;
use outlast_engine::event::StartFailure;
use process::Lab;
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;
use visit::Visit;

/// The status when something is odd.
const ODD: u8 = 1;

/// What can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Print an object instead of a report.
    pub json: bool,
    /// The longest wait for one answer.
    pub timeout: Duration,
}

impl Default for Options {
    fn default() -> Options {
        Options { json: false, timeout: bounds::ANSWER }
    }
}

/// All that was seen.
struct Facts {
    command: Vec<String>,
    legacy: Visit,
    modern: Visit,
    noted: Noted,
}

impl Facts {
    /// The visit that could ask most: the first whose handshake worked.
    fn talked(&self) -> &Visit {
        if self.legacy.introduction().is_none() && self.modern.introduction().is_some() {
            return &self.modern;
        }
        &self.legacy
    }

    /// How long a fresh process takes until it first answers anything.
    fn first_answer(&self) -> Option<Duration> {
        self.legacy.first_answer.or(self.modern.first_answer)
    }
}

/// Why there are no facts.
enum Failure {
    Start(StartFailure),
    Io(io::Error),
}

impl From<StartFailure> for Failure {
    fn from(why: StartFailure) -> Failure {
        Failure::Start(why)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

/// Examines the command and prints what was found. Must be called before any thread exists.
pub fn run(options: Options, command: &[OsString]) -> io::Result<ExitCode> {
    let mut lab = Lab::open(command)?;
    crate::sys::limits::adopt_orphans();
    let facts = examine(&mut lab, options, command);
    lab.close();
    match facts {
        Ok(facts) => show(options, &facts),
        Err(Failure::Io(error)) => Err(error),
        Err(Failure::Start(why)) => {
            let program = command.first().map(|word| word.to_string_lossy()).unwrap_or_default();
            say(&format!("cannot start `{program}`: {why}"));
            Ok(ExitCode::from(why.status()))
        }
    }
}

fn examine(lab: &mut Lab, options: Options, command: &[OsString]) -> Result<Facts, Failure> {
    let mut noted = Noted::default();
    let legacy = visit::legacy(lab, &mut noted, options.timeout)?;
    let modern = visit::modern(lab, &mut noted, options.timeout, &legacy)?;
    let command = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(Facts { command, legacy, modern, noted })
}

fn show(options: Options, facts: &Facts) -> io::Result<ExitCode> {
    let odd = odd::find(facts);
    let text = match options.json {
        true => format!("{}\n", json::object(facts, &odd)),
        false => report::text(facts, &odd),
    };
    io::stdout().write_all(text.as_bytes())?;
    Ok(ExitCode::from(if odd.is_empty() { 0 } else { ODD }))
}
