//! The thread that sends spans to a collector, by OTLP over HTTP.
//!
//! A batch that a collector may take later is kept and sent again after a while; what it refuses for good is lost. One
//! line in the log says what is wrong, and one that it is over, at most once a minute.

use super::Warn;
use super::span::{Origin, Span, request};
use crate::clock;
use crate::http1::fields;
use crate::observe::backlog::Backlog;
use crate::observe::text::escape;
use crate::server::http::tcp::Host;
use crate::server::http::{Options, Remote, proxies_of_environment, words};
use http::header::{HeaderName, HeaderValue};
use http::{Method, Uri};
use outlast_engine::http::Trouble;
use outlast_engine::settings::{BadValue, counted, show_duration};
use outlast_engine::wire::Outgoing;
use serde_json::Value as Json;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long spans wait for more of them.
const DELAY: Duration = Duration::from_secs(1);

/// How long a collector may take to answer, and to be reached.
const ANSWER: Duration = Duration::from_secs(10);
const CONNECT: Duration = Duration::from_secs(5);

/// The wait before a batch is sent again; doubles up to the second. What a collector wishes counts up to the third.
const BACKOFF: Duration = Duration::from_secs(1);
const LONGEST: Duration = Duration::from_secs(30);
const WISHED: Duration = Duration::from_secs(300);

/// How long the log hears nothing more of a collector that it has heard of.
const SILENCE: Duration = Duration::from_secs(60);

/// Bytes of an answer that are read.
const REPLY: usize = 64 << 10;

/// The end of every address that takes traces.
const PATH: &str = "/v1/traces";

/// Where spans go. Not printable: its headers are secret.
pub struct Collector {
    remote: Arc<Remote>,
    shown: String,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Collector({})", self.shown)
    }
}

/// Reads the address of a collector: as OpenTelemetry has it, without the path of traces, or with it.
pub fn endpoint(text: &str) -> Result<Uri, BadValue> {
    let wrong = || {
        BadValue(format!(
            "otlp: `{}` is not the URL of a collector; write http://127.0.0.1:4318",
            escape(text)
        ))
    };
    let url: Uri = text.trim().parse().map_err(|_| wrong())?;
    let known = matches!(url.scheme_str(), Some("http" | "https"));
    if !known || Host::of(&url).is_none() {
        return Err(wrong());
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(PATH).unwrap_or(path);
    let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
    let mut parts = url.clone().into_parts();
    parts.path_and_query = format!("{path}{PATH}{query}").parse().ok();
    Uri::from_parts(parts).map_err(|_| wrong())
}

impl Collector {
    /// A collector at an address, which every request tells these headers. Connects to nothing; the error is for people.
    pub fn new(url: &Uri, headers: Vec<(HeaderName, HeaderValue)>) -> Result<Collector, String> {
        let host = Host::of(url).map(|host| host.to_string()).unwrap_or_default();
        let shown = format!("{}://{host}{}", url.scheme_str().unwrap_or_default(), url.path());
        let remote = Remote::new(Options {
            url: url.clone(),
            headers,
            ca_file: None,
            proxies: proxies_of_environment(url, crate::config::any_variable)?,
            way: None,
            connect: CONNECT,
            pool_idle: LONGEST,
            pool_max_idle: 1,
            max_message: REPLY,
        })?;
        Ok(Collector { remote, shown })
    }

    /// Sends a batch. The error says what is wrong, and whether the collector may take it later.
    async fn post(&self, batch: &Outgoing) -> Result<Taken, Refused> {
        let sent = self.remote.send(Method::POST, Some(batch), true, |to| {
            fields::write(to, "content-type", b"application/json");
        });
        let mut reply = sent.await.map_err(Refused::from)?;
        if !reply.is_success() {
            let refused = Refused::from(reply.refusal().await);
            self.remote.give_back(reply).await;
            return Err(refused);
        }
        let body = reply.whole(REPLY).await.ok().flatten().unwrap_or_default();
        self.remote.give_back(reply).await;
        Ok(Taken::of(&body))
    }
}

/// What a collector says of a batch that it has taken.
#[derive(Debug, Default, PartialEq, Eq)]
struct Taken {
    /// Spans that it did not want.
    rejected: u64,
    /// Why.
    why: String,
}

impl Taken {
    fn of(body: &[u8]) -> Taken {
        let whole: Json = serde_json::from_slice(body).unwrap_or_default();
        let part = &whole["partialSuccess"];
        // A number of 64 bits is a string, and often is not.
        let rejected = &part["rejectedSpans"];
        let rejected = rejected.as_u64().or_else(|| rejected.as_str()?.parse().ok()).unwrap_or_default();
        Taken { rejected, why: escape(part["errorMessage"].as_str().unwrap_or_default()) }
    }
}

/// Why a batch was not taken.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    kind: Fault,
    /// For people.
    why: String,
    /// When the collector wants it again.
    after: Option<Duration>,
}

