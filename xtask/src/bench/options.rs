//! The command line of `cargo xtask bench`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

const USAGE: &str =
    "cargo xtask bench [--quick] [--rounds N] [--json FILE] [--svg FILE] [--outlast PATH] [--check]

      --quick         few calls and one round, under 30 s: shows that it works, not how fast it is
      --rounds N      median over this many rounds [default: 5; at least 5 unless --quick]
      --json FILE     [default: target/bench/bench.json; with --quick target/bench/quick.json]
      --svg FILE      [default: docs/bench.svg; with --quick target/bench/quick.svg]
      --outlast PATH  measure this program instead of building outlast
      --check         fail if a goal is missed";

/// Fewer rounds make a median that one bad minute can move.
const LEAST_ROUNDS: usize = 5;

pub struct Options {
    pub quick: bool,
    pub rounds: usize,
    pub json: PathBuf,
    pub svg: PathBuf,
    pub outlast: Option<PathBuf>,
    pub check: bool,
}

impl Options {
    pub fn parse(words: &[String]) -> Result<Options> {
        let quick = words.iter().any(|word| word == "--quick");
        let mut options = Options::defaults(quick);
        let mut words = words.iter();
        while let Some(word) = words.next() {
            let mut value = || words.next().with_context(|| format!("{word} needs a value\n\n{USAGE}"));
            match word.as_str() {
                "--quick" => {}
                "--check" => options.check = true,
                "--rounds" => options.rounds = rounds(value()?, quick)?,
                "--json" => options.json = value()?.into(),
                "--svg" => options.svg = value()?.into(),
                "--outlast" => options.outlast = Some(existing(value()?)?),
                other => bail!("unknown option `{other}`\n\n{USAGE}"),
            }
        }
        Ok(options)
    }

    /// A quick run never replaces the published plot: its figures are not meant to be read.
    fn defaults(quick: bool) -> Options {
        let root = root();
        let scratch = scratch();
        Options {
            quick,
            rounds: if quick { 1 } else { LEAST_ROUNDS },
            json: scratch.join(if quick { "quick.json" } else { "bench.json" }),
            svg: if quick { scratch.join("quick.svg") } else { root.join("docs/bench.svg") },
            outlast: None,
            check: false,
        }
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
