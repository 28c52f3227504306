//! The access log of a service: one line for each HTTP request, once it is answered.
//!
//! It says who asked for what and how that went. Nothing that could be used again is in it: no token, no session, no
//! query, no arguments; of a ticket in a path only the beginning.

use super::log::Format;
use super::record::{Record, Words};
use super::text::escape_up_to;
use outlast_engine::redact::without_tickets;
use outlast_engine::{Wall, limits};
use serde_json::{Value, json};
use std::io;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

/// Bytes of a path that are shown. More: cut.
const PATH: usize = 256;

/// One request and what became of it.
#[derive(Debug, Default)]
pub struct AccessEntry {
    /// Where it came from, if that is an address.
    pub address: Option<IpAddr>,
    /// The name of its token.
    pub principal: Option<Box<str>>,
    /// Of HTTP; nothing where no request could be read.
    pub http_method: Option<Box<str>>,
    /// Without the query.
    pub path: Option<Box<str>>,
    /// Of its message.
    pub method: Option<Box<str>>,
    /// The tool that is called.
    pub tool: Option<Box<str>>,
    /// Of the response.
    pub status: u16,
    /// Of the response, with its head.
    pub bytes: u64,
    /// From the request's head to the response's end.
    pub ms: u64,
}

/// The log, for all connections.
#[derive(Debug)]
pub struct AccessLog(Mutex<Record<Requests>>);

/// How a request becomes a line.
#[derive(Debug)]
pub struct Requests(Format);

impl AccessLog {
    /// Opens it; `-` is stderr.
    pub fn open(path: &str, format: Format) -> io::Result<AccessLog> {
        Ok(AccessLog(Mutex::new(Record::open(path, Requests(format))?)))
    }

    /// Writes a line, later. What is to be told of lines that are lost.
    pub fn take(&self, entry: AccessEntry) -> Option<String> {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        record.take(entry);
        record.lost(false).map(|lost| format!("access-log: {lost} lines were not written so far: {WHY}"))
    }

    /// Writes what is left, for a short while. What is to be told of lines that are lost.
    pub fn finish(&self) -> Option<String> {
        let mut record = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        record.finish();
        record.lost(true).map(|lost| format!("access-log: {lost} lines were not written: {WHY}"))
    }
}

const WHY: &str = "they cannot be written fast enough, or at all";

impl Words for Requests {
    type Item = AccessEntry;
    const NAME: &'static str = "access-log";

    fn size(entry: &AccessEntry) -> usize {
        let texts = [&entry.principal, &entry.http_method, &entry.path, &entry.method, &entry.tool];
        let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
        size_of::<AccessEntry>() + texts
    }

    fn line(&self, at: Wall, entry: AccessEntry) -> String {
        match self.0 {
            Format::Text => text_line(at, &entry),
            Format::Json => format!("{}\n", as_json(at, &entry)),
        }
    }

    fn lost(&self, at: Wall, count: u64) -> String {
        let time = at.timestamp();
        match self.0 {
            Format::Text => format!("{time} {count} lines were lost\n"),
            Format::Json => format!("{}\n", json!({"time": time, "lost": count})),
        }
    }
}

/// Fields with a blank between them; what is not there is `-`.
fn text_line(at: Wall, entry: &AccessEntry) -> String {
    let fields = [
        at.timestamp(),
        entry.address.map_or_else(|| "-".into(), |address| address.to_string()),
        field(&entry.principal, limits::NAME),
        field(&entry.http_method, limits::NAME),
        field(&entry.path, PATH),
        field(&entry.method, limits::NAME),
        field(&entry.tool, limits::NAME),
        entry.status.to_string(),
        entry.bytes.to_string(),
        format!("{}ms", entry.ms),
    ];
    fields.join(" ") + "\n"
}

fn field(text: &Option<Box<str>>, most: usize) -> String {
    text.as_deref().map_or_else(|| "-".into(), |text| shown(text, most).replace(' ', "\\u{20}"))
}

fn as_json(at: Wall, entry: &AccessEntry) -> Value {
    let text = |text: &Option<Box<str>>, most| text.as_deref().map(|text| shown(text, most));
    json!({
        "time": at.timestamp(),
        "address": entry.address,
        "principal": text(&entry.principal, limits::NAME),
        "httpMethod": text(&entry.http_method, limits::NAME),
        "path": text(&entry.path, PATH),
        "method": text(&entry.method, limits::NAME),
        "tool": text(&entry.tool, limits::NAME),
        "status": entry.status,
        "bytes": entry.bytes,
        "ms": entry.ms,
    })
}

/// Clients choose these texts.
fn shown(text: &str, most: usize) -> String {
    escape_up_to(&without_tickets(text), most).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry() -> AccessEntry {
        AccessEntry {
            address: Some([127, 0, 0, 1].into()),
            principal: Some("ana".into()),
            http_method: Some("POST".into()),
            path: Some("/mcp".into()),
            method: Some("tools/call".into()),
            tool: Some("two words\n".into()),
            status: 200,
            bytes: 512,
            ms: 34,
        }
    }

    #[test]
    fn a_request_is_one_line_whatever_its_names_are() {
        let line = Requests(Format::Text).line(Wall(0), entry());
        let rest = "127.0.0.1 ana POST /mcp tools/call two\\u{20}words\\u{a} 200 512 34ms\n";
        assert_eq!(line.split_once(' ').unwrap().1, rest);
        let nothing =
            Requests(Format::Text).line(Wall(0), AccessEntry { status: 400, ..AccessEntry::default() });
        assert_eq!(nothing.split_once(' ').unwrap().1, "- - - - - - 400 0 0ms\n");
    }

    #[test]
    fn a_request_is_one_object_for_programs() {
        let line = Requests(Format::Json).line(Wall(0), entry());
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["address"], &line["tool"]), (&json!("127.0.0.1"), &json!("two words\\u{a}")));
        assert_eq!((&line["status"], &line["bytes"], &line["ms"]), (&json!(200), &json!(512), &json!(34)));
    }

    #[test]
    fn nobody_fetches_an_answer_with_a_path() {
        let path = format!("/outlast/api/tasks/{}/cancel", "0a".repeat(16));
        let line = text_line(Wall(0), &AccessEntry { path: Some(path.into()), ..AccessEntry::default() });
        assert!(line.contains(" /outlast/api/tasks/0a0a0a0a…/cancel "), "{line}");
    }
}
