//! Every figure that is measured, and what outlast must reach.
//!
//! The goals are those of the tables "Figures to reach"; this is their only place in the code.

use super::messages::Era;

/// A measured quantity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Metric {
    RoundTripP50,
    RoundTripP99,
    CallsPerSecond,
    CallsPerSecondJoined,
    OneMegabyte,
    TenMegabytes,
    CpuOneByOne,
    CpuInFlight,
    ColdStart,
    SlowStart,
    MemoryIdle,
    MemoryAfterLarge,
    MemoryPending,
    PendingUnanswered,
    PendingLateness,
    LimitsNotFired,
    LimitsLateness,
    LimitsNotCancelled,
    StoreInstructions,
    HttpP50(Era),
    HttpP99(Era),
    HttpPerSecond(Era),
    HttpOneMegabyte(Era),
    HttpTenMegabytes(Era),
    HttpCpu(Era),
    StdioToHttp(Era),
    HttpToHttp(Era),
    ServeIdle,
    ServeSession,
    StreamsUnanswered,
    StreamsLateness,
    StreamsMemory,
    MetricsInstructions,
}

/// One value of a metric, for one target in one round.
pub type Sample = (Metric, f64);

pub struct Figure {
    pub metric: Metric,
    /// The name in the JSON record.
    pub key: &'static str,
    pub title: &'static str,
    pub unit: &'static str,
    pub goal: Goal,
}

#[derive(Clone, Copy)]
pub enum Goal {
    /// At most so many times the value of the table's base.
    RatioAtMost(f64),
    /// At least so many times that value.
    RatioAtLeast(f64),
    /// At most this, whatever the base does.
    AtMost(f64),
    /// The same, counted and not timed: missed on no machine, however busy.
    CountAtMost(f64),
    /// Never, not even in one round: a lost call must not vanish in a median.
    Never,
    /// Shown for what it tells; the table of goals does not name it.
    None,
}

/// Over pipes; ratios are to the floor.
pub static STDIO: [Figure; 19] = {
    use Goal::*;
    use Metric::*;
    [
        row(RoundTripP50, "round_trip_p50", "round trip p50, 100 B", "µs", RatioAtMost(1.15)),
        row(RoundTripP99, "round_trip_p99", "round trip p99, 100 B", "µs", RatioAtMost(1.4)),
        row(CallsPerSecond, "calls_per_second", "calls per second, 64 in flight", "/s", RatioAtLeast(0.65)),
        row(CallsPerSecondJoined, "calls_per_second_joined", "calls per second, requests joined", "/s", None),
        row(OneMegabyte, "payload_1mb", "1 MB there and back", "ms", RatioAtMost(1.5)),
        row(TenMegabytes, "payload_10mb", "10 MB there and back", "ms", RatioAtMost(1.5)),
        row(CpuOneByOne, "cpu_one_by_one", "CPU per call, one by one", "µs", RatioAtMost(1.3)),
        row(CpuInFlight, "cpu_in_flight", "CPU per call, 64 in flight", "µs", AtMost(1.5)),
        row(ColdStart, "cold_start", "cold start to `initialize` answered", "ms", RatioAtMost(1.4)),
        row(SlowStart, "slow_start", "tools listed, server loads 1 s", "ms", AtMost(50.0)),
        row(MemoryIdle, "memory_idle", "memory, idle", "MiB", AtMost(5.0)),
        row(MemoryAfterLarge, "memory_after_10mb", "memory, 1 s after 10 MB messages", "MiB", AtMost(8.0)),
        row(MemoryPending, "memory_pending", "memory, 10,000 calls pending", "MiB", AtMost(14.0)),
        row(PendingUnanswered, "pending_unanswered", "10,000 pending: unanswered", "calls", Never),
        row(PendingLateness, "pending_lateness_p99", "10,000 pending: lateness p99", "ms", RatioAtMost(2.0)),
        row(LimitsNotFired, "limits_not_fired", "10,000 limits: not fired", "calls", Never),
        row(LimitsLateness, "limits_lateness_p99", "10,000 limits: lateness p99", "ms", AtMost(50.0)),
        row(
            LimitsNotCancelled,
            "limits_not_cancelled",
            "10,000 limits: not cancelled at server",
            "calls",
            Never,
        ),
        row(
            StoreInstructions,
            "store_instructions",
            "instructions per call, store on to off",
            "×",
            CountAtMost(1.02),
        ),
    ]
};

