//! What a store is asked, and what it says.
//!
//! The engine never calls a store: it gives writes and queries to the edge, and what comes of them
//! comes back as events. The writes of one submission are made together or not at all, and nothing is
//! said to be stored before it would outlive the process.
//!
//! **There is one clock, and it is the store's.** Processes that share a store may disagree about the time, so a write
//! says how long something is kept and never until when. The store adds its own time, and only the store decides what
//! is over. Every commit tells what that clock shows.

use crate::callback::{Callback, Fate, NewCallback};
use crate::durations::{Durations, Tally};
use crate::hold::{Decision, Entry, Hold, Leave, NewHold, Standing, Verdict};
use crate::limits;
use crate::record::{Change, Head, New, Record, State, Ticket};
use crate::time::Wall;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Something to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Write {
    /// Make a record. [`Done::Written`]
    Create(Box<New>),
    /// Change a record of ours. [`Done::Written`]
    Change(Box<Change>),
    /// Forget a record that has ended. [`Done::Removed`]
    Remove(Ticket),
    /// Take over every open record of this server whose owner is gone. [`Done::Claimed`]
    Claim {
        /// The server's identity.
        server: Box<str>,
    },
    /// Say that we live; due every [`limits::RENEW`] while we own anything open. [`Done::Kept`]
    Renew,
    /// Put a mailbox message to the owner of an open record. [`Done::Kept`]
    Post {
        /// Whose owner.
        ticket: Ticket,
        /// What it says.
        message: Mail,
    },
    /// Take the mailbox messages to our open records; nobody gets them again. [`Done::Mail`]
    Collect,
    /// Add events to a stream, with numbers above the earlier ones; a number that is there stays as
    /// it is. Whoever begins a stream owns it, and is taken for alive for another [`limits::LEASE`]; somebody else
    /// is [`Refusal::Fenced`]. [`Done::Kept`]
    Append {
        /// The stream's unguessable name.
        stream: Name,
        /// How long the whole stream is kept, from now on.
        keep: Duration,
        /// Numbers and bytes.
        events: Vec<(u64, Bytes)>,
    },
    /// Own a stream from now on, in a new epoch, so that an owner that was taken for dead writes nothing more.
    /// [`Refusal::Fenced`] if its owner lives. [`Done::Kept`]
    Adopt(Name),
    /// Forget the events of a stream up to this number; with [`u64::MAX`] the stream. [`Done::Kept`]
    Forget {
        /// The stream's name.
        stream: Name,
        /// The last number that goes.
        through: u64,
    },
    /// Keep a session, in place of what was kept of it. Whoever keeps a session first owns it. [`Refusal::Fenced`] for
    /// another process, and in an epoch that is over. [`Done::Kept`]
    Session(Box<Session>),
    /// Own a session from now on, in a new epoch, whether or not its owner lives: its client came to us. A session of
    /// ours stays in its epoch. [`Done::Session`]
    TakeSession {
        /// Which.
        name: Name,
        /// Whose it must be; another principal's is not there.
        principal: Box<str>,
    },
    /// Let processes that read this stream look for what is new at once ([`Hint::News`]). It may be lost, and a store that
    /// cannot give hints does nothing. [`Done::Kept`]
    Hint(Name),
    /// Forget a session: its client wants that, whoever owns it. [`Done::Kept`]
    EndSession(Name),
    /// Put a mailbox message to every other process that has owned a session: it may still run calls of it. Kept for
    /// [`limits::FORWARDED`]; one that finds no room is dropped. [`Done::Kept`]
    Forward {
        /// Which session.
        session: Name,
        /// What it says.
        message: Bytes,
    },
    /// Take the mailbox messages about sessions that we have owned; nobody gets them again. [`Done::Forwarded`]
    CollectForwarded,
    /// Note calls that took longer than a second. [`Done::Kept`]
    Calls(Vec<CallNote>),
    /// Show other processes what is so in this one, in place of what it showed before; if it is empty, nothing. Says
    /// that we live, and takes what we were told to do. [`Refusal::Full`] beyond [`limits::SHOWN_BYTES`]. [`Done::Told`]
    Show {
        /// What this process is called.
        process: Box<str>,
        /// What is so.
        shown: Bytes,
    },
    /// Tell a process that shows something to do this. [`Refusal::Unknown`] if it is not there. [`Done::Kept`]
    Tell {
        /// Which one.
        process: Box<str>,
        /// What it is to do.
        what: Bytes,
    },
    /// Add to how long tools took today. Kept for [`limits::MEASURED_DAYS`]. [`Done::Kept`]
    Measured(Vec<Measured>),
    /// Ask a person about a call, unless one has said yes already. [`Done::Held`]
    Hold(Box<NewHold>),
    /// What a person says of a hold; written into the audit log if it counts. [`Done::Decided`] with what stands then.
    Decide {
        /// Which hold.
        hold: u64,
        /// What is said.
        verdict: Box<Verdict>,
    },
    /// Ask after a hold of ours: what was said is used up by that. [`Done::Decided`]
    AskAfter {
        /// Which hold.
        hold: u64,
        /// What becomes of it if nothing was said.
        leave: Leave,
    },
    /// Put a callback into the queue. [`Done::Kept`]
    CallBack(Box<NewCallback>),
    /// Take callbacks that are due, to send them. Nobody else gets them for [`limits::CALLBACK_CLAIM`].
    /// [`Done::Callbacks`]
    TakeCallbacks {
        /// Only those to these.
        names: Vec<Box<str>>,
        /// How many.
        limit: usize,
    },
    /// What becomes of a callback. [`Refusal::Unknown`] if it is not there. [`Done::Kept`]
    SettleCallback {
        /// Which one.
        callback: u64,
        /// [`Refusal::Fenced`] if it was taken another number of times: somebody else has it. A person does not ask.
        attempts: Option<u64>,
        /// What becomes of it.
        fate: Fate,
    },
    /// Forget what is over: records that have ended, streams, sessions that were not used for [`limits::SLEEP`].
    /// What is over is not found before that either. [`Done::Removed`]
    Expire,
}

