//! `outlast cache clear`.

use super::{Task, Wrong};
use lexopt::prelude::*;

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let clears = matches!(parser.next()?, Some(Value(word)) if word == "clear");
    match parser.next()? {
        None if clears => Ok(Task::ClearCache),
        _ => Err(Wrong("write: outlast cache clear".into())),
    }
}
