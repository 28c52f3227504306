//! A run as a file: what happened to the engine, and in few words what it decided.
//!
//! Same events, same actions: whoever has the events of a run can see the run again, here or with another version of
//! outlast. A recording is JSON, one [`Entry`] a line. The first is the [`Header`], which holds the configuration; then
//! come events, each with the time at which it was fed, and after them what was decided ([`gist`]). A recording may end
//! anywhere: what is there can be played.
//!
//! The shapes are those that serde derives from the types themselves, so that a new event, or something new in one,
//! does not compile before it can be recorded. [`form`] writes what has a better form than its fields: a message is its
//! text, and is scanned again when it is read.
//!
//! Not here: what must not be written (`outlast`'s `observe/recording.rs` replaces it in the text).

pub(crate) mod form;
mod player;
mod words;

pub use player::{Difference, Moment, Player};
pub use words::{gist, happened, show, written};

use crate::action::Action;
use crate::config::Config;
use crate::event::Event;
use crate::time::Now;
use serde::{Deserialize, Serialize};

/// The format that is written. A new one is for recordings that an earlier outlast would misread; what is only new (a
/// kind of event, a field) does not need one.
pub const FORMAT: u32 = 1;

/// What stands at the beginning.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Header {
    /// Comes first, so that the rest need not be understood.
    pub format: u32,
    /// The version of outlast that recorded.
    pub outlast: Box<str>,
    /// How the engine was made.
    pub config: Config,
}

/// A line.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Entry {
    /// The first line.
    Recording(Box<Header>),
    /// Something happened.
    Event(Now, Event),
    /// An action was answered at once, at the time of the event before.
    Answer(Event),
    /// What was decided since the last event, if anything.
    Did(Vec<Box<str>>),
    /// The recording ends here, and the run did not. The text says why.
    Truncated(Box<str>),
}

/// Why a line cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// The first line is not a header.
    #[error("this is not a recording of outlast")]
    NotARecording,
    /// A newer outlast wrote it.
    #[error(
        "outlast {outlast} wrote it in format {format}, and this outlast reads formats up to {FORMAT}: \
         replay it with the newer one"
    )]
    Newer {
        /// Its format.
        format: u32,
        /// Who wrote it.
        outlast: Box<str>,
    },
    /// The line is not an entry.
    #[error("this line is damaged: {0}")]
    Damaged(String),
    /// It is one that cannot stand here.
    #[error("this line cannot stand here: {0}")]
    Misplaced(&'static str),
}

impl Entry {
    /// Its line.
    pub fn line(&self) -> String {
        // Nothing in it can fail to be written: every key is a text.
        serde_json::to_string(self).unwrap_or_default() + "\n"
    }

    /// Reads a line.
    pub fn read(line: &str) -> Result<Entry, Unreadable> {
        serde_json::from_str(line).map_err(|error| Unreadable::Damaged(shortened(&error.to_string())))
    }
}

/// serde lists everything that it would have taken.
fn shortened(error: &str) -> String {
    let (what, place) = (error.split(", expected one of").next(), error.rsplit(" at line ").next());
    match (what, place.and_then(|place| place.rsplit("column ").next())) {
        (Some(what), Some(column)) if what.len() < error.len() => format!("{what} at column {column}"),
        _ => error.to_owned(),
    }
}

impl Header {
    /// Reads the first line.
    pub fn read(line: &str) -> Result<Header, Unreadable> {
        #[derive(Deserialize)]
        struct First {
            recording: Version,
        }
        #[derive(Deserialize)]
        struct Version {
            format: u32,
            outlast: Box<str>,
        }
        let first: First = serde_json::from_str(line).map_err(|_| Unreadable::NotARecording)?;
        let Version { format, outlast } = first.recording;
        if format > FORMAT {
            return Err(Unreadable::Newer { format, outlast });
        }
        match Entry::read(line)? {
            Entry::Recording(header) => Ok(*header),
            _ => Err(Unreadable::NotARecording),
        }
    }
}

/// Makes lines of what happens.
#[derive(Debug, Default)]
pub struct Recorder {
    did: Vec<Box<str>>,
}

impl Recorder {
    /// The first line.
    pub fn header(config: &Config, outlast: &str) -> String {
        let (outlast, config) = (outlast.into(), config.clone());
        Entry::Recording(Header { format: FORMAT, outlast, config }.into()).line()
    }

    /// An event that is about to be fed.
    pub fn event(&mut self, now: Now, event: &Event) -> String {
        self.rest() + &Entry::Event(now, event.clone()).line()
    }

    /// An event that answers an action, and is about to be fed.
    pub fn answer(event: &Event) -> String {
        Entry::Answer(event.clone()).line()
    }

    /// Something was decided.
    pub fn action(&mut self, action: &Action) {
        self.did.extend(gist(action).map(Box::from));
    }

    /// What was decided and is not written yet.
    pub fn rest(&mut self) -> String {
        match std::mem::take(&mut self.did) {
            did if did.is_empty() => String::new(),
            did => Entry::Did(did).line(),
        }
    }
}