/// What is wrong, as far as it makes a difference to a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    Unreachable,
    Silent,
    Broken,
    NotHttp,
    Status(u16),
    Rejected,
}

impl Fault {
    /// Whether the collector may take the same batch later, as the protocol says.
    fn passes(self) -> bool {
        matches!(self, Fault::Unreachable | Fault::Silent | Fault::Broken | Fault::Status(429 | 502..=504))
    }

    /// What a person can do.
    fn advice(self) -> &'static str {
        match self {
            Fault::Status(401 | 403) => "; give its credentials with otlp-header",
            Fault::Status(404 | 405) => "; is the path of otlp right? /v1/traces is added to it",
            Fault::Status(400 | 415) => "; does it take OTLP as JSON?",
            Fault::NotHttp | Fault::Broken => {
                "; a port for gRPC (4317)? Here it must be the one for HTTP (4318)"
            }
            _ => "",
        }
    }
}

impl From<Trouble> for Refused {
    fn from(trouble: Trouble) -> Refused {
        let (kind, why, after) = match trouble {
            // The setting that this names is for servers.
            Trouble::Unreachable(why) => {
                (Fault::Unreachable, why.replace("see --ca-file", "see SSL_CERT_FILE"), None)
            }
            Trouble::Broken(why) => (Fault::Broken, why.into(), None),
            Trouble::NotMcp(why) => (Fault::NotHttp, why.into(), None),
            Trouble::Status { status, retry_after, .. } => {
                (Fault::Status(status), format!("it answers {}", words::of_status(status)), retry_after)
            }
        };
        Refused { kind, why, after }
    }
}

/// Starts the thread. Without one the queue fills, and that is told.
pub fn spawn(spans: Arc<Backlog<Span>>, collector: Collector, process: &str, warn: Warn) {
    let origin = Origin { process: process.into() };
    let thread = std::thread::Builder::new().name("otlp".into());
    let _ = thread.spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build();
        let Ok(runtime) = runtime else { return };
        Sender { spans, collector, origin, warn, runtime, said: None, said_at: None }.run();
    });
}

/// What the thread works on.
struct Sender {
    spans: Arc<Backlog<Span>>,
    collector: Collector,
    origin: Origin,
    warn: Warn,
    runtime: tokio::runtime::Runtime,
    /// What the log has heard to be wrong, and when.
    said: Option<Fault>,
    said_at: Option<Instant>,
}

impl Sender {
    /// Sends what there is, until the end.
    fn run(mut self) {
        loop {
            let batch = self.spans.collect(DELAY);
            if batch.is_empty() {
                return;
            }
            let body = Outgoing::plain(request(&self.origin, &batch));
            self.deliver(&body, batch.len() as u64);
        }
    }

