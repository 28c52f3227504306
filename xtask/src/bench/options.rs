//! The command line of `cargo xtask bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::tables::{TABLES, Table};

const USAGE: &str = "cargo xtask bench [stdio|http] [--quick] [--rounds N] [--json FILE] [--svg FILE] [--outlast PATH] [--check]

      stdio, http     only this table [default: both]
      --quick         few calls and one round, under a minute: shows that it works, not how fast it is
      --rounds N      median over this many rounds [default: 5; at least 5 unless --quick]
      --json FILE     of one table [default: target/bench/TABLE.json; with --quick TABLE-quick.json]
      --svg FILE      of one table [default: in docs; with --quick target/bench/TABLE-quick.svg]
      --outlast PATH  measure this program instead of building outlast
      --check         fail if a goal is missed";

/// Fewer rounds make a median that one bad minute can move.
const LEAST_ROUNDS: usize = 5;

pub struct Options {
    pub tables: Vec<&'static Table>,
    pub quick: bool,
    pub rounds: usize,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
    pub outlast: Option<PathBuf>,
    pub check: bool,
}

impl Options {
    pub fn parse(words: &[String]) -> Result<Options> {
        let quick = words.iter().any(|word| word == "--quick");
        let mut options = Options::defaults(quick);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(table) = TABLES.iter().find(|table| table.name == word) {
                options.tables.push(table);
                continue;
            }
            let mut value = || words.next().with_context(|| format!("{word} needs a value\n\n{USAGE}"));
            match word.as_str() {
                "--quick" => {}
                "--check" => options.check = true,
                "--rounds" => options.rounds = rounds(value()?, quick)?,
                "--json" => options.json = Some(value()?.into()),
                "--svg" => options.svg = Some(value()?.into()),
                "--outlast" => options.outlast = Some(existing(value()?)?),
                other => bail!("unknown option `{other}`\n\n{USAGE}"),
            }
        }
        if options.tables.is_empty() {
            options.tables.extend(&TABLES);
        }
        let files = options.json.is_some() || options.svg.is_some();
        ensure!(!files || options.tables.len() == 1, "--json and --svg are of one table\n\n{USAGE}");
        Ok(options)
    }

    fn defaults(quick: bool) -> Options {
        let rounds = if quick { 1 } else { LEAST_ROUNDS };
        Options { tables: Vec::new(), quick, rounds, json: None, svg: None, outlast: None, check: false }
    }

    pub fn json(&self, table: &Table) -> PathBuf {
        let quick = if self.quick { "-quick" } else { "" };
        let default = || scratch().join(format!("{}{quick}.json", table.name));
        self.json.clone().unwrap_or_else(default)
    }

    /// A quick run never replaces the published plot: its figures are not meant to be read.
    pub fn svg(&self, table: &Table) -> PathBuf {
        let default = || match self.quick {
            true => scratch().join(format!("{}-quick.svg", table.name)),
            false => root().join(table.svg),
        };
        self.svg.clone().unwrap_or_else(default)
    }
}

/// The folder of the workspace.
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// Where everything goes that is not meant to be kept.
pub fn scratch() -> PathBuf {
    root().join("target/bench")
}

fn rounds(word: &str, quick: bool) -> Result<usize> {
    let least = if quick { 1 } else { LEAST_ROUNDS };
    match word.parse() {
        Ok(count) if count >= least => Ok(count),
        _ => bail!("--rounds {word}: a whole number from {least} on is needed\n\n{USAGE}"),
    }
}

fn existing(word: &str) -> Result<PathBuf> {
    std::fs::canonicalize(word).with_context(|| format!("--outlast {word}"))
}
