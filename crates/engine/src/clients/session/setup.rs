//! What a session has set up with its server besides opening the handshake: its log level and the resources it wants
//! to hear of. A server that is started for it later is told the same.

use crate::error::json_text;
use crate::limits;
use crate::method::Method;
use crate::wire::{Field, Message, Scanned, scan};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The client's own requests, as they came; at the merged door with the names that each server has for its resources.
#[derive(Clone, Debug, Default)]
pub(crate) struct Setup {
    pub(crate) log_level: Option<Message>,
    /// By the raw uri; at the merged door by [`name_at`].
    pub(crate) subscribed: BTreeMap<Box<[u8]>, Message>,
}

/// What a subscription at one of several servers is kept by. No raw uri has a zero in it.
fn name_at(server: &str, uri: &[u8]) -> Box<[u8]> {
    [server.as_bytes(), b"\0", uri].concat().into()
}

/// The server of such a name.
fn server_in(name: &[u8]) -> Option<&str> {
    let end = name.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&name[..end]).ok()
}

/// A subscription at one of several servers, as it is stored.
#[derive(Deserialize)]
struct At<'a> {
    server: Box<str>,
    #[serde(borrow)]
    request: &'a RawValue,
}

impl Setup {
    pub(crate) fn is_empty(&self) -> bool {
        self.log_level.is_none() && self.subscribed.is_empty()
    }

    /// What is for every server that a session has.
    pub(crate) fn without_subscriptions(&self) -> Setup {
        Setup { log_level: self.log_level.clone(), subscribed: BTreeMap::new() }
    }

    /// Subscriptions at the merged door, each with the name of its server.
    pub(crate) fn subscribed_at_servers(&self) -> impl Iterator<Item = (&str, &Message)> {
        self.subscribed.iter().filter_map(|(name, message)| Some((server_in(name)?, message)))
    }

    /// Takes a request in. True if that changed anything.
    pub(crate) fn take(&mut self, method: &Method, message: &Message) -> bool {
        self.take_as(message.raw(Field::ParamsUri).unwrap_or_default().into(), method, message)
    }

    /// The same about a resource of one of several servers.
    pub(crate) fn take_at(&mut self, server: &str, method: &Method, message: &Message) -> bool {
        let uri = message.raw(Field::ParamsUri).unwrap_or_default();
        self.take_as(name_at(server, uri), method, message)
    }

    fn take_as(&mut self, name: Box<[u8]>, method: &Method, message: &Message) -> bool {
        match method {
            Method::LoggingSetLevel => {
                self.log_level = None;
                self.log_level = self.has_room_for(message).then(|| message.owned());
                true
            }
            Method::ResourcesSubscribe => {
                let new = !self.subscribed.contains_key(&name);
                let fits = new && self.subscribed.len() < limits::SUBSCRIBED && self.has_room_for(message);
                if fits {
                    self.subscribed.insert(name, message.owned());
                }
                fits
            }
            Method::ResourcesUnsubscribe => self.subscribed.remove(&name).is_some(),
            _ => false,
        }
    }

    /// What this became here since `before`, made of what it became elsewhere meanwhile.
    pub(crate) fn changed_elsewhere(&self, before: &Setup, theirs: Setup) -> Setup {
        let mut both = theirs;
        if self.level() != before.level() {
            both.log_level.clone_from(&self.log_level);
        }
        both.subscribed
            .retain(|name, _| self.subscribed.contains_key(name) || !before.subscribed.contains_key(name));
        let ours = self.subscribed.iter().filter(|(name, _)| !before.subscribed.contains_key(*name));
        for (name, message) in ours {
            let fits = both.subscribed.len() < limits::SUBSCRIBED && both.has_room_for(message);
            if fits {
                both.subscribed.entry(name.clone()).or_insert_with(|| message.clone());
            }
        }
        both
    }

    fn level(&self) -> Option<&Bytes> {
        self.log_level.as_ref().map(|message| &message.bytes)
    }

    /// Whether the same is set up.
    pub(crate) fn is_same(&self, other: &Setup) -> bool {
        self.level() == other.level() && self.subscribed.keys().eq(other.subscribed.keys())
    }

    fn messages(&self) -> impl Iterator<Item = &Message> {
        self.log_level.iter().chain(self.subscribed.values())
    }

    fn has_room_for(&self, message: &Message) -> bool {
        let kept: usize = self.messages().map(|message| message.bytes.len()).sum();
        !reached!(SETUP_BYTES, kept + message.bytes.len() > limits::SETUP_BYTES)
    }

