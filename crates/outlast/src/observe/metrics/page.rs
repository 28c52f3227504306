//! The page that Prometheus reads: its text format, version 0.0.4. Names and units are those that its guide asks for:
//! seconds, bytes, `_total`.

use super::times::Times;
use super::{COUNTS, Count, Metrics, Series};
use outlast_engine::Wall;
use outlast_engine::report::{Condition, Report};
use outlast_engine::store::Usage;
use std::fmt::{Display, Write};

/// What is so at the moment of asking.
#[derive(Debug, Default)]
pub struct Now {
    /// When the process began to count.
    pub since: Wall,
    /// The servers of the file.
    pub servers: Vec<Report>,
    /// Calls that wait for a person's yes.
    pub held: usize,
    /// How much is stored, if there is a store and it has said so in time.
    pub usage: Option<Usage>,
}

/// What is counted for each server: its name, and what it means.
const PER_SERVER: [(Count, &str, &str); COUNTS - 2] = [
    (Count::Attempts, "outlast_attempts_total", "Times that a call was sent to its server."),
    (Count::Retries, "outlast_retries_total", "Times that a call was to be sent once more."),
    (Count::Progress, "outlast_progress_total", "Progress that servers reported."),
    (Count::KeepAlives, "outlast_keep_alives_total", "Progress that outlast sent for a silent server."),
    (Count::Questions, "outlast_questions_total", "Times that a server asked a person during a call."),
    (Count::Holds, "outlast_holds_total", "Calls that had to wait for approval."),
    (Count::Joined, "outlast_joined_calls_total", "Calls that shared the attempt of another call."),
    (
        Count::HandOffs,
        "outlast_hand_offs_total",
        "Calls whose client was given a ticket in place of an answer.",
    ),
    (Count::Tasks, "outlast_tasks_total", "Calls that became tasks."),
    (Count::Resumed, "outlast_resumed_calls_total", "Calls that were taken up again after a loss."),
    (Count::Starts, "outlast_server_starts_total", "Processes and sessions of servers that were started."),
    (Count::Exits, "outlast_server_exits_total", "Processes of servers that ended by themselves."),
    (Count::Restarts, "outlast_server_restarts_total", "Times that a server was restarted."),
    (
        Count::Failures,
        "outlast_server_failures_total",
        "Times that a server could not be started or reached.",
    ),
];

const CONDITIONS: [Condition; 6] = [
    Condition::NotStarted,
    Condition::Asleep,
    Condition::Ready,
    Condition::Starting,
    Condition::Restarting,
    Condition::Failed,
];

/// Kinds of notes that say that the store failed, and at what.
const STORE_FAILURES: [(&str, &str); 3] =
    [("store-failed", "write"), ("store-unread", "read"), ("store-lost", "open")];

impl Metrics {
    /// The page.
    pub fn page(mut self, now: &Now) -> String {
        // Every server has its rows from the start: what appears with its first count has no increase to be seen.
        let known: Vec<usize> = now.servers.iter().map(|report| self.server(&report.name)).collect();
        let mut page = Page::default();
        page.process(now.since);
        self.calls(&mut page);
        self.servers(&mut page, now, &known);
        self.store(&mut page, now);
        page.family(
            "outlast_notes_total",
            "counter",
            "Lines of the log by kind, whatever the level of the log.",
        );
        for (kind, count) in &self.notes {
            page.row("outlast_notes_total", &[("kind", kind)], count);
        }
        page.text
    }

    fn calls(&self, page: &mut Page) {
        let mut each = |name: &str, kind: &str, help: &str, value: &dyn Fn(&Series) -> u64| {
            page.family(name, kind, help);
            self.series.iter().for_each(|series| page.row(name, &self.labels(series), value(series)));
        };
        each("outlast_calls_total", "counter", "Calls that began.", &|series| series.started);
        each("outlast_calls_in_flight", "gauge", "Calls that have begun and not ended.", &|series| {
            series.open
        });
        each("outlast_request_bytes_total", "counter", "Bytes of the requests of calls.", &|series| {
            series.asked
        });
        each("outlast_response_bytes_total", "counter", "Bytes of the answers to calls.", &|series| {
            series.answered
        });
        let ended = "outlast_calls_ended_total";
        page.family(
            ended,
            "counter",
            "Calls that ended, by outcome; kind says which error of outlast it was.",
        );
        for series in &self.series {
            let [server, method, tool] = self.labels(series);
            for (outcome, kind, count) in &series.ended {
                page.row(ended, &[server, method, tool, ("outcome", outcome), ("kind", kind)], count);
            }
        }
        let times = "outlast_call_duration_seconds";
        page.family(times, "histogram", "How long the clients of calls waited, from the request to the end.");
        self.series.iter().for_each(|series| page.histogram(times, &self.labels(series), &series.times));
    }

