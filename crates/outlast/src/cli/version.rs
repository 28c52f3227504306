//! `--version`, for people and for programs.

use super::{Task, Wrong};
use lexopt::prelude::*;

/// The commit that this was built from; empty if nobody knew it (see `build.rs`).
const COMMIT: &str = env!("BUILT_FROM");

/// What this program can do, of what not every build of it can.
const FEATURES: &[&str] = &["http", "keep", "sqlite", "stdio", "tls"];

/// `--version [--json]`.
pub(super) fn parse(mut parser: lexopt::Parser) -> Result<Task, Wrong> {
    match parser.next()? {
        None => Ok(Task::Print(format!("outlast {}\n", env!("CARGO_PKG_VERSION")))),
        Some(Long("json")) => Ok(Task::Print(json())),
        Some(_) => Err(Wrong("--version stands alone, or with --json".into())),
    }
}

/// One line.
fn json() -> String {
    let version = serde_json::json!({
        "name": "outlast",
        "version": env!("CARGO_PKG_VERSION"),
        "commit": Some(COMMIT).filter(|commit| !commit.is_empty()),
        "target": env!("BUILT_FOR"),
        "features": FEATURES,
    });
    format!("{version}\n")
}
