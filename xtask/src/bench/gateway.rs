//! `cargo xtask bench gateway`: what the merged door costs, against the door of one server.
//!
//! The servers are all the same echo server, with a hundred tools each. As in the other tables everything shares one
//! core, a ratio is taken inside its round, and the median over rounds is shown.
//!
//! Map: `sites` starts outlast before one or many servers, `measures`, `search` and `reloads` take the figures; here is
//! what they mean.

mod measures;
mod reloads;
mod search;
mod sites;

use anyhow::{Result, bail, ensure};

use super::machine::Machine;
use super::options::Options;
use super::results::median;
use super::targets::Programs;

/// What a figure must be.
#[derive(Clone, Copy)]
pub(super) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// The same, and no noise of the machine excuses more.
    CountedAtMost(f64),
    /// It explains another one.
    None,
}

pub(super) struct Row {
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    pub(super) goal: Goal,
}

/// How many figures a round takes.
pub const FIGURES: usize = 15;

/// Every figure that a round takes.
const ROWS: [Row; FIGURES] = [
    row("rate_one", "one server × 200 clients", "calls/s", Goal::None),
    row("rate", "20 servers × 200 clients, ÷ one server × 200 clients", "×", Goal::AtLeast(0.8)),
    row("p50_one", "p50 through the door of one server", "µs", Goal::None),
    row("p50", "p50 through the merged door, ÷ through the door of one server", "×", Goal::AtMost(1.1)),
    row("list_p50", "merged `tools/list` of 2,000 tools from memory, p50", "ms", Goal::None),
    row("list_p99", "merged `tools/list` of 2,000 tools from memory, p99", "ms", Goal::AtMost(2.0)),
    row("call_p99", "a call alone, p99", "ms", Goal::None),
    row("beside_p99", "a call right behind such a list: later than alone by, p99", "ms", Goal::AtMost(1.0)),
    row("find_first", "`find_tools` over 2,000 tools, the first time after a change", "ms", Goal::None),
    row("find_p99", "`find_tools` over 2,000 tools, p99", "ms", Goal::AtMost(5.0)),
    row("reload", "reload of 200 servers without a change: work", "ms", Goal::AtMost(100.0)),
    row("alone_longest", "calls one by one for a second: the longest", "ms", Goal::None),
    row("beside_longest", "the same while the file is read again", "ms", Goal::None),
    row("session", "idle client session at the merged door", "KiB", Goal::CountedAtMost(64.0)),
    row("listed", "the same after a list, which it can still fetch again", "KiB", Goal::None),
];

pub(super) const fn row(key: &'static str, title: &'static str, unit: &'static str, goal: Goal) -> Row {
    Row { key, title, unit, goal }
}

/// A figure of one round.
pub(super) type Sample = (&'static str, f64);

/// How much is measured in one round.
struct Sizes {
    calls: u64,
    one_by_one: u64,
    lists: u64,
    reloads: usize,
    sessions: usize,
}

impl Sizes {
    fn new(quick: bool) -> Sizes {
        if quick {
            return Sizes { calls: 2_000, one_by_one: 500, lists: 50, reloads: 1, sessions: 50 };
        }
        Sizes { calls: 40_000, one_by_one: 10_000, lists: 500, reloads: 5, sessions: 500 }
    }
}

/// Takes all figures and shows them; a whole run is published.
pub fn run(options: &Options, programs: &Programs, machine: &Machine) -> Result<()> {
    let sizes = Sizes::new(options.quick);
    let mut samples = Vec::new();
    for round in 0..options.rounds {
        println!("gateway, round {} of {}", round + 1, options.rounds);
        samples.extend(measures::take(programs, &sizes)?);
    }
    let values = medians(&ROWS, &samples);
    ensure!(values.len() == ROWS.len(), "not everything was measured");
    let rows = markdown(&values);
    println!("\n{rows}\n{machine}");
    if options.is_whole() {
        super::publish_at("docs/gateway-bench.md", &rows)?;
    }
    let missed: Vec<&Row> =
        values.iter().filter(|(row, value)| !row.goal.is_met(*value)).map(|(row, _)| *row).collect();
    let counted = missed.iter().find(|row| matches!(row.goal, Goal::CountedAtMost(_)));
    if let Some(row) = counted {
        bail!("{}: a goal was missed that needs no quiet machine", row.title);
    }
    ensure!(missed.is_empty() || !options.check, "{} goals were missed", missed.len());
    Ok(())
}

/// The rows that were measured, each with its median.
pub(super) fn medians<'a>(rows: &'a [Row], samples: &[Sample]) -> Vec<(&'a Row, f64)> {
    let value = |row: &Row| {
        let of_row = samples.iter().filter(|(key, _)| *key == row.key);
        median(of_row.map(|(_, value)| *value).collect())
    };
    rows.iter().filter_map(|row| Some((row, value(row)?))).collect()
}

pub(super) fn markdown(values: &[(&Row, f64)]) -> String {
    let mut text = String::from("| measure | outlast | goal |\n|---|--:|--:|\n");
    for (row, value) in values {
        let digits = if *value >= 1000.0 { 0 } else { 2 };
        text += &format!("| {} | {value:.digits$} {} | {} |\n", row.title, row.unit, row.goal.text(row.unit));
    }
    text
}

impl Goal {
    pub(super) fn is_met(self, value: f64) -> bool {
        match self {
            Goal::AtLeast(bound) => value >= bound,
            Goal::AtMost(bound) | Goal::CountedAtMost(bound) => value <= bound,
            Goal::None => true,
        }
    }

    fn text(self, unit: &str) -> String {
        match self {
            Goal::AtLeast(bound) => format!("≥ {bound} {unit}"),
            Goal::AtMost(bound) | Goal::CountedAtMost(bound) => format!("≤ {bound} {unit}"),
            Goal::None => String::new(),
        }
    }
}
