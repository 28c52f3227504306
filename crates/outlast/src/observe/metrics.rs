//! Numbers for Prometheus: what has happened since the start, counted as it happens.
//!
//! It stands beside the feed under the driver's lock and only adds. Whoever asks gets a copy and writes the page
//! from it (`page.rs`) while calls go on. There is nothing in it about one call, one client or one principal, and the
//! names in it are bounded: the first [`SERVERS`] servers, the first [`TOOLS`] pairs of server and tool, methods that
//! we know. What comes after is counted under [`OTHERS`], so no sum is wrong.
//!
//! Not here: what is so at the moment of asking (`driver/onlookers.rs` adds it).

mod page;
mod times;

pub use page::Now;

use super::text::escape_up_to;
use outlast_engine::durations::OTHERS;
use outlast_engine::method::Method;
use outlast_engine::step::{Began, Ended, Outcome, ServerWhat, What};
use std::borrow::Cow;
use std::collections::BTreeMap;
use times::Times;

/// Servers that are told apart. One more: counted together with others.
const SERVERS: usize = 200;

/// Pairs of server and tool that are told apart. One more: counted together with others of its server.
const TOOLS: usize = 500;

/// What is counted for each server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Attempts,
    Retries,
    Progress,
    KeepAlives,
    Questions,
    Holds,
    Approved,
    Declined,
    Joined,
    HandOffs,
    Tasks,
    Resumed,
    Starts,
    Exits,
    Restarts,
    Failures,
}

const COUNTS: usize = Count::Failures as usize + 1;

/// Where a call is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    server: usize,
    series: usize,
}

/// All that is counted.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    servers: Vec<Server>,
    by_name: BTreeMap<Box<str>, usize>,
    series: Vec<Series>,
    /// Pairs of server and tool among them.
    tools: usize,
    notes: BTreeMap<&'static str, u64>,
}

/// What is counted of one server.
#[derive(Clone, Debug)]
struct Server {
    name: Box<str>,
    counts: [u64; COUNTS],
    /// Where its calls are counted: those of a tool by its name, others by their method.
    tools: BTreeMap<Box<str>, usize>,
    methods: BTreeMap<&'static str, usize>,
}

/// Calls that have the same labels.
#[derive(Clone, Debug)]
struct Series {
    server: usize,
    method: &'static str,
    /// Empty where none is called.
    tool: Box<str>,
    started: u64,
    open: u64,
    /// How they ended: the outcome, and the kind of our error.
    ended: Vec<(&'static str, &'static str, u64)>,
    times: Times,
    asked: u64,
    answered: u64,
}

/// A name as a label shows it. Two that look the same are counted together: a page in which one row stands twice is
/// refused as a whole.
fn shown(name: &str) -> Cow<'_, str> {
    escape_up_to(name, usize::MAX)
}

/// The label of a method: one that nobody knows could be any text.
fn word(method: &Method) -> &'static str {
    method.known().unwrap_or("other")
}

// What happens.
impl Metrics {
    /// A call begins.
    pub fn begins(&mut self, began: &Began) -> Spot {
        let server = self.server(&began.server);
        let tool = began.tool.as_deref().filter(|_| began.method == Method::ToolsCall);
        let series = self.series(server, word(&began.method), tool);
        let counted = &mut self.series[series];
        counted.started += 1;
        counted.open += 1;
        counted.asked += began.bytes;
        Spot { server, series }
    }

    /// Something happens to a call.
    pub fn happens(&mut self, spot: Spot, what: &What) {
        let count = match what {
            What::Sent { .. } => Count::Attempts,
            What::Retried { .. } => Count::Retries,
            What::Progress { .. } => Count::Progress,
            What::KeepAlive => Count::KeepAlives,
            What::Asked => Count::Questions,
            What::Held { .. } => Count::Holds,
            What::Decided { yes: true, .. } => Count::Approved,
            What::Decided { yes: false, .. } => Count::Declined,
            What::Joined { .. } => Count::Joined,
            What::HandedOff => Count::HandOffs,
            What::BecameTask => Count::Tasks,
            What::Resumed => Count::Resumed,
            What::Ended(ended) => return self.ends(spot, *ended),
            What::Began(_) | What::Queued | What::Answered | What::Followed | What::CancelAsked { .. } => {
                return;
            }
        };
        self.add(spot.server, count);
    }

    fn ends(&mut self, spot: Spot, Ended { outcome, took, bytes, .. }: Ended) {
        let Some(series) = self.series.get_mut(spot.series) else { return };
        series.open = series.open.saturating_sub(1);
        series.answered += bytes;
        series.times.add(took);
        series.count_end(outcome);
    }

    /// Something happens to a server.
    pub fn happens_to_server(&mut self, name: &str, what: &ServerWhat) {
        let count = match what {
            ServerWhat::Started { .. } => Count::Starts,
            ServerWhat::Ended { .. } => Count::Exits,
            ServerWhat::Restarting { .. } => Count::Restarts,
            ServerWhat::Failed { .. } => Count::Failures,
            ServerWhat::Ready { .. } => return,
        };
        let server = self.server(name);
        self.add(server, count);
    }

    /// The log was told something of this kind.
    pub fn note(&mut self, kind: &'static str) {
        *self.notes.entry(kind).or_default() += 1;
    }

