//! `[clients."GLOB"]` and `[tokens.NAME]`.

use super::build::Draft;
use super::desk::Desk;
use super::place::At;
use super::server::{EXPOSE, Given};
use super::tree::Entry;
use super::{ClientRule, TokenRule};
use crate::client::http::token::check_name;
use crate::dashboard::sight::Reach;
use outlast_engine::policy::Selector;
use outlast_engine::settings::{Glob, Key, Setting, Value, setting};
use outlast_engine::{Bounds, ClientCap};

/// The keys of a client.
pub const CLIENT: [&str; 6] = ["client-cap", "hand-off", "profile", "servers", "expose", "callback"];
/// The keys of a token.
pub const TOKEN: [&str; 8] =
    ["hash", "servers", "tools", "dashboard", "max-in-flight", "queue", "queue-wait", "rate"];
/// Those of them that are settings of a server, too.
pub const BOUNDS: [Key; 4] = [Key::MaxInFlight, Key::Queue, Key::QueueWait, Key::Rate];

/// Globs with their places: what they match is known only when all files are read.
#[derive(Default)]
pub struct Seen {
    pub servers: Vec<(Glob, At)>,
    /// Of tools that a token may call.
    pub tools: Vec<(Glob, At)>,
}

/// Reads one client. What is known of it is a setting of the process.
pub fn client(desk: &mut Desk<'_>, entry: &Entry, draft: &mut Draft) -> Option<ClientRule> {
    let glob = desk.glob(&entry.name, entry.at)?;
    let table = format!("[clients.{:?}]", entry.name);
    let source = desk.source(&table, entry.at);
    let mut rule =
        ClientRule { glob, cap: None, hand_off: None, servers: None, expose: None, callback: None, source };
    for member in desk.table(entry) {
        match member.name.as_str() {
            "client-cap" => rule.cap = cap(desk, member),
            "hand-off" => rule.hand_off = desk.switch(member),
            "profile" => draft.process.extend(profile(desk, member, &entry.name, &rule.source)),
            "servers" => rule.servers = Some(servers(desk, member, &mut draft.seen)),
            "expose" => rule.expose = desk.choice(member, &EXPOSE),
            "callback" => rule.callback = callback(desk, member, &mut draft.called),
            _ => desk.unknown(member, &table, CLIENT),
        }
    }
    Some(rule)
}

fn cap(desk: &mut Desk<'_>, member: &Entry) -> Option<ClientCap> {
    let text = desk.setting(member, setting(Key::ClientCap)).pop()?;
    match setting(Key::ClientCap).parse(&text) {
        Ok(Value::Time(time)) => Some(time.map_or(ClientCap::Off, ClientCap::After)),
        _ => None,
    }
}

/// `profile = "cap:60s,progress:no"`: the row that `--client-profile` would add.
fn profile(desk: &mut Desk<'_>, member: &Entry, glob: &str, source: &str) -> Option<Given> {
    let text = format!("{glob}={}", desk.text(member)?);
    let setting = setting(Key::ClientProfile);
    Some(Given { selector: Selector::All, setting, text, source: source.into(), at: member.at })
}

/// Whether there is one of this name is known only when all files are read.
fn callback(desk: &mut Desk<'_>, member: &Entry, called: &mut Vec<(String, At)>) -> Option<Box<str>> {
    let name = desk.text(member)?;
    called.push((name.clone(), member.node.at));
    Some(name.into())
}

fn servers(desk: &mut Desk<'_>, member: &Entry, seen: &mut Seen) -> Vec<Glob> {
    let globs = desk.globs(member);
    seen.servers.extend(globs.iter().cloned());
    globs.into_iter().map(|(glob, _)| glob).collect()
}

fn tools(desk: &mut Desk<'_>, member: &Entry, seen: &mut Seen) -> Vec<Glob> {
    let globs = desk.globs(member);
    seen.tools.extend(globs.iter().cloned());
    globs.into_iter().map(|(glob, _)| glob).collect()
}

/// Reads one token.
pub fn token(desk: &mut Desk<'_>, entry: &Entry, seen: &mut Seen) -> Option<TokenRule> {
    let table = format!("[tokens.{}]", super::server::key(&entry.name));
    let (mut hash, mut of_servers, mut tools, mut bounds) = (None, None, None, Bounds::default());
    let (mut written, mut reach) = (false, Reach::default());
    for member in desk.table(entry) {
        match member.name.as_str() {
            "hash" => (hash, written) = (self::hash(desk, member), true),
            "servers" => of_servers = Some(servers(desk, member, seen)),
            "tools" => tools = Some(self::tools(desk, member, seen)),
            "dashboard" => reach = desk.choice(member, &Reach::WORDS).unwrap_or_default(),
            name => match BOUNDS.map(setting).into_iter().find(|item| item.name == name) {
                Some(item) => bound(desk, member, item, &mut bounds),
                None => desk.unknown(member, &table, TOKEN),
            },
        }
    }
    if !written {
        let help = format!("`outlast token new {}` makes a token and its hash", entry.name);
        desk.wrong(entry.at, format!("token `{}` has no hash", entry.name), Some(help));
    }
    if let Err(why) = check_name(&entry.name) {
        desk.wrong(entry.at, why, None);
    }
    let source = desk.source(&table, entry.at);
    Some(TokenRule {
        name: entry.name.clone(),
        hash: hash?,
        servers: of_servers,
        tools,
        bounds,
        reach,
        source,
    })
}

fn bound(desk: &mut Desk<'_>, member: &Entry, item: &'static Setting, bounds: &mut Bounds) {
    for value in desk.setting(member, item).iter().filter_map(|text| item.parse(text).ok()) {
        bounds.take(item.key, value);
    }
}

fn hash(desk: &mut Desk<'_>, member: &Entry) -> Option<[u8; 32]> {
    let text = desk.text(member)?;
    let hash = outlast_engine::hex::decode(&text);
    if hash.is_none() {
        let help = "write the 64 digits that `outlast token new NAME` prints behind the name".to_owned();
        desk.wrong_in_secret(member.node.at, "the hash is not the SHA-256 of a token in hex", Some(help));
    }
    hash
}
