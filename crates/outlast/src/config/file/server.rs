//! `[servers.NAME]`, whether of our own file or of a client's.

use super::desk::{Desk, setting_named, settings_of};
use super::place::At;
use super::tree::{Entry, Format, Value};
use super::{Expose, TargetSpec};
use http::{HeaderName, HeaderValue, Uri};
use outlast_engine::policy::Selector;
use outlast_engine::settings::{Glob, Key, Place, Setting, setting};
use std::path::PathBuf;

/// Settings of one table: at most so many. What is more is refused.
const SETTINGS: usize = 1000;

/// A setting that stands in the file.
pub struct Given {
    pub selector: Selector,
    pub setting: &'static Setting,
    pub text: String,
    pub source: Box<str>,
    pub at: At,
}

/// A server as it is written.
pub struct Written {
    pub name: String,
    pub at: At,
    pub source: Box<str>,
    pub target: Option<TargetSpec>,
    pub given: Vec<Given>,
    pub disabled: bool,
    pub eager: bool,
    pub expose: Option<Expose>,
    pub allow: Vec<(Glob, At)>,
    pub deny: Vec<(Glob, At)>,
    pub aliases: Vec<(String, String)>,
    /// What is written for the merged door alone.
    pub at_merged: Vec<(&'static str, At)>,
}

/// The keys of a server that are no settings.
pub const KEYS: [&str; 13] = [
    "command", "args", "env", "cwd", "url", "headers", "expose", "start", "disabled", "aliases", "tools",
    "methods", "type",
];

/// How tools are shown, in words.
pub const EXPOSE: [(&str, Expose); 3] =
    [("names", Expose::Names), ("plain-names", Expose::PlainNames), ("on-demand", Expose::OnDemand)];

/// What is started or reached, as it is written.
#[derive(Default)]
struct Target {
    command: Option<(String, At)>,
    args: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<PathBuf>,
    url: Option<(String, At)>,
    headers: Vec<(String, String)>,
    headers_at: Option<At>,
}

/// Reads one server.
pub fn read(desk: &mut Desk<'_>, entry: &Entry, format: Format) -> Written {
    let ours = format == Format::Toml;
    let section = if ours { format!("[servers.{}]", key(&entry.name)) } else { format!("`{}`", entry.name) };
    let mut server = Written {
        name: entry.name.clone(),
        at: entry.at,
        source: desk.source(&section, entry.at),
        target: None,
        given: Vec::new(),
        disabled: false,
        eager: false,
        expose: None,
        allow: Vec::new(),
        deny: Vec::new(),
        aliases: Vec::new(),
        at_merged: Vec::new(),
    };
    let mut target = Target::default();
    for member in desk.table(entry) {
        if takes_target(desk, &mut target, member) {
            continue;
        }
        if ours { own(desk, &mut server, member) } else { foreign(desk, &mut server, member) }
    }
    server.target = target.checked(desk, entry);
    server
}

/// A name as TOML writes it.
pub fn key(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) { name.to_owned() } else { format!("\"{name}\"") }
}

fn takes_target(desk: &mut Desk<'_>, target: &mut Target, member: &Entry) -> bool {
    let at = member.node.at;
    match member.name.as_str() {
        "command" => target.command = desk.text(member).map(|text| (text, at)),
        "args" => target.args = desk.texts(member).into_iter().map(|(text, _)| text).collect(),
        "env" => target.env = desk.pairs(member),
        "cwd" => target.cwd = desk.text(member).map(|text| desk.path(&text, at)),
        "url" | "httpUrl" | "serverUrl" => target.url = desk.text(member).map(|text| (text, at)),
        "headers" => (target.headers, target.headers_at) = (desk.pairs(member), Some(member.at)),
        "type" => transport(desk, member),
        _ => return false,
    }
    true
}

fn transport(desk: &mut Desk<'_>, member: &Entry) {
    let known = ["stdio", "local", "http", "remote", "streamable-http", "streamableHttp"];
    match desk.text(member) {
        Some(word) if word == "sse" => {
            let help = "outlast speaks streamable HTTP; most servers have it at /mcp".to_owned();
            desk.warn(member.node.at, "the transport `sse` is deprecated", Some(help));
        }
        Some(word) if !known.contains(&word.as_str()) => {
            desk.wrong(
                member.node.at,
                format!("unknown transport `{word}`"),
                Some("write \"stdio\" or \"http\"".into()),
            );
        }
        _ => {}
    }
}

