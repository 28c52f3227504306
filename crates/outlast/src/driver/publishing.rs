//! Shows other processes of this user what is so in this one, through the store: calls that are older than a second,
//! the servers, what has ended; and does what they want done.
//!
//! Once a second at most, and only while there is something to show, so that wrap mode opens no store before a call is
//! slow. No call waits for it, and what cannot be written is not said again: whoever looks on sees the next.

use super::{Driver, State};
use crate::clock;
use crate::observe::feed::Fresh;
use crate::observe::state::{self, Told};
use crate::store::{Reply, Store};
use crate::sys::alarm::Alarm;
use bytes::Bytes;
use outlast_engine::store::{Committed, Done, Found, Loaded, Query, Stored, Write, measured};
use outlast_engine::{Event, limits};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Between two times.
const PAUSE: Duration = Duration::from_secs(1);

/// Calls that have ended and are shown with the open ones.
const ENDED: usize = 100;

/// Bytes of the stories that are shown with them, those of the oldest open calls first. Of the others no steps are
/// shown: they need room, and time under the lock that every call needs.
const STORIES: usize = limits::SHOWN_BYTES / 4;

/// Times after which what was measured is written down, unless the last slow call has ended before.
const WRITES: u32 = 10;

/// What was published.
#[derive(Debug, Default)]
pub(super) struct Published {
    /// Something is shown, and must be taken back in the end.
    shows: bool,
    /// Times since what was measured was written.
    times: u32,
    /// A store that is used for nothing else, where calls need none.
    store: Option<Store>,
}

impl Driver {
    /// Publishes for as long as there is a driver.
    pub async fn publish(self: Arc<Driver>) {
        let Some(mut changes) = self.changes() else { return };
        self.lock().learn_what_was_measured();
        // Plain calls pay for each timer of the runtime that is set.
        let mut alarm = None;
        while changes.changed().await.is_ok() {
            let alarm = alarm.get_or_insert_with(Alarm::new);
            while self.show() {
                alarm.at(clock::in_future(PAUSE)).await;
            }
            alarm.at(clock::in_future(PAUSE)).await;
        }
    }

    /// Shows what is so now. False if there is nothing to come back for.
    fn show(&self) -> bool {
        let Some(own) = self.snapshot() else { return false };
        let mut state = self.lock();
        let open = !own.calls.is_empty();
        let mut shown = worth_showing(own);
        let shows = !shown.calls.is_empty();
        let fresh = state.fresh_if_due(shows);
        if !shows && !state.published.shows && fresh.is_empty() {
            // What was measured is written when it is due.
            return open || state.observers.has_fresh();
        }
        let process = state.process.clone();
        if shows {
            state.add_what_only_we_know(&mut shown);
        }
        let body = if shows { serde_json::to_vec(&shown).unwrap_or_default().into() } else { Bytes::new() };
        let body = if body.len() > limits::SHOWN_BYTES { Bytes::new() } else { body };
        state.published.shows = shows;
        state.publish(process, body, fresh);
        open || state.observers.has_fresh()
    }

    /// What another process wants done with what is here.
    fn do_as_told(&self, all: &[Bytes]) {
        for told in all.iter().filter_map(|body| serde_json::from_slice::<Told>(body).ok()) {
            if let Some(id) = &told.cancel {
                self.cancel_call(id, &told.by);
            }
            if let Some(server) = &told.restart {
                self.restart_server(server);
            }
        }
    }

    /// Takes back what is shown, and writes the rest.
    pub(super) fn publish_no_more(&self) {
        let mut state = self.lock();
        let fresh = state.observers.fresh();
        if state.published.shows || !fresh.is_empty() {
            let process = state.process.clone();
            state.publish(process, Bytes::new(), fresh);
        }
        if let Some(store) = state.published.store.take() {
            drop(state);
            store.close();
        }
    }
}

