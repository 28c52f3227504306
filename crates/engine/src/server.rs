//! One server: the life of its process, and what we know about it.
//!
//! | row | state | event | becomes | what happens |
//! |---|---|---|---|---|
//! | `a_server_starts` | starting | started | up | – |
//! | `a_command_that_cannot_start_answers_the_first_request` | starting | start failed | failed | the first request gets `server-failed`, then we end |
//! | `a_server_that_ends_ends_us` | up | ended | ended | calls fail with `server-gone`, we end with its status |
//! | `a_server_that_never_answered_ends_us_after_the_first_request` | up | ended, nothing answered | ended | the first request gets `server-gone`, then we end |
//! | `what_an_ended_server_wrote_last_still_counts` | up | exit before the last output | up | the output is read first |
//! | `a_server_that_closed_its_output_is_stopped` | up | output closed, lives on | up | terminated after a second |
//! | `a_server_that_closed_its_input_is_stopped` | up | a message could not be written | up | terminated after a second |
//! | `a_timeout_restarts_where_asked` | up | `timeout`, restarts wanted | stopping | other calls fail, the tree is stopped |
//! | `an_end_restarts_where_asked` | up | ended, restarts wanted | resting | calls fail |
//! | `a_stopped_server_is_started_again` | stopping | ended | resting | – |
//! | `a_rested_server_is_started` | resting | wait is over | starting | a new run |
//! | `a_restarted_server_gets_the_handshake` | starting | started, a client was initialised | reviving | the client's own `initialize` |
//! | `a_revived_server_gets_what_waited` | reviving | answer | up | `initialized`, then the calls that waited |
//! | `a_restart_that_fails_is_tried_again_later` | reviving, starting | error, end, silence | stopping or resting | backoff doubles |
//!
//! Each row has a test of the same name, in `tests/server.rs`.

use crate::call::deadline::WorkClock;
use crate::event::{Exit, StartFailure};
use crate::id::{AttemptId, CallId, Run};
use crate::life::Sample;
use crate::limits;
use crate::policy::Declared;
use crate::time::Mono;
use crate::wire::Message;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

const FIRST_BACKOFF: Duration = Duration::from_millis(500);
const LONGEST_BACKOFF: Duration = Duration::from_secs(30);

/// Where a server's process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Life {
    /// Being started for the first time: what is sent waits in its pipe.
    Starting,
    /// Runs.
    Up,
    /// Told to end, so that it can be started again.
    Stopping,
    /// Ended; is started again after a while.
    Resting,
    /// Being started again.
    Restarting,
    /// Runs again, and is given the client's handshake under this id.
    Reviving(AttemptId),
    /// Ended, and stays so.
    Ended(Exit),
    /// Could not be started, and stays so.
    Failed(StartFailure),
}

/// What a request can expect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readiness {
    Runs,
    ComesBack,
    IsGone,
}

/// What the server's timer is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alarm {
    /// The output of an ended process is not waited for any longer.
    LastOutput,
    /// It closed its output and should have ended.
    Lingers,
    /// It was asked to end and did not.
    Kill,
    /// The backoff is over.
    Restart,
    /// A restarted server did not answer the handshake.
    Handshake,
    /// No first request came to a server that cannot run.
    FirstRequest,
}

/// One server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Box<str>,
    pub(crate) run: Run,
    pub(crate) life: Life,
    /// It has answered something, in this run.
    pub(crate) answered: bool,
    pub(crate) exit: Option<Exit>,
    pub(crate) output_closed: bool,
    pub(crate) alarm: Option<Alarm>,
    pub(crate) armed: Option<Mono>,

    pub(crate) clock: WorkClock,
    /// Calls whose timer was set while the clock stood still.
    pub(crate) stalled: BTreeSet<CallId>,

    pub(crate) sample: Option<Sample>,
    pub(crate) sampling: bool,
    /// Calls that the next sample decides on.
    pub(crate) judged: Vec<CallId>,

    /// Since when it owes us a sign of life after a cancel.
    pub(crate) told_to_cancel: Option<Mono>,
    pub(crate) grace_armed: Option<Mono>,

    pub(crate) declared: Declared,
    pub(crate) handshake: Handshake,
    pub(crate) waiting: VecDeque<CallId>,
    pub(crate) waiting_bytes: usize,
    failures: u32,
    pub(crate) stopped_at: Mono,

    stderr: VecDeque<u8>,
    pub(crate) bad_lines: u64,
    pub(crate) noted_id_type: bool,
}

