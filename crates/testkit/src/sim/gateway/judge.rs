//! What must hold whatever the file says: see `gateway.rs`.

use super::rules::Who;
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

/// A request that was made.
#[derive(Debug)]
pub(super) struct Open {
    client: usize,
    at: Duration,
    pub(super) method: String,
    /// The tool that it names, if it calls one.
    pub(super) tool: String,
    who: Who,
    /// At the merged door, where a rule may hide servers.
    merged: bool,
    /// The server and the tool that it is for.
    target: Option<(String, String)>,
    nonce: u64,
    /// Its client has not been shown the tool.
    guess: bool,
    /// When its server got it.
    called: Option<Duration>,
}

/// What a modern client listens to.
#[derive(Debug)]
struct Listen {
    client: usize,
    uris: Vec<String>,
    acknowledged: bool,
}

#[derive(Debug, Default)]
pub(super) struct Judge {
    last: u64,
    listens: BTreeMap<u64, Listen>,
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
        (door, who): (Option<String>, Who),
        method: &str,
        params: &Value,
    ) -> u64 {
        self.last += 1;
        let tool = params["name"].as_str().unwrap_or_default();
        let through = matches!(tool, "call_tool" | "describe_tool") && door.is_none();
        let direct = if through { &params["arguments"] } else { params };
        let name = direct["name"].as_str().unwrap_or_default();
        let merged = door.is_none();
        let target = match door {
            Some(server) => Some((server, name.to_owned())),
            None => name.split_once("__").map(|(server, tool)| (server.to_owned(), tool.to_owned())),
        };
        let nonce = direct["arguments"]["nonce"].as_u64().unwrap_or_default();
        let guess = direct["arguments"]["guess"] == true;
        let (method, tool) = (method.into(), tool.into());
        let open = Open { client, at, method, tool, who, merged, target, nonce, guess, called: None };
        self.open.insert(self.last, open);
        self.last
    }

    /// A modern client begins to listen.
    pub(super) fn listens(&mut self, client: usize, uris: Vec<String>) -> u64 {
        self.last += 1;
        self.listens.insert(self.last, Listen { client, uris, acknowledged: false });
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

    /// A token was taken back: nothing comes for those who had it.
    pub(super) fn is_revoked(&mut self, of_it: impl Fn(usize) -> bool) {
        self.open.retain(|_, open| !of_it(open.client));
        self.parted.retain(|_, open| !of_it(open.client));
        self.listens.retain(|_, listen| !of_it(listen.client));
    }

    /// A client hears of a call that it made: a server's own report says for which one it is.
    pub(super) fn progresses(&self, client: usize, params: &Value) {
        let token = params["progressToken"].as_u64().expect("a token of ours");
        let mut all = self.open.values().chain(self.parted.values());
        let Some(open) = all.find(|open| open.nonce == token) else { return };
        assert_eq!(open.client, client, "progress of another client's call: {params}");
        let Some((name, nonce)) = params["message"].as_str().and_then(|text| text.split_once('|')) else {
            return;
        };
        let (wanted, _) = open.target.as_ref().expect("a call has a target");
        assert_eq!((name, nonce), (&**wanted, &*token.to_string()), "progress of another call: {open:?}");
    }

    /// A call reaches a server.
    pub(super) fn is_called(&mut self, now: Duration, nonce: u64) {
        let mut all = self.open.values_mut().chain(self.parted.values_mut());
        if let Some(open) = all.find(|open| open.nonce == nonce) {
            open.called.get_or_insert(now);
        }
    }

    /// A client is shown these tools.
    pub(super) fn is_shown(&self, door: Option<&str>, who: Who, names: &[String]) {
        let mut sorted = names.to_vec();
        sorted.sort();
        sorted.dedup();
        assert!(door.is_some() || sorted.len() == names.len(), "two tools have one name: {names:?}");
        let servers = names.iter().filter_map(|name| name.split_once("__"));
        for (server, _) in servers.filter(|_| door.is_none()) {
            assert!(who.lists(server), "{who:?} is shown a tool of {server}");
        }
    }

    /// A client has found these tools.
    pub(super) fn is_found(&self, who: Who, message: &Value) -> Vec<String> {
        let text = message["result"]["content"][0]["text"].as_str().unwrap_or("{}");
        let found: Value = serde_json::from_str(text).unwrap_or_default();
        let names = found["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<String> =
            names.iter().map(|tool| tool["name"].as_str().expect("a name").to_owned()).collect();
        for name in &names {
            let (server, _) = name.split_once("__").expect("a tool of a server");
            assert!(who.finds(server), "{who:?} finds a tool of {server}");
        }
        names
    }

    /// A client is shown these resources.
    pub(super) fn has_resources(&self, who: Who, uris: &[String]) {
        for server in uris.iter().filter_map(|uri| server_in(uri)) {
            assert!(who.sees(server), "{who:?} is shown a resource of {server}");
        }
    }

    /// Whoever listens hears something.
    pub(super) fn hears_on_listen(
        &mut self,
        id: u64,
        (client, who, principal): (usize, Who, usize),
        message: &Value,
    ) {
        let listen = self.listens.get_mut(&id).expect("it was asked for, and goes on");
        assert_eq!(listen.client, client, "another listens");
        let Some(method) = message["method"].as_str() else {
            return assert_eq!(message["id"], id, "the end of another listen");
        };
        let params = &message["params"];
        let under = &params["_meta"]["io.modelcontextprotocol/subscriptionId"];
        assert_eq!(*under, id, "said on listen {id}: {message}");
        let begins = method == "notifications/subscriptions/acknowledged";
        assert_ne!(listen.acknowledged, begins, "first it is acknowledged, once: {message}");
        listen.acknowledged = true;
        if method != "notifications/resources/updated" {
            return assert!(
                begins || method == "notifications/tools/list_changed",
                "not asked for: {message}"
            );
        }
        let (uri, name) = (params["uri"].as_str().expect("a uri"), params["name"].as_str().expect("a name"));
        assert!(listen.uris.iter().any(|asked| asked == uri), "{uri} was not asked for");
        assert!(server_in(uri).is_none_or(|server| server == name), "{name} speaks of {uri}");
        assert!(who.sees(name), "{who:?} hears of {name}");
        self.belongs(params["server"].as_u64().expect("a number") as u32, principal);
    }

    /// A client hears what a server says of itself.
    pub(super) fn hears(&mut self, principal: usize, (door, who): (Option<&str>, Who), text: &str) {
        let (name, server) = text.split_once('|').expect("a log of ours");
        assert!(door.is_none_or(|door| door == name), "at {door:?} a client heard {text}");
        assert!(door.is_some() || who.sees(name), "{who:?} hears {name}");
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
    ) -> Option<Open> {
        let id = answer["id"].as_u64().expect("an id of ours");
        let not_found = answer["error"]["code"] == -32000;
        let Some(open) = self.open.remove(&id).or_else(|| self.parted.remove(&id)) else {
            assert!(not_found, "nobody waits for {answer}");
            return None;
        };
        assert_eq!(open.client, client, "an answer for another client: {answer}");
        match answer.get("error") {
            _ if open.method != "tools/call" => {}
            Some(error) => self.failed(now, &open, error),
            None if open.tool == "find_tools" => {}
            None if open.tool == "describe_tool" => described(&open, answer),
            None => self.succeeded(now, &open, principal, answer),
        }
        Some(open)
    }

    fn succeeded(&mut self, now: Duration, open: &Open, principal: usize, answer: &Value) {
        let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
        let parts: Vec<&str> = text.split('|').collect();
        let [name, program, server, tool, nonce] = parts[..] else { panic!("{text}") };
        let (wanted, wanted_tool) = open.target.as_ref().expect("a call has a target");
        assert!(!open.merged || open.who.sees(wanted), "{:?} called {wanted}", open.who);
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
        let seen = !open.merged || (open.who.sees(name) && !open.guess);
        let steady = seen && (0..STEADY).any(|server| *name == name_of(server));
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

/// A definition is that of the tool that was asked for.
fn described(open: &Open, answer: &Value) {
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    if answer["result"]["isError"] != true {
        let definition: Value = serde_json::from_str(text).expect("a definition");
        let (server, tool) = open.target.as_ref().expect("it has a name");
        assert_eq!(definition["name"], format!("{server}__{tool}"), "another tool is described");
    }
}

/// The server that a uri names, if it does: `outlast+s1:res://both`, `res://s1`.
fn server_in(uri: &str) -> Option<&str> {
    let marked = uri.strip_prefix("outlast+").and_then(|rest| Some(rest.split_once(':')?.0));
    marked.or_else(|| uri.strip_prefix("res://").filter(|name| *name != "both"))
}
