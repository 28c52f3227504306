//! The demo's client: like most, it gives up when it has heard nothing for a while, and like the
//! better ones it takes progress for news.

use crate::clock::Clock;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

pub(super) struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    patience: Duration,
}

/// How a call ended.
pub(super) struct Outcome {
    pub(super) answered: bool,
    pub(super) took: Duration,
    /// How often progress came.
    pub(super) news: usize,
    pub(super) text: String,
}

impl Client {
    pub(super) fn start(command: &[OsString], patience: Duration) -> io::Result<Client> {
        let (program, arguments) = command.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            let lines = stdout.into_iter().flat_map(|stdout| BufReader::new(stdout).lines());
            for message in lines.map_while(Result::ok).filter_map(|line| serde_json::from_str(&line).ok()) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Client { child, stdin, lines, patience })
    }

    fn send(&mut self, message: &Value) -> io::Result<()> {
        let stdin = self.stdin.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        writeln!(stdin, "{message}")
    }

    /// Shakes hands, calls the tool, and waits as long as there is news.
    pub(super) fn call_slow_tool(
        &mut self,
        clock: &Clock,
        mut show: impl FnMut(f64, &str) -> io::Result<()>,
    ) -> io::Result<Outcome> {
        let info = json!({"name": "outlast-demo", "version": env!("CARGO_PKG_VERSION")});
        let handshake = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
        self.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": handshake}))?;
        let ready = self.lines.recv_timeout(self.patience);
        ready.map_err(|_| io::Error::other("the demo's server did not start"))?;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
        let call = json!({"name": "build_project", "arguments": {}, "_meta": {"progressToken": 2}});
        self.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))?;
        let began = clock.now().mono;
        show(0.0, "build_project called")?;
        let mut news = 0;
        loop {
            let heard = self.lines.recv_timeout(self.patience);
            let took = clock.now().mono.since(began);
            let Ok(message) = heard else {
                let cancel = json!({"requestId": 2, "reason": "Request timed out"});
                self.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}))?;
                let text = "the client gave up (MCP error -32001: Request timed out)".into();
                return Ok(Outcome { answered: false, took, news, text });
            };
            if message["method"] == "notifications/progress" {
                news += 1;
                show(took.as_secs_f64(), message["params"]["message"].as_str().unwrap_or("progress"))?;
            } else if message["id"] == 2 {
                let text = message["result"]["content"][0]["text"].as_str().unwrap_or("no text").to_owned();
                return Ok(Outcome { answered: true, took, news, text });
            }
        }
    }

    /// Leaves as clients do: closes the server's input and waits for it to end.
    pub(super) fn close(mut self) {
        drop(self.stdin.take());
        // It ends with its input; a server in mid-work is not waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
