//! The command line of `callbacks [list|retry|drop]`.

use super::{Task, Wrong, help, unexpected};
use crate::callbacks::queue::{Request, What};
use crate::config;
use lexopt::prelude::*;
use outlast_engine::settings::nearest;

const FORM: &str = "write: outlast callbacks, or: outlast callbacks retry|drop NUMBER";
const WORDS: [&str; 3] = ["list", "retry", "drop"];

pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    let (mut words, mut json, mut state, mut store_url) = (Vec::new(), false, None, None);
    while let Some(argument) = parser.next()? {
        match argument {
            Long("help") | Short('h') => return Ok(Task::Print(help::of("callbacks"))),
            Long("json") => json = true,
            Long("state") => state = Some(parser.value()?.to_string_lossy().into_owned()),
            Long("store-url") => store_url = Some(parser.value()?.to_string_lossy().into_owned()),
            Value(word) => words.push(word.to_string_lossy().into_owned()),
            other => return Err(unexpected("callbacks", &other)),
        }
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let what = understand(&words)?;
    let home = config::kept_at(state.as_deref(), store_url.as_deref()).map_err(Wrong)?;
    Ok(Task::Callbacks(Request { what, json, home }))
}

fn understand(words: &[&str]) -> Result<What, Wrong> {
    match *words {
        [] | ["list"] => Ok(What::List),
        ["retry", number] => number_of(number).map(What::Retry),
        ["drop", number] => number_of(number).map(What::Drop),
        [word @ ("retry" | "drop")] => Err(Wrong(format!(
            "which callback? write: outlast callbacks {word} NUMBER (`outlast callbacks` shows the numbers)"
        ))),
        [word, ..] => Err(unknown(word)),
    }
}

fn number_of(text: &str) -> Result<u64, Wrong> {
    text.parse().map_err(|_| {
        Wrong(format!("`{text}` is not the number of a callback; `outlast callbacks` shows the numbers"))
    })
}

fn unknown(word: &str) -> Wrong {
    match nearest(word, WORDS).filter(|known| *known != word) {
        Some(known) => Wrong(format!("unknown command `callbacks {word}`; did you mean: {known}?")),
        None => Wrong(format!("unknown command `callbacks {word}`; {FORM}")),
    }
}
