//! The record of every message: time, direction, message, with secrets replaced.
//!
//! Nobody waits for it: a thread of its own puts messages into words and writes them, made when there is first
//! something to write. What it cannot write in time waits, up to a bound ([`MOST`]); more is lost, and the
//! record and the log say how much.

use super::backlog::{Backlog, Next};
use super::stderr;
use crate::clock;
use crate::sys::files;
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::redact::redact_for_record;
use outlast_engine::settings::Glob;
use outlast_engine::wire::Outgoing;
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of messages that may wait. One message may be as long as it is; beside it no other is taken.
const MOST: usize = 16 << 20;

/// Up to here a message is copied, so that it does not hold the buffer that it was read into.
const COPIED: usize = 16 << 10;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_secs(1);

/// Where messages are recorded.
#[derive(Debug)]
pub struct Trace {
    messages: Arc<Backlog<Message>>,
    /// Until the thread runs: where it writes, and the keys whose values a person wants left out.
    target: Option<(Target, Vec<Glob>)>,
    /// How many lost messages have been told of.
    told: u64,
}

#[derive(Debug)]
enum Target {
    Stderr,
    File(File),
}

/// A message on its way.
#[derive(Debug)]
struct Message {
    time: Wall,
    way: Way,
    bytes: Outgoing,
}

/// Which way a message went.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// `client>`, `>client`, `server>`, `>server`.
    pub direction: &'static str,
    /// The HTTP exchange with a client, as a number.
    pub exchange: Option<u64>,
    /// The HTTP status that it came with, if that is no success.
    pub status: Option<u16>,
}

impl Way {
    /// On a pipe, or wherever nothing more is to be said.
    pub const fn plain(direction: &'static str) -> Way {
        Way { direction, exchange: None, status: None }
    }
}

impl Trace {
    /// Opens the record; `-` is stderr. A pipe that nobody reads is refused instead of waited for. Values of keys that
    /// `redact` names are left out, too.
    pub fn open(path: &str, redact: Vec<Glob>) -> io::Result<Trace> {
        let target = match path {
            "-" => Target::Stderr,
            path => Target::File(files::open_record(path)?),
        };
        Ok(Trace::to(target, redact))
    }

    fn to(target: Target, redact: Vec<Glob>) -> Trace {
        Trace { messages: Arc::new(Backlog::new(MOST, 1)), target: Some((target, redact)), told: 0 }
    }

    /// Records one message. Never waits.
    pub fn record(&mut self, way: Way, message: &Outgoing) {
        let length = message.len();
        let bytes = match length {
            0..=COPIED => Outgoing::plain(message.to_vec()),
            _ => message.clone(),
        };
        self.messages.push(Message { time: clock::wall(), way, bytes }, length);
        if let Some((target, redact)) = self.target.take() {
            let messages = self.messages.clone();
            let thread = std::thread::Builder::new().name("trace".into());
            // Without a thread the bound is reached, and that is told.
            let _ = thread.spawn(move || write_all(&messages, target, &redact));
        }
    }

    /// The same for bytes that pass unchanged.
    pub fn record_bytes(&mut self, way: Way, message: &Bytes) {
        self.record(way, &Outgoing::plain(message.clone()));
    }

    /// How many messages are lost, if that is to be told: the first time, and at the end.
    pub fn lost(&mut self, at_the_end: bool) -> Option<u64> {
        let lost = self.messages.lost();
        let news = if at_the_end { lost > self.told } else { self.told == 0 && lost > 0 };
        self.told = if news { lost } else { self.told };
        news.then_some(lost)
    }

    /// Waits a short while for what is left; what is not written then is lost.
    pub fn finish(&mut self) {
        if self.target.is_none() {
            self.messages.finish(LAST);
        }
    }
}

/// What the thread does, for ever.
fn write_all(messages: &Backlog<Message>, mut target: Target, redact: &[Glob]) {
    loop {
        let Next { gap, item } = messages.next();
        if gap > 0 {
            let time = item.as_ref().map_or_else(clock::wall, |message| message.time);
            let _ = target.write(&format!("{}\n", json!({"time": time.timestamp(), "lost": gap})));
        }
        let Some(Message { time, way, bytes }) = item else { continue };
        // A full disk must not cost a call; what is lost is counted.
        if target.write(&show(time, way, &bytes.to_vec(), redact)).is_err() {
            messages.lose(1);
        }
    }
}

impl Target {
    fn write(&mut self, line: &str) -> io::Result<()> {
        match self {
            Target::Stderr => stderr::try_write(line.as_bytes()),
            Target::File(file) => file.write_all(line.as_bytes()),
        }
    }
}

fn show(time: Wall, way: Way, message: &[u8], redact: &[Glob]) -> String {
    let message = match serde_json::from_slice(message) {
        Ok(value) => redact_for_record(value, redact),
        // Without its structure nobody can tell which parts are secret.
        Err(_) => Value::String(format!("({} bytes that are not strict JSON)", message.len())),
    };
    let mut line = json!({"time": time.timestamp(), "way": way.direction, "message": message});
    if let (Some(exchange), Some(members)) = (way.exchange, line.as_object_mut()) {
        members.insert("exchange".into(), exchange.into());
    }
    if let (Some(status), Some(members)) = (way.status, line.as_object_mut()) {
        members.insert("status".into(), status.into());
    }
    format!("{line}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    const CLIENT: Way = Way::plain("client>");

    fn lines(reader: impl io::Read) -> impl Iterator<Item = Value> {
        BufReader::new(reader).lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }

    /// Whoever reads a pipe late holds nobody up, and learns how much is missing.
    #[test]
    fn what_cannot_be_written_in_time_is_lost_and_counted() {
        let (reader, writer) = io::pipe().unwrap();
        let mut trace = Trace::to(Target::File(File::from(std::os::fd::OwnedFd::from(writer))), Vec::new());
        let large = Bytes::from(format!("\"{}\"", "x".repeat(MOST / 4)));
        for _ in 0..20 {
            trace.record_bytes(CLIENT, &large);
        }
        let lost = trace.lost(false).expect("not all of it fits");
        assert!((14..=17).contains(&lost), "{lost}");
        assert_eq!(trace.lost(false), None, "it is told once");
        let mut lines = lines(reader);
        for _ in 0..20 - lost {
            assert_eq!(lines.next().unwrap()["way"], "client>");
        }
        assert_eq!(lines.next().unwrap()["lost"], lost);
        trace.record_bytes(Way { exchange: Some(7), status: Some(404), ..CLIENT }, &Bytes::from_static(b"1"));
        let last = lines.next().unwrap();
        assert_eq!(
            (&last["exchange"], &last["status"], &last["message"]),
            (&json!(7), &json!(404), &json!(1))
        );
        trace.finish();
        assert_eq!(trace.lost(true), None);
    }

    /// The end does not wait for ever, and what is left then is lost.
    #[test]
    fn a_reader_that_never_reads_does_not_keep_us_from_ending() {
        let (_reader, writer) = io::pipe().unwrap();
        let mut trace = Trace::to(Target::File(File::from(std::os::fd::OwnedFd::from(writer))), Vec::new());
        for _ in 0..3 {
            trace.record_bytes(CLIENT, &Bytes::from(format!("\"{}\"", "x".repeat(1 << 20))));
        }
        trace.finish();
        assert_eq!(trace.lost(true), Some(2), "the first one is being written");
    }
}
