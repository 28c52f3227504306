//! Whoever is called back, and what must hold of callbacks: one for every end that asked for one, stored with it;
//! sent at least once; never by two processes at once; never again by a process that was told that it arrived.

use super::{Plan, World};
use crate::ledger::Ledger;
use outlast_engine::callback::{Callback, Delivery};
use outlast_engine::record::Body;
use outlast_engine::{Event, Manner};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::Duration;

/// What clients that want to be called back name.
pub(super) const NAME: &str = "ops";

/// So often at most the receiver fails before it takes a callback.
const FAILURES: u64 = 3;

/// By then every callback has arrived.
const PATIENCE: Duration = Duration::from_secs(10 * 60);

/// What the receiver knows, and what was said of it.
#[derive(Debug, Default)]
pub(super) struct Receiver {
    /// Ids of callbacks that it took.
    took: BTreeSet<String>,
    /// Which process has heard of that.
    heard: BTreeSet<(usize, String)>,
    /// Every sending: of one callback no two have the same number.
    sendings: BTreeSet<(String, u64)>,
}

impl World {
    /// A process sends a callback.
    pub(super) fn call_back(&mut self, life: usize, callback: Callback) {
        let id = callback.id();
        let again = self.receiver.heard.contains(&(life, id.clone()));
        assert!(!again, "{id} arrived, and the process that knows it sends it again");
        assert!(self.receiver.sendings.insert((id, callback.attempts)), "two processes send {callback:?}");
        let after = self.rng.millis(0, 200);
        self.agenda.plan(after, Plan::CallsBack(life, Box::new(callback)));
    }

    /// It reaches the receiver, whose answer takes a while.
    pub(super) fn is_called_back(&mut self, life: usize, callback: &Callback) {
        let fails = callback.attempts <= FAILURES && self.rng.chance(40);
        let delivery = match fails {
            true => Delivery::Failed { why: "busy".into(), retry_after: None },
            false => Delivery::Done,
        };
        if !fails {
            self.receiver.took.insert(callback.id());
        }
        let after = self.rng.millis(0, 200);
        let answer = Plan::AnswersCallback(life, Box::new(callback.clone()), delivery);
        self.agenda.plan(after, answer);
    }

    pub(super) fn callback_is_answered(&mut self, life: usize, callback: &Callback, delivery: Delivery) {
        if self.ends_here(life) || !self.is_up(life) {
            return;
        }
        if delivery == Delivery::Done {
            self.receiver.heard.insert((life, callback.id()));
        }
        let event = Event::CalledBack { callback: callback.number, attempts: callback.attempts, delivery };
        self.take(life, event);
    }

    /// Nobody needs the last process any more but the callbacks that it still sends.
    pub(super) fn end_the_sender(&mut self, front: usize) {
        if !self.config.callbacks.is_empty() {
            self.agenda.plan(PATIENCE, Plan::Reaches(front, Event::Stop(15)));
        }
    }

    /// What the store has, the receiver has; or it waits for the next process of a client that is gone.
    pub(super) fn everybody_was_called_back(&self) {
        let waits: BTreeSet<String> = self.ledger.callbacks().map(Callback::id).collect();
        assert!(waits.is_empty() || self.config.manner == Manner::Wrap, "never delivered: {waits:?}");
        for callback in &self.ledger.called {
            let id = callback.id();
            assert!(self.receiver.took.contains(&id) || waits.contains(&id), "{callback:?} is lost");
        }
    }
}

/// Every end that asked for a callback has one, from the commit on in which it was stored; and there is no other.
pub(super) fn ends_have_callbacks(ledger: &Ledger) {
    let asks = |body: &[u8]| Body::decode(body).is_ok_and(|body| body.callback.is_some());
    let ended = ledger.records().filter(|record| !record.head.state.is_open());
    let ended = ended.filter(|record| asks(&record.head.body)).count();
    let tells_of_end = |callback: &&Callback| {
        let body: Value = serde_json::from_str(&callback.about.body).expect("a callback is JSON");
        matches!(body["data"]["status"].as_str(), Some("completed" | "failed" | "cancelled"))
    };
    let told = ledger.called.iter().filter(tells_of_end).count();
    assert_eq!(ended, told, "ends that ask for a callback, and callbacks of ends");
}
