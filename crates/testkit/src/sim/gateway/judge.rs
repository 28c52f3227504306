//! What must hold whatever the file says: see `gateway.rs`.

use super::{STEADY, name_of};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that anything here may take: the longest limit, and a wait for a server before it.
const PATIENCE: Duration = Duration::from_secs(200);

/// What the file says of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Defined {
    pub(super) program: u64,
    /// In milliseconds.
    pub(super) timeout: u64,
}

#[derive(Debug)]
struct Open {
    client: usize,
    at: Duration,
    method: String,
    /// The server and the tool that it is for.
    target: Option<(String, String)>,
    nonce: u64,
    /// When its server got it.
    called: Option<Duration>,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    last: u64,
    open: BTreeMap<u64, Open>,
    /// Requests of sessions that have ended: they may be answered.
    parted: BTreeMap<u64, Open>,
    /// What the file said, and from when on.
    history: BTreeMap<String, Vec<(Duration, Option<Defined>)>>,
    /// Whose each server is.
    principals: BTreeMap<u32, usize>,
}

// The file.
impl Judge {
    pub(super) fn says(&mut self, now: Duration, name: &str, defined: Option<Defined>) {
        let history = self.history.entry(name.to_owned()).or_default();
        if history.last().is_none_or(|(_, last)| *last != defined) {
            history.push((now, defined));
        }
    }

    pub(super) fn defined(&self, name: &str) -> Option<Defined> {
        self.history.get(name)?.last()?.1
    }

    /// What it says, or said last.
    pub(super) fn last_defined(&self, name: &str) -> Option<Defined> {
        self.history.get(name)?.iter().rev().find_map(|(_, defined)| *defined)
    }

    /// All that the file said of a server within a time.
    fn within(&self, name: &str, from: Duration, to: Duration) -> Vec<Option<Defined>> {
        let history = self.history.get(name).map(Vec::as_slice).unwrap_or_default();
        let ends = |at: usize| history.get(at + 1).map_or(Duration::MAX, |(from, _)| *from);
        let held =
            |(at, (began, _)): &(usize, &(Duration, Option<Defined>))| *began <= to && ends(*at) >= from;
        history.iter().enumerate().filter(held).map(|(_, (_, defined))| *defined).collect()
    }
}

// Requests.
impl Judge {
    pub(super) fn next(&self) -> u64 {
        self.last + 1
    }

    pub(super) fn asks(
        &mut self,
        at: Duration,
        client: usize,
        door: Option<String>,
        method: &str,
        params: &Value,
    ) -> u64 {
        self.last += 1;
        let name = params["name"].as_str().unwrap_or_default();
        let target = match door {
            Some(server) => Some((server, name.to_owned())),
            None => name.split_once("__").map(|(server, tool)| (server.to_owned(), tool.to_owned())),
        };
        let nonce = params["arguments"]["nonce"].as_u64().unwrap_or_default();
        self.open.insert(self.last, Open { client, at, method: method.into(), target, nonce, called: None });
        self.last
    }

    /// Whether a client waits for the answer to its handshake.
    pub(super) fn begins(&self, client: usize) -> bool {
        self.open.values().any(|open| open.client == client && open.method == "initialize")
    }

    /// A client gives a call up.
    pub(super) fn gives_up(&mut self, client: usize) -> Option<u64> {
        let own = |open: &Open| open.client == client && open.method == "tools/call";
        let id = self.open.iter().find(|(_, open)| own(open)).map(|(id, _)| *id)?;
        let open = self.open.remove(&id)?;
        self.parted.insert(id, open);
        Some(id)
    }

    /// The cancel of a call has been read: nothing more may come of it.
    pub(super) fn is_given_up(&mut self, id: u64) {
        self.parted.remove(&id);
    }

