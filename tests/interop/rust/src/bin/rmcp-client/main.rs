//! A client on the official Rust SDK: reaches a server and runs the named checks against it.
//!
//! `rmcp-client [--era legacy|modern|auto] [--profile fixture|everything] [--only A,B] -- COMMAND...|URL`
//!
//! Prints one JSON line per check. `../../README.md` lists the checks and the fixture's tools.

mod checks;
mod peer;

use std::future::Future;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;

use peer::{Era, Peer};

const CHECK_LIMIT: Duration = Duration::from_secs(15);

struct Options {
    era: Era,
    everything: bool,
    only: Option<Vec<String>>,
    server: Vec<String>,
}

fn options() -> Result<Options> {
    let mut options = Options { era: Era::Auto, everything: false, only: None, server: vec![] };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "--" {
            options.server = words.collect();
            break;
        }
        let value = words.next().with_context(|| format!("{word} needs a value"))?;
        match (word.as_str(), value.as_str()) {
            ("--era", "legacy") => options.era = Era::Legacy,
            ("--era", "modern") => options.era = Era::Modern,
            ("--era", "auto") => options.era = Era::Auto,
            ("--profile", profile) => options.everything = profile == "everything",
            ("--only", names) => options.only = Some(names.split(',').map(str::to_owned).collect()),
            _ => bail!("unknown option {word} {value}"),
        }
    }
    ensure!(!options.server.is_empty(), "the server's command or URL goes after `--`");
    Ok(options)
}

/// Runs checks and prints what came of them.
struct Report {
    only: Option<Vec<String>>,
    failed: std::cell::Cell<bool>,
}

impl Report {
    fn line(&self, check: &str, outcome: Result<String>) {
        let (ok, detail) = match outcome {
            Ok(detail) => (true, detail),
            Err(error) => (false, format!("{error:#}")),
        };
        self.failed.set(self.failed.get() || !ok);
        println!("{}", json!({"check": check, "ok": ok, "detail": detail}));
    }

    async fn run(&self, check: &str, body: impl Future<Output = Result<String>>) {
        if self.only.as_ref().is_some_and(|only| !only.iter().any(|name| name == check)) {
            return;
        }
        let late = |_| anyhow::anyhow!("nothing within {CHECK_LIMIT:?}");
        self.line(check, tokio::time::timeout(CHECK_LIMIT, body).await.map_err(late).flatten());
    }
}

async fn greet(peer: &Peer, report: &Report) {
    if peer.is_modern() {
        report.run("discover", peer.discover()).await;
    } else {
        report.run("ping", peer.ping()).await;
    }
}

async fn all_checks(peer: &Peer, everything: bool, report: &Report) {
    if everything {
        checks::everything(peer, report).await;
    } else {
        checks::fixture(peer, report).await;
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let options = options()?;
    let report = Report { only: options.only, failed: false.into() };
    let connecting = tokio::time::timeout(CHECK_LIMIT, Peer::connect(&options.server, options.era));
    let mut peer = match connecting.await.context("not connected in time").flatten() {
        Ok(peer) => peer,
        Err(error) => {
            report.line("connect", Err(error));
            std::process::exit(1);
        }
    };
    report.line("connect", Ok(peer.describe()));
    greet(&peer, &report).await;
    // Three seconds of work that share the connection with everything else.
    let patience = checks::progress_resets_timeout(&peer, options.everything);
    tokio::join!(
        report.run("progress_resets_timeout", patience),
        all_checks(&peer, options.everything, &report),
    );
    report.run("close", checks::closes_cleanly(&mut peer)).await;
    std::process::exit(report.failed.get().into());
}
