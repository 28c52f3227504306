//! `outlast demo`: an impatient client loses a slow call directly, and keeps it through outlast.
//!
//! Nothing is staged: both halves speak MCP over real pipes with a real server process, and the
//! second one goes through this very program.

mod client;
pub mod server;

use crate::clock::Clock;
use crate::config;
use crate::observe::stdout;
use crate::observe::terminal::{CLEAR, Colour, Stream, over};
use client::{Client, Outcome};
use std::ffi::OsString;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// How long the client waits without news.
const PATIENCE: Duration = Duration::from_secs(2);

/// Runs the demo; fails if it did not show what it promises.
pub fn run() -> io::Result<ExitCode> {
    let program = config::own_program()?.into_os_string();
    let direct = [program.clone(), "demo-server".into()];
    let mut wrapped = vec![program];
    wrapped.extend(["--keep-alive", "500ms", "--"].map(OsString::from));
    wrapped.extend(direct.iter().cloned());
    let mut screen = Screen::new();

    let (patience, work) = (PATIENCE.as_secs(), server::WORK.as_secs());
    screen.line(&format!("A client that waits {patience} seconds without news calls a tool that works {work} seconds in silence."))?;
    screen.line("\n1. Directly")?;
    let lost = call(&direct, &mut screen)?;
    screen.line("\n2. Through outlast")?;
    let kept = call(&wrapped, &mut screen)?;

    let shown = !lost.answered && kept.answered;
    screen.line(&summary(&lost, &kept))?;
    Ok(if shown { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn call(command: &[OsString], screen: &mut Screen) -> io::Result<Outcome> {
    let clock = Clock::start();
    let mut client = Client::start(command, PATIENCE)?;
    let outcome = client.call_slow_tool(&clock, |seconds, news| screen.progress(seconds, news))?;
    let seconds = outcome.took.as_secs_f64();
    let verdict = match &outcome.answered {
        true => format!(
            "   {}  after {seconds:.1} s: {}",
            Stream::Stdout.paint(Colour::Good, "[kept]"),
            outcome.text
        ),
        false => format!(
            "   {}  after {seconds:.1} s: {}",
            Stream::Stdout.paint(Colour::Bad, "[lost]"),
            outcome.text
        ),
    };
    screen.line(&verdict)?;
    client.close();
    Ok(outcome)
}

fn summary(lost: &Outcome, kept: &Outcome) -> String {
    format!(
        "
Directly, the client heard nothing for {:.0} s, gave up, and the work was lost.
Through outlast, it heard {} times that its call was alive, and kept waiting.
The answer came after {:.1} s. Nothing in the client or in the server was changed.

In your client's mcp.json, put outlast in front of the server you have:

    \"command\": \"outlast\", \"args\": [\"--\", \"npx\", \"-y\", \"the-server\"]
",
        lost.took.as_secs_f64(),
        kept.news,
        kept.took.as_secs_f64(),
    )
}

/// Where the demo is seen. On a terminal progress stays on one line.
struct Screen {
    live: bool,
    dirty: bool,
}

impl Screen {
    fn new() -> Screen {
        Screen { live: Stream::Stdout.is_terminal(), dirty: false }
    }

    fn progress(&mut self, seconds: f64, news: &str) -> io::Result<()> {
        let line = format!("   {seconds:4.1} s  {news}");
        if self.live {
            self.dirty = true;
            return stdout::print(over(&line)).map(drop);
        }
        stdout::print(format!("{line}\n")).map(drop)
    }

    fn line(&mut self, line: &str) -> io::Result<()> {
        let clear = if std::mem::take(&mut self.dirty) { CLEAR } else { "" };
        stdout::print(format!("{clear}{line}\n")).map(drop)
    }
}
