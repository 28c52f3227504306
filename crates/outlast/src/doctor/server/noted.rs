//! What is noticed about a server beside its answers.
//!
//! Not here: whether that is odd (`odd.rs`).

use super::bounds;
use crate::doctor::glimpse;
use outlast_engine::wire::{Message, Refused, scan_tolerant};
use serde_json::from_slice;
use serde_json::value::RawValue;

/// How often something came, and the first of it for a person.
#[derive(Debug, Default)]
pub struct Sample {
    pub count: u64,
    pub first: String,
}

impl Sample {
    pub fn add(&mut self, bytes: &[u8]) {
        if self.count == 0 {
            self.first = glimpse(bytes, bounds::SHOWN);
        }
        self.count += 1;
    }
}

/// What was noticed beside the answers, over all processes.
#[derive(Debug, Default)]
pub struct Noted {
    /// Lines that are no JSON.
    pub noise: Sample,
    /// JSON that is no message.
    pub no_message: Sample,
    /// Messages that only a tolerant reader understands.
    pub not_strict: Sample,
    /// Lines beyond [`bounds::LINE`].
    pub too_long: u64,
    /// Lines that came before anything was asked.
    pub early: Sample,
    /// Ids that came back in another JSON type.
    pub ids: Sample,
    /// Errors without an id.
    pub no_ids: Sample,
    pub stderr_lines: u64,
    pub stderr_bytes: u64,
    pub stderr_tail: Vec<u8>,
}

impl Noted {
    pub fn take_stderr(&mut self, bytes: &[u8]) {
        if bytes.is_empty() && !self.stderr_tail.is_empty() && !self.stderr_tail.ends_with(b"\n") {
            // The last line of a process may lack its end.
            return self.take_stderr(b"\n");
        }
        self.stderr_bytes += bytes.len() as u64;
        self.stderr_lines += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        self.stderr_tail.extend_from_slice(bytes);
        let excess = self.stderr_tail.len().saturating_sub(bounds::STDERR_TAIL);
        self.stderr_tail.drain(..excess);
    }

    /// A line that is no message of strict JSON. What a tolerant reader makes of it comes out.
    pub fn take_refused(&mut self, refused: &Refused) -> Option<Message> {
        let tolerated = scan_tolerant(&refused.bytes);
        let is_json = || from_slice::<&RawValue>(&refused.bytes).is_ok();
        let sample = match &tolerated {
            Some(_) => &mut self.not_strict,
            None if is_json() => &mut self.no_message,
            None => &mut self.noise,
        };
        sample.add(&refused.bytes);
        tolerated
    }
}
