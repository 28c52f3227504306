//! Messages as the benchmark's driver writes them, read in one of two ways.
//!
//! Searching the raw bytes costs next to nothing, and is only right for such messages: no blanks
//! between tokens, `arguments` last, no member called `id`, `method` or `name` before the one that is
//! meant. A proxy may replace the id and add to `_meta`.
//!
//! Parsing costs what it costs every real server: the message is read as JSON, the answer written so.

use std::borrow::Cow;
use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use memchr::memchr2;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Results that are always the same. What only one era asks for is in all of them: to the other it
/// is a member like any unknown one.
pub const INITIALIZED: &[u8] = br#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"echo-server","version":"1"}}"#;
const DISCOVERED: &[u8] = br#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"echo-server","version":"1"}}}"#;
const TOOLS: [&[u8]; 2] =
    [br#"{"resultType":"complete","tools":["#, br#"],"ttlMs":0,"cacheScope":"private"}"#];

/// The result of a call that has nothing to say.
pub const NOTHING: &[u8] = br#"{"resultType":"complete","content":[]}"#;

/// What stands around the payload of an `echo`.
pub const ECHO: [&[u8]; 2] = [br#"{"resultType":"complete","content":[{"type":"text","text":""#, br#""}]}"#];

/// A message that is understood.
pub enum Message<'a> {
    Notification { cancels: bool },
    Request { id: &'a [u8], ask: Ask<'a> },
}

/// What a request wants.
pub enum Ask<'a> {
    Initialize,
    /// Anything else with always the same result.
    Same(&'static [u8]),
    /// Text as it stands in the message, escapes and all.
    Echo(&'a [u8]),
    /// Text that was parsed and must be written as JSON again.
    Say(Cow<'a, str>),
    Later(Duration),
    Never,
    Stats,
}

/// How much was seen.
#[derive(Default)]
pub struct Counts {
    pub calls: u64,
    pub cancelled: u64,
}

impl Counts {
    pub fn note(&mut self, message: &Message<'_>) {
        match message {
            Message::Notification { cancels } => self.cancelled += u64::from(*cancels),
            Message::Request { ask: Ask::Initialize | Ask::Same(_), .. } => {}
            Message::Request { .. } => self.calls += 1,
        }
    }

    /// The result of `stats`.
    pub fn result(&self) -> Vec<u8> {
        format!(
            r#"{{"resultType":"complete","content":[],"structuredContent":{{"cancelled":{},"calls":{}}}}}"#,
            self.cancelled, self.calls
        )
        .into_bytes()
    }
}

/// How messages are read.
pub enum Reader {
    Search(Box<Members>),
    Parse,
}

impl Reader {
    pub fn new(parse: bool) -> Reader {
        if parse { Reader::Parse } else { Reader::Search(Box::new(Members::new())) }
    }

    /// Reads a message; one that is not understood is an error, since it would spoil a figure.
    pub fn read<'a>(&self, text: &'a [u8]) -> io::Result<Message<'a>> {
        let message = match self {
            Reader::Search(members) => members.find(text),
            Reader::Parse => parse(text),
        };
        message.ok_or_else(|| strange(text))
    }
}

/// The list of tools: none, or with `ECHO_TOOLS` so many, of which the first is `echo`.
fn tools() -> &'static [u8] {
    static LIST: OnceLock<Vec<u8>> = OnceLock::new();
    LIST.get_or_init(|| {
        let count = std::env::var("ECHO_TOOLS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        let names =
            (0..count).map(|number| if number == 0 { "echo".into() } else { format!("tool_{number}") });
        let tools: Vec<String> = names.map(|name| tool(&name)).collect();
        let [before, after] = TOOLS;
        [before, tools.join(",").as_bytes(), after].concat()
    })
}

/// As long as the definition of a usual tool.
fn tool(name: &str) -> String {
    format!(
        concat!(
            r#"{{"name":"{}","description":"Takes a payload and gives it back as it was, so that what lies "#,
            r#"between can be measured.","inputSchema":{{"type":"object","properties":{{"payload":"#,
            r#"{{"type":"string","description":"any text"}}}},"required":["payload"]}}}}"#
        ),
        name
    )
}

/// Anything that is no call.
fn plain(method: &[u8]) -> Option<Ask<'static>> {
    match method {
        b"initialize" => Some(Ask::Initialize),
        b"server/discover" => Some(Ask::Same(DISCOVERED)),
        b"tools/list" => Some(Ask::Same(tools())),
        b"ping" => Some(Ask::Same(b"{}")),
        _ => None,
    }
}

fn notification<'a>(method: &[u8]) -> Option<Message<'a>> {
    let cancels = method == b"notifications/cancelled";
    method.starts_with(b"notifications/").then_some(Message::Notification { cancels })
}

/// Searchers for the members that matter, built once.
pub struct Members {
    id: Finder<'static>,
    method: Finder<'static>,
    name: Finder<'static>,
    payload: Finder<'static>,
    ms: Finder<'static>,
}

