//! The messages of the benchmark, written and read as raw bytes.
//!
//! The echo server and this driver both skip JSON parsing: what they cost is in both sides of every
//! ratio. The shapes are fixed (no blanks, `arguments` last), which the echo server relies on.

use std::io::Write;

use anyhow::{Context, Result};
use memchr::memmem;

pub const INITIALIZED: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

pub fn initialize(id: u64) -> Vec<u8> {
    format!(
        concat!(
            r#"{{"jsonrpc":"2.0","id":{},"method":"initialize","params":{{"protocolVersion":"2025-11-25","#,
            r#""capabilities":{{}},"clientInfo":{{"name":"bench","version":"1"}}}}}}"#,
            "\n"
        ),
        id
    )
    .into_bytes()
}

pub fn list_tools(id: u64) -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/list\"}}\n").into_bytes()
}

/// The two ways to speak the protocol.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Era {
    Legacy,
    Modern,
}

impl Era {
    pub const ALL: [Era; 2] = [Era::Legacy, Era::Modern];

    pub fn version(self) -> &'static str {
        match self {
            Era::Legacy => "2025-11-25",
            Era::Modern => "2026-07-28",
        }
    }
}

/// What a modern request says about its client. After `name`, which the echo server looks for.
const MODERN_META: &str = concat!(
    r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","#,
    r#""io.modelcontextprotocol/clientInfo":{"name":"bench","version":"1"},"#,
    r#""io.modelcontextprotocol/clientCapabilities":{}},"#
);

/// A `tools/call` of which only the id changes from call to call.
pub struct Call {
    pub tool: String,
    rest: Vec<u8>,
}

impl Call {
    /// `arguments` is a JSON object.
    pub fn new(tool: &str, arguments: &str) -> Call {
        Call::of(Era::Legacy, tool, arguments)
    }

    pub fn of(era: Era, tool: &str, arguments: &str) -> Call {
        let meta = match era {
            Era::Legacy => "",
            Era::Modern => MODERN_META,
        };
        let rest =
            format!(r#","method":"tools/call","params":{{"name":"{tool}",{meta}"arguments":{arguments}}}}}"#);
        let mut rest = rest.into_bytes();
        rest.push(b'\n');
        Call { tool: tool.to_owned(), rest }
    }

    /// A call of `echo` with this many bytes there and back.
    pub fn echo(size: usize) -> Call {
        Call::echo_of(Era::Legacy, size)
    }

    pub fn echo_of(era: Era, size: usize) -> Call {
        Call::of(era, "echo", &format!(r#"{{"payload":"{}"}}"#, "x".repeat(size)))
    }

    pub fn append(&self, id: u64, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
        // Writing to a vector cannot fail.
        let _ = write!(out, "{id}");
        out.extend_from_slice(&self.rest);
    }
}

/// The id of an answer; a message without one is a mistake, since we ask for nothing else.
pub fn id_of(line: &[u8]) -> Result<u64> {
    number_after(line, br#""id":"#).with_context(|| format!("not an answer to a call: {}", start_of(line)))
}

/// Told from an error by `result`, which stands early: looking for `error` in a good answer of
/// 10 MB would search all of it.
pub fn is_result(line: &[u8]) -> bool {
    memmem::find(line, br#""result":"#).is_some()
}

/// The number after the first occurrence of `member`.
pub fn number_after(line: &[u8], member: &[u8]) -> Option<u64> {
    let at = memmem::find(line, member)? + member.len();
    let digits = line[at..].iter().take_while(|byte| byte.is_ascii_digit());
    let mut digits = digits.peekable();
    digits.peek()?;
    digits.try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// As much of a message as an error should show.
pub fn start_of(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(200)]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_is_one_line_of_json_with_its_id() {
        let mut line = Vec::new();
        Call::echo(3).append(17, &mut line);
        assert_eq!(line.pop(), Some(b'\n'));
        let value: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(value["id"], 17);
        assert_eq!(value["params"]["arguments"]["payload"], "xxx");
        assert_eq!(id_of(&line).unwrap(), 17);
    }

    #[test]
    fn id_that_is_no_number_is_refused() {
        assert!(id_of(br#"{"jsonrpc":"2.0","id":"7","result":{}}"#).is_err());
        assert!(id_of(br#"{"jsonrpc":"2.0","method":"notifications/progress"}"#).is_err());
    }
}
