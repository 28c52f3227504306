//! What the driver tells whoever looks on: the dashboard, `top`, metrics.

use super::{Driver, State};
use crate::observe::feed::Feed;
use crate::observe::metrics::{Metrics, Now};
use crate::observe::state::{self, Story};
use outlast_engine::store::{Found, Query, Usage};
use outlast_engine::{Config, Event, Manner, Observed};
use std::time::Duration;
use tokio::sync::{oneshot, watch};

/// How long the store is waited for when somebody asks for numbers; without it they tell less.
const USAGE: Duration = Duration::from_secs(1);

/// Whose steps are told in a mode. A service has a dashboard; elsewhere only what is slow matters to anybody.
pub(super) fn observed(config: &Config) -> Observed {
    match config.manner {
        // The service behind the door has the same calls.
        _ if config.door => Observed::Nothing,
        _ if config.traces => Observed::All,
        Manner::Serve => Observed::All,
        Manner::Wrap | Manner::Gateway => Observed::Slow,
        Manner::TimeoutMcp => Observed::Nothing,
    }
}

/// What this process is called among others: its number, and something that no later process with the same has.
pub(super) fn process_name(config: &Config) -> String {
    format!("{}-{:08x}", std::process::id(), config.seed as u32)
}

impl Driver {
    /// What is so right now. `None` if nobody follows calls.
    pub fn snapshot(&self) -> Option<state::State> {
        let state = self.lock();
        let now = state.clock.now();
        let snapshot = state.engine.snapshot(now);
        let limits = |server: &str, tool: &str| state.engine.limits_of(server, tool);
        Some(state.observers.feed()?.state(now.wall, &snapshot, limits))
    }

    /// Whether what happens is counted.
    pub fn measures(&self) -> bool {
        self.lock().observers.measures()
    }

    /// What was counted, as Prometheus reads it; `None` if nothing is. Only a copy is made while calls wait.
    pub async fn metrics(&self) -> Option<String> {
        let (metrics, mut now) = self.counted()?;
        now.usage = self.usage().await;
        tokio::task::spawn_blocking(move || metrics.page(&now)).await.ok()
    }

    fn counted(&self) -> Option<(Metrics, Now)> {
        let state = self.lock();
        let feed = state.observers.feed()?;
        let (metrics, since) = feed.metrics()?;
        let servers = state.engine.report();
        Some((metrics, Now { since, servers, held: feed.held(), usage: None }))
    }

    /// How much is stored, if there is a store already and it answers in time.
    async fn usage(&self) -> Option<Usage> {
        let (reply, found) = oneshot::channel();
        self.lock().store.as_ref()?.load(Query::Usage, Box::new(move |outcome| drop(reply.send(outcome))));
        match tokio::time::timeout(USAGE, found).await {
            Ok(Ok(Ok(Found::Usage(usage)))) => Some(usage),
            _ => None,
        }
    }

    /// The story of a call that this process has, or had not long ago.
    pub fn story(&self, id: &str) -> Option<Story> {
        let state = self.lock();
        let feed = state.observers.feed()?;
        feed.story(feed.number(id)?, &state.engine.snapshot(state.clock.now()))
    }

    /// A person cancels a call of this process. False if it is not there (any more).
    pub fn cancel_call(&self, id: &str, by: &str) -> bool {
        self.turn(|state| state.cancel_call(id, by))
    }

    /// A person has a server of this process started again. False if there is none of that name.
    pub fn restart_server(&self, name: &str) -> bool {
        self.turn(|state| {
            let known = state.engine.has_server(name);
            if known {
                state.feed(Event::RestartServer(name.into()));
            }
            known
        })
    }

    /// Tells when something has changed.
    pub fn changes(&self) -> Option<watch::Receiver<u64>> {
        self.lock().observers.feed().map(Feed::changes)
    }
}

impl State {
    /// From now on calls are followed, if anybody's steps are told.
    pub(super) fn follow(&mut self, observed: Observed) {
        if observed == Observed::Nothing {
            return;
        }
        let me = self.me.clone();
        // From a thread of an observer's own.
        let warn = move |text| {
            if let Some(driver) = me.upgrade() {
                driver.warn("otlp", text);
            }
        };
        self.observers.follow(&self.process, Box::new(warn));
    }

    /// A step of a call or of a server.
    pub(super) fn step(&mut self, step: outlast_engine::Step) {
        self.observers.step(self.now, step);
    }
}
