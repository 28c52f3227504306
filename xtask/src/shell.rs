//! Running programs, and saying so.

use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::process::Command;

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

/// A program in the repository.
pub fn program(name: &str, arguments: &[&str]) -> Command {
    let mut command = Command::new(name);
    command.args(arguments).current_dir(root());
    command
}

/// Runs a program to its end; its failure is ours.
pub fn run(mut command: Command) -> Result<()> {
    let shown = format!("{command:?}").replace('"', "");
    println!("$ {shown}");
    let status = command.status().with_context(|| format!("cannot run {shown}"))?;
    if !status.success() {
        bail!("failed ({status}): {shown}");
    }
    Ok(())
}

/// Runs cargo.
pub fn cargo(arguments: &[&str]) -> Result<()> {
    run(program("cargo", arguments))
}

/// Installs a package of Debian.
pub fn install(package: &str) -> Result<()> {
    run(program("apt-get", &["update", "-q"]))?;
    run(program("apt-get", &["install", "-y", "-q", "--no-install-recommends", package]))
}
