//! Tools on demand: a client finds, describes and calls them through three tools of ours, in place of a long list.
//!
//! `call_tool` becomes a call of the tool that it names before anything else is decided, so that limits, keys, tasks,
//! errors and cancels are those of a direct call, and its server sees no difference.

use super::naming::{Named, Place};
use super::{Asking, Engine};
use crate::calls::handoff::KnownTools;
use crate::catalog::{Kind, Readable, Shown};
use crate::config::Expose;
use crate::error::cut;
use crate::id::{ClientId, ServerId};
use crate::json;
use crate::merged::Needs;
use crate::method::Method;
use crate::wire::{Field, Message};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Our tools. They are called so at every merged door, so that what a model has learned of them stays true.
pub(super) const FIND: &str = "find_tools";
const DESCRIBE: &str = "describe_tool";
const CALL: &str = "call_tool";

/// Names that nobody else's tool has where these tools are shown.
pub(super) const RESERVED: [&str; 3] = [FIND, DESCRIBE, CALL];

/// How many tools one search shows if nobody says how many, and at most.
const FOUND: usize = 10;
const MOST_FOUND: usize = 50;

/// Bytes of a description that a search shows, and parameters.
const DESCRIPTION: usize = 300;
const PARAMETERS: usize = 20;

/// Servers that are named where all of them could be.
const NAMED_SERVERS: usize = 40;

/// Which of these tools is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ours {
    Find,
    Describe,
    Call,
}

impl Engine {
    /// How a client sees the tools of a server.
    pub(super) fn expose_of(&self, client: ClientId, server: ServerId) -> Expose {
        let rule = self.clients.get(&client).and_then(|client| client.rule.as_ref()?.expose);
        rule.unwrap_or_else(|| self.definition_of(server).exposure.expose)
    }

    /// The servers whose tools a client finds and does not list.
    fn servers_on_demand(&self, client: ClientId) -> Vec<ServerId> {
        let mut servers = self.servers_of(client);
        servers.retain(|server| self.expose_of(client, *server) == Expose::OnDemand);
        servers
    }

    pub(super) fn has_on_demand(&self, client: ClientId) -> bool {
        let Some(state) = self.clients.get(&client) else { return false };
        state.servers().any(|server| self.expose_of(client, server) == Expose::OnDemand)
    }

    /// Which tool of ours a request calls.
    pub(super) fn tool_of_ours(&self, asking: &Asking, message: &Message) -> Option<Ours> {
        if asking.method != Method::ToolsCall {
            return None;
        }
        let ours = match message.text(Field::ParamsName)?.as_ref() {
            FIND => Ours::Find,
            DESCRIBE => Ours::Describe,
            CALL => Ours::Call,
            _ => return None,
        };
        self.has_on_demand(asking.client).then_some(ours)
    }

    /// Our tools, as the end of a list has them for a client that needs them.
    pub(super) fn tools_on_demand(&self, asking: &Asking) -> Option<String> {
        let servers = self.servers_on_demand(asking.client);
        if servers.is_empty() {
            return None;
        }
        // Which tool it will be is not known here; one that cannot be a task says so when it is called.
        let tasks = !asking.modern && servers.iter().any(|server| self.makes_legacy_tasks(*server, true));
        Some(tools(&self.names_of(&servers), tasks))
    }

    /// In the order of their names.
    fn names_of(&self, servers: &[ServerId]) -> String {
        let mut names: Vec<Box<str>> = servers.iter().map(|server| self.server_name(*server)).collect();
        names.sort();
        let more = names.len().saturating_sub(NAMED_SERVERS);
        names.truncate(NAMED_SERVERS);
        let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
        format!("{}{rest}", names.join(", "))
    }

    /// Answers a search.
    pub(super) fn find_tools(&mut self, asking: &Asking, message: &Message) {
        let argument = |name| json::member(arguments(message)?, name);
        let query: Option<String> = argument("query").and_then(|raw| serde_json::from_slice(raw).ok());
        let Some(query) = query else {
            return self.say_in_tool(
                asking,
                "`find_tools` needs a `query`: some words about what you want to do",
                true,
            );
        };
        let server: Option<String> = argument("server").and_then(|raw| serde_json::from_slice(raw).ok());
        let limit: Option<f64> = argument("limit").and_then(|raw| serde_json::from_slice(raw).ok());
        let limit = limit.map_or(FOUND, |limit| (limit.max(1.0) as usize).min(MOST_FOUND));
        let view = self.view_of(asking.client, Kind::Tools, true);
        let within = |shown: &&&Shown| {
            server.as_deref().is_none_or(|server| *shown.server == *server)
                && self.may_call(asking.client, &shown.server, &shown.entry.name)
        };
        let found = view.find(&query);
        let found: Vec<&Shown> = found.iter().filter(within).copied().collect();
        let tools: Vec<Value> = found.iter().take(limit).map(|shown| in_short(shown)).collect();
        let mut result = json!({"tools": tools});
        if found.len() > limit {
            result["more"] = (found.len() - limit).into();
        }
        let mut missing = self.servers_on_demand(asking.client);
        missing.retain(|server| self.merged.known(*server, Kind::Tools).is_none());
        if !missing.is_empty() {
            result["notListedYet"] = self.names_of(&missing).into();
        }
        self.say_in_tool(asking, &result.to_string(), false);
    }

