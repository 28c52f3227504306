//! `outlast token new NAME`.

use super::{Task, Wrong, help};
use crate::client::http::token;
use lexopt::prelude::*;
use std::ffi::OsString;

/// What the file needs goes to stdout and so into the file; the secret does not.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let how = || Wrong("write: outlast token new NAME".into());
    let mut words: Vec<OsString> = Vec::new();
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("token"))),
            Value(word) => words.push(word),
            _ => return Err(how()),
        }
    }
    match words.as_slice() {
        [new, name] if new == "new" => {
            let (token, line) = token::new(&name.to_string_lossy()).map_err(Wrong)?;
            let told = format!("the token for the client, shown only here: {token}");
            Ok(Task::PrintAndTell(format!("{line}\n"), told))
        }
        _ => Err(how()),
    }
}
