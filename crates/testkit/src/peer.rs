//! A small client for tests of the whole program: starts a command, sends lines, waits for messages.
//!
//! Nothing here blocks for longer than a limit: a thread reads each stream and a thread writes, and the test
//! waits on what they bring. What nobody reports, such as the end of a process, is looked at every few
//! milliseconds ([`wait_until`]). Whatever arrived stays in [`Peer::log`] in
//! the order of its arrival, so a test can also say what must *not* have come.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "waits for real processes in real time"
)]

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};

/// How long anything is waited for before a test fails. Far more than anything takes, because the
/// machine may be busy.
pub const LIMIT: Duration = Duration::from_secs(20);

/// How often a condition is looked at that nobody reports.
const LOOK: Duration = Duration::from_millis(5);

/// Waits until something is so; false if it is not within the limit.
pub fn wait_until(limit: Duration, mut so: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + limit;
    while !so() {
        if Instant::now() >= end {
            return false;
        }
        thread::sleep(LOOK);
    }
    true
}

/// One line that arrived.
#[derive(Clone, Debug)]
pub struct Line {
    /// Without its end.
    pub bytes: Vec<u8>,
    /// When it was read.
    pub at: Instant,
}

impl Line {
    /// As JSON; `null` if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_default()
    }

    /// Its beginning, for a person.
    fn glimpse(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.bytes.len().min(300)]).into_owned()
    }

    /// As text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// The ends of a started command's standard streams that are ours.
#[derive(Default)]
pub struct Streams {
    /// What goes to its stdin.
    pub input: Option<Box<dyn Write + Send>>,
    /// What comes from its stdout.
    pub output: Option<Box<dyn Read + Send>>,
    /// Leave its stderr unread.
    pub deaf_to_stderr: bool,
}

/// A process and the conversation with it.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    exit: Option<ExitStatus>,
    input: Option<Sender<Vec<u8>>>,
    written: Arc<AtomicU64>,
    lines: Receiver<Line>,
    gate: Option<Sender<()>>,
    /// Arrived and not yet asked for.
    unclaimed: VecDeque<Line>,
    log: Vec<Line>,
    stderr: Arc<Collected>,
    next_id: u64,
}

/// What a stream has brought so far.
#[derive(Debug, Default)]
struct Collected {
    bytes: Mutex<(Vec<u8>, bool)>,
    grew: Condvar,
}

impl Peer {
    /// Starts a command with pipes.
    pub fn start(command: &mut Command) -> Peer {
        let peer = Peer::start_without_reading(command);
        peer.with_output_read()
    }

    /// Starts a command with pipes, and leaves its stdout unread until [`Peer::read_output`].
    pub fn start_without_reading(command: &mut Command) -> Peer {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Peer::start_with(command, Streams::default())
    }

