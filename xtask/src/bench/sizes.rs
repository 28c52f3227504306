//! How much is measured in one round.

use std::time::Duration;

pub struct Sizes {
    pub one_by_one: u64,
    pub in_flight: u64,
    pub one_megabyte: usize,
    pub ten_megabytes: usize,
    pub cold_starts: usize,
    /// Of ten thousand pending calls each.
    pub bursts: usize,
    /// Calls whose instructions are counted, at a fiftieth of their speed.
    pub counted: u64,
    pub http: HttpSizes,
}

/// The same over HTTP, where each call costs more.
pub struct HttpSizes {
    pub one_by_one: u64,
    pub in_flight: u64,
    pub one_megabyte: usize,
    pub ten_megabytes: usize,
    pub sessions: usize,
    pub streams: usize,
    /// How long the call of a stream is pending: all of them must have been opened by then.
    pub pending: Duration,
}

impl Sizes {
    pub fn new(quick: bool) -> Sizes {
        if quick { Sizes::quick() } else { Sizes::full() }
    }

    /// Two programs in turns: shorter, because many short rounds tell two programs apart better than a few
    /// long ones.
    pub fn for_turns(quick: bool) -> Sizes {
        let full = Sizes::new(quick);
        if quick {
            return full;
        }
        Sizes {
            one_by_one: full.one_by_one / 2,
            in_flight: full.in_flight / 2,
            one_megabyte: full.one_megabyte / 2,
            ten_megabytes: full.ten_megabytes / 2,
            cold_starts: full.cold_starts / 2,
            bursts: 2,
            http: HttpSizes {
                one_by_one: full.http.one_by_one / 2,
                in_flight: full.http.in_flight / 2,
                one_megabyte: full.http.one_megabyte / 2,
                ten_megabytes: full.http.ten_megabytes / 2,
                ..full.http
            },
            ..full
        }
    }

    fn quick() -> Sizes {
        Sizes {
            one_by_one: 2_000,
            in_flight: 20_000,
            one_megabyte: 10,
            ten_megabytes: 3,
            cold_starts: 10,
            bursts: 1,
            counted: 1_000,
            http: HttpSizes {
                one_by_one: 1_000,
                in_flight: 10_000,
                one_megabyte: 5,
                ten_megabytes: 2,
                sessions: 200,
                streams: 2_000,
                pending: Duration::from_secs(3),
            },
        }
    }

    fn full() -> Sizes {
        Sizes {
            one_by_one: 20_000,
            in_flight: 200_000,
            one_megabyte: 100,
            ten_megabytes: 15,
            cold_starts: 60,
            bursts: 5,
            counted: 10_000,
            http: HttpSizes {
                one_by_one: 10_000,
                in_flight: 100_000,
                one_megabyte: 50,
                ten_megabytes: 10,
                sessions: 1_000,
                streams: 10_000,
                pending: Duration::from_secs(5),
            },
        }
    }
}
