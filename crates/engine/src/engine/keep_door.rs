//! The door of `--keep`: calls are resumed at the service behind it (SEP-975), also through another door.
//!
//! The service knows a call by the number that the door gave it, and its progress by the same number. The door
//! that a client comes back through was never told either, so both are part of the token that a client gets:
//! `NUMBER.PROGRESS.TOKEN`, the progress token in hexadecimal digits. Whoever changes them finds no call.

use super::Engine;
use crate::calls::{Call, Request};
use crate::error::json_text;
use crate::hex;
use crate::id::{AttemptId, CallId, JsonId};
use crate::json::{self, range_in};
use crate::method::Method;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Patch};

/// The key under which a door names the number of a call in the `_meta` of `requests/getStatus`.
pub(super) const NUMBER: &str = "dev.outlast/attempt";

/// What a client's token says.
#[derive(Debug, PartialEq, Eq)]
struct Pass {
    number: u64,
    progress: Option<JsonId>,
    token: Box<str>,
}

impl Pass {
    fn text(number: u64, progress: Option<&JsonId>, token: &str) -> String {
        let progress = progress.map(|progress| hex::encode(progress.patch().as_slice())).unwrap_or_default();
        format!("{number}.{progress}.{token}")
    }

    fn read(text: &str) -> Option<Pass> {
        let mut parts = text.splitn(3, '.');
        let (number, progress, token) = (parts.next()?.parse().ok()?, parts.next()?, parts.next()?);
        AttemptId::of_orphan(number, 1)?;
        let byte = |at: usize| u8::from_str_radix(progress.get(at..at + 2)?, 16).ok();
        let raw: Vec<u8> = (0..progress.len()).step_by(2).map(byte).collect::<Option<_>>()?;
        let progress =
            if raw.is_empty() { None } else { Some(JsonId::token(&raw).filter(JsonId::is_whole)?) };
        Some(Pass { number, progress, token: token.into() })
    }

    fn of(message: &Message) -> Option<Pass> {
        let raw = json::member(message.raw(Field::Params)?, "resumeToken")?;
        Pass::read(&serde_json::from_slice::<String>(raw).ok()?)
    }
}

impl Engine {
    /// The service says how a call can be resumed, and its client can use that.
    pub(super) fn pass_policy_on(&mut self, id: CallId, message: &Message) {
        let Some(call) = self.calls.get(id).filter(|_| self.config.door) else { return };
        let (client, way) = (call.request.client, call.request.way);
        if !self.clients.get(&client).is_some_and(|client| client.resumes) {
            return;
        }
        let (Some(policy), Some(attempt)) = (&call.policy, call.attempt()) else { return };
        let pass = Pass::text(attempt.on_wire(), call.request.token.as_ref(), &policy.token);
        let token = message.raw(Field::Params).and_then(|params| json::member(params, "resumeToken"));
        let (Some(token), Some(named)) = (token, message.envelope.get(Field::ParamsRequestId)) else {
            return;
        };
        let edits = vec![
            Edit::replace(named, call.request.id.patch()),
            Edit::range(range_in(&message.bytes, token), Patch::of(&[&json_text(&pass)])),
        ];
        self.tell(client, way, Outgoing::edited(message.bytes.clone(), edits));
    }

    /// What a client asks about a call of the service, in the service's own words. `None` if it is not that.
    pub(super) fn status_for_service(&self, request: &Request, message: &Message) -> Option<Message> {
        if !self.config.door || request.method != Method::RequestsGetStatus {
            return None;
        }
        let pass = Pass::of(message)?;
        let params = message.raw(Field::Params)?;
        let token = json::member(params, "resumeToken")?;
        let number = format!(r#""{NUMBER}":{}"#, pass.number);
        let named = match message.raw(Field::ParamsMeta) {
            Some(meta) => json::insert_member(&message.bytes, meta, number.as_bytes())?,
            None => {
                json::insert_member(&message.bytes, params, format!(r#""_meta":{{{number}}}"#).as_bytes())?
            }
        };
        let token = Edit::range(range_in(&message.bytes, token), Patch::of(&[&json_text(&pass.token)]));
        let edits = vec![named, token];
        crate::wire::scan_message(Outgoing::edited(message.bytes.clone(), edits).to_vec().into())
    }

    /// A client comes back for a call that the service has. False if it is another request.
    #[inline]
    pub(super) fn resumes_at_service(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        self.config.door && self.resume_through_door(now, id, message)
    }

    #[inline(never)]
    fn resume_through_door(&mut self, now: Mono, id: CallId, message: &Message) -> bool {
        let resumes = |call: &Call| call.request.method == Method::RequestsResume;
        if !self.calls.get(id).is_some_and(resumes) {
            return false;
        }
        let Some(pass) = Pass::of(message) else { return false };
        self.calls.has_token(id, pass.progress);
        self.calls.count_attempt(id);
        self.resume_orphaned(now, id, pass.token, pass.number);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pass_is_read_back_and_nothing_else_is_one() {
        for progress in [None, Some(JsonId::Int(7)), JsonId::new(br#""a.b\u00e9""#)] {
            let text = Pass::text(12, progress.as_ref(), "to.ken");
            assert_eq!(Pass::read(&text), Some(Pass { number: 12, progress, token: "to.ken".into() }));
        }
        for text in ["", "x", "1.", "1.2", "x..t", "1.zz.t", "1.7.t", "1.7b7d.t", "1.37207d.t", "1.é.t"] {
            assert_eq!(Pass::read(text), None, "{text}");
        }
    }
}
