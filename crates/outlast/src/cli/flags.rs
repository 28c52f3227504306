//! Settings as flags, which every command that runs a server takes.

use super::Wrong;
use crate::config::Settings;
use outlast_engine::settings::{Kind, Mode, SETTINGS, Setting, nearest};

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

/// The settings with what the environment and the flags say. A flag that does nothing in this mode is refused; a
/// variable may be meant for other processes.
pub(super) fn take(mut settings: Settings, flags: &Flags, mode: Mode) -> Result<Settings, Wrong> {
    settings.take_environment()?;
    for (setting, value) in flags {
        if !setting.applies.to(mode) {
            return Err(does_nothing(setting, mode));
        }
        settings.take_flag(setting, value)?;
    }
    Ok(settings)
}

fn missing_value(setting: &Setting) -> Wrong {
    Wrong(format!("--{} needs a value: --{} {}", setting.name, setting.name, setting.placeholder()))
}

/// For example: `--listen has no effect with outlast -- COMMAND; it is for outlast serve`.
pub(super) fn does_nothing(setting: &Setting, mode: Mode) -> Wrong {
    let here = match mode {
        Mode { serves: true, remote: true, .. } => "outlast serve URL",
        Mode { serves: true, .. } => "outlast serve -- COMMAND",
        Mode { keeps: true, .. } => "outlast --keep -- COMMAND",
        Mode { remote: true, .. } => "outlast URL",
        _ => "outlast -- COMMAND",
    };
    let (name, form) = (setting.name, setting.applies.form());
    Wrong(format!("--{name} has no effect with `{here}`; it is for `{form}` (outlast help {name})"))
}

fn unknown_flag(name: &str) -> Wrong {
    let known = SETTINGS.iter().map(|setting| setting.name).chain(["help", "version"]);
    let hint = nearest(name, known)
        .map_or_else(|| "see outlast --help --all".to_owned(), |known| format!("did you mean --{known}?"));
    Wrong(format!("unknown option `--{name}`; {hint}"))
}
