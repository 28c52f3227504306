//! A client's own file with the servers that people have, taken as it is: those of dynamic-mcp's example (a file system,
//! the reference server, and a program that is no server), a memory and a clock. Once with their own names, once on demand as
//! dynamic-mcp shows them.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::Places;
use super::client::{self, Outcome, Run};
use super::matrix::Sdk;
use super::tally::Verdict;

pub const SDKS: [Sdk; 2] = [Sdk::Ts1, Sdk::Py1];

const LIMIT: Duration = Duration::from_secs(120);

pub fn check(places: &Places, outlast: &str) -> Verdict {
    run(places, outlast).unwrap_or_else(|error| Err(vec![format!("{error:#}")]))
}

fn run(places: &Places, outlast: &str) -> Result<Verdict> {
    let folder = places.logs().join("example");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let theirs = folder.join("mcp.json");
    let python = places.installed.join("py1/bin/python");
    std::fs::write(&theirs, format!("{:#}", file(&folder, &python)))?;
    let ours = folder.join("outlast.toml");
    std::fs::write(&ours, "include = [\"mcp.json\"]\n[clients.\"*\"]\nexpose = \"on-demand\"\n")?;

    let plain = visit(places, outlast, &folder, &theirs, None);
    let on_demand = visit(places, outlast, &folder, &ours, Some("on-demand"));
    Ok(judge(&[plain, on_demand]))
}

/// The keys of dynamic-mcp's files, with the servers of its example.
fn file(folder: &Path, python: &Path) -> serde_json::Value {
    let memory = folder.join("memory.json");
    json!({
        "$schema": "https://example.com/config-schema.json",
        "mcpServers": {
            "filesystem": {
                "description": "Use it to read and write files.",
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-filesystem", folder],
            },
            "everything": {
                "description": "Has a bit of all that a server can have.",
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-everything"],
                "features": {"tools": true, "resources": true},
            },
            "memory": {
                "description": "Use it to remember facts.",
                "command": "npx",
                "args": ["-y", "@modelcontextprotocol/server-memory"],
                "env": {"MEMORY_FILE_PATH": memory},
            },
            "time": {
                "description": "Use it to know what time it is.",
                "command": python,
                "args": ["-m", "mcp_server_time", "--local-timezone", "Europe/Berlin"],
            },
            "says-hello": {"description": "Is no server.", "command": "echo", "args": ["Hello!"]},
            "off": {"description": "Is not used.", "command": "no-such-program", "enabled": false},
        },
    })
}

fn visit(places: &Places, outlast: &str, folder: &Path, file: &Path, how: Option<&str>) -> Run {
    let script = places.installed.join("ts1/example.mjs").display().to_string();
    let mut command = vec!["node".to_owned(), script, folder.display().to_string()];
    command.extend(how.map(str::to_owned));
    let target = ["--", outlast, "--state", "none", "--config"].map(str::to_owned);
    command.extend(target.into_iter().chain([file.display().to_string()]));
    let log = places.logs().join(format!("example-{}.log", how.unwrap_or("names")));
    client::run(&command, &log, LIMIT)
}

fn judge(runs: &[Run]) -> Verdict {
    let complaints: Vec<String> = runs.iter().flat_map(Run::failures).collect();
    let troubles = runs.iter().filter(|run| run.trouble.is_some()).flat_map(Run::story);
    let complaints: Vec<String> = complaints.into_iter().chain(troubles).collect();
    let passed = |run: &Run| run.outcomes.values().filter(|outcome| outcome.ok == Outcome::PASSED).count();
    match complaints.is_empty() {
        true => Ok(format!("{} checks, with names and on demand", runs.iter().map(passed).sum::<usize>())),
        false => Err(complaints),
    }
}
