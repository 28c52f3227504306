//! Everything the engine can want done, and the notes it leaves for observers.

mod facts;

use crate::callback::Callback;
use crate::error::{Failure, cut};
use crate::event::{Exit, StartFailure};
use crate::http::{Post, Response};
use crate::id::{AttemptId, ClientId, ExchangeId, Run, ServerId};
use crate::limits::NAME;
use crate::memory::Memory;
use crate::profile::{Learn, Sighting};
use crate::settings::{counted, show_duration};
use crate::step::Step;
use crate::store::{Query, Write};
use crate::wire::Outgoing;
use bytes::Bytes;
use std::time::Duration;

/// Something to be done by an edge. Messages to one peer leave in the order of their actions.
#[derive(Clone, Debug)]
pub enum Action {
    /// Write a message to a client.
    ToClient(ClientId, Outgoing),
    /// Write a message to a server.
    ToServer(ServerId, Outgoing),
    /// Post a message to an HTTP server. What comes back is told as `Event::FromStream`, then
    /// `StreamEnded` unless the answer was among it; or `Trouble`.
    Post(ServerId, Box<Post>),
    /// Open the stream of an attempt again, from the last event id that was seen on it.
    Reconnect(ServerId, AttemptId),
    /// Close the stream of an attempt: nothing on it matters any more.
    Abandon(ServerId, AttemptId),
    /// Open the standing stream of an HTTP server, from the last event id that was seen on it.
    Stand(ServerId),
    /// Begin the response to a client's HTTP request.
    Respond(ExchangeId, Response),
    /// Write events to a client's open stream.
    Write(ExchangeId, Bytes),
    /// End a client's stream, once all is written.
    Finish(ExchangeId),
    /// Write these to the store, all or none, and answer with `Event::Stored` under this number.
    Store(u64, Vec<Write>),
    /// Look something up in the store, and answer with `Event::Loaded` under this number.
    Load(u64, Query),
    /// Send a callback, and answer with `Event::CalledBack`.
    CallBack(Box<Callback>),
    /// Bring `Event::Entropy`.
    NeedEntropy,
    /// Bring `Event::Identity`: what the server is called in the store.
    NeedIdentity,
    /// Keep what a client's cancel says about its limit.
    Learn(Box<Sighting>),
    /// Start a server's process; what was to be written to an earlier one is dropped.
    Start(ServerId, Run),
    /// Close a server's input once all is written.
    CloseInput(ServerId),
    /// Ask a server and all its descendants to end.
    Terminate(ServerId),
    /// End a server and all its descendants.
    Kill(ServerId),
    /// A server is not needed any more and has ended: let go of it.
    LetGo(ServerId),
    /// Accept no connection any more. Those that are open serve on, each until its next response; then comes
    /// `Event::DoorEmpty`.
    CloseDoor,
    /// Read a server's signs of life and answer with `Event::Sampled`.
    Sample(ServerId),
    /// Keep this for the next start, in place of what was kept for the same client.
    Remember(ServerId, Box<Memory>),
    /// Forget what was kept.
    Forget(ServerId),
    /// Tell whoever observes.
    Note(Note),
    /// Tell whoever follows calls.
    Step(Step),
    /// Write what is left to the client, for as long as patience lasts, then end the process.
    End {
        /// The status to end with.
        status: u8,
        /// How long a slow reader is waited for.
        patience: Duration,
    },
}

/// How much a note matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
}

