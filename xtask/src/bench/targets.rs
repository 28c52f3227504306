//! The three ways to reach the echo server, over pipes and over HTTP, and the programs they need.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::options::scratch;
use crate::shell::cargo_command;

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Target {
    Direct,
    Floor,
    Outlast,
}

impl Target {
    pub const ALL: [Target; 3] = [Target::Direct, Target::Floor, Target::Outlast];

    pub fn name(self) -> &'static str {
        match self {
            Target::Direct => "direct",
            Target::Floor => "floor",
            Target::Outlast => "outlast",
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[derive(Clone)]
pub struct Programs {
    echo_server: PathBuf,
    floor: PathBuf,
    outlast: PathBuf,
    /// Where outlast keeps what it remembers.
    state: PathBuf,
}

impl Programs {
    /// Builds what is measured; a program given by the caller is taken as it is.
    pub fn build(outlast: Option<&Path>) -> Result<Programs> {
        let packages: &[&str] = match outlast {
            Some(_) => &["-p", "outlast-testkit"],
            None => &["-p", "outlast", "-p", "outlast-testkit"],
        };
        let mut cargo = cargo_command(&["build", "--quiet", "--release", "--bins"]);
        let status = cargo.args(packages).status().context("cannot start cargo")?;
        ensure!(status.success(), "the release build failed");
        let built = release_folder();
        let programs = Programs {
            echo_server: built.join("echo-server"),
            floor: built.join("floor"),
            outlast: outlast.map_or_else(|| built.join("outlast"), Path::to_path_buf),
            state: scratch().join("state"),
        };
        for program in [&programs.echo_server, &programs.floor, &programs.outlast] {
            let path = program.display();
            ensure!(program.exists(), "{path} is missing after the build");
        }
        Ok(programs)
    }

    /// The same with another outlast, and with a memory of its own: two versions need not understand each other's.
    pub fn with_outlast(&self, outlast: Option<&Path>, name: &str) -> Programs {
        let mut programs = self.clone();
        programs.state = scratch().join(format!("state-{name}"));
        if let Some(outlast) = outlast {
            programs.outlast = outlast.to_path_buf();
        }
        programs
    }

    pub fn echo_server(&self) -> &Path {
        &self.echo_server
    }

    /// outlast on HTTP, in front of the servers that a file describes.
    pub fn gateway(&self, file: &Path) -> Command {
        let mut command = Command::new(&self.outlast);
        command.args(["serve", "--listen", "127.0.0.1:0", "--max-sessions", "20000", "--state", "none"]);
        command.arg("--config").arg(file);
        self.isolate(&mut command);
        command
    }

    /// outlast, to be told everything by the caller.
    pub fn service(&self) -> Command {
        let mut command = Command::new(&self.outlast);
        self.isolate(&mut command);
        command
    }

    /// A server whose tools sleep, hang and fail.
    pub fn fake_server(&self) -> PathBuf {
        self.echo_server.with_file_name("fake_server")
    }

    /// A folder for what outlast keeps.
    pub fn state(&self) -> &Path {
        &self.state
    }

    /// The command of a target; `flags` are for outlast, the others have none.
    pub fn command(&self, target: Target, flags: &[&str]) -> Command {
        let mut command = match target {
            Target::Direct => Command::new(&self.echo_server),
            Target::Floor => {
                let mut command = Command::new(&self.floor);
                command.arg(&self.echo_server);
                command
            }
            Target::Outlast => {
                let mut command = Command::new(&self.outlast);
                command.args(flags).arg("--").arg(&self.echo_server);
                command
            }
        };
        self.isolate(&mut command);
        command
    }

    /// outlast, with its instructions counted.
    pub fn counted(&self, flags: &[&str]) -> Command {
        under_callgrind(&self.command(Target::Outlast, flags), "/dev/null".as_ref())
    }

    /// What the caller has set for their own outlast must not decide what is measured here, and what
    /// `--instant` remembers stays with what else is measured.
    fn isolate(&self, command: &mut Command) {
        forget_settings(command);
        command.env("XDG_STATE_HOME", &self.state);
    }

    /// The server on HTTP.
    pub fn server(&self, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.echo_server);
        command.args(["--parse", "--http"]).args(flags);
        command
    }

    /// The floor in front of a server on HTTP.
    pub fn floor(&self, server: SocketAddr) -> Command {
        let mut command = Command::new(&self.floor);
        command.arg("--connect").arg(server.to_string());
        command
    }

    /// outlast on HTTP in front of a server on HTTP, with its instructions counted.
    pub fn counted_serve(&self, server: SocketAddr, flags: &[&str]) -> Command {
        under_callgrind(&self.serve(Some(server), flags), "/dev/null".as_ref())
    }

    /// outlast on stdio in front of a server on HTTP.
    pub fn remote(&self, server: SocketAddr) -> Command {
        let mut command = Command::new(&self.outlast);
        command.arg(url(server));
        self.isolate(&mut command);
        command
    }

    /// outlast on HTTP, in front of a server on HTTP or one on stdio that it starts.
    pub fn serve(&self, server: Option<SocketAddr>, flags: &[&str]) -> Command {
        let mut command = Command::new(&self.outlast);
        // Every client of a measure is the same nobody, who may have no more sessions than one.
        let bounds = ["--max-sessions", "20000", "--state", "none"];
        command.args(["serve", "--listen", "127.0.0.1:0"]).args(bounds).args(flags);
        match server {
            Some(address) => command.arg(url(address)),
            None => command.arg("--").arg(&self.echo_server).arg("--parse"),
        };
        self.isolate(&mut command);
        command
    }
}

/// The same command under callgrind, which writes to this file what ran.
pub fn under_callgrind(inner: &Command, out: &OsStr) -> Command {
    let mut to = OsString::from("--callgrind-out-file=");
    to.push(out);
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--demangle=no"]).arg(to);
    command.arg(inner.get_program()).args(inner.get_args());
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

fn url(server: SocketAddr) -> String {
    format!("http://{server}/mcp")
}

fn forget_settings(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy().to_ascii_lowercase();
        // A proxy of the caller's network would be asked for our loopback addresses.
        if text.starts_with("outlast_") || text.ends_with("_proxy") {
            command.env_remove(name);
        }
    }
}

/// We run from a release build ourselves (see `run_optimised`), so the others lie beside us.
fn release_folder() -> PathBuf {
    let here = std::env::current_exe().unwrap_or_default();
    here.parent().map(Path::to_path_buf).unwrap_or_default()
}
