//! Who looks on: the log, and the record of messages. Observers read; nothing waits for them.

pub mod log;
pub mod rotation;
pub mod stderr;
pub mod text;
pub mod trace;

use log::Log;
use outlast_engine::wire::Scanned;
use outlast_engine::{Action, Event, Note};
use stderr::Stderr;
use trace::Trace;

/// All of them.
#[derive(Debug)]
pub struct Observers {
    stderr: Stderr,
    log: Log,
    trace: Option<Trace>,
}

impl Observers {
    /// Observers that write to our stderr, and messages to `trace` if it is there.
    pub fn new(stderr: Stderr, log: Log, trace: Option<Trace>) -> Observers {
        Observers { stderr, log, trace }
    }

    /// Something that the engine wants seen.
    pub fn note(&mut self, note: &Note) {
        if let Some(line) = self.log.line(note) {
            self.stderr.line(line.as_bytes());
        }
    }

    /// A server's own complaints: bytes as they come, without a prefix.
    pub fn server_stderr(&mut self, bytes: &[u8]) {
        self.stderr.server(bytes);
    }

    /// Something happened.
    #[inline]
    pub fn event(&mut self, event: &Event) {
        if self.trace.is_some() {
            self.trace_event(event);
        }
    }

    #[cold]
    fn trace_event(&mut self, event: &Event) {
        let Some(trace) = &mut self.trace else { return };
        let (direction, line) = match event {
            Event::FromClient(_, line) => ("client>", line),
            Event::FromServer(_, _, line) => ("server>", line),
            _ => return,
        };
        match line {
            Ok(Scanned::Message(message)) => trace.record(&mut self.stderr, direction, &message.bytes),
            Ok(Scanned::Batch(members)) => {
                for member in members {
                    let bytes =
                        member.as_ref().map_or_else(|refused| &refused.bytes, |message| &message.bytes);
                    trace.record(&mut self.stderr, direction, bytes);
                }
            }
            Err(refused) => trace.record(&mut self.stderr, direction, &refused.bytes),
        }
    }

    /// Something is about to be done.
    #[inline]
    pub fn action(&mut self, action: &Action) {
        if self.trace.is_some() {
            self.trace_action(action);
        }
    }

    #[cold]
    fn trace_action(&mut self, action: &Action) {
        let Some(trace) = &mut self.trace else { return };
        match action {
            Action::ToClient(_, message) => trace.record(&mut self.stderr, ">client", &message.to_vec()),
            Action::ToServer(_, message) => trace.record(&mut self.stderr, ">server", &message.to_vec()),
            _ => {}
        }
    }

    /// Lets go of what this turn wrote.
    pub fn flush(&mut self) {
        self.stderr.flush();
    }

    /// Writes what is left, for a short while.
    pub fn finish(&mut self) {
        self.stderr.finish();
    }
}
