//! The crates, as `cargo publish` would send them.

use super::archive::copy;
use super::{Dist, output};
use crate::shell::{self, root};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// In the order in which they have to be published.
pub const CRATES: [&str; 2] = ["outlast-engine", "outlast"];

/// cargo unpacks each crate elsewhere and compiles it there, the second with the packed first.
pub fn pack(dist: &Dist) -> Result<()> {
    let target = dist.tools.join("crates");
    let mut cargo = Command::new("cargo");
    cargo.args(["package", "--locked"]);
    for name in CRATES {
        cargo.args(["--package", name]);
    }
    if dist.commit.ends_with("-modified") {
        cargo.arg("--allow-dirty");
    }
    cargo.arg("--target-dir").arg(&target).current_dir(root());
    shell::run(cargo).context("a packed crate does not compile by itself")?;
    for name in CRATES {
        let file = format!("{name}-{}.crate", dist.version);
        copy(&target.join("package").join(&file), &dist.out.join("packages").join(file))?;
    }
    Ok(())
}

/// Installs from the packed crates in an empty folder, as `cargo install outlast` will.
pub fn install(dist: &Dist) -> Result<()> {
    // Elsewhere: below the repository cargo would take them for members of it.
    let home = std::env::temp_dir().join(format!("outlast-dist-{}", std::process::id()));
    fs::create_dir(&home)?;
    let installed = install_in(dist, &home);
    fs::remove_dir_all(&home)?;
    installed
}

/// The first crate is not in the registry yet, so cargo is told where it lies.
fn install_in(dist: &Dist, home: &Path) -> Result<()> {
    for name in CRATES {
        let file = dist.out.join("packages").join(format!("{name}-{}.crate", dist.version));
        output(Command::new("tar").arg("-xzf").arg(file).current_dir(home))?;
    }
    let [engine, outlast] = CRATES.map(|name| home.join(format!("{name}-{}", dist.version)));
    let mut cargo = Command::new("cargo");
    cargo
        .args(["install", "--locked", "--debug", "--path"])
        .arg(outlast)
        .arg("--root")
        .arg(home.join("installed"));
    cargo.arg("--config").arg(format!("patch.crates-io.outlast-engine.path='{}'", engine.display()));
    cargo.arg("--target-dir").arg(dist.tools.join("crates")).current_dir(home);
    shell::run(cargo)?;
    let version = output(Command::new(home.join("installed/bin/outlast")).args(["--version", "--json"]))?;
    let commit = dist.commit.trim_end_matches("-modified");
    ensure!(version.contains(commit), "the crate does not know its commit {commit}: {version}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path alone would be left out of the packed crate.
    #[test]
    fn the_engine_is_asked_for_in_our_own_version() {
        let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
        let line = manifest.lines().find(|line| line.starts_with("outlast-engine = ")).unwrap();
        assert!(line.contains(&format!("version = \"{}\"", env!("CARGO_PKG_VERSION"))), "{line}");
    }

    #[test]
    fn only_the_two_crates_can_be_published() {
        let metadata = output(&mut crate::shell::cargo_command(&[
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ]));
        let metadata: serde_json::Value = serde_json::from_str(&metadata.unwrap()).unwrap();
        let packages = metadata["packages"].as_array().unwrap().iter();
        let mut names: Vec<_> = packages
            .filter(|package| package["publish"].is_null())
            .map(|package| package["name"].clone())
            .collect();
        names.sort_by_key(|name| std::cmp::Reverse(name.to_string()));
        assert_eq!(names, CRATES);
    }
}
