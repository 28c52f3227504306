//! Which servers a JSON file of a client describes, and where their command lines stand.

use super::{Member, Node, Value, parse};
use crate::install::clients::Shape;
use crate::install::server::{Kind, Launch, List, Missing, Problem, Server, Word, joint, own_line};

/// Members that name the address of a server somewhere else.
const ADDRESSES: [&str; 4] = ["url", "httpUrl", "serverUrl", "uri"];

/// The servers of a file, in its order.
pub fn servers(source: &str, shape: Shape) -> Result<Vec<Server>, Problem> {
    let root = parse(source)?;
    if !matches!(root.value, Value::Object(_)) {
        return Err(Problem::new(root.span.start, "the document is not an object"));
    }
    let joined = shape == Shape::OpenCode;
    let mut found = Vec::new();
    for map in maps(&root, shape) {
        if !matches!(map.node.value, Value::Object(_)) {
            return Err(Problem::new(map.node.span.start, format!("`{}` is not an object", map.name)));
        }
        let entries = map.node.members().iter().filter(|entry| !is_map_of_servers(entry, shape));
        found.extend(entries.map(|entry| server(source, entry, joined)));
    }
    Ok(found)
}

/// The objects whose members are servers.
fn maps(root: &Node, shape: Shape) -> Vec<&Member> {
    let key = match shape {
        Shape::Servers => "servers",
        Shape::OpenCode => "mcp",
        _ => "mcpServers",
    };
    let mut maps: Vec<&Member> = root.get(key).into_iter().collect();
    if shape == Shape::ClaudeUser {
        let projects = root.get("projects").map(|projects| projects.node.members()).unwrap_or_default();
        maps.extend(projects.iter().filter_map(|project| project.node.get(key)));
    }
    if shape == Shape::OpenCode {
        let inner = root.get(key).and_then(|map| map.node.get("servers"));
        maps.extend(inner.filter(|inner| is_map_of_servers(inner, shape)));
    }
    maps
}

/// opencode 2 keeps servers under `mcp.servers`, opencode 1 directly under `mcp`, where one may be
/// called `servers` and something that is no object is a setting.
fn is_map_of_servers(entry: &Member, shape: Shape) -> bool {
    let is_server = ["type", "command", "enabled"].iter().any(|name| match entry.node.get(name) {
        Some(member) => !matches!(member.node.value, Value::Object(_)),
        None => false,
    });
    let is_object = matches!(entry.node.value, Value::Object(_));
    shape == Shape::OpenCode && (!is_object || (entry.name == "servers" && !is_server))
}

fn server(source: &str, entry: &Member, joined: bool) -> Server {
    let numbers = entry.node.members().iter().filter_map(|member| {
        let text = &source[member.node.span.clone()];
        matches!(member.node.value, Value::Plain).then(|| Some((member.name.clone(), text.parse().ok()?)))?
    });
    let numbers = numbers.collect();
    Server { name: entry.name.clone(), at: entry.key.start, kind: kind(source, &entry.node, joined), numbers }
}

fn kind(source: &str, node: &Node, joined: bool) -> Kind {
    if !matches!(node.value, Value::Object(_)) {
        return Kind::Unclear("it is not an object");
    }
    if ADDRESSES.iter().any(|name| node.get(name).is_some()) {
        return Kind::Remote;
    }
    let Some(command) = node.get("command") else { return Kind::NoCommand };
    let transport = node.get("type").and_then(|member| member.node.text(source));
    if transport.is_some_and(|transport| transport != "stdio" && transport != "local") {
        return Kind::Unclear("it has a command, but its type is not stdio");
    }
    if ["command", "args"].iter().any(|name| count(node, name) > 1) {
        return Kind::Unclear("its command or its list of arguments is written twice");
    }
    let launch = if joined { one_list(source, command) } else { apart(source, node, command) };
    launch.map_or_else(Kind::Unclear, Kind::Stdio)
}

fn count(node: &Node, name: &str) -> usize {
    node.members().iter().filter(|member| member.name == name).count()
}

/// `"command": "npx", "args": ["-y", "server"]`
fn apart(source: &str, node: &Node, command: &Member) -> Result<Launch, &'static str> {
    if !matches!(command.node.value, Value::Text) {
        return Err("its command is not text");
    }
    let args = node.get("args");
    let list = match args {
        Some(args) => Some(list(source, &args.node).ok_or("its arguments are not a list")?),
        None => None,
    };
    let keys = [Some(command), args].into_iter().flatten().map(|member| member.key.clone()).collect();
    let space = own_line(source, command.key.start).unwrap_or_else(|| " ".into());
    let missing = Missing {
        at: command.node.span.end,
        before: format!(",{space}\"args\": ["),
        between: ", ".into(),
        after: "]",
    };
    Ok(Launch { command: word(source, &command.node), list, joined: false, missing, keys })
}

/// `"command": ["npx", "-y", "server"]`
fn one_list(source: &str, command: &Member) -> Result<Launch, &'static str> {
    let list = list(source, &command.node).ok_or("its command is not a list")?;
    let first = list.items.first().ok_or("its command is empty")?.clone();
    let missing = Missing { at: 0, before: String::new(), between: String::new(), after: "" };
    Ok(Launch { command: first, list: Some(list), joined: true, missing, keys: vec![command.key.clone()] })
}

fn list(source: &str, node: &Node) -> Option<List> {
    let Value::Array(items) = &node.value else { return None };
    let items: Vec<Word> = items.iter().map(|item| word(source, item)).collect();
    Some(List { span: node.span.clone(), joint: joint(source, &items), items, by_lines: false })
}

fn word(source: &str, node: &Node) -> Word {
    Word { span: node.span.clone(), text: node.text(source) }
}
