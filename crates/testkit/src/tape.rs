//! What peers and the engine said in one world, for the check against the protocol's schemas.
//!
//! Written only if `OUTLAST_TAPES` names a folder: a file for each world, a line for each message, in the
//! order in which they passed. `cargo xtask schema` sets it and reads the files.
//!
//! Not here: which schema a message must fit (`tests/schema/validate.mjs`).

use outlast_engine::event::Line;
use outlast_engine::http::{Body, Trouble};
use outlast_engine::wire::{Message, Refused, Scanned};
use outlast_engine::{Action, Event};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Worlds of this process so far; each has a file of its own.
static WORLDS: AtomicU32 = AtomicU32::new(0);

/// The messages of one world; written when the world ends.
#[derive(Debug)]
pub struct Tape {
    /// `None`: nobody wants to read it.
    file: Option<PathBuf>,
    text: String,
    /// Lines of streams that are not whole yet: a long event comes in several pieces.
    begun: BTreeMap<u64, Vec<u8>>,
}

impl Default for Tape {
    #[allow(clippy::disallowed_methods)] // the ban is for the product, and `cargo test` passes nothing else on
    fn default() -> Self {
        let file = std::env::var_os("OUTLAST_TAPES").map(|folder| {
            let name = format!("{}-{}.jsonl", std::process::id(), WORLDS.fetch_add(1, Ordering::Relaxed));
            PathBuf::from(folder).join(name)
        });
        Tape { file, text: String::new(), begun: BTreeMap::new() }
    }
}

impl Tape {
    /// Notes what a peer said.
    pub fn event(&mut self, event: &Event) {
        if self.file.is_none() {
            return;
        }
        match event {
            Event::FromClient(client, line) => self.line("client>", client.0, line),
            Event::Posted(exchange, _, line) => self.line("client>", exchange.0, line),
            Event::FromServer(server, _, line) | Event::FromStream(server, _, _, line) => {
                self.line("server>", server.0.into(), line);
            }
            Event::Trouble(server, _, _, Trouble::Status { body, .. }) => {
                self.message("server>", server.0.into(), body);
            }
            _ => {}
        }
    }

    /// Notes what the engine said.
    pub fn action(&mut self, action: &Action) {
        if self.file.is_none() {
            return;
        }
        match action {
            Action::ToClient(client, message) => self.message(">client", client.0, &message.to_vec()),
            Action::ToServer(server, message) => self.message(">server", server.0.into(), &message.to_vec()),
            Action::Post(server, post) => self.message(">server", server.0.into(), &post.message.to_vec()),
            Action::Respond(exchange, response) => {
                if let Body::Json(json) = &response.body {
                    self.message(">client", exchange.0, json);
                }
            }
            Action::Write(exchange, piece) => self.piece(exchange.0, piece),
            _ => {}
        }
    }

    fn piece(&mut self, exchange: u64, piece: &[u8]) {
        let mut events = self.begun.remove(&exchange).unwrap_or_default();
        events.extend_from_slice(piece);
        let whole = events.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let rest = events.split_off(whole);
        let data = events.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(b"data: "));
        // The first event of a stream has an id and says nothing.
        for message in data.filter(|data| !data.is_empty()) {
            self.message(">client", exchange, message);
        }
        if !rest.is_empty() {
            self.begun.insert(exchange, rest);
        }
    }

    fn line(&mut self, way: &str, peer: u64, line: &Line) {
        match line {
            Ok(Scanned::Message(message)) => self.message(way, peer, &message.bytes),
            Ok(Scanned::Batch(members)) => {
                for Ok(Message { bytes, .. }) | Err(Refused { bytes, .. }) in members {
                    self.message(way, peer, bytes);
                }
            }
            Err(refused) => self.message(way, peer, &refused.bytes),
        }
    }

    fn message(&mut self, way: &str, peer: u64, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        self.text += &serde_json::json!([way, peer, text]).to_string();
        self.text.push('\n');
    }
}

impl Drop for Tape {
    fn drop(&mut self) {
        if let Some(file) = self.file.take().filter(|_| !std::thread::panicking()) {
            std::fs::write(&file, &self.text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        }
    }
}
