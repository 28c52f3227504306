//! What has to be there before the first pair can run: packages, environments, binaries.
//!
//! Everything goes to `target/interop`. An installation is kept as long as the lock file it came
//! from stays the same.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::fcntl::{Flock, FlockArg};

use super::matrix::Sdk;
use super::{Places, client};
use crate::needs;
use crate::shell::cargo_command;

const INSTALL_LIMIT: Duration = Duration::from_secs(600);

/// Installs and builds what `sdks` need.
pub fn prepare(places: &Places, sdks: &BTreeSet<Sdk>) -> Result<()> {
    fs::create_dir_all(places.installed.join("logs"))?;
    // Two runs at once may share an installation, but not install into each other.
    let lock = fs::File::create(places.installed.join("lock"))?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;

    require_tools(sdks)?;
    for sdk in sdks {
        match sdk {
            Sdk::Ts1 => install_npm(places, "ts1")?,
            Sdk::Ts2 => install_npm(places, "ts2")?,
            Sdk::Py1 => install_python(places, "py1", "requirements-1.txt")?,
            Sdk::Py2 => install_python(places, "py2", "requirements-2.txt")?,
            Sdk::Rust => cargo_build("interop-rust")?,
            Sdk::Rotel => install_python(places, "rotel", "requirements-rotel.txt")?,
        }
    }
    for folder in ["js", "py"] {
        copy_files(&places.sources.join(folder), &places.installed.join(folder))?;
    }
    Ok(())
}

/// Builds outlast and says where it is.
///
/// On its own: in one build with the SDK's crates it would get their features.
pub fn build_outlast(places: &Places) -> Result<String> {
    cargo_build("outlast")?;
    Ok(places.built.join("outlast").display().to_string())
}

fn require_tools(sdks: &BTreeSet<Sdk>) -> Result<()> {
    let mut tools = Vec::new();
    if sdks.contains(&Sdk::Ts1) || sdks.contains(&Sdk::Ts2) {
        tools.extend(["node", "npm"]);
    }
    if [Sdk::Py1, Sdk::Py2, Sdk::Rotel].iter().any(|sdk| sdks.contains(sdk)) {
        tools.extend(["python3", "venv"]);
    }
    needs::require(&tools)
}

pub fn version_of(tool: &str) -> Result<String> {
    let output = Command::new(tool).arg("--version").stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{tool} --version failed");
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn install_npm(places: &Places, name: &str) -> Result<()> {
    let (from, to) = (places.sources.join(name), places.installed.join(name));
    copy_files(&from, &to)?;
    fs::copy(places.sources.join(".npmrc"), to.join(".npmrc"))?;
    let stamp = version_of("node")? + &fs::read_to_string(from.join("package-lock.json"))?;
    once(places, name, &stamp, || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&to);
        run_quietly(npm, &places.installed.join("logs/npm.log"))
    })
}

pub fn install_python(places: &Places, name: &str, requirements: &str) -> Result<()> {
    let requirements = places.sources.join("py").join(requirements);
    let stamp = version_of("python3")? + &fs::read_to_string(&requirements)?;
    let (home, log) = (places.installed.join(name), places.installed.join("logs/pip.log"));
    once(places, name, &stamp, || {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&home);
        run_quietly(venv, &log)?;
        let mut pip = Command::new(home.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--requirement"]);
        pip.arg(&requirements);
        run_quietly(pip, &log)
    })
}

/// Does `work` unless it was done for the same `stamp` before.
pub fn once(places: &Places, name: &str, stamp: &str, work: impl FnOnce() -> Result<()>) -> Result<()> {
    let file = places.installed.join(format!("{name}.stamp"));
    if fs::read_to_string(&file).is_ok_and(|done| done == stamp) {
        return Ok(());
    }
    eprintln!("installing {name}");
    let _ = fs::remove_file(&file);
    work().with_context(|| format!("installing {name}"))?;
    Ok(fs::write(file, stamp)?)
}

/// Runs an installer; its words are shown only if it fails.
pub fn run_quietly(mut command: Command, log: &Path) -> Result<()> {
    let output = fs::File::create(log)?;
    command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
    let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    let status = client::wait(child, INSTALL_LIMIT)?;
    if !status.success() {
        bail!("{command:?} ended with {status}:\n{}", fs::read_to_string(log).unwrap_or_default());
    }
    Ok(())
}

pub fn cargo_build(package: &str) -> Result<()> {
    let status = cargo_command(&["build", "--quiet", "--package", package]).status()?;
    ensure!(status.success(), "cargo build --package {package} failed");
    Ok(())
}

/// Copies the files of a folder, not what is below it.
pub fn copy_files(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from).with_context(|| format!("cannot read {}", from.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}
