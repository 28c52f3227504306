//! Signs of life of a server's process tree: what two samples, some seconds apart, say.
//!
//! A server that is blocked on a network answer shows none of these signs, exactly like a hung
//! one; therefore no limit that nobody wrote ever costs a server its life.
//!
//! Not here: how a sample is taken (the edge does that).

use crate::time::Mono;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// What a process tree had used at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// When it was taken.
    pub at: Mono,
    /// CPU time of all its processes.
    pub cpu: Duration,
    /// Bytes read and written by all its processes.
    pub bytes: u64,
    /// Times that a process gave up the CPU by itself.
    pub switches: u64,
    /// Bytes on stderr so far.
    pub stderr: u64,
    /// A number that differs when a process came or went.
    pub processes: u64,
}

/// Context switches per second that an idle event loop does not reach.
const SWITCHES_PER_SECOND: u128 = 5;

impl Sample {
    /// Whether the tree worked between `earlier` and now.
    pub fn shows_life_since(&self, earlier: &Sample) -> bool {
        let window = self.at.since(earlier.at);
        let cpu = self.cpu.saturating_sub(earlier.cpu);
        let switches = self.switches.saturating_sub(earlier.switches);
        self.processes != earlier.processes
            || self.bytes > earlier.bytes
            || self.stderr > earlier.stderr
            || cpu > window / 100
            || u128::from(switches) * 1000 > window.as_millis() * SWITCHES_PER_SECOND
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(seconds: u64) -> Sample {
        Sample {
            at: Mono::after_start(Duration::from_secs(seconds)),
            cpu: Duration::from_secs(5),
            bytes: 1000,
            switches: 50,
            stderr: 10,
            processes: 7,
        }
    }

    #[test]
    fn a_still_server_shows_no_life() {
        let (early, late) = (sample(0), sample(10));
        assert!(!late.shows_life_since(&early));
        let idling = Sample { cpu: early.cpu + Duration::from_millis(100), switches: 100, ..late };
        assert!(!idling.shows_life_since(&early), "1 % of a core and 5 switches a second are idling");
    }

    #[test]
    fn each_kind_of_work_is_a_sign() {
        let (early, late) = (sample(0), sample(10));
        for busy in [
            Sample { cpu: late.cpu + Duration::from_millis(101), ..late },
            Sample { bytes: 1001, ..late },
            Sample { switches: 101, ..late },
            Sample { stderr: 11, ..late },
            Sample { processes: 8, ..late },
        ] {
            assert!(busy.shows_life_since(&early), "{busy:?}");
        }
    }
}
