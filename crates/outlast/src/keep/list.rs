//! `outlast keep list|stop`.

use super::service::Card;
use super::{Room, folder, try_lock};
use crate::clock;
use crate::observe::progress::Progress;
use crate::observe::stderr::say;
use crate::observe::stdout;
use crate::observe::text::escape;
use crate::store::{Place, no_folder};
use crate::sys::lock::{self, Kind};
use crate::sys::signals::ask_to_end;
use serde_json::json;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How long a service may take to end: `drain` and what its server takes.
const END: Duration = Duration::from_secs(40);

/// How long the locks of a process may stay when it has ended: the system takes them one after another.
const LAST_LOCK: Duration = Duration::from_secs(1);

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
    room: Room,
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
        What::Stop(None) => {
            let status = stop(found)?;
            if let Place::Folder(state) = &request.place {
                tidy_all(&folder(state));
            }
            Ok(status)
        }
        What::Stop(Some(name)) => {
            let fits = |card: &Card| card.name.starts_with(name) || card.server == *name;
            let (chosen, others): (Vec<_>, Vec<_>) = found.into_iter().partition(|it| fits(&it.card));
            if chosen.is_empty() {
                let others: Vec<_> = others.iter().map(|it| it.card.name.as_str()).collect();
                let hint = if others.is_empty() {
                    "no service runs".into()
                } else {
                    format!("running are {}", others.join(", "))
                };
                say(&format!("no service is called `{name}`; {hint}"));
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
    Some(Running { room: Room::of(path)?, card, file, in_use })
}

/// Removes what services left that have ended.
fn tidy_all(folder: &Path) {
    let paths = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let rooms: Vec<Room> = paths.filter_map(|path| Room::of(&path)).collect();
    rooms.iter().for_each(|room| tidy(room, Duration::ZERO));
}

fn tidy(room: &Room, patience: Duration) {
    if let Err(error) = room.tidy(patience) {
        say(&format!("cannot remove the files of {}: {error}", room.name));
    }
}

fn list(found: &[Running], json: bool) -> io::Result<ExitCode> {
    let now = clock::wall();
    let mut text = String::new();
    if json {
        let shown: Vec<_> = found.iter().map(|it| json!({"service": it.card, "inUse": it.in_use})).collect();
        text = format!("{}\n", json!(shown));
    } else if found.is_empty() {
        text += "no services\n";
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
    stdout::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Asks services to end and waits for it. A card is held by a process that lives, so its number is not
/// somebody else's by now.
fn stop(found: Vec<Running>) -> io::Result<ExitCode> {
    if found.is_empty() {
        say("no service runs");
        return Ok(ExitCode::SUCCESS);
    }
    for running in &found {
        ask_to_end(running.card.pid);
    }
    let until = clock::awake() + END.as_millis() as u64;
    let mut status = ExitCode::SUCCESS;
    for Running { card, file, room, .. } in found {
        let left = Duration::from_millis(until.saturating_sub(clock::awake()));
        let (name, server, pid) = (&card.name, &card.server, card.pid);
        let waits = Progress::begin(&format!("waiting for the calls of {name} ({server}) to end"));
        let ended = lock::lock_within(file, Kind::Shared, left)?.is_some();
        drop(waits);
        if ended {
            say(&format!("stopped {name} ({server})"));
            tidy(&room, LAST_LOCK);
        } else {
            say(&format!(
                "{name} ({server}) still waits for its calls to end; `kill {pid}` ends it without them"
            ));
            status = ExitCode::FAILURE;
        }
    }
    Ok(status)
}