    fn servers(&self, page: &mut Page, now: &Now, known: &[usize]) {
        for (count, name, help) in PER_SERVER {
            page.family(name, "counter", help);
            for server in &self.servers {
                page.row(name, &[("server", &server.name)], server.counts[count as usize]);
            }
        }
        let decisions = "outlast_hold_decisions_total";
        page.family(decisions, "counter", "What persons said of calls that waited for approval.");
        for server in &self.servers {
            for (decision, count) in [("approved", Count::Approved), ("declined", Count::Declined)] {
                let labels = [("server", &*server.name), ("decision", decision)];
                page.row(decisions, &labels, server.counts[count as usize]);
            }
        }
        page.one("outlast_holds_waiting", "gauge", "Calls that wait for approval now.", now.held);
        page.family("outlast_servers", "gauge", "Servers by condition.");
        for condition in CONDITIONS {
            let count = now.servers.iter().filter(|report| report.condition == condition).count();
            page.row("outlast_servers", &[("condition", condition.word())], count);
        }
        self.reports(page, now, known);
    }

    /// What is so of each server that is told apart.
    fn reports(&self, page: &mut Page, now: &Now, known: &[usize]) {
        let told_apart = || {
            let named = now.servers.iter().zip(known).map(|(report, at)| (report, &*self.servers[*at].name));
            named.filter(|(report, shown)| *report.name == **shown)
        };
        page.family("outlast_server_up", "gauge", "Whether a server answers.");
        for (report, name) in told_apart() {
            let up = u8::from(report.condition == Condition::Ready);
            page.row("outlast_server_up", &[("server", name)], up);
        }
        page.family(
            "outlast_server_processes",
            "gauge",
            "Processes and sessions of a server that there are now.",
        );
        for (report, name) in told_apart() {
            page.row("outlast_server_processes", &[("server", name)], report.running);
        }
    }

    fn store(&self, page: &mut Page, now: &Now) {
        if let Some(usage) = now.usage {
            page.one("outlast_store_records", "gauge", "Calls with a ticket in the store.", usage.records);
            page.one(
                "outlast_store_bytes",
                "gauge",
                "Bytes of the store that count against its limits.",
                usage.bytes,
            );
        }
        let failures = "outlast_store_failures_total";
        page.family(failures, "counter", "Times that the store could not be written, read or opened.");
        for (kind, operation) in STORE_FAILURES {
            let count = self.notes.get(kind).copied().unwrap_or_default();
            page.row(failures, &[("operation", operation)], count);
        }
    }

    fn labels<'a>(&'a self, series: &'a Series) -> [(&'static str, &'a str); 3] {
        let server = self.servers.get(series.server).map_or("", |server| &*server.name);
        [("server", server), ("method", series.method), ("tool", &series.tool)]
    }
}