/// What came of one write.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The record has this revision now.
    Written(u64),
    /// These records are ours now, the oldest first.
    Claimed(Vec<Head>),
    /// These messages came, the oldest first.
    Mail(Vec<(Ticket, Mail)>),
    /// The session is ours now; or there is none.
    Session(Option<Box<Session>>),
    /// These messages came about these sessions, the oldest first.
    Forwarded(#[serde(with = "crate::recording::form")] Vec<(Name, Bytes)>),
    /// What we were told to do, the oldest first.
    Told(#[serde(with = "crate::recording::form")] Vec<Bytes>),
    /// Somebody is asked, or has said yes already.
    Held(Standing),
    /// What was said of a hold, if anything.
    Decided(Option<Box<Decision>>),
    /// These callbacks are ours to send.
    Callbacks(Vec<Callback>),
    /// So many went.
    Removed(u64),
    /// It is written; there is nothing to say about it.
    Kept,
}

/// A mailbox message to the process that owns a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Mail {
    /// Cancel it.
    Cancel,
    /// The client answered what the server asked.
    Input(#[serde(with = "crate::recording::form")] Bytes),
    /// Somebody waits for it elsewhere.
    Wake,
}

/// An unguessable name of a session or stream; never shown.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Name(pub Box<str>);

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Name(…)")
    }
}

/// A session over HTTP, so that it can be woken by another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// `Mcp-Session-Id`.
    pub name: Name,
    /// Whose it is; empty without authentication.
    pub principal: Box<str>,
    /// Its `initialize`, byte for byte.
    #[serde(with = "crate::recording::form")]
    pub initialize: Bytes,
    /// Its `notifications/initialized`; empty if it never came.
    #[serde(with = "crate::recording::form")]
    pub initialized: Bytes,
    /// What else its server must be told: a JSON array of requests; empty if there are none.
    #[serde(with = "crate::recording::form")]
    pub setup: Bytes,
    /// The epoch in which its owner got it: 1 for a new session, one more for each owner since.
    pub epoch: u64,
}

/// What is noted of a call that took longer than a second: nothing of what it said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallNote {
    /// The server's identity.
    pub server: Box<str>,
    /// The call's method.
    pub method: Box<str>,
    /// Its tool; empty where there is none.
    pub tool: Box<str>,
    /// How it ended: `answered`, `cancelled`, or the kind of its error.
    pub outcome: Box<str>,
    /// When it came.
    pub began: Wall,
    /// How long it took.
    pub took_ms: u64,
    /// Bytes of the request.
    pub asked: u64,
    /// Bytes of the answer.
    pub answered: u64,
}

