//! Who was turned away before saying who he is: counted, and told in one line for many.

use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// At most one line in this time.
pub const EVERY: Duration = Duration::from_secs(60);

/// Why somebody was turned away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its address has too many connections.
    Address,
    /// It sent no whole request in time.
    Silent,
    /// What it sent is no HTTP.
    Unreadable,
    /// It called us by a name that is not ours, or a web page sent it.
    Name,
    /// It has no token of ours.
    Token,
}

impl Reason {
    const ALL: [Reason; 5] =
        [Reason::Address, Reason::Silent, Reason::Unreadable, Reason::Name, Reason::Token];

    fn words(self) -> &'static str {
        match self {
            Reason::Address => "beyond max-connections-per-address",
            Reason::Silent => "without a whole request in time",
            Reason::Unreadable => "that did not speak HTTP/1.1",
            Reason::Name => "with an unknown Host or Origin",
            Reason::Token => "without a valid token",
        }
    }
}

/// What has not been told yet.
#[derive(Debug, Default)]
pub struct Refusals(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: [u64; Reason::ALL.len()],
    last: Option<IpAddr>,
    /// A line was written not long ago.
    told: bool,
}

impl Refusals {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one. True if it is to be told now; after [`EVERY`] is to be asked for more.
    pub fn count(&self, reason: Reason, from: Option<IpAddr>) -> bool {
        let mut state = self.lock();
        state.counts[reason as usize] += 1;
        state.last = from.or(state.last);
        !std::mem::replace(&mut state.told, true)
    }

    /// The line for what has not been told. Without any the next one is told at once again.
    pub fn take(&self) -> Option<String> {
        let mut state = self.lock();
        let counts = std::mem::take(&mut state.counts);
        let last = state.last.take();
        let parts: Vec<String> = Reason::ALL
            .into_iter()
            .zip(counts)
            .filter(|(_, count)| *count > 0)
            .map(|(reason, count)| format!("{count} {}", reason.words()))
            .collect();
        state.told = !parts.is_empty();
        let last = last.map(|address| format!("; the last from {address}")).unwrap_or_default();
        (!parts.is_empty()).then(|| format!("turned away: {}{last}", parts.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_are_one_line() {
        let refusals = Refusals::default();
        let from = Some([10, 0, 0, 1].into());
        assert!(refusals.count(Reason::Token, from), "the first is told at once");
        assert_eq!(
            refusals.take().as_deref(),
            Some("turned away: 1 without a valid token; the last from 10.0.0.1")
        );
        for _ in 0..1000 {
            assert!(!refusals.count(Reason::Address, from));
        }
        assert!(!refusals.count(Reason::Name, None));
        let told = "turned away: 1000 beyond max-connections-per-address, \
                    1 with an unknown Host or Origin; the last from 10.0.0.1";
        assert_eq!(refusals.take().as_deref(), Some(told));
        assert_eq!(refusals.take(), None);
        assert!(refusals.count(Reason::Silent, None), "after a quiet time the next one is told at once");
    }
}
