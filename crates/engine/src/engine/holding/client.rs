//! The client itself is asked whether a held call may be sent, where a person allows that (`hold-ask-client`) and the
//! client has declared elicitation.
//!
//! A legacy client is sent `elicitation/create` while its call waits. A modern client gets `input_required` as its
//! answer, and makes the call again with what its user said; meanwhile the question is open for everybody else. What
//! the user says is written to the store like anybody's word, and only what the store says then counts: the first
//! word, wherever it was said. A user who dismisses the question has said nothing.

use super::STAYS_OPEN;
use crate::calls::{Call, State};
use crate::clients::Way;
use crate::engine::Engine;
use crate::engine::ledger::Pending;
use crate::error::cut;
use crate::hold::{Leave, Scope, Verdict};
use crate::holds::{Asked, Asking, Waiting};
use crate::id::{AskId, CallId, ClientId, own_id, read_own_id};
use crate::json;
use crate::limits;
use crate::policy::Rules;
use crate::store::Write;
use crate::wire::{Edit, Field, Message, Outgoing};
use serde_json::{Value, json};

/// Our question among those that an `input_required` result may have.
const KEY: &str = "dev.outlast/hold";

/// Whether a client with these capabilities can show a form to its user. Nothing inside `elicitation` means forms.
pub(in crate::engine) fn declares_elicitation(capabilities: &[u8]) -> bool {
    let Some(elicitation) = json::member(capabilities, "elicitation") else { return false };
    json::member(elicitation, "form").is_some() || json::member(elicitation, "url").is_none()
}

// It is asked.
impl Engine {
    /// The store has the question: the client is asked, too, if it may be and can.
    pub(super) fn ask_client(&mut self, id: CallId, hold: u64) {
        let Some(call) = self.calls.get(id) else { return };
        let over = self.holds.get(id).is_none_or(|waiting| !matches!(waiting.asking, Asking::Not));
        if over || !call.rules.hold_asks_client(call.request.tool.as_deref()) {
            return;
        }
        if call.request.modern { self.ask_by_answer(id, hold) } else { self.ask_by_request(id) }
    }

    fn ask_by_request(&mut self, id: CallId) {
        let Some(call) = self.calls.get(id) else { return };
        let client = call.request.client;
        let way = match self.real_way(call).1 {
            Way::Ticket(_) => self.way_to(client),
            way => Some(way),
        };
        let elicits = self.clients.get(&client).is_some_and(|client| client.elicits);
        let (Some(way), Some(params)) = (way.filter(|_| elicits), self.form_for(call)) else { return };
        let ask = self.asks.number();
        self.holds.client_is(id, Asking::Asked(Asked { ask, client, way }));
        let head = br#"{"jsonrpc":"2.0","id":"#;
        let number = own_id(ask.0, false);
        let method = br#","method":"elicitation/create","params":"#;
        let params = params.to_string();
        let request = [&head[..], number.as_slice(), method, params.as_bytes(), b"}"].concat();
        self.tell(client, way, Outgoing::plain(request));
    }

    /// The call ends with the question, which stays open for everybody until the call is made again. What continues
    /// something of its server has no room for a question of ours, and a question is no answer to keep under a key:
    /// both wait.
    fn ask_by_answer(&mut self, id: CallId, hold: u64) {
        let Some(call) = self.calls.get(id) else { return };
        let State::Waiting(message) = &call.state else { return };
        let capabilities = message.raw(Field::MetaClientCapabilities).unwrap_or_default();
        let continues = message.has(Field::ParamsRequestState) || message.has(Field::ParamsInputResponses);
        let plain =
            !continues && call.request.key_no.is_none() && !matches!(call.request.way, Way::Ticket(_));
        let Some(params) = self.form_for(call).filter(|_| plain && declares_elicitation(capabilities)) else {
            return;
        };
        let question = json!({"method": "elicitation/create", "params": params});
        let result = json!({"resultType": "input_required", "inputRequests": {KEY: question}}).to_string();
        let head = br#"{"jsonrpc":"2.0","id":"#;
        let number = call.request.id.patch();
        let answer = [&head[..], number.as_slice(), br#","result":"#, result.as_bytes(), b"}"].concat();
        self.stop_holding(id);
        self.submit(Pending::Noted, Write::AskAfter { hold, leave: Leave::Open(STAYS_OPEN) });
        self.settle(id, Some(Outgoing::plain(answer)));
    }

    /// What the user is shown.
    fn form_for(&self, call: &Call) -> Option<Value> {
        let State::Waiting(message) = &call.state else { return None };
        let tool = cut(call.name(), limits::NAME);
        let server = self.server_name(call.request.server);
        let arguments = self.as_shown(crate::idempotency::arguments(message));
        let scopes = Scope::ALL.map(|(_, scope)| scope.words());
        Some(json!({
            "message": format!("May `{tool}` of `{server}` be run? {arguments}"),
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "for": {"type": "string", "title": "Good for", "enum": scopes},
                    "reason": {"type": "string", "title": "Reason"},
                },
            },
        }))
    }
}

