//! What a client hears about a call's progress: the server's reports and our keep-alive in one
//! strictly rising series.
//!
//! A report that comes below what we already sent is lifted just above it; a keep-alive creeps
//! from the last value towards the next whole number without reaching it for days. `total` is left
//! out whenever our own creeping would otherwise claim that the work is done.

use std::time::Duration;

/// The first value of ours, small enough that a server's first `1` or `0.1` still exceeds it.
const FIRST: f64 = 0.0001;

/// One series, for one token.
#[derive(Clone, Debug)]
pub struct Progress {
    /// No number, until there is one: every call keeps this.
    last: f64,
    total: f64,
    /// What a server that starts again from nothing reports is counted from here.
    offset: f64,
}

impl Default for Progress {
    fn default() -> Progress {
        Progress { last: f64::NAN, total: f64::NAN, offset: 0.0 }
    }
}

/// How a server's report leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Forward {
    /// As it is.
    Unchanged,
    /// With this value instead, and without `total` if it would claim the end.
    Lifted {
        /// What to write for `progress`.
        value: f64,
        /// Whether `total` must go.
        drop_total: bool,
    },
    /// Not at all: it is no number, and nothing may be made of it.
    Drop,
}

impl Progress {
    /// Takes a report of the server.
    pub fn report(&mut self, value: Option<f64>, total: Option<f64>) -> Forward {
        let Some(value) = value.filter(|value| value.is_finite()) else { return Forward::Drop };
        self.total = total.unwrap_or(f64::NAN);
        let moved = value + self.offset;
        if known(self.last).is_none_or(|last| moved > last) && moved.is_finite() {
            self.last = moved;
            if self.offset == 0.0 {
                return Forward::Unchanged;
            }
            return Forward::Lifted { value: moved, drop_total: self.claims_the_end(moved) };
        }
        let Some(value) = self.bump() else { return Forward::Drop };
        Forward::Lifted { value, drop_total: self.claims_the_end(value) }
    }

    /// The next keep-alive: its value, and `total` if it may be told.
    pub fn keep_alive(&mut self) -> Option<(f64, Option<f64>)> {
        let value = self.bump()?;
        Some((value, known(self.total).filter(|_| !self.claims_the_end(value))))
    }

    /// The call is tried again: its server will report from the beginning.
    pub fn start_again(&mut self) {
        self.offset = known(self.last).unwrap_or(0.0).max(0.0);
        self.total = f64::NAN;
    }

    fn claims_the_end(&self, value: f64) -> bool {
        value >= self.total
    }

    /// A value just above the last one; `None` at the end of what a number can express.
    fn bump(&mut self) -> Option<f64> {
        let next = match known(self.last) {
            None => FIRST,
            Some(last) => {
                let room = last.floor() + 1.0 - last;
                let step = f64::min(0.001, room / 1024.0);
                let next = last + step;
                if next > last { next } else { last.next_up() }
            }
        };
        if !next.is_finite() {
            return None;
        }
        self.last = next;
        Some(next)
    }
}

/// A number, if it is one.
fn known(number: f64) -> Option<f64> {
    (!number.is_nan()).then_some(number)
}

/// The words of a keep-alive: what is known, and nothing else.
pub fn words(what: &str, running: Duration, sign: Option<Duration>, waits_for: Option<&str>) -> String {
    let running = running.as_secs();
    if let Some(waits_for) = waits_for {
        return format!("{what} is waiting for its {waits_for} ({running} s)");
    }
    match sign {
        Some(ago) => {
            format!("{what} still running ({running} s), last sign of life {} s ago", ago.as_secs())
        }
        None => format!("{what} still running ({running} s), no progress reported yet"),
    }
}

