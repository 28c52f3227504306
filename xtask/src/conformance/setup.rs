//! What has to be there before the suite can run: its packages, a Node that is new enough, outlast.
//!
//! Everything goes to `target/conformance` and is kept as long as the lock file stays the same.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use nix::fcntl::{Flock, FlockArg};

use crate::interop::Places;
use crate::interop::setup::{build_outlast, copy_files, once, run_quietly, version_of};

/// Where things are.
pub struct Tools {
    pub sources: PathBuf,
    /// The fixture's programs with their packages beside them.
    pub fixture: PathBuf,
    /// For what the programs say and what the suite finds; emptied when a run begins.
    pub output: PathBuf,
    pub node: PathBuf,
    outlast: Option<String>,
}

impl Tools {
    pub fn suite(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.fixture.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
        command
    }

    /// The command of the fixture's server, without how it is to be reached.
    pub fn server(&self) -> Vec<String> {
        [&self.node, &self.fixture.join("server.js")].map(|path| path.display().to_string()).to_vec()
    }

    pub fn outlast(&self) -> Result<&str> {
        self.outlast.as_deref().context("there is no outlast to go through")
    }
}

/// Installs the fixture and builds outlast, unless it is given or not wanted.
pub fn prepare(outlast: Option<PathBuf>, direct_only: bool) -> Result<Tools> {
    let mut places = Places::find()?;
    places.sources = places.sources.with_file_name("conformance");
    places.installed = places.installed.with_file_name("conformance");
    fs::create_dir_all(&places.installed)?;
    // Two runs at once may share an installation, but not install into each other.
    let lock = fs::File::create(places.installed.join("lock"))?;
    let _lock = Flock::lock(lock, FlockArg::LockExclusive).map_err(|(_, errno)| errno)?;
    let fixture = install(&places)?;
    let output = places.installed.join("output");
    if output.exists() {
        fs::remove_dir_all(&output)?;
    }
    fs::create_dir_all(&output)?;
    let outlast = match outlast {
        None if !direct_only => Some(build_outlast(&places)?),
        given => given.map(|path| path.display().to_string()),
    };
    Ok(Tools { node: node(&fixture), sources: places.sources, fixture, output, outlast })
}

fn install(places: &Places) -> Result<PathBuf> {
    let fixture = places.installed.join("fixture");
    copy_files(&places.sources, &fixture)?;
    let stamp = version_of("node")? + &fs::read_to_string(fixture.join("package-lock.json"))?;
    once(places, "fixture", &stamp, || {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(&fixture);
        run_quietly(npm, &places.installed.join("npm.log"))
    })?;
    Ok(fixture)
}

/// The suite needs Node 22; a package carries one, but not for every platform.
fn node(fixture: &Path) -> PathBuf {
    let carried = fixture.join("node_modules/.bin/node");
    if carried.exists() { carried } else { "node".into() }
}
