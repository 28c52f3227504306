//! The browser of whoever sits in front of this machine.

use crate::config::any_variable;
use std::path::Path;
use std::process::{Command, Stdio};

/// Opens a file in it. False if there is none, or nobody who could see it.
pub fn open(file: &Path) -> bool {
    let Some(program) = program() else { return false };
    let nothing = Stdio::null;
    let started =
        Command::new(program).arg(file).stdin(nothing()).stdout(nothing()).stderr(nothing()).spawn();
    started.is_ok()
}

fn program() -> Option<&'static str> {
    if cfg!(windows) {
        return Some("explorer");
    }
    if cfg!(target_os = "macos") {
        return Some("open");
    }
    let screen =
        ["WAYLAND_DISPLAY", "DISPLAY"].into_iter().filter_map(any_variable).any(|name| !name.is_empty());
    screen.then_some("xdg-open")
}
