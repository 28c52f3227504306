//! Settings as flags, which every command that runs a server takes.

use super::Wrong;
use crate::config::Settings;
use outlast_engine::settings::{Kind, SETTINGS, Setting};

/// Settings that were written, and their values.
pub(super) type Flags = Vec<(&'static Setting, String)>;

/// The setting of a flag.
pub(super) fn named(name: &str) -> Result<&'static Setting, Wrong> {
    Setting::named(name).ok_or_else(|| unknown_flag(name))
}

/// Reads the value of a setting that was named. A switch needs none.
pub(super) fn read(
    setting: &'static Setting,
    parser: &mut lexopt::Parser,
) -> Result<(&'static Setting, String), Wrong> {
    let value = match setting.kind {
        Kind::Switch => parser.optional_value().unwrap_or_else(|| "true".into()),
        _ => parser.value().map_err(|_| missing_value(setting))?,
    };
    Ok((setting, value.to_string_lossy().into_owned()))
}

/// The settings with what the environment and the flags say.
pub(super) fn take(mut settings: Settings, flags: &Flags) -> Result<Settings, Wrong> {
    settings.take_environment()?;
    for (setting, value) in flags {
        settings.take_flag(setting, value)?;
    }
    Ok(settings)
}

fn missing_value(setting: &Setting) -> Wrong {
    Wrong(format!("--{} needs a value: --{} {}", setting.name, setting.name, setting.placeholder()))
}

fn unknown_flag(name: &str) -> Wrong {
    let known = SETTINGS.iter().map(|setting| setting.name).chain(["help", "keep", "version"]);
    let nearest = known.min_by_key(|known| distance(known, name)).filter(|known| distance(known, name) <= 3);
    let hint =
        nearest.map_or_else(|| "see outlast --help".to_owned(), |known| format!("did you mean --{known}?"));
    Wrong(format!("unknown flag `--{name}`; {hint}"))
}

/// How many letters must be changed, added or left out to get from one word to the other.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let change = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = change.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
