//! `outlast keep list|stop`.

use super::service::Card;
use super::{folder, try_lock};
use crate::clock;
use crate::observe::stderr::say;
use crate::observe::text::escape;
use crate::store::{Place, no_folder};
use crate::sys::lock::{self, Kind};
use crate::sys::signals::ask_to_end;
use serde_json::json;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a service may take to end: `drain` and what its server takes.
const END: Duration = Duration::from_secs(40);

/// What is asked, below which state folder.
#[derive(Debug)]
pub struct Request {
    /// What is asked.
    pub what: What,
    /// For programs.
    pub json: bool,
    /// Where state is kept.
    pub place: Place,
}

/// What is asked.
#[derive(Debug)]
pub enum What {
    /// Which services run.
    List,
    /// End one, or all of them.
    Stop(Option<String>),
}

/// A service that runs.
struct Running {
    card: Card,
    file: File,
    in_use: bool,
}

/// Does what is asked.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let found = match &request.place {
        Place::Folder(state) => match running(&folder(state)) {
            Ok(found) => found,
            Err(error) => {
                say(&no_folder(state, &error));
                return Ok(ExitCode::FAILURE);
            }
        },
        Place::Memory => Vec::new(),
    };
    match &request.what {
        What::List => list(&found, request.json),
        What::Stop(None) => stop(found),
        What::Stop(Some(name)) => {
            let fits = |card: &Card| card.name.starts_with(name) || card.server == *name;
            let (chosen, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| fits(&it.card));
            if chosen.is_empty() {
                let others: Vec<_> = others.iter().map(|it| it.card.name.as_str()).collect();
                let hint = if others.is_empty() { "none runs".into() } else { others.join(", ") + " run" };
                say(&format!("no kept service is called `{name}`; {hint}"));
                return Ok(ExitCode::FAILURE);
            }
            stop(chosen)
        }
    }
}

/// Those whose cards are held.
fn running(folder: &Path) -> io::Result<Vec<Running>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let cards = entries.flatten().map(|entry| entry.path());
    let mut found: Vec<Running> = cards
        .filter(|path| path.extension().is_some_and(|kind| kind == "card"))
        .filter_map(|path| read(&path))
        .collect();
    found.sort_by_key(|running| running.card.since);
    Ok(found)
}

fn read(path: &PathBuf) -> Option<Running> {
    let file = File::open(path).ok()?;
    // The card of a dead one stays where it is: the next service of this name may just be replacing it.
    let Err(file) = lock::try_lock(file, Kind::Shared).ok()? else { return None };
    let card: Card = serde_json::from_reader(&file).ok()?;
    let users = path.with_extension("users");
    let in_use = users.exists() && try_lock(&users, Kind::Exclusive).ok()?.is_none();
    Some(Running { card, file, in_use })
}

fn list(found: &[Running], json: bool) -> io::Result<ExitCode> {
    let now = clock::wall();
    let mut text = String::new();
    if json {
        let shown: Vec<_> = found.iter().map(|it| json!({"service": it.card, "inUse": it.in_use})).collect();
        text = format!("{}\n", json!(shown));
    } else if found.is_empty() {
        text += "no kept services\n";
    } else {
        text += &format!(
            "{:<16}  {:<20}  {:>7}  {:>4}  {:<6}  COMMAND\n",
            "NAME", "SERVER", "PID", "AGE", "IN USE"
        );
        for Running { card, in_use, .. } in found {
            let age = crate::tasks::rough(now, outlast_engine::Wall(card.since));
            let command = escape(&card.command.join(" "));
            let server = escape(&card.server);
            let used = if *in_use { "yes" } else { "no" };
            text += &format!(
                "{:<16}  {server:<20}  {:>7}  {age:>4}  {used:<6}  {command}\n",
                card.name, card.pid
            );
        }
    }
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(ExitCode::SUCCESS),
    }
}

/// Asks services to end and waits for it. A card is held by a process that lives, so its number is not
/// somebody else's by now.
fn stop(found: Vec<Running>) -> io::Result<ExitCode> {
    if found.is_empty() {
        say("no kept service runs");
        return Ok(ExitCode::SUCCESS);
    }
    for running in &found {
        ask_to_end(running.card.pid);
    }
    let until = clock::awake() + END.as_millis() as u64;
    let mut status = ExitCode::SUCCESS;
    for Running { card, file, .. } in found {
        let left = Duration::from_millis(until.saturating_sub(clock::awake()));
        let ended = lock::lock_within(file, Kind::Shared, left)?.is_some();
        let (name, server, pid) = (&card.name, &card.server, card.pid);
        if ended {
            say(&format!("stopped {name} ({server})"));
        } else {
            say(&format!(
                "{name} ({server}) still ends its calls; kill {pid} once more to not wait for them"
            ));
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}
