//! `--help`, `outlast help WORD` and the reference page, made from the tables of settings, commands and errors.

mod commands;
mod errors;
mod schema;
mod terminal;
mod topics;

pub(super) use commands::{COMMANDS, Command, named};

use super::{Task, Wrong};
use outlast_engine::settings::{Group, Key, SETTINGS, Scope, Setting, nearest};
use std::ffi::OsString;
use std::fmt::Write;
use topics::TOPICS;

/// Where the texts of a list begin.
const COLUMN: usize = 24;

/// `outlast help [WORD | --all]`.
pub(super) fn parse(words: &[OsString]) -> Result<Task, Wrong> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    match words.iter().map(AsRef::as_ref).collect::<Vec<&str>>()[..] {
        [] => Ok(Task::Print(text())),
        ["--all"] => Ok(Task::Print(all())),
        ["--help" | "-h"] => Ok(Task::Print(about("help").unwrap_or_default())),
        [word] => about(word).map(Task::Print).ok_or_else(|| unknown(word)),
        [..] => Err(Wrong("one word at a time: outlast help WORD".into())),
    }
}

/// Everything about a command, a setting or an error. A word can be both a command and a setting.
fn about(word: &str) -> Option<String> {
    match word {
        "settings" => return Some(reference()),
        "errors" => return Some(errors::index()),
        "file" => return Some(schema::outline()),
        "schema" => return Some(schema::text()),
        "topics" => return Some(topics::list() + "\n"),
        _ => {}
    }
    if let Some(page) = topics::page(word) {
        return Some(page);
    }
    let name = word.trim_start_matches("--");
    let command = named(name).map(|command| (command.text)());
    let setting = Setting::named(name).map(setting_text);
    match (command, setting) {
        (None, None) => errors::page(word),
        (command, setting) => Some([command, setting].into_iter().flatten().collect::<Vec<_>>().join("\n")),
    }
}

/// What a command's own `--help` says.
pub(super) fn of(command: &str) -> String {
    named(command).map(|command| (command.text)()).unwrap_or_default()
}

fn unknown(word: &str) -> Wrong {
    let commands = COMMANDS.iter().map(|command| command.name);
    let settings = SETTINGS.iter().map(|setting| setting.name);
    let known = commands.chain(settings).chain(errors::names()).chain(TOPICS.iter().copied());
    let hint = nearest(word.trim_start_matches('-'), known).map_or_else(
        || {
            "it is neither a command nor a setting nor an error of outlast; see outlast --help --all"
                .to_owned()
        },
        |meant| format!("did you mean: outlast help {meant}"),
    );
    Wrong(format!("no help for `{word}`: {hint}"))
}

const USAGE: &str = "Usage: outlast [OPTIONS] URL | -- COMMAND...         in front of one server
       outlast [OPTIONS] --config FILE               in front of many servers
       outlast serve [OPTIONS] [--config FILE | URL | -- COMMAND...]   over HTTP
";

const UNITS: &str = "Times need a unit: 500ms, 30s, 5m, 1h30m.
Every option is also a variable: OUTLAST_KEEP_ALIVE=5s.
";

/// `-h`.
pub(super) fn short() -> String {
    let names: Vec<&str> = COMMANDS.iter().filter(|command| command.listed).map(|it| it.name).collect();
    format!(
        "{USAGE}
Commands: {}
{}
More: outlast --help
",
        wrapped(&names.join(", "), 10),
        group(Group::Common, |setting| setting.front)
    )
}

/// `--help`: one screen.
pub(super) fn text() -> String {
    let mut text = format!(
        "Put outlast in front of an MCP server, and no call is lost to a timeout.\n\n{USAGE}\nCommands:\n"
    );
    for command in COMMANDS.iter().filter(|command| command.listed) {
        let _ = writeln!(text, "{}", row(command.name, command.short));
    }
    for group_of in [Group::Common, Group::Limits, Group::Servers, Group::Http] {
        text += &group(group_of, |setting| setting.front);
    }
    text + "\nMore: outlast --help --all; outlast help COMMAND|OPTION|ERROR-CODE|TOPIC\n"
}

/// `--help --all`.
pub(super) fn all() -> String {
    let mut text = format!("{USAGE}\nCommands:\n");
    for command in COMMANDS {
        let _ = writeln!(text, "{}", row(command.name, command.short));
    }
    for of in Group::ALL {
        text += &group(of, |_| true);
    }
    let _ = write!(
        text,
        "\n{}\n{}\n{}\n\n{UNITS}More about one of them: outlast help WORD. All settings: outlast help settings.\n",
        row("-h", "the shortest help"),
        row("--help [--all]", "help on one screen, or this"),
        row("-V, --version", "the version")
    );
    text
}

/// The options of a group that are chosen.
fn group(group: Group, chosen: impl Fn(&Setting) -> bool) -> String {
    let mut text = format!("\n{}:\n", group.title());
    for setting in SETTINGS.iter().filter(|setting| setting.group == group && chosen(setting)) {
        let flag = format!("--{} {}", setting.name, setting.placeholder());
        let _ = writeln!(text, "{}{}", row(flag.trim_end(), setting.short), default_of(setting));
    }
    text
}

/// The default, where there is room for it.
fn default_of(setting: &Setting) -> String {
    let shown = format!(" [{}]", setting.default);
    let fits = COLUMN + setting.short.chars().count() + shown.chars().count() <= 80;
    if fits && !matches!(setting.default, "" | "false") { shown } else { String::new() }
}

