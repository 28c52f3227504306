//! `outlast tasks`: what a person sees and does of the calls that have tickets, whichever outlast
//! process of this user they run in.
//!
//! Everything goes through the store's file: what it holds is shown, and a cancel is a message in the mailbox of
//! the process that owns the call. A store that is not there is not made. Beside the path of every call.

mod follow;
pub mod shelf;
pub mod show;

use crate::observe::stderr::{self, say};
use crate::observe::stdout;
use crate::store::Home;
use outlast_engine::Wall;
use outlast_engine::record::{Answer, Head, Record, State};
use shelf::Shelf;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

pub use show::rough;

/// Tasks on one page of a list.
const PAGE: usize = 50;

/// What is asked, of which store.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub what: What,
    /// For programs.
    pub json: bool,
    /// Where the store is.
    pub home: Home,
}

/// What is asked; tickets as they were typed.
#[derive(Debug)]
pub enum What {
    /// One page of all.
    List {
        /// From 1.
        page: usize,
    },
    /// All that is known of one.
    Show(String),
    /// Its result, if it has one.
    Result(String),
    /// Have its owner cancel it.
    Cancel(String),
    /// Its result, as soon as it has one, or until this much time has passed.
    Wait(String, Option<Duration>),
}

/// How it ends. Scripts look at the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Done = 0,
    Failed = 1,
    /// No such ticket, or several.
    Unknown = 2,
    StillRunning = 3,
    StoreBroken = 4,
    /// As a shell says of what Ctrl-C ended.
    Interrupted = 130,
}

/// Why nothing is shown, for the person who asked.
#[derive(Debug)]
pub struct Problem(pub Status, pub String);

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Problem {
        Problem(Status::StoreBroken, error.to_string())
    }
}

/// One task for programs.
pub fn as_json(head: &Head, owner: &shelf::OwnedBy, now: Wall) -> serde_json::Value {
    show::json(head, owner, now, None)
}

/// Does what is asked.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let status = act(request).unwrap_or_else(|Problem(status, why)| {
        say(&why);
        status
    });
    Ok(ExitCode::from(status as u8))
}

fn act(request: &Request) -> Result<Status, Problem> {
    let shelf = Shelf::open(&request.home)?;
    match (&request.what, shelf) {
        (What::List { page }, shelf) => list(shelf.as_ref(), *page, request.json),
        (_, None) => {
            let place = shelf::shown(&request.home);
            Err(Problem(Status::Unknown, format!("no tasks: there is no store in {place}")))
        }
        (What::Show(typed), Some(shelf)) => {
            let record = shelf.find(typed)?;
            let owner = shelf.owner_of(&record.head);
            let (head, now) = (&record.head, crate::clock::wall());
            let text = match request.json {
                true => format!("{}\n", show::json(head, &owner, now, Some(&record))),
                false => show::text(&record, &owner, now),
            };
            print(text.as_bytes())
        }
        (What::Result(typed), Some(shelf)) => result(&*shelf.find(typed)?, &shelf, request.json),
        (What::Cancel(typed), Some(shelf)) => follow::cancel(&shelf, &*shelf.find(typed)?, request.json),
        (What::Wait(typed, limit), Some(shelf)) => {
            let record = follow::wait(&shelf, shelf.find(typed)?, *limit)?;
            result(&record, &shelf, request.json)
        }
    }
}

fn list(shelf: Option<&Shelf>, page: usize, json: bool) -> Result<Status, Problem> {
    let now = crate::clock::wall();
    let heads = shelf.map(Shelf::heads).transpose()?.unwrap_or_default();
    let pages = heads.len().div_ceil(PAGE).max(1);
    if page > pages {
        return Err(Problem(Status::Unknown, format!("there is no page {page}; the last one is {pages}")));
    }
    let names = shelf::short_names(&heads);
    let rows: Vec<show::Row<'_>> = heads
        .iter()
        .zip(&names)
        .skip((page - 1) * PAGE)
        .take(PAGE)
        .filter_map(|(head, name)| Some(show::Row { head, name, owner: shelf?.owner_of(head) }))
        .collect();
    if json {
        let tasks: Vec<_> = rows.iter().map(|row| show::json(row.head, &row.owner, now, None)).collect();
        let all = serde_json::json!({"tasks": tasks, "page": page, "pages": pages, "total": heads.len()});
        return print(format!("{all}\n").as_bytes());
    }
    if rows.is_empty() {
        return print(b"no tasks\n");
    }
    let mut text = show::table(&rows, now);
    if pages > 1 {
        text += &format!("page {page} of {pages}");
        text += &if page < pages { format!("; next: --page {}\n", page + 1) } else { "\n".to_owned() };
    }
    print(text.as_bytes())
}

/// Prints a result exactly as the server gave it.
fn result(record: &Record, shelf: &Shelf, json: bool) -> Result<Status, Problem> {
    let state = record.head.state;
    let status = match state {
        State::Completed => Status::Done,
        State::Failed | State::Cancelled => Status::Failed,
        State::Working | State::InputRequired => Status::StillRunning,
    };
    if json {
        return print(&show::result_json(record)).map(|_| status);
    }
    let name = shelf.short_name(&record.head)?;
    match (&record.answer, state) {
        (Some(Answer::Result(bytes)), State::Completed | State::Failed) => {
            print(&[bytes, &b"\n"[..]].concat())?;
            if state == State::Failed {
                say("the tool says that it failed (isError)");
            }
        }
        (Some(Answer::Error(bytes)), State::Failed) => {
            stderr::write(&[bytes, &b"\n"[..]].concat());
        }
        (_, State::Cancelled) => say(&format!("{name} was cancelled")),
        (None, State::Completed | State::Failed) => say(&format!("{name} has ended without an answer")),
        _ => say(&format!("{name} is still running ({}); write: outlast tasks wait {name}", state.as_str())),
    }
    Ok(status)
}

/// Writes to stdout. Who reads only the beginning has seen enough.
pub fn print(bytes: &[u8]) -> Result<Status, Problem> {
    stdout::print(bytes)?;
    Ok(Status::Done)
}
