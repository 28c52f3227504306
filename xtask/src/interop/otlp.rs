//! Traces, received by a real OTLP receiver (rotel): two outlasts in a row, and a client that names its span. What the
//! receiver prints of the call must be one trace, in which each span stands below the one before.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::Places;
use super::matrix::Sdk;
use super::tally::Verdict;

pub const SDKS: [Sdk; 1] = [Sdk::Rotel];

/// How long the receiver may take to start, and a span to arrive.
const LIMIT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(50);

/// The span of the client.
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// What the client says; the server is the one of `outlast demo`.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"interop","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

pub fn check(places: &Places, outlast: &str) -> Verdict {
    run(places, outlast).map_err(|error| vec![format!("{error:#}")])
}

fn run(places: &Places, outlast: &str) -> Result<String> {
    let receiver = Receiver::start(places)?;
    let otlp = ["--state", "none", "--otlp", &receiver.url];
    let mut client = Command::new(outlast)
        .args(otlp)
        .args(["--", outlast])
        .args(otlp)
        .args(["--", outlast, "demo-server"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    talk(&mut client)?;
    let ended = client.wait_with_output()?;
    let said = String::from_utf8_lossy(&ended.stderr);
    ensure!(ended.status.success() && said.is_empty(), "outlast ended with {}: {said}", ended.status);
    receiver.wait_for(4)?;
    chain(&receiver.spans()?)
}

/// A handshake and a request.
fn talk(client: &mut Child) -> Result<()> {
    let mut to = client.stdin.take().context("no stdin")?;
    let mut from = BufReader::new(client.stdout.take().context("no stdout")?).lines();
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{"_meta":{{"traceparent":"00-{TRACE}-{PARENT}-01"}}}}}}"#
    );
    for (lines, id) in [(vec![INITIALIZE], 1), (vec![INITIALIZED, &call], 2)] {
        lines.iter().try_for_each(|line| writeln!(to, "{line}"))?;
        let answers = |line: &String| line.contains(&format!(r#""id":{id},"#));
        let answer = from.by_ref().map_while(Result::ok).find(answers);
        ensure!(answer.is_some(), "no answer to request {id}");
    }
    Ok(())
}

/// One span of the call as the receiver prints it.
#[derive(Debug)]
struct Span {
    trace: String,
    id: String,
    parent: String,
    kind: String,
}

/// The spans of the call, each below the one before: a call, its attempt, the inner call, its attempt.
fn chain(spans: &[Span]) -> Result<String> {
    ensure!(spans.len() == 4, "the call should be 4 spans: {spans:?}");
    let mut parent = PARENT;
    for kind in ["SPAN_KIND_SERVER", "SPAN_KIND_CLIENT", "SPAN_KIND_SERVER", "SPAN_KIND_CLIENT"] {
        let below = spans.iter().find(|span| span.parent == parent);
        let span = below.with_context(|| format!("nothing stands below {parent}: {spans:?}"))?;
        ensure!(span.kind == kind && span.trace == TRACE, "it should be {kind} in {TRACE}: {span:?}");
        parent = &span.id;
    }
    Ok("one trace of 4 spans through two outlasts".to_owned())
}

/// A running rotel, which prints what it receives.
struct Receiver {
    url: String,
    child: Child,
    log: std::path::PathBuf,
}

impl Receiver {
    fn start(places: &Places) -> Result<Receiver> {
        let free = || -> Result<String> { Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string()) };
        let (http, grpc) = (free()?, free()?);
        let log = places.logs().join("otlp-receiver.log");
        let output = File::create(&log)?;
        // The package's own command is a shim that lets go of its child; this is what it starts.
        let script = "import os, rotel, sys; path = os.path.join(os.path.dirname(rotel.__file__), 'rotel-agent'); \
                      os.execv(path, [path] + sys.argv[1:])";
        let child = Command::new(places.installed.join("rotel/bin/python"))
            .args(["-c", script, "start", "--exporter", "blackhole", "--debug-log", "traces"])
            .args(["--debug-log-verbosity", "detailed", "--otlp-http-endpoint", &http])
            .args(["--otlp-grpc-endpoint", &grpc])
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start rotel")?;
        let receiver = Receiver { url: format!("http://{http}"), child, log };
        receiver.wait(|| TcpStream::connect(&http).is_ok()).context("rotel does not listen")?;
        Ok(receiver)
    }

    fn wait(&self, so: impl Fn() -> bool) -> Result<()> {
        let end = Instant::now() + LIMIT;
        while !so() {
            ensure!(Instant::now() < end, "not within {} s (see {})", LIMIT.as_secs(), self.log.display());
            std::thread::sleep(POLL);
        }
        Ok(())
    }

    fn wait_for(&self, count: usize) -> Result<()> {
        self.wait(|| self.spans().is_ok_and(|spans| spans.len() >= count)).context("spans are missing")
    }

    /// The spans of the call so far.
    fn spans(&self) -> Result<Vec<Span>> {
        let printed = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
        let value = |block: &str, name: &str| {
            let found =
                block.lines().find_map(|line| line.trim().strip_prefix(name)?.trim().strip_prefix(':'));
            found.unwrap_or_default().trim().to_owned()
        };
        let blocks = printed.split("\nSpan #").skip(1);
        let of_call = blocks.filter(|block| value(block, "Name") == "tools/list");
        let span = |block: &str| Span {
            trace: value(block, "Trace ID"),
            id: value(block, "ID"),
            parent: value(block, "Parent ID"),
            kind: value(block, "Kind"),
        };
        Ok(of_call.map(span).collect())
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
