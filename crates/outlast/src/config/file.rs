//! `outlast.toml`: which servers there are, what may take how long, who may come in.
//!
//! Every value passes the `desk`, which knows the places and collects the mistakes, so that all of them are told at
//! once. Map: `gather` reads the file and what it includes; `tree` is a file as values with places, TOML or a client's
//! own JSON; `server`, `client`, `callback` read the tables; `build` makes of them what a gateway runs on; `odd` warns. Nothing
//! is started here.

mod build;
mod callback;
mod client;
mod desk;
mod gather;
mod odd;
mod overrule;
mod place;
mod reading;
mod run;
mod server;
#[cfg(test)]
mod tests;
pub(crate) mod tree;
mod variables;

pub use build::fitting;
pub use callback::CallbackRule;
pub use client::BOUNDS;
pub use place::{Mistake, Severity};
pub use reading::{Again, Reading};
pub use server::key;

use super::{RemoteSettings, Settings};
use crate::dashboard::sight::Reach;
use desk::Desk;
use gather::Read;
use outlast_engine::settings::Glob;
use outlast_engine::{Bounds, ClientRule, Expose, ServerConfig};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// What joins the name of a server to the name of a tool, if the file says nothing else.
pub const SEPARATOR: &str = "__";

/// Everything that a file describes.
#[derive(Debug)]
pub struct Gateway {
    /// For the whole process.
    pub settings: Settings,
    /// In the order of the file.
    pub servers: Vec<Defined>,
    /// Who may come in.
    pub tokens: Vec<TokenRule>,
    /// Who is called back.
    pub callbacks: Vec<CallbackRule>,
    /// What joins the name of a server to the name of a tool.
    pub separator: String,
    /// Settings that are about the whole process, as they are written.
    pub process: Vec<(&'static str, String)>,
    /// The files that this was read from: when one changes, it may mean something else.
    pub files: Vec<PathBuf>,
    /// What is odd about the file, and no reason to refuse it.
    pub warnings: Vec<Mistake>,
}

/// A server that a file describes.
#[derive(Debug)]
pub struct Defined {
    /// Its name, command and limits. What it is called in the store is not known here.
    pub config: ServerConfig,
    /// What is started or reached.
    pub target: TargetSpec,
    /// How it is reached, if it is remote. Its headers are in `target`.
    pub remote: RemoteSettings,
    /// It is there and not used.
    pub disabled: bool,
    /// It is started at once, not when it is first needed.
    pub eager: bool,
    /// How its tools are shown; `None` where nothing is written.
    pub expose: Option<Expose>,
    /// Only these tools are shown, if any is named.
    pub allow: Vec<Glob>,
    /// These are not.
    pub deny: Vec<Glob>,
    /// Names of tools, and what clients call them instead.
    pub aliases: Vec<(String, String)>,
    /// Where it is written: `[servers.ci] in outlast.toml:12`.
    pub source: Box<str>,
}

/// What a server is behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TargetSpec {
    /// A process.
    Command {
        /// The program and its arguments.
        argv: Vec<OsString>,
        /// Variables besides ours.
        env: Vec<(OsString, OsString)>,
        /// Where it runs; where we do, without one.
        cwd: Option<PathBuf>,
    },
    /// Streamable HTTP.
    Remote {
        /// Its address, which has been checked.
        url: http::Uri,
        /// Sent with every request.
        headers: Vec<(http::HeaderName, http::HeaderValue)>,
    },
}

/// Somebody who may come in.
#[derive(Debug)]
pub struct TokenRule {
    /// The principal.
    pub name: String,
    /// SHA-256 of the token.
    pub hash: [u8; 32],
    /// Which servers are seen; all, without.
    pub servers: Option<Vec<Glob>>,
    /// Which tools may be called; all, without.
    pub tools: Option<Vec<Glob>>,
    /// How many calls at once.
    pub bounds: Bounds,
    /// What it may see and do on the dashboard.
    pub reach: Reach,
    /// Where it is written.
    pub source: Box<str>,
}

/// Where the file is looked for if nobody names one. Never in the working directory.
pub fn default_path() -> Option<PathBuf> {
    let base = super::directory("XDG_CONFIG_HOME").or_else(|| Some(super::home()?.join(".config")))?;
    Some(base.join("outlast/outlast.toml"))
}

/// Reads a file, TOML or a client's `mcp.json`. Fails with every mistake in it; warnings are among them.
pub fn load(path: &Path) -> Result<Gateway, Vec<Mistake>> {
    let name =
        path.file_name().map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into());
    load_with(&gather::read_file, &super::variable, path, &name)
}

/// The same for `outlast check`, which names the file as it was written.
pub fn load_shown(path: &Path) -> Result<Gateway, Vec<Mistake>> {
    load_with(&gather::read_file, &super::variable, path, &path.display().to_string())
}

/// Reads a text as if it were a file on a machine without others and without variables. For tests and fuzzers.
pub fn examine(text: &str) -> Result<Gateway, Vec<Mistake>> {
    examine_as(text, &|_| None)
}

/// The same with these variables.
pub fn examine_as(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Gateway, Vec<Mistake>> {
    let only = Path::new("outlast.toml");
    let read = |path: &Path| {
        let gone = || gather::NotRead { what: "there is no such file".into(), line: None };
        (path == only).then(|| (only.to_path_buf(), text.to_owned())).ok_or_else(gone)
    };
    load_with(&read, variable, only, "outlast.toml")
}

fn load_with(
    read: Read<'_>,
    variable: &dyn Fn(&str) -> Option<String>,
    path: &Path,
    name: &str,
) -> Result<Gateway, Vec<Mistake>> {
    let mut desk = Desk::new(variable);
    let parts = gather::gather(&mut desk, read, path, name);
    let gateway = build::build(&mut desk, &parts);
    if desk.has_errors() {
        return Err(desk.mistakes);
    }
    let files = desk.sources.into_iter().map(|source| source.path).collect();
    Ok(Gateway { files, warnings: desk.mistakes, ..gateway })
}
