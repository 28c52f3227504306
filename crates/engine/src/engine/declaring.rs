//! What a client is told of our limits, where a person asked for it: `capabilities.tools.timeouts.call` and the like, in
//! seconds. The shape is that of RFC #1492, which was never adopted, so a strict client may refuse it.

use super::Engine;
use crate::id::ServerId;
use crate::json;
use crate::method::Method;
use crate::policy::{Declared, TIMEOUTS};
use crate::wire::{Edit, Field, Message, Patch};
use serde_json::{Map, Value};
use std::time::Duration;

impl Engine {
    /// Our limits in a server's own answer to a handshake, in place of what it declares itself: it is we who answer its
    /// client.
    pub(super) fn add_limits_to_handshake(&self, server: ServerId, answer: &Message) -> Vec<Edit> {
        if !self.config.declare_timeouts {
            return Vec::new();
        }
        let result = answer.raw(Field::Result);
        let Some(capabilities) = result.and_then(|result| json::member(result, "capabilities")) else {
            return Vec::new();
        };
        let group = |name: &&str| {
            let raw = json::member(capabilities, name)?;
            let limits =
                self.limits_of_group(&[server], name, json::member(raw, "subscribe") == Some(b"true"));
            let limits = Value::from(limits).to_string();
            match json::member(raw, "timeouts") {
                Some(own) => {
                    Some(Edit::range(json::range_in(&answer.bytes, own), Patch::of(&[limits.as_bytes()])))
                }
                None => {
                    let member = [b"\"timeouts\":", limits.as_bytes()].concat();
                    json::insert_member(&answer.bytes, raw, &member)
                }
            }
        };
        ["tools", "prompts", "resources"].iter().filter_map(group).collect()
    }

    /// The same in capabilities of our own, for several servers: the longest of them.
    pub(super) fn declare_limits(&self, servers: &[ServerId], capabilities: &mut Value) {
        if !self.config.declare_timeouts {
            return;
        }
        for name in ["tools", "prompts", "resources"] {
            if let Some(group) = capabilities.get_mut(name).and_then(Value::as_object_mut) {
                let subscribes = group.get("subscribe") == Some(&Value::Bool(true));
                group.insert("timeouts".into(), self.limits_of_group(servers, name, subscribes).into());
            }
        }
    }

    fn limits_of_group(&self, servers: &[ServerId], group: &str, subscribes: bool) -> Map<String, Value> {
        let mut limits = Map::new();
        for (_, name, method) in TIMEOUTS.iter().filter(|(of, ..)| *of == group) {
            if let Some(time) =
                self.longest(servers, method).filter(|_| subscribes || !name.contains("subscribe"))
            {
                limits.insert((*name).to_owned(), whole_seconds(time).into());
            }
        }
        limits
    }

    /// `None` if it may take for ever at one of them.
    fn longest(&self, servers: &[ServerId], method: &Method) -> Option<Duration> {
        let none = Declared::default();
        let one = |id: &ServerId| {
            let declared = self.servers.get(id).map_or(&none, |server| &server.declared);
            self.definition_of(*id).rules.longest(method, declared)
        };
        let all: Option<Vec<Duration>> = servers.iter().map(one).collect();
        all?.into_iter().max()
    }
}

/// Not less than it is: whoever waits as long must not give up before us.
fn whole_seconds(time: Duration) -> u64 {
    time.as_secs() + u64::from(time.subsec_nanos() > 0)
}
