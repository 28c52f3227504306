//! Packages below `target/clients`, from the lock files of `tests/clients`; SDKs below `target/interop`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, bail};

use super::list::{Client, Install};
use super::run::Bench;
use super::sources;
use crate::interop::Places;
use crate::interop::matrix::Sdk;
use crate::interop::setup::{once, prepare, run_quietly, version_of};

/// A client that is ready to be driven.
#[derive(Clone)]
pub struct Installed {
    /// Where its packages are.
    pub folder: PathBuf,
    /// The command that runs its driver.
    pub driver: Vec<String>,
}

/// Installs what the client needs, unless that was done from the same lock file before.
pub fn install(bench: &Bench, client: &Client) -> Result<Installed> {
    let folder = match &client.install {
        Install::Npm(folder) => npm(bench, folder)?,
        Install::Pip(file) => pip(bench, file)?,
        Install::Interop(sdk) => interop(sdk)?,
    };
    let driver = sources().join(&client.driver);
    Ok(Installed { driver: vec![interpreter(&driver, &folder), driver.display().to_string()], folder })
}

fn interpreter(driver: &Path, folder: &Path) -> String {
    match driver.extension().is_some_and(|kind| kind == "py") {
        true => folder.join("bin/python").display().to_string(),
        false => "node".to_owned(),
    }
}

fn npm(bench: &Bench, name: &str) -> Result<PathBuf> {
    let (from, folder) = (sources().join(name), bench.places.installed.join(name));
    fs::create_dir_all(&folder)?;
    for file in ["package.json", "package-lock.json", ".npmrc"] {
        fs::copy(from.join(file), folder.join(file))?;
    }
    let stamp = version_of("node")? + &fs::read_to_string(from.join("package-lock.json"))?;
    once(&bench.places, name, &stamp, || {
        let mut npm = Command::new("npm");
        // Not `npm ci`: it refuses a lock file without the packages of platforms that a registry does not have.
        // What the lock file names is installed in that version and compared with its hash.
        npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        npm.current_dir(&folder);
        run_quietly(npm, &bench.logs().join("npm.log"))
    })?;
    Ok(folder)
}

fn pip(bench: &Bench, file: &str) -> Result<PathBuf> {
    let requirements = sources().join(file);
    let name = requirements.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = bench.places.installed.join(&name);
    let stamp = version_of("python3")? + &fs::read_to_string(&requirements)?;
    let log = bench.logs().join("pip.log");
    once(&bench.places, &name, &stamp, || {
        let mut venv = Command::new("python3");
        venv.args(["-m", "venv", "--clear"]).arg(&folder);
        run_quietly(venv, &log)?;
        let mut pip = Command::new(folder.join("bin/python"));
        pip.args(["-m", "pip", "install", "--disable-pip-version-check", "--requirement"]).arg(&requirements);
        run_quietly(pip, &log)
    })?;
    Ok(folder)
}

/// The SDKs are installed once for both commands.
fn interop(name: &str) -> Result<PathBuf> {
    let sdk = match name {
        "ts1" => Sdk::Ts1,
        "ts2" => Sdk::Ts2,
        "py1" => Sdk::Py1,
        "py2" => Sdk::Py2,
        "rust" => Sdk::Rust,
        other => bail!("unknown SDK `{other}`"),
    };
    let places = Places::find()?;
    prepare(&places, &BTreeSet::from([sdk]))?;
    Ok(if sdk == Sdk::Rust { places.built } else { places.installed.join(name) })
}