    /// Sends a batch until it is taken, refused for good, or the end has come.
    fn deliver(&mut self, body: &Outgoing, count: u64) {
        let mut backoff = BACKOFF;
        loop {
            let refused = match self.post(body) {
                Ok(Taken { rejected: 0, .. }) => return self.say_well(),
                Ok(Taken { rejected, why }) => {
                    self.spans.lose(rejected);
                    return self.say(&Refused {
                        kind: Fault::Rejected,
                        why: format!("it rejects spans: {why}"),
                        after: None,
                    });
                }
                Err(refused) => refused,
            };
            self.say(&refused);
            let wait = refused.after.map_or(backoff, |after| after.clamp(backoff, WISHED));
            if !refused.kind.passes() || self.spans.pause(wait) {
                return self.spans.lose(count);
            }
            backoff = (backoff * 2).min(LONGEST);
        }
    }

    fn post(&self, body: &Outgoing) -> Result<Taken, Refused> {
        let late = || {
            let why = format!("it does not answer within {}", show_duration(ANSWER));
            Refused { kind: Fault::Silent, why, after: None }
        };
        let post = async { tokio::time::timeout(ANSWER, self.collector.post(body)).await };
        self.runtime.block_on(post).unwrap_or_else(|_| Err(late()))
    }

    /// One line for each thing that is wrong, and not more often than once in a while.
    fn say(&mut self, refused: &Refused) {
        let recently = self.said_at.is_some_and(|at| !clock::is_past(at + SILENCE));
        if self.said == Some(refused.kind) || recently {
            return;
        }
        (self.said, self.said_at) = (Some(refused.kind), Some(clock::monotonic()));
        let Refused { kind, why, .. } = refused;
        let follows = if kind.passes() {
            "tried again, while up to 4 MiB of spans wait"
        } else {
            "these spans are lost"
        };
        (self.warn)(format!(
            "otlp: no traces to {}: {why}{}; {follows}",
            self.collector.shown,
            kind.advice()
        ));
    }

    fn say_well(&mut self) {
        if self.said.take().is_some() {
            let lost = match self.spans.lost() {
                0 => "none is lost".to_owned(),
                lost => format!("{} lost so far", counted(lost as usize, "span")),
            };
            (self.warn)(format!("otlp: {} takes traces again; {lost}", self.collector.shown));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_taken_later_is_what_the_protocol_says() {
        let refused = |status: u16| {
            let retry_after = Some(Duration::from_secs(7));
            Refused::from(Trouble::Status { status, retry_after, had_session: false, body: "secret".into() })
        };
        for (status, passes) in
            [(429, true), (502, true), (503, true), (504, true), (400, false), (500, false)]
        {
            assert_eq!(refused(status).kind.passes(), passes, "{status}");
        }
        assert_eq!(refused(503).after, Some(Duration::from_secs(7)));
        assert_eq!(
            refused(401).why,
            "it answers 401 Unauthorized",
            "what came with it may repeat our credentials"
        );
        assert!(!Refused::from(Trouble::NotMcp("HTTP/2".into())).kind.passes());
        let why = "the certificate of c is signed by nobody whom this system trusts (see --ca-file)";
        let refused = Refused::from(Trouble::Unreachable(why.into()));
        assert!(refused.kind.passes() && refused.why.ends_with("(see SSL_CERT_FILE)"), "{}", refused.why);
    }

    #[test]
    fn spans_that_are_not_wanted_are_counted_however_the_number_is_written() {
        let rejected = |body: &str| Taken::of(body.as_bytes()).rejected;
        assert_eq!(rejected(r#"{"partialSuccess":{"rejectedSpans":"7","errorMessage":"no"}}"#), 7);
        assert_eq!(rejected(r#"{"partialSuccess":{"rejectedSpans":7}}"#), 7);
        for whole in [
            "",
            "{}",
            r#"{"partialSuccess":null}"#,
            r#"{"partialSuccess":{"rejectedSpans":"-1"}}"#,
            "\x0a\x02",
        ] {
            assert_eq!(rejected(whole), 0, "{whole}");
        }
    }
}
