//! Where `top` looks: at everything that this user runs, through the store, or at one `outlast serve`, over HTTP.

use super::http::Address;
use super::model::{self, State};
use crate::observe::state::{State as Whole, Told};
use crate::observe::text::escape;
use crate::store::Home;
use crate::tasks::shelf::{Shelf, short_names};
use crate::tasks::{Problem, Status, show};
use crate::{clock, config, holds};
use outlast_engine::Wall;
use outlast_engine::hold::{Scope, Verdict};
use outlast_engine::record::Head;
use outlast_engine::store::{Done, Found, Query, Write};
use serde_json::{Value, json};

/// One of them.
#[derive(Debug)]
pub enum Source {
    /// Opened anew each time: it may be made, moved or deleted meanwhile.
    Store(Home),
    Serve(Address),
}

impl Source {
    /// As programs get it.
    pub fn json(&self) -> Result<Value, Problem> {
        match self {
            Source::Store(place) => match Shelf::open(place)? {
                Some(shelf) => of_store(&shelf, clock::wall()),
                None => Ok(empty(clock::wall())),
            },
            Source::Serve(address) => address.get("api/state"),
        }
    }

    pub fn state(&self) -> Result<State, Problem> {
        model::read(&self.json()?).map_err(|why| Problem(Status::Failed, why))
    }

    /// The story of a call, a line for each step.
    pub fn story(&self, id: &str) -> Vec<String> {
        let story = match self {
            Source::Store(place) => opened(place).and_then(|shelf| story(&shelf, id)),
            Source::Serve(address) => address.get(&format!("api/calls/{id}")),
        };
        match story.map(|story| lines(&story)) {
            Ok(lines) if lines.is_empty() => vec!["its process shows no steps of it".into()],
            Ok(lines) => lines,
            Err(Problem(_, why)) => vec![why],
        }
    }

    /// Has a call cancelled. What is told of that.
    pub fn cancel(&self, id: &str) -> Result<String, Problem> {
        match self {
            Source::Store(place) => {
                cancel(&opened(place)?, id).map(|()| format!("call {id} is to be cancelled"))
            }
            Source::Serve(address) => {
                address.post(&format!("api/calls/{id}/cancel"), &json!({}))?;
                Ok(format!("call {id} is to be cancelled"))
            }
        }
    }

    /// Decides a hold. What is told of that.
    pub fn decide(&self, hold: u64, yes: bool) -> Result<String, Problem> {
        let word = if yes { "approved" } else { "declined" };
        match self {
            Source::Store(place) => {
                Ok(decide(&opened(place)?, hold, yes)?.unwrap_or_else(|| format!("call {hold} is {word}")))
            }
            Source::Serve(address) => {
                let decision = if yes { "approve" } else { "decline" };
                address.post(&format!("api/holds/{hold}"), &json!({"decision": decision, "for": "once"}))?;
                Ok(format!("call {hold} is {word}"))
            }
        }
    }
}

fn opened(place: &Home) -> Result<Shelf, Problem> {
    Shelf::open(place)?.ok_or_else(|| Problem(Status::Unknown, "there is no store any more".into()))
}

/// Says it. The decision that counts instead, if somebody else decided first.
fn decide(shelf: &Shelf, hold: u64, yes: bool) -> Result<Option<String>, Problem> {
    let (place, by) = ("top".into(), config::user_name().into());
    let verdict = Verdict { yes, scope: Scope::Once, reason: "".into(), place, by };
    let write = Write::Decide { hold, verdict: Box::new(verdict.clone()) };
    let stored = shelf.write(write).map_err(|why| Problem(Status::StoreBroken, why.to_string()))?;
    Ok(match stored.done.into_iter().next() {
        Some(Done::Decided(Some(stands))) if stands.verdict == verdict => None,
        Some(Done::Decided(Some(stands))) => {
            let word = if stands.verdict.yes { "approved" } else { "declined" };
            Some(format!("call {hold} was {word} before, by {}", escape(&stands.verdict.by)))
        }
        _ => Some(format!("nobody is asked about call {hold} any more")),
    })
}

fn lines(story: &Value) -> Vec<String> {
    let began = story["call"]["began"].as_u64().unwrap_or_default();
    let steps = story["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let line = |step: &Value| {
        let after = step["at"].as_u64().unwrap_or_default().saturating_sub(began);
        let text = step["text"].as_str().or(step["what"].as_str()).unwrap_or_default();
        format!("{:>6}.{:03} s  {}", after / 1_000, after % 1_000, escape(text))
    };
    steps.iter().map(line).collect()
}

/// What the processes that live show of themselves.
fn shown(shelf: &Shelf, now: Wall) -> Result<Whole, Problem> {
    let shown = match shelf.load(Query::Shown)? {
        Found::Shown(shown) => shown,
        _ => Vec::new(),
    };
    Ok(Whole::together(now.0, &shown))
}

fn story(shelf: &Shelf, id: &str) -> Result<Value, Problem> {
    let story = shown(shelf, clock::wall())?.story(id);
    story.ok_or_else(|| Problem(Status::Unknown, format!("call {id} has ended")))
}

/// The same with what waits for a person.
fn of_store(shelf: &Shelf, now: Wall) -> Result<Value, Problem> {
    let mut state = shown(shelf, now)?;
    let heads = shelf.heads()?;
    let open = heads.iter().zip(short_names(&heads)).filter(|(head, _)| head.state.is_open());
    state.tasks = open.map(|(head, name)| task(shelf, head, name, now)).collect();
    state.holds = holds::all(shelf)?.iter().map(|hold| holds::as_json(hold, now)).collect();
    Ok(json!(state))
}

/// A task under the name that `outlast tasks` knows it by: whoever has the whole ticket can fetch the answer.
fn task(shelf: &Shelf, head: &Head, name: String, now: Wall) -> Value {
    let mut row = show::json(head, &shelf.owner_of(head), now, None);
    row["ticket"] = name.into();
    row
}

fn empty(now: Wall) -> Value {
    json!(Whole::together(now.0, &[]))
}

/// Tells the process that has a call to cancel it.
fn cancel(shelf: &Shelf, id: &str) -> Result<(), Problem> {
    let state = model::read(&of_store(shelf, clock::wall())?).map_err(|why| Problem(Status::Failed, why))?;
    let call = state.calls.into_iter().find(|call| call.id == id);
    let call = call.ok_or_else(|| Problem(Status::Unknown, format!("call {id} has ended")))?;
    let told = Told { cancel: Some(call.id), by: config::user_name(), ..Told::default() };
    let stored = shelf.write(told.write(&call.process));
    stored.map(drop).map_err(|why| Problem(Status::StoreBroken, why.to_string()))
}
