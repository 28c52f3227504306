//! The conversation with one process: requests, answers, and a note of every line that is odd.
//!
//! Not here: which requests are made (`visit.rs`, `lists.rs`), what is odd about a note (`odd.rs`).

use super::bounds;
use super::noted::Noted;
use super::process::{Heard, Lab};
use crate::doctor::{LEGACY, META_CAPABILITIES, META_CLIENT, META_VERSION, MODERN, glimpse};
use crate::sys::report::Report;
use bytes::Bytes;
use outlast_engine::Mono;
use outlast_engine::event::Exit;
use outlast_engine::limits::LAST_OUTPUT;
use outlast_engine::wire::{self, Field, Message, Refused, Scanned, Shape};
use serde_json::{Value, from_slice, json};
use std::time::Duration;

/// How a request went.
#[derive(Debug)]
pub enum Reply {
    Result(Value),
    Error(i64, String, Value),
    /// An answer that is not strict JSON.
    Unreadable,
    Silence,
    /// The process ended or closed its output.
    Ended(Option<Exit>),
}

/// A reply, and what it cost.
#[derive(Debug)]
pub struct Answer {
    pub reply: Reply,
    pub took: Duration,
    pub bytes: usize,
}

/// An answer as it was said; no value if only a tolerant reader understands it.
struct Said {
    value: Option<Value>,
    bytes: usize,
}

/// Which handshake, which `_meta`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
}

pub struct Talk<'a> {
    pub lab: &'a mut Lab,
    pub era: Era,
    pub began: Mono,
    /// When anything was first answered, from the start on.
    pub first_answer: Option<Duration>,
    noted: &'a mut Noted,
    last_id: u64,
    /// The id that is waited for, and its answer.
    waiting: Option<Value>,
    said: Option<Said>,
    exit: Option<Exit>,
    closed: bool,
    stderr_closed: bool,
}