    /// As it is stored: a JSON array of the requests, empty if there are none. At the merged door a subscription stands
    /// beside the name of its server.
    pub(crate) fn encode(&self) -> Bytes {
        if self.is_empty() {
            return Bytes::new();
        }
        let level = self.log_level.iter().map(|message| message.bytes.to_vec());
        let subscribed = self.subscribed.iter().map(|(name, message)| match server_in(name) {
            None => message.bytes.to_vec(),
            Some(server) => {
                let head = [br#"{"server":"#, &*json_text(server), br#","request":"#].concat();
                [&*head, &message.bytes, b"}"].concat()
            }
        });
        let requests: Vec<Vec<u8>> = level.chain(subscribed).collect();
        [&b"["[..], &requests.join(&b','), b"]"].concat().into()
    }

    /// Reads it back. What cannot be read, or is of a kind that is not known here, is left out.
    pub(crate) fn decode(stored: &Bytes) -> Setup {
        let mut setup = Setup::default();
        let requests: Vec<&RawValue> = serde_json::from_slice(stored).unwrap_or_default();
        for request in requests {
            if let Ok(At { server, request }) = serde_json::from_str(request.get()) {
                read(request).map(|message| setup.take_at(&server, &Method::of(&message), &message));
            } else if let Some(message) = read(request) {
                setup.take(&Method::of(&message), &message);
            }
        }
        setup
    }
}

fn read(request: &RawValue) -> Option<Message> {
    match scan(Bytes::copy_from_slice(request.get().as_bytes())) {
        Ok(Scanned::Message(message)) => Some(message),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        match scan(Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Scanned::Message(message)) => message,
            other => panic!("{other:?}"),
        }
    }

    fn take(setup: &mut Setup, text: &str) -> bool {
        let message = message(text);
        setup.take(&Method::of(&message), &message)
    }

    fn subscribe(uri: &str) -> String {
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{{"uri":"{uri}"}}}}"#)
    }

    const LEVEL: &str = "{ \"id\": 1.0,\n\"method\":\"logging/setLevel\", \"params\":{\"level\":\"debug\"},\"jsonrpc\":\"2.0\" }";

    #[test]
    fn what_is_stored_is_read_back_byte_for_byte() {
        let mut setup = Setup::default();
        assert_eq!(setup.encode(), "");
        assert!(Setup::decode(&setup.encode()).is_empty());
        assert!(take(&mut setup, LEVEL));
        assert!(take(&mut setup, &subscribe("a:1")));
        assert!(take(&mut setup, &subscribe("a:2")));
        assert!(!take(&mut setup, &subscribe("a:1")));
        let again = Setup::decode(&setup.encode());
        assert_eq!(again.encode(), setup.encode());
        assert_eq!(again.messages().next().map(|message| &message.bytes[..]), Some(LEVEL.as_bytes()));
        assert_eq!(again.subscribed.len(), 2);
    }

    #[test]
    fn one_uri_at_two_servers_is_two_subscriptions() {
        let (mut setup, one) = (Setup::default(), message(&subscribe("a:1")));
        assert!(setup.take_at("ci", &Method::ResourcesSubscribe, &one));
        assert!(setup.take_at("a \"b\"", &Method::ResourcesSubscribe, &one));
        let again = Setup::decode(&setup.encode());
        let servers: Vec<&str> = again.subscribed_at_servers().map(|(server, _)| server).collect();
        assert_eq!(servers, ["a \"b\"", "ci"]);
        assert_eq!(again.encode(), setup.encode());
        assert!(setup.take_at("ci", &Method::ResourcesUnsubscribe, &one));
        assert_eq!(setup.subscribed_at_servers().count(), 1);
    }

    /// Two processes have changed a setup at one time: whatever either did is so, and what either undid is not.
    #[test]
    fn changes_of_two_processes_come_together() {
        let with = |texts: &[&str]| {
            let mut setup = Setup::default();
            texts.iter().for_each(|text| _ = take(&mut setup, text));
            setup
        };
        let [a, b, c, d] = ["a:1", "b:1", "c:1", "d:1"].map(subscribe);
        let before = with(&[&a, &b]);
        let (ours, theirs) = (with(&[LEVEL, &b, &c]), with(&[&a, &d]));
        let both = ours.changed_elsewhere(&before, theirs);
        let names: Vec<&[u8]> = both.subscribed.keys().map(|name| &**name).collect();
        assert_eq!((names, both.log_level.is_some()), (vec![&b"\"c:1\""[..], b"\"d:1\""], true));
        assert!(before.is_same(&with(&[&b, &a])) && !before.is_same(&ours));
    }

    #[test]
    fn what_cannot_be_read_is_left_out() {
        let stored = format!(r#"[7,{{"id":1,"method":"of/tomorrow"}},{}]"#, subscribe("a:1"));
        let setup = Setup::decode(&stored.into());
        assert_eq!((setup.log_level.is_none(), setup.subscribed.len()), (true, 1));
        assert!(Setup::decode(&"[".into()).is_empty());
    }

    #[test]
    fn a_session_remembers_only_so_much() {
        let mut setup = Setup::default();
        assert!(take(&mut setup, LEVEL));
        for number in 0..limits::SUBSCRIBED {
            assert!(take(&mut setup, &subscribe(&format!("a:{number}"))));
        }
        assert!(!take(&mut setup, &subscribe("one:more")));
        assert_eq!(Setup::decode(&setup.encode()).subscribed.len(), limits::SUBSCRIBED);
        let mut setup = Setup::default();
        assert!(!take(&mut setup, &subscribe(&"x".repeat(limits::SETUP_BYTES))));
        assert!(setup.is_empty());
    }
}
