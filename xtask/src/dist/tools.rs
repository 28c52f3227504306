//! Installs what packing needs below `target/dist-tools`, in the versions that `packaging/tools` pins.

use super::Dist;
use crate::interop::Places;
use crate::interop::setup::{copy_files, once, run_quietly, version_of};
use crate::shell::root;
use anyhow::Result;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

/// It is built from source: its makers publish no programs where we may look.
const CARGO_DEB: &str = "3.8.0";

/// Installs everything that is missing.
pub fn prepare(dist: &Dist) -> Result<()> {
    fs::create_dir_all(&dist.tools)?;
    let sources = root().join("packaging/tools");
    let places =
        Places { sources, installed: dist.tools.clone(), built: PathBuf::new(), held: Duration::ZERO };
    python(&places)?;
    node(&places)?;
    once(&places, "cargo-deb", CARGO_DEB, || {
        let mut cargo = Command::new("cargo");
        cargo.args(["install", "--locked", "cargo-deb", "--version", CARGO_DEB, "--root"]);
        cargo.arg(places.installed.join("cargo"));
        cargo.arg("--target-dir").arg(places.installed.join("cargo-build"));
        run_quietly(cargo, &places.installed.join("cargo-deb.log"))
    })
}

/// zig, cargo-zigbuild, uv and wheel.
fn python(places: &Places) -> Result<()> {
    let requirements = places.sources.join("requirements.txt");
    let stamp = version_of("python3")? + &fs::read_to_string(&requirements)?;
    once(places, "python", &stamp, || {
        let (home, log) = (places.installed.join("python"), places.installed.join("pip.log"));
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&home);
        run_quietly(venv, &log)?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args(["-m", "pip", "install", "--require-hashes", "--no-deps", "--requirement"]);
        pip.arg(&requirements);
        run_quietly(pip, &log)
    })
}

/// pnpm and yarn, which install our npm packages in their own ways.
fn node(places: &Places) -> Result<()> {
    let to = places.installed.join("node");
    copy_files(&places.sources, &to)?;
    let stamp = version_of("node")? + &fs::read_to_string(places.sources.join("package-lock.json"))?;
    once(places, "node", &stamp, || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&to);
        run_quietly(npm, &places.installed.join("npm.log"))
    })
}

/// A tool that came from PyPI.
pub fn python_tool(dist: &Dist, name: &str) -> PathBuf {
    dist.tools.join("python/bin").join(name)
}

/// cargo with zig as its C compiler and linker; what both remember stays with the tools.
pub fn zigbuild(dist: &Dist) -> Result<Command> {
    let mut cargo = Command::new(python_tool(dist, "cargo-zigbuild"));
    cargo.env("CARGO_ZIGBUILD_CACHE_DIR", dist.tools.join("zigbuild"));
    cargo.env("ZIG_GLOBAL_CACHE_DIR", dist.tools.join("zig"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [dist.tools.join("python/bin")].into_iter().chain(std::env::split_paths(&path));
    cargo.env("PATH", std::env::join_paths(folders)?);
    Ok(cargo)
}
