//! The record of every message: time, direction, message, with secrets replaced.

use super::record::{Record, Words};
use bytes::Bytes;
use outlast_engine::Wall;
use outlast_engine::redact::redact_for_record;
use outlast_engine::settings::Glob;
use outlast_engine::wire::Outgoing;
use serde_json::{Value, json};
use std::io;

/// Up to here a message is copied, so that it does not hold the buffer that it was read into.
const COPIED: usize = 16 << 10;

/// Where messages are recorded.
pub type Trace = Record<Messages>;

/// How a message becomes a line.
#[derive(Debug)]
pub struct Messages {
    /// Keys whose values a person wants left out.
    redact: Vec<Glob>,
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

impl Words for Messages {
    type Item = (Way, Outgoing);
    const NAME: &'static str = "trace";

    fn size((_, message): &(Way, Outgoing)) -> usize {
        message.len()
    }

    fn line(&self, at: Wall, (way, message): (Way, Outgoing)) -> String {
        show(at, way, &message.to_vec(), &self.redact)
    }

    fn lost(&self, at: Wall, count: u64) -> String {
        format!("{}\n", json!({"time": at.timestamp(), "lost": count}))
    }
}

/// Opens the record of messages. Values of keys that `redact` names are left out, too.
pub fn open(path: &str, redact: Vec<Glob>) -> io::Result<Trace> {
    Record::open(path, Messages { redact })
}

impl Trace {
    /// Records one message. Never waits.
    pub fn record(&mut self, way: Way, message: &Outgoing) {
        let kept = match message.len() {
            0..=COPIED => Outgoing::plain(message.to_vec()),
            _ => message.clone(),
        };
        self.take((way, kept));
    }

    /// The same for bytes that pass unchanged.
    pub fn record_bytes(&mut self, way: Way, message: &Bytes) {
        self.record(way, &Outgoing::plain(message.clone()));
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

    #[test]
    fn a_message_over_http_says_with_which_request_and_status_it_came() {
        let way = Way { exchange: Some(7), status: Some(404), ..Way::plain("client>") };
        let line: Value = serde_json::from_str(&show(Wall(0), way, b"1", &[])).unwrap();
        assert_eq!(
            (&line["exchange"], &line["status"], &line["message"]),
            (&json!(7), &json!(404), &json!(1))
        );
    }
}
