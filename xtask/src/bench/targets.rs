//! The three ways to reach the echo server, and the programs they need.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::options::{root, scratch};

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    Direct,
    Floor,
    Outlast,
}

impl Target {
    pub const ALL: [Target; 3] = [Target::Direct, Target::Floor, Target::Outlast];

    pub fn name(self) -> &'static str {
        match self {
            Target::Direct => "direct",
            Target::Floor => "floor",
            Target::Outlast => "outlast",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

pub struct Programs {
    echo_server: PathBuf,
    floor: PathBuf,
    outlast: PathBuf,
}

impl Programs {
    /// Builds what is measured; a program given by the caller is taken as it is.
    pub fn build(outlast: Option<&Path>) -> Result<Programs> {
        let packages: &[&str] = match outlast {
            Some(_) => &["-p", "outlast-testkit"],
            None => &["-p", "outlast", "-p", "outlast-testkit"],
        };
        let status = Command::new(env!("CARGO"))
            .args(["build", "--quiet", "--release", "--bins"])
            .args(packages)
            .current_dir(root())
            .status()
            .context("cannot start cargo")?;
        ensure!(status.success(), "the release build failed");
        let built = release_folder();
        let programs = Programs {
            echo_server: built.join("echo-server"),
            floor: built.join("floor"),
            outlast: outlast.map_or_else(|| built.join("outlast"), Path::to_path_buf),
        };
        for program in [&programs.echo_server, &programs.floor, &programs.outlast] {
            let path = program.display();
            ensure!(program.exists(), "{path} is missing after the build");
        }
        Ok(programs)
    }

    /// The command of a target; `flags` are for outlast, the others have none.
    pub fn command(&self, target: Target, flags: &[&str]) -> Command {
        let mut command = match target {
            Target::Direct => Command::new(&self.echo_server),
            Target::Floor => {
                let mut command = Command::new(&self.floor);
                command.arg(&self.echo_server);
                command
            }
            Target::Outlast => {
                let mut command = Command::new(&self.outlast);
                command.args(flags).arg("--").arg(&self.echo_server);
                command
            }
        };
        forget_settings(&mut command);
        // What --instant remembers stays with what else is measured.
        command.env("XDG_STATE_HOME", scratch().join("state"));
        command
    }
}

/// What the caller has set for their own outlast must not decide what is measured here.
fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"OUTLAST_") {
            command.env_remove(name);
        }
    }
}

/// We run from a release build ourselves (see `run_optimised`), so the others lie beside us.
fn release_folder() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.parent().map(Path::to_path_buf).unwrap_or_default()
}
