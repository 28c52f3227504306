//! `outlast explain SERVER TOOL`.

use super::{Task, Wrong, check, help, unexpected};
use crate::explain::Request;
use lexopt::prelude::*;

const FORM: &str =
    "write: outlast explain SERVER TOOL [--client NAME] [--token NAME] [--config FILE] [--json]";

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut words, mut client, mut token, mut path, mut json) = (Vec::new(), None, None, None, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("explain"))),
            Long("client") => client = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("token") => token = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("config") => path = Some(parser.value()?.into()),
            Long("json") => json = true,
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("explain", &other)),
        }
    }
    let [server, tool] = <[String; 2]>::try_from(words).map_err(|_| Wrong(FORM.into()))?;
    Ok(Task::Explain(Request { server, tool, client, token, path: check::or_default(path)?, json }))
}