    /// Shows the whole definition of a tool, under its public name.
    pub(super) fn describe_tool(&mut self, asking: &Asking, named: &Named) {
        let view = self.view_of(asking.client, Kind::Tools, false);
        let allowed = |shown: &&Shown| self.may_call(asking.client, &shown.server, &shown.entry.name);
        let Some(found) = view.resolve(&named.name).filter(allowed) else {
            return self.nobody_has(asking, named);
        };
        let mut definition = Vec::new();
        found.write(&mut definition);
        self.say_in_tool(asking, &String::from_utf8_lossy(&definition), false);
    }

    /// Somebody calls one of our tools, and it cannot be seen about which tool.
    pub(super) fn needs_a_name(&mut self, asking: &Asking) {
        let text = "`describe_tool` and `call_tool` need the `name` of a tool, as `find_tools` shows it; `arguments` is \
                    an object";
        self.say_in_tool(asking, text, true);
    }

    /// The result of a tool of ours.
    fn say_in_tool(&mut self, asking: &Asking, text: &str, failed: bool) {
        let mut result = json!({"content": [{"type": "text", "text": text}]});
        if failed {
            result["isError"] = true.into();
        }
        self.answer_here(asking, result);
    }

    /// Whether a server's tools are needed for a list, or for a search.
    pub(super) fn is_concerned(&self, client: ClientId, server: ServerId, needs: Needs) -> bool {
        match needs {
            Needs::Shown => self.expose_of(client, server) != Expose::OnDemand,
            Needs::Hidden => self.expose_of(client, server) == Expose::OnDemand,
            Needs::Handshakes | Needs::Lists(_) | Needs::Resource => true,
        }
    }

    /// Which names nobody else's tool has for a client.
    pub(super) fn reserved(&self, client: ClientId) -> Vec<String> {
        let ours = KnownTools::default().names("");
        let on_demand = self.has_on_demand(client).then_some(RESERVED).into_iter().flatten();
        [ours.wait, ours.cancel].into_iter().chain(on_demand.map(str::to_owned)).collect()
    }
}

/// The `arguments` of a call.
fn arguments(message: &Message) -> Option<&[u8]> {
    json::member(message.raw(Field::Params)?, "arguments")
}

/// What a call of `describe_tool` or `call_tool` is about. What it calls is put in place of our own tool's name and
/// arguments; everything else of the request stays.
pub(super) fn named_through(message: &Message) -> Option<Named> {
    let whole = &message.bytes;
    let outer = arguments(message)?;
    let name: String = serde_json::from_slice(json::member(outer, "name")?).ok()?;
    let inner = match json::member(outer, "arguments") {
        None => b"{}".to_vec(),
        Some(raw) if raw.starts_with(b"{") => raw.to_vec(),
        // Some models write the object as a text.
        Some(raw) => {
            let text: String = serde_json::from_slice(raw).ok()?;
            let object: &RawValue = serde_json::from_str(&text).ok()?;
            object.get().trim_start().starts_with('{').then(|| object.get().as_bytes().to_vec())?
        }
    };
    let span = message.envelope.get(Field::ParamsName)?;
    let place =
        Place::Through { name: span.start()..span.end(), arguments: json::range_in(whole, outer), inner };
    Some(Named { kind: Kind::Tools, name, place })
}

/// A tool as a search shows it.
fn in_short(shown: &Shown) -> Value {
    let readable = Readable::of(&shown.entry.bytes);
    let text = |raw: Option<&RawValue>| -> Option<String> { serde_json::from_str(raw?.get()).ok() };
    let mut tool = json!({"name": shown.public});
    if let Some(title) = text(readable.title) {
        tool["title"] = cut(&title, DESCRIPTION).into();
    }
    if let Some(description) = text(readable.description) {
        tool["description"] = cut(&description, DESCRIPTION).into();
    }
    let parameters: Vec<&str> = readable.parameters.iter().take(PARAMETERS).map(AsRef::as_ref).collect();
    if !parameters.is_empty() {
        tool["parameters"] = parameters.into();
    }
    tool
}

/// The definitions of our tools.
fn tools(servers: &str, tasks: bool) -> String {
    let name = json!({"type": "string", "description": "The tool's name, exactly as find_tools shows it."});
    let find = json!({
        "name": FIND,
        "description": format!(
            "Finds tools by what they do. These servers have tools that are not in this list: {servers}. Search here \
             first; then call_tool calls what was found."
        ),
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "Some words about what you want to do. Empty: all tools."},
                "server": {"type": "string", "description": "Optional. Only tools of this server."},
                "limit": {"type": "number", "minimum": 1, "maximum": MOST_FOUND, "description": "Optional. How many."},
            },
            "required": ["query"],
        },
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let describe = json!({
        "name": DESCRIBE,
        "description": "Shows the whole definition of a tool that find_tools found: what it does and its inputSchema. \
            Use it before call_tool if the parameters are not clear.",
        "inputSchema": {"type": "object", "properties": {"name": name}, "required": ["name"]},
        "annotations": {"readOnlyHint": true, "openWorldHint": false},
    });
    let mut call = json!({
        "name": CALL,
        "description": "Calls a tool that find_tools found, and returns its result.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "name": name,
                "arguments": {"type": "object", "description": "What the tool's own inputSchema asks for."},
            },
            "required": ["name"],
        },
    });
    if tasks {
        call["execution"] = json!({"taskSupport": "optional"});
    }
    format!("{find},{describe},{call}")
}
