//! The command line of `advise`.

use super::{Task, Wrong, help, unexpected};
use crate::advise::{Form, Request};
use crate::config;
use lexopt::prelude::*;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut form, mut state, mut words) = (Form::Text, None, Vec::new());
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("advise"))),
            Long("json") => form = Form::Json,
            Long("toml") => form = Form::Toml,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            Value(word) if words.len() < 2 => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("advise", &other)),
        }
    }
    let mut words = words.into_iter();
    let place = config::place(state.as_deref());
    Ok(Task::Advise(Request { server: words.next(), tool: words.next(), form, place }))
}
