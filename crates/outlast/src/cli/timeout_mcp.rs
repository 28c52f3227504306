//! The command line of `timeout-mcp`: `[--auto-restart] [SECONDS] COMMAND…`, or
//! `[--auto-restart] --timeout 30s -- COMMAND…`.

use super::{Task, Wrong, help};
use crate::config::Settings;
use outlast_engine::settings::parse_duration;
use std::ffi::OsString;
use std::time::Duration;

const DEFAULT: Duration = Duration::from_secs(30);
/// The longest time, in seconds.
const MOST: u64 = 86_400_000;
const FORM: &str = "write: timeout-mcp [--auto-restart] SECONDS COMMAND…";

pub(super) fn parse(words: Vec<OsString>) -> Result<Task, Wrong> {
    let mut words = words.into_iter().peekable();
    let mut timeout = DEFAULT;
    let mut auto_restart = false;
    let mut options_ended = false;
    while let Some(word) = words.peek().map(|word| word.to_string_lossy().into_owned()) {
        match word.as_str() {
            "--auto-restart" => auto_restart = true,
            "--help" | "-h" => return Ok(Task::Print(help::of("timeout-mcp"))),
            "--timeout" => {
                words.next();
                let value = words.next().ok_or_else(|| Wrong(format!("--timeout needs a value; {FORM}")))?;
                timeout = parse_duration(&value.to_string_lossy())?;
                continue;
            }
            flag if flag.starts_with('-') && flag != "--" => {
                return Err(Wrong(format!("unknown option `{flag}`; {FORM}")));
            }
            "--" => {
                words.next();
                options_ended = true;
                break;
            }
            _ => break,
        }
        words.next();
    }
    if !options_ended {
        let first = words.peek().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some(seconds) = seconds(&first)? {
            timeout = seconds;
            words.next();
        }
    }
    let command: Vec<OsString> = words.collect();
    if command.is_empty() {
        return Err(Wrong(format!("no command to run; {FORM}")));
    }
    let mut settings = Settings::new(&command);
    settings.take_environment()?;
    settings.act_as_timeout_mcp(timeout, auto_restart)?;
    Ok(Task::Wrap(Box::new(settings), command))
}

/// The first word if it is a number of seconds; a command's name is none. As in the original, parts of a
/// second are refused, and so is what can only be a mistake: nobody has a command called `30.5` or `30s`.
fn seconds(word: &str) -> Result<Option<Duration>, Wrong> {
    if let Ok(whole @ 1..=MOST) = word.parse::<u64>() {
        return Ok(Some(Duration::from_secs(whole)));
    }
    if word.parse::<f64>().is_ok() || parse_duration(word).is_ok() {
        return Err(Wrong(format!(
            "`{word}` is not a whole number of seconds; {FORM} (or --timeout 500ms -- COMMAND…)"
        )));
    }
    Ok(None)
}