/// Over HTTP; ratios are to the server reached directly.
pub static HTTP: [Figure; 22] = {
    use Era::*;
    use Goal::*;
    use Metric::*;
    [
        row(HttpP50(Legacy), "http_p50_legacy", "round trip p50, 100 B, legacy", "µs", RatioAtMost(3.0)),
        row(HttpP50(Modern), "http_p50_modern", "round trip p50, 100 B, modern", "µs", RatioAtMost(3.0)),
        row(HttpP99(Legacy), "http_p99_legacy", "round trip p99, 100 B, legacy", "µs", RatioAtMost(2.5)),
        row(HttpP99(Modern), "http_p99_modern", "round trip p99, 100 B, modern", "µs", RatioAtMost(2.5)),
        row(HttpPerSecond(Legacy), "http_rate_legacy", "64 in flight, legacy", "/s", RatioAtLeast(0.4)),
        row(HttpPerSecond(Modern), "http_rate_modern", "64 in flight, modern", "/s", RatioAtLeast(0.4)),
        row(HttpCpu(Legacy), "http_cpu_legacy", "CPU per call in flight, legacy", "µs", None),
        row(HttpCpu(Modern), "http_cpu_modern", "CPU per call in flight, modern", "µs", None),
        row(
            HttpOneMegabyte(Legacy),
            "http_1mb_legacy",
            "1 MB there and back, legacy",
            "ms",
            RatioAtMost(2.0),
        ),
        row(
            HttpOneMegabyte(Modern),
            "http_1mb_modern",
            "1 MB there and back, modern",
            "ms",
            RatioAtMost(2.0),
        ),
        row(
            HttpTenMegabytes(Legacy),
            "http_10mb_legacy",
            "10 MB there and back, legacy",
            "ms",
            RatioAtMost(2.0),
        ),
        row(
            HttpTenMegabytes(Modern),
            "http_10mb_modern",
            "10 MB there and back, modern",
            "ms",
            RatioAtMost(2.0),
        ),
        row(StdioToHttp(Legacy), "stdio_to_http_legacy", "stdio to HTTP p50, legacy", "µs", RatioAtMost(2.5)),
        row(StdioToHttp(Modern), "stdio_to_http_modern", "stdio to HTTP p50, modern", "µs", RatioAtMost(2.5)),
        row(HttpToHttp(Legacy), "http_to_http_legacy", "HTTP to HTTP p50, legacy", "µs", RatioAtMost(3.0)),
        row(HttpToHttp(Modern), "http_to_http_modern", "HTTP to HTTP p50, modern", "µs", RatioAtMost(3.0)),
        row(ServeIdle, "serve_idle", "memory, idle", "MiB", AtMost(10.0)),
        row(ServeSession, "serve_session", "memory per idle SSE session", "KiB", AtMost(48.0)),
        row(StreamsUnanswered, "streams_unanswered", "10,000 open streams: unanswered", "calls", Never),
        row(StreamsLateness, "streams_lateness_p99", "10,000 open streams: lateness p99", "ms", None),
        row(StreamsMemory, "streams_memory", "10,000 open streams: memory", "MiB", AtMost(600.0)),
        row(
            MetricsInstructions,
            "metrics_instructions",
            "instructions per call, metrics on to off",
            "×",
            CountAtMost(1.02),
        ),
    ]
};

const fn row(
    metric: Metric,
    key: &'static str,
    title: &'static str,
    unit: &'static str,
    goal: Goal,
) -> Figure {
    Figure { metric, key, title, unit, goal }
}

impl Figure {
    pub fn has_goal(&self) -> bool {
        !matches!(self.goal, Goal::None)
    }

    /// The goal in words, as the table and the plot show it.
    pub fn goal_text(&self) -> String {
        match self.goal {
            Goal::RatioAtMost(bound) => format!("≤ {bound:.2}×"),
            Goal::RatioAtLeast(bound) => format!("≥ {bound:.2}×"),
            Goal::AtMost(bound) | Goal::CountAtMost(bound) => format!("≤ {bound} {}", self.unit),
            Goal::Never => "none".to_owned(),
            Goal::None => String::new(),
        }
    }
}

/// A number with as many digits as can be trusted, and its unit.
pub fn value_text(value: f64, unit: &str) -> String {
    let places = match value.abs() {
        _ if value.fract() == 0.0 && unit == "calls" => 0,
        size if size >= 1000.0 => 0,
        size if size >= 100.0 => 1,
        _ => 2,
    };
    format!("{value:.places$} {unit}")
}