// It answers.
impl Engine {
    /// A legacy client answers. False if that is not what it was asked.
    #[cold]
    pub(in crate::engine) fn client_decides(&mut self, client: ClientId, message: &Message) -> bool {
        let number = message.raw(Field::Id).and_then(read_own_id);
        let asked = number.and_then(|(number, _)| self.holds.answered_by(client, AskId(number)));
        let Some((id, hold)) = asked else { return false };
        let response = message.raw(Field::Result).unwrap_or(b"{}");
        if let Some(verdict) = self.word_of(client, response) {
            self.say_for_client(id, hold, verdict);
        }
        true
    }

    /// What the user of a client says is written, and in the same moment it is asked what stands.
    pub(super) fn say_for_client(&mut self, id: CallId, hold: u64, verdict: Verdict) {
        let decide = Write::Decide { hold, verdict: Box::new(verdict) };
        self.submit_all(Pending::AskedAfter(id), vec![decide, Write::AskAfter { hold, leave: Leave::Waits }]);
    }

    fn word_of(&self, client: ClientId, response: &[u8]) -> Option<Verdict> {
        let response: Value = serde_json::from_slice(response).ok()?;
        let yes = match response["action"].as_str()? {
            "accept" => true,
            "decline" => false,
            _ => return None,
        };
        let scope = response["content"]["for"].as_str().and_then(Scope::named).unwrap_or(Scope::Once);
        let name = self.client_in_words(client);
        let by = if name.is_empty() { "its user".to_owned() } else { format!("the user of {name}") };
        Some(Verdict {
            yes,
            scope,
            reason: cut(response["content"]["reason"].as_str().unwrap_or_default(), limits::NAME).into(),
            place: "client".into(),
            by: by.into(),
        })
    }

    /// What a modern call brings of its user's word, and the call without it. `None` if it was not asked.
    pub(super) fn brought_word(
        &self,
        client: ClientId,
        rules: &Rules,
        message: &Message,
    ) -> Option<(Message, Asking)> {
        let responses = message.raw(Field::ParamsInputResponses)?;
        let tool = message.text(Field::ParamsName);
        let response = json::member(responses, KEY).filter(|_| rules.hold_asks_client(tool.as_deref()))?;
        let said = self.word_of(client, response);
        let mut plain = message.owned();
        for field in [Field::ParamsRequestState, Field::ParamsInputResponses] {
            if let Some(span) = plain.envelope.get(field) {
                plain = plain.edited(Edit::remove_member(&plain.bytes, span))?;
            }
        }
        Some((plain, said.map_or(Asking::Over, |verdict| Asking::Said(Box::new(verdict)))))
    }
}

// It need not answer any more.
impl Engine {
    /// A call waits no longer: its client is not asked any more.
    pub(super) fn stop_holding(&mut self, id: CallId) -> Option<Waiting> {
        let waiting = self.holds.take(&mut self.timers, id)?;
        if let Asking::Asked(asked) = &waiting.asking {
            self.take_form_back(asked);
        }
        Some(waiting)
    }

    #[cold]
    fn take_form_back(&mut self, asked: &Asked) {
        let Asked { ask, client, way } = *asked;
        if !self.clients.contains_key(&client) {
            return;
        }
        let head = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"#;
        let number = own_id(ask.0, false);
        let cancel = [&head[..], number.as_slice(), br#","reason":"the question is settled"}}"#].concat();
        self.tell(client, way, Outgoing::plain(cancel));
    }
}
