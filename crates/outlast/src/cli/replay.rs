//! `outlast replay FILE`.

use super::{Task, Wrong, help, unexpected};
use crate::replay::{Request, What};
use lexopt::prelude::*;
use std::path::PathBuf;

const FORM: &str = "write: outlast replay FILE [--call N | --compare] [--json]";

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut path, mut call, mut compare, mut json) = (None, None, false, false);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("replay"))),
            Long("json") => json = true,
            Long("compare") => compare = true,
            Long("call") => call = Some(number(&parser.value()?.to_string_lossy())?),
            Value(word) if path.is_none() => path = Some(PathBuf::from(word)),
            other => return Err(unexpected("replay", &other)),
        }
    }
    let path = path.ok_or_else(|| Wrong(format!("which recording? {FORM}")))?;
    let what = match (call, compare) {
        (Some(_), true) => {
            return Err(Wrong("--compare is about the whole run: leave --call out".into()));
        }
        (Some(call), false) => What::Call(call),
        (None, true) => What::Differences,
        (None, false) => What::Everything,
    };
    Ok(Task::Replay(Request { path, what, json }))
}

fn number(text: &str) -> Result<std::num::NonZeroU64, Wrong> {
    let wrong =
        || format!("--call: `{text}` is not the number of a call; `outlast replay FILE` shows it after %%");
    text.parse().map_err(|_| Wrong(wrong()))
}