/// How long a tool took.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measured {
    /// What people call its server.
    pub server: Box<str>,
    /// The tool.
    pub tool: Box<str>,
    /// How long.
    pub tally: Tally,
}

/// The day of a moment, counted from 1970.
pub fn day(wall: Wall) -> u64 {
    wall.0 / 86_400_000
}

/// What is known of tools, for a store.
pub fn measured(durations: &Durations) -> Vec<Measured> {
    let one = |(server, tool, tally): (&str, &str, &Tally)| Measured {
        server: server.into(),
        tool: tool.into(),
        tally: tally.clone(),
    };
    durations.iter().map(one).collect()
}

/// What a store says unasked. It may be lost or come in vain: without it the same is found a little later.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hint {
    /// There may be a mailbox message for us.
    Mail,
    /// Some stream has something new for those who read it elsewhere.
    News,
}

/// Something to be looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// The record of a ticket, unless it is over. [`Found::Record`]
    Record(Ticket),
    /// The open record with this idempotency key, or else the newest one that has ended.
    /// [`Found::Record`]
    Key {
        /// Whose.
        principal: Box<str>,
        /// The server's identity.
        server: Box<str>,
        /// The key.
        key: Box<str>,
    },
    /// Records, the newest first, at most [`limits::PAGE`]. [`Found::Heads`]
    Heads {
        /// Only this principal's.
        principal: Option<Box<str>>,
        /// Only this server's.
        server: Option<Box<str>>,
        /// Only those with a smaller [`Head::number`]: the last one of the page before.
        before: Option<u64>,
        /// How many.
        limit: usize,
    },
    /// Those of these records whose revision is above the one given. [`Found::Heads`]
    Changed(Vec<(Ticket, u64)>),
    /// Whether there is a mailbox message for us. Cheap; asked while something is open. [`Found::Mail`]
    Mail,
    /// The events of a stream after this number, at most [`limits::STREAM_EVENTS`].
    /// [`Found::Events`]
    Events {
        /// The stream's name.
        stream: Name,
        /// The last number that is known.
        after: u64,
    },
    /// What came on these streams after these numbers, at most [`limits::STREAM_EVENTS`] events of each: those that are
    /// there, in this order. Asked all the time while somebody reads what another process writes. [`Found::News`]
    News(Vec<(Name, u64)>),
    /// A session. [`Found::Session`]
    Session(Name),
    /// The last calls that took longer than a second, the newest first. [`Found::Calls`]
    Calls {
        /// How many.
        limit: usize,
    },
    /// What processes show that live. [`Found::Shown`]
    Shown,
    /// How long tools took in the last [`limits::MEASURED_DAYS`], added up. [`Found::Measured`]
    Measured,
    /// Questions that are open and approvals that are still in force, the oldest first. [`Found::Holds`]
    Holds,
    /// Which of these holds somebody has decided. Cheap; asked while calls wait. [`Found::Decided`]
    Decided(Vec<u64>),
    /// What persons have said of calls, the newest first. [`Found::Audit`]
    Audit {
        /// How many.
        limit: usize,
    },
    /// Whether a callback to one of these is due. Cheap; asked by whoever sends callbacks. [`Found::Due`]
    CallbackDue(Vec<Box<str>>),
    /// Callbacks that were not delivered yet, the oldest first. [`Found::Callbacks`]
    Callbacks {
        /// How many.
        limit: usize,
    },
    /// How much is stored. [`Found::Usage`]
    Usage,
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)] // named after the queries
pub enum Found {
    Record(Option<Box<Record>>),
    Heads(Vec<Head>),
    Mail(bool),
    Events {
        /// The number of the last event that was ever added; 0 for a stream that is not there.
        last: u64,
        /// Numbers and bytes, the oldest first.
        #[serde(with = "crate::recording::form")]
        events: Vec<(u64, Bytes)>,
        /// Another process owns it and lives: there may be more to come.
        lives: bool,
    },
    News(Vec<News>),
    Session(Option<Box<Session>>),
    Calls(Vec<CallNote>),
    Shown(#[serde(with = "crate::recording::form")] Vec<Bytes>),
    Measured(Vec<Measured>),
    Holds(Vec<Hold>),
    Decided(Vec<u64>),
    Audit(Vec<Entry>),
    Due(bool),
    Callbacks(Vec<Callback>),
    Usage(Usage),
}

/// What came on a stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct News {
    /// Which.
    pub stream: Name,
    /// Numbers and bytes, the oldest first.
    #[serde(with = "crate::recording::form")]
    pub events: Vec<(u64, Bytes)>,
    /// Another process owns it and lives: there may be more to come.
    pub lives: bool,
}

