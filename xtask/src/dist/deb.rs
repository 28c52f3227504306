//! The Debian package, by cargo-deb; what is in it stands in `crates/outlast/Cargo.toml`.

use super::Dist;
use super::archive::copy;
use super::platform::Platform;
use crate::shell::{self, root};
use anyhow::{Context, Result};
use std::fs;
use std::process::Command;

/// `outlast_0.1.0-1_amd64.deb`.
pub fn pack(dist: &Dist, platform: &Platform) -> Result<()> {
    if platform.debian.is_empty() {
        return Ok(());
    }
    // cargo-deb looks for the program where cargo would have put it.
    let place = dist.tools.join("deb").join(platform.target).join("release/outlast");
    fs::create_dir_all(place.parent().context("no folder")?)?;
    copy(&platform.program(dist), &place)?;
    let mut cargo = Command::new(dist.tools.join("cargo/bin/cargo-deb"));
    cargo.args(["--no-build", "--no-strip", "--locked", "--package", "outlast", "--target", platform.target]);
    cargo.arg("--output").arg(dist.out.join("packages"));
    cargo.env("CARGO_TARGET_DIR", dist.tools.join("deb")).current_dir(root());
    dist.dated(&mut cargo);
    shell::run(cargo)
}
