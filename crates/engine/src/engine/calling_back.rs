//! Callbacks: a person's address is told that a call with a ticket has ended, or that it waits for a person.
//!
//! A callback is written in the transaction of the end that it tells of, so there is never one without the other, and
//! from then on any process that knows the address may send it. It says which call it is about and how that stands,
//! and nothing that opens anything: no ticket, no arguments, no result.
//!
//! Not here: which callbacks are on their way (`callbacks.rs`), what becomes of one (`callback.rs`).

use super::Engine;
use super::ledger::Pending;
use crate::action::{Action, Note};
use crate::callback::{Callback, Delivery, Fate, NewCallback, When, backoff};
use crate::calls::Request;
use crate::clients::Way;
use crate::error::cut;
use crate::id::{CallId, ClientId, TaskNo};
use crate::json;
use crate::limits;
use crate::record::{Faces, State};
use crate::store::{Done, Found, Loaded, Query, Stored, Write};
use crate::tickets::Task;
use crate::wire::{Field, Message};
use serde_json::value::RawValue;
use std::time::Duration;

/// Where a call names its callback, in `_meta`.
const KEY: &str = "dev.outlast/callback";

/// How a held call stands.
const HELD: &str = "waiting_for_approval";

/// Some time for the store to be there before us.
const SLACK: Duration = Duration::from_millis(100);

// Which callback a call has.
impl Engine {
    /// Refuses a call that names a callback which is not there. False if it names none, or one that is.
    #[inline]
    pub(super) fn names_unknown_callback(&mut self, request: &Request, message: &Message) -> bool {
        !self.config.callbacks.is_empty() && self.refuse_unknown_callback(request, message)
    }

    #[cold]
    fn refuse_unknown_callback(&mut self, request: &Request, message: &Message) -> bool {
        let Some(named) = named(message) else { return false };
        let name = serde_json::from_slice::<String>(named).ok();
        if name.as_deref().is_some_and(|name| self.config.callbacks.contains_key(name)) {
            return false;
        }
        let shown = name.unwrap_or_else(|| String::from_utf8_lossy(named).into_owned());
        let known: Vec<&str> = self.config.callbacks.keys().map(|name| &**name).collect();
        let text = format!(
            "Invalid params: unknown callback `{}` in _meta[\"{KEY}\"]; known are {} ([callbacks.NAME])",
            cut(&shown, limits::NAME),
            cut(&known.join(", "), limits::NAME)
        );
        self.answer_error(request.client, request.way, &request.id, -32602, &text);
        true
    }

    /// The callback of a call: the one that it names, or that of its client.
    pub(super) fn callback_for(&self, client: ClientId, message: &Message) -> Option<String> {
        if self.config.callbacks.is_empty() {
            return None;
        }
        let named = named(message).and_then(|raw| serde_json::from_slice(raw).ok());
        let rule = self.clients.get(&client).and_then(|client| client.rule.as_ref());
        named.or_else(|| rule?.callback.as_deref().map(str::to_owned))
    }
}

/// What stands where a callback is named.
fn named(message: &Message) -> Option<&[u8]> {
    json::member(message.raw(Field::ParamsMeta)?, KEY)
}

// What it is told.
impl Engine {
    /// What is written with the end of a call with a ticket.
    pub(super) fn callback_at_end(&self, no: TaskNo) -> Option<Write> {
        let state = self.tickets.get(no)?.state;
        self.callback_about(no, state.as_str(), "").filter(|_| !planted!(self, ForgetsCallbacks))
    }

    /// What is written when a call with a ticket begins to wait for its client.
    pub(super) fn callback_at_move(&self, no: TaskNo, from: State, to: State) -> Option<Write> {
        let asks = from != to && to == State::InputRequired;
        asks.then(|| self.callback_about(no, to.as_str(), "")).flatten()
    }

    /// A call waits for a person's yes. It has a ticket by now, or none yet; or it gets one, and waits already.
    pub(super) fn call_back_about_hold(&mut self, id: CallId) {
        let asked = self.holds.get(id).is_some_and(|waiting| waiting.number.is_some());
        let way = self.calls.get(id).map(|call| call.request.way);
        let Some(Way::Ticket(no)) = way.filter(|_| asked) else { return };
        let callback = self.callback_about(no, HELD, &self.words_of_hold(id));
        let callbacks: Vec<Write> = callback.into_iter().collect();
        let any = !callbacks.is_empty();
        self.submit_all(Pending::Noted, callbacks);
        self.send_if(any);
    }

