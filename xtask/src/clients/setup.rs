//! Packages below `target/clients`, from the lock files of `tests/clients`.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::list::{Client, Install};
use super::run::Bench;
use super::sources;
use crate::interop::Places;
use crate::interop::matrix::Sdk;
use crate::interop::setup::{copy_files, once, prepare, run_quietly, version_of};

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
    match &client.install {
        Install::Npm(folder) => npm(bench, client, folder),
        Install::Pip(file) => pip(bench, client, file),
        Install::Interop(sdk) => interop(client, *sdk),
    }
}

/// Drivers are copied beside the packages: what they import is found there.
fn npm(bench: &Bench, client: &Client, name: &str) -> Result<Installed> {
    let (from, folder) = (sources().join(name), bench.places.installed.join(name));
    copy_files(&from, &folder)?;
    let stamp = version_of("node")? + &fs::read_to_string(from.join("package-lock.json"))?;
    once(&bench.places, name, &stamp, || {
        let mut npm = Command::new("npm");
        // Not `npm ci`: it refuses a lock file without the packages of platforms that a registry does not have.
        // What the lock file names is installed in that version and compared with its hash.
        npm.args(["install", "--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        npm.current_dir(&folder);
        run_quietly(npm, &bench.logs().join("npm.log"))
    })?;
    let driver = folder.join(PathBuf::from(&client.driver).file_name().unwrap_or_default());
    Ok(Installed { driver: vec!["node".to_owned(), driver.display().to_string()], folder })
}

fn pip(bench: &Bench, client: &Client, file: &str) -> Result<Installed> {
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
    let python = folder.join("bin/python").display().to_string();
    Ok(Installed { driver: vec![python, sources().join(&client.driver).display().to_string()], folder })
}

/// One installation of each SDK serves both: the interop tests have its lock file.
fn interop(client: &Client, sdk: Sdk) -> Result<Installed> {
    let places = Places::find()?;
    prepare(&places, &BTreeSet::from([sdk]))?;
    let folder = match sdk {
        Sdk::Ts1 => places.installed.join("ts1"),
        Sdk::Ts2 => places.installed.join("ts2"),
        Sdk::Py1 => places.installed.join("py1"),
        Sdk::Py2 => places.installed.join("py2"),
        Sdk::Rust => places.built,
    };
    let runs = match sdk {
        Sdk::Py1 | Sdk::Py2 => folder.join("bin/python").display().to_string(),
        Sdk::Ts1 | Sdk::Ts2 | Sdk::Rust => "node".to_owned(),
    };
    Ok(Installed { driver: vec![runs, sources().join(&client.driver).display().to_string()], folder })
}