/// What others are shown: a call that was over within a second would only come and go.
fn worth_showing(mut own: state::State) -> state::State {
    let slow = limits::SLOW.as_millis() as u64;
    let now = own.now;
    own.calls.retain(|call| call.began + slow <= now);
    own.ended.retain(|ended| ended.took_ms >= slow);
    own.ended.truncate(ENDED);
    own.tools.clear();
    own
}

/// The tools of calls, each once.
fn tools_of(shown: &state::State) -> BTreeSet<(String, String)> {
    let open = shown.calls.iter().map(|call| (&call.server, &call.tool));
    let ended = shown.ended.iter().map(|call| (&call.server, &call.tool));
    open.chain(ended).filter_map(|(server, tool)| Some((server.clone(), tool.clone()?))).collect()
}

impl State {
    /// What happened to the calls that are shown, and which limits their tools have.
    fn add_what_only_we_know(&self, shown: &mut state::State) {
        let Some(feed) = self.observers.feed() else { return };
        let ids = shown.calls.iter().map(|call| &*call.id).chain(shown.ended.iter().map(|call| &*call.id));
        let stories = feed.stories(ids, STORIES);
        let limits = tools_of(shown).into_iter().filter_map(|(server, tool)| {
            let (timeout, max) = self.engine.limits_of(&server, &tool)?;
            let millis = |time: Duration| time.as_millis() as u64;
            Some(state::Limits { server, tool, timeout_ms: timeout.map(millis), max_ms: millis(max) })
        });
        shown.limits = limits.collect();
        shown.stories = stories;
    }

    /// What was measured and noted since the last time, if it is to be written now.
    fn fresh_if_due(&mut self, shows: bool) -> Fresh {
        self.published.times += 1;
        if self.published.times < WRITES && (shows || !self.published.shows) {
            return Fresh::default();
        }
        self.published.times = 0;
        self.observers.fresh()
    }

    /// Limits that adapt begin with what earlier processes have measured.
    fn learn_what_was_measured(&mut self) {
        if !self.adapts {
            return;
        }
        let me = self.me.clone();
        let runtime = tokio::runtime::Handle::current();
        let reply: Reply<Loaded> = Box::new(move |found| {
            let (Some(driver), Ok(Found::Measured(all))) = (me.upgrade(), found) else { return };
            let _inside = runtime.enter();
            driver.turn(|state| state.feed(Event::Measured(all)));
        });
        if let Some(store) = self.store_to_publish() {
            store.load(Query::Measured, reply);
        }
    }

    fn publish(&mut self, process: Box<str>, shown: Bytes, fresh: Fresh) {
        let mut writes = vec![Write::Show { process, shown }];
        if !fresh.durations.is_empty() {
            writes.push(Write::Measured(measured(&fresh.durations)));
        }
        if !fresh.notes.is_empty() {
            writes.push(Write::Calls(fresh.notes));
        }
        let me = self.me.clone();
        let runtime = tokio::runtime::Handle::current();
        let reply: Reply<Stored> = Box::new(move |stored| {
            let Ok(Committed { done, .. }) = stored else { return };
            let (Some(driver), Some(Done::Told(told))) = (me.upgrade(), done.into_iter().next()) else {
                return;
            };
            let _inside = runtime.enter();
            driver.do_as_told(&told);
        });
        if let Some(store) = self.store_to_publish() {
            store.submit(writes, reply);
        }
    }

    /// The store that calls use, or else one of our own: nobody needs to hear that it cannot be used.
    fn store_to_publish(&mut self) -> Option<&Store> {
        if self.published.store.is_none() && self.store.is_some() {
            return self.store.as_ref();
        }
        if self.published.store.is_none() && self.home.is_durable() {
            self.published.store = Store::at(self.home.clone(), Box::new(|_| {}), None).ok();
        }
        self.published.store.as_ref()
    }

    /// A person cancels a call of this process. False if it is not there (any more).
    pub(super) fn cancel_call(&mut self, id: &str, by: &str) -> bool {
        let Some(no) = self.observers.feed().and_then(|feed| feed.open(id)) else { return false };
        self.feed(Event::CancelCall(no, by.into()));
        true
    }
}
