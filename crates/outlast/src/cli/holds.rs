//! The command lines of `holds [list|approve|decline]` and `audit`.

use super::{Task, Wrong, help, unexpected};
use crate::config;
use crate::holds::{Request, What, Word};
use lexopt::prelude::*;
use outlast_engine::hold::Scope;
use outlast_engine::settings::nearest;

const FORM: &str = "write: outlast holds, or: outlast holds approve|decline NUMBER";
const WORDS: [&str; 3] = ["list", "approve", "decline"];

/// Lines of the audit log that are shown if nobody says how many.
const LINES: usize = 50;

/// What was written, before it is clear what it means together.
#[derive(Default)]
struct Written {
    words: Vec<String>,
    json: bool,
    watch: bool,
    state: Option<String>,
    store_url: Option<String>,
    reason: Option<String>,
    scope: Option<String>,
}

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut written = Written::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("holds"))),
            Long("json") => written.json = true,
            Long("watch") => written.watch = true,
            Long("state") => written.state = Some(value(&mut parser)?),
            Long("store-url") => written.store_url = Some(value(&mut parser)?),
            Long("reason") => written.reason = Some(value(&mut parser)?),
            Long("for") => written.scope = Some(value(&mut parser)?),
            Value(word) => written.words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("holds", &other)),
        }
    }
    let what = understand(&written)?;
    let home = config::kept_at(written.state.as_deref(), written.store_url.as_deref()).map_err(Wrong)?;
    Ok(Task::Holds(Request { what, json: written.json, home }))
}

fn value(parser: &mut lexopt::Parser) -> Result<String, Wrong> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

fn understand(written: &Written) -> Result<What, Wrong> {
    let words: Vec<&str> = written.words.iter().map(String::as_str).collect();
    let only = |option: bool, name: &str, of: &str| match option {
        true => Err(Wrong(format!("--{name} is for `outlast holds {of}`"))),
        false => Ok(()),
    };
    match words[..] {
        [] | ["list"] => {
            only(written.reason.is_some(), "reason", "approve|decline")?;
            only(written.scope.is_some(), "for", "approve")?;
            Ok(What::List { watch: written.watch })
        }
        [word @ ("approve" | "decline"), number] => {
            only(written.watch, "watch", "list")?;
            only(written.scope.is_some() && word == "decline", "for", "approve")?;
            let number = number.parse().map_err(|_| {
                Wrong(format!("`{number}` is not the number of a call; `outlast holds` shows the numbers"))
            })?;
            let scope = written.scope.as_deref().map_or(Ok(Scope::Once), scope)?;
            let reason = written.reason.clone().unwrap_or_default();
            Ok(What::Say(number, Word { yes: word == "approve", scope, reason }))
        }
        [word @ ("approve" | "decline")] => Err(Wrong(format!(
            "which call? write: outlast holds {word} NUMBER (`outlast holds` shows the numbers)"
        ))),
        [word, ..] => Err(unknown(word, &words[1..])),
    }
}

fn scope(name: &str) -> Result<Scope, Wrong> {
    let known = Scope::ALL.map(|(name, _)| name).join(", ");
    Scope::named(name).ok_or_else(|| Wrong(format!("--for: `{name}` is not one of {known}")))
}

fn unknown(word: &str, rest: &[&str]) -> Wrong {
    match nearest(word, WORDS).filter(|known| *known != word) {
        Some(known) => {
            let line: Vec<&str> = [known].into_iter().chain(rest.iter().copied()).collect();
            Wrong(format!("unknown command `holds {word}`; did you mean: outlast holds {}", line.join(" ")))
        }
        None => Wrong(format!("unknown command `holds {word}`; {FORM}")),
    }
}

/// `outlast audit`.
pub(super) fn audit(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut json, mut state, mut store_url, mut last) = (false, None, None, LINES);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("audit"))),
            Long("json") => json = true,
            Long("state") => state = Some(value(&mut parser)?),
            Long("store-url") => store_url = Some(value(&mut parser)?),
            Long("last") => {
                let text = value(&mut parser)?;
                last =
                    text.parse().map_err(|_| Wrong(format!("--last: `{text}` is not a number of lines")))?;
            }
            other => return Err(unexpected("audit", &other)),
        }
    }
    let home = config::kept_at(state.as_deref(), store_url.as_deref()).map_err(Wrong)?;
    Ok(Task::Holds(Request { what: What::Audit { last }, json, home }))
}