    fn add(&mut self, server: usize, count: Count) {
        if let Some(server) = self.servers.get_mut(server) {
            server.counts[count as usize] += 1;
        }
    }
}

// Where it is counted.
impl Metrics {
    fn server(&mut self, name: &str) -> usize {
        if let Some(known) = self.by_name.get(name) {
            return *known;
        }
        let shown = shown(name);
        let known = self.by_name.contains_key(&*shown) || self.servers.len() < SERVERS;
        let name = if known { &*shown } else { OTHERS };
        let new = self.servers.len();
        let at = *self.by_name.entry(name.into()).or_insert(new);
        if at == new {
            let (tools, methods) = (BTreeMap::new(), BTreeMap::new());
            self.servers.push(Server { name: name.into(), counts: [0; COUNTS], tools, methods });
        }
        at
    }

    /// `server` is one that [`Metrics::server`] gave.
    fn series(&mut self, server: usize, method: &'static str, tool: Option<&str>) -> usize {
        let of = &mut self.servers[server];
        let known = match tool {
            Some(tool) => of.tools.get(tool),
            None => of.methods.get(method),
        };
        if let Some(known) = known {
            return *known;
        }
        let shown = tool.map(shown);
        let known = |tool: &&str| self.tools < TOOLS || of.tools.contains_key(*tool);
        let tool = shown.as_deref().map(|tool| Some(tool).filter(known).unwrap_or(OTHERS));
        let new = self.series.len();
        let at = match tool {
            Some(tool) => *of.tools.entry(tool.into()).or_insert(new),
            None => *of.methods.entry(method).or_insert(new),
        };
        if at == new {
            self.tools += usize::from(tool.is_some());
            self.series.push(Series::new(server, method, tool.unwrap_or_default()));
        }
        at
    }
}

impl Series {
    fn new(server: usize, method: &'static str, tool: &str) -> Series {
        Series {
            server,
            method,
            tool: tool.into(),
            started: 0,
            open: 0,
            ended: Vec::new(),
            times: Times::default(),
            asked: 0,
            answered: 0,
        }
    }

    fn count_end(&mut self, outcome: Outcome) {
        let (word, kind) = (outcome.word(), outcome.kind().unwrap_or_default());
        match self.ended.iter_mut().find(|(known, of, _)| (*known, *of) == (word, kind)) {
            Some((_, _, count)) => *count += 1,
            None => self.ended.push((word, kind, 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    pub(super) fn began(server: &str, tool: &str) -> Began {
        Began {
            server: server.into(),
            method: Method::ToolsCall,
            tool: Some(tool.into()),
            client: "cursor 1.2".into(),
            principal: "ana".into(),
            bytes: 10,
            ago: Duration::ZERO,
            trace: None,
        }
    }

    pub(super) fn ended(outcome: Outcome) -> What {
        What::Ended(Ended { outcome, took: Duration::from_millis(70), bytes: 5, code: None })
    }

    #[test]
    fn a_call_is_counted_where_it_began() {
        let mut metrics = Metrics::default();
        let spot = metrics.begins(&began("ci", "build"));
        let other = metrics.begins(&began("ci", "test"));
        assert_ne!(spot, other);
        assert_eq!(metrics.begins(&began("ci", "build")), spot);
        metrics.happens(spot, &ended(Outcome::Failed("timeout")));
        let series = &metrics.series[spot.series];
        assert_eq!((series.started, series.open, series.asked, series.answered), (2, 1, 20, 5));
        assert_eq!(series.ended, [("failed", "timeout", 1)]);
    }

    /// A client can call tools and methods of any name.
    #[test]
    fn names_are_bounded_and_no_sum_is_wrong() {
        let mut metrics = Metrics::default();
        for server in 0..SERVERS + 20 {
            for tool in 0..10 {
                metrics.begins(&began(&format!("server {server}"), &format!("tool {tool}")));
            }
            let method = Method::new(&format!("x/{server}"));
            metrics.begins(&Began { method, tool: None, ..began("server 0", "") });
        }
        assert_eq!(metrics.servers.len(), SERVERS + 1);
        assert_eq!(metrics.tools, TOOLS + SERVERS + 1 - TOOLS / 10);
        let sum = |of: &dyn Fn(&Series) -> bool| -> u64 {
            metrics.series.iter().filter(|series| of(series)).map(|series| series.started).sum()
        };
        assert_eq!(sum(&|_| true), 11 * (SERVERS as u64 + 20));
        assert_eq!(sum(&|series| series.method == "other"), SERVERS as u64 + 20);
    }

    #[test]
    fn names_that_look_the_same_are_counted_together() {
        let mut metrics = Metrics::default();
        let spots = ["a\u{1b}", "a\\u{1b}", "a\u{1b}"].map(|tool| metrics.begins(&began("ci", tool)));
        assert!(spots.iter().all(|spot| *spot == spots[0]));
    }

    /// Whoever is called as we call what is left has no row of its own.
    #[test]
    fn a_server_called_others_is_one_of_them() {
        let mut metrics = Metrics::default();
        let named = metrics.begins(&began(OTHERS, OTHERS));
        for server in 0..SERVERS {
            metrics.begins(&began(&format!("s{server}"), "x"));
        }
        let more = metrics.begins(&began("one more", "x"));
        assert_eq!(more.server, named.server);
    }
}
