//! `cargo xtask dist try`: installs every package as a stranger would, uses it and removes it again.
//!
//! Each way begins with an empty home and a PATH without any compiler (`home.rs`). What is installed has to run
//! the demo, carry a call to a server on the official TypeScript SDK, do what a newcomer does (`newcomer.rs`), and be
//! gone after its removal. How much later than the bare program it starts is measured in turns with that.

mod home;
mod newcomer;
mod registry;
mod ways;

use super::{Dist, crates, platform, tools};
use crate::interop::matrix::Sdk;
use crate::interop::{Places, setup};
use anyhow::{Context, Result, ensure};
use home::Home;
use newcomer::Newcomer;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};
use ways::{Way, ways};

/// How much later than the bare program an installed one may start.
const LATER: Duration = Duration::from_millis(40);

/// Starts of each, in turns.
const STARTS: usize = 21;

pub fn all(dist: &mut Dist) -> Result<()> {
    tools::prepare(dist)?;
    let places = Places::find()?;
    setup::prepare(&places, &BTreeSet::from([Sdk::Ts1]))?;
    let ours = platform::built(dist).into_iter().find(|platform| platform.is_ours());
    let bare = ours.context("no program for this machine was built")?.program(dist);
    let server = places.installed.join("ts1/server.mjs");
    let mut table = format!(
        "| installed by | starts in | later than the bare program |\n|---|--:|--:|\n| nobody: the bare program | {} | |\n",
        shown(bare_start(dist, &bare)?)
    );
    for way in ways().into_iter().filter(|way| dist.wants(way.name)) {
        println!("-- {}", way.name);
        let home = Home::new(dist, way.name)?;
        table += &take(dist, &home, &way, &bare, &server).with_context(|| way.name.to_owned())?;
    }
    if dist.wants("cargo") {
        crates::install(dist).context("cargo install")?;
    }
    println!("\n{table}");
    Ok(fs::write(dist.out.join("trial.md"), table)?)
}

fn bare_start(dist: &Dist, bare: &Path) -> Result<Duration> {
    let home = Home::new(dist, "bare")?;
    let command = [bare.display().to_string()];
    (0..STARTS).map(|_| start(&home, &command)).collect::<Result<Vec<_>>>().map(median)
}

/// One way from its beginning to its end; its row.
fn take(dist: &Dist, home: &Home, way: &Way, bare: &Path, server: &Path) -> Result<String> {
    ensure!(home.run(&words("sh -c 'command -v cc gcc clang rustc cargo'")).is_err(), "there is a compiler");
    let _registry = (way.registry).then(|| registry::Registry::start(dist, home)).transpose()?;
    for line in way.install {
        home.run(&words(&home.fill(line))).context("install")?;
    }
    let command = words(&home.fill(way.command));
    let (took, later) = compare(home, &command, bare)?;
    ensure!(!way.quick || later <= LATER, "it starts {} after the bare program", shown(later));
    demo(home, &command)?;
    call(home, &command, server)?;
    Newcomer { home, command: &command }.tries()?;
    for line in way.remove {
        home.run(&words(&home.fill(line))).context("remove")?;
    }
    let left = PathBuf::from(&command[0]);
    ensure!(way.remove.is_empty() || !left.is_absolute() || !left.exists(), "{} is left", left.display());
    Ok(format!("| `{}` | {} | {} |\n", way.shown, shown(took), shown(later)))
}

/// Splits a line at blanks; a word in single quotes stays whole.
fn words(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    parts
        .flat_map(|(index, part)| match index % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        })
        .collect()
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn start(home: &Home, command: &[String]) -> Result<Duration> {
    let mut command = home.command(command);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::null());
    let began = Instant::now();
    ensure!(command.status()?.success(), "--version fails");
    Ok(began.elapsed())
}

/// How long it takes to start, and how much longer than the bare program.
fn compare(home: &Home, command: &[String], bare: &Path) -> Result<(Duration, Duration)> {
    let bare = [bare.display().to_string()];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        ours.push(start(home, command)?);
        theirs.push(start(home, &bare)?);
    }
    let (ours, theirs) = (median(ours), median(theirs));
    Ok((ours, ours.saturating_sub(theirs)))
}

fn demo(home: &Home, command: &[String]) -> Result<()> {
    let said = home.run(&[command, &["demo".to_owned()]].concat())?;
    ensure!(said.contains("[kept]"), "the demo lost its call:\n{said}");
    Ok(())
}

/// Calls a tool of a server on the TypeScript SDK, as a client on stdio would.
fn call(home: &Home, command: &[String], server: &Path) -> Result<()> {
    let mut outlast = home.command(command);
    outlast.args(["--", "node"]).arg(server).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut outlast = outlast.spawn()?;
    let mut to = outlast.stdin.take().context("no stdin")?;
    let mut from = BufReader::new(outlast.stdout.take().context("no stdout")?).lines();
    writeln!(
        to,
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-06-18","capabilities":{{}},"clientInfo":{{"name":"trial","version":"1"}}}}}}"#
    )?;
    let handshake = from.next().context("no answer to initialize")??;
    ensure!(handshake.contains("fixture-ts1"), "{handshake}");
    writeln!(to, r#"{{"jsonrpc":"2.0","method":"notifications/initialized"}}"#)?;
    writeln!(
        to,
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"carried"}}}}}}"#
    )?;
    let answer = from.find(|line| line.as_ref().map_or(true, |line| line.contains(r#""id":2"#)));
    let answer = answer.context("no answer to the call")??;
    ensure!(answer.contains("carried"), "{answer}");
    drop(to);
    ensure!(outlast.wait()?.success(), "it does not end well");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn a_quoted_word_stays_whole() {
        assert_eq!(words("sh -c 'command -v cc' x"), ["sh", "-c", "command -v cc", "x"]);
    }
}
