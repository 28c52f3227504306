//! One tool call: what was asked, and the ways to answer.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use serde_json::{Value, from_str, json};

use super::server::{Members, Server, answer};

pub struct Call {
    pub server: Arc<Server>,
    /// Raw JSON, as it came.
    pub id: String,
    /// Raw JSON, as it came.
    pub token: Option<String>,
    pub tool: String,
    arguments: Value,
    /// The arguments as they stood in the line.
    pub raw_arguments: String,
    /// The whole line.
    pub line: String,
}

impl Call {
    pub fn new(server: Arc<Server>, id: String, members: &Members, line: String) -> Call {
        let inside = |members: &Members, key: &str| -> Option<Members> {
            members.get(key).and_then(|raw| from_str(raw.get()).ok())
        };
        let params = inside(members, "params").unwrap_or_default();
        let token = inside(&params, "_meta").and_then(|mut meta| meta.remove("progressToken"));
        let tool = params.get("name").and_then(|raw| from_str(raw.get()).ok());
        let raw_arguments = params.get("arguments").map_or("null", |raw| raw.get()).to_owned();
        Call {
            server,
            id,
            token: token.map(|raw| raw.get().to_owned()),
            tool: tool.unwrap_or_default(),
            arguments: from_str(&raw_arguments).unwrap_or_default(),
            raw_arguments,
            line,
        }
    }

    pub fn number(&self, name: &str) -> u64 {
        self.arguments[name].as_u64().unwrap_or_default()
    }

    /// An argument, or nothing.
    pub fn text(&self, name: &str) -> &str {
        self.arguments[name].as_str().unwrap_or_default()
    }

    pub fn value(&self, name: &str) -> &Value {
        &self.arguments[name]
    }

    /// Waits for as many milliseconds as an argument says.
    pub fn rest(&self, name: &str) {
        thread::sleep(Duration::from_millis(self.number(name)));
    }

    /// Answers with a value.
    pub fn give(&self, value: &Value) {
        self.give_raw(&value.to_string());
    }

    /// Answers with a value that is written as it is.
    pub fn give_raw(&self, value: &str) {
        self.give_under(&self.id, value);
    }

    /// The same under another raw id.
    pub fn give_under(&self, id: &str, value: &str) {
        let result = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
        self.server.write(&answer(id, &result));
    }

    /// Answers that all went well.
    pub fn done(&self) {
        self.give(&json!("done"));
    }

    /// Reports progress under a raw token.
    pub fn report(&self, token: &str, progress: &Value) {
        self.report_with(token, progress, "step");
    }

    /// The same with these words.
    pub fn report_with(&self, token: &str, progress: &Value, words: &str) {
        self.server.write(&format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{progress},"total":1000,"message":"{words}"}}}}"#
        ));
    }
}
