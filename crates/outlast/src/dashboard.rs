//! The dashboard: one page, and what it asks for, below `/outlast/`.
//!
//! The page is made from `crates/outlast/dashboard` and committed; `page` embeds it. `route` says what a path means,
//! `sight` who may see and do what, `view` what there is to see and how two states differ, `watch` tells the open
//! pages once a second, `act` does what a person asks for; `link` is a page that decides one held call, for whoever a callback has told of
//! it; `alone` is `outlast ui`. All of it stands beside the path of calls: nothing is
//! looked at before somebody opens a page.
//!
//! Not here: who is let in and how answers are written (`client/http`).

pub mod act;
pub mod alone;
pub mod link;
pub mod page;
pub mod route;
pub mod sight;
mod view;
mod watch;

use crate::driver::Driver;
use sight::{Everything, Sight};
use std::sync::Arc;
use std::sync::Mutex;
use tokio::sync::Notify;
use watch::Tabs;

/// What is behind the page.
#[derive(Debug)]
pub struct Dashboard {
    driver: Arc<Driver>,
    /// What those see who see everything.
    everything: Everything,
    tabs: Mutex<Tabs>,
    /// Somebody wants to see at once what there is.
    look: Notify,
}

impl Dashboard {
    /// A dashboard that nobody looks at yet.
    pub fn new(driver: Arc<Driver>, everything: Everything) -> Arc<Dashboard> {
        Arc::new(Dashboard { driver, everything, tabs: Mutex::default(), look: Notify::new() })
    }

    /// The state as it is now, as this visitor sees it.
    pub async fn state(&self, sight: &Sight) -> serde_json::Value {
        self.gather().await.whole(sight)
    }
}
