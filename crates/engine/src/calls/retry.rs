//! Whether a failed attempt is made again, and when.
//!
//! The question is safety before speed: a call that may already have sent an e-mail is not
//! repeated to save thirty seconds. Methods that only read are safe by nature; of tools only a
//! person knows, or a server that a person trusts. And retries must never make an outage worse, so
//! each server has a budget for them.

use crate::limits;
use crate::method::Method;
use crate::time::Mono;
use std::time::Duration;

/// The longest wait between two attempts.
const LONGEST: Duration = Duration::from_secs(10);

/// Whether repeating a method does no harm by nature: it only reads.
pub fn is_safe_by_nature(method: &Method) -> bool {
    matches!(
        method,
        Method::Ping
            | Method::Discover
            | Method::ToolsList
            | Method::PromptsList
            | Method::PromptsGet
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::ResourcesRead
            | Method::CompletionComplete
            | Method::TasksGet
            | Method::TasksList
    )
}

/// How long to wait before the next attempt: full jitter over a doubling range, so that many calls
/// that failed together do not come back together. `chance` is between 0 and 1.
pub fn wait(base: Duration, attempts: u32, chance: f64) -> Duration {
    let doubled = base.saturating_mul(2u32.saturating_pow(attempts.saturating_sub(1).min(16)));
    doubled.min(LONGEST).mul_f64(chance.clamp(0.0, 1.0))
}

/// What a server's retries may cost: at most a fifth on top of first attempts over ten seconds, and
/// one a second even if there are few.
#[derive(Clone, Debug, Default)]
pub struct Budget {
    seconds: [Second; Budget::WINDOW],
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    number: u64,
    firsts: u32,
    retries: u32,
}

impl Budget {
    const WINDOW: usize = 10;

    fn second(&mut self, now: Mono) -> &mut Second {
        let number = now.since_start().as_secs();
        let second = &mut self.seconds[(number % Budget::WINDOW as u64) as usize];
        if second.number != number {
            *second = Second { number, ..Second::default() };
        }
        second
    }

    /// A call was sent for the first time.
    pub fn first(&mut self, now: Mono) {
        self.second(now).firsts += 1;
    }

    /// Takes one retry out of the budget, if there is one left.
    pub fn take(&mut self, now: Mono) -> bool {
        let oldest = now.since_start().as_secs().saturating_sub(Budget::WINDOW as u64 - 1);
        let recent = self.seconds.iter().filter(|second| second.number >= oldest);
        let (firsts, retries) = recent.fold((0, 0), |(f, r), second| (f + second.firsts, r + second.retries));
        if retries >= (firsts / 5).max(Budget::WINDOW as u32) {
            return false;
        }
        self.second(now).retries += 1;
        true
    }
}

/// How long to wait before a broken stream is opened again, after so many failures in a row. What the server wishes
/// (`retry`) is obeyed within bounds: a wish of nothing must not become a flood, and one of years not the end of
/// the call.
pub fn reopen(wish: Option<Duration>, failures: u32) -> Duration {
    reached!(RECONNECT if wish.is_none());
    reached!(RETRY_LEAST if wish.is_some_and(|wish| wish < limits::RETRY_LEAST));
    reached!(RETRY_MOST if wish.is_some_and(|wish| wish > limits::RETRY_MOST));
    let first = wish.map_or(limits::RECONNECT, |wish| wish.clamp(limits::RETRY_LEAST, limits::RETRY_MOST));
    let times = 2u32.saturating_pow(failures.saturating_sub(1).min(16));
    let (next, longest) = (first.saturating_mul(times), limits::RECONNECT_LONGEST.max(first));
    reached!(RECONNECT_LONGEST if next > longest);
    next.min(longest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Mono {
        Mono::after_start(Duration::from_secs(seconds))
    }

    #[test]
    fn waits_double_up_to_ten_seconds_and_are_spread() {
        let base = Duration::from_millis(500);
        let longest: Vec<u64> = (1..8).map(|n| wait(base, n, 1.0).as_millis() as u64).collect();
        assert_eq!(longest, [500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
        assert_eq!(wait(base, 3, 0.0), Duration::ZERO);
        assert_eq!(wait(base, 1, 0.5), Duration::from_millis(250));
        assert_eq!(wait(base, u32::MAX, 7.0), Duration::from_secs(10));
    }

    #[test]
    fn a_wish_of_the_server_is_obeyed_within_bounds() {
        let waits = |wish: Option<u64>| {
            [1, 2, 3, 9, u32::MAX]
                .map(|failures| reopen(wish.map(Duration::from_millis), failures).as_millis())
        };
        assert_eq!(waits(None), [500, 1_000, 2_000, 30_000, 30_000]);
        assert_eq!(waits(Some(0)), [100, 200, 400, 25_600, 30_000]);
        assert_eq!(waits(Some(3_000)), [3_000, 6_000, 12_000, 30_000, 30_000]);
        assert_eq!(waits(Some(60_000)), [60_000; 5]);
        assert_eq!(waits(Some(u64::MAX)), [300_000; 5]);
    }

    #[test]
    fn a_quiet_server_has_one_retry_a_second() {
        let mut budget = Budget::default();
        let taken = (0..100).filter(|_| budget.take(at(50))).count();
        assert_eq!(taken, 10);
        assert!(!budget.take(at(59)));
        assert!(budget.take(at(60)), "the window has moved on");
    }

    #[test]
    fn a_busy_server_has_a_fifth() {
        let mut budget = Budget::default();
        for _ in 0..1000 {
            budget.first(at(100));
        }
        let taken = (0..1000).filter(|_| budget.take(at(105))).count();
        assert_eq!(taken, 200);
    }

    #[test]
    fn only_what_reads_is_safe_by_nature() {
        for (method, safe) in [
            ("tools/list", true),
            ("resources/read", true),
            ("tools/call", false),
            ("resources/subscribe", false),
            ("tasks/result", false),
            ("vendor/x", false),
        ] {
            assert_eq!(is_safe_by_nature(&Method::new(method)), safe, "{method}");
        }
    }
}