/// What it is called, and in a column of its own what it is.
fn row(name: &str, what: &str) -> String {
    match COLUMN.checked_sub(name.chars().count() + 3) {
        Some(_) => format!("  {name:<width$}{what}", width = COLUMN - 2),
        None => format!("  {name}\n{:COLUMN$}{what}", ""),
    }
}

/// Words in lines of a screen's width; those after the first are indented.
fn wrapped(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, String::len);
        if line > 0 && indent + line + 1 + word.len() > 80 {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if line.is_empty() { "" } else { " " });
            line.push_str(word);
        }
    }
    lines.join(&format!("\n{:indent$}", ""))
}

/// `docs/settings.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Settings

Every setting is a flag (`--keep-alive 5s`) and a variable (`OUTLAST_KEEP_ALIVE=5s`); the flag wins.
Most can also stand in [a file](file.md), under the same name; flags and variables win over it.
Times need a unit (`500ms`, `30s`, `5m`, `1h30m`), because half of all clients read a bare number as
seconds and half as milliseconds. This page is made from the code: `outlast help settings`.

If a limit is set in several places, the later in this list wins: built in; declared by the server
(which can only lengthen it); `--timeout` and the like; `--method`; `--tool`; the request's own
`_meta[\"dev.outlast/timeoutMs\"]` (which can only shorten it).

An option that has no effect in a mode is refused there. A variable is not: it may be meant for
another outlast process.
",
    );
    for group in Group::ALL {
        let names = SETTINGS.iter().filter(|setting| setting.group == group);
        let names: Vec<String> = names.map(|it| format!("[{}](#{})", it.name, it.name)).collect();
        let _ = write!(page, "\n{}: {}.\n", group.title(), names.join(", "));
    }
    for setting in SETTINGS {
        page += &section(setting);
    }
    page
}

fn section(setting: &Setting) -> String {
    let Setting { name, short, long, .. } = setting;
    format!("\n## {name}\n{}\n\n{}. {long}\n", facts(setting, "`"), capital(short))
}

/// Flag, variable, default and where it holds; names between these marks.
fn facts(setting: &Setting, mark: &str) -> String {
    let default = if setting.default.is_empty() { "none" } else { setting.default };
    let scope = match setting.scope {
        Scope::Call => format!("also inside {mark}--tool{mark} and {mark}--method{mark}"),
        Scope::Process => "for the whole process".to_owned(),
    };
    let modes = match setting.applies.form() {
        "" => String::new(),
        form => format!(" · only with {mark}{}{mark}", form.replace(" or ", &format!("{mark} or {mark}"))),
    };
    let tables = match setting.place.tables() {
        "" => String::new(),
        tables => format!(" · in the file: {mark}{tables}{mark}"),
    };
    let (name, variable, placeholder) = (setting.name, setting.variable(), setting.placeholder());
    let flag = format!("--{name} {placeholder}");
    format!(
        "{mark}{}{mark} · {mark}{variable}{mark} · default: {default} · {scope}{modes}{tables}",
        flag.trim_end()
    )
}

/// `outlast help SETTING`.
fn setting_text(setting: &Setting) -> String {
    let about = format!("{}. {}", capital(setting.short), setting.long);
    let keys = keys_of(setting).map(|keys| format!("\n{}\n", wrapped(&format!("Keys: {keys}."), 6)));
    format!("{}\n\n{}\n{}", wrapped(&facts(setting, ""), 0), wrapped(&about, 0), keys.unwrap_or_default())
}

/// What may stand for KEY in the value of a setting.
fn keys_of(setting: &Setting) -> Option<String> {
    let of_calls = || SETTINGS.iter().filter(|setting| setting.scope == Scope::Call);
    match setting.key {
        Key::Tool | Key::Method => Some(of_calls().map(|it| it.name).collect::<Vec<_>>().join(", ")),
        Key::ClientProfile => Some(outlast_engine::profile::KEYS.to_owned()),
        _ => None,
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fits(text: &str, most: usize) {
        let lines = text.lines().count();
        assert!(lines <= most, "{lines} lines:\n{text}");
        let wide = text.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
    }

    #[test]
    fn help_fits_a_screen() {
        fits(&short(), 24);
        fits(&text(), 40);
        fits(&all(), 140);
        COMMANDS.iter().for_each(|command| fits(&(command.text)(), 40));
    }

    #[test]
    fn there_is_help_for_every_word() {
        for word in COMMANDS
            .iter()
            .map(|it| it.name)
            .chain(SETTINGS.iter().map(|it| it.name))
            .chain(TOPICS.iter().copied())
        {
            assert!(about(word).is_some(), "{word}");
        }
        assert!(about("--timeout").unwrap().contains("OUTLAST_TIMEOUT"));
        assert!(about("-31002").unwrap().contains("server"));
        assert_eq!(about("server-gone"), about("-31002"));
        for (word, key) in [("tool", "signs"), ("method", "retries"), ("client-profile", "relists")] {
            let text = about(word).unwrap();
            assert!(text.contains("Keys: ") && text.contains(key), "{text}");
            fits(&text, 24);
        }
        fits(&about("file").unwrap(), 60);
        let keep = about("keep").unwrap();
        assert!(keep.contains("outlast keep list") && keep.contains("OUTLAST_KEEP"), "{keep}");
    }

    #[test]
    fn every_command_is_known_to_the_command_line() {
        for command in COMMANDS {
            let refused = crate::cli::parse(vec![command.name.into()]).err().map(|wrong| wrong.0);
            assert!(!refused.unwrap_or_default().contains("unknown command"), "{}", command.name);
        }
    }

    #[test]
    fn every_option_is_in_the_whole_help() {
        let text = all();
        assert!(SETTINGS.iter().all(|setting| text.contains(&format!("  --{}", setting.name))));
    }
}