/// What the engine wants seen.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // the fields are named after what they are
pub enum Note {
    /// A call ended without an answer from its server.
    Failed(Box<Failure>),
    /// Something could not be stored.
    StoreFailed { why: String },
    /// Something could not be looked up in the store.
    StoreUnread { why: String },
    /// Results that could not be stored before are, at the end.
    StoredAtLast { count: usize },
    /// Results that could not be stored, and end with this process.
    NeverStored { count: usize, why: String },
    /// The store cannot be used at all.
    StoreLost { why: String },
    /// A remote server could not be reached.
    Unreachable { server: Box<str>, why: String },
    /// A remote server is tried again after a while.
    Retrying { server: Box<str>, why: &'static str, wait: Duration },
    /// A session was not used for a while: what it held is freed.
    SessionSleeps { session: Box<str> },
    /// The client of a session has come to another process, which owns the session now.
    SessionTaken { session: Box<str> },
    /// An HTTP server refused something that nobody waits for.
    PostRefused { server: Box<str>, why: String },
    /// An answer or a notification got no response, and may not have arrived.
    PostLost { server: Box<str>, why: String },
    /// Answers to questions of a remote server that waited until it can be reached are dropped.
    AnswersDropped { server: Box<str>, count: usize, why: Box<str> },
    /// A server's process runs.
    Started { server: Box<str>, run: Run },
    /// A server's process could not be started.
    StartFailed { command: Box<str>, why: StartFailure },
    /// A server's process ended by itself.
    Exited { server: Box<str>, exit: Exit },
    /// A server does not read, or does not write, any more.
    Closed { server: Box<str>, what: &'static str },
    /// A server is stopped and started again.
    Restarting { server: Box<str>, why: &'static str, wait: Duration },
    /// A restarted server answers again.
    Restarted { server: Box<str>, took: Duration },
    /// A merged list was given without what this server lists, which takes too long.
    ListLate { server: Box<str>, wait: Duration },
    /// A server does not speak the era of a client: it is left out of what that client sees.
    OtherEra { server: Box<str> },
    /// A list of a server could not be had, and is asked for again; `failed` if that has happened too often.
    ListFailed { server: Box<str>, method: Box<str>, why: String, wait: Duration, failed: bool },
    /// A list of a server ends before its end.
    OddList { server: Box<str>, method: Box<str>, why: &'static str },
    /// A restart did not work.
    RestartFailed { server: Box<str>, why: String },
    /// A server took long to start, and nothing is remembered of it.
    SlowStart { server: Box<str>, took: Duration },
    /// A server answers otherwise than it did last time.
    MemoryWasWrong { server: Box<str> },
    /// A server has failed too often.
    Down { server: Box<str>, why: &'static str, every: Duration },
    /// A call is sent to its server once more.
    Repeated { server: Box<str>, method: Box<str>, attempt: u32, why: &'static str },
    /// A call waits for a person's yes.
    HoldAsked { server: Box<str>, tool: Box<str>, hold: u64, patience: Duration },
    /// A person has said something about a call.
    HoldDecided {
        server: Box<str>,
        tool: Box<str>,
        yes: bool,
        by: Box<str>,
        place: Box<str>,
        reason: Box<str>,
    },
    /// A callback was not delivered, and is sent again after a while.
    CallbackFailed { name: Box<str>, attempts: u64, why: Box<str>, wait: Duration },
    /// A callback is not sent any more unless a person wants that.
    CallbackParked { name: Box<str>, callback: u64, why: Box<str> },
    /// A call joined another one with the same idempotency key.
    Joined { server: Box<str>, tool: Box<str> },
    /// A server said nothing at all after it was told to cancel, or asked whether it is there.
    Hung { server: Box<str>, silent: Duration, asked: &'static str },
    /// Nobody used a server for a while: its process is stopped until somebody does.
    FellAsleep { server: Box<str>, idle: Duration },
    /// The file was read again, and says something else.
    Reloaded {
        added: Vec<Box<str>>,
        removed: Vec<Box<str>>,
        replaced: Vec<Box<str>>,
        adjusted: Vec<Box<str>>,
    },
    /// A file has had too many names of servers: the last ones are left out.
    TooManyNames { count: usize },
    /// Tokens are gone or for something else; without names, those without a token are not let in any more.
    Revoked { names: Vec<Box<str>> },
    /// The file has several servers now, and these clients have only the one that it had.
    StaysAlone { server: Box<str>, clients: usize },
    /// A server declared limits that make no sense.
    OddDeclaration { server: Box<str> },
    /// A client has given two silent calls up at the same age.
    LikelyCap { cap: Duration, client: Option<Box<str>>, learn: Learn },
    /// It is known after which time a client gives up on a tool, and its slow calls are handed off before.
    CapKnown { client: Box<str>, cap: Duration, from: String },
    /// Several measured clients say the same of themselves, and differ.
    ClientUnclear { client: Box<str> },
    /// A client waited longer for a tool than its profile says.
    WaitsLonger { client: Box<str>, cap: Duration, age: Duration },
    /// Lines of a server that are no messages.
    BadLines { server: Box<str>, count: u64, shown: String },
    /// How many such lines it was, when the server has ended.
    AllBadLines { server: Box<str>, count: u64 },
    /// An answer that strict JSON would refuse was passed on.
    TolerantAnswer { server: Box<str> },
    /// A server gave our ids back in the other JSON type.
    OtherIdType { server: Box<str> },
    /// An answer to a call that has ended, or a second answer.
    LateAnswer { server: Box<str>, attempt: u64 },
    /// An answer to a question that nobody asked.
    UnknownAnswer { from: Box<str>, id: String },
    /// Progress for a call that has ended, or for none.
    StrayProgress { server: Box<str> },
    /// A client's line was refused.
    BadClientLine { why: String },
    /// A server's request was not answered by the client in time.
    AskTimedOut { server: Box<str>, method: Box<str>, limit: Duration },
    /// A server has too many requests open.
    TooManyAsks { server: Box<str> },
    /// The machine slept.
    Slept { time: Duration },
    /// The client has gone, or a signal came, and everything ends.
    Ending { why: &'static str, calls: usize },
}

impl Note {
    /// How much it matters.
    pub fn level(&self) -> Level {
        match self {
            Note::StartFailed { .. } | Note::NeverStored { .. } => Level::Error,
            Note::Failed(_)
            | Note::Exited { .. }
            | Note::Closed { .. }
            | Note::Restarting { .. }
            | Note::PostRefused { .. }
            | Note::PostLost { .. }
            | Note::AnswersDropped { .. }
            | Note::Unreachable { .. }
            | Note::StoreFailed { .. }
            | Note::StoreUnread { .. }
            | Note::StoreLost { .. }
            | Note::StoredAtLast { .. }
            | Note::Retrying { .. }
            | Note::Restarted { .. }
            | Note::ListLate { .. }
            | Note::OtherEra { .. }
            | Note::TooManyNames { .. }
            | Note::ListFailed { .. }
            | Note::OddList { .. }
            | Note::RestartFailed { .. }
            | Note::Down { .. }
            | Note::SlowStart { .. }
            | Note::MemoryWasWrong { .. }
            | Note::Hung { .. }
            | Note::OddDeclaration { .. }
            | Note::LikelyCap { .. }
            | Note::WaitsLonger { .. }
            | Note::BadLines { .. }
            | Note::AllBadLines { .. }
            | Note::TolerantAnswer { .. }
            | Note::BadClientLine { .. }
            | Note::AskTimedOut { .. }
            | Note::CallbackFailed { .. }
            | Note::CallbackParked { .. }
            | Note::TooManyAsks { .. } => Level::Warn,
            Note::SessionSleeps { .. } => Level::Debug,
            Note::SessionTaken { .. } => Level::Info,
            Note::OtherIdType { .. } | Note::LateAnswer { .. } => Level::Info,
            Note::UnknownAnswer { .. } | Note::Slept { .. } | Note::Repeated { .. } => Level::Info,
            Note::HoldAsked { .. } | Note::HoldDecided { .. } => Level::Info,
            Note::FellAsleep { .. } | Note::Reloaded { .. } | Note::Revoked { .. } => Level::Info,
            Note::StaysAlone { .. } => Level::Info,
            Note::Joined { .. } | Note::CapKnown { .. } | Note::ClientUnclear { .. } => Level::Info,
            Note::Started { .. } | Note::StrayProgress { .. } | Note::Ending { .. } => Level::Debug,
        }
    }

    /// A short name for machines.
    pub fn kind(&self) -> &'static str {
        match self {
            Note::Failed(failure) => failure.kind.name(),
            Note::SessionSleeps { .. } => "session-sleeps",
            Note::SessionTaken { .. } => "session-taken",
            Note::PostRefused { .. } => "post-refused",
            Note::PostLost { .. } => "post-lost",
            Note::AnswersDropped { .. } => "answers-dropped",
            Note::Unreachable { .. } => "unreachable",
            Note::StoreFailed { .. } => "store-failed",
            Note::StoreUnread { .. } => "store-unread",
            Note::StoreLost { .. } => "store-lost",
            Note::StoredAtLast { .. } => "stored-at-last",
            Note::NeverStored { .. } => "never-stored",
            Note::Retrying { .. } => "retrying",
            Note::Started { .. } => "started",
            Note::StartFailed { .. } => "start-failed",
            Note::Exited { .. } => "exited",
            Note::Closed { .. } => "closed",
            Note::Restarting { .. } => "restarting",
            Note::Restarted { .. } => "restarted",
            Note::ListLate { .. } => "list-late",
            Note::OtherEra { .. } => "other-era",
            Note::ListFailed { .. } => "list-failed",
            Note::OddList { .. } => "odd-list",
            Note::RestartFailed { .. } => "restart-failed",
            Note::SlowStart { .. } => "slow-start",
            Note::MemoryWasWrong { .. } => "memory-was-wrong",
            Note::Down { .. } => "down",
            Note::Repeated { .. } => "repeated",
            Note::CallbackFailed { .. } => "callback-failed",
            Note::CallbackParked { .. } => "callback-parked",
            Note::HoldAsked { .. } => "hold-asked",
            Note::HoldDecided { .. } => "hold-decided",
            Note::Joined { .. } => "joined",
            Note::Hung { .. } => "hung",
            Note::FellAsleep { .. } => "fell-asleep",
            Note::Reloaded { .. } => "reloaded",
            Note::Revoked { .. } => "revoked",
            Note::StaysAlone { .. } => "stays-alone",
            Note::TooManyNames { .. } => "too-many-names",
            Note::OddDeclaration { .. } => "odd-declaration",
            Note::LikelyCap { .. } => "likely-cap",
            Note::CapKnown { .. } => "cap-known",
            Note::ClientUnclear { .. } => "client-unclear",
            Note::WaitsLonger { .. } => "waits-longer",
            Note::BadLines { .. } => "bad-lines",
            Note::AllBadLines { .. } => "bad-lines-total",
            Note::TolerantAnswer { .. } => "tolerant-answer",
            Note::OtherIdType { .. } => "other-id-type",
            Note::LateAnswer { .. } => "late-answer",
            Note::UnknownAnswer { .. } => "unknown-answer",
            Note::StrayProgress { .. } => "stray-progress",
            Note::BadClientLine { .. } => "bad-client-line",
            Note::AskTimedOut { .. } => "ask-timeout",
            Note::TooManyAsks { .. } => "too-many-asks",
            Note::Slept { .. } => "slept",
            Note::Ending { .. } => "ending",
        }
    }
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let show = |time: &Duration| show_duration(*time);
        match self {
            Note::Failed(failure) => f.write_str(&failure.log_line()),
            Note::Started { server, run } => write!(f, "`{server}` runs (run {})", run.0),
            Note::SessionSleeps { session } => write!(f, "session {session}… is unused; its server is freed"),
            Note::SessionTaken { session } => {
                write!(
                    f,
                    "session {session}… is served by another process now; calls that it began here go on"
                )
            }
            Note::PostRefused { server, why } => write!(f, "`{server}` refused a message: {why}"),
            Note::PostLost { server, why } => write!(f, "a message to `{server}` may be lost: {why}"),
            Note::AnswersDropped { server, count, why } => {
                let what = if *count == 1 { "an answer".to_owned() } else { format!("{count} answers") };
                write!(f, "{what} of the client to `{server}` never reached it: {why}")
            }
            Note::StoreFailed { why } => write!(f, "could not be stored: {why}"),
            Note::StoreUnread { why } => write!(f, "could not be read from the store: {why}"),
            Note::StoreLost { why } => f.write_str(why),
            Note::StoredAtLast { count } => {
                write!(f, "stored now, after a failure before: {}", counted(*count, "result"))
            }
            Note::NeverStored { count, why } => {
                write!(
                    f,
                    "{} lost with this process, because the store failed: {why}",
                    counted(*count, "result")
                )
            }
            Note::Unreachable { server, why } => write!(f, "cannot reach `{server}`: {why}"),
            Note::Retrying { server, why, wait } if wait.is_zero() => {
                write!(f, "trying `{server}` again: {why}")
            }
            Note::Retrying { server, why, wait } => {
                write!(f, "trying `{server}` again in {}: {why}", show(wait))
            }
            Note::StartFailed { command, why } => write!(f, "cannot start `{command}`: {why}"),
            Note::Exited { server, exit } => write!(f, "`{server}` ended: {exit}"),
            Note::Closed { server, what } => write!(f, "`{server}` has closed its {what}; outlast stops it"),
            Note::Restarting { server, why, wait } if wait.is_zero() => {
                write!(f, "restarting `{server}`: {why}")
            }
            Note::Restarting { server, why, wait } => {
                write!(f, "restarting `{server}` in {}: {why}", show(wait))
            }
            Note::Restarted { server, took } => write!(f, "`{server}` is back after {}", show(took)),
            Note::ListLate { server, wait } => {
                write!(
                    f,
                    "`{server}` did not list within {} (list-wait); it is left out until it does",
                    show(wait)
                )
            }
            Note::OtherEra { server } => {
                write!(
                    f,
                    "`{server}` does not speak the revision of a client; that client does not see it at the merged door"
                )
            }
            Note::ListFailed { server, method, why, wait, failed } => {
                let again = if *failed { "it is asked for again every" } else { "it is asked for again in" };
                write!(f, "`{server}`: {method} failed: {why}; {again} {}", show(wait))
            }
            Note::OddList { server, method, why } => write!(f, "`{server}`: {method} ends early: {why}"),
            Note::RestartFailed { server, why } => write!(f, "restart of `{server}` failed: {why}"),
            Note::SlowStart { server, took } => {
                write!(
                    f,
                    "`{server}` took {} to start; with --instant the client need not wait for that",
                    show(took)
                )
            }
            Note::MemoryWasWrong { server } => {
                let now = "the client was told the old answer; reconnect the client to see the new one";
                write!(f, "the answer of `{server}` to the handshake has changed (--instant): {now}")
            }
            Note::Down { server, why, every } => {
                write!(
                    f,
                    "`{server}` has failed too often ({why}); outlast tries again every {}",
                    show(every)
                )
            }
            Note::Repeated { server, method, attempt, why } => {
                let method = cut(method, NAME);
                write!(f, "`{method}` is sent to `{server}` again (attempt {attempt}): {why}")
            }
            Note::HoldAsked { server, tool, hold, patience } => write!(
                f,
                "`{tool}` of `{server}` waits up to {} for approval: outlast holds approve {hold}",
                show(patience)
            ),
            Note::HoldDecided { server, tool, yes, by, place, reason } => {
                let (word, why) =
                    (if *yes { "approved" } else { "declined" }, if reason.is_empty() { "" } else { ": " });
                write!(f, "`{tool}` of `{server}` was {word} by {by} ({place}){why}{reason}")
            }
            Note::CallbackFailed { name, attempts, why, wait } => write!(
                f,
                "callback `{name}` was not delivered ({}): {why}; again in {}",
                counted(usize::try_from(*attempts).unwrap_or(usize::MAX), "attempt"),
                show(wait)
            ),
            Note::CallbackParked { name, callback, why } => write!(
                f,
                "callback `{name}` was not delivered and is parked: {why}; to send it again: \
                 outlast callbacks retry {callback}"
            ),
            Note::Joined { server, tool } => {
                let tool = cut(tool, NAME);
                write!(
                    f,
                    "a call of `{tool}` at `{server}` joined an earlier call that is the same (idempotency key or join-repeats)"
                )
            }
            Note::Hung { server, silent, asked } => {
                write!(f, "`{server}` hangs: no sign of life for {} since {asked}", show(silent))
            }
            Note::FellAsleep { server, idle } => {
                write!(
                    f,
                    "`{server}` was not used for {} (server-idle): stopped until it is needed",
                    show(idle)
                )
            }
            Note::Reloaded { added, removed, replaced, adjusted } => {
                let parts =
                    [("new", added), ("gone", removed), ("restarted", replaced), ("changed", adjusted)];
                let parts = parts.iter().filter(|(_, names)| !names.is_empty());
                let parts: Vec<String> = parts
                    .map(|(what, names)| format!("{what}: {}", cut(&names.join(", "), 4 * NAME)))
                    .collect();
                let what = if parts.is_empty() { "the names of tools".into() } else { parts.join("; ") };
                write!(f, "the file was read again; {what}")
            }
            Note::Revoked { names } if names.is_empty() => {
                f.write_str("the file was read again; whoever has no token has to come in with one")
            }
            Note::Revoked { names } => {
                let names = names.join(", ");
                let names = cut(&names, 4 * NAME);
                write!(f, "the file was read again; tokens that are gone or for something else: {names}")
            }
            Note::StaysAlone { server, clients } => {
                let clients = counted(clients, "client");
                let then = "to see the others, connect again";
                write!(
                    f,
                    "{clients} that began when `{server}` was the only server: only `{server}` is there for those; {then}"
                )
            }
            Note::TooManyNames { count } => {
                write!(
                    f,
                    "the file has named more than {} servers since the start; {count} of them are left out until outlast is started again",
                    crate::definitions::NAMES
                )
            }
            Note::OddDeclaration { server } => {
                write!(f, "`{server}` declares timeouts that are not valid; ignored")
            }
            Note::LikelyCap { cap, client, learn } => {
                let cap = show(cap);
                let who =
                    client.as_ref().map_or("the client".into(), |name| format!("`{}`", cut(name, NAME)));
                let then = match (learn, client) {
                    (Learn::Auto, _) => "from now on such calls are handed off before it".to_owned(),
                    (Learn::Ask, Some(name)) => format!(
                        "to have such calls handed off before it, run: outlast clients learn '{}'",
                        cut(name, NAME)
                    ),
                    _ => format!("with --client-cap {cap} such calls are handed off before it"),
                };
                write!(
                    f,
                    "{who} gives up on silent calls after {cap}, which looks like a limit of its own; {then}"
                )
            }
            Note::CapKnown { client, cap, from } => {
                let (client, cap) = (cut(client, NAME), show(cap));
                write!(
                    f,
                    "`{client}` gives up on a tool after {cap} ({from}): slow calls are handed off shortly before that"
                )
            }
            Note::ClientUnclear { client } => {
                let client = cut(client, NAME);
                write!(
                    f,
                    "several programs call themselves `{client}` and have different limits: nothing is done for it; \
                     --client-cap or --client-profile says which limit it has"
                )
            }
            Note::WaitsLonger { client, cap, age } => {
                let (client, cap, age) = (cut(client, NAME), show(cap), show(age));
                write!(
                    f,
                    "`{client}` waited {age} for a tool, longer than the {cap} that are known of it: its calls are not \
                     handed off any more; --client-cap says when they are to be"
                )
            }
            Note::BadLines { server, count: 1, shown } => {
                write!(f, "`{server}` wrote a line to stdout that is not a message; dropped: {shown}")
            }
            Note::BadLines { server, count, shown } => {
                write!(f, "`{server}` wrote {count} lines to stdout that are not messages; the last: {shown}")
            }
            Note::AllBadLines { server, count } => {
                write!(f, "`{server}` wrote {count} lines to stdout that are not messages (total)")
            }
            Note::TolerantAnswer { server } => {
                write!(f, "`{server}` sent an answer that is not strict JSON; passed on unchanged")
            }
            Note::OtherIdType { server } => {
                write!(f, "`{server}` returns ids in another JSON type; accepted")
            }
            Note::LateAnswer { server, attempt } => {
                write!(f, "`{server}` answered attempt {attempt}, which has ended; dropped")
            }
            Note::UnknownAnswer { from, id } => {
                write!(f, "{from} answered unknown id {}; dropped", cut(id, NAME))
            }
            Note::StrayProgress { server } => {
                write!(f, "`{server}` reported progress for a call that is not in flight; dropped")
            }
            Note::BadClientLine { why } => write!(f, "a line of the client was refused: {why}"),
            Note::AskTimedOut { server, method, limit } => {
                let method = cut(method, NAME);
                write!(f, "the client did not answer `{method}` of `{server}` within {}", show(limit))
            }
            Note::TooManyAsks { server } => {
                write!(f, "`{server}` has too many requests open; the newest was refused")
            }
            Note::Slept { time } => {
                write!(f, "the machine slept for {}; limits did not run meanwhile", show(time))
            }
            Note::Ending { why, calls } => write!(f, "ending: {why}, {} in flight", counted(*calls, "call")),
        }
    }
}
