//! What is so right now: the open calls that somebody follows, and the servers. Read-only, and bounded.
//!
//! What happened before is told by the steps (`step.rs`); what is in the store is looked up there.

use crate::method::Method;
use crate::step::CallNo;
use crate::time::Wall;
use std::time::Duration;

/// What is so right now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Open calls, the oldest first.
    pub calls: Vec<OpenCall>,
    /// Open calls beyond the bound.
    pub more: usize,
    /// Servers, in the order in which they were started.
    pub servers: Vec<ServerNow>,
}

/// Where a call is, in words that programs know it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At its server.
    Running,
    /// It waits for its server.
    Queued,
    /// It waits to be sent at a certain time, for its turn, or for its client.
    Parked,
    /// It waits for a person's yes.
    Held,
    /// Its server made a task of it, which is followed.
    Followed,
    /// It shares the attempt of another call.
    Joined,
    /// Its client has a ticket, and comes back for it.
    HandedOff,
}

impl Place {
    /// For programs.
    pub fn word(self) -> &'static str {
        match self {
            Place::Running => "running",
            Place::Queued => "queued",
            Place::Parked => "parked",
            Place::Held => "held",
            Place::Followed => "followed",
            Place::Joined => "joined",
            Place::HandedOff => "handed-off",
        }
    }
}

/// An open call.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenCall {
    /// As its steps call it.
    pub no: CallNo,
    /// What people call its server.
    pub server: Box<str>,
    /// The method.
    pub method: Method,
    /// The tool, if it is a call of one.
    pub tool: Option<Box<str>>,
    /// What the client calls itself, with its version; may be empty.
    pub client: Box<str>,
    /// The name of its token; empty without.
    pub principal: Box<str>,
    /// Where it is.
    pub place: Place,
    /// When it began.
    pub began: Wall,
    /// How long it may be silent, and how long it still may.
    pub timeout: Option<(Duration, Duration)>,
    /// The longest that it may take.
    pub max: Duration,
    /// When it last gave a sign of life, or began.
    pub last_sign: Wall,
    /// How often it was sent.
    pub attempts: u32,
    /// It can be fetched later.
    pub ticket: bool,
}

/// A server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerNow {
    /// What people call it. One definition may have several processes.
    pub name: Box<str>,
    /// How it is: `starting`, `ready`, `restarting`, `stopping`, `asleep`, `failed`, `ended`.
    pub state: &'static str,
    /// The eras that it has shown it speaks: `legacy`, `modern`, `legacy+modern`, or empty.
    pub era: &'static str,
    /// What it says it is; may be empty.
    pub version: Box<str>,
    /// Which process it is; the first is 0.
    pub run: u32,
    /// Calls that were sent to it and are not answered.
    pub in_flight: usize,
    /// Calls that wait for it.
    pub waiting: usize,
    /// What was wrong with it last.
    pub error: Option<Box<str>>,
    /// The last lines of its stderr.
    pub stderr: Vec<Box<str>>,
}