/// A page that is being written.
#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn process(&mut self, since: Wall) {
        self.family("outlast_build_info", "gauge", "The version that runs; always 1.");
        self.row("outlast_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
        let start = since.0 as f64 / 1000.0;
        self.one("process_start_time_seconds", "gauge", "When the process started, since 1970.", start);
    }

    fn family(&mut self, name: &str, kind: &str, help: &str) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A family of one row.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.row(name, &[], value);
    }

    fn row(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.text.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.text.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.text, "{label}=\"");
            self.escaped(text);
            self.text.push('"');
        }
        let _ = writeln!(self.text, "{} {value}", if labels.is_empty() { "" } else { "}" });
    }

    fn histogram(&mut self, name: &str, labels: &[(&str, &str); 3], times: &Times) {
        let [server, method, tool] = *labels;
        let bucket = format!("{name}_bucket");
        for (edge, count) in times.up_to() {
            self.row(&bucket, &[server, method, tool, ("le", &edge.to_string())], count);
        }
        self.row(&bucket, &[server, method, tool, ("le", "+Inf")], times.count());
        self.row(&format!("{name}_sum"), labels, times.sum());
        self.row(&format!("{name}_count"), labels, times.count());
    }

    /// Nothing in a name ends its label.
    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                '\n' => self.text.push_str("\\n"),
                c => self.text.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{began, ended};
    use super::*;
    use outlast_engine::step::Outcome;
    use std::collections::BTreeSet;

    fn full() -> String {
        let mut metrics = Metrics::default();
        let spot = metrics.begins(&began("ci", "a\"b\\c\u{1b}\nd"));
        metrics.happens(spot, &ended(Outcome::Failed("timeout")));
        metrics.begins(&began("ci", "build"));
        metrics.note("store-unread");
        let usage = Some(Usage { records: 3, bytes: 4_096 });
        metrics.page(&Now { since: Wall(1_500), usage, ..Now::default() })
    }

    /// The names of all families.
    fn families(page: &str) -> BTreeSet<&str> {
        page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
    }

    #[test]
    fn a_row_says_what_was_counted() {
        let page = full();
        let tool = r#"server="ci",method="tools/call",tool="a\"b\\c\\u{1b}\\u{a}d""#;
        for row in [
            format!("outlast_calls_total{{{tool}}} 1"),
            format!("outlast_calls_in_flight{{{tool}}} 0"),
            format!("outlast_calls_ended_total{{{tool},outcome=\"failed\",kind=\"timeout\"}} 1"),
            format!("outlast_call_duration_seconds_bucket{{{tool},le=\"0.064\"}} 0"),
            format!("outlast_call_duration_seconds_bucket{{{tool},le=\"0.128\"}} 1"),
            format!("outlast_call_duration_seconds_bucket{{{tool},le=\"+Inf\"}} 1"),
            format!("outlast_call_duration_seconds_sum{{{tool}}} 0.07"),
            "outlast_calls_in_flight{server=\"ci\",method=\"tools/call\",tool=\"build\"} 1".into(),
            "outlast_retries_total{server=\"ci\"} 0".into(),
            "outlast_store_failures_total{operation=\"read\"} 1".into(),
            "outlast_store_bytes 4096".into(),
            "process_start_time_seconds 1.5".into(),
        ] {
            assert!(page.lines().any(|line| line == row), "{row}\n{page}");
        }
        assert!(
            !page.contains("cursor") && !page.contains("ana"),
            "whose calls they are is nobody's business"
        );
    }

    #[test]
    fn every_row_belongs_to_the_family_above_it_and_stands_once() {
        let page = full();
        let (mut family, mut seen) = ("", BTreeSet::new());
        for line in page.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(rest) => family = rest.split(' ').next().unwrap(),
                None if line.starts_with('#') => {}
                None => {
                    let (row, _) = line.rsplit_once(' ').unwrap();
                    assert!(row.starts_with(family) && seen.insert(row), "{line}");
                }
            }
        }
    }

    /// Whoever looks at the dashboard of Grafana would see an empty panel, and would not know why.
    #[test]
    fn grafana_asks_for_what_there_is() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/grafana/outlast.json");
        let dashboard = std::fs::read_to_string(file).unwrap();
        serde_json::from_str::<serde_json::Value>(&dashboard).expect("JSON");
        let page = full();
        let there = families(&page);
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        let asked: BTreeSet<&str> = dashboard
            .match_indices("outlast_")
            .map(|(at, _)| &dashboard[at..])
            .map(|rest| &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())])
            .map(|name| {
                ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
            })
            .collect();
        assert!(asked.is_subset(&there), "not there: {:?}", asked.difference(&there));
        let shown_elsewhere = [
            "outlast_attempts_total",
            "outlast_build_info",
            "outlast_joined_calls_total",
            "outlast_progress_total",
            "outlast_questions_total",
            "outlast_resumed_calls_total",
            "outlast_server_processes",
            "outlast_server_starts_total",
            "process_start_time_seconds",
        ];
        let missing: Vec<&&str> =
            there.difference(&asked).filter(|name| !shown_elsewhere.contains(name)).collect();
        assert!(missing.is_empty(), "in no panel: {missing:?}");
    }
}
