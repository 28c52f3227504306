//! Calls without a key that are one call all the same, where a person says so: `join-repeats`.
//!
//! Some clients make a call again when their own timeout has fired, several times over. The key is then made from the
//! call: who made it, the tool, the arguments byte for byte. A cancelled call goes on for as long as its client may
//! come back for it. Such a key is of this process alone: it is neither stored nor looked up.

use super::Engine;
use crate::calls::{Call, Request};
use crate::clients::{Door, Way};
use crate::hash::fingerprint;
use crate::id::{CallId, ClientId};
use crate::idempotency;
use crate::keys::Name;
use crate::time::Mono;
use crate::wire::Message;

impl Engine {
    /// Makes a key from a call that carries none, if a person wants that. True if the call is dealt with.
    pub(super) fn is_a_repeat(&mut self, now: Mono, request: &mut Request, message: &Message) -> bool {
        let rules = &self.definition_of(request.server).rules;
        let Some(wait) = rules.join_repeats(&request.method, request.tool.as_deref()) else {
            return false;
        };
        let arguments = idempotency::arguments(message);
        let name = self.name_of_repeat(request, arguments);
        let Some(name) = name.filter(|_| !request.task && !self.stands_for_itself(request, message)) else {
            return false;
        };
        if let Some(no) = self.keys.named(&name) {
            let same = |key: &crate::keys::Entry| key.is_same(request.tool.as_deref(), arguments);
            return self.keys.get(Some(no)).is_some_and(same)
                && self.meets(now, no, request, message, arguments);
        }
        let no = self.keys.add(name, request.tool.clone().unwrap_or_default(), arguments);
        self.keys.is_of_repeats(no, wait);
        request.key_no = Some(no);
        false
    }

    /// Who makes a call, and what it is. Of modern clients without a token nobody can tell one from another.
    fn name_of_repeat(&self, request: &Request, arguments: &[u8]) -> Option<Name> {
        let client = self.clients.get(&request.client)?;
        let whose = match (&client.door, &client.principal) {
            (Door::Line | Door::Session(_), _) => whose_repeats(request.client),
            (Door::Exchange(_), Some(principal)) => format!("repeats of token {principal}"),
            (Door::Exchange(_), None) => return None,
        };
        let definition = self.definition(request.server)?;
        let tool = request.tool.as_deref().unwrap_or_default();
        let key = format!("{tool} {:016x} {}", fingerprint(arguments), arguments.len());
        Some(Name { whose: whose.into(), definition, key: key.into() })
    }

    /// A client cancels a call that it may make again: the call goes on until then. False if it is cancelled as always.
    pub(in crate::engine) fn awaits_a_repeat(&mut self, id: CallId) -> bool {
        let Some(call) = self.calls.get(id).filter(|call| !call.is_joined()) else { return false };
        let wait = self.keys.get(call.request.key_no).and_then(|key| key.repeats);
        let Some(wait) = wait.filter(|_| self.ending.is_none() && is_plain(call)) else { return false };
        let (client, way) = (call.request.client, call.request.way);
        self.waits_for_client(self.at, id, wait);
        self.settled_without_answer(client, way);
        true
    }

    /// A client leaves, and will not make its calls again.
    pub(in crate::engine) fn forget_repeats_of(&mut self, client: ClientId) {
        for no in self.keys.waiting_for(&whose_repeats(client)) {
            self.stop_waiting_for_client(Some(no));
            self.key_due(no);
        }
    }
}

fn whose_repeats(client: ClientId) -> String {
    format!("repeats of client {}", client.0)
}

/// Whether nobody but its client waits for a call.
fn is_plain(call: &Call) -> bool {
    !matches!(call.request.way, Way::Ticket(_) | Way::Nowhere)
}