impl Members {
    fn new() -> Members {
        Members {
            id: Finder::new(br#""id":"#),
            method: Finder::new(br#""method":""#),
            name: Finder::new(br#""name":""#),
            payload: Finder::new(br#""payload":""#),
            ms: Finder::new(br#""ms":"#),
        }
    }

    fn find<'a>(&self, text: &'a [u8]) -> Option<Message<'a>> {
        let method = after(text, &self.method).and_then(string)?;
        if let Some(notification) = notification(method) {
            return Some(notification);
        }
        let id = after(text, &self.id).and_then(scalar)?;
        let ask = if method == b"tools/call" { self.call(text)? } else { plain(method)? };
        Some(Message::Request { id, ask })
    }

    fn call<'a>(&self, text: &'a [u8]) -> Option<Ask<'a>> {
        match after(text, &self.name).and_then(string)? {
            b"echo" => Some(Ask::Echo(after(text, &self.payload).and_then(string)?)),
            b"later" => {
                let ms = after(text, &self.ms).and_then(number)?;
                Some(Ask::Later(Duration::from_millis(ms)))
            }
            b"never" => Some(Ask::Never),
            b"stats" => Some(Ask::Stats),
            _ => None,
        }
    }
}

/// A message as a server's types describe it.
#[derive(Deserialize)]
struct Parsed<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow, default)]
    params: Params<'a>,
}

#[derive(Deserialize, Default)]
struct Params<'a> {
    #[serde(borrow, default)]
    name: Cow<'a, str>,
    #[serde(borrow, default)]
    arguments: Arguments<'a>,
}

#[derive(Deserialize, Default)]
struct Arguments<'a> {
    #[serde(borrow, default)]
    payload: Cow<'a, str>,
    #[serde(default)]
    ms: u64,
}

fn parse(text: &[u8]) -> Option<Message<'_>> {
    let Parsed { id, method, params } = serde_json::from_slice(text).ok()?;
    if let Some(notification) = notification(method.as_bytes()) {
        return Some(notification);
    }
    let id = id?.get().as_bytes();
    if method != "tools/call" {
        return Some(Message::Request { id, ask: plain(method.as_bytes())? });
    }
    let ask = match &*params.name {
        "echo" => Ask::Say(params.arguments.payload),
        "later" => Ask::Later(Duration::from_millis(params.arguments.ms)),
        "never" => Ask::Never,
        "stats" => Ask::Stats,
        _ => return None,
    };
    Some(Message::Request { id, ask })
}

/// The result of an `echo` that was parsed.
#[derive(Serialize)]
struct Said<'a> {
    #[serde(rename = "resultType")]
    result_type: &'a str,
    content: [Content<'a>; 1],
}

#[derive(Serialize)]
struct Content<'a> {
    r#type: &'a str,
    text: &'a str,
}

/// Room for what stands around a text.
const ENVELOPE: usize = 256;

/// The whole answer to an `echo` that was parsed.
pub fn say(id: &[u8], text: &str, out: &mut Vec<u8>) -> io::Result<()> {
    let said = Said { result_type: "complete", content: [Content { r#type: "text", text }] };
    out.reserve(text.len() + ENVELOPE);
    begin(id, out);
    serde_json::to_writer(&mut *out, &said)?;
    out.push(b'}');
    Ok(())
}

/// The front of an answer, up to the result; `}` ends it.
pub fn begin(id: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    out.extend_from_slice(id);
    out.extend_from_slice(br#","result":"#);
}

/// What follows the first occurrence of a member's name.
fn after<'a>(line: &'a [u8], member: &Finder<'_>) -> Option<&'a [u8]> {
    let at = member.find(line)?;
    Some(&line[at + member.needle().len()..])
}

/// A string without its quotes, escapes left as they are; `text` begins after the opening quote.
fn string(text: &[u8]) -> Option<&[u8]> {
    let mut at = 0;
    loop {
        at += memchr2(b'"', b'\\', text.get(at..)?)?;
        if text[at] == b'"' {
            return Some(&text[..at]);
        }
        at += 2;
    }
}

/// A number or a string with its quotes: whatever stands before the next member or the end.
fn scalar(text: &[u8]) -> Option<&[u8]> {
    Some(&text[..memchr2(b',', b'}', text)?])
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(scalar(text)?).ok()?.parse().ok()
}

fn strange(text: &[u8]) -> io::Error {
    let start = String::from_utf8_lossy(&text[..text.len().min(200)]);
    io::Error::other(format!("echo-server does not understand: {start}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A proxy may put its own id and a progress token into the request.
    #[test]
    fn members_are_found_behind_what_a_proxy_adds() {
        let text = br#"{"jsonrpc":"2.0","id":"o-7","method":"tools/call","params":{"_meta":{"progressToken":7},"name":"later","arguments":{"ms":250}}}"#;
        for reader in [Reader::new(false), Reader::new(true)] {
            let Ok(Message::Request { id, ask: Ask::Later(delay) }) = reader.read(text) else {
                panic!("not understood")
            };
            assert_eq!((id, delay), (&br#""o-7""#[..], Duration::from_millis(250)));
        }
    }

    #[test]
    fn what_is_not_understood_is_an_error() {
        let text = br#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#;
        for reader in [Reader::new(false), Reader::new(true)] {
            assert!(reader.read(text).is_err());
        }
    }

    #[test]
    fn parsed_text_comes_back_as_it_was() {
        let text = br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"payload":"a\"b\n"}}}"#;
        let Ok(Message::Request { id, ask: Ask::Say(said) }) = Reader::new(true).read(text) else {
            panic!("not understood")
        };
        let mut out = Vec::new();
        say(id, &said, &mut out).unwrap();
        let answer: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(answer["result"]["content"][0]["text"], "a\"b\n");
    }

    #[test]
    fn string_ends_at_the_first_quote_that_is_not_escaped() {
        assert_eq!(string(br#"a\"b\\","c""#), Some(&br#"a\"b\\"#[..]));
        assert_eq!(string(b"never closed\\"), None);
    }
}