    /// Which hold it is, and until when somebody can decide it: for a link to a page.
    fn words_of_hold(&self, id: CallId) -> String {
        let Some(waiting) = self.holds.get(id) else { return String::new() };
        let open = waiting.patience + waiting.stays_open.unwrap_or_default();
        let left = open.saturating_sub(self.at.since(waiting.since));
        let (number, until) = (waiting.number.unwrap_or_default(), self.store_time().after(left).timestamp());
        format!(r#","hold":{{"number":{number},"until":"{until}"}}"#)
    }

    fn callback_about(&self, no: TaskNo, status: &str, more: &str) -> Option<Write> {
        let task = self.tickets.get(no)?;
        let name: Box<str> = task.body.callback.as_deref()?.into();
        let always = self.config.callbacks.get(&name) == Some(&When::Always);
        if !always && self.is_heard_of(task) {
            return None;
        }
        let body = self.words_of_callback(task, status, more);
        Some(Write::CallBack(Box::new(NewCallback { name, body })))
    }

    /// Whether somebody who is connected hears what becomes of a call: who waits for it, or is told of it.
    fn is_heard_of(&self, task: &Task) -> bool {
        let waits = task.waiters.iter().any(|waiter| self.is_read(waiter.way));
        let told = task.faces.has(Faces::LEGACY_TASK)
            && self.way_to(task.client).is_some_and(|way| self.is_read(way));
        waits || told || self.is_listened_to(&task.ticket) || self.is_followed(task)
    }

    fn words_of_callback(&self, task: &Task, status: &str, more: &str) -> Box<str> {
        let now = self.store_time().timestamp();
        let id = task.body.request_id.clone().and_then(|id| RawValue::from_string(id).ok());
        let text = |text: &str| serde_json::Value::from(cut(text, limits::NAME)).to_string();
        let id = id.as_ref().map_or("null", |id| id.get());
        let (server, tool) = (text(&self.name_in_store(&task.server)), text(&task.tool));
        let created = task.created.timestamp();
        format!(
            r#"{{"type":"call.{status}","timestamp":"{now}","data":{{"requestId":{id},"server":{server},"tool":{tool},"status":"{status}","createdAt":"{created}","updatedAt":"{now}"{more}}}}}"#
        )
        .into()
    }
}

// How it is sent.
impl Engine {
    /// The process begins: an earlier one may have left something.
    pub(super) fn look_for_callbacks(&mut self) {
        if !self.config.callbacks.is_empty() {
            self.callbacks.look_at(&mut self.timers, self.at);
        }
    }

    /// Something may have become due in the store.
    pub(super) fn callbacks_due(&mut self) {
        self.callbacks.ring();
        if self.ending.is_some() {
            return;
        }
        reached!(CALLBACK_LOOK if true);
        self.callbacks.look_at(&mut self.timers, self.at + limits::CALLBACK_LOOK);
        if self.callbacks.looks() {
            self.load(Pending::CallbacksLooked, Query::CallbackDue(self.names_of_callbacks()));
        }
    }

    pub(super) fn callbacks_were_looked_at(&mut self, outcome: &Loaded) {
        self.callbacks.looked();
        self.send_if(matches!(outcome, Ok(Found::Due(true))));
    }

    fn names_of_callbacks(&self) -> Vec<Box<str>> {
        self.config.callbacks.keys().cloned().collect()
    }

    /// Sends what is due, if there may be anything. Whoever ends leaves it to the next process.
    pub(super) fn send_if(&mut self, any: bool) {
        if !any || self.ending.is_some() {
            return;
        }
        if let Some(limit) = self.callbacks.asks() {
            let names = self.names_of_callbacks();
            self.submit(Pending::CallbacksTaken, Write::TakeCallbacks { names, limit });
        }
    }

    pub(super) fn callbacks_were_taken(&mut self, outcome: &Stored) {
        let done = outcome.iter().flat_map(|committed| &committed.done);
        let taken = done.filter_map(|done| match done {
            Done::Callbacks(callbacks) => Some(callbacks.clone()),
            _ => None,
        });
        let taken: Vec<Callback> = taken.flatten().collect();
        self.callbacks.took(&taken);
        taken.into_iter().for_each(|callback| self.act(Action::CallBack(Box::new(callback))));
        self.send_if(outcome.is_ok() && self.callbacks.has_more());
    }

    /// A callback was sent, or was not.
    pub(super) fn called_back(&mut self, number: u64, attempts: u64, delivery: &Delivery) {
        let Some(callback) = self.callbacks.sent(number, attempts) else { return };
        let fate = self.fate_of(&callback, delivery);
        let name = callback.about.name;
        match &fate {
            Fate::Gone => {}
            Fate::Again(wait, why) => {
                let (wait, why) = (*wait, why.clone());
                self.callbacks.look_at(&mut self.timers, self.at + wait + SLACK);
                self.note(Note::CallbackFailed { name, attempts, why, wait });
            }
            Fate::Parked(why) => {
                self.note(Note::CallbackParked { name, callback: number, why: why.clone() });
            }
        }
        let write = Write::SettleCallback { callback: number, attempts: Some(attempts), fate };
        self.submit(Pending::CallbackSettled, write);
        self.send_if(self.callbacks.has_more());
    }

    fn fate_of(&mut self, callback: &Callback, delivery: &Delivery) -> Fate {
        let (why, retry_after) = match delivery {
            Delivery::Done if planted!(self, CallsBackTwice) => {
                return Fate::Again(Duration::ZERO, "".into());
            }
            Delivery::Done => return Fate::Gone,
            Delivery::Unwanted(why) => return Fate::Parked(why.clone()),
            Delivery::Failed { why, retry_after } => (why.clone(), retry_after.unwrap_or_default()),
        };
        let wait = backoff(callback.attempts, self.chance.next());
        let wait = wait.max(retry_after.min(limits::CALLBACK_BACKOFF_MOST));
        let tried = self.store_time().since(callback.made);
        let over = reached!(CALLBACK_TRIED, tried + wait > limits::CALLBACK_TRIED);
        if over { Fate::Parked(why) } else { Fate::Again(wait, why) }
    }
}
