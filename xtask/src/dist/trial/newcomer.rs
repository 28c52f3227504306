//! What a newcomer does with a fresh installation: looks around, puts outlast in front of the servers of every client
//! that they have, and takes it out again.

use super::home::Home;
use super::words;
use crate::shell::root;
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};

/// Files as clients write them (`crates/outlast/tests/install/fixtures`), and where they are in a home.
const FILES: [(&str, &str); 11] = [
    ("claude-code-user", ".claude.json"),
    ("claude-desktop-user", ".config/Claude/claude_desktop_config.json"),
    ("cursor-user", ".cursor/mcp.json"),
    ("vscode-user", ".config/Code/User/mcp.json"),
    ("codex-user", ".codex/config.toml"),
    ("gemini-user", ".gemini/settings.json"),
    ("cline-user", ".cline/data/settings/cline_mcp_settings.json"),
    ("windsurf-user", ".codeium/windsurf/mcp_config.json"),
    ("opencode-user", ".config/opencode/opencode.json"),
    ("goose-user", ".config/goose/config.yaml"),
    (
        "cline-globalstorage",
        ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
    ),
];

/// A file of one server, for what is made of it.
const SIMPLE: &str =
    "{ \"mcpServers\": { \"one\": { \"command\": \"node\", \"args\": [\"server.mjs\"] } } }\n";

/// What is printed, and what has to be in it.
const PRINTED: [(&str, &str); 8] = [
    ("--help", "outlast help COMMAND"),
    ("man", "outlast import"),
    ("completions bash", "explain"),
    ("completions fish", "audit"),
    ("completions zsh", "holds"),
    ("completions powershell", "check"),
    ("help exit-codes", "126"),
    ("clients", "Codex CLI"),
];

/// The commands of an installed outlast, as `command` starts it.
pub struct Newcomer<'a> {
    pub home: &'a Home,
    pub command: &'a [String],
}

impl Newcomer<'_> {
    pub fn tries(&self) -> Result<()> {
        for (line, part) in PRINTED {
            ensure!(self.outlast(line)?.contains(part), "`outlast {line}` does not speak of {part}");
        }
        self.makes_a_file().context("import, check, explain")?;
        self.wraps_every_client().context("install all, uninstall all")?;
        if let [program] = self.command {
            let said = self.outlast(&format!("doctor -- {program} demo-server"))?;
            ensure!(said.contains("Nothing is odd."), "{said}");
        }
        Ok(())
    }

    fn outlast(&self, line: &str) -> Result<String> {
        self.home.run(&[self.command, &words(line)].concat())
    }

    fn makes_a_file(&self) -> Result<()> {
        let file = self.home.path.join(".cursor/mcp.json");
        put(&file, SIMPLE)?;
        self.outlast("import cursor")?;
        ensure!(self.outlast("check")?.contains("1 server; nothing is wrong"), "check");
        ensure!(self.outlast("explain one run")?.contains("built in"), "explain");
        Ok(fs::remove_file(file)?)
    }

    fn wraps_every_client(&self) -> Result<()> {
        let files: Vec<(PathBuf, String)> = FILES
            .iter()
            .map(|(fixture, place)| Ok((self.home.path.join(place), before(fixture)?)))
            .collect::<Result<_>>()?;
        files.iter().try_for_each(|(path, text)| put(path, text))?;
        self.outlast("install all --yes")?;
        for (path, text) in &files {
            let now = fs::read_to_string(path)?;
            ensure!(now.contains("--installed") && now != *text, "{} is as it was", path.display());
        }
        self.outlast("uninstall all --yes")?;
        for (path, text) in &files {
            ensure!(fs::read_to_string(path)? == *text, "{} is not restored", path.display());
        }
        Ok(())
    }
}

fn before(fixture: &str) -> Result<String> {
    let folder = root().join("crates/outlast/tests/install/fixtures").join(fixture);
    let found = fs::read_dir(&folder)?.flatten().map(|entry| entry.path());
    let before = found.into_iter().find(|path| path.file_stem().is_some_and(|name| name == "before"));
    Ok(fs::read_to_string(before.context("no file before")?)?)
}

fn put(path: &Path, text: &str) -> Result<()> {
    fs::create_dir_all(path.parent().context("no folder")?)?;
    Ok(fs::write(path, text)?)
}
