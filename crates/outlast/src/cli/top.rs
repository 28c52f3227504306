//! The command line of `top`.

use super::{Task, Wrong, help, unexpected};
use crate::config;
use crate::top::{Address, From, Request, Sort};
use lexopt::prelude::*;

/// What was written, before it is clear what it means together.
#[derive(Default)]
struct Written {
    once: bool,
    json: bool,
    sort: Sort,
    filter: String,
    url: Option<String>,
    token_file: Option<String>,
    state: Option<String>,
}

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let mut written = Written::default();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("top"))),
            Long("once") => written.once = true,
            Long("json") => written.json = true,
            Long("sort") => written.sort = sort(&value(&mut parser)?)?,
            Long("filter") => written.filter = value(&mut parser)?,
            Long("url") => written.url = Some(value(&mut parser)?),
            Long("token-file") => written.token_file = Some(value(&mut parser)?),
            Long("state") => written.state = Some(value(&mut parser)?),
            other => return Err(unexpected("top", &other)),
        }
    }
    understand(written).map(Task::Top)
}

fn value(parser: &mut lexopt::Parser) -> Result<String, Wrong> {
    Ok(parser.value()?.to_string_lossy().into_owned())
}

fn sort(name: &str) -> Result<Sort, Wrong> {
    let known = Sort::ALL.map(|(name, _)| name).join(", ");
    Sort::named(name).ok_or_else(|| Wrong(format!("--sort: `{name}` is not one of {known}")))
}

fn understand(written: Written) -> Result<Request, Wrong> {
    let Written { once, json, sort, filter, url, token_file, state } = written;
    let from = match url {
        Some(_) if state.is_some() => {
            return Err(Wrong("write either --url or --state, not both".into()));
        }
        Some(url) => {
            From::Serve(Address::parse(&url, token_file.as_deref().map(token).transpose()?).map_err(Wrong)?)
        }
        None if token_file.is_some() => return Err(Wrong("--token-file is for `outlast top --url`".into())),
        None => From::Store(config::kept_at(state.as_deref(), None).map_err(Wrong)?),
    };
    Ok(Request { once, json, sort, filter, from })
}

/// A token is never written on a command line: others can read that.
fn token(path: &str) -> Result<String, Wrong> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Wrong(format!("--token-file: cannot read `{path}`: {error}")))?;
    Ok(text.trim().to_owned())
}
