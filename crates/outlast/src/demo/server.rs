//! The demo's server: one tool that works for some seconds and says nothing meanwhile.

#![allow(clippy::disallowed_methods)] // slowness is what it is for

use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::time::Duration;

/// How long the tool works.
pub const WORK: Duration = Duration::from_secs(6);

/// Serves until its input closes.
pub fn run() -> io::Result<()> {
    for line in io::stdin().lock().lines() {
        let Ok(request) = serde_json::from_str::<Value>(&line?) else { continue };
        let Some(id) = request.get("id") else { continue };
        let result = match request["method"].as_str() {
            Some("initialize") => json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "demo", "version": env!("CARGO_PKG_VERSION")},
            }),
            Some("tools/list") => json!({"tools": [{
                "name": "build_project",
                "description": "works for some seconds and says nothing meanwhile",
                "inputSchema": {"type": "object"},
            }]}),
            Some("tools/call") => {
                std::thread::sleep(WORK);
                json!({"content": [{"type": "text", "text": "42 files built"}]})
            }
            Some("ping") => json!({}),
            _ => {
                let error = json!({"code": -32601, "message": "Method not found"});
                writeln!(io::stdout().lock(), "{}", json!({"jsonrpc": "2.0", "id": id, "error": error}))?;
                continue;
            }
        };
        writeln!(io::stdout().lock(), "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
    }
    Ok(())
}
