//! Does it compile for systems whose linker and libraries are not here?
//!
//! `cargo check` needs no linker, but the standard library of the target: the installed one, or else its source, which
//! is compiled with it (Debian's compiler, `compiler.rs`). The C of SQLite and ring is compiled by zig, which has the
//! headers of these systems. What is left unseen is the linking, and everything that only a run shows.

use super::{Dist, compiler, tools};
use crate::shell::{self, root};
use anyhow::Result;

const TARGETS: [&str; 3] = ["aarch64-apple-darwin", "x86_64-apple-darwin", "x86_64-pc-windows-gnu"];

pub fn all(dist: &mut Dist) -> Result<()> {
    tools::prepare(dist)?;
    for target in TARGETS {
        match compiler::for_target(dist, target) {
            Ok(compiler) => one(dist, target, &compiler)?,
            Err(why) => dist.leave_out(format!("the check for {target}: {why:#}")),
        }
    }
    Ok(())
}

fn one(dist: &Dist, target: &str, compiler: &compiler::Compiler) -> Result<()> {
    let mut cargo = tools::zigbuild(dist)?;
    cargo.args(["check", "--locked", "--package", "outlast", "--target", target]);
    cargo.arg("--target-dir").arg(root().join("target/dist-check")).current_dir(root());
    compiler.apply(&mut cargo);
    if compiler.rustc.is_some() {
        // The library's source is compiled with it, which only a nightly compiler does unasked.
        cargo.arg("-Zbuild-std=std,panic_abort").env("RUSTC_BOOTSTRAP", "1");
    }
    cargo.env("RUSTFLAGS", "-D warnings");
    shell::run(cargo)
}
