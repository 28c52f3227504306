//! More than there is room for: each of these reaches bounds of `limits.rs`.

use super::World;
use outlast_engine::limits::{
    BATCH_MEMBERS, JOINED, KEY, KEY_ARGUMENTS, KEYED_BYTES, NAME, REPEATABLE_BYTES, SUBSCRIPTIONS,
    WAITING_BYTES,
};

/// What is overdone in a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extreme {
    /// One array has too many members.
    Array,
    Subscriptions,
    /// Many long calls that may be repeated, while the server is away or not.
    LongCalls,
    /// The handshake is long.
    Handshake,
    /// The server asks too much at once.
    Questions,
    /// Too many calls with one key.
    Joined,
    /// Keys and arguments are too long to be remembered.
    Keys,
    /// Names are too long to be shown.
    Names,
}

impl Extreme {
    pub(super) const ALL: [Extreme; 8] = [
        Extreme::Array,
        Extreme::Subscriptions,
        Extreme::LongCalls,
        Extreme::Handshake,
        Extreme::Questions,
        Extreme::Joined,
        Extreme::Keys,
        Extreme::Names,
    ];
}

impl World {
    pub(super) fn overdo(&mut self, extreme: Extreme) {
        let client = &mut self.client;
        let key = |key: &str| format!(r#""idempotencyKey":"{key}","#);
        match extreme {
            Extreme::Array => {
                let members = vec![r#"{"id":0,"method":"ping"}"#; BATCH_MEMBERS + 1];
                client.send(format!("[{}]", members.join(",")));
            }
            Extreme::Subscriptions => {
                (0..SUBSCRIPTIONS + 10).for_each(|_| client.call("subscriptions/listen", "t0", ""));
            }
            Extreme::LongCalls => {
                let more = |size: usize| format!(r#""more":"{}","#, "x".repeat(size));
                client.call("tools/call", "t3", &more(REPEATABLE_BYTES));
                let fits = more(REPEATABLE_BYTES - 1_000);
                (0..=WAITING_BYTES / fits.len()).for_each(|_| client.call("tools/call", "t3", &fits));
            }
            Extreme::Handshake => {}
            Extreme::Questions => self.server.ask_too_much(),
            Extreme::Joined => {
                (0..JOINED + 10).for_each(|_| client.call("tools/call", "t0", &key("all")));
            }
            Extreme::Keys => {
                client.call("tools/call", "t0", &key(&"k".repeat(KEY + 1)));
                let arguments = |size: usize| format!(r#""arguments":{{"x":"{}"}},"#, "x".repeat(size));
                client.call("tools/call", "t0", &(key("long") + &arguments(KEY_ARGUMENTS)));
                let fits = arguments(KEY_ARGUMENTS - 100);
                for number in 0..KEYED_BYTES / KEY_ARGUMENTS + 2 {
                    client.call("tools/call", "t0", &(key(&format!("a{number}")) + &fits));
                }
            }
            Extreme::Names => client.call("tools/call", &format!("t1{}", "y".repeat(NAME)), ""),
        }
    }
}
