//! What a gateway runs on, made of the tables of all files.

use super::callback;
use super::client::{self, Seen};
use super::desk::{Desk, setting_named, settings_of};
use super::gather::Part;
use super::odd;
use super::place::At;
use super::server::{self, Given, Written};
use super::tree::{Entry, Format};
use super::{CallbackRule, ClientRule, Defined, Gateway, SEPARATOR, TargetSpec, TokenRule};
use crate::config::{HEARTBEAT, RemoteSettings, Settings, take_of_server};
use outlast_engine::policy::{Rules, Selector, Standing};
use outlast_engine::settings::{Place, nearest};
use outlast_engine::{ServerConfig, Transport};
use std::collections::HashMap;
use std::sync::Arc;

/// How many servers there may be.
const SERVERS: usize = 500;
/// How many settings `[defaults]` and its tables may have: each server gets them.
const DEFAULTS: usize = 200;
/// The tables of the file.
pub const TABLES: [&str; 10] = [
    "include",
    "defaults",
    "servers",
    "clients",
    "tokens",
    "callbacks",
    "listen",
    "store",
    "log",
    "separator",
];

/// What all files say.
#[derive(Default)]
pub struct Draft {
    pub defaults: Vec<Given>,
    /// Settings of the whole process.
    pub process: Vec<Given>,
    pub servers: Vec<Written>,
    clients: Vec<ClientRule>,
    tokens: Vec<TokenRule>,
    callbacks: Vec<CallbackRule>,
    /// Callbacks that clients name.
    pub called: Vec<(String, At)>,
    pub seen: Seen,
    pub separator: Option<String>,
}

/// Reads the tables. What is made of files with mistakes is not used.
pub fn build(desk: &mut Desk<'_>, parts: &[Part]) -> Gateway {
    let mut draft = Draft::default();
    for part in parts {
        for entry in &part.entries {
            match part.format {
                Format::Toml => table(desk, &mut draft, entry),
                Format::Json => of_client(desk, &mut draft, entry),
            }
        }
    }
    names(desk, &mut draft);
    called(desk, &draft);
    odd::warn(desk, &draft);
    gateway(desk, draft)
}

fn table(desk: &mut Desk<'_>, draft: &mut Draft, entry: &Entry) {
    match entry.name.as_str() {
        "include" => {}
        "separator" => separator(desk, draft, entry),
        "defaults" => defaults(desk, draft, entry),
        "servers" => {
            for member in desk.table(entry) {
                draft.servers.push(server::read(desk, member, Format::Toml));
            }
        }
        "clients" => {
            for member in desk.table(entry) {
                let read = client::client(desk, member, draft);
                draft.clients.extend(read);
            }
        }
        "tokens" => {
            for member in desk.table(entry) {
                draft.tokens.extend(client::token(desk, member, &mut draft.seen));
            }
        }
        "callbacks" => {
            for member in desk.table(entry) {
                draft.callbacks.extend(callback::callback(desk, member));
            }
        }
        "listen" => process(desk, draft, entry, Place::Listen),
        "store" => process(desk, draft, entry, Place::Store),
        "log" => process(desk, draft, entry, Place::Log),
        _ => desk.unknown(entry, "the file", TABLES),
    }
}

fn separator(desk: &mut Desk<'_>, draft: &mut Draft, entry: &Entry) {
    let Some(text) = desk.text(entry) else { return };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if text.is_empty() || text.len() > 4 || !text.chars().all(plain) {
        let help = "clients take A-Z, a-z, 0-9, _ and - in the name of a tool; up to four of them".to_owned();
        return desk.wrong(entry.node.at, format!("`{text}` cannot be the separator"), Some(help));
    }
    draft.separator = Some(text);
}

fn defaults(desk: &mut Desk<'_>, draft: &mut Draft, entry: &Entry) {
    for member in desk.table(entry) {
        match member.name.as_str() {
            "tools" => {
                for glob in desk.table(member) {
                    server::selected(desk, &mut draft.defaults, glob, "defaults.tools", Selector::Tools);
                }
            }
            "methods" => {
                for glob in desk.table(member) {
                    server::selected(desk, &mut draft.defaults, glob, "defaults.methods", Selector::Methods);
                }
            }
            name => {
                let (of_server, of_process) = (&[Place::Call, Place::Server], &[Place::Process]);
                if let Some(item) = setting_named(name, of_server) {
                    server::give(desk, &mut draft.defaults, member, item, &Selector::All, "[defaults]");
                } else if let Some(item) = setting_named(name, of_process) {
                    server::give(desk, &mut draft.process, member, item, &Selector::All, "[defaults]");
                } else {
                    let known =
                        settings_of(&[Place::Call, Place::Server, Place::Process]).map(|item| item.name);
                    desk.unknown(member, "[defaults]", known.chain(["tools", "methods"]));
                }
            }
        }
    }
    if draft.defaults.len() > DEFAULTS {
        desk.wrong(entry.at, format!("more than {DEFAULTS} settings in [defaults]"), None);
    }
}

/// `[listen]`, `[store]`, `[log]`.
fn process(desk: &mut Desk<'_>, draft: &mut Draft, entry: &Entry, place: Place) {
    let table = format!("[{}]", entry.name);
    for member in desk.table(entry) {
        // In `[store]`, `url` is `store-url`.
        let long = format!("{}-{}", entry.name, member.name);
        match setting_named(&member.name, &[place]).or_else(|| setting_named(&long, &[place])) {
            Some(item) => server::give(desk, &mut draft.process, member, item, &Selector::All, &table),
            None => desk.unknown(member, &table, settings_of(&[place]).map(|item| item.name)),
        }
    }
}

