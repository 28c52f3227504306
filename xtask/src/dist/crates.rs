//! The crates, as `cargo publish` would send them.

use super::Dist;
use super::archive::copy;
use crate::shell::{self, root};
use anyhow::{Context, Result};
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
