//! Starts outlast in front of the fake server, and looks at what became of both.

use std::env;
use std::fs::{read, read_dir, read_to_string};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_str, json};

/// The program under test.
pub const OUTLAST: &str = env!("CARGO_BIN_EXE_outlast");

/// More than our processes ever need, in bytes.
pub const MUCH_MEMORY: u64 = 40 << 20;

/// The fake server lies where cargo puts it, next to outlast.
pub fn fake_server() -> PathBuf {
    let path = Path::new(OUTLAST).with_file_name("fake_server");
    assert!(path.exists(), "run cargo build -p outlast-testkit --bins first");
    path
}

/// Outlast alone, without settings from whoever runs the tests.
pub fn outlast() -> Command {
    let mut command = Command::new(OUTLAST);
    for (name, _) in env::vars().filter(|(name, _)| name.starts_with("OUTLAST_")) {
        command.env_remove(name);
    }
    // Nothing is left in the folder of whoever runs the tests.
    command.env("OUTLAST_STATE", "none");
    command
}

/// `outlast FLAGS -- fake-server SERVER`
pub fn wrapping(flags: &[&str], server: &[&str]) -> Command {
    let mut command = outlast();
    command.args(flags).arg("--").arg(fake_server()).args(server);
    command
}

/// The same, started, before the first message.
pub fn start(flags: &[&str], server: &[&str]) -> Peer {
    Peer::start(&mut wrapping(flags, server))
}

/// The same, ready for calls.
pub fn connect(flags: &[&str], server: &[&str]) -> Peer {
    let mut client = start(flags, server);
    client.handshake();
    client
}

/// Every line that the server has got so far, as it got it.
pub fn history(client: &mut Peer) -> Vec<String> {
    let lines = client.value_of("tell_history", &json!({}));
    lines.as_array().expect("an array").iter().map(|line| line.as_str().expect("text").into()).collect()
}

/// Every `notifications/cancelled` that the server has got so far.
pub fn cancels(client: &mut Peer) -> Vec<Value> {
    let lines = client.value_of("tell_cancels", &json!({}));
    lines
        .as_array()
        .expect("an array")
        .iter()
        .map(|line| from_str(line.as_str().expect("text")).expect("JSON"))
        .collect()
}

/// The ids under which the server has got the calls of a tool.
pub fn ids_at_the_server(client: &mut Peer, tool: &str) -> Vec<Value> {
    let messages = history(client).into_iter().map(|line| from_str::<Value>(&line).expect("JSON"));
    messages
        .filter(|message| message["params"]["name"] == tool)
        .map(|message| message["id"].clone())
        .collect()
}

/// What `data.outlast` of an error says.
pub fn data(answer: &Value) -> &Value {
    let data = &answer["error"]["data"]["outlast"];
    assert!(data.is_object(), "no error of ours: {answer}");
    data
}

/// What a value of `VmRSS` or the like in a process's status says, in bytes.
pub fn memory_of(pid: u32) -> u64 {
    let status = read_to_string(format!("/proc/{pid}/status")).expect("the process is there");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("VmRSS");
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kilobytes << 10
}

/// CPU time that a process has used.
pub fn cpu_of(pid: u32) -> Duration {
    let schedstat = read_to_string(format!("/proc/{pid}/schedstat")).expect("the process is there");
    let nanos = schedstat.split_ascii_whitespace().next().and_then(|number| number.parse().ok());
    Duration::from_nanos(nanos.expect("a number"))
}

/// All processes that descend from one command, found by a mark in their environment: whoever
/// their parent is by now, and whatever session they have moved to.
pub struct Tree {
    mark: String,
}

impl Tree {
    /// A mark that nothing has yet.
    pub fn new() -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Tree { mark: format!("{}-{number}", std::process::id()) }
    }

    /// Marks a command that is about to be started.
    pub fn mark(command: &mut Command) -> Tree {
        let tree = Tree::new();
        tree.marks(command);
        tree
    }

    /// Marks one more. Servers with other marks are not the same server.
    pub fn marks(&self, command: &mut Command) {
        command.env("E2E_TREE", &self.mark);
    }

    /// Those that run now.
    pub fn processes(&self) -> Vec<u32> {
        let numbers = read_dir("/proc").expect("/proc").flatten();
        let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        numbers.filter(|pid| self.holds(*pid)).collect()
    }

    /// A process that has ended and waits to be reaped has no environment any more.
    fn holds(&self, pid: u32) -> bool {
        let environment = read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mark = format!("E2E_TREE={}\0", self.mark);
        environment.windows(mark.len()).any(|window| window == mark.as_bytes())
    }

    /// Waits until none is left; how long that took.
    pub fn wait_until_gone(&self) -> Duration {
        let start = Instant::now();
        let gone = wait_until(LIMIT, || self.processes().is_empty());
        assert!(gone, "these live on: {:?}", self.describe());
        start.elapsed()
    }

    fn describe(&self) -> Vec<String> {
        let command = |pid: u32| read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        self.processes()
            .into_iter()
            .map(|pid| format!("{pid} {}", String::from_utf8_lossy(&command(pid))))
            .collect()
    }
}
