//! What the file says of clients and of tools: `[clients]`, and servers whose tools are found and not listed.

use outlast_engine::config::{ClientRule, Expose};
use outlast_engine::settings::Glob;
use std::sync::Arc;

/// Servers whose tools are found by those who look for them. One of them is steady.
const ON_DEMAND: [&str; 2] = ["s1", "s4"];

/// Servers that narrow clients see.
const FEW: [&str; 3] = ["s0", "s3", "s4"];

/// Who a client says it is, and so what it sees at the merged door.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Who {
    /// Nothing is written of it.
    #[default]
    Anybody,
    /// It sees few servers.
    Narrow,
    /// It finds all tools and lists none.
    Finder,
}

impl Who {
    pub(super) const ALL: [Who; 3] = [Who::Anybody, Who::Narrow, Who::Finder];

    pub(super) fn name(self) -> &'static str {
        match self {
            Who::Anybody => "sim",
            Who::Narrow => "narrow",
            Who::Finder => "finder",
        }
    }

    pub(super) fn sees(self, server: &str) -> bool {
        self != Who::Narrow || FEW.contains(&server)
    }

    /// Whether it finds a server's tools, and does not list them.
    pub(super) fn finds(self, server: &str) -> bool {
        self.sees(server) && (self == Who::Finder || ON_DEMAND.contains(&server))
    }

    pub(super) fn lists(self, server: &str) -> bool {
        self.sees(server) && !self.finds(server)
    }
}

/// How a server's tools are shown if nothing is written of a client.
pub(super) fn expose(server: &str) -> Expose {
    if ON_DEMAND.contains(&server) { Expose::OnDemand } else { Expose::Names }
}

pub(super) fn of_clients() -> Vec<Arc<ClientRule>> {
    let glob = |text: &str| Glob::new(text).expect("a glob");
    let rule = |who: Who, servers: Option<&[&str]>, expose| ClientRule {
        glob: glob(who.name()),
        cap: None,
        hand_off: None,
        servers: servers.map(|names| names.iter().map(|name| glob(name)).collect()),
        expose,
        callback: None,
        source: who.name().into(),
    };
    vec![
        Arc::new(rule(Who::Narrow, Some(&FEW), None)),
        Arc::new(rule(Who::Finder, None, Some(Expose::OnDemand))),
    ]
}
