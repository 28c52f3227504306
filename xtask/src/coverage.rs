//! Lines of the engine that its tests reach, by the compiler's own instrumentation.
//!
//! The tools that read its profiles must be as new as the compiler's LLVM: Debian's `llvm-22`.

use crate::shell::{cargo_command, root, run as run_program};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Per cent of lines.
const GOAL: f64 = 95.0;

/// Runs the engine's tests and a short simulation instrumented, and reports.
pub fn run() -> Result<()> {
    ensure!(tool("llvm-cov").is_some(), "coverage needs the tools of LLVM 22 (Debian: llvm-22)");
    let folder = root().join("target/coverage");
    let profiles = folder.join("profiles");
    let _ = fs::remove_dir_all(&profiles);
    fs::create_dir_all(&profiles)?;
    let binaries = test_binaries(&folder)?;
    for binary in &binaries {
        let simulates = binary.file_name().is_some_and(|name| name == "sim");
        let runs: &[&[&str]] = if simulates {
            &[&["pipes", "--seeds", "20"], &["service", "--seeds", "20"]]
        } else {
            &[&["--quiet"]]
        };
        for words in runs {
            let mut test = Command::new(binary);
            test.current_dir(root().join("crates/engine"))
                .env("LLVM_PROFILE_FILE", profiles.join("%p-%m.profraw"))
                .args(*words);
            run_program(test)?;
        }
    }
    report(&folder, &profiles, &binaries)
}

fn tool(name: &str) -> Option<PathBuf> {
    Some(PathBuf::from(format!("/usr/lib/llvm-22/bin/{name}"))).filter(|path| path.exists())
}

/// Builds the tests and the simulation instrumented; where the binaries are.
fn test_binaries(folder: &std::path::Path) -> Result<Vec<PathBuf>> {
    let mut binaries = Vec::new();
    for arguments in [
        &["test", "--no-run", "-p", "outlast-engine", "--message-format=json"][..],
        &["build", "-p", "outlast-testkit", "--bin", "sim", "--message-format=json"],
    ] {
        let mut cargo = cargo_command(arguments);
        cargo.env("RUSTFLAGS", "-Cinstrument-coverage").env("CARGO_TARGET_DIR", folder);
        // Inlined lines are counted where they went; unoptimised code keeps them apart.
        cargo
            .env("CARGO_PROFILE_DEV_PACKAGE_OUTLAST_ENGINE_OPT_LEVEL", "0")
            .env("CARGO_PROFILE_DEV_OPT_LEVEL", "0");
        // Build scripts and macros are instrumented too, and would write where they stand.
        cargo.env("LLVM_PROFILE_FILE", folder.join("build/%p-%m.profraw"));
        let output = cargo.stderr(std::process::Stdio::inherit()).output().context("cannot run cargo")?;
        if !output.status.success() {
            bail!("the instrumented build failed");
        }
        let messages = String::from_utf8_lossy(&output.stdout).into_owned();
        let executables = messages.lines().filter_map(|line| {
            let message: serde_json::Value = serde_json::from_str(line).ok()?;
            message["executable"].as_str().map(PathBuf::from)
        });
        binaries.extend(executables);
    }
    Ok(binaries)
}

fn report(folder: &std::path::Path, profiles: &std::path::Path, binaries: &[PathBuf]) -> Result<()> {
    let (profdata, cov) =
        (tool("llvm-profdata").context("no llvm-profdata")?, tool("llvm-cov").context("no llvm-cov")?);
    let merged = folder.join("merged.profdata");
    let raw: Vec<PathBuf> =
        fs::read_dir(profiles)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<_, _>>()?;
    let mut merge = Command::new(profdata);
    merge.args(["merge", "-sparse", "-o"]).arg(&merged).args(raw);
    run_program(merge)?;
    let mut command = Command::new(cov);
    command.args(["report", "--use-color=false"]).arg(format!("--instr-profile={}", merged.display()));
    for (index, binary) in binaries.iter().enumerate() {
        if index > 0 {
            command.arg("--object");
        }
        command.arg(binary);
    }
    command.arg(root().join("crates/engine/src"));
    let output = command.output().context("cannot run llvm-cov")?;
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}");
    // Of the last line the tenth column is the share of lines that were reached.
    let total = text.lines().find(|line| line.starts_with("TOTAL")).context("no total")?;
    let lines =
        total.split_whitespace().nth(9).and_then(|column| column.trim_end_matches('%').parse::<f64>().ok());
    let lines = lines.context("no share of lines")?;
    println!("{lines} % of the engine's lines are reached; the goal is {GOAL} %");
    if lines < GOAL {
        bail!("too few");
    }
    Ok(())
}
