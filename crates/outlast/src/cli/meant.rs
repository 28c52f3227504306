//! What was probably meant by a line that cannot be understood, as a line that can be copied.

use super::remote::is_url;
use super::{Wrong, help};
use crate::config;
use outlast_engine::settings::nearest;
use std::ffi::{OsStr, OsString};
use std::slice;

/// A command of ours that is spelt otherwise, or a server without its dashes.
pub(super) fn unknown_command(word: &str, line: &[OsString]) -> Wrong {
    let is_program =
        word.contains('/') || config::search_path().iter().any(|folder| folder.join(word).is_file());
    let meant = nearest(word, help::COMMANDS.iter().map(|command| command.name)).filter(|_| !is_program);
    let hint = match meant {
        Some(meant) => format!("did you mean: {}", moved_first(meant, &instead(line, word, meant))),
        None if word == "version" => "did you mean: outlast --version".to_owned(),
        None => {
            format!("to put outlast in front of a server, write: {}", with_dashes(OsStr::new(word), line))
        }
    };
    Wrong(format!("unknown command `{word}`; {hint}"))
}

/// `outlast tasks resutl …`: the word behind a command is near one that it knows.
pub(super) fn misspelt_second(command: &str, line: &[OsString]) -> Option<Wrong> {
    // `help` looks further than into its own words.
    let known = help::named(command).filter(|known| known.name != "help")?.then;
    let ours = line.iter().skip(1).take_while(|word| *word != "--");
    let given = ours.map(|word| word.to_string_lossy()).find(|word| !word.starts_with('-'))?;
    let meant = nearest(&given, known.iter().copied()).filter(|meant| *meant != given)?;
    let line = shown_line(&instead(line, &given, meant));
    Some(Wrong(format!("unknown command `{command} {given}`; did you mean: {line}")))
}

/// `outlast tasks list --jsn`: an option that a command does not have, near one that it has.
pub(super) fn misspelt_option(command: &str, line: &[OsString]) -> Option<Wrong> {
    let known = help::named(command)?.options;
    let ours = line.iter().skip(1).take_while(|word| *word != "--");
    let names = ours.filter_map(|word| word.to_str()?.strip_prefix("--")?.split('=').next());
    let (given, meant) = names
        .filter(|name| *name != "help" && !known.contains(name))
        .find_map(|name| Some((name, nearest(name, known.iter().copied())?)))?;
    let replaced = |word: &OsString| match word.to_string_lossy().strip_prefix(&format!("--{given}")) {
        Some(rest) if rest.is_empty() || rest.starts_with('=') => format!("--{meant}{rest}").into(),
        _ => word.clone(),
    };
    let end = line.iter().position(|word| word == "--").unwrap_or(line.len());
    let (ours, servers) = line.split_at(end);
    let line: Vec<OsString> = ours.iter().map(replaced).chain(servers.iter().cloned()).collect();
    Some(Wrong(format!("unknown option `--{given}`; did you mean: {}", shown_line(&line))))
}

/// The line with a command first, and what stood before it as the last of its options.
pub(super) fn moved_first(command: &str, line: &[OsString]) -> String {
    let at = line.iter().position(|word| word == command).unwrap_or_default();
    let (before, rest) = line.split_at(at);
    let end = rest.iter().position(|word| word == "--").unwrap_or(rest.len());
    let (own, behind) = rest.split_at(end);
    shown_line(&[own, before, behind].concat())
}

/// The line with `--` before a word, where the server begins.
pub(super) fn with_dashes(word: &OsStr, line: &[OsString]) -> String {
    let at = line.iter().position(|other| other == word).unwrap_or_default();
    let (before, server) = line.split_at(at);
    shown_line(&[before, slice::from_ref(&OsString::from("--")), server].concat())
}

/// A URL where a command is expected: the line without the dashes.
pub(super) fn no_command(command: &[OsString], line: &[OsString]) -> Option<Wrong> {
    let url = command.first().filter(|word| is_url(word))?;
    let line: Vec<OsString> = line.iter().filter(|word| *word != "--").cloned().collect();
    Some(Wrong(format!("`{}` is not a command; write: {}", url.to_string_lossy(), shown_line(&line))))
}

/// The line with another word in the place of one.
pub(super) fn instead(line: &[OsString], word: &str, other: &str) -> Vec<OsString> {
    let at = line.iter().position(|given| given.to_string_lossy() == word);
    let mut line = line.to_vec();
    if let Some(given) = at.and_then(|at| line.get_mut(at)) {
        *given = other.into();
    }
    line
}

/// A command line of ours, as a shell would take it.
pub(super) fn shown_line(words: &[OsString]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    let mut line = String::from("outlast");
    for word in words.iter().map(|word| word.to_string_lossy()) {
        line.push(' ');
        if !word.is_empty() && word.chars().all(plain) {
            line.push_str(&word);
        } else {
            line.push_str(&format!("'{}'", word.replace('\'', "'\\''")));
        }
    }
    line
}
