//! `docs/outlast.schema.json`: what an editor needs to know of `outlast.toml`, made from the table of settings; and
//! the same for people, `outlast help file`.

use crate::config::file::BOUNDS;
use crate::dashboard::sight::Reach;
use outlast_engine::callback::When;
use outlast_engine::settings::{Kind, Place, SETTINGS, Setting};
use serde_json::{Map, Value, json};
use std::fmt::Write;

const BEGINNING: &str = "outlast.toml describes servers and their limits. outlast check reports every
mistake in it, outlast explain SERVER TOOL says which value wins, outlast import
makes one.

    [defaults]
    timeout = \"30s\"

    [servers.build]
    command = \"python\"
    args = [\"build_server.py\"]
    tools.\"deploy_*\" = { timeout = \"30m\", max = \"2h\" }

";

/// The schema, as it is committed.
pub fn text() -> String {
    serde_json::to_string_pretty(&schema()).unwrap_or_default() + "\n"
}

/// `outlast help file`: every table with its keys.
pub fn outline() -> String {
    let schema = schema();
    let keys = |table: &Value| members(table["properties"].clone()).into_iter().map(|(key, _)| key).collect();
    let all = &schema["properties"];
    let rules = &all["defaults"]["properties"]["tools"]["additionalProperties"];
    let tables: [(&str, Vec<String>); 9] = [
        ("before all tables", vec!["include".into(), "separator".into()]),
        ("[defaults]", keys(&all["defaults"])),
        ("[servers.NAME]", keys(&all["servers"]["additionalProperties"])),
        ("[defaults.tools.\"GLOB\"], also .methods, and both below [servers.NAME]", keys(rules)),
        ("[clients.\"GLOB\"]", keys(&all["clients"]["additionalProperties"])),
        ("[tokens.NAME]", keys(&all["tokens"]["additionalProperties"])),
        ("[listen]", keys(&all["listen"])),
        ("[store]", keys(&all["store"])),
        ("[log]", keys(&all["log"])),
    ];
    let mut text = BEGINNING.to_owned();
    for (table, keys) in tables {
        let _ = writeln!(text, "{table}:\n  {}", super::wrapped(&keys.join(", "), 2));
    }
    text + "\nAbout a key: outlast help KEY. For editors: outlast help schema.\n"
}

fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "outlast.toml",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "include": texts("Files that are read first: TOML, or a client's mcp.json."),
            "separator": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,4}$", "default": "__"},
            "defaults": closed(with_rules(settings(&[Place::Call, Place::Server, Place::Process]), false)),
            "servers": {"type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9_-]{1,32}$"},
                        "additionalProperties": closed(server())},
            "clients": {"type": "object", "additionalProperties": closed(client())},
            "tokens": {"type": "object", "additionalProperties": closed(token())},
            "callbacks": {"type": "object", "propertyNames": {"pattern": "^[A-Za-z0-9_.-]{1,64}$"},
                          "additionalProperties": callback()},
            "listen": closed(settings(&[Place::Listen])),
            "store": closed(store()),
            "log": closed(settings(&[Place::Log])),
        },
    })
}

fn closed(properties: Map<String, Value>) -> Value {
    json!({"type": "object", "additionalProperties": false, "properties": properties})
}

fn texts(what: &str) -> Value {
    json!({"type": "array", "items": {"type": "string"}, "description": what})
}

fn words() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn members(value: Value) -> Map<String, Value> {
    if let Value::Object(members) = value { members } else { Map::new() }
}

fn settings(places: &[Place]) -> Map<String, Value> {
    let here = SETTINGS.iter().filter(|item| places.contains(&item.place));
    here.map(|item| (item.name.to_owned(), value_of(item))).collect()
}

/// In its own table `store-url` is called `url`.
fn store() -> Map<String, Value> {
    let mut properties = settings(&[Place::Store]);
    let url = properties.remove("store-url");
    properties.extend(url.map(|url| ("url".to_owned(), url)));
    properties
}

/// Settings of calls also stand in tables for some tools and methods.
fn with_rules(mut properties: Map<String, Value>, of_server: bool) -> Map<String, Value> {
    let rules = closed(settings(&[Place::Call]));
    let lists = json!({"allow": texts("Only these tools."), "deny": texts("Not these tools.")});
    let lists = if of_server { lists } else { json!({}) };
    let tools = json!({"type": "object", "properties": lists, "additionalProperties": rules});
    properties.insert("tools".into(), tools);
    properties.insert("methods".into(), json!({"type": "object", "additionalProperties": rules}));
    properties
}

fn expose() -> Value {
    json!({"enum": ["names", "plain-names", "on-demand"]})
}

fn server() -> Map<String, Value> {
    let mut properties = with_rules(settings(&[Place::Call, Place::Server]), true);
    properties.extend(members(json!({
        "command": {"type": "string"}, "args": texts("Its arguments."), "env": words(), "cwd": {"type": "string"},
        "url": {"type": "string"}, "headers": words(), "type": {"type": "string"}, "expose": expose(),
        "start": {"enum": ["lazy", "eager"]}, "disabled": {"type": "boolean"}, "aliases": words(),
    })));
    properties
}

fn client() -> Map<String, Value> {
    let cap = SETTINGS.iter().find(|item| item.name == "client-cap").map(value_of);
    let profile = json!({"type": "string", "description": "What it does: cap:60s,progress:no"});
    members(
        json!({"client-cap": cap, "hand-off": {"type": "boolean"}, "profile": profile, "servers": texts("Globs."), "expose": expose(),
               "callback": {"type": "string", "description": "The callback of its calls that name none."}}),
    )
}

fn callback() -> Value {
    let mut table = closed(members(json!({
        "url": {"type": "string", "description": "Who is called: https://…"},
        "secret": {"type": "string", "description": "What it is signed with: ${VARIABLE}, which holds whsec_…"},
        "when": {"enum": When::WORDS.map(|(word, _)| word), "default": "disconnected"},
        "allow": texts("Addresses and networks that may be called although they are not public."),
        "links": {"type": "string", "description": "Where people reach outlast: callbacks about held calls carry a link that decides them."},
        "ca-file": {"type": "string", "description": "Certificates that are trusted beside the system's."},
    })));
    table["required"] = json!(["url", "secret"]);
    table
}

fn token() -> Map<String, Value> {
    let mut properties =
        members(json!({"hash": {"type": "string"}, "servers": texts("Globs."), "tools": texts("Globs."),
                       "dashboard": {"enum": Reach::WORDS.map(|(word, _)| word)}}));
    let bounds = SETTINGS.iter().filter(|item| BOUNDS.contains(&item.key));
    properties.extend(bounds.map(|item| (item.name.to_owned(), value_of(item))));
    properties
}

fn value_of(item: &Setting) -> Value {
    let mut value = match item.kind {
        Kind::Count => json!({"type": "integer", "minimum": 0}),
        Kind::Switch => json!({"type": "boolean"}),
        // `hold = true` beside `hold = "destructive"`.
        Kind::Choice(words) if words.contains(&"true") => {
            json!({"anyOf": [{"type": "boolean"}, {"enum": words}]})
        }
        Kind::Choice(words) => json!({"enum": words}),
        Kind::Signs => json!({"type": ["string", "array"], "items": {"enum": ["call", "server"]}}),
        Kind::Lines(_) => json!({"type": ["string", "array"], "items": {"type": "string"}}),
        Kind::Time | Kind::TimeOrOff | Kind::Size | Kind::Path | Kind::Rate | Kind::Rules => {
            json!({"type": "string"})
        }
    };
    value["description"] = format!("{} [default: {}]", item.short, item.default).into();
    value
}