    /// Starts a command whose stdin and stdout are already set up; `streams` are our ends of them.
    /// A stream that is piped is taken from the process.
    pub fn start_with(command: &mut Command, streams: Streams) -> Peer {
        command.stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let piped_in = child.stdin.take().map(|pipe| Box::new(pipe) as Box<dyn Write + Send>);
        let piped_out = child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>);
        let written = Arc::new(AtomicU64::new(0));
        let input = streams.input.or(piped_in).map(|pipe| write_on_a_thread(pipe, written.clone()));
        let (gate, opened) = channel();
        let lines = match streams.output.or(piped_out) {
            Some(pipe) => read_on_a_thread(pipe, opened),
            None => channel().1,
        };
        let stderr = Arc::new(Collected::default());
        if !streams.deaf_to_stderr
            && let Some(pipe) = child.stderr.take()
        {
            collect_on_a_thread(pipe, stderr.clone());
        }
        Peer {
            child,
            exit: None,
            input,
            written,
            lines,
            gate: Some(gate),
            unclaimed: VecDeque::new(),
            log: Vec::new(),
            stderr,
            next_id: 0,
        }
    }

    /// The same peer, with its stdout read from now on.
    pub fn with_output_read(mut self) -> Peer {
        self.read_output();
        self
    }

    /// Begins to read its stdout.
    pub fn read_output(&mut self) {
        if let Some(gate) = self.gate.take() {
            // The reader has ended where there is nothing to read.
            let _ = gate.send(());
        }
    }

    /// The process's number.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    // Sending.

    /// Sends one line. Never waits: a thread writes.
    pub fn send(&mut self, line: impl ToString) {
        self.send_bytes(format!("{}\n", line.to_string()).as_bytes());
    }

    /// Sends bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let input = self.input.as_ref().expect("our end of stdin is open");
        // A process that has gone is noticed by who waits for its answer.
        let _ = input.send(bytes.to_vec());
    }

    /// How many bytes the process has taken in, its pipe included.
    pub fn bytes_taken(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Closes its stdin once everything is written.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Sends a signal.
    pub fn signal(&mut self, signal: Signal) {
        if self.exited().is_none() {
            let _ = kill(Pid::from_raw(self.child.id() as i32), signal);
        }
    }

    /// Sends a request and says under which id.
    pub fn request(&mut self, method: &str, params: &Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Sends a tool call and says under which id.
    pub fn begin(&mut self, tool: &str, arguments: &Value) -> Value {
        self.request("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    /// The same with a progress token.
    pub fn begin_with_token(&mut self, tool: &str, arguments: &Value, token: &Value) -> Value {
        let meta = json!({"progressToken": token});
        self.request("tools/call", &json!({"_meta": meta, "name": tool, "arguments": arguments}))
    }

    /// Calls a tool and waits for the answer.
    pub fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let id = self.begin(tool, arguments);
        self.answer(&id)
    }

    /// Calls a tool that must answer well; what it says.
    pub fn value_of(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.call(tool, arguments);
        let said = answer["result"].get("structuredContent");
        said.unwrap_or_else(|| panic!("`{tool}` did not answer well: {answer}")).clone()
    }

    /// The first exchange of every conversation; the answer.
    pub fn handshake(&mut self) -> Value {
        let id = self.initialize();
        let answer = self.answer(&id);
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// The same where nobody reads the answer.
    pub fn handshake_blindly(&mut self) {
        self.initialize();
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    }

    fn initialize(&mut self) -> Value {
        let who = json!({"name": "test", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
        self.request("initialize", &params)
    }

    /// Takes a request back.
    pub fn cancel(&mut self, id: &Value) {
        let params = json!({"requestId": id, "reason": "the user changed their mind"});
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    }

    // Receiving.

    /// Everything that has been waited past, in order.
    pub fn log(&self) -> &[Line] {
        &self.log
    }

    /// The first line that nobody has claimed and that fits; waits for it.
    pub fn line_where(&mut self, fits: impl Fn(&Line) -> bool) -> Line {
        self.line_within(LIMIT, fits)
    }

    /// The same with a limit of the test's own.
    pub fn line_within(&mut self, limit: Duration, fits: impl Fn(&Line) -> bool) -> Line {
        self.try_line_within(limit, fits).unwrap_or_else(|why| {
            panic!(
                "what was waited for did not come ({why}); unclaimed: {:#?}; stderr: {}",
                self.unclaimed.iter().map(Line::glimpse).collect::<Vec<_>>(),
                self.stderr()
            )
        })
    }

    /// The same for a client that gives up: what it waited for need not come.
    pub fn try_line_within(
        &mut self,
        limit: Duration,
        fits: impl Fn(&Line) -> bool,
    ) -> Result<Line, RecvTimeoutError> {
        if let Some(at) = self.unclaimed.iter().position(&fits) {
            return Ok(self.unclaimed.remove(at).expect("it is there"));
        }
        let end = Instant::now() + limit;
        loop {
            match self.receive(end)? {
                line if fits(&line) => return Ok(line),
                line => self.unclaimed.push_back(line),
            }
        }
    }

    fn receive(&mut self, end: Instant) -> Result<Line, RecvTimeoutError> {
        let left = end.saturating_duration_since(Instant::now());
        let line = self.lines.recv_timeout(left)?;
        self.log.push(line.clone());
        Ok(line)
    }

    /// The next line.
    pub fn next_line(&mut self) -> Line {
        self.line_where(|_| true)
    }

    /// The first unclaimed message that fits; waits for it.
    pub fn message_where(&mut self, fits: impl Fn(&Value) -> bool) -> Value {
        self.line_where(|line| fits(&line.json())).json()
    }

    /// The next request or notification of this method.
    pub fn message(&mut self, method: &str) -> Value {
        self.message_where(|message| message["method"] == method)
    }

    /// The answer to a request.
    pub fn answer(&mut self, id: &Value) -> Value {
        self.message_where(|message| message["id"] == *id && message.get("method").is_none())
    }

    /// Everything that comes until the process closes its stdout.
    pub fn rest(&mut self) -> Vec<Line> {
        let end = Instant::now() + LIMIT;
        loop {
            match self.receive(end) {
                Ok(line) => self.unclaimed.push_back(line),
                Err(RecvTimeoutError::Disconnected) => return self.unclaimed.drain(..).collect(),
                Err(RecvTimeoutError::Timeout) => panic!("stdout was not closed"),
            }
        }
    }

    /// What came on stderr so far.
    pub fn stderr(&self) -> String {
        let bytes = self.stderr.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes.0).into_owned()
    }

    /// Waits until its stderr is as it should be; all of it.
    pub fn stderr_where(&self, fits: impl Fn(&str) -> bool) -> String {
        let (bytes, _) = self.stderr_until(|bytes, _| fits(&String::from_utf8_lossy(bytes)));
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Waits until its stderr is closed; every byte of it.
    pub fn all_stderr(&self) -> Vec<u8> {
        self.stderr_until(|_, closed| closed).0
    }

    fn stderr_until(&self, fits: impl Fn(&[u8], bool) -> bool) -> (Vec<u8>, bool) {
        let bytes = self.stderr.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, timeout) = self
            .stderr
            .grew
            .wait_timeout_while(bytes, LIMIT, |(bytes, closed)| !fits(bytes, *closed))
            .unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&bytes.0);
        assert!(!timeout.timed_out(), "stderr is not as it should be: {text}");
        bytes.clone()
    }

    // Ending.

    /// How it ended, if it has.
    pub fn exited(&mut self) -> Option<ExitStatus> {
        if self.exit.is_none() {
            self.exit = self.child.try_wait().expect("a child can be waited for");
        }
        self.exit
    }

    /// Waits for its end.
    pub fn end(&mut self) -> ExitStatus {
        self.end_within(LIMIT)
    }

    /// Waits for its end, which must not take longer.
    pub fn end_within(&mut self, limit: Duration) -> ExitStatus {
        let ended = wait_until(limit, || self.exited().is_some());
        assert!(ended, "it did not end within {limit:?}; stderr: {}", self.stderr());
        self.exit.expect("it has ended")
    }

    /// Closes its stdin and waits for its end.
    pub fn hang_up(&mut self) -> ExitStatus {
        self.close_input();
        self.end()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // A test that failed half-way leaves nothing behind.
        self.signal(Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn write_on_a_thread(mut pipe: Box<dyn Write + Send>, written: Arc<AtomicU64>) -> Sender<Vec<u8>> {
    let (input, lines) = channel::<Vec<u8>>();
    thread::spawn(move || {
        for line in lines {
            for part in line.chunks(64 << 10) {
                if pipe.write_all(part).is_err() {
                    return;
                }
                written.fetch_add(part.len() as u64, Ordering::Relaxed);
            }
        }
    });
    input
}

fn read_on_a_thread(pipe: Box<dyn Read + Send>, opened: Receiver<()>) -> Receiver<Line> {
    let (output, lines) = channel();
    thread::spawn(move || {
        if opened.recv().is_err() {
            return;
        }
        let mut pipe = BufReader::with_capacity(64 << 10, pipe);
        loop {
            let mut bytes = Vec::new();
            match pipe.read_until(b'\n', &mut bytes) {
                Ok(1..) => {}
                Ok(0) | Err(_) => return,
            }
            if bytes.ends_with(b"\n") {
                bytes.pop();
            }
            if output.send(Line { bytes, at: Instant::now() }).is_err() {
                return;
            }
        }
    });
    lines
}

fn collect_on_a_thread(mut pipe: impl Read + Send + 'static, collected: Arc<Collected>) {
    thread::spawn(move || {
        let mut buffer = [0; 16 << 10];
        loop {
            let count = pipe.read(&mut buffer).unwrap_or(0);
            let mut bytes = collected.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.0.extend_from_slice(&buffer[..count]);
            bytes.1 = count == 0;
            drop(bytes);
            collected.grew.notify_all();
            if count == 0 {
                return;
            }
        }
    });
}
