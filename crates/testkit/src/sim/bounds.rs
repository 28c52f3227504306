//! Which world reaches which bound of `limits.rs`.
//!
//! `sim WORLD --bounds` fails if one of them was not reached. What no world reaches has a scenario in
//! `crates/engine/tests/engine`, or a test of the store; `crates/engine/tests/bounds.rs` sees that nothing is left out.

use outlast_engine::reached::Bound;

/// The bounds that a world must reach in the usual number of seeds.
pub fn of(world: &str) -> &'static [Bound] {
    match world {
        "pipes" => PIPES,
        "service" => SERVICE,
        "crash" => CRASH,
        _ => &[],
    }
}

const PIPES: &[Bound] = &[
    Bound::BATCH_MEMBERS,
    Bound::ASKS,
    Bound::SUBSCRIPTIONS,
    Bound::WAITING_BYTES,
    Bound::HANDSHAKE_BYTES,
    Bound::STDERR_TAIL,
    Bound::STDERR_LINES,
    Bound::REPEATABLE_BYTES,
    Bound::KEPT_BYTES,
    Bound::TOLD_TO_CANCEL,
    Bound::CANCEL_CROSSES,
    Bound::HUNG_GRACE,
    Bound::ERROR_TAIL,
    Bound::NAME,
    Bound::BAD_LINES_PER_NOTE,
    Bound::BAD_LINE_SHOWN,
    Bound::LAST_OUTPUT,
    Bound::END_GRACE,
    Bound::KILL_GRACE,
    Bound::REAP_GRACE,
    Bound::SAMPLE_SHARED,
    Bound::SAMPLE_LEAD,
    Bound::KEY,
    Bound::KEY_ARGUMENTS,
    Bound::KEYED_BYTES,
    Bound::JOINED,
];

const SERVICE: &[Bound] = &[
    Bound::HASTY_WRITE,
    Bound::STREAM_EVENTS,
    Bound::SESSION_BYTES,
    Bound::SESSION_STREAMS,
    Bound::KNOCKS,
    Bound::SLEEP,
    Bound::STREAM_HEAD,
    Bound::BEGIN_STREAM,
    Bound::RECONNECT,
    Bound::RETRY_LEAST,
    Bound::RETRY_MOST,
    Bound::CURSOR,
    Bound::EXPIRE,
];

const CRASH: &[Bound] =
    &[Bound::FIRST_REQUEST, Bound::LEASE, Bound::RENEW, Bound::UPKEEP, Bound::CLAIM, Bound::LEAVE];
