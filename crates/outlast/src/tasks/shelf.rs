//! The store as `outlast tasks` sees it: records by what a person types, and who owns them.

use super::{Problem, Status};
use crate::config;
use crate::store;
use crate::store::{Home, Machine, Owner, Place, Store, World};
use outlast_engine::limits;
use outlast_engine::record::{Head, Record, Ticket};
use outlast_engine::settings::nearest;
use outlast_engine::store::{Bounds, Found, Query, Stored, Trouble, Write};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::channel;

/// The fewest characters of a ticket that are shown.
const SHORT: usize = 8;

/// Matches that an error names.
const NAMED: usize = 5;

/// Whether the process that owns a call still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Alive {
    Yes,
    No,
    /// It is in another container, or was named by something else than outlast.
    Unknown,
}

/// The process that owns a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnedBy {
    pub pid: Option<u32>,
    pub alive: Alive,
}

/// Which processes of this machine run.
#[derive(Debug)]
pub struct Owners {
    machine: Arc<Machine>,
    me: Owner,
    /// Processes of other machines own calls, too.
    shared: bool,
}

impl Default for Owners {
    fn default() -> Owners {
        Owners::on(Arc::new(Machine::new()))
    }
}

impl Owners {
    fn on(machine: Arc<Machine>) -> Owners {
        Owners { me: machine.owner(), machine, shared: false }
    }

    fn shared(machine: Arc<Machine>) -> Owners {
        Owners { shared: true, ..Owners::on(machine) }
    }

    /// The process that owns a call, and whether it runs.
    pub fn of(&self, head: &Head) -> OwnedBy {
        let Some(owner) = Owner::parse(&head.owner) else {
            return OwnedBy { pid: None, alive: Alive::Unknown };
        };
        let alive = match owner {
            ref owner if owner.boot != self.me.boot && self.shared => Alive::Unknown,
            ref owner if owner.boot != self.me.boot => Alive::No,
            ref owner if owner.space != self.me.space => Alive::Unknown,
            ref owner if self.machine.runs(owner.pid, owner.started) => Alive::Yes,
            _ => Alive::No,
        };
        OwnedBy { pid: Some(owner.pid), alive }
    }
}

/// An open store.
#[derive(Debug)]
pub struct Shelf {
    store: Store,
    owners: Owners,
    place: String,
}

/// Why there is no folder to look into.
fn nowhere() -> &'static str {
    match config::state_folder() {
        Some(_) => "--state none keeps tasks in the memory of each process: there is nothing to see here",
        None => "HOME is not set, so the state folder is not known; name it with --state DIR",
    }
}

impl Shelf {
    /// Opens the store; `None` if there is none.
    pub fn open(home: &Home) -> Result<Option<Shelf>, Problem> {
        let broken = |why| Problem(Status::StoreBroken, why);
        if let Some(database) = &home.database {
            store::reach(database).map_err(broken)?;
            let machine = Arc::new(Machine::new());
            let store = Store::in_database(database.clone(), machine.clone(), Bounds::shared(), None);
            let store = store.map_err(|error| broken(error.to_string()))?;
            return Ok(Some(Shelf { store, owners: Owners::shared(machine), place: shown(home) }));
        }
        let Place::Folder(folder) = &home.place else {
            return Err(Problem(Status::Unknown, nowhere().into()));
        };
        match folder.join(store::FILE).try_exists() {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(error) => return Err(Problem(Status::StoreBroken, store::no_folder(folder, &error))),
        }
        let machine = Arc::new(Machine::new());
        let store = Store::open(folder, machine.clone(), Bounds::default())
            .map_err(|error| Problem(Status::StoreBroken, error.without_fallback()))?;
        Ok(Some(Shelf { store, owners: Owners::on(machine), place: shown(home) }))
    }

    pub fn load(&self, query: Query) -> Result<Found, Problem> {
        let (reply, found) = channel();
        self.store.load(query, Box::new(move |outcome| drop(reply.send(outcome))));
        let found = found.recv().unwrap_or_else(|_| Err(Trouble::Failed("the store has ended".into())));
        found.map_err(|why| Problem(Status::StoreBroken, why.to_string()))
    }

    pub fn write(&self, write: Write) -> Stored {
        let (reply, stored) = channel();
        self.store.submit(vec![write], Box::new(move |outcome| drop(reply.send(outcome))));
        stored.recv().unwrap_or_else(|_| Err(Trouble::Failed("the store has ended".into())))
    }

