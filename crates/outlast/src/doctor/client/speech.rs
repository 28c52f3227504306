//! How a message looks in each era.

use crate::doctor::{LEGACY, META_CAPABILITIES, META_CLIENT, META_SERVER, META_VERSION, MODERN};
use serde_json::{Value, json};

/// The era of one request: modern ones say so themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

/// The older revisions, which differ in nothing that is said here.
const LEGACIES: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", LEGACY];

impl Era {
    pub fn of(params: &Value) -> Era {
        if params["_meta"].get(META_VERSION).is_some() { Era::Modern } else { Era::Legacy }
    }

    /// The line of an answer.
    pub fn answer(self, id: &Value, mut result: Value) -> Value {
        if self == Era::Modern {
            result["_meta"] = json!({META_SERVER: me()});
            if result.get("resultType").is_none() {
                result["resultType"] = "complete".into();
            }
        }
        json!({"jsonrpc": "2.0", "id": id, "result": result})
    }

    /// A result that modern clients may keep; here never.
    pub fn cacheable(self, mut result: Value) -> Value {
        if self == Era::Modern {
            result["ttlMs"] = 0.into();
            result["cacheScope"] = "private".into();
        }
        result
    }
}

/// Who a client says it is: name, version, capabilities.
pub fn introduction(params: &Value) -> (&Value, &Value) {
    match Era::of(params) {
        Era::Legacy => (&params["clientInfo"], &params["capabilities"]),
        Era::Modern => (&params["_meta"][META_CLIENT], &params["_meta"][META_CAPABILITIES]),
    }
}

/// The version of a modern request.
pub fn modern_version(params: &Value) -> Option<&str> {
    params["_meta"].get(META_VERSION).map(|version| version.as_str().unwrap_or_default())
}

/// What `initialize` answers: the version that was asked for, if it is one of ours.
pub fn initialized(params: &Value, instructions: &str) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = LEGACIES.iter().find(|version| **version == asked).unwrap_or(&LEGACY);
    json!({
        "protocolVersion": version,
        "capabilities": {"tools": {}},
        "serverInfo": me(),
        "instructions": instructions,
    })
}

/// What `server/discover` answers.
pub fn discovered(instructions: &str) -> Value {
    json!({"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "instructions": instructions})
}

/// A tool's result.
pub fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// The line of an error.
pub fn error(id: &Value, code: i32, message: &str, data: Value) -> Value {
    let mut error = json!({"code": code, "message": message});
    if !data.is_null() {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

fn me() -> Value {
    json!({"name": "outlast-doctor", "version": env!("CARGO_PKG_VERSION")})
}
