//! `outlast servers [--json]`.

use super::{Task, Wrong, help};
use crate::config;
use crate::servers::Request;
use lexopt::prelude::*;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut json, mut state) = (false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("servers"))),
            Long("json") => json = true,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            other => {
                return Err(Wrong(format!("{}; write: outlast servers [--json]", other.unexpected())));
            }
        }
    }
    Ok(Task::Servers(Request { json, place: config::place(state.as_deref()) }))
}
