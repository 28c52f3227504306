//! The record of every message: time, direction, message, with secrets replaced.

use super::stderr::Stderr;
use crate::clock;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

/// Parts of keys whose values are not written down.
const SECRET: [&str; 11] = [
    "password",
    "passwd",
    "secret",
    "authorization",
    "apikey",
    "api_key",
    "api-key",
    "credential",
    "cookie",
    "privatekey",
    "private_key",
];

/// Where messages are recorded.
#[derive(Debug)]
pub enum Trace {
    /// To our stderr.
    Stderr,
    /// To a file.
    File(File),
}

impl Trace {
    /// Opens the record; `-` is stderr. A pipe that nobody reads is refused instead of waited for.
    pub fn open(path: &str) -> io::Result<Trace> {
        if path == "-" {
            return Ok(Trace::Stderr);
        }
        Ok(Trace::File(
            File::options()
                .create(true)
                .append(true)
                .mode(0o600)
                .custom_flags(nix::libc::O_NONBLOCK)
                .open(path)?,
        ))
    }

    /// Records one message.
    pub fn record(&mut self, stderr: &mut Stderr, direction: &str, message: &[u8]) {
        let message = match serde_json::from_slice(message) {
            Ok(value) => redact(value),
            // Without its structure nobody can tell which parts are secret.
            Err(_) => Value::String(format!("({} bytes that are not strict JSON)", message.len())),
        };
        let line = format!("{}\n", json!({"time": clock::timestamp(), "way": direction, "message": message}));
        match self {
            Trace::Stderr => stderr.line(line.as_bytes()),
            // A full disk must not cost a call; the record ends where it ends.
            Trace::File(file) => drop(file.write_all(line.as_bytes())),
        }
    }
}

fn redact(value: Value) -> Value {
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| {
                let value = if is_secret(&key) { json!("***") } else { redact(value) };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(redact).collect(),
        Value::String(text) => Value::String(redact_text(text)),
        other => other,
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase();
    let token = key.contains("token") && !key.contains("progresstoken") && !key.contains("tokens");
    token || SECRET.iter().any(|word| key.contains(word))
}

/// Texts that begin as well-known credentials do.
fn redact_text(text: String) -> String {
    const BEGINNINGS: [&str; 7] = ["Bearer ", "Basic ", "sk-", "ghp_", "github_pat_", "xoxb-", "AKIA"];
    if BEGINNINGS.iter().any(|beginning| text.starts_with(beginning)) { "***".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_tokens_of_progress_are_not() {
        let value = json!({"params": {
            "_meta": {"progressToken": 7}, "api_key": "k", "maxTokens": 5, "Authorization": "x",
            "list": [{"accessToken": "t"}], "header": "Bearer abc", "text": "hello", "password": null,
        }});
        let expected = json!({"params": {
            "_meta": {"progressToken": 7}, "api_key": "***", "maxTokens": 5, "Authorization": "***",
            "list": [{"accessToken": "***"}], "header": "***", "text": "hello", "password": "***",
        }});
        assert_eq!(redact(value), expected);
    }
}
