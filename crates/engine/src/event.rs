//! Everything that can happen to the engine.

use crate::callback::Delivery;
use crate::definitions::Reload;
use crate::http::{Head, StreamEnd, Trouble};
use crate::id::{AttemptId, ClientId, ExchangeId, Run, ServerId};
use crate::life::Sample;
use crate::memory::Memory;
use crate::step::CallNo;
use crate::store::{Hint, Loaded, Measured, Stored};
use crate::wire::{Message, Outgoing, Oversized, Refused, Scanned};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// One line from a peer, scanned by the edge that read it.
pub type Line = Result<Scanned, Refused>;

/// Something that happened. What concerns a server names the run it happened to, so that the last
/// words of a replaced process are not taken for its successor's.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Event {
    /// The process begins: what an earlier one left in the store is taken over.
    Begin,
    /// A client is there, and the server it wants. Starts the server.
    Opened(ClientId, ServerId),
    /// A client is there that talks to us in the place of several servers.
    Entered(ClientId),
    /// What servers answered before; comes before everything else.
    Remembered(ServerId, Vec<Memory>),
    /// A line from a client.
    FromClient(ClientId, #[serde(with = "crate::recording::form")] Line),
    /// A line from a server.
    FromServer(ServerId, Run, #[serde(with = "crate::recording::form")] Line),
    /// A client's line was longer than `max-message`.
    ClientOversized(ClientId, Oversized),
    /// The same of a server.
    ServerOversized(ServerId, Run, Oversized),
    /// A client will send nothing more.
    ClientEof(ClientId),
    /// Nobody reads what we write to a client any more.
    ClientGone(ClientId),
    /// What waits to be written to a client has grown above the high mark, or sunk below the low one.
    Congested(ClientId, bool),
    /// A server's process runs.
    Started(ServerId, Run),
    /// A server's process could not be started.
    StartFailed(ServerId, Run, StartFailure),
    /// A server's process ended.
    Exited(ServerId, Run, Exit),
    /// A server closed its output.
    OutputClosed(ServerId, Run),
    /// A server does not read any more, and so these messages have never left.
    InputBroken(ServerId, Run, #[serde(with = "crate::recording::form")] Vec<Message>),
    /// A server wrote to stderr.
    Stderr(ServerId, Run, #[serde(with = "crate::recording::form")] Bytes),
    /// The sample that was asked for; `None` where it could not be taken.
    Sampled(ServerId, Option<Sample>),
    /// A client's HTTP POST.
    Posted(ExchangeId, Box<Head>, #[serde(with = "crate::recording::form")] Line),
    /// A client's HTTP GET.
    Got(ExchangeId, Box<Head>),
    /// A client's HTTP DELETE.
    Deleted(ExchangeId, Box<Head>),
    /// A client closed its connection before the response was finished.
    HungUp(ExchangeId),
    /// What came of a submission to the store.
    Stored(u64, Stored),
    /// The store cannot be used; what it is given is kept in memory.
    StoreLost(String),
    /// What came of `Action::Load` with this number.
    Loaded(u64, Loaded),
    /// The store may have something new.
    Hinted(Hint),
    /// Random bytes for what nobody may guess.
    Entropy(#[serde(with = "crate::recording::form")] [u8; 32]),
    /// What the server is called in the store, as `Action::NeedIdentity` asked.
    Identity(Box<str>),
    /// A message of an HTTP server, on the stream of an attempt.
    FromStream(ServerId, Run, AttemptId, #[serde(with = "crate::recording::form")] Line),
    /// The stream of an attempt ended before its answer.
    StreamEnded(ServerId, Run, AttemptId, StreamEnd),
    /// The standing stream of an HTTP server ended, or was refused.
    StandingEnded(ServerId, Run, StreamEnd),
    /// Something could not be posted to an HTTP server, or was not answered as MCP; or, without an
    /// attempt, no connection could be made.
    Trouble(ServerId, Run, Option<AttemptId>, Trouble),
    /// A post that comes back: no connection could be made, for this reason.
    Undelivered(ServerId, Run, #[serde(with = "crate::recording::form")] Outgoing, Box<str>),
    /// The servers that are to run before anybody needs them are started.
    Warm,
    /// The file has been read again.
    Reload(Box<Reload>),
    /// How long tools took before this process began, for limits that adapt.
    Measured(Vec<Measured>),
    /// A person cancels a call, as [`crate::step`] numbers it; the text says who, and where.
    CancelCall(CallNo, Box<str>),
    /// A person has the server that is called so started again.
    RestartServer(Box<str>),
    /// A callback was sent that this process had taken for so many times in all, or was not.
    CalledBack {
        /// Which one.
        callback: u64,
        /// How often somebody has taken it, this time included.
        attempts: u64,
        /// What came of it.
        delivery: Delivery,
    },
    /// The machine slept for about this long. Limits were not charged for it.
    Slept(Duration),
    /// No connection of a client is open any more since `Action::CloseDoor`.
    DoorEmpty,
    /// We are asked to end by this signal.
    Stop(u8),
    /// The time of `next_deadline` has come.
    Tick,
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Exit {
    /// By itself, with this status.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl Exit {
    /// The status that a shell would show.
    pub fn status(self) -> u8 {
        match self {
            Exit::Code(code) => code,
            Exit::Signal(signal) => 128u8.wrapping_add(signal),
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Exit::Code(code) => write!(f, "exit status {code}"),
            Exit::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// Why a command could not be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StartFailure {
    /// There is no such command.
    NotFound,
    /// It is there and cannot be executed.
    NotExecutable,
    /// The system refused, with this error number.
    Refused(i32),
}

impl StartFailure {
    /// The status that a shell would end with.
    pub fn status(self) -> u8 {
        match self {
            StartFailure::NotFound => 127,
            StartFailure::NotExecutable | StartFailure::Refused(_) => 126,
        }
    }
}

impl std::fmt::Display for StartFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StartFailure::NotFound => f.write_str("command not found"),
            StartFailure::NotExecutable => f.write_str("not executable"),
            StartFailure::Refused(errno) => write!(f, "the system refused to start it (error {errno})"),
        }
    }
}
