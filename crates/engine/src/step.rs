//! What happens to calls and servers, told as it happens to whoever looks on: metrics, traces, the dashboard, `top`.
//!
//! A note ([`crate::Note`]) is a sentence for a person who reads the log; a step is a fact about one call, and together the steps
//! of a call are its story. Nothing depends on them. The engine makes none unless somebody looks on
//! ([`Observed`]), and a call that nobody follows costs one look at a number that is not there.
//!
//! Not here: what is so right now (`snapshot.rs`).

use crate::event::Exit;
use crate::id::{AttemptId, Run};
use crate::method::Method;
use crate::trace::{Context, SpanId};
use serde::{Deserialize, Serialize};
use std::num::NonZeroU64;
use std::time::Duration;

/// Whose steps are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observed {
    /// Nobody's.
    #[default]
    Nothing,
    /// Those of calls that have become older than [`crate::limits::SLOW`], from then on.
    Slow,
    /// All.
    All,
}

/// A call as those who look on know it. Never used again in one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct CallNo(pub NonZeroU64);

/// One thing that happened.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// To a call.
    Call(CallNo, What),
    /// To a server.
    Server(ServerStep),
}

/// What happened to a call.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// It arrived; or has become old enough to be told of.
    Began(Box<Began>),
    /// It waits: for its server, or for its turn.
    Queued,
    /// It was sent to its server.
    Sent {
        /// The first is 1.
        attempt: u32,
        /// To which process.
        run: Run,
        /// Its place in a trace, if its call has one.
        traced: Option<Attempt>,
    },
    /// The server reported on it.
    Progress {
        /// In these words, cut.
        message: Option<Box<str>>,
    },
    /// Its client was told that it lives.
    KeepAlive,
    /// Its server asked a person, or perhaps did so for it: its clock stands still.
    Asked,
    /// That person answered, or is waited for no longer.
    Answered,
    /// It waits for a person's yes.
    Held {
        /// The number of the question.
        hold: u64,
    },
    /// A person has said something about it.
    Decided {
        /// It may be sent.
        yes: bool,
        /// By whom, as far as that is known.
        by: Box<str>,
        /// Where it was said.
        place: Box<str>,
    },
    /// It will be sent once more.
    Retried {
        /// Why.
        why: &'static str,
    },
    /// It shares the attempt of another call with the same idempotency key.
    Joined {
        /// That one, if it is told of.
        with: Option<CallNo>,
    },
    /// Its client was given a ticket in place of an answer.
    HandedOff,
    /// It is a task now.
    BecameTask,
    /// Its server made a task of its own for it, which is followed.
    Followed,
    /// It is to be cancelled.
    CancelAsked {
        /// By whom, or by which limit.
        by: Box<str>,
    },
    /// It is taken up again where it was left: at its server, or by its client.
    Resumed,
    /// It is over.
    Ended(Ended),
}

/// What is known of a call when it begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Began {
    /// What people call the server.
    pub server: Box<str>,
    /// The method.
    pub method: Method,
    /// The tool, if it is a call of one.
    pub tool: Option<Box<str>>,
    /// What the client calls itself, with its version; may be empty.
    pub client: Box<str>,
    /// The name of its token; empty without.
    pub principal: Box<str>,
    /// How long the message is; 0 if it is not known any more.
    pub bytes: u64,
    /// How long ago it really began.
    pub ago: Duration,
    /// Its place in a trace, if traces are recorded.
    pub trace: Option<Box<Traced>>,
}

/// A call as a part of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The trace, and the call's own span.
    pub context: Context,
    /// The span that it stands below, if its client said one.
    pub parent: Option<SpanId>,
    /// `tracestate`; may be empty.
    pub state: Box<str>,
    /// The id that its client gave it.
    pub id: Box<str>,
    /// The prompt, if it asks for one.
    pub prompt: Option<Box<str>>,
    /// The revision of the protocol; may be empty.
    pub version: Box<str>,
    /// Its client came over HTTP, and not over pipes.
    pub client_over_http: bool,
    /// The same of its server.
    pub server_over_http: bool,
}

/// An attempt as a part of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Its own span.
    pub span: SpanId,
    /// The id under which its server has it.
    pub id: AttemptId,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// In which way.
    pub outcome: Outcome,
    /// How long its client has waited.
    pub took: Duration,
    /// How long the answer is.
    pub bytes: u64,
    /// The code of the error that it ended with; looked for only where traces are recorded.
    pub code: Option<i64>,
}

/// In which way a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// With a result of its server.
    Answered,
    /// The same, and it says `isError`.
    ToolError,
    /// With an error of its server.
    Error,
    /// With an error of ours, of this kind.
    Failed(&'static str),
    /// Its client cancelled it.
    Cancelled,
    /// Its client left.
    Left,
    /// A person declined it.
    Declined,
}

