//! How long calls took: a histogram for each tool of each server, and the limits that follow from it.
//!
//! The histogram is our own, because what is needed is little: its buckets are powers of two, each cut into eight parts,
//! so a bucket is at most an eighth wide; only buckets that hold something take room (five bytes), and two histograms
//! are joined by adding. From a millisecond to three days there are 234 buckets, so that a tool takes little more than
//! a kilobyte even if it used all of them, and the [`limits::MEASURED`] tools that are told apart less than 20 MiB. The
//! slowest call is kept exactly. (The usual crate for this keeps every bucket of its range: 20 kilobytes for a tool.)

use crate::limits;
use crate::settings::show_duration;
use crate::step::Outcome;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Parts of a power of two.
const PARTS: u64 = 8;

/// The last bucket; what takes longer is in it too.
const LAST: u8 = 233;

/// The bucket of a duration in milliseconds.
pub fn bucket(ms: u64) -> u8 {
    if ms < PARTS {
        return ms as u8;
    }
    let power = ms.ilog2();
    let part = (ms >> (power - 3)) & (PARTS - 1);
    let bucket = u64::from(power - 2) * PARTS + part;
    u8::try_from(bucket).unwrap_or(LAST).min(LAST)
}

/// The longest duration in a bucket, in milliseconds.
pub fn up_to(bucket: u8) -> u64 {
    let bucket = u64::from(bucket.min(LAST));
    if bucket < PARTS {
        return bucket;
    }
    let (power, part) = (bucket / PARTS + 2, bucket % PARTS);
    ((PARTS + part + 1) << (power - 3)) - 1
}

/// What is known of how long one tool takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Calls that ended.
    pub calls: u64,
    /// Those that failed, whoever said so.
    pub failures: u64,
    /// Those that a limit ended.
    pub cut_off: u64,
    /// The longest, in milliseconds.
    pub slowest_ms: u64,
    /// Buckets that hold something, in order, and how much. The number is kept as bytes, so that nothing is wasted
    /// on alignment.
    buckets: Vec<(u8, [u8; 4])>,
}

impl Tally {
    /// One call more.
    pub fn add(&mut self, took: Duration, outcome: Outcome) {
        let ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.calls += 1;
        self.failures += u64::from(outcome.is_failure());
        self.cut_off += u64::from(outcome.is_cut_off());
        if outcome.tells_duration() {
            self.slowest_ms = self.slowest_ms.max(ms);
            self.fill(bucket(ms), 1);
        }
    }

    /// Calls of which it is known how long they took.
    pub fn measured(&self) -> u64 {
        self.buckets().map(|(_, count)| u64::from(count)).sum()
    }

    /// So many calls more in a bucket, which are counted already.
    pub fn fill(&mut self, bucket: u8, count: u32) {
        match self.buckets.binary_search_by_key(&bucket, |(at, _)| *at) {
            Ok(at) => {
                let sum = u32::from_ne_bytes(self.buckets[at].1).saturating_add(count);
                self.buckets[at].1 = sum.to_ne_bytes();
            }
            Err(at) => self.buckets.insert(at, (bucket, count.to_ne_bytes())),
        }
    }

    /// Buckets that hold something, in order, and how much.
    pub fn buckets(&self) -> impl Iterator<Item = (u8, u32)> {
        self.buckets.iter().map(|(bucket, count)| (*bucket, u32::from_ne_bytes(*count)))
    }

    /// What another one has counted is counted here too.
    pub fn join(&mut self, other: &Tally) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.cut_off += other.cut_off;
        self.slowest_ms = self.slowest_ms.max(other.slowest_ms);
        other.buckets().for_each(|(bucket, count)| self.fill(bucket, count));
    }

    /// The time within which so many of a hundred calls were over, at most an eighth too long.
    pub fn percentile(&self, percent: u64) -> Duration {
        let wanted = (self.measured() * percent).div_ceil(100).max(1);
        let mut seen = 0;
        let found = self.buckets().find(|(_, count)| {
            seen += u64::from(*count);
            seen >= wanted
        });
        let ms = found.map_or(0, |(bucket, _)| up_to(bucket)).min(self.slowest_ms);
        Duration::from_millis(ms)
    }

    /// The longest.
    pub fn slowest(&self) -> Duration {
        Duration::from_millis(self.slowest_ms)
    }
}

/// What is known of the tools of servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    tools: BTreeMap<Box<str>, BTreeMap<Box<str>, Tally>>,
    len: usize,
}