/// A client's own file: its servers. What else stands there is the client's.
fn of_client(desk: &mut Desk<'_>, draft: &mut Draft, entry: &Entry) {
    if !matches!(entry.name.as_str(), "mcpServers" | "servers") {
        return;
    }
    for member in desk.table(entry) {
        let mut written = server::read(desk, member, Format::Json);
        let name = fitting(&written.name);
        if name != written.name {
            desk.warn(written.at, format!("server `{}` is called `{name}` here", written.name), None);
        }
        written.name = name;
        draft.servers.push(written);
    }
}

/// A client takes any name for a server; ours becomes part of the names of tools.
pub fn fitting(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let mut fitting: String = name.chars().map(plain).take(32).collect();
    while fitting.contains(SEPARATOR) {
        fitting = fitting.replace(SEPARATOR, "_");
    }
    fitting
}

/// Every name can stand before a tool's, and is there once.
fn names(desk: &mut Desk<'_>, draft: &mut Draft) {
    let separator = draft.separator.as_deref().unwrap_or(SEPARATOR);
    let mut known: HashMap<&str, At> = HashMap::new();
    for server in &draft.servers {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let fits = (1..=32).contains(&server.name.len()) && server.name.chars().all(plain);
        let name = &server.name;
        if !fits {
            let help = "a name has 1 to 32 of A-Z, a-z, 0-9, _ and -".to_owned();
            desk.wrong(server.at, format!("`{name}` cannot be the name of a server"), Some(help));
        } else if name.contains(separator) {
            let help = format!("`{separator}` separates a server from its tools; leave it out of the name");
            desk.wrong(server.at, format!("the name `{name}` holds the separator"), Some(help));
        }
        if let Some(first) = known.insert(name, server.at) {
            let first = desk.source("", first);
            desk.wrong(server.at, format!("there is a server `{name}` already{first}"), None);
        }
    }
    if let Some(server) = draft.servers.get(SERVERS) {
        desk.wrong(server.at, format!("more than {SERVERS} servers"), None);
        draft.servers.truncate(SERVERS);
    }
}

/// Every callback that a client has is there. One with a mistake of its own is known by its table.
fn called(desk: &mut Desk<'_>, draft: &Draft) {
    let known: Vec<&str> = draft.callbacks.iter().map(|rule| &*rule.name).collect();
    for (name, at) in &draft.called {
        if !known.contains(&name.as_str()) {
            let meant = nearest(name, known.iter().copied());
            let help = match meant {
                Some(meant) => format!("did you mean `{meant}`?"),
                None => format!("write [callbacks.{}] with a url and a secret", server::key(name)),
            };
            desk.wrong(*at, format!("there is no callback `{name}`"), Some(help));
        }
    }
}

fn gateway(desk: &mut Desk<'_>, draft: Draft) -> Gateway {
    let mut settings = Settings::new(&[]).serving();
    for given in &draft.process {
        if let Err(why) = settings.take(given.setting, &given.text, &given.source) {
            desk.wrong(given.at, why.0, None);
        }
    }
    let process = draft.process.iter().map(|given| (given.setting.name, given.text.clone())).collect();
    let Draft { servers, defaults, clients, tokens, callbacks, separator, .. } = draft;
    let servers = servers.into_iter().filter_map(|server| defined(server, &defaults)).collect();
    let separator = separator.unwrap_or_else(|| SEPARATOR.to_owned());
    settings.engine.clients = clients.into_iter().map(Arc::new).collect();
    Gateway {
        settings,
        servers,
        tokens,
        callbacks,
        separator,
        process,
        files: Vec::new(),
        warnings: Vec::new(),
    }
}

fn defined(server: Written, defaults: &[Given]) -> Option<Defined> {
    let target = server.target?;
    let (transport, command) = match &target {
        TargetSpec::Command { argv, .. } => {
            (Transport::Process, argv.first()?.to_string_lossy().into_owned())
        }
        TargetSpec::Remote { url, .. } => (Transport::Http, url.host().unwrap_or_default().to_owned()),
    };
    let (name, command) = (server.name.into(), command.into());
    let heartbeat = Some(HEARTBEAT);
    let mut config = ServerConfig { name, command, transport, heartbeat, ..ServerConfig::default() };
    let mut remote = RemoteSettings::default();
    let mut rules = Rules::default();
    for (standing, given) in [(Standing::Defaults, defaults), (Standing::Server, &server.given)] {
        given.iter().for_each(|given| take(&mut config, &mut remote, &mut rules, standing, given));
    }
    config.rules = Arc::new(rules);
    let plain = |globs: Vec<(_, At)>| globs.into_iter().map(|(glob, _)| glob).collect();
    Some(Defined {
        config,
        target,
        remote,
        disabled: server.disabled,
        eager: server.eager,
        expose: server.expose,
        allow: plain(server.allow),
        deny: plain(server.deny),
        aliases: server.aliases,
        source: server.source,
    })
}

fn take(
    config: &mut ServerConfig,
    remote: &mut RemoteSettings,
    rules: &mut Rules,
    standing: Standing,
    given: &Given,
) {
    let Ok(value) = given.setting.parse(&given.text) else { return };
    if let Some(value) = take_of_server(config, remote, given.setting.key, value) {
        rules.write(standing, given.selector.clone(), given.setting.key, value, &given.source);
    }
}
