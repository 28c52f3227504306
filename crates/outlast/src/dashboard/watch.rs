//! Telling the open pages: once a second everything is looked at, and each page is told what has changed since it
//! heard last. While no page is open nothing is looked at.

use super::Dashboard;
use super::sight::Sight;
use super::view::View;
use crate::client::http::flow::Flow;
use crate::clock;
use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, MutexGuard, PoisonError, Weak};
use std::time::Duration;

/// How often everything is looked at.
const EVERY: Duration = Duration::from_secs(1);

/// However many ask for it, nothing is looked at sooner than that after the last time.
const AT_LEAST: Duration = Duration::from_millis(50);

/// Pages that may be open. One more is refused.
const TABS: usize = 64;

/// The pages that are open.
#[derive(Debug, Default)]
pub struct Tabs {
    open: Vec<Tab>,
    /// Somebody looks once a second.
    watched: bool,
    closed: bool,
}

/// One page. It is open as long as its stream is there.
#[derive(Debug)]
struct Tab {
    sight: Sight,
    flow: Weak<Flow>,
    /// What it has been told.
    seen: Option<Arc<View>>,
}

impl Dashboard {
    fn tabs(&self) -> MutexGuard<'_, Tabs> {
        self.tabs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new page; `None` if there are too many.
    pub fn open(self: &Arc<Dashboard>, sight: Sight) -> Option<Arc<Flow>> {
        let mut tabs = self.tabs();
        tabs.open.retain(|tab| tab.flow.strong_count() > 0);
        if tabs.open.len() >= TABS || tabs.closed {
            return None;
        }
        let flow = Arc::new(Flow::default());
        tabs.open.push(Tab { sight, flow: Arc::downgrade(&flow), seen: None });
        if !std::mem::replace(&mut tabs.watched, true) {
            tokio::spawn(self.clone().watch());
        }
        drop(tabs);
        self.look_at_once();
        Some(flow)
    }

    /// Something was done that everybody should see.
    pub fn look_at_once(&self) {
        self.look.notify_one();
    }

    /// Pages of those whose token is for something else now do not stay open.
    pub fn close_of(&self, revoked: &[Option<Box<str>>]) {
        let gone = |tab: &mut Tab| revoked.contains(&tab.sight.principal);
        let closed = self.tabs().open.extract_if(.., gone).collect::<Vec<_>>();
        closed.iter().filter_map(|tab| tab.flow.upgrade()).for_each(|flow| flow.finish());
    }

    /// No page stays open.
    pub fn close(&self) {
        let mut tabs = self.tabs();
        tabs.closed = true;
        tabs.open.drain(..).filter_map(|tab| tab.flow.upgrade()).for_each(|flow| flow.finish());
    }

    async fn watch(self: Arc<Dashboard>) {
        loop {
            let view = Arc::new(self.gather().await);
            if !self.tell(&view) {
                return;
            }
            tokio::time::sleep_until(clock::in_future(AT_LEAST).into()).await;
            tokio::select! {
                () = tokio::time::sleep_until(clock::in_future(EVERY.saturating_sub(AT_LEAST)).into()) => {}
                () = self.look.notified() => {}
            }
        }
    }

    /// Tells every page what it has not heard. False if none is open.
    fn tell(&self, view: &Arc<View>) -> bool {
        let mut tabs = self.tabs();
        // Pages with the same rights that have heard the same are told the same words.
        let mut told: Vec<(Option<Arc<View>>, Sight, Option<Bytes>)> = Vec::new();
        tabs.open.retain_mut(|tab| {
            let Some(flow) = tab.flow.upgrade() else { return false };
            let seen = tab.seen.replace(view.clone());
            let same = |(other, sight, _): &&(Option<Arc<View>>, Sight, _)| {
                *sight == tab.sight && other.as_ref().map(Arc::as_ptr) == seen.as_ref().map(Arc::as_ptr)
            };
            let words = match told.iter().find(same) {
                Some((_, _, words)) => words.clone(),
                None => {
                    let words = words(view, seen.as_deref(), &tab.sight);
                    told.push((seen, tab.sight.clone(), words.clone()));
                    words
                }
            };
            // A page that does not read is cut off; it comes again and gets all of it.
            words.is_none_or(|words| flow.write(words))
        });
        tabs.watched = !tabs.open.is_empty();
        tabs.watched
    }
}

/// What is to be told; `None` if that is nothing.
fn words(view: &View, seen: Option<&View>, sight: &Sight) -> Option<Bytes> {
    let event = |name: &str, value: &Value| Bytes::from(format!("event: {name}\ndata: {value}\n\n"));
    match seen {
        None => Some(event("state", &view.whole(sight))),
        Some(seen) => view.change(seen, sight).map(|change| event("change", &change)),
    }
}