/// Under which name tools are counted for which there is no room.
pub const OTHERS: &str = "(others)";

impl Durations {
    /// One call more.
    pub fn add(&mut self, server: &str, tool: &str, took: Duration, outcome: Outcome) {
        self.with(server, tool, |tally| tally.add(took, outcome));
    }

    /// What another one has counted is counted here too.
    pub fn join(&mut self, server: &str, tool: &str, tally: &Tally) {
        self.with(server, tool, |own| own.join(tally));
    }

    /// Every call comes here; mostly of a tool that is known.
    fn with(&mut self, server: &str, tool: &str, change: impl FnOnce(&mut Tally)) {
        match self.tools.get_mut(server).and_then(|tools| tools.get_mut(tool)) {
            Some(tally) => change(tally),
            None => change(self.new_tally(server, tool)),
        }
    }

    #[cold]
    fn new_tally(&mut self, server: &str, tool: &str) -> &mut Tally {
        let full = reached!(MEASURED, self.len >= limits::MEASURED);
        let (server, tool) = if full { (OTHERS, OTHERS) } else { (server, tool) };
        let tools = self.tools.entry(server.into()).or_default();
        self.len += usize::from(!tools.contains_key(tool));
        tools.entry(tool.into()).or_default()
    }

    /// By server and tool, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &Tally)> {
        self.tools
            .iter()
            .flat_map(|(server, tools)| tools.iter().map(move |(tool, tally)| (&**server, &**tool, tally)))
    }

    /// What is known of one tool.
    pub fn of(&self, server: &str, tool: &str) -> Option<&Tally> {
        self.tools.get(server)?.get(tool)
    }

    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

/// Limits that follow from what was measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposed {
    /// How long a call may be silent.
    pub timeout: Duration,
    /// The longest that it may take.
    pub max: Duration,
    /// The reason, in numbers.
    pub why: String,
}

/// Calls below which nothing is proposed.
pub const ENOUGH: u64 = 30;

/// Proposes limits for a tool; an error says why it cannot be done yet.
///
/// `timeout` is twice what 99 of 100 calls take and longer than every call that was seen to end; `max` is four times as
/// much. Of a call that a limit ended it is only known that it would have taken longer: where more than one in a
/// hundred was, the limits begin at twice the longest.
pub fn propose(tally: &Tally) -> Result<Proposed, String> {
    let measured = tally.measured();
    if measured < ENOUGH {
        return Err(format!("too little data: {measured} of at least {ENOUGH} calls"));
    }
    let (p99, slowest) = (tally.percentile(99), tally.slowest());
    let often_cut_off = tally.cut_off * 100 > measured;
    let beyond = if often_cut_off { slowest * 2 } else { slowest };
    let timeout = round_up((p99 * 2).max(beyond + Duration::from_millis(1)).max(Duration::from_secs(10)));
    let max = round_up((timeout * 4).max(Duration::from_secs(60)));
    Ok(Proposed { timeout, max, why: reason(tally) })
}

/// What was measured, in numbers.
pub fn reason(tally: &Tally) -> String {
    let shown = |time: Duration| show_duration(coarse(time));
    let cut_off = match tally.cut_off {
        0 => "none cut off by a limit".to_owned(),
        count => format!("{count} cut off by a limit"),
    };
    let calls = match tally.measured() {
        1 => "1 call".to_owned(),
        count => format!("{count} calls"),
    };
    format!(
        "{calls}, p50 {}, p99 {}, slowest {}, {cut_off}",
        shown(tally.percentile(50)),
        shown(tally.percentile(99)),
        shown(tally.slowest())
    )
}

/// Without what nobody reads.
fn coarse(time: Duration) -> Duration {
    match time.as_secs() {
        0..10 => Duration::from_millis(time.as_millis() as u64),
        10..600 => Duration::from_secs(time.as_secs()),
        seconds => Duration::from_secs(seconds / 60 * 60),
    }
}

/// Steps that a person would write.
const NICE: [u64; 24] = [
    10, 15, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900, 1_200, 1_800, 2_700, 3_600, 5_400, 7_200, 10_800,
    14_400, 21_600, 28_800, 43_200, 86_400,
];