impl Outcome {
    /// For programs and labels.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Answered => "answered",
            Outcome::ToolError => "tool-error",
            Outcome::Error => "error",
            Outcome::Failed(_) => "failed",
            Outcome::Cancelled => "cancelled",
            Outcome::Left => "left",
            Outcome::Declined => "declined",
        }
    }

    /// The kind of our error, if it was one.
    pub fn kind(self) -> Option<&'static str> {
        match self {
            Outcome::Failed(kind) => Some(kind),
            _ => None,
        }
    }

    /// Whether somebody should look at it.
    pub fn is_failure(self) -> bool {
        matches!(self, Outcome::ToolError | Outcome::Error | Outcome::Failed(_))
    }

    /// Whether it tells how long a call takes. What was given up, or was lost with its server, might have taken longer.
    pub fn tells_duration(self) -> bool {
        matches!(self, Outcome::Answered | Outcome::ToolError | Outcome::Error) || self.is_cut_off()
    }

    /// Whether a limit ended it.
    pub fn is_cut_off(self) -> bool {
        matches!(self, Outcome::Failed("timeout" | "max"))
    }
}

/// What happened to a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStep {
    /// What people call it: one definition may have several processes.
    pub server: Box<str>,
    /// What.
    pub what: ServerWhat,
}

/// What happened to a server.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerWhat {
    /// Its process runs, or it can be reached.
    Started {
        /// Which process.
        run: Run,
    },
    /// It has answered its handshake.
    Ready {
        /// `legacy` or `modern`.
        era: &'static str,
        /// What it calls itself, with its version; may be empty.
        version: Box<str>,
    },
    /// Its process ended by itself.
    Ended {
        /// How.
        exit: Exit,
    },
    /// It is stopped and started again.
    Restarting {
        /// Why.
        why: &'static str,
    },
    /// It cannot be started, or has failed too often.
    Failed {
        /// Why.
        why: Box<str>,
    },
}

impl Step {
    /// For programs: the word of a call's story.
    pub fn word(&self) -> &'static str {
        match self {
            Step::Call(_, what) => what.word(),
            Step::Server(step) => step.what.word(),
        }
    }
}

impl What {
    /// For programs.
    pub fn word(&self) -> &'static str {
        match self {
            What::Began(_) => "began",
            What::Queued => "queued",
            What::Sent { .. } => "sent",
            What::Progress { .. } => "progress",
            What::KeepAlive => "keep-alive",
            What::Asked => "asked",
            What::Answered => "asked-answered",
            What::Held { .. } => "held",
            What::Decided { .. } => "decided",
            What::Retried { .. } => "retried",
            What::Joined { .. } => "joined",
            What::HandedOff => "handed-off",
            What::BecameTask => "became-task",
            What::Followed => "followed",
            What::CancelAsked { .. } => "cancel-asked",
            What::Resumed => "resumed",
            What::Ended(_) => "ended",
        }
    }
}

impl ServerWhat {
    /// For programs.
    pub fn word(&self) -> &'static str {
        match self {
            ServerWhat::Started { .. } => "started",
            ServerWhat::Ready { .. } => "ready",
            ServerWhat::Ended { .. } => "ended",
            ServerWhat::Restarting { .. } => "restarting",
            ServerWhat::Failed { .. } => "failed",
        }
    }
}

/// The words of a step for a person, without the time and the name of the call.
impl std::fmt::Display for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            What::Began(began) => write!(f, "{} for `{}`", began.method.as_str(), began.server),
            What::Queued => f.write_str("waits for its server or its turn"),
            What::Sent { attempt, run, .. } => {
                write!(f, "sent to the server (attempt {attempt}, run {})", run.0)
            }
            What::Progress { message } => f.write_str(message.as_deref().unwrap_or("progress")),
            What::KeepAlive => f.write_str("the client was told that the call lives"),
            What::Asked => f.write_str("the server asks a person; the limit stands still"),
            What::Answered => f.write_str("the server has its answer; the limit runs"),
            What::Held { hold } => write!(f, "waits for approval: outlast holds approve {hold}"),
            What::Decided { yes, by, place } => {
                let said = if *yes { "approved" } else { "declined" };
                write!(f, "{said} by {by} ({place})")
            }
            What::Retried { why } => write!(f, "will be sent once more: {why}"),
            What::Joined { .. } => f.write_str("shares the attempt of another call with the same key"),
            What::HandedOff => f.write_str("the client got a ticket; the call goes on"),
            What::BecameTask => f.write_str("is a task now"),
            What::Followed => f.write_str("its server made a task of it"),
            What::CancelAsked { by } => write!(f, "to be cancelled: {by}"),
            What::Resumed => f.write_str("taken up again"),
            What::Ended(ended) => match ended.outcome.kind() {
                Some(kind) => write!(f, "failed: {kind}"),
                None => f.write_str(ended.outcome.word()),
            },
        }
    }
}
