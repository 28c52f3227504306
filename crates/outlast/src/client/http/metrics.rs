//! `/metrics`: who may read it, and how it is answered. What stands there is in `observe/metrics`.

use super::answer::Answer;
use super::body::Visit;
use super::connection::Connection;
use super::pages::guarded;
use super::{Door, NO_ENDPOINT};
use crate::http1::head::Request;
use http::{Method, StatusCode};
use std::net::IpAddr;
use std::sync::Arc;

const KIND: &[u8] = b"content-type: text/plain; version=0.0.4; charset=utf-8\r\n";

const NOT_ALL: &str =
    "outlast: the metrics are about everybody's calls: they are for tokens with dashboard = \"all\"\n";

impl Door {
    /// Answers whoever asks for the metrics. Nobody learns that there are any where they are off.
    pub(super) async fn metrics(
        self: &Arc<Door>,
        request: &Request,
        connection: &mut Connection,
        from: Option<IpAddr>,
    ) -> Answer {
        if !self.driver.measures() {
            return Answer::text(StatusCode::NOT_FOUND, NO_ENDPOINT);
        }
        if !matches!(request.method, Method::GET | Method::HEAD) {
            let answer = Answer::text(StatusCode::METHOD_NOT_ALLOWED, "outlast: Method Not Allowed: GET\n");
            return answer.with("allow", "GET");
        }
        let sight = match self.doorman.sight(&request.fields) {
            Ok(sight) => sight,
            Err(refusal) => return self.refused(refusal, from),
        };
        if !sight.sees_all() {
            return Answer::text(StatusCode::FORBIDDEN, NOT_ALL);
        }
        connection.is_known();
        let visit = Visit::new(self.clone(), sight.principal);
        let page = self.driver.metrics().await.unwrap_or_default();
        guarded(Answer::whole(StatusCode::OK, KIND, page.into())).to(visit)
    }
}
