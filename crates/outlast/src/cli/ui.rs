//! The command line of `ui`.

use super::{Task, Wrong, help, unexpected};
use crate::config;
use crate::dashboard::alone::Request;
use lexopt::prelude::*;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut state, mut opens) = (None, true);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("ui"))),
            Long("no-browser") => opens = false,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            other => return Err(unexpected("ui", &other)),
        }
    }
    Ok(Task::Ui(Request { place: config::place(state.as_deref()), opens }))
}
