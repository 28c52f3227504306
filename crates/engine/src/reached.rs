//! Which bounds of `limits.rs` were reached: counted in debug builds, so that a test or a simulation can say that it
//! has seen what happens there.
//!
//! A hook is one word at the place where the bound is met: `reached!(NAME, condition)` is the condition, and
//! `reached!(NAME if condition);` looks at something only to count it. A release build has none of this. It is the
//! one thing that the engine keeps outside of `Engine`, and the engine never reads it.

use std::cell::RefCell;

macro_rules! bounds {
    ($($name:ident)*) => {
        /// A constant of [`crate::limits`].
        #[allow(missing_docs, non_camel_case_types, clippy::upper_case_acronyms)] // each is called what it counts
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bound { $($name),* }

        impl Bound {
            /// All of them.
            pub const ALL: &[Bound] = &[$(Bound::$name),*];
        }

        /// What is listed here is a bound.
        const _: () = { $(_ = crate::limits::$name;)* };
    };
}

bounds! {
    BATCH_MEMBERS CALLS ASKS SUBSCRIPTIONS TASK_TOKENS WAITING_BYTES HANDSHAKE_BYTES STDERR_TAIL STDERR_LINES
    REPEATABLE_BYTES KEPT_BYTES SUBSCRIBED SETUP_BYTES TOLD_TO_CANCEL CANCEL_CROSSES HUNG_GRACE ERROR_MESSAGE
    ERROR_TAIL NAME BAD_LINES_PER_NOTE BAD_LINE_SHOWN FIRST_REQUEST LAST_OUTPUT END_GRACE KILL_GRACE REAP_GRACE
    HASTY_WRITE SAMPLE_SHARED SAMPLE_LEAD KEEP_ALIVE_MIN STREAM_EVENTS SESSION_BYTES SESSION_STREAMS EVENTS_BYTES
    FORMER_OWNERS FORWARDED SLEEPERS KNOCKS RELAY RELAY_HINTED RELAYS RELAY_WAIT RELAYED SLEEP STREAM_HEAD BEGIN_STREAM RECONNECT RECONNECT_LONGEST RETRY_LEAST RETRY_MOST LEASE RENEW
    UPKEEP CLAIM OPENING LEAVE EXPIRE RECORDS STORE_BYTES MAILBOX CALL_NOTES KNOWN_TOOLS IDENTITIES WAITERS KEY KEY_ARGUMENTS KEYED_BYTES JOINED
    UNFETCHED_BYTES LISTENED_TASKS QUESTIONS STORED_QUESTIONS TOOL_PAGES CURSOR MIRRORED_TOOLS POLL POLL_LEAST
    POLL_MOST POLL_JITTER TASK_TOOLS PAGE UNSENT UNSENT_ANSWERS UNSENT_BYTES HOLDS HELD_ARGUMENTS HOLD_LOOK AUDIT
    SLOW TRACE MEASURED SNAPSHOT MEASURED_DAYS MEASURED_ROWS SHOWN_BYTES
    CALLBACKS_SENDING CALLBACKS CALLBACK_LOOK CALLBACK_CLAIM CALLBACK_TIME CALLBACK_BACKOFF CALLBACK_BACKOFF_MOST
    CALLBACK_TRIED CALLBACK_KEPT CALLBACK_ANSWER
}

thread_local! {
    /// How often each was reached on this thread.
    static COUNTS: RefCell<[u64; Bound::ALL.len()]> = const { RefCell::new([0; Bound::ALL.len()]) };
}

impl Bound {
    /// It is reached.
    pub fn mark(self) {
        COUNTS.with_borrow_mut(|counts| counts[self as usize] += 1);
    }

    /// How often it was reached on this thread.
    pub fn count(self) -> u64 {
        COUNTS.with_borrow(|counts| counts[self as usize])
    }
}

/// Whether a bound is reached here; counted in debug builds.
macro_rules! reached {
    ($bound:ident, $condition:expr) => {{
        let reached = $condition;
        if cfg!(debug_assertions) && reached {
            crate::reached::Bound::$bound.mark();
        }
        reached
    }};
    ($bound:ident if $condition:expr) => {
        if cfg!(debug_assertions) && $condition {
            crate::reached::Bound::$bound.mark();
        }
    };
}