fn own(desk: &mut Desk<'_>, server: &mut Written, member: &Entry) {
    let table = format!("[servers.{}]", key(&server.name));
    match member.name.as_str() {
        "expose" => {
            server.expose = desk.choice(member, &EXPOSE);
            server.at_merged.push(("expose", member.at));
        }
        "start" => server.eager = desk.choice(member, &[("lazy", false), ("eager", true)]) == Some(true),
        "disabled" => server.disabled = desk.switch(member) == Some(true),
        "aliases" => {
            server.aliases = aliases(desk, member);
            server.at_merged.push(("aliases", member.at));
        }
        "tools" => tools(desk, server, member),
        "methods" => {
            let section = format!("servers.{}.methods", key(&server.name));
            for glob in desk.table(member) {
                selected(desk, &mut server.given, glob, &section, Selector::Methods);
            }
        }
        name => match setting_named(name, &[Place::Call, Place::Server]) {
            Some(item) => give(desk, &mut server.given, member, item, &Selector::All, &table),
            None => {
                let settings = settings_of(&[Place::Call, Place::Server]).map(|item| item.name);
                desk.unknown(member, &table, KEYS.into_iter().chain(settings));
            }
        },
    }
}

/// `tools.allow` and `tools.deny` are lists; every other key is a glob with a table.
fn tools(desk: &mut Desk<'_>, server: &mut Written, member: &Entry) {
    let section = format!("servers.{}.tools", key(&server.name));
    for tool in desk.table(member) {
        match (tool.name.as_str(), &tool.node.value) {
            ("allow", Value::List(_)) => server.allow = desk.globs(tool),
            ("deny", Value::List(_)) => server.deny = desk.globs(tool),
            _ => selected(desk, &mut server.given, tool, &section, Selector::Tools),
        }
    }
}

/// A table of settings for some tools or methods.
pub fn selected(
    desk: &mut Desk<'_>,
    given: &mut Vec<Given>,
    entry: &Entry,
    section: &str,
    of: fn(Glob) -> Selector,
) {
    let Some(glob) = desk.glob(&entry.name, entry.at) else { return };
    let table = format!("[{section}.{:?}]", entry.name);
    let selector = of(glob);
    for member in desk.table(entry) {
        match setting_named(&member.name, &[Place::Call]) {
            Some(item) => give(desk, given, member, item, &selector, &table),
            None => desk.unknown(member, &table, settings_of(&[Place::Call]).map(|item| item.name)),
        }
    }
}

/// One setting of a table.
pub fn give(
    desk: &mut Desk<'_>,
    given: &mut Vec<Given>,
    entry: &Entry,
    setting: &'static Setting,
    selector: &Selector,
    table: &str,
) {
    if given.len() >= SETTINGS {
        return desk.wrong(entry.at, format!("more than {SETTINGS} settings for one server"), None);
    }
    let source = desk.source(table, entry.at);
    for text in desk.setting(entry, setting) {
        let text = if setting.kind == outlast_engine::settings::Kind::Path {
            desk.path(&text, entry.at).to_string_lossy().into_owned()
        } else {
            text
        };
        given.push(Given { selector: selector.clone(), setting, text, source: source.clone(), at: entry.at });
    }
}

fn aliases(desk: &mut Desk<'_>, member: &Entry) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for alias in desk.table(member) {
        let Some(public) = desk.text(alias) else { continue };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if public.is_empty() || public.len() > 64 || !public.chars().all(plain) {
            let help = "a tool's name has up to 64 of A-Z, a-z, 0-9, _ and -".to_owned();
            desk.wrong(alias.node.at, format!("`{public}` cannot be the name of a tool"), Some(help));
        }
        found.push((alias.name.clone(), public));
    }
    found
}

