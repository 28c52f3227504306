//! How the suite reaches what it examines.

use std::fmt;

use super::scenarios::{Leg, Scenario};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Direct,
    /// A server over HTTP, behind outlast.
    Http,
    /// A server over stdio, behind outlast.
    Stdio,
    /// A server over stdio that knows nothing of tasks, behind outlast, which makes them.
    Made,
    /// A server over HTTP under its own names, at the merged door, where it is the only one with anything to offer.
    Merged,
    /// The same over stdio, beside a second one of the same program under longer names.
    Two,
    /// A client over stdio, in front of outlast.
    Outlast,
}

impl Route {
    pub const ALL: [Route; 7] =
        [Route::Direct, Route::Http, Route::Stdio, Route::Made, Route::Merged, Route::Two, Route::Outlast];

    pub fn is_for(self, scenario: &Scenario) -> bool {
        match self {
            Route::Direct => true,
            Route::Http | Route::Stdio | Route::Merged | Route::Two => scenario.leg == Leg::Server,
            // A server that asks has to know of tasks, to ask in one.
            Route::Made => scenario.name.starts_with("tasks-") && !scenario.name.starts_with("tasks-mrtr-"),
            Route::Outlast => scenario.leg == Leg::Client,
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|route| route.to_string() == name)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Route::Direct => "direct",
            Route::Http => "http",
            Route::Stdio => "stdio",
            Route::Made => "made",
            Route::Merged => "merged",
            Route::Two => "two",
            Route::Outlast => "outlast",
        })
    }
}