impl<'a> Talk<'a> {
    /// With the process that was just started.
    pub fn begin(lab: &'a mut Lab, noted: &'a mut Noted, era: Era) -> Talk<'a> {
        let began = lab.now();
        Talk {
            lab,
            era,
            began,
            first_answer: None,
            noted,
            last_id: 0,
            waiting: None,
            said: None,
            exit: None,
            closed: false,
            stderr_closed: false,
        }
    }

    /// How the process ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Listens for a while without saying anything.
    pub fn listen(&mut self, time: Duration) {
        let until = self.lab.now() + time;
        while self.hear(until) {}
    }

    /// Listens until the process has ended; false if that takes too long.
    pub fn listen_to_the_end(&mut self, until: Mono) -> bool {
        while self.exit.is_none() && self.hear(until) {}
        self.exit.is_some()
    }

    /// Listens until nothing can come any more. A process that was left behind may hold the streams
    /// open, so that is bounded.
    pub fn listen_out(&mut self) {
        let until = self.lab.now() + LAST_OUTPUT;
        while !(self.closed && self.stderr_closed && self.exit.is_some()) && self.hear(until) {}
    }

    pub fn tell(&mut self, method: &str) {
        self.lab.send(&json!({"jsonrpc": "2.0", "method": method}));
    }

    /// The parameters of `initialize`, or what every modern request carries.
    pub fn handshake(&self) -> Value {
        let me = json!({"name": "outlast-doctor", "version": env!("CARGO_PKG_VERSION")});
        match self.era {
            Era::Legacy => json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": me}),
            Era::Modern => {
                json!({"_meta": {META_VERSION: MODERN, META_CAPABILITIES: {}, META_CLIENT: me}})
            }
        }
    }

    /// The parameters of any other request, before anything of its own.
    pub fn params(&self) -> Value {
        if self.era == Era::Modern { self.handshake() } else { json!({}) }
    }

    pub fn ask(&mut self, method: &str, params: &Value, wait: Duration) -> Answer {
        self.last_id += 1;
        self.ask_as(&json!(self.last_id), method, params, wait)
    }

    /// The same with an id that is a string of digits.
    pub fn ask_with_string_id(&mut self, method: &str, params: &Value, wait: Duration) -> Answer {
        self.last_id += 1;
        self.ask_as(&json!(self.last_id.to_string()), method, params, wait)
    }

    fn ask_as(&mut self, id: &Value, method: &str, params: &Value, wait: Duration) -> Answer {
        let sent = self.lab.now();
        self.lab.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        self.waiting = Some(id.clone());
        let said = self.wait_for_answer(sent + wait);
        self.waiting = None;
        let now = self.lab.now();
        if said.is_some() {
            self.first_answer.get_or_insert(now.since(self.began));
        }
        let bytes = said.as_ref().map_or(0, |said| said.bytes);
        Answer { reply: self.reply(said), took: now.since(sent), bytes }
    }

    fn wait_for_answer(&mut self, mut until: Mono) -> Option<Said> {
        loop {
            if self.said.is_some() {
                return self.said.take();
            }
            if self.closed && self.exit.is_some() {
                return None;
            }
            if self.is_over() {
                // What it wrote last may still be on its way, and so may the news of its end.
                until = until.min(self.lab.now() + LAST_OUTPUT);
            }
            if !self.hear(until) {
                return None;
            }
        }
    }

    fn reply(&self, said: Option<Said>) -> Reply {
        match said {
            None if self.is_over() => Reply::Ended(self.exit),
            None => Reply::Silence,
            Some(Said { value: None, .. }) => Reply::Unreadable,
            Some(Said { value: Some(value), .. }) => read_answer(value),
        }
    }

    fn is_over(&self) -> bool {
        self.exit.is_some() || self.closed
    }

    /// Takes one thing that comes; false if nothing did in time.
    fn hear(&mut self, until: Mono) -> bool {
        let Some(heard) = self.lab.next(until) else { return false };
        match heard {
            Heard::Line(line) => self.take_line(&line),
            Heard::TooLong => self.noted.too_long += 1,
            Heard::Closed => self.closed = true,
            Heard::Stderr(bytes) => {
                self.stderr_closed = bytes.is_empty();
                self.noted.take_stderr(&bytes);
            }
            Heard::Report(Report::Exited(exit)) => self.exit = Some(exit),
            Heard::Report(_) => {}
        }
        true
    }

    fn take_line(&mut self, line: &Bytes) {
        if self.last_id == 0 {
            self.noted.early.add(line);
        }
        match wire::scan(line.clone()) {
            Ok(Scanned::Message(message)) => self.take(&message, true),
            Ok(Scanned::Batch(members)) => members.iter().for_each(|member| match member {
                Ok(message) => self.take(message, true),
                Err(refused) => self.take_refused(refused),
            }),
            Err(refused) => self.take_refused(&refused),
        }
    }

    fn take_refused(&mut self, refused: &Refused) {
        if let Some(message) = self.noted.take_refused(refused) {
            self.take(&message, false);
        }
    }

    fn take(&mut self, message: &Message, strict: bool) {
        match message.shape {
            Shape::Notification => {}
            Shape::Request => self.answer(message),
            Shape::Answer if self.is_awaited(message) => {
                // What is strict and still no tree nests too deep or counts too far for most readers.
                let value = strict.then(|| from_slice(&message.bytes).ok()).flatten();
                self.said = Some(Said { value, bytes: message.bytes.len() });
            }
            // To what is no longer waited for.
            Shape::Answer => {}
        }
    }

    /// Whether this answers what is waited for. An id in another JSON type, and an error without
    /// one, are taken and noted.
    fn is_awaited(&mut self, answer: &Message) -> bool {
        let Some(id) = &self.waiting else { return false };
        let got: Value = answer.raw(Field::Id).and_then(|raw| from_slice(raw).ok()).unwrap_or_default();
        if got == *id {
            return true;
        }
        if got.is_null() && answer.has(Field::Error) {
            self.noted.no_ids.add(&answer.bytes);
            return true;
        }
        let bare = |id: &Value| id.as_str().map_or_else(|| id.to_string(), str::to_owned);
        let same = bare(&got) == bare(id) || got.as_f64().is_some_and(|got| id.as_f64() == Some(got));
        if same {
            self.noted.ids.add(format!("{id} came back as {got}").as_bytes());
        }
        same
    }

    /// We declared nothing, so a server may only ask whether we are there.
    fn answer(&self, request: &Message) {
        let id: Value = request.raw(Field::Id).and_then(|raw| from_slice(raw).ok()).unwrap_or_default();
        if request.text(Field::Method).as_deref() == Some("ping") {
            return self.lab.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        }
        let error = json!({"code": -32601, "message": "outlast doctor declared no capabilities"});
        self.lab.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }
}

/// Reads what a stranger wrote: an error may be anything, and one that is null beside a result is none.
fn read_answer(answer: Value) -> Reply {
    let Value::Object(mut members) = answer else { return Reply::Unreadable };
    let result = members.remove("result");
    let error = members.remove("error").filter(|error| !(error.is_null() && result.is_some()));
    let Some(error) = error else { return Reply::Result(result.unwrap_or_default()) };
    let message = error.get("message").unwrap_or(&error);
    let message = message.as_str().map_or_else(|| message.to_string(), str::to_owned);
    let code = error.get("code").and_then(Value::as_i64).unwrap_or(0);
    let data = error.get("data").cloned().unwrap_or_default();
    Reply::Error(code, glimpse(message.as_bytes(), bounds::SHOWN), data)
}
