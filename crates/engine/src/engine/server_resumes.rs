//! Servers that let us resume (SEP-975): after a lost connection a call is taken up again, not repeated.
//!
//! Every `initialize` to a server behind HTTP declares `resumableRequests`, whatever the client behind us
//! can do: the policies that come of it are ours, and no client sees them. An attempt with a policy is never
//! sent a second time while the server may still have it. When its stream breaks, or no connection can be
//! made, it is resumed under the same id and from the last event that was seen, until the server says that
//! it knows nothing of it, or `maxWait` has passed. Then it is a call whose connection broke, and repeated
//! only if that is safe.

use super::Engine;
use crate::calls::Call;
use crate::calls::resume::{Policy, declares};
use crate::error::{Kind, json_text};
use crate::event::Line;
use crate::id::{AttemptId, CallId, ServerId, own_id, read_own_id};
use crate::json;
use crate::method::Method;
use crate::step::What;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, Scanned, scan};
use std::time::Duration;

impl Engine {
    /// What is added to a handshake to an HTTP server.
    pub(super) fn declare_resumable(&self, handshake: &Message) -> Option<Edit> {
        let capabilities = json::member(handshake.raw(Field::Params)?, "capabilities")?;
        if declares(handshake) {
            return None;
        }
        json::insert_member(&handshake.bytes, capabilities, br#""resumableRequests":{}"#)
    }

    /// A server says how one of our attempts can be resumed. False if that is for the client to read.
    pub(super) fn takes_policy(&mut self, server: ServerId, message: &Message) -> bool {
        let remote = self.is_remote(server);
        if !remote && !self.config.resumable {
            return false;
        }
        let attempt = message.raw(Field::ParamsRequestId).and_then(read_own_id);
        let call = attempt.and_then(|(number, _)| self.call_at(server, self.attempt_of(number)));
        let policy = message.raw(Field::Params).and_then(Policy::read).filter(|_| remote);
        if let (Some(id), Some(policy)) = (call, policy) {
            self.calls.has_policy(id, policy);
            self.keep_names_at_server(id);
            self.pass_policy_on(id, message);
        }
        true
    }

    /// Whether a call is being taken up again: it is at the server, as far as we know.
    pub(super) fn is_being_resumed(&self, id: CallId) -> bool {
        self.calls.get(id).is_some_and(|call| call.lost.is_some())
    }

    /// The connection of an attempt is lost: it will be resumed, if its server lets us. `was_open` if its
    /// stream was there until now, so that the time to come back begins anew.
    pub(super) fn resume_later(
        &mut self,
        now: Mono,
        server: ServerId,
        attempt: Option<AttemptId>,
        wish: Option<Duration>,
        was_open: bool,
    ) -> bool {
        let Some(id) = attempt.and_then(|attempt| self.calls.of(server, attempt)) else { return false };
        if self.config.door && self.ending.is_some() {
            // Its client has gone, and may be back at another door by now.
            return false;
        }
        if !self.calls.resume_later(now, id, wish, was_open) {
            return false;
        }
        self.arm_call(now, id);
        true
    }

    /// Takes an attempt up again. False if its server did not say how.
    pub(super) fn resume_attempt(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get(id) else { return false };
        let (Some(policy), Some(attempt)) = (&call.policy, call.attempt()) else { return false };
        let number = own_id(attempt.on_wire(), call.text);
        let request = [
            br#"{"jsonrpc":"2.0","id":"#,
            number.as_slice(),
            br#","method":"requests/resume","params":{"resumeToken":"#,
            &*json_text(&policy.token),
            b"}}",
        ]
        .concat();
        let server = call.request.server;
        let Ok(Scanned::Message(message)) = scan(request.into()) else { return false };
        let outgoing = Outgoing::plain(message.bytes.clone());
        self.send(server, Some(attempt), Some(&message), outgoing);
        self.step(id, || What::Resumed);
        true
    }

    /// Something came on the stream of an attempt. True if it says that the server knows nothing of it any
    /// more, which is no answer to the call.
    pub(super) fn is_refused_to_us(
        &mut self,
        now: Mono,
        server: ServerId,
        attempt: AttemptId,
        line: &Line,
    ) -> bool {
        let Some(id) = self.calls.of(server, attempt) else { return false };
        if !self.calls.is_found(id) {
            return false;
        }
        if self.calls.get(id).is_some_and(|call| call.request.method == Method::RequestsResume) {
            // Its client came back for it through us, and hears what the service says.
            return false;
        }
        let code = match line {
            Ok(Scanned::Message(message)) => super::remote::error_code(message),
            _ => None,
        };
        let unknown = code == Some(i64::from(Kind::TicketUnknown.code(false)));
        // The proposal has no code for it. Who asks for what an earlier process left hears of nothing else.
        let refused = unknown
            || self.calls.get(id).is_some_and(Call::is_orphaned) && matches!(code, Some(-32602..=-32600));
        if !refused {
            return false;
        }
        self.calls.forget_policy(id);
        if !self.orphaned_is_lost(now, id, "its server does not know the call any more") {
            let why = "the connection broke, and it does not know the call any more";
            self.broke_off(now, server, Some(attempt), why);
        }
        true
    }
}
