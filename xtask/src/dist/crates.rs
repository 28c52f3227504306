//! The crates, as `cargo publish` would send them.

use super::archive::copy;
use super::{Dist, output};
use crate::shell::{self, root};
use anyhow::{Context, Result, ensure};
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

/// Installs from the packed crates in an empty folder, as `cargo install outlast` will. The first of them is not in
/// the registry yet, so cargo is told where it lies.
pub fn install(dist: &Dist) -> Result<()> {
    let home = dist.empty("homes/cargo")?;
    for name in CRATES {
        let file = dist.out.join("packages").join(format!("{name}-{}.crate", dist.version));
        output(Command::new("tar").arg("-xzf").arg(file).current_dir(&home))?;
    }
    let [engine, outlast] = CRATES.map(|name| home.join(format!("{name}-{}", dist.version)));
    let mut cargo = Command::new("cargo");
    cargo
        .args(["install", "--locked", "--debug", "--path"])
        .arg(outlast)
        .arg("--root")
        .arg(home.join("installed"));
    cargo.arg("--config").arg(format!("patch.crates-io.outlast-engine.path='{}'", engine.display()));
    cargo.arg("--target-dir").arg(dist.tools.join("crates")).current_dir(&home);
    shell::run(cargo)?;
    let version = output(Command::new(home.join("installed/bin/outlast")).args(["--version", "--json"]))?;
    let commit = dist.commit.trim_end_matches("-modified");
    ensure!(version.contains(commit), "the crate does not know its commit {commit}: {version}");
    Ok(())
}
