//! What a person does on the page.

use super::Dashboard;
use super::route::Act;
use super::sight::{Everything, Sight};
use super::view::shown;
use crate::observe::state::{Call, Told};
use http::StatusCode;
use outlast_engine::hold::{Scope, Verdict};
use outlast_engine::record::Head;
use outlast_engine::store::{Done, Mail, Refusal, Trouble, Write};
use serde::Deserialize;
use serde_json::{Value, json};

/// Bytes of a reason.
const REASON: usize = 2000;

/// Why nothing was done.
#[derive(Debug)]
pub struct Denied(pub StatusCode, pub String);

/// A person's word on a hold.
#[derive(Debug, Deserialize)]
struct Word {
    decision: Box<str>,
    #[serde(default)]
    reason: String,
    #[serde(default, rename = "for")]
    scope: Option<Box<str>>,
}

/// Which of the processes that have a server of this name.
#[derive(Debug, Default, Deserialize)]
struct Which {
    #[serde(default)]
    process: String,
}

impl Dashboard {
    /// Does what a visitor asks for, if it may.
    pub async fn act(&self, act: Act, sight: &Sight, body: &[u8]) -> Result<Value, Denied> {
        let done = match act {
            Act::Decide(number) => self.decide(number, sight, body).await,
            Act::CancelTask(name) => self.cancel_task(&name, sight).await,
            Act::CancelCall(id) => self.cancel_call(&id, sight).await,
            Act::Restart(name) => self.restart(&name, sight, body).await,
        };
        self.look_at_once();
        done
    }

    async fn decide(&self, number: u64, sight: &Sight, body: &[u8]) -> Result<Value, Denied> {
        let mut verdict = read(body)?;
        verdict.by = sight.name().into();
        let holds = self.holds().await.map_err(broken)?;
        let hold = holds.into_iter().find(|hold| hold.number == number);
        let seen = hold.filter(|hold| sight.sees(&json!(hold.about.principal)));
        seen.ok_or_else(|| not_there(&format!("call {number}")))?;
        if !sight.decides() {
            let name = sight.name();
            let why = format!(
                "token `{name}` may see call {number} and not decide it; write dashboard = \"decide\" in [tokens.{name}]"
            );
            return Err(Denied(StatusCode::FORBIDDEN, why));
        }
        let wanted = verdict.clone();
        let written =
            self.driver.write_down(vec![Write::Decide { hold: number, verdict: verdict.into() }]).await;
        let done = written.map_err(|why| broken(why.to_string()))?.done;
        match done.into_iter().next() {
            Some(Done::Decided(Some(decision))) => {
                Ok(json!({"hold": number, "counts": decision.verdict == wanted, "decision": *decision}))
            }
            _ => Err(not_there(&format!("call {number}"))),
        }
    }

    async fn cancel_call(&self, id: &str, sight: &Sight) -> Result<Value, Denied> {
        let gone = || not_there(&format!("call {id}"));
        let calls = self.calls().await.map_err(broken)?.calls;
        let seen = |call: &&Call| call.id == id && sight.sees(&json!(call.principal));
        let call = calls.iter().find(seen).ok_or_else(gone)?;
        let told = Told { cancel: Some(id.into()), by: sight.name().into(), ..Told::default() };
        self.have_done(&call.process, told, || self.driver.cancel_call(id, sight.name()))
            .await?
            .then_some(())
            .ok_or_else(gone)?;
        Ok(json!({"asked": true}))
    }

    async fn restart(&self, name: &str, sight: &Sight, body: &[u8]) -> Result<Value, Denied> {
        if !sight.sees_all() {
            let why = format!(
                "a server is for everybody, so only a token with dashboard = \"all\" restarts it; `{}` has not",
                sight.name()
            );
            return Err(Denied(StatusCode::FORBIDDEN, why));
        }
        let process = serde_json::from_slice::<Which>(body).unwrap_or_default().process;
        let told = Told { restart: Some(name.into()), by: sight.name().into(), ..Told::default() };
        let known = self.have_done(&process, told, || self.driver.restart_server(name)).await?;
        known.then(|| json!({"asked": true})).ok_or_else(|| not_there(&format!("server {name}")))
    }

