//! What HTTP adds to a message: heads, statuses and streams, as the edges read and write them.

use crate::id::AttemptId;
use crate::wire::Outgoing;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::time::Duration;

/// The principal of clients that are the same user as we are, whatever way they came: their calls are those
/// of the client on our standard streams. No token has such a name.
pub const SAME_USER: &str = "(same user)";

/// What the head of a client's request says that matters here. The edge has checked `Origin`, `Host`
/// and the token.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Head {
    /// The server that the address names, `/mcp/NAME`; `None` at `/mcp`.
    pub server: Option<Box<str>>,
    /// The name of the token; `None` without authentication.
    pub principal: Option<Box<str>>,
    /// `Mcp-Session-Id`.
    pub session: Option<Box<str>>,
    /// `MCP-Protocol-Version`.
    pub version: Option<Box<str>>,
    /// `Mcp-Method`.
    pub method: Option<Box<str>>,
    /// `Mcp-Name`, as it was written.
    pub name: Option<Box<str>>,
    /// `Mcp-Param-*`: what follows the prefix, and the value as it was written.
    pub params: Vec<(Box<str>, Box<str>)>,
    /// `Last-Event-ID`.
    pub last_event: Option<Box<str>>,
    /// `traceparent`, and `tracestate` with it.
    pub trace: Option<Box<TraceFields>>,
    /// `Accept` lets us answer with JSON.
    pub takes_json: bool,
    /// `Accept` lets us answer with a stream of events.
    pub takes_events: bool,
}

/// To which trace a request says that it belongs, as it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceFields {
    /// `traceparent`.
    pub parent: Box<str>,
    /// `tracestate`; may be empty.
    pub state: Box<str>,
}

/// The response to a client's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// `Mcp-Session-Id`, where a session begins.
    pub session: Option<Box<str>>,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u32>,
    /// What follows.
    pub body: Body,
}

/// What follows the head of a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// Nothing.
    Empty,
    /// One JSON text.
    Json(Bytes),
    /// Events, until `Action::Finish`.
    Events,
}

/// A message to an HTTP server. The edge adds what every request has: the session, `Accept`,
/// `Content-Type`, and what a person configured.
#[derive(Clone, Debug)]
pub struct Post {
    /// The request that it carries; `None` for a notification or an answer.
    pub attempt: Option<AttemptId>,
    /// What is posted.
    pub message: Outgoing,
    /// Headers that mirror the message.
    pub headers: Vec<(Cow<'static, str>, Box<str>)>,
    /// It begins a session: it is sent without one, and its response may name one.
    pub begins_session: bool,
    /// What comes after it must not overtake it.
    pub goes_first: bool,
    /// It takes up its attempt again, from the last event that was seen of it.
    pub resumes: bool,
    /// To say it twice does no harm: an answer to a question, or what only says how things are.
    pub harmless: bool,
    /// It is given back if no connection can be made (`Event::Undelivered`): the answer to a question, which
    /// nobody can be asked for again.
    pub comes_back: bool,
}

/// How a stream of an HTTP server ended before it had to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamEnd {
    /// An event id was seen, so that the stream can be opened again from there.
    pub resumable: bool,
    /// The server's wish how long to wait before that; the last one that it said.
    pub retry: Option<Duration>,
    /// The stream was there before it ended; if not, it could not be opened.
    pub opened: bool,
    /// The status that refused it, if it was refused.
    pub status: Option<u16>,
    /// What happened, for people.
    pub why: Box<str>,
}

/// Why a message to an HTTP server got no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trouble {
    /// It never left: no connection could be made.
    Unreachable(Box<str>),
    /// It may have arrived, and the connection broke before the answer.
    Broken(Box<str>),
    /// The answer is an HTTP status other than 2xx.
    Status {
        /// The status.
        status: u16,
        /// `Retry-After`.
        retry_after: Option<Duration>,
        /// The request named a session.
        had_session: bool,
        /// The beginning of what came with it.
        #[serde(with = "crate::recording::form")]
        body: Bytes,
    },
    /// The answer is no MCP: another content type, no JSON, nothing.
    NotMcp(Box<str>),
}