fn round_up(time: Duration) -> Duration {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    let nice = NICE.iter().find(|nice| **nice >= seconds).copied();
    Duration::from_secs(nice.unwrap_or_else(|| seconds.div_ceil(86_400) * 86_400))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(times: &[(u64, u64)]) -> Tally {
        let mut tally = Tally::default();
        for (ms, count) in times {
            (0..*count).for_each(|_| tally.add(Duration::from_millis(*ms), Outcome::Answered));
        }
        tally
    }

    #[test]
    fn a_bucket_holds_what_is_at_most_an_eighth_shorter() {
        let mut last = 0;
        for ms in
            (0..4_096).chain((12..27).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]))
        {
            let (bucket, top) = (bucket(ms), up_to(bucket(ms)));
            assert!(top >= ms && top <= ms + ms / 8, "{ms} is in the bucket up to {top}");
            assert!(bucket >= last, "{ms}");
            last = bucket;
        }
        assert_eq!(bucket(u64::MAX), LAST);
        assert!(up_to(LAST) >= 3 * 86_400_000);
    }

    #[test]
    fn percentiles_are_never_longer_than_the_slowest_call() {
        let tally = tally(&[(900, 99), (1_300, 1)]);
        assert_eq!(tally.percentile(50), Duration::from_millis(959));
        assert_eq!(tally.percentile(99), Duration::from_millis(959));
        assert_eq!(tally.percentile(100), Duration::from_millis(1_300));
        assert_eq!(Tally::default().percentile(99), Duration::ZERO);
    }

    #[test]
    fn two_that_are_joined_count_what_both_have_counted() {
        let (mut one, other) = (tally(&[(5, 2), (70, 1)]), tally(&[(5, 1), (3_000, 1)]));
        one.join(&other);
        assert_eq!(one, tally(&[(5, 3), (70, 1), (3_000, 1)]));
    }

    #[test]
    fn limits_are_proposed_from_enough_calls() {
        assert_eq!(propose(&tally(&[(900, 12)])), Err("too little data: 12 of at least 30 calls".to_owned()));
        let proposed = propose(&tally(&[(900, 400), (20_000, 12)])).unwrap();
        assert_eq!((proposed.timeout, proposed.max), (Duration::from_secs(45), Duration::from_secs(180)));
        assert_eq!(proposed.why, "412 calls, p50 959ms, p99 20s, slowest 20s, none cut off by a limit");
    }

    /// A client that leaves after three seconds says nothing about how long the work takes.
    #[test]
    fn calls_that_were_given_up_are_counted_and_not_measured() {
        let mut left = tally(&[(900, 30)]);
        let before = propose(&left).unwrap();
        (0..300).for_each(|_| left.add(Duration::from_secs(3), Outcome::Left));
        left.add(Duration::from_secs(3_000), Outcome::Failed("server-gone"));
        assert_eq!((left.calls, left.failures, left.measured()), (331, 1, 30));
        assert_eq!(propose(&left).unwrap(), before);
    }

    /// They would have taken longer, and nobody knows how much.
    #[test]
    fn calls_that_were_cut_off_make_limits_longer() {
        let mut cut = tally(&[(900, 100)]);
        (0..10).for_each(|_| cut.add(Duration::from_secs(30), Outcome::Failed("timeout")));
        let proposed = propose(&cut).unwrap();
        assert_eq!(proposed.timeout, Duration::from_secs(90));
        assert!(proposed.why.ends_with("10 cut off by a limit"), "{}", proposed.why);
    }

    #[test]
    fn a_limit_is_one_that_a_person_would_write() {
        for (seconds, nice) in [(1, 10), (10, 10), (11, 15), (61, 90), (86_401, 172_800)] {
            assert_eq!(round_up(Duration::from_secs(seconds)), Duration::from_secs(nice));
        }
    }

    /// The worst that many tools can cost: all of them, each with every bucket in use.
    #[test]
    fn ten_thousand_tools_take_less_than_twenty_mebibytes() {
        let mut all = Durations::default();
        for tool in 0..=limits::MEASURED {
            let mut tally = Tally::default();
            (0..=LAST).for_each(|bucket| tally.fill(bucket, 1));
            all.join("server", &format!("a_tool_with_a_long_name_{tool}"), &tally);
        }
        assert_eq!(all.iter().count(), limits::MEASURED + 1, "the last one is counted among others");
        let bytes: usize = all
            .iter()
            .map(|(_, tool, tally)| {
                tool.len()
                    + tally.buckets.capacity() * size_of::<(u8, [u8; 4])>()
                    + size_of::<(Box<str>, Tally)>() * 2
            })
            .sum();
        assert!(bytes <= 20 << 20, "{bytes} bytes");
    }
}
