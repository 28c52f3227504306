//! Tasks of the server's own, of both eras: `--tasks DIR`. A task is a file there, so that it outlives
//! the process that made it.
//!
//! The tool `job` runs only as a task. `ms`: how long; `asks`: whether it needs a word of the client
//! first; `exits`: the process ends once it has said that there is a task.

use std::fs::{create_dir_all, read_dir, read_to_string, write};
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::server::{Server, answer};

/// How often the server wants to be asked, in milliseconds.
const POLL: u64 = 100;

pub struct Tasks {
    folder: PathBuf,
}

impl Tasks {
    pub fn new(folder: &Path) -> Tasks {
        let _ = create_dir_all(folder);
        Tasks { folder: folder.to_owned() }
    }

    /// Takes a request that is about tasks. False if it is not.
    pub fn take(&self, server: &Arc<Server>, method: &str, id: &str, line: &str) -> bool {
        let request: Value = serde_json::from_str(line).unwrap_or_default();
        let params = &request["params"];
        let modern = params["_meta"]["io.modelcontextprotocol/protocolVersion"].is_string();
        let task = params["taskId"].as_str().unwrap_or_default();
        match method {
            "server/discover" => server.write(&answer(id, &discovered().to_string())),
            "tools/call" if params["name"] == "job" => self.call(server, id, params, modern),
            "tasks/get" => match self.state(task) {
                None => refuse(server, id, -32602, "no such task", &Value::Null),
                Some(state) => server.write(&answer(id, &self.shown(task, &state, modern).to_string())),
            },
            "tasks/cancel" => {
                self.change(task, "cancelled", &json!(true));
                server.write(&answer(id, "{}"));
            }
            "tasks/update" => {
                self.change(task, "word", &params["inputResponses"]["word"]);
                server.write(&answer(id, "{}"));
            }
            "tasks/result" => self.wait(server, id, task),
            _ => return false,
        }
        true
    }

    fn call(&self, server: &Server, id: &str, params: &Value, modern: bool) {
        let capabilities = &params["_meta"]["io.modelcontextprotocol/clientCapabilities"];
        let declared = &capabilities["extensions"]["io.modelcontextprotocol/tasks"];
        if modern && declared.is_null() {
            let needed =
                json!({"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
            return refuse(server, id, -32021, "a task is needed", &needed);
        }
        if !modern && params["task"].is_null() {
            return refuse(server, id, -32601, "a task is needed", &Value::Null);
        }
        let number = read_dir(&self.folder).map_or(0, Iterator::count);
        let task = format!("job-{number}");
        let arguments = &params["arguments"];
        let ready = now() + arguments["ms"].as_u64().unwrap_or_default();
        let word = if arguments["asks"] == true { Value::Null } else { json!("none") };
        self.write(&task, &json!({"ready": ready, "word": word}));
        let shown = self.shown(&task, &self.state(&task).unwrap_or_default(), modern);
        let result = if modern {
            let mut shown = shown;
            shown["resultType"] = json!("task");
            shown
        } else {
            json!({"task": shown})
        };
        server.write(&answer(id, &result.to_string()));
        if arguments["exits"] == true {
            exit(3);
        }
    }

    /// `tasks/result`: asks what the task needs to know, and waits for its end.
    fn wait(&self, server: &Arc<Server>, id: &str, task: &str) {
        let (tasks, server, id, task) =
            (Tasks::new(&self.folder), server.clone(), id.to_owned(), task.to_owned());
        thread::spawn(move || {
            if tasks.status(&tasks.state(&task).unwrap_or_default()) == "input_required" {
                let said =
                    server.ask("\"word\"", "elicitation/create", &json!({"message": "a word?"})).recv();
                let said: Value = serde_json::from_str(&said.unwrap_or_default()).unwrap_or_default();
                tasks.change(&task, "word", &said["result"]);
            }
            while tasks.status(&tasks.state(&task).unwrap_or_default()) == "working" {
                thread::sleep(Duration::from_millis(10));
            }
            let mut result = result(&tasks.state(&task).unwrap_or_default());
            result["_meta"] = json!({"io.modelcontextprotocol/related-task": {"taskId": task}});
            server.write(&answer(&id, &result.to_string()));
        });
    }

    fn status(&self, state: &Value) -> &'static str {
        if state["cancelled"] == true {
            "cancelled"
        } else if state["word"].is_null() {
            "input_required"
        } else if now() < state["ready"].as_u64().unwrap_or_default() {
            "working"
        } else {
            "completed"
        }
    }

    fn shown(&self, task: &str, state: &Value, modern: bool) -> Value {
        let status = self.status(state);
        let (ttl, poll) = if modern { ("ttlMs", "pollIntervalMs") } else { ("ttl", "pollInterval") };
        let mut shown = json!({
            "taskId": task, "status": status, "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", ttl: 60_000, poll: POLL,
        });
        if modern {
            shown["resultType"] = json!("complete");
            match status {
                "completed" => shown["result"] = result(state),
                "input_required" => {
                    let question = json!({"method": "elicitation/create", "params": {"message": "a word?"}});
                    shown["inputRequests"] = json!({"word": question});
                }
                _ => {}
            }
        }
        shown
    }

    fn state(&self, task: &str) -> Option<Value> {
        serde_json::from_str(&read_to_string(self.folder.join(task)).ok()?).ok()
    }

    fn change(&self, task: &str, name: &str, value: &Value) {
        if let Some(mut state) = self.state(task) {
            state[name] = value.clone();
            self.write(task, &state);
        }
    }

    /// Whoever reads it sees all of it or what was there before.
    fn write(&self, task: &str, state: &Value) {
        let aside = self.folder.with_extension(task);
        let _ = write(&aside, state.to_string());
        let _ = std::fs::rename(aside, self.folder.join(task));
    }
}

fn discovered() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
        "capabilities": {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
    })
}

fn result(state: &Value) -> Value {
    json!({"resultType": "complete", "content": [], "structuredContent": {"word": state["word"]}})
}

fn refuse(server: &Server, id: &str, code: i32, message: &str, data: &Value) {
    let error = json!({"code": code, "message": message, "data": data});
    server.write(&format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#));
}

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_millis() as u64)
}
