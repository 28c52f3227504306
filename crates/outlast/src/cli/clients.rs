//! The command line of `clients [learn [NAME] | forget NAME]`.

use super::{Task, Wrong, help, unexpected};
use crate::clients::{Request, What};
use crate::config::{self, Settings};
use lexopt::prelude::*;

const FORM: &str =
    "write: outlast clients [--json], outlast clients learn [NAME], or: outlast clients forget NAME";

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut words, mut json, mut state) = (Vec::new(), false, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("clients"))),
            Long("json") => json = true,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("clients", &other)),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let what = match words[..] {
        [] => What::List,
        ["learn"] => What::Learned,
        ["learn", name] => What::Accept(name.to_owned()),
        ["forget", name] => What::Forget(name.to_owned()),
        _ => return Err(Wrong(FORM.into())),
    };
    let mut settings = Settings::new(&[]);
    settings.take_environment()?;
    let written = settings.engine.profiles.written;
    Ok(Task::Clients(Request { what, json, place: config::place(state.as_deref()), written }))
}