    pub(super) fn nothing_is_open(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn nobody_waits_for_ever(&self, now: Duration) {
        if let Some((id, open)) = self.open.iter().find(|(_, open)| now > open.at + PATIENCE) {
            panic!("request {id} is not answered: {open:?}");
        }
    }

    /// A client's session is not known.
    pub(super) fn is_not_found(&mut self, client: usize, door: &Option<String>) {
        let steady = |name: &String| (0..STEADY).any(|server| *name == name_of(server));
        assert!(door.as_ref().is_some_and(|door| !steady(door)), "a session is lost at {door:?}");
        // What was in flight at the server that is gone may still end, or goes with it.
        let own = self.open.extract_if(.., |_, open| open.client == client);
        self.parted.extend(own);
    }

    /// A call reaches a server.
    pub(super) fn is_called(&mut self, now: Duration, nonce: u64) {
        let mut all = self.open.values_mut().chain(self.parted.values_mut());
        if let Some(open) = all.find(|open| open.nonce == nonce) {
            open.called.get_or_insert(now);
        }
    }

    /// A client is shown these tools.
    pub(super) fn is_shown(&self, door: Option<&str>, names: &[String]) {
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        assert!(door.is_some() || sorted.len() == names.len(), "two tools have one name: {names:?}");
    }

    /// A client hears what a server says of itself.
    pub(super) fn hears(&mut self, principal: usize, door: Option<&str>, text: &str) {
        let (name, server) = text.split_once('|').expect("a log of ours");
        assert!(door.is_none_or(|door| door == name), "at {door:?} a client heard {text}");
        self.belongs(server.parse().expect("a number"), principal);
    }

    fn belongs(&mut self, server: u32, principal: usize) {
        let owner = *self.principals.entry(server).or_insert(principal);
        assert_eq!(owner, principal, "server {server} of one principal reached another");
    }

    /// A request is answered. Gives back what it was.
    pub(super) fn answers(
        &mut self,
        now: Duration,
        client: usize,
        principal: usize,
        answer: &Value,
    ) -> String {
        let id = answer["id"].as_u64().expect("an id of ours");
        let not_found = answer["error"]["code"] == -32000;
        let Some(open) = self.open.remove(&id).or_else(|| self.parted.remove(&id)) else {
            assert!(not_found, "nobody waits for {answer}");
            return String::new();
        };
        assert_eq!(open.client, client, "an answer for another client: {answer}");
        if open.method == "tools/call" {
            match answer.get("error") {
                Some(error) => self.failed(now, &open, error),
                None => self.succeeded(now, &open, principal, answer),
            }
        }
        open.method
    }

    fn succeeded(&mut self, now: Duration, open: &Open, principal: usize, answer: &Value) {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let parts: Vec<&str> = text.split('|').collect();
        let [name, program, server, tool, nonce] = parts[..] else { panic!("{text}") };
        let (wanted, wanted_tool) = open.target.as_ref().expect("a call has a target");
        assert_eq!((name, tool), (&**wanted, &**wanted_tool), "another server answered, or for another tool");
        assert_eq!(nonce, open.nonce.to_string(), "the answer to another call");
        self.belongs(server.parse().expect("a number"), principal);
        let program: u64 = program.parse().expect("a number");
        let known = self.within(name, open.at, now).into_iter().flatten().any(|said| said.program == program);
        assert!(
            known,
            "{name} answered as program {program}, which the file did not have any more: {open:?}"
        );
        let there = self.within(name, open.at, now).iter().any(Option::is_some);
        assert!(there, "{name} is not in the file, and answered at {now:?}: {open:?}");
    }

    fn failed(&self, now: Duration, open: &Open, error: &Value) {
        let Some((name, _)) = &open.target else { return };
        let steady = (0..STEADY).any(|server| *name == name_of(server));
        assert!(!steady, "a call of a steady server failed after {:?}: {error}", now - open.at);
        let data = &error["data"]["outlast"];
        if data["kind"] != "timeout" {
            return;
        }
        let limit = data["limitMs"].as_u64().expect("a limit");
        let begun = open.called.unwrap_or(now);
        let held = self.within(name, open.at, begun).into_iter().flatten().any(|said| said.timeout == limit);
        assert!(held, "{limit} ms was no limit of {name} when the call began: {open:?}, {error}");
    }
}