    /// What is there: open ones first, the newest first.
    pub fn heads(&self) -> Result<Vec<Head>, Problem> {
        let (mut heads, mut before) = (Vec::new(), None);
        loop {
            let query = Query::Heads { principal: None, server: None, before, limit: limits::PAGE };
            let Found::Heads(page) = self.load(query)? else { break };
            before = page.last().map(|head| head.number);
            let last = page.len() < limits::PAGE;
            heads.extend(page);
            if last {
                break;
            }
        }
        heads.sort_by_key(|head| (!head.state.is_open(), std::cmp::Reverse(head.number)));
        Ok(heads)
    }

    /// A record, if it is there.
    pub fn record(&self, ticket: &Ticket) -> Result<Option<Box<Record>>, Problem> {
        match self.load(Query::Record(ticket.clone()))? {
            Found::Record(record) => Ok(record),
            _ => Ok(None),
        }
    }

    /// The one record whose ticket begins with what was typed.
    pub fn find(&self, typed: &str) -> Result<Box<Record>, Problem> {
        let typed = typed.trim().to_ascii_lowercase();
        if let Some(ticket) = Ticket::parse(&typed)
            && let Some(record) = self.record(&ticket)?
        {
            return Ok(record);
        }
        let heads = self.heads()?;
        let names = short_names(&heads);
        let fits = |head: &Head| !typed.is_empty() && head.ticket.as_str().starts_with(&typed);
        let found: Vec<_> = heads.iter().zip(&names).filter(|(head, _)| fits(head)).collect();
        match found.as_slice() {
            [(head, _)] => {
                let gone = || Problem(Status::Unknown, format!("`{typed}` was forgotten just now"));
                self.record(&head.ticket)?.ok_or_else(gone)
            }
            [] => Err(self.unknown(&typed, &names)),
            several => {
                let mut shown: Vec<&str> =
                    several.iter().take(NAMED).map(|(_, name)| name.as_str()).collect();
                if several.len() > NAMED {
                    shown.push("…");
                }
                let (count, shown) = (several.len(), shown.join(", "));
                let why = format!("{count} tickets begin with `{typed}` ({shown}); write more characters");
                Err(Problem(Status::Unknown, why))
            }
        }
    }

    fn unknown(&self, typed: &str, names: &[String]) -> Problem {
        let beginnings = names.iter().map(|name| &name[..name.len().min(typed.len())]);
        let near = nearest(typed, beginnings);
        let near = near.and_then(|beginning| names.iter().find(|name| name.starts_with(beginning)));
        let hint = match near {
            _ if names.is_empty() => "there are no tasks".to_owned(),
            Some(name) if typed.len() > 3 => format!("did you mean {name}?"),
            _ => "`outlast tasks list` shows all tasks".to_owned(),
        };
        Problem(Status::Unknown, format!("no task `{typed}` in {}; {hint}", self.place))
    }

    /// What a ticket is called among the others.
    pub fn short_name(&self, head: &Head) -> Result<String, Problem> {
        let heads = self.heads()?;
        let at = heads.iter().position(|other| other.ticket == head.ticket);
        let name = at.and_then(|at| short_names(&heads).into_iter().nth(at));
        Ok(name.unwrap_or_else(|| head.ticket.as_str().to_owned()))
    }

    /// The process that owns a call, and whether it runs.
    pub fn owner_of(&self, head: &Head) -> OwnedBy {
        self.owners.of(head)
    }
}

/// For people.
pub fn shown(home: &Home) -> String {
    match home {
        Home { database: Some(database), .. } => database.shown().to_string(),
        Home { place: Place::Folder(folder), .. } => format!("`{}`", folder.display()),
        Home { place: Place::Memory, .. } => "memory".into(),
    }
}

/// For each ticket as many of its characters as tell it from the others.
pub fn short_names(heads: &[Head]) -> Vec<String> {
    let sorted: BTreeSet<&str> = heads.iter().map(|head| head.ticket.as_str()).collect();
    let common = |a: &str, b: &str| a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    heads
        .iter()
        .map(|head| {
            let ticket = head.ticket.as_str();
            let below = sorted.range(..ticket).next_back();
            let above = sorted.range(ticket..).nth(1);
            let shared = below.into_iter().chain(above).map(|other| common(other, ticket)).max();
            let length = shared.map_or(SHORT, |shared| SHORT.max(shared + 1)).min(ticket.len());
            ticket[..length].to_owned()
        })
        .collect()
}
