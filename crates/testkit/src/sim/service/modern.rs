//! Clients of the modern era: one POST for each request, and a hang-up is a cancel.

use super::visit::{Visit, What, method, request, while_of};
use crate::exchange::MODERN;
use crate::sim::rng::Rng;
use std::time::Duration;

const META: &str = r#""io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}"#;
const LOGS: &str = r#","io.modelcontextprotocol/logLevel":"debug""#;

#[derive(Debug)]
pub(super) struct Caller {
    index: usize,
    principal: Option<&'static str>,
    left: usize,
    next: u64,
}

impl Caller {
    pub(super) fn new(index: usize, principal: Option<&'static str>, calls: usize) -> Caller {
        Caller { index, principal, left: calls, next: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        self.left == 0
    }

    /// The next request, and after how long it is given up, if it is.
    pub(super) fn call(&mut self, rng: &mut Rng) -> (Visit, Option<Duration>) {
        self.left -= 1;
        self.next += 1;
        let owner = self.principal.unwrap_or("anon");
        let nonce = format!("{owner}.m{}.{}", self.index, self.next);
        // An id is unique for nobody in this era, and neither is a token.
        let id = if rng.chance(50) { rng.below(3).to_string() } else { format!("\"{}\"", rng.below(3)) };
        let method = method(rng, true);
        let meta = if rng.chance(30) { format!("{META}{LOGS}") } else { META.to_owned() };
        let body = request(rng, &id, "tok", method, &nonce, &meta);
        let visit = Visit {
            principal: self.principal,
            owner: owner.to_owned(),
            session: None,
            version: Some(MODERN.to_owned()),
            what: What::Post(body),
        };
        let gives_up = method == "subscriptions/listen" || rng.chance(15);
        (visit, gives_up.then(|| while_of(rng, 30, 5_000)))
    }
}
