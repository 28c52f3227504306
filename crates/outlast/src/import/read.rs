//! The servers of a client's file.

use super::{Import, Server, flags};
use crate::config::file::tree::{self, Entry, Format, Value};
use crate::install::clients::{Client, Place, Scope, Shape};
use crate::install::{is_outlast, stdio_servers, visible, write};

/// Keys that say nothing to outlast.
const SILENT: [&str; 4] = ["description", "type", "name", "bundled"];

/// Reads the files of a client.
pub fn client(import: &mut Import, client: &Client, scope: Scope) {
    let mut found = false;
    for place in &client.places(scope) {
        let shown = visible(&place.path.to_string_lossy());
        match write::read(&place.path) {
            Ok(None) => continue,
            Ok(Some(original)) => file(import, place, &shown, &original.text),
            Err(why) => import.left.push(format!("{shown}: {why}")),
        }
        found = true;
    }
    if !found {
        import.left.push(format!("{} has no file here", client.name));
    }
}

/// Reads one file.
pub fn file(import: &mut Import, place: &Place, shown: &str, text: &str) {
    if place.shape == Shape::Goose {
        return goose(import, shown, text);
    }
    let format = if place.shape == Shape::Codex { Format::Toml } else { Format::Json };
    match tree::read(text, format, 0) {
        Ok(root) => {
            for entry in maps(&root, place.shape) {
                one(import, shown, entry);
            }
        }
        Err(wrong) => import.left.push(format!("{shown}: {}", wrong.what)),
    }
}

fn members(entry: &Entry) -> &[Entry] {
    if let Value::Table(members) = &entry.node.value { members } else { &[] }
}

fn named<'a>(entries: &'a [Entry], name: &str) -> &'a [Entry] {
    entries.iter().rev().find(|entry| entry.name == name).map(members).unwrap_or_default()
}

/// The entries that are servers.
fn maps(root: &[Entry], shape: Shape) -> Vec<&Entry> {
    let key = match shape {
        Shape::Servers => "servers",
        Shape::OpenCode => "mcp",
        Shape::Codex => "mcp_servers",
        _ => "mcpServers",
    };
    let mut found: Vec<&Entry> = named(root, key).iter().collect();
    if shape == Shape::ClaudeUser {
        found.extend(named(root, "projects").iter().flat_map(|project| named(members(project), key)));
    }
    if shape == Shape::OpenCode {
        let inner = named(named(root, key), "servers");
        found.retain(|entry| entry.name != "servers" || inner.is_empty());
        found.extend(inner);
    }
    found.retain(|entry| matches!(entry.node.value, Value::Table(_)));
    found
}

fn one(import: &mut Import, shown: &str, entry: &Entry) {
    let mut server = Server { name: entry.name.clone(), ..Server::default() };
    let mut left = Vec::new();
    for member in members(entry) {
        if !takes(&mut server, member) && !SILENT.contains(&member.name.as_str()) {
            left.push(format!("`{}`", visible(&member.name)));
        }
    }
    add(import, shown, server, left);
}

fn takes(server: &mut Server, member: &Entry) -> bool {
    match (member.name.as_str(), &member.node.value) {
        ("command", Value::Text(text)) => server.words.insert(0, text.clone()),
        ("command", Value::List(_)) => server.words.splice(0..0, texts(member)).for_each(drop),
        ("args", Value::List(_)) => server.words.extend(texts(member)),
        ("env" | "environment", Value::Table(_)) => server.env = pairs(member),
        ("headers" | "http_headers", Value::Table(_)) => server.headers.extend(pairs(member)),
        ("env_http_headers", Value::Table(_)) => {
            let named = pairs(member).into_iter().map(|(name, variable)| (name, format!("${{{variable}}}")));
            server.headers.extend(named);
        }
        ("bearer_token_env_var", Value::Text(variable)) => {
            server.headers.push(("Authorization".into(), format!("Bearer ${{{variable}}}")));
        }
        ("url" | "httpUrl" | "serverUrl" | "uri", Value::Text(text)) => server.url = Some(text.clone()),
        ("cwd", Value::Text(text)) => server.cwd = Some(text.clone()),
        ("disabled", Value::Switch(on)) => server.disabled = *on,
        ("enabled", Value::Switch(on)) => server.disabled = !on,
        ("includeTools" | "enabled_tools", Value::List(_)) => server.allow = texts(member),
        ("excludeTools" | "disabled_tools", Value::List(_)) => server.deny = texts(member),
        _ => return false,
    }
    true
}

fn texts(entry: &Entry) -> Vec<String> {
    let Value::List(items) = &entry.node.value else { return Vec::new() };
    let text =
        |item: &tree::Node| if let Value::Text(text) = &item.value { Some(text.clone()) } else { None };
    items.iter().filter_map(text).collect()
}

fn pairs(entry: &Entry) -> Vec<(String, String)> {
    let text = |value: &Value| match value {
        Value::Text(text) | Value::Number(text) => Some(text.clone()),
        Value::Switch(on) => Some(on.to_string()),
        _ => None,
    };
    members(entry).iter().filter_map(|pair| Some((pair.name.clone(), text(&pair.node.value)?))).collect()
}

/// Of YAML only command lines are read.
fn goose(import: &mut Import, shown: &str, text: &str) {
    match stdio_servers(text, Shape::Goose) {
        Ok(servers) => {
            for (name, words) in servers {
                let left =
                    if words.is_some() { "its variables, and limits" } else { "what is no stdio server" };
                let server = Server { name, words: words.unwrap_or_default(), ..Server::default() };
                add(import, shown, server, vec![left.into()]);
            }
        }
        Err(why) => import.left.push(format!("{shown}: {why}")),
    }
}

/// Takes outlast off a server that runs through it, and puts it among the others.
fn add(import: &mut Import, shown: &str, mut server: Server, mut left: Vec<String>) {
    let name = visible(&server.name);
    if server.words.first().is_some_and(|word| is_outlast(word, "outlast")) {
        match unwrapped(&mut server) {
            Some(flags) => left.extend(flags),
            None => left.push("a command line of outlast without a server in it".into()),
        }
    }
    if !left.is_empty() {
        import.left.push(format!("{shown}: server `{name}`: not converted: {}", left.join(", ")));
    }
    if server.words.is_empty() && server.url.is_none() {
        return import
            .left
            .push(format!("{shown}: server `{name}` is left out: it starts and reaches nothing"));
    }
    import.servers.push(server);
}

/// What stands behind `--`, or the URL at the end. The flags that a file has no place for.
fn unwrapped(server: &mut Server) -> Option<Vec<String>> {
    let words = std::mem::take(&mut server.words);
    if let Some(dashes) = words.iter().position(|word| word == "--") {
        server.words = words[dashes + 1..].to_vec();
        return Some(flags::take(server, &words[1..dashes]));
    }
    let (url, rest) = words.split_last().filter(|(last, _)| last.contains("://"))?;
    server.url = Some(url.clone());
    Some(flags::take(server, rest.get(1..).unwrap_or_default()))
}
