//! `outlast cache clear [--state DIR]`.

use super::{Task, Wrong, help};
use crate::config;
use lexopt::prelude::*;

const HOW: &str = "write: outlast cache clear [--state DIR]";

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    match parser.next()? {
        Some(Value(word)) if word == "clear" => {}
        Some(Long("help") | Short('h')) => return Ok(Task::Print(help::of("cache"))),
        _ => return Err(Wrong(HOW.into())),
    }
    let mut state = None;
    while let Some(argument) = parser.next()? {
        match argument {
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("help") | Short('h') => return Ok(Task::Print(help::of("cache"))),
            _ => return Err(Wrong(HOW.into())),
        }
    }
    Ok(Task::ClearCache(config::place(state.as_deref())))
}