/// How much is stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Records, open or not.
    pub records: u64,
    /// Bytes of records, mailbox messages, streams and sessions, as [`Bounds::bytes`] counts them.
    pub bytes: u64,
}

/// Why a store will not write something; nothing of its submission was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no such record.
    #[error("there is no such record")]
    Unknown,
    /// The ticket is taken.
    #[error("there is a record with this ticket")]
    Taken,
    /// Another record has this idempotency key ([`Head::holds_key_of`]): here it is.
    #[error("another call has the same idempotency key")]
    KeyTaken(Ticket),
    /// The record, stream or session belongs to another process by now.
    #[error("it was taken over by another process")]
    Fenced,
    /// The call has ended.
    #[error("the call has ended: {}", .0.as_str())]
    Ended(State),
    /// An end without an answer, or an answer without an end.
    #[error("a call ends with its answer and not without")]
    Incomplete,
    /// A record that has not ended is not forgotten.
    #[error("the call has not ended")]
    Open,
    /// It does not fit, and nothing that may go is left.
    #[error("the store is full ({0})")]
    Full(Cow<'static, str>),
}

/// Why nothing was written or found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Trouble {
    /// One of the writes is not allowed.
    #[error("write {at} was refused: {why}")]
    Refused {
        /// Which one.
        at: usize,
        /// Why.
        why: Refusal,
    },
    /// The store does not work just now: a full disk, an error of the disk, a lock that nobody gives.
    #[error("{0}")]
    Failed(String),
}

/// A submission that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    /// When, on the store's clock.
    pub at: Wall,
    /// One for each write.
    pub done: Vec<Done>,
}

/// What came of a submission: it was written, or nothing of it was.
pub type Stored = Result<Committed, Trouble>;

/// What came of a query.
pub type Loaded = Result<Found, Trouble>;

/// How much a store takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Records. One more: the one that ended longest ago goes; if none has ended, [`Refusal::Full`].
    pub records: u64,
    /// Bytes of records, mailbox messages, streams and sessions, with [`RECORD_OVERHEAD`] for each record. More:
    /// as above. A change of a record is always taken, so that no result is lost for room.
    pub bytes: u64,
    /// Mailbox messages to one record, or to one process. One more: [`Refusal::Full`]; of those about sessions it is
    /// dropped.
    pub mailbox: u64,
    /// Sessions. One more: the one that was not used for the longest time goes.
    pub sessions: u64,
    /// Notes about calls. More: the oldest go.
    pub calls: u64,
    /// Buckets and sums of durations. More: the oldest day goes.
    pub measured: u64,
    /// Questions that are open. One more: [`Refusal::Full`].
    pub holds: u64,
    /// Lines of the audit log. More: the oldest go.
    pub audit: u64,
    /// Callbacks. More: at the next [`Write::Expire`] the parked ones go first, then the oldest.
    pub callbacks: u64,
}

/// What a record counts for besides its bytes.
pub const RECORD_OVERHEAD: u64 = 512;

impl Bounds {
    /// What a database takes that many processes share.
    pub fn shared() -> Bounds {
        Bounds { records: 1_000_000, bytes: 32 << 30, sessions: 100_000, ..Bounds::default() }
    }
}

impl Default for Bounds {
    fn default() -> Bounds {
        Bounds {
            records: limits::RECORDS,
            bytes: limits::STORE_BYTES,
            mailbox: limits::MAILBOX,
            sessions: limits::SLEEPERS as u64,
            calls: limits::CALL_NOTES,
            measured: limits::MEASURED_ROWS,
            holds: limits::HOLDS,
            audit: limits::AUDIT,
            callbacks: limits::CALLBACKS,
        }
    }
}
