//! How the suite reaches what it examines.

use std::fmt;

use super::scenarios::Leg;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Route {
    Direct,
    /// A server over HTTP, behind outlast.
    Http,
    /// A server over stdio, behind outlast.
    Stdio,
    /// A client over stdio, in front of outlast.
    Outlast,
}

impl Route {
    pub const ALL: [Route; 4] = [Route::Direct, Route::Http, Route::Stdio, Route::Outlast];

    pub fn is_for(self, leg: Leg) -> bool {
        match self {
            Route::Direct => true,
            Route::Http | Route::Stdio => leg == Leg::Server,
            Route::Outlast => leg == Leg::Client,
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
            Route::Outlast => "outlast",
        })
    }
}
