//! The command line of `tasks list|show|result|cancel|wait`.

use super::{Task, Wrong, help, unexpected};
use crate::config;
use crate::tasks::{Request, What};
use lexopt::prelude::*;
use outlast_engine::settings::parse_duration;
use std::time::Duration;

const FORM: &str = "write: outlast tasks list, or: outlast tasks show|result|cancel|wait TICKET";
const WORDS: [&str; 5] = ["list", "show", "result", "cancel", "wait"];

/// What was written, before it is clear what it means together.
#[derive(Default)]
struct Written {
    words: Vec<String>,
    json: bool,
    state: Option<String>,
    store_url: Option<String>,
    page: Option<usize>,
    timeout: Option<Duration>,
}

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut written = Written::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("tasks"))),
            Long("json") => written.json = true,
            Long("state") => written.state = Some(value(&mut parser)?),
            Long("store-url") => written.store_url = Some(value(&mut parser)?),
            Long("page") => written.page = Some(page(&value(&mut parser)?)?),
            Long("timeout") => written.timeout = Some(parse_duration(&value(&mut parser)?)?),
            Value(word) => written.words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("tasks", &other)),
        }
    }
    understand(written)
}

fn value(parser: &mut lexopt::Parser) -> Result<String, Wrong> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

fn page(text: &str) -> Result<usize, Wrong> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| Wrong(format!("--page: `{text}` is not a page; the first page is 1")))
}

fn understand(written: Written) -> Result<Task, Wrong> {
    let mut words = written.words.into_iter();
    let Some(word) = words.next() else { return Err(Wrong(FORM.into())) };
    let ticket = words.next();
    if !WORDS.contains(&word.as_str()) {
        return Err(Wrong(format!("unknown command `tasks {word}`; {FORM}")));
    }
    if words.next().is_some() {
        return Err(Wrong(format!("`outlast tasks {word}` takes one ticket; {FORM}")));
    }
    if written.page.is_some() && word != "list" {
        return Err(Wrong("--page is for `outlast tasks list`".into()));
    }
    if written.timeout.is_some() && word != "wait" {
        return Err(Wrong("--timeout is for `outlast tasks wait`".into()));
    }
    let what = match (word.as_str(), ticket) {
        ("list", None) => What::List { page: written.page.unwrap_or(1) },
        ("list", Some(_)) => return Err(Wrong("`outlast tasks list` takes no ticket".into())),
        (_, None) => {
            return Err(Wrong(format!(
                "which call? write: outlast tasks {word} TICKET (`outlast tasks list` shows the tickets)"
            )));
        }
        ("show", Some(ticket)) => What::Show(ticket),
        ("result", Some(ticket)) => What::Result(ticket),
        ("cancel", Some(ticket)) => What::Cancel(ticket),
        (_, Some(ticket)) => What::Wait(ticket, written.timeout),
    };
    let home = config::kept_at(written.state.as_deref(), written.store_url.as_deref()).map_err(Wrong)?;
    Ok(Task::Tasks(Request { what, json: written.json, home }))
}
