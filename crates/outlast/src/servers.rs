//! `outlast servers`: how the servers are of every process of this user that has several, or serves.
//!
//! Such a process listens at a socket in the state folder that only this user can reach, and tells whoever connects
//! how its servers are: no port, no token, and nothing is asked of the servers themselves. Beside the path of every
//! call. Map: `desk` is that socket; this file asks all of them and shows what they say.

pub mod desk;

use crate::observe::stderr::say;
use crate::observe::stdout;
use crate::observe::text::escape;
use crate::store::{Place, no_folder};
use crate::sys::local;
use outlast_engine::report::Report;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::io::AsyncReadExt;

/// How long a process may take to say how its servers are.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes that one may say. More is not one of ours.
const SAID: u64 = 16 << 20;

/// What is asked, of which state folder.
#[derive(Debug)]
pub struct Request {
    /// For programs.
    pub json: bool,
    /// Where state is kept.
    pub place: Place,
}

/// Shows the servers of every process.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let found = match &request.place {
        Place::Folder(state) => match paths(&folder(state)) {
            Ok(found) => found,
            Err(error) => {
                say(&no_folder(state, &error));
                return Ok(ExitCode::FAILURE);
            }
        },
        Place::Memory => Vec::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    let processes: Vec<Value> = runtime.block_on(ask_all(&found));
    let text =
        if request.json { format!("{}\n", json!({"processes": processes})) } else { shown(&processes) };
    stdout::print(text)?;
    Ok(ExitCode::SUCCESS)
}

/// Where the sockets are.
fn folder(state: &Path) -> PathBuf {
    state.join("servers")
}

fn paths(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "sock"));
    paths.sort();
    Ok(paths)
}

async fn ask_all(paths: &[PathBuf]) -> Vec<Value> {
    let mut said = Vec::new();
    for path in paths {
        match tokio::time::timeout(PATIENCE, ask(path)).await {
            Ok(Ok(process)) => said.push(process),
            // Whoever listened there was killed.
            Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(path);
            }
            Ok(Err(_)) => {}
            Err(_) => say(&format!("{}: no answer within 2s", path.display())),
        }
    }
    said
}

async fn ask(path: &Path) -> io::Result<Value> {
    let stream = local::connect(path).await?;
    let mut bytes = Vec::new();
    stream.take(SAID).read_to_end(&mut bytes).await?;
    Ok(serde_json::from_slice(&bytes)?)
}

/// One server for programs.
pub fn as_json(report: &Report) -> Value {
    json!({
        "name": report.name,
        "state": report.condition.word(),
        "era": report.era(),
        "version": report.calls_itself,
        "running": report.running,
        "restarts": report.restarts,
        "inFlight": report.in_flight,
        "error": report.error,
        "leftOut": report.left_out,
    })
}

fn shown(processes: &[Value]) -> String {
    if processes.is_empty() {
        return "no process of outlast has servers of a file now (outlast serve, outlast --config FILE)\n"
            .into();
    }
    processes.iter().map(one_process).collect::<Vec<_>>().join("\n")
}

fn one_process(process: &Value) -> String {
    let text = |name: &str| process[name].as_str().map(escape);
    let whole = [text("file"), text("address")].into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut shown = format!("process {}: {whole}\n", process["pid"]);
    for mistake in process["mistakes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let _ = writeln!(shown, "  the file has changed and was not loaded: {}", escape(mistake));
    }
    let heading = ["SERVER", "STATE", "ERA", "RUNNING", "RESTARTS", "CALLS", "VERSION"].map(str::to_owned);
    let servers = process["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<[String; 7]> = std::iter::once(heading).chain(servers.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 7] = std::array::from_fn(width);
    for (number, row) in rows.iter().enumerate() {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        let _ = writeln!(shown, "  {}", cells.collect::<Vec<_>>().join("  ").trim_end());
        if let Some(server) = number.checked_sub(1).and_then(|number| servers.get(number)) {
            shown += &remarks(server);
        }
    }
    shown
}

fn row(server: &Value) -> [String; 7] {
    let cell = |name: &str| match &server[name] {
        Value::String(text) => escape(text),
        Value::Null => "-".into(),
        other => other.to_string(),
    };
    ["name", "state", "era", "running", "restarts", "inFlight", "version"].map(cell)
}

fn remarks(server: &Value) -> String {
    let error = server["error"].as_str().map(|error| format!("    last error: {}\n", escape(error)));
    let left_out = "    left out of merged lists: it does not speak the revision of a client\n";
    let left_out = (server["leftOut"] == true).then(|| left_out.to_owned());
    [error, left_out].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_stands_below_the_server_and_nothing_steers_the_terminal() {
        let server = |name, state, error: Value, left_out| {
            json!({"name": name, "state": state, "era": null, "version": "a\u{1b}[31m 1", "running": 1,
                   "restarts": 2, "inFlight": 3, "error": error, "leftOut": left_out})
        };
        let servers =
            json!([server("ci", "ready", Value::Null, true), server("b", "failed", "gone".into(), false)]);
        let process = json!({"pid": 7, "file": "o.toml", "address": null, "mistakes": ["o.toml:1:1: x"], "servers": servers});
        assert_eq!(
            shown(&[process]),
            "process 7: o.toml\n  the file has changed and was not loaded: o.toml:1:1: x\n\
             \x20 SERVER  STATE   ERA  RUNNING  RESTARTS  CALLS  VERSION\n\
             \x20 ci      ready   -    1        2         3      a\\u{1b}[31m 1\n\
             \x20   left out of merged lists: it does not speak the revision of a client\n\
             \x20 b       failed  -    1        2         3      a\\u{1b}[31m 1\n\
             \x20   last error: gone\n"
        );
    }
}
