//! What the access log is told of each request. Without the log nothing here is looked at.

use super::Door;
use super::connection::Connection;
use crate::clock;
use crate::http1::head::Request;
use crate::observe::access::AccessEntry;
use http::{StatusCode, Uri};
use outlast_engine::method::Method;
use outlast_engine::wire::{Field, Refused, Scanned};
use std::net::IpAddr;
use std::time::Instant;

/// The status of a request whose client left before there was a response, as nginx writes it.
pub const LEFT: u16 = 499;

/// A request that is being answered.
#[derive(Debug)]
pub struct Line {
    since: Instant,
    entry: AccessEntry,
}

/// What a message asks for.
#[derive(Debug, PartialEq, Eq)]
pub struct Asked {
    method: Option<Box<str>>,
    tool: Option<Box<str>>,
}

impl Asked {
    /// By what came in a body.
    pub fn of(line: &Result<Scanned, Refused>) -> Asked {
        let method = match line {
            Ok(Scanned::Message(message)) => message.text(Field::Method),
            Ok(Scanned::Batch(_)) => Some("batch".into()),
            Err(_) => None,
        };
        let tool = match line {
            Ok(Scanned::Message(message)) if Method::of(message) == Method::ToolsCall => {
                message.text(Field::ParamsName)
            }
            _ => None,
        };
        Asked { method: method.map(Into::into), tool: tool.map(Into::into) }
    }
}

impl Door {
    /// Begins the line of a request, or of something that could not be read.
    pub(super) fn begin_line(&self, request: Option<&Request>, from: Option<IpAddr>) -> Option<Box<Line>> {
        self.access.as_ref()?;
        let principal = request.and_then(|request| self.doorman.principal(&request.fields).ok().flatten());
        let entry = AccessEntry {
            address: from,
            principal,
            http_method: request.map(|request| request.method.as_str().into()),
            path: request.and_then(|request| path(&request.target)),
            ..AccessEntry::default()
        };
        Some(Box::new(Line { since: clock::monotonic(), entry }))
    }

    /// Writes it, now that the request is answered.
    pub(super) fn end_line(&self, line: Option<Box<Line>>, connection: &mut Connection, status: StatusCode) {
        if let Some(line) = line {
            self.write_line(*line, connection, status.as_u16());
        }
    }

    /// The same for a request whose client left.
    pub(super) fn end_line_of_who_left(&self, line: Option<Box<Line>>, connection: &mut Connection) {
        if let Some(line) = line {
            self.write_line(*line, connection, LEFT);
        }
    }

    #[cold]
    fn write_line(&self, Line { since, entry }: Line, connection: &mut Connection, status: u16) {
        let (bytes, asked) = connection.what_was_asked();
        let (method, tool) = asked.map_or((None, None), |asked| (asked.method, asked.tool));
        let ms = u64::try_from(clock::monotonic().saturating_duration_since(since).as_millis())
            .unwrap_or(u64::MAX);
        self.log_access(AccessEntry { method, tool, status, bytes, ms, ..entry });
    }

    /// Passes a line on, and tells the log if lines are lost.
    #[cold]
    pub(super) fn log_access(&self, entry: AccessEntry) {
        if let Some(told) = self.access.as_ref().and_then(|access| access.take(entry)) {
            self.driver.warn("access-log-lost", told);
        }
    }

    /// Writes what is left of the log.
    pub(super) fn finish_access(&self) {
        if let Some(told) = self.access.as_ref().and_then(|access| access.finish()) {
            self.driver.warn("access-log-lost", told);
        }
    }
}

/// What is asked for, without its query.
fn path(target: &str) -> Option<Box<str>> {
    if target.starts_with('/') {
        return target.split('?').next().map(Into::into);
    }
    target.parse::<Uri>().ok().map(|uri| uri.path().into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use outlast_engine::wire::scan;

    #[test]
    fn a_query_is_not_part_of_a_path() {
        assert_eq!(path("/mcp?token=x"), Some("/mcp".into()));
        assert_eq!(path("http://me:pw@host/mcp?token=x"), Some("/mcp".into()));
        assert_eq!(path("\\"), None);
    }

    #[test]
    fn a_message_says_what_it_asks_for() {
        let asked = |text: &'static str| {
            let asked = Asked::of(&scan(text.into()));
            (asked.method.unwrap_or_default(), asked.tool.unwrap_or_default())
        };
        let pair = |method: &str, tool: &str| (method.into(), tool.into());
        let call = r#"{"jsonrpc":"2.0","id":1,"method":"tools\/call","params":{"name":"say \"x\""}}"#;
        assert_eq!(asked(call), pair("tools/call", "say \"x\""));
        let get = r#"{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}"#;
        assert_eq!(asked(get), pair("prompts/get", ""));
        assert_eq!(asked(r#"[{"jsonrpc":"2.0","method":"x"}]"#), pair("batch", ""));
        assert_eq!(asked("{"), pair("", ""));
    }
}
