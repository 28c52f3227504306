//! What is no mistake and probably not meant.

use super::SEPARATOR;
use super::build::Draft;
use super::desk::Desk;
use super::place::At;
use super::server::{Given, Written};
use outlast_engine::policy::Selector;
use outlast_engine::settings::{Glob, Key, Value, nearest};
use std::collections::{HashMap, HashSet};

/// Methods that MCP has.
const METHODS: [&str; 27] = [
    "initialize",
    "server/discover",
    "ping",
    "tools/call",
    "tools/list",
    "prompts/get",
    "prompts/list",
    "resources/read",
    "resources/list",
    "resources/templates/list",
    "resources/subscribe",
    "resources/unsubscribe",
    "subscriptions/listen",
    "completion/complete",
    "logging/setLevel",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/cancel",
    "tasks/update",
    "requests/resume",
    "sampling/createMessage",
    "elicitation/create",
    "roots/list",
    "notifications/initialized",
    "notifications/cancelled",
    "notifications/progress",
];

/// Looks at everything that was written.
pub fn warn(desk: &mut Desk<'_>, draft: &Draft) {
    rules(desk, &draft.defaults);
    for server in &draft.servers {
        rules(desk, &server.given);
        denied(desk, server);
    }
    twins(desk, &draft.servers);
    alone(desk, &draft.servers);
    for (glob, at) in &draft.seen.servers {
        if !draft.servers.iter().any(|server| glob.matches(&server.name)) {
            desk.warn(*at, format!("`{glob}` matches no server of this file"), None);
        }
    }
    let separator = draft.separator.as_deref().unwrap_or(SEPARATOR);
    for (glob, at) in &draft.seen.tools {
        of_no_server(desk, draft, separator, glob, *at);
    }
}

/// One server alone is not behind the merged door, but for stdio clients.
fn alone(desk: &mut Desk<'_>, servers: &[Written]) {
    let mut enabled = servers.iter().filter(|server| !server.disabled);
    let (Some(only), None) = (enabled.next(), enabled.next()) else { return };
    for (key, at) in &only.at_merged {
        let what = format!("`{key}` is for stdio clients alone while `{}` is the only server", only.name);
        let help = "with `outlast serve`, /mcp leads to the server itself, whose names stay as they are";
        desk.warn(*at, what, Some(help.into()));
    }
}

/// A token's tools of a server that is not there: probably its name is mistyped.
fn of_no_server(desk: &mut Desk<'_>, draft: &Draft, separator: &str, tools: &Glob, at: At) {
    let text = tools.to_string();
    let Some((prefix, tool)) = text.split_once(separator) else { return };
    let names = || draft.servers.iter().map(|server| server.name.as_str());
    let Ok(servers) = Glob::new(prefix) else { return };
    if names().any(|name| servers.matches(name)) {
        return;
    }
    let meant = nearest(prefix, names()).map(|meant| format!("did you mean `{meant}{separator}{tool}`?"));
    desk.warn(
        at,
        format!("`{tools}` names tools of `{prefix}`, and no server of this file is called so"),
        meant,
    );
}

fn rules(desk: &mut Desk<'_>, given: &[Given]) {
    let mut methods = HashSet::new();
    for rule in given {
        let Selector::Methods(glob) = &rule.selector else { continue };
        if methods.insert(glob.to_string()) && !METHODS.iter().any(|method| glob.matches(method)) {
            desk.warn(rule.at, format!("`{glob}` matches no method of MCP"), None);
        }
    }
    clocks(desk, given);
    never_win(desk, given);
}

/// Three clocks of one value: which of them fires first is chance.
fn clocks(desk: &mut Desk<'_>, given: &[Given]) {
    for table in given.chunk_by(|one, next| one.selector == next.selector) {
        let mut clocks: HashMap<std::time::Duration, Vec<&Given>> = HashMap::new();
        for rule in table.iter().filter(|rule| rule.setting.key != Key::KeepAlive) {
            if let Ok(Value::Time(Some(time))) = rule.setting.parse(&rule.text) {
                clocks.entry(time).or_default().push(rule);
            }
        }
        for same in clocks.into_values().filter(|same| same.len() >= 3) {
            let names: Vec<&str> = same.iter().map(|rule| rule.setting.name).collect();
            let what = format!("{} are all {}", names.join(", "), same[0].text);
            desk.warn(same[2].at, what, Some("which of them fires first is chance; set them apart".into()));
        }
    }
}

/// Of two rules for one exact name the later wins, so the earlier does nothing.
fn never_win(desk: &mut Desk<'_>, given: &[Given]) {
    let mut taken: HashSet<(&str, bool, &str)> = HashSet::new();
    for rule in given.iter().rev() {
        let (is_tool, glob) = match &rule.selector {
            Selector::All => continue,
            Selector::Methods(glob) => (false, glob),
            Selector::Tools(glob) => (true, glob),
        };
        let Some(names) = glob.names() else { continue };
        let fresh = names.iter().filter(|name| taken.insert((rule.setting.name, is_tool, name))).count();
        if fresh == 0 {
            let what = format!("this `{}` never counts: a later table names `{glob}` too", rule.setting.name);
            desk.warn(rule.at, what, None);
        }
    }
}

/// Limits for tools that nobody can call.
fn denied(desk: &mut Desk<'_>, server: &Written) {
    let any = |globs: &[(Glob, _)], name: &str| globs.iter().any(|(glob, _)| glob.matches(name));
    let mut told = HashSet::new();
    for rule in &server.given {
        let Selector::Tools(glob) = &rule.selector else { continue };
        let Some(names) = glob.names() else { continue };
        let hidden =
            |name: &&str| any(&server.deny, name) || (!server.allow.is_empty() && !any(&server.allow, name));
        if names.iter().all(hidden) && told.insert(glob.to_string()) {
            let what = format!("`{glob}` matches no tool that `tools.allow` and `tools.deny` leave");
            desk.warn(rule.at, what, None);
        }
    }
}

/// Two servers of one command are two processes that do the same.
fn twins(desk: &mut Desk<'_>, servers: &[Written]) {
    let mut known: HashMap<String, &str> = HashMap::new();
    for server in servers {
        let Some(target) = &server.target else { continue };
        if let Some(first) = known.insert(format!("{target:?}"), &server.name) {
            let what = format!("servers `{first}` and `{}` are the same command", server.name);
            desk.warn(server.at, what, Some("a server may have several clients; one is enough".into()));
        }
    }
}
