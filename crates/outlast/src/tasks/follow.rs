//! Waiting for a task: until it has ended, or until its owner has cancelled it.

use super::shelf::{Alive, OwnedBy, Shelf};
use super::{Problem, Status, print, show};
use crate::clock;
use crate::observe::progress::Progress;
use crate::observe::stderr::{self, say};
use crate::observe::terminal::{CLEAR, Stream, over};
use crate::observe::text::escape;
use crate::sys::signals::Interrupt;
use outlast_engine::record::{Body, Head, Record, State};
use outlast_engine::settings::show_duration;
use outlast_engine::store::{Mail, Refusal, Trouble, Write};
use std::time::Duration;

/// How often the store is looked at.
const LOOK: Duration = Duration::from_millis(250);

/// How long a cancel waits for the owner to act, in milliseconds. Owners look twice a second.
const CANCEL: u64 = 10_000;

/// Has a task cancelled by its owner.
pub fn cancel(shelf: &Shelf, record: &Record, json: bool) -> Result<Status, Problem> {
    let head = &record.head;
    let name = shelf.short_name(head)?;
    let interrupt = Interrupt::new()?;
    if head.state.is_open() {
        let message = Write::Post { ticket: head.ticket.clone(), message: Mail::Cancel };
        match shelf.write(message) {
            // It ended in this very moment: how, is seen below.
            Ok(_) | Err(Trouble::Refused { why: Refusal::Ended(_) | Refusal::Unknown, .. }) => {}
            Err(why) => return Err(Problem(Status::StoreBroken, why.to_string())),
        }
    }
    let waits = Progress::begin(&format!("waiting until the owner of {name} has cancelled it"));
    let until = clock::awake() + CANCEL;
    let mut found = shelf.record(&head.ticket)?;
    while let Some(record) = found.as_ref().filter(|record| record.head.state.is_open()) {
        let owner = shelf.owner_of(&record.head);
        let late = clock::awake() >= until;
        if owner.alive == Alive::No || late {
            return Err(Problem(Status::StillRunning, not_cancelled(&name, &owner)));
        }
        // A store tells other processes of nothing that happens in it, so it is looked at again.
        if interrupt.wait(Some(LOOK))? {
            let why = format!(
                "stopped waiting; its owner has been asked to cancel {name}: outlast tasks show {name}"
            );
            return Err(Problem(Status::Interrupted, why));
        }
        found = shelf.record(&head.ticket)?;
    }
    drop(waits);
    // A record that was forgotten meanwhile had ended.
    let state = found.as_ref().map_or(head.state, |record| record.head.state);
    let status = if state == State::Cancelled { Status::Done } else { Status::Failed };
    if json {
        let record = found.as_deref().unwrap_or(record);
        let owner = shelf.owner_of(&record.head);
        let shown = show::json(&record.head, &owner, clock::wall(), Some(record));
        return print(format!("{shown}\n").as_bytes()).map(|_| status);
    }
    match state {
        State::Cancelled => say(&format!("{name} is cancelled")),
        _ => say(&format!("{name} had ended before ({}): outlast tasks result {name}", state.as_str())),
    }
    Ok(status)
}

/// Why nobody has cancelled it yet.
fn not_cancelled(name: &str, owner: &OwnedBy) -> String {
    let pid = owner.pid.map_or_else(String::new, |pid| format!(" {pid}"));
    match owner.alive {
        Alive::No => format!(
            "the process{pid} that ran {name} has ended; whichever outlast takes the call over will cancel it"
        ),
        _ => format!(
            "the process{pid} that runs {name} has not cancelled it within {}; it will when it can: outlast tasks show {name}",
            show_duration(Duration::from_millis(CANCEL))
        ),
    }
}

/// Waits until a task has ended. Whoever stops waiting stops nothing else.
pub fn wait(shelf: &Shelf, first: Box<Record>, limit: Option<Duration>) -> Result<Box<Record>, Problem> {
    let name = shelf.short_name(&first.head)?;
    let until = limit.map(|limit| clock::awake() + limit.as_millis() as u64);
    let interrupt = Interrupt::new()?;
    let mut line = Line::new(name.clone());
    let mut record = first;
    while record.head.state.is_open() {
        line.show(&record.head, shelf.owner_of(&record.head).alive == Alive::No);
        if until.is_some_and(|until| clock::awake() >= until) {
            line.clear();
            return Ok(record);
        }
        if interrupt.wait(Some(LOOK))? {
            line.clear();
            let why = format!("stopped waiting; the call goes on: outlast tasks wait {name}");
            return Err(Problem(Status::Interrupted, why));
        }
        let gone = || Problem(Status::Unknown, format!("{name} was forgotten while it was waited for"));
        record = shelf.record(&record.head.ticket)?.ok_or_else(gone)?;
    }
    line.clear();
    Ok(record)
}

/// What is seen of a wait: one living line on a terminal, elsewhere a line for each change.
struct Line {
    name: String,
    terminal: bool,
    last: String,
}

impl Line {
    fn new(name: String) -> Line {
        Line { name, terminal: Stream::Stderr.is_terminal(), last: String::new() }
    }

    fn show(&mut self, head: &Head, orphan: bool) {
        let state = head.state.as_str();
        let mut text = format!("{} ({}): {state}", self.name, show::what(head));
        if orphan {
            text += ", but the process that ran it has ended; it goes on if another outlast takes it over";
        }
        let age = show::rough(clock::wall(), head.created);
        if self.terminal {
            let said = Body::decode(&head.body).ok().and_then(|body| body.status_message);
            text += &said.map_or_else(String::new, |said| format!(" · {said}"));
            text += &format!(" · {age}");
        }
        if text == self.last {
            return;
        }
        let shown = escape(&text);
        self.last = text;
        match self.terminal {
            // Written over the line before.
            true => stderr::write(over(&format!("outlast: {shown}")).as_bytes()),
            // That time has passed is no change.
            false => say(&format!("{shown} · {age}")),
        }
    }

    fn clear(&self) {
        if self.terminal && !self.last.is_empty() {
            stderr::write(CLEAR.as_bytes());
        }
    }
}