/// The words of a keep-alive of a call that waits for a person's yes.
pub fn words_of_hold(what: &str, waited: Duration) -> String {
    format!("waiting for approval of {what} ({} s)", waited.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rising_report_passes_unchanged() {
        let mut progress = Progress::default();
        for value in [0.0, 0.1, 1.0, 50.0, 1e300] {
            assert_eq!(progress.report(Some(value), None), Forward::Unchanged);
        }
    }

    #[test]
    fn a_report_below_the_last_is_lifted() {
        let mut progress = Progress::default();
        assert_eq!(progress.keep_alive(), Some((0.0001, None)));
        let Forward::Lifted { value, drop_total } = progress.report(Some(0.0), Some(10.0)) else {
            panic!("not lifted")
        };
        assert!(value > 0.0001 && !drop_total);
        assert_eq!(progress.report(Some(1.0), Some(10.0)), Forward::Unchanged);
    }

    #[test]
    fn our_creeping_never_claims_the_end() {
        let mut progress = Progress::default();
        progress.report(Some(10.0), Some(10.0));
        assert_eq!(progress.keep_alive().unwrap().1, None);
        let lifted = progress.report(Some(10.0), Some(10.0));
        assert!(matches!(lifted, Forward::Lifted { drop_total: true, .. }), "{lifted:?}");
    }

    #[test]
    fn what_is_no_number_is_dropped() {
        let mut progress = Progress::default();
        assert_eq!(progress.report(None, None), Forward::Drop);
        assert_eq!(progress.report(Some(f64::INFINITY), None), Forward::Drop);
        assert_eq!(progress.report(Some(f64::MAX), None), Forward::Unchanged);
        assert_eq!(progress.report(Some(1.0), None), Forward::Drop, "nothing rises above the last number");
        assert_eq!(progress.keep_alive(), None);
    }

    #[test]
    fn keep_alive_needs_days_to_cross_a_whole_number() {
        let mut progress = Progress::default();
        progress.report(Some(5.0), None);
        let beats = (0..).take_while(|_| progress.keep_alive().unwrap().0 < 6.0).count();
        assert!(beats > 20_000, "{beats}");
    }

    #[test]
    fn a_call_that_is_tried_again_keeps_rising() {
        let mut progress = Progress::default();
        progress.report(Some(3.0), Some(10.0));
        progress.start_again();
        let lifted = |value, drop_total| Forward::Lifted { value, drop_total };
        assert_eq!(progress.report(Some(1.0), Some(10.0)), lifted(4.0, false));
        assert_eq!(progress.report(Some(8.0), Some(10.0)), lifted(11.0, true));
    }

    #[test]
    fn words_say_what_is_true() {
        let secs = Duration::from_secs;
        assert_eq!(
            words("`run_build`", secs(45), Some(secs(3)), None),
            "`run_build` still running (45 s), last sign of life 3 s ago"
        );
        assert_eq!(words("`x`", secs(9), None, None), "`x` still running (9 s), no progress reported yet");
        assert_eq!(words("`x`", secs(9), None, Some("server")), "`x` is waiting for its server (9 s)");
    }

    proptest! {
        /// Whatever the mixture of reports and keep-alives, what leaves strictly rises.
        #[test]
        fn what_leaves_strictly_rises(steps in proptest::collection::vec(
            prop_oneof![
                Just(None),
                (any::<f64>(), proptest::option::of(any::<f64>())).prop_map(Some),
                (-2.0..2.0f64, Just(Some(1.0))).prop_map(Some),
            ], 0..200))
        {
            let mut progress = Progress::default();
            let mut last = f64::NEG_INFINITY;
            for step in steps {
                let sent = match step {
                    None => progress.keep_alive().map(|(value, total)| {
                        assert!(total.is_none_or(|total| value < total));
                        value
                    }),
                    Some((value, total)) => match progress.report(Some(value), total) {
                        Forward::Unchanged => Some(value),
                        Forward::Lifted { value, drop_total } => {
                            assert!(drop_total || total.is_none_or(|total| total > value || total.is_nan()));
                            Some(value)
                        }
                        Forward::Drop => None,
                    },
                };
                if let Some(sent) = sent {
                    prop_assert!(sent > last && sent.is_finite());
                    // What is written is what is read: the shortest exact form.
                    let text = serde_json::to_string(&sent).unwrap();
                    prop_assert_eq!(text.parse::<f64>().unwrap(), sent);
                    last = sent;
                }
            }
        }
    }
}