    /// Has a process do something: this one at once, another one when it looks into the store. False if what it is
    /// about is not there.
    async fn have_done(
        &self,
        process: &str,
        told: Told,
        here: impl FnOnce() -> bool,
    ) -> Result<bool, Denied> {
        if self.everything == Everything::Served {
            return Ok(here());
        }
        match self.driver.write_down(vec![told.write(process)]).await {
            Ok(_) => Ok(true),
            Err(Trouble::Refused { .. }) => Ok(false),
            Err(why) => Err(broken(why.to_string())),
        }
    }

    /// What happened to a call, as far as its process shows it.
    pub async fn story(&self, id: &str, sight: &Sight) -> Option<Value> {
        let story = match self.everything {
            Everything::Served => serde_json::to_value(self.driver.story(id)?).ok()?,
            Everything::OfThisUser => self.calls().await.ok()?.story(id)?,
        };
        (story["call"].is_object() && sight.sees(&story["call"]["principal"])).then(|| shown(story))
    }

    /// The owner of the task hears of it by a message in its mailbox; the page sees what becomes of it.
    async fn cancel_task(&self, name: &str, sight: &Sight) -> Result<Value, Denied> {
        let heads = self.heads().await.map_err(broken)?;
        let fits = |head: &&Head| {
            name.len() >= 8
                && head.ticket.as_str().starts_with(name)
                && sight.sees(&json!(head.origin.principal))
        };
        let mut found = heads.iter().filter(fits);
        let (Some(head), None) = (found.next(), found.next()) else {
            return Err(not_there(&format!("task {name}")));
        };
        let message = Write::Post { ticket: head.ticket.clone(), message: Mail::Cancel };
        match self.driver.write_down(vec![message]).await {
            Ok(_) => Ok(json!({"asked": true})),
            Err(Trouble::Refused { why: Refusal::Ended(_) | Refusal::Unknown, .. }) => {
                Err(Denied(StatusCode::CONFLICT, format!("task {name} had ended before")))
            }
            Err(why) => Err(broken(why.to_string())),
        }
    }
}

fn read(body: &[u8]) -> Result<Verdict, Denied> {
    let wrong = |why: &str| Denied(StatusCode::BAD_REQUEST, format!("{why}; reload the page"));
    let word: Word = serde_json::from_slice(body).map_err(|_| wrong("that is no decision"))?;
    let yes = match &*word.decision {
        "approve" => true,
        "decline" => false,
        _ => return Err(wrong("a decision is `approve` or `decline`")),
    };
    let scope = match word.scope.as_deref() {
        None => Some(Scope::Once),
        Some("10m") => Some(Scope::Minutes),
        Some(name) => Scope::named(name),
    };
    let scope = scope.ok_or_else(|| wrong("a yes is good for `once`, `session` or `minutes`"))?;
    let reason = &word.reason[..word.reason.floor_char_boundary(REASON)];
    Ok(Verdict { yes, scope, reason: reason.into(), place: "dashboard".into(), by: "".into() })
}

/// Nobody learns from it whether it is somebody else's.
pub fn not_there(what: &str) -> Denied {
    let shown: String = what.chars().take(80).collect();
    Denied(StatusCode::NOT_FOUND, format!("{shown} is not there (any more)"))
}

pub fn broken(why: String) -> Denied {
    Denied(StatusCode::SERVICE_UNAVAILABLE, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_a_yes_or_a_no() {
        let yes = read(br#"{"decision":"approve","reason":"fine","for":"10m"}"#).unwrap();
        assert_eq!((yes.yes, yes.scope, &*yes.reason), (true, Scope::Minutes, "fine"));
        assert!(!read(br#"{"decision":"decline"}"#).unwrap().yes);
        for odd in [&b"{}"[..], b"", br#"{"decision":"maybe"}"#, br#"{"decision":"approve","for":"ever"}"#] {
            assert!(read(odd).is_err(), "{}", String::from_utf8_lossy(odd));
        }
    }

    #[test]
    fn a_reason_is_cut() {
        let body = json!({"decision": "decline", "reason": "é".repeat(REASON)}).to_string();
        assert_eq!(read(body.as_bytes()).unwrap().reason.len(), REASON);
    }
}
