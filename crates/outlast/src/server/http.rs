//! A server behind HTTP: the client's half of Streamable HTTP, both eras.
//!
//! Only mechanics: a message becomes a POST, what comes back becomes happenings. Whether something
//! is tried again, resumed or given up, the engine decides; so nothing here has a time limit but
//! making a connection and tidying up after an answer.
//!
//! A [`Remote`] is one server and its connections; a [`Session`] is one life of it as the engine
//! sees it. A task of a session owns its connection and drives it itself: what is abandoned is
//! closed, and nothing runs in the background but the task that lets idle connections go.
//!
//! Bounds: a message has at most `max-message` bytes, a refusal 64 KiB, a session id 1 KiB; every
//! post in flight has one connection, and how many are in flight is the engine's business.

mod gate;
pub(crate) mod head;
pub(crate) mod link;
mod pool;
mod proxy;
mod remote;
mod reply;
mod sender;
mod session;
mod talk;
pub(crate) mod tcp;
#[cfg(test)]
mod tests;
pub(crate) mod tls;
pub(crate) mod words;

pub use head::parse_header;
pub use proxy::of_environment as proxies_of_environment;
pub use remote::Remote;
pub use session::Session;

use crate::keep::Way;
use http::Uri;
use http::header::{HeaderName, HeaderValue};
use hyper_util::client::proxy::matcher::Matcher;
use outlast_engine::event::Line;
use outlast_engine::http::{StreamEnd, Trouble};
use outlast_engine::id::AttemptId;
use outlast_engine::wire::{Outgoing, Oversized};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

/// How to reach a server. Not printable: it holds secrets.
pub struct Options {
    /// Where it is.
    pub url: Uri,
    /// What every request carries, as [`parse_header`] made it.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// The proxies of the environment.
    pub proxies: Matcher,
    /// The way to a service of our own, in place of the URL's host.
    pub way: Option<Arc<Way>>,
    /// How long a connection may take: the name, TCP, a proxy and TLS.
    pub connect: Duration,
    /// How long a connection is kept without use. A server that names a shorter time is believed.
    pub pool_idle: Duration,
    /// Connections that are kept without use; one more is closed.
    pub pool_max_idle: usize,
    /// The longest message.
    pub max_message: usize,
}

/// What a session has to tell.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // nearly every one is a message, and none is kept
pub enum Happening {
    /// A message on the stream of an attempt.
    FromStream(AttemptId, Line),
    /// A message on the standing stream.
    FromStanding(Line),
    /// A message that was too long.
    Oversized(Oversized),
    /// The stream of an attempt ended before its answer. If it is resumable, what is remembered of
    /// it is kept until `reconnect` or `abandon`.
    StreamEnded(AttemptId, StreamEnd),
    /// The standing stream ended or was refused.
    StandingEnded(StreamEnd),
    /// A post failed; without an attempt it carried no request, or it was [`Session::connect`].
    Trouble(Option<AttemptId>, Trouble),
    /// A post that comes back ([`Post::comes_back`]): no connection could be made, for this reason.
    Undelivered(Outgoing, Box<str>),
    /// [`Session::connect`] succeeded.
    Connected,
    /// The session is over; nothing follows.
    Closed,
}

/// Who is told. Never called from inside a method of [`Session`], so it may call them.
pub trait Feed: Send + Sync {
    /// Takes what happened at one time.
    fn feed(&self, happenings: &mut dyn Iterator<Item = Happening>);

    /// What to wait for before more is read; nothing if there is room.
    fn congestion(&self) -> Option<Pin<Box<dyn Future<Output = ()> + Send>>> {
        None
    }
}
