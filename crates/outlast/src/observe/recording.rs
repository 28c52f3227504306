//! A recording of the engine's run, as `--record` writes it: every event, without what nobody else may have.
//!
//! Lines are made in the driver's turn and given to a thread of its own, which takes secrets out of their text and
//! writes them; nobody waits for it. What is taken out is replaced by digests under a key that only this process has and nobody keeps:
//! the same secret becomes the same text everywhere, so that a ticket is still found under its name when the recording
//! is played, and nothing can be fetched with it.
//!
//! Not here: what a line says (`outlast_engine::recording`).

mod redactor;

use super::backlog::{Backlog, Next};
use super::rotation::earlier;
use crate::sys::files;
use outlast_engine::recording::{Entry, Recorder};
use outlast_engine::settings::Glob;
use outlast_engine::{Action, Config, Event, Now};
use redactor::{Redactor, masked};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a recording. More: it says so and ends.
pub const BOUND: u64 = 64 << 20;

/// Bytes that may wait to be written. More: it says so and ends.
const MOST: usize = 16 << 20;

/// How long the end waits for what is left.
const LAST: Duration = Duration::from_secs(1);

/// A recording that is being written.
#[derive(Debug)]
pub struct Recording {
    lines: Arc<Backlog<String>>,
    /// Until the thread runs.
    start: Option<(File, Redactor)>,
    recorder: Recorder,
    /// Bytes so far.
    length: u64,
    redact: Vec<Glob>,
    is_full: bool,
    /// It has ended, and that was told.
    over: bool,
}

impl Recording {
    /// Begins a recording. What is there under this name becomes the one before, in place of what was that.
    pub fn open(path: &str, redact: Vec<Glob>) -> io::Result<Recording> {
        if fs::symlink_metadata(path).is_ok_and(|there| there.is_file()) {
            fs::rename(path, earlier(Path::new(path)))?;
        }
        let start = Some((files::open_record(path)?, Redactor::new(redact.clone())));
        Ok(Recording {
            lines: Arc::new(Backlog::new(MOST, 1)),
            start,
            recorder: Recorder::default(),
            length: 0,
            redact,
            is_full: false,
            over: false,
        })
    }

    /// The first line.
    pub fn begin(&mut self, config: &Config) {
        self.write(Recorder::header(config, env!("CARGO_PKG_VERSION")));
    }

    /// An event is about to be fed to the engine.
    pub fn event(&mut self, now: Now, event: &Event) {
        if !self.over {
            let masked = masked(event, &self.redact);
            let line = self.recorder.event(now, masked.as_ref().unwrap_or(event));
            self.write(line);
        }
    }

    /// The same for one that answers an action of the event before.
    pub fn answer(&mut self, event: &Event) {
        if !self.over {
            let masked = masked(event, &self.redact);
            self.write(Recorder::answer(masked.as_ref().unwrap_or(event)));
        }
    }

    /// The engine decided something.
    pub fn action(&mut self, action: &Action) {
        if !self.over {
            self.recorder.action(action);
        }
    }

    /// Nothing more was decided. What is to be told, if the recording ends here.
    pub fn flush(&mut self) -> Option<String> {
        let rest = self.recorder.rest();
        self.write(rest);
        self.news()
    }

    /// Waits a short while for what is left. What is to be told, if it is not all there.
    pub fn finish(&mut self) -> Option<String> {
        let news = self.flush();
        if self.start.is_none() && self.lines.lost() == 0 {
            self.lines.finish(LAST);
        }
        news.or_else(|| self.news())
    }

    /// Why the recording ends, as soon as it does.
    fn news(&mut self) -> Option<String> {
        if self.is_full && !self.over {
            self.over = true;
            return Some(format!("record: the recording ends here: it has reached {} MiB", BOUND >> 20));
        }
        if self.lines.lost() == 0 || self.over {
            return None;
        }
        self.over = true;
        Some("record: the recording ends here: it cannot be written fast enough, or at all".into())
    }

    fn write(&mut self, line: String) {
        self.length += line.len() as u64;
        if self.is_full || self.over || line.is_empty() {
            return;
        }
        self.is_full = self.length > BOUND;
        let full = || Entry::Truncated(format!("it has reached {} MiB", BOUND >> 20).into()).line();
        let line = if self.is_full { full() } else { line };
        let length = line.len();
        self.lines.push(line, length);
        if let Some((file, redactor)) = self.start.take() {
            let lines = self.lines.clone();
            let thread = std::thread::Builder::new().name("recording".into());
            // Without a thread the bound is reached, and that is told.
            let _ = thread.spawn(move || write_all(&lines, file, &redactor));
        }
    }
}

/// What the thread does, until a line is missing: what follows would be another run.
fn write_all(lines: &Backlog<String>, mut file: File, redactor: &Redactor) {
    loop {
        let Next { gap, item } = lines.next();
        let written =
            gap == 0 && item.is_none_or(|line| file.write_all(redactor.redact(&line).as_bytes()).is_ok());
        if !written {
            lines.lose(1);
            let why = "what happened could not be written, or not fast enough";
            // The disk may be full for this as well; then the last line is not whole, and that tells it.
            let _ = file.write_all(Entry::Truncated(why.into()).line().as_bytes());
            return;
        }
    }
}