/// What a restarted server is told again.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    pub(crate) initialize: Option<Message>,
    pub(crate) initialized: Option<Message>,
    /// The client's `initialize` was answered, so it may be repeated.
    pub(crate) done: bool,
}

impl Server {
    pub(crate) fn new(name: Box<str>) -> Server {
        Server {
            name,
            run: Run(0),
            life: Life::Starting,
            answered: false,
            exit: None,
            output_closed: false,
            alarm: None,
            armed: None,
            clock: WorkClock::default(),
            stalled: BTreeSet::new(),
            sample: None,
            sampling: false,
            judged: Vec::new(),
            told_to_cancel: None,
            grace_armed: None,
            declared: Declared::default(),
            handshake: Handshake::default(),
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            failures: 0,
            stopped_at: Mono::default(),
            stderr: VecDeque::new(),
            bad_lines: 0,
            noted_id_type: false,
        }
    }

    pub(crate) fn readiness(&self) -> Readiness {
        match self.life {
            Life::Starting | Life::Up => Readiness::Runs,
            Life::Stopping | Life::Resting | Life::Restarting | Life::Reviving(_) => Readiness::ComesBack,
            Life::Ended(_) | Life::Failed(_) => Readiness::IsGone,
        }
    }

    /// Whether there is a process that could be waited for.
    pub(crate) fn has_process(&self) -> bool {
        !matches!(self.life, Life::Resting | Life::Ended(_) | Life::Failed(_))
    }

    /// A new process takes over. What belonged to the old one is forgotten.
    pub(crate) fn next_run(&mut self) -> Run {
        self.run = Run(self.run.0 + 1);
        self.answered = false;
        self.exit = None;
        self.output_closed = false;
        self.sample = None;
        self.sampling = false;
        self.stderr.clear();
        self.bad_lines = 0;
        self.noted_id_type = false;
        self.run
    }

    /// How long to wait before the next start: nothing the first time, then ever longer until one
    /// works.
    pub(crate) fn backoff(&mut self) -> Duration {
        let failures = self.failures;
        self.failures = failures.saturating_add(1);
        if failures == 0 {
            return Duration::ZERO;
        }
        LONGEST_BACKOFF.min(FIRST_BACKOFF * 2u32.saturating_pow((failures - 1).min(16)))
    }

    pub(crate) fn works_again(&mut self) {
        self.failures = 0;
    }

    pub(crate) fn keep_stderr(&mut self, bytes: &[u8]) {
        let new = &bytes[bytes.len().saturating_sub(limits::STDERR_TAIL)..];
        let over = (self.stderr.len() + new.len()).saturating_sub(limits::STDERR_TAIL);
        self.stderr.drain(..over.min(self.stderr.len()));
        self.stderr.extend(new);
    }

    /// The end of what it wrote to stderr, without control characters.
    pub(crate) fn stderr_tail(&self) -> Option<String> {
        let skipped = self.stderr.len().saturating_sub(limits::ERROR_TAIL);
        let tail: Vec<u8> = self.stderr.iter().skip(skipped).copied().collect();
        let text: String = String::from_utf8_lossy(&tail)
            .chars()
            .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
            .collect();
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_starts_at_once_and_doubles_to_half_a_minute() {
        let mut server = Server::new("x".into());
        let waits: Vec<u64> = (0..9).map(|_| server.backoff().as_millis() as u64).collect();
        assert_eq!(waits, [0, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        server.works_again();
        assert_eq!(server.backoff(), Duration::ZERO);
    }

    #[test]
    fn the_stderr_tail_is_bounded_and_clean() {
        let mut server = Server::new("x".into());
        assert_eq!(server.stderr_tail(), None);
        server.keep_stderr(&vec![b'a'; 10_000]);
        server.keep_stderr(b"\x1b[31mred\x07\n");
        let tail = server.stderr_tail().unwrap();
        assert!(tail.len() <= limits::ERROR_TAIL && tail.ends_with("[31mred"), "{tail}");
        assert!(server.stderr.len() <= limits::STDERR_TAIL);
    }
}
