//! The server: takes lines, answers what a good server answers, and hands tool calls to `tools.rs`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::exit;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use nix::unistd::dup2_stdout;
use serde_json::value::RawValue;
use serde_json::{Value, from_slice, from_str, json};

use super::call::Call;
use super::flags::Flags;
use super::tasks::Tasks;
use super::tools;

/// The members of an object, as they stand.
pub type Members = HashMap<String, Box<RawValue>>;

pub struct Server {
    flags: Flags,
    stdout: Mutex<File>,
    seen: Mutex<Seen>,
    changed: Condvar,
    /// Who waits for an answer of the client, by the raw id of the question.
    questions: Mutex<HashMap<String, Sender<String>>>,
}

/// What has come in so far.
#[derive(Default)]
struct Seen {
    /// Every line, in order.
    lines: Vec<String>,
    /// The raw ids that were cancelled.
    cancelled: Vec<String>,
    /// Calls on their threads.
    running: usize,
}

impl Server {
    pub fn new(flags: Flags) -> io::Result<Server> {
        Ok(Server {
            flags,
            stdout: Mutex::new(File::from(io::stdout().as_fd().try_clone_to_owned()?)),
            seen: Mutex::default(),
            changed: Condvar::new(),
            questions: Mutex::default(),
        })
    }

    /// Takes one line of the client.
    pub fn take(self: &Arc<Server>, line: &[u8]) {
        let text = String::from_utf8_lossy(line).into_owned();
        let Ok(members) = from_slice::<Members>(line) else { return };
        lock(&self.seen).lines.push(text.clone());
        let method: Option<String> = members.get("method").and_then(|raw| from_str(raw.get()).ok());
        let id = members.get("id").map(|raw| raw.get().to_owned());
        match (method.as_deref(), id) {
            (None, Some(id)) => self.take_answer(&id, text),
            (Some("notifications/cancelled"), None) => self.take_cancel(&members),
            (Some(method), Some(id)) => self.take_request(method, id, &members, text),
            _ => {}
        }
    }

    fn take_answer(&self, id: &str, text: String) {
        if let Some(asker) = lock(&self.questions).remove(id) {
            // A call that no longer waits has no use for it.
            let _ = asker.send(text);
        }
    }

    fn take_cancel(&self, members: &Members) {
        let params: Option<Members> = members.get("params").and_then(|raw| from_str(raw.get()).ok());
        let Some(id) = params.and_then(|mut params| params.remove("requestId")) else { return };
        lock(&self.seen).cancelled.push(id.get().to_owned());
        self.changed.notify_all();
    }

    fn take_request(self: &Arc<Server>, method: &str, id: String, members: &Members, line: String) {
        if let Some((_, status)) = self.flags.exit_at.as_ref().filter(|(at, _)| at == method) {
            exit(*status);
        }
        if self.flags.is_mute_on(method) {
            return;
        }
        let tasks = self.flags.tasks.as_deref().map(Tasks::new);
        if tasks.is_some_and(|tasks| tasks.take(self, method, &id, &line)) {
            return;
        }
        match method {
            "initialize" => self.write(&answer(&id, &self.introduction())),
            "tools/call" => self.call(Call::new(self.clone(), id, members, line)),
            "tools/list" => self.write(&answer(&id, &json!({"tools": tools::list()}).to_string())),
            "subscriptions/listen" => self.write(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},"uri":"fake://x"}}}}"#
            )),
            _ => self.write(&answer(&id, &json!({"method": method}).to_string())),
        }
    }

    fn introduction(&self) -> String {
        let usual = match self.flags.tasks {
            None => r#"{"tools":{}}"#,
            Some(_) => r#"{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}"#,
        };
        let capabilities = self.flags.capabilities.as_deref().unwrap_or(usual);
        format!(
            r#"{{"protocolVersion":"2025-11-25","capabilities":{capabilities},"serverInfo":{{"name":"fake-server","version":"1"}}}}"#
        )
    }

    fn call(self: &Arc<Server>, call: Call) {
        if ["stop_reading", "close_stdin"].contains(&call.tool.as_str()) {
            // These are about the thread that reads.
            return tools::run(&call);
        }
        lock(&self.seen).running += 1;
        let server = self.clone();
        thread::spawn(move || {
            tools::run(&call);
            lock(&server.seen).running -= 1;
            server.changed.notify_all();
        });
    }

    /// Writes one line.
    pub fn write(&self, line: &str) {
        self.write_bytes(format!("{line}\n").as_bytes());
    }

    /// Writes bytes as they are. Where nobody reads any more, the end of the input follows soon.
    pub fn write_bytes(&self, bytes: &[u8]) {
        let _ = lock(&self.stdout).write_all(bytes);
    }

    /// Lets go of stdout and lives on.
    pub fn close_stdout(&self) -> io::Result<()> {
        let nowhere = File::options().write(true).open("/dev/null")?;
        dup2_stdout(nowhere.as_fd())?;
        *lock(&self.stdout) = nowhere;
        Ok(())
    }

    /// Puts a question to the client under this raw id; the line of the answer comes out.
    pub fn ask(&self, id: &str, method: &str, params: &Value) -> Receiver<String> {
        let (asker, answer) = channel();
        lock(&self.questions).insert(id.to_owned(), asker);
        self.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#));
        answer
    }

    /// Every line so far.
    pub fn history(&self) -> Vec<String> {
        lock(&self.seen).lines.clone()
    }

    /// Waits until this raw id is cancelled.
    pub fn wait_for_cancel(&self, id: &str) {
        self.wait_until(|seen| seen.cancelled.iter().any(|cancelled| cancelled == id));
    }

    /// Waits until no call is on its thread.
    pub fn wait_for_calls(&self) {
        self.wait_until(|seen| seen.running == 0);
    }

    fn wait_until(&self, done: impl Fn(&Seen) -> bool) {
        let seen = self.changed.wait_while(lock(&self.seen), |seen| !done(seen));
        drop(seen);
    }
}

/// The line of an answer, from raw JSON.
pub fn answer(id: &str, result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
