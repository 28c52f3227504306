//! `cargo xtask test ui`: the dashboard in a real browser.
//!
//! The page is made again from its sources with the locked tools, and must be the committed one byte for byte; then
//! Chromium opens it, with outlast behind it. `cargo xtask ui --shots` also writes the screenshots of docs/images,
//! `--figures` measures what a thousand calls and four open pages cost.
//!
//! Everything is installed below `target/ui`. Not here: what is tried in the browser (`tests/ui`).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::amount::Amount;
use crate::interop::Places;
use crate::interop::setup::{build_outlast, copy_files, once, run_quietly, version_of};
use crate::needs;
use crate::shell::{root, run_and_keep};

const PAGE: &str = "crates/outlast/src/dashboard/page.html";
const SHOTS: &str = "docs/images";

/// Runs the checks with these names, or all.
pub fn run(words: &[String], amount: &mut Amount) -> Result<()> {
    let (flags, names): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with("--"));
    let has = |flag: &str| flags.iter().any(|word| *word == flag);
    let mut places = Places::find()?;
    places.installed = places.installed.with_file_name("ui");
    fs::create_dir_all(&places.installed)?;
    compare_page(&places)?;
    amount.add(1, "page");
    let outlast = match std::env::var_os("OUTLAST") {
        Some(given) => given,
        None => OsString::from(build_outlast(&places)?),
    };
    let tests = install(&places, "tests", &root().join("tests/ui"), &[])?;
    let mut node = Command::new("node");
    node.arg(tests.join(if has("--figures") { "figures.mjs" } else { "run.mjs" })).args(names);
    node.env("OUTLAST", outlast).env("CHROMIUM", needs::browser()?);
    if has("--shots") {
        fs::create_dir_all(root().join(SHOTS))?;
        node.env("SHOTS", root().join(SHOTS));
    }
    let (said, result) = run_and_keep(node)?;
    amount.add(said.lines().filter(|line| line.starts_with("ok ")).count() as u64, "checks");
    result
}

/// Makes the page again.
fn compare_page(places: &Places) -> Result<()> {
    let sources = root().join("crates/outlast/dashboard");
    let home = install(places, "dashboard", &sources, &["src"])?;
    let made = places.installed.join("page.html");
    let mut node = Command::new("node");
    node.arg(home.join("build.mjs")).arg(&made);
    run_quietly(node, &places.installed.join("build.log"))?;
    let same = fs::read(&made)? == fs::read(root().join(PAGE))?;
    ensure!(
        same,
        "{PAGE} is not what its sources give; write: cd crates/outlast/dashboard && npm ci && npm run build"
    );
    Ok(())
}

/// Copies a folder of ours and installs its packages there, in the versions that are locked.
fn install(places: &Places, name: &str, from: &Path, below: &[&str]) -> Result<PathBuf> {
    let home = places.installed.join(name);
    copy_files(from, &home)?;
    for folder in below {
        // A source that is gone must not stay.
        let _ = fs::remove_dir_all(home.join(folder));
        copy_files(&from.join(folder), &home.join(folder))?;
    }
    let stamp = version_of("node")? + &fs::read_to_string(from.join("package-lock.json"))?;
    once(places, name, &stamp, || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&home);
        run_quietly(npm, &places.installed.join("npm.log"))
    })?;
    Ok(home)
}