/// What a client's own file says besides. It is written for the client, so what we do not know is no mistake.
fn foreign(desk: &mut Desk<'_>, server: &mut Written, member: &Entry) {
    match (member.name.as_str(), &member.node.value) {
        ("disabled", Value::Switch(on)) => server.disabled = *on,
        ("enabled", Value::Switch(on)) => server.disabled = !on,
        // For people, and for models that choose by it.
        ("description", Value::Text(_)) => {}
        ("features", Value::Table(features)) => features.iter().for_each(|one| feature(desk, server, one)),
        ("timeout", Value::Text(_)) => {
            let table = format!("`{}`", server.name);
            give(desk, &mut server.given, member, setting(Key::Timeout), &Selector::All, &table);
        }
        ("timeout", _) => {
            let help =
                "some clients mean seconds and some milliseconds; write \"30s\", or a table in outlast.toml";
            desk.warn(member.at, "`timeout` has no unit and is not used", Some(help.into()));
        }
        (name, _) => desk.warn(member.at, format!("outlast does not use `{name}` of a client's file"), None),
    }
}

/// A kind of things that is switched off. Of tools we can leave all out.
fn feature(desk: &mut Desk<'_>, server: &mut Written, member: &Entry) {
    match (member.name.as_str(), &member.node.value) {
        (_, Value::Switch(true)) => {}
        ("tools", Value::Switch(false)) => {
            server.deny.extend(Glob::new("*").ok().map(|all| (all, member.at)))
        }
        (name, _) => {
            let what = format!("outlast shows the {name} of every server: `features.{name}` is not used");
            desk.warn(member.at, what, None);
        }
    }
}

impl Target {
    fn checked(self, desk: &mut Desk<'_>, entry: &Entry) -> Option<TargetSpec> {
        let name = &entry.name;
        match (self.command, self.url) {
            (Some((command, at)), None) => {
                if command.trim().is_empty() {
                    desk.wrong(at, format!("the command of server `{name}` is empty"), None);
                }
                if let Some(at) = self.headers_at {
                    desk.wrong(at, format!("server `{name}` has headers and no url"), None);
                }
                let words = std::iter::once(command).chain(self.args);
                let env = self.env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
                Some(TargetSpec::Command { argv: words.map(Into::into).collect(), env, cwd: self.cwd })
            }
            (None, Some((text, at))) => {
                let headers = headers(desk, self.headers, self.headers_at.unwrap_or(at));
                Some(TargetSpec::Remote { url: url(desk, &text, at)?, headers })
            }
            (None, None) => {
                let help = "write `command = \"npx\"` or `url = \"https://host/mcp\"`".to_owned();
                desk.wrong(entry.at, format!("server `{name}` has neither a command nor a url"), Some(help));
                None
            }
            (Some(_), Some((_, at))) => {
                let what = format!("server `{name}` has both a command and a url");
                desk.wrong(at, what, Some("leave one of them out".into()));
                None
            }
        }
    }
}

/// The address of a server. Its text is not shown: it may hold a secret.
fn url(desk: &mut Desk<'_>, text: &str, at: At) -> Option<Uri> {
    let whole = text.starts_with("http://") || text.starts_with("https://");
    let found: Option<Uri> = text.parse().ok().filter(|_| whole);
    let authority = found.as_ref().and_then(Uri::authority).map(|authority| authority.as_str().to_owned());
    let Some((url, authority)) = found.zip(authority) else {
        desk.wrong_in_secret(
            at,
            "this is not the URL of an MCP server",
            Some("write https://host/mcp".into()),
        );
        return None;
    };
    if authority.contains('@') {
        let help = "write headers = { Authorization = \"Bearer ${TOKEN}\" }".to_owned();
        desk.wrong_in_secret(at, "a URL must not hold credentials", Some(help));
        return None;
    }
    Some(url)
}

fn headers(desk: &mut Desk<'_>, written: Vec<(String, String)>, at: At) -> Vec<(HeaderName, HeaderValue)> {
    let mut found = Vec::new();
    for (name, value) in written {
        match (name.parse::<HeaderName>(), HeaderValue::from_str(&value)) {
            (Ok(name), Ok(value)) => found.push((name, value)),
            (Err(_), _) => desk.wrong_in_secret(at, format!("`{name}` is not a header name"), None),
            (_, Err(_)) => {
                desk.wrong_in_secret(
                    at,
                    format!("the value of header `{name}` holds what no header may"),
                    None,
                );
            }
        }
    }
    found
}
