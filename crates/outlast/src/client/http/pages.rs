//! The dashboard's requests: who sends them, and how they are answered. What they mean is in `dashboard`.

use super::Door;
use super::answer::Answer;
use super::body::{Events, Visit};
use super::connection::Connection;
use super::head::is_json;
use super::visitor::Refusal;
use crate::dashboard::act::Denied;
use crate::dashboard::link::{self, HoldLink};
use crate::dashboard::page::{PAGE, policy};
use crate::dashboard::route::{Act, Route};
use crate::dashboard::sight::Sight;
use crate::http1::fields::{Fields, Known, visible};
use crate::http1::head::Request;
use http::{Method, StatusCode};
use serde_json::Value;
use std::net::IpAddr;
use std::sync::Arc;

impl Door {
    /// Answers a request of the dashboard; `None` if the client left before there was an answer.
    pub(super) async fn page(
        self: &Arc<Door>,
        request: &Request,
        route: Route,
        connection: &mut Connection,
        from: Option<IpAddr>,
    ) -> Option<Answer> {
        let answer = match route {
            // The page itself tells nothing, and without it nobody could say who they are.
            Route::Page => Answer::html(PAGE).with("content-security-policy", policy()),
            Route::Bare => Answer::new(StatusCode::PERMANENT_REDIRECT).with("location", "outlast/"),
            Route::Method(wanted) => {
                let why = format!("Method Not Allowed: {wanted}");
                Answer::json_rpc(StatusCode::METHOD_NOT_ALLOWED, -32000, &why).with("allow", wanted)
            }
            Route::Linked(link) => self.linked(request, &link, connection).await,
            Route::Unknown => Answer::json_rpc(StatusCode::NOT_FOUND, -32000, "the dashboard is /outlast/"),
            asked => match self.doorman.sight(&request.fields) {
                Ok(sight) => {
                    connection.is_known();
                    self.asked(request, asked, sight, connection).await
                }
                Err(refusal) => self.refused(refusal, from),
            },
        };
        Some(guarded(answer))
    }

    /// A page that decides one held call. The link is the right to do so; nobody says who they are.
    async fn linked(
        self: &Arc<Door>,
        request: &Request,
        link: &HoldLink,
        connection: &mut Connection,
    ) -> Answer {
        let mut visit = Visit::new(self.clone(), None);
        let said = match request.method == Method::POST {
            true => match self.read(connection, &mut visit).await {
                Ok(said) => Some(said),
                Err(refused) => return *refused,
            },
            false => None,
        };
        match self.dashboard.linked(link, said.as_deref()).await {
            Ok(page) => Answer::page(page).with("content-security-policy", link::POLICY).to(visit),
            Err(Denied(status, why)) => Answer::json_rpc(status, -32000, &why).to(visit),
        }
    }

    async fn asked(
        self: &Arc<Door>,
        request: &Request,
        route: Route,
        sight: Sight,
        connection: &mut Connection,
    ) -> Answer {
        let mut visit = Visit::new(self.clone(), sight.principal.clone());
        match route {
            Route::State => json(&self.dashboard.state(&sight).await).to(visit),
            Route::Feed => match self.dashboard.open(sight) {
                Some(flow) => Answer::events(StatusCode::OK, Box::new(Events::new(flow, visit))),
                None => {
                    let why = "too many pages are open, or outlast is about to end; close one";
                    Answer::json_rpc(StatusCode::SERVICE_UNAVAILABLE, -32000, why)
                }
            },
            Route::Act(act) => match self.does(request, act, &sight, connection, &mut visit).await {
                Ok(done) => json(&done).to(visit),
                Err(denied) => *denied,
            },
            Route::Story(id) => match self.dashboard.story(&id, &sight).await {
                Some(story) => json(&story).to(visit),
                None => Answer::json_rpc(StatusCode::NOT_FOUND, -32000, "this call is not there (any more)"),
            },
            _ => Answer::json_rpc(StatusCode::NOT_FOUND, -32000, "the dashboard is /outlast/"),
        }
    }

    /// Something is changed only for this very page: others could send a person's browser here, too.
    async fn does(
        self: &Arc<Door>,
        request: &Request,
        act: Act,
        sight: &Sight,
        connection: &mut Connection,
        visit: &mut Visit,
    ) -> Result<Value, Box<Answer>> {
        if !is_of_this_page(&request.fields) || !is_json(&request.fields) {
            let why = "Forbidden: only the dashboard's own page may do this (Origin, Content-Type)";
            return Err(Box::new(Answer::json_rpc(StatusCode::FORBIDDEN, -32000, why)));
        }
        let body = self.read(connection, visit).await?;
        let done = self.dashboard.act(act, sight, &body).await;
        done.map_err(|Denied(status, why)| Box::new(Answer::json_rpc(status, -32000, &why)))
    }
}

impl super::visitor::Doorman {
    /// What a visitor of the dashboard, or a reader of the metrics, may see. Who may come in without a token from elsewhere sees nothing.
    pub(super) fn sight(&self, fields: &Fields) -> Result<Sight, Refusal> {
        use crate::dashboard::sight::Reach;
        let principal = self.principal(fields)?;
        let reach = match &principal {
            _ if self.same_user => Reach::All,
            Some(name) => self.access.reach_of(name),
            None if self.loopback => Reach::All,
            None => {
                let why = "Forbidden: the dashboard and the metrics need tokens where other machines can come in (--token-file)";
                return Err(Refusal::Forbidden(why.into()));
            }
        };
        Ok(Sight { principal, reach })
    }
}

/// Whether the page that sends a request came from where the request goes.
fn is_of_this_page(fields: &Fields) -> bool {
    let text = |name| fields.get(name).and_then(visible);
    let from = text(Known::Origin).and_then(|origin| origin.split_once("://"));
    from.is_some_and(|(_, from)| Some(from) == text(Known::Host))
}

fn json(value: &Value) -> Answer {
    Answer::json(StatusCode::OK, value.to_string().into())
}

/// Nothing of it is kept, guessed at, shown inside another page or told to one.
pub(super) fn guarded(answer: Answer) -> Answer {
    answer
        .with("cache-control", "no-store")
        .with("x-content-type-options", "nosniff")
        .with("x-frame-options", "DENY")
        .with("referrer-policy", "no-referrer")
        .with("cross-origin-opener-policy", "same-origin")
        .with("cross-origin-resource-policy", "same-origin")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_page_itself_may_do_something() {
        let own = |pairs: &[(&str, &str)]| is_of_this_page(&Fields::of_pairs(pairs));
        assert!(own(&[("host", "127.0.0.1:7600"), ("origin", "http://127.0.0.1:7600")]));
        assert!(own(&[("host", "mcp.example"), ("origin", "https://mcp.example")]));
        for origin in ["http://127.0.0.1:3000", "http://localhost:7600", "null", "127.0.0.1:7600"] {
            assert!(!own(&[("host", "127.0.0.1:7600"), ("origin", origin)]), "{origin}");
        }
        assert!(!own(&[("host", "127.0.0.1:7600")]), "no page at all");
    }
}
