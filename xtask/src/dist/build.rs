//! The programs: one for each kind of Linux, for glibc 2.17 and newer, the same bytes wherever they are built.

use super::compiler::{self, Compiler};
use super::platform::{LINUX, PLATFORMS, Platform};
use super::{Dist, git, output, symbols, tools};
use crate::shell::{self, root};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `cargo xtask dist build`.
pub fn all(dist: &mut Dist) -> Result<()> {
    tools::prepare(dist)?;
    for platform in &PLATFORMS[..LINUX] {
        if !dist.targets.is_empty() && !dist.targets.iter().any(|target| target == platform.target) {
            continue;
        }
        match compiler::for_target(dist, platform.target) {
            Ok(compiler) => one(dist, platform, &compiler)?,
            Err(why) => dist.leave_out(format!("{}: {why:#}", platform.target)),
        }
    }
    Ok(())
}

fn one(dist: &Dist, platform: &Platform, compiler: &Compiler) -> Result<()> {
    let built = compile(dist, platform, compiler, &root())?;
    let program = platform.program(dist);
    fs::create_dir_all(program.parent().context("no folder")?)?;
    fs::copy(built, &program)?;
    let needs = symbols::check(&program)?;
    println!("{}: {} bytes, {}, {needs}", platform.target, fs::metadata(&program)?.len(), compiler.version);
    Ok(())
}

/// Builds the sources in a folder; where the program is.
fn compile(dist: &Dist, platform: &Platform, compiler: &Compiler, sources: &Path) -> Result<PathBuf> {
    let target = sources.join("target/dist-build");
    let mut cargo = tools::zigbuild(dist)?;
    cargo.args(["zigbuild", "--locked", "--release", "--package", "outlast", "--target"]);
    cargo.arg(format!("{}.{}.{}", platform.target, symbols::OLDEST.0, symbols::OLDEST.1));
    cargo.arg("--target-dir").arg(&target).current_dir(sources);
    compiler.apply(&mut cargo);
    dist.dated(&mut cargo);
    cargo.env("OUTLAST_COMMIT", &dist.commit);
    cargo.env("CARGO_PROFILE_RELEASE_STRIP", "symbols");
    forget_paths(&mut cargo, platform, sources)?;
    shell::run(cargo)?;
    Ok(target.join(platform.target).join("release/outlast"))
}

/// No folder of this machine is in the program: not in its messages, nor in what its symbols are made of.
fn forget_paths(cargo: &mut Command, platform: &Platform, sources: &Path) -> Result<()> {
    let home = std::env::var_os("HOME").map(PathBuf::from).context("HOME is not set")?;
    let cargo_home = std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let pairs = [(cargo_home, "/cargo"), (sources.to_owned(), "/outlast")];
    let rust: Vec<String> =
        pairs.iter().map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display())).collect();
    let c: Vec<String> =
        pairs.iter().map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display())).collect();
    cargo.env("CARGO_ENCODED_RUSTFLAGS", rust.join("\x1f"));
    cargo.env(format!("CFLAGS_{}", platform.target.replace('-', "_")), c.join(" "));
    Ok(())
}

/// `cargo xtask dist twice`: a clone elsewhere gives the same bytes.
pub fn twice(dist: &mut Dist) -> Result<()> {
    let platform = &PLATFORMS[0];
    let first = platform.program(dist);
    ensure!(first.is_file(), "there is no first program; run: cargo xtask dist build");
    if dist.commit.ends_with("-modified") {
        dist.leave_out(
            "the second build: the sources differ from their commit, which is what is built again",
        );
        return Ok(());
    }
    let clone = dist.empty("another-folder-with-a-longer-name")?;
    let archive = clone.join("sources.tar");
    git(&["archive", "--output", &archive.display().to_string(), "HEAD"])?;
    output(Command::new("tar").arg("-xf").arg(&archive).current_dir(&clone))?;
    let second = compile(dist, platform, &compiler::for_target(dist, platform.target)?, &clone)?;
    ensure!(
        fs::read(&first)? == fs::read(&second)?,
        "two builds of {} differ: compare {} and {}",
        platform.target,
        first.display(),
        second.display()
    );
    println!(
        "{}: two builds in two folders, the same {} bytes",
        platform.target,
        fs::metadata(&first)?.len()
    );
    Ok(fs::remove_dir_all(clone)?)
}
