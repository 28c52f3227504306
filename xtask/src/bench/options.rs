//! The command line of `cargo xtask bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use super::tables::{TABLES, Table};

const USAGE: &str = "cargo xtask bench [stdio|http|gateway|replicas] [--quick] [--only NAME] [--rounds N] [--json FILE] [--svg FILE] [--outlast PATH] [--against PATH] [--check]

      stdio, http     only this table [default: both]
      gateway         20 servers behind one address, against one; --only, --json, --svg and --against are not for it
      replicas        several outlast over one PostgreSQL; --json, --svg and --against are not for it
      --quick         few calls and one round, under a minute: shows that it works, not how fast it is
      --only NAME     only the measures with this in their name; publishes nothing
      --rounds N      median over this many rounds [default: 5, with --against 9; at least 5 unless --quick]
      --json FILE     of one table [default: target/bench/TABLE.json; with --quick or --only TABLE-part.json]
      --svg FILE      of one table [default: in docs; with --quick or --only target/bench/TABLE-part.svg]
      --outlast PATH  measure this program instead of building outlast
      --against PATH  measure this build and the outlast at PATH in turns: the ratio, and that of PATH to itself
      --check         fail if a goal is missed, or with --against if a row got worse";

/// Fewer rounds make a median that one bad minute can move.
const LEAST_ROUNDS: usize = 5;

/// Of two programs in turns, whose rounds are shorter.
const TURNS: usize = 9;

pub struct Options {
    pub tables: Vec<&'static Table>,
    /// Many servers behind one address, in place of the tables.
    pub gateway: bool,
    /// Replicas over one database, in place of the tables.
    pub replicas: bool,
    pub quick: bool,
    pub only: Option<String>,
    pub rounds: usize,
    json: Option<PathBuf>,
    svg: Option<PathBuf>,
    pub outlast: Option<PathBuf>,
    /// The program to compare with.
    pub against: Option<PathBuf>,
    pub check: bool,
}

impl Options {
    pub fn parse(words: &[String]) -> Result<Options> {
        let has = |flag: &str| words.iter().any(|word| word == flag);
        let quick = has("--quick");
        let mut options = Options::defaults(quick, has("--against"));
        let mut words = words.iter();
        while let Some(word) = words.next() {
            if let Some(table) = TABLES.iter().find(|table| table.name == word) {
                options.tables.push(table);
                continue;
            }
            let mut value = || words.next().with_context(|| format!("{word} needs a value\n\n{USAGE}"));
            match word.as_str() {
                "--quick" => {}
                "gateway" => options.gateway = true,
                "replicas" => options.replicas = true,
                "--only" => options.only = Some(value()?.clone()),
                "--check" => options.check = true,
                "--rounds" => options.rounds = rounds(value()?, quick)?,
                "--json" => options.json = Some(value()?.into()),
                "--svg" => options.svg = Some(value()?.into()),
                "--outlast" => options.outlast = Some(existing("--outlast", value()?)?),
                "--against" => options.against = Some(existing("--against", value()?)?),
                other => bail!("unknown option `{other}`\n\n{USAGE}"),
            }
        }
        if options.tables.is_empty() {
            options.tables.extend(&TABLES);
        }
        let files = options.json.is_some() || options.svg.is_some();
        ensure!(!files || options.against.is_none(), "--against writes no files\n\n{USAGE}");
        ensure!(!files || options.tables.len() == 1, "--json and --svg are of one table\n\n{USAGE}");
        Ok(options)
    }

    fn defaults(quick: bool, against: bool) -> Options {
        let rounds = match (quick, against) {
            (true, _) => 1,
            (false, true) => TURNS,
            (false, false) => LEAST_ROUNDS,
        };
        Options {
            tables: Vec::new(),
            gateway: false,
            replicas: false,
            quick,
            only: None,
            rounds,
            json: None,
            svg: None,
            outlast: None,
            against: None,
            check: false,
        }
    }

    /// A part never replaces what is published: a quick run's figures are not meant to be read.
    pub fn is_whole(&self) -> bool {
        !self.quick && self.only.is_none()
    }

    pub fn wants(&self, measure: &str) -> bool {
        self.only.as_ref().is_none_or(|only| measure.contains(only))
    }

    pub fn json(&self, table: &Table) -> PathBuf {
        let part = if self.is_whole() { "" } else { "-part" };
        let default = || scratch().join(format!("{}{part}.json", table.name));
        self.json.clone().unwrap_or_else(default)
    }

    pub fn svg(&self, table: &Table) -> PathBuf {
        let default = || match self.is_whole() {
            true => root().join(table.svg),
            false => scratch().join(format!("{}-part.svg", table.name)),
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

fn existing(flag: &str, word: &str) -> Result<PathBuf> {
    std::fs::canonicalize(word).with_context(|| format!("{flag} {word}"))
}
