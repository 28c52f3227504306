//! `outlast serve --config FILE` and `outlast --config FILE`: the servers that a file describes.

use super::flags::{Flags, does_nothing};
use super::{Task, Wrong, serve};
use crate::config::Settings;
use crate::config::file::{self, Gateway, Reading};
use crate::program::Program;
use outlast_engine::Manner;
use outlast_engine::settings::Mode;
use std::path::Path;

/// Serves the servers of a file to HTTP clients.
pub(super) fn serve(path: &Path, flags: &Flags) -> Result<Task, Wrong> {
    let (settings, programs) = read(path, flags, true)?;
    let service = serve::service(&settings)?;
    Ok(Task::Serve(Box::new(settings), Box::new(service), programs))
}

/// Puts the servers of a file in front of the client on our standard streams. One server alone is wrapped as if it
/// had been named on the command line.
pub(super) fn wrap(path: &Path, flags: &Flags) -> Result<Task, Wrong> {
    let (mut settings, programs) = read(path, flags, false)?;
    settings.engine.manner = Manner::Gateway;
    Ok(Task::Gateway(Box::new(settings), programs))
}

fn read(path: &Path, flags: &Flags, serves: bool) -> Result<(Settings, Vec<Program>), Wrong> {
    let mut gateway = file::load(path).map_err(|mistakes| {
        let all: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
        Wrong(format!("{} cannot be used:\n\n{}", path.display(), all.join("\n")))
    })?;
    take(&mut gateway, flags, Mode { serves, keeps: false, remote: false })?;
    let reading = Reading::of(path, &gateway, flags);
    let (mut settings, programs) = gateway.assemble().map_err(Wrong)?;
    settings.reading = Some(reading);
    Ok((settings, programs))
}

fn take(gateway: &mut Gateway, flags: &Flags, mode: Mode) -> Result<(), Wrong> {
    for (setting, _) in flags {
        // Of several servers some may be remote.
        let applies = setting.applies.to(mode) || setting.applies.to(Mode { remote: true, ..mode });
        if !applies {
            return Err(does_nothing(setting, mode));
        }
    }
    Ok(gateway.overrule(flags)?)
}
