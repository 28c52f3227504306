//! `outlast doctor -- COMMAND`: visits a server as a client would, twice, and says what is odd.
//!
//! The first process is spoken to in the old way (`initialize`), a second, fresh one in the new way
//! (`server/discover`): a server that does not know the new way may fall silent or end, and must not
//! spoil what the first showed. Every wait is bounded (`bounds.rs`), and the guardian takes down
//! whatever is left, however we end.
//!
//! Map: `visit` decides what is asked; `talk` is the conversation, `process` the process below it;
//! `lists` and `ending` are the two longer questions; `noted` is what shows beside the answers; `odd`
//! reads the facts; `report` and `json` show them. A report is printed row by row as it is known.

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

use crate::observe::progress::Progress;
use crate::observe::stderr::say;
use crate::observe::stdout;
use noted::Noted;
use outlast_engine::event::StartFailure;
use process::Lab;
use std::ffi::OsString;
use std::io;
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
    /// Not yet, while the first visit is reported.
    modern: Option<Visit>,
    noted: Noted,
}

impl Facts {
    /// The visit that could ask most: the first whose handshake worked.
    fn talked(&self) -> &Visit {
        let modern = self.modern.as_ref().filter(|visit| visit.introduction().is_some());
        modern.filter(|_| self.legacy.introduction().is_none()).unwrap_or(&self.legacy)
    }

    /// How long a fresh process takes until it first answers anything.
    fn first_answer(&self) -> Option<Duration> {
        self.legacy.first_answer.or_else(|| self.modern.as_ref()?.first_answer)
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
    let command: Vec<String> = command.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let progress = Progress::begin("the server starts and is asked as clients up to 2025-11-25 do");
    let mut paper = Paper { json: options.json, shown: Vec::new(), progress };
    let facts = examine(&mut lab, options, &command, &mut paper);
    lab.close();
    paper.progress = Progress::none();
    match facts {
        Ok(facts) => paper.finish(&facts),
        Err(Failure::Io(error)) => Err(error),
        Err(Failure::Start(why)) => {
            let why_not = format!("cannot start `{}`: {why}", command.first().map_or("", String::as_str));
            if options.json {
                print(&format!("{}\n", json::not_started(&command, &why_not)))?;
            }
            say(&why_not);
            Ok(ExitCode::from(why.status()))
        }
    }
}

fn examine(lab: &mut Lab, options: Options, command: &[String], paper: &mut Paper) -> Result<Facts, Failure> {
    let mut noted = Noted::default();
    let legacy = visit::legacy(lab, &mut noted, options.timeout)?;
    let mut facts = Facts { command: command.into(), legacy, modern: None, noted };
    paper.show(&facts)?;
    paper.progress.next("the server starts again and is asked as clients from 2026-07-28 on do");
    facts.modern = Some(visit::modern(lab, &mut facts.noted, options.timeout, &facts.legacy)?);
    Ok(facts)
}

/// What the person reads, row by row as it is known.
struct Paper {
    json: bool,
    /// The rows that are there.
    shown: Vec<&'static str>,
    /// What is waited for.
    progress: Progress,
}

impl Paper {
    /// Shows what is known and was not shown before. An object for a program comes whole, at the end.
    fn show(&mut self, facts: &Facts) -> io::Result<()> {
        if self.json {
            return Ok(());
        }
        if self.shown.is_empty() {
            self.progress.aside(|| print(&report::heading(facts)))?;
        }
        let odd = odd::find(facts);
        for (name, text) in report::rows(facts, &odd) {
            if !self.shown.contains(&name) {
                self.shown.push(name);
                self.progress.aside(|| print(&text))?;
            }
        }
        Ok(())
    }

    fn finish(mut self, facts: &Facts) -> io::Result<ExitCode> {
        self.show(facts)?;
        let odd = odd::find(facts);
        print(&match self.json {
            true => format!("{}\n", json::object(facts, &odd)),
            false => report::findings(&odd),
        })?;
        Ok(ExitCode::from(if odd.is_empty() { 0 } else { ODD }))
    }
}

fn print(text: &str) -> io::Result<()> {
    stdout::print(text).map(drop)
}
