//! What HTTP clients send.

use crate::exchange::MODERN;
use crate::sim::process::odd;
use crate::sim::rng::Rng;
use outlast_engine::http::Head;
use std::time::Duration;

/// One HTTP request of a client.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) principal: Option<&'static str>,
    /// Whose words these are; without a token every session is a principal of its own.
    pub(super) owner: String,
    pub(super) session: Option<Box<str>>,
    pub(super) version: Option<String>,
    pub(super) what: What,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum What {
    Post(String),
    /// From this event on, or the standing stream.
    Get(Option<String>),
    Delete,
}

impl Visit {
    pub(super) fn head(&self) -> Head {
        let last_event = match &self.what {
            What::Get(last) => last.as_deref().map(Into::into),
            What::Post(_) | What::Delete => None,
        };
        Head {
            principal: self.principal.map(Into::into),
            session: self.session.clone(),
            version: self.version.as_deref().map(Into::into),
            last_event,
            takes_json: true,
            takes_events: true,
            ..Head::default()
        }
    }

    pub(super) fn is_modern(&self) -> bool {
        self.version.as_deref() == Some(MODERN)
    }
}

/// Whose a mark is.
pub(super) fn owner_of(nonce: &str) -> &str {
    nonce.split('.').next().unwrap_or_default()
}

/// What a request asks for.
pub(super) fn method(rng: &mut Rng, modern: bool) -> &'static str {
    match (rng.below(24), modern) {
        (0, _) => "tools/list",
        (1, _) => "resources/read",
        (2, _) => "prompts/get",
        (3, false) => "ping",
        (4, _) => "vendor/thing",
        (5, true) => "subscriptions/listen",
        (6, true) => "server/discover",
        (5, false) if rng.chance(40) => "logging/setLevel",
        (6 | 7, false) if rng.chance(60) => "resources/subscribe",
        (8, false) if rng.chance(60) => "resources/unsubscribe",
        _ => "tools/call",
    }
}

/// A request; `meta` stands before its progress token, if it gets one.
pub(super) fn request(rng: &mut Rng, id: &str, token: &str, method: &str, nonce: &str, meta: &str) -> String {
    let token = Some(token).filter(|_| rng.chance(60)).map(|token| format!(r#""progressToken":"{token}""#));
    let meta: Vec<&str> =
        [meta, token.as_deref().unwrap_or("")].into_iter().filter(|m| !m.is_empty()).collect();
    let meta = if meta.is_empty() { String::new() } else { format!(r#""_meta":{{{}}},"#, meta.join(",")) };
    let tool = rng.below(4);
    let uri = if method.starts_with("resources/") {
        format!(r#""uri":"u:{}","#, rng.below(2))
    } else {
        String::new()
    };
    let key = if method == "tools/call" { key(rng, tool) } else { String::new() };
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{{meta}{key}{uri}"name":"t{tool}","nonce":"{nonce}","odd":{}}}}}"#,
        odd(nonce)
    )
}

/// The idempotency key of some calls: few enough that many of them meet, and now and then one of another tool.
fn key(rng: &mut Rng, tool: usize) -> String {
    match rng.below(40) {
        0..4 => format!(r#""idempotencyKey":"k{tool}-{}","#, rng.below(4)),
        4 if rng.chance(20) => r#""idempotencyKey":"k1-0","#.to_owned(),
        _ => String::new(),
    }
}

/// A while: mostly short, sometimes long.
pub(super) fn while_of(rng: &mut Rng, short: u64, long: u64) -> Duration {
    if rng.chance(70) { rng.millis(0, short) } else { rng.millis(0, long) }
}
