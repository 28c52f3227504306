//! Which clients there are: `tests/clients/clients.json` and `tests/clients/libs/clients.json`.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::sources;

/// The files, one for each folder of drivers.
const FILES: [&str; 2] = ["clients.json", "libs/clients.json"];

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    clients: Vec<Client>,
    #[serde(default)]
    left_out: Vec<LeftOut>,
}

/// A client that can be driven.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    pub name: String,
    /// `agent`, `library` or `sdk`.
    pub kind: String,
    pub package: String,
    pub version: String,
    pub licence: String,
    /// A program below `tests/clients`.
    pub driver: String,
    pub install: Install,
    /// Flags of outlast that this client needs beside those for its limit.
    #[serde(default)]
    pub outlast: Vec<String>,
    /// What a person should know who reads the row.
    #[serde(default)]
    pub notes: String,
}

/// Where the packages come from: always from a lock file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Install {
    /// A folder with `package.json` and `package-lock.json`.
    Npm(String),
    /// A file of exact pins.
    Pip(String),
    /// An SDK that `cargo xtask interop` has a lock file for: `ts1`, `ts2`, `py1`, `py2` or `rust`.
    Interop(String),
}

/// A client that is not driven, and why.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    pub name: String,
    pub why: String,
}

fn read() -> Result<List> {
    let mut all = List::default();
    for path in FILES.map(|file| sources().join(file)) {
        if path.exists() {
            let list = read_file(&path)?;
            all.clients.extend(list.clients);
            all.left_out.extend(list.left_out);
        }
    }
    Ok(all)
}

fn read_file(path: &Path) -> Result<List> {
    let shown = || format!("cannot read {}", path.display());
    serde_json::from_str(&std::fs::read_to_string(path).with_context(shown)?).with_context(shown)
}

/// Those that were left out, and why.
pub fn left_out() -> Result<Vec<LeftOut>> {
    Ok(read()?.left_out)
}

/// The clients whose name, package or driver has one of the words in it; all without a word.
pub fn chosen(words: &[String]) -> Result<Vec<Client>> {
    let all = read()?.clients;
    for word in words {
        ensure!(all.iter().any(|client| client.is_called(word)), "no client is called `{word}`");
    }
    let wanted = |client: &Client| words.is_empty() || words.iter().any(|word| client.is_called(word));
    Ok(all.into_iter().filter(wanted).collect())
}

impl Client {
    fn is_called(&self, word: &str) -> bool {
        let word = word.to_lowercase();
        [&self.name, &self.package, &self.driver].iter().any(|text| text.to_lowercase().contains(&word))
    }
}

/// Prints both lists.
pub fn show() -> Result<()> {
    let list = read()?;
    for client in &list.clients {
        println!(
            "{:<22} {:<8} {} {} ({})",
            client.name, client.kind, client.package, client.version, client.licence
        );
    }
    for left_out in &list.left_out {
        println!("{:<22} left out: {}", left_out.name, left_out.why);
    }
    Ok(())
}
