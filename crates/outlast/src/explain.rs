//! `outlast explain`: every limit of a tool with the place it was written at, what it won over, and how long a call
//! can last.

mod token;

use crate::clients::{advice, learned};
use crate::config::file::{self, BOUNDS, Defined, Gateway};
use crate::observe::{stderr, stdout};
use outlast_engine::durations::reason;
use outlast_engine::method::Method;
use outlast_engine::policy::{CallFacts, Declared, Limit, Policy, Written};
use outlast_engine::profile::{Effect, Introduction, Verdict, verdict};
use outlast_engine::settings::{
    Key, Place, SETTINGS, Setting, Signs, Value, nearest, setting, show_duration,
};
use outlast_engine::{Bounds, ClientCap};
use serde_json::json;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use token::Token;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    pub server: String,
    pub tool: String,
    pub client: Option<String>,
    pub token: Option<String>,
    pub path: PathBuf,
    pub json: bool,
}

/// Reads the file and explains. Fails if the file cannot be used or has no such server.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let mut gateway = match file::load(&request.path) {
        Ok(gateway) => gateway,
        Err(mistakes) => {
            crate::cli::show_mistakes(&mistakes);
            return Ok(ExitCode::FAILURE);
        }
    };
    if let Err(why) = gateway.overrule(&[]) {
        stderr::say(&why.0);
        return Ok(ExitCode::FAILURE);
    }
    let place = gateway.settings.place();
    learned::teach(&mut gateway.settings.engine, &place);
    let Some(server) = gateway.servers.iter().find(|server| *server.config.name == *request.server) else {
        stderr::say(&no_such_server(&gateway, &request.server));
        return Ok(ExitCode::FAILURE);
    };
    let token = request.token.as_deref().map(|name| Token::of(&gateway, name, server, &request.tool));
    let token = match token.transpose() {
        Ok(token) => token,
        Err(why) => {
            stderr::say(&why);
            return Ok(ExitCode::FAILURE);
        }
    };
    let explained = Explained::new(&gateway, server, token, request);
    let text = if request.json { format!("{}\n", explained.json(request)) } else { explained.text(request) };
    stdout::print(text)?;
    Ok(ExitCode::SUCCESS)
}

fn no_such_server(gateway: &Gateway, name: &str) -> String {
    let known = || gateway.servers.iter().map(|server| &*server.config.name);
    let hint = nearest(name, known()).map(|meant| format!("did you mean {meant}?"));
    let hint = hint.unwrap_or_else(|| format!("it has: {}", known().collect::<Vec<_>>().join(", ")));
    format!("the file has no server `{name}`; {hint}")
}

/// One setting of the call.
struct Row {
    name: &'static str,
    value: String,
    source: String,
    /// What lost, the nearest first.
    lost: Vec<(String, String)>,
}

impl Row {
    /// One that nothing lost against.
    fn plain(name: &'static str, value: String, source: &str) -> Row {
        Row { name, value, source: source.into(), lost: Vec::new() }
    }

    fn text(&self) -> String {
        let Row { name, value, source, lost } = self;
        let mut text = format!("{name:<14}{value:<12} {source}\n");
        for (value, source) in lost {
            let _ = writeln!(text, "{:<14}instead of: {value} ({source})", "");
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let one = |value: &String, source: &String| {
            let (file, line) = place(source).unzip();
            json!({"value": value, "source": source, "file": file, "line": line})
        };
        let mut limit = one(&self.value, &self.source);
        let lost: Vec<_> = self.lost.iter().map(|(value, source)| one(value, source)).collect();
        limit["setting"] = self.name.into();
        limit["lost"] = lost.into();
        limit
    }

    /// What was measured wins over what is written.
    fn adapts(&mut self, limit: Limit, why: &str) {
        let value = std::mem::replace(&mut self.value, show_duration(limit.time));
        let source = std::mem::replace(&mut self.source, format!("adaptive: {why}"));
        self.lost.insert(0, (value, source));
    }
}

/// The timeout of a tool that follows what was measured, and from what.
fn adapted(gateway: &Gateway, server: &Defined, tool: &str) -> Option<(Limit, String)> {
    let rules = &server.config.rules;
    let (least, most) = rules.adaptive_bounds(Some(tool))?;
    let tally = crate::advise::of_tool(&gateway.settings.place(), &server.config.name, tool)?;
    let limit = rules.adapted(Some(tool), &tally)?;
    let bounds = format!("between {} and {}", show_duration(least), show_duration(most));
    Some((limit, format!("{bounds}, from {}", reason(&tally))))
}

struct Explained<'a> {
    rows: Vec<Row>,
    token: Option<Token<'a>>,
    lasts: String,
}

impl<'a> Explained<'a> {
    fn new(
        gateway: &'a Gateway,
        server: &Defined,
        token: Option<Token<'a>>,
        request: &Request,
    ) -> Explained<'a> {
        let of_call = SETTINGS.iter().filter(|item| item.place == Place::Call);
        let known = Known::of(gateway, request.client.as_deref());
        let mut policy = policy(server, &request.tool, &known);
        let adapted = adapted(gateway, server, &request.tool);
        if let Some((limit, _)) = &adapted {
            policy.timeout = Some(*limit);
        }
        let bounds =
            SETTINGS.iter().filter(|item| server.config.bounds.is_bound() && BOUNDS.contains(&item.key));
        let mut rows: Vec<Row> =
            of_call.chain(bounds).map(|item| row(item, server, &request.tool, &policy)).collect();
        if let Some((limit, why)) = adapted {
            rows.iter_mut()
                .filter(|row| row.name == setting(Key::Timeout).name)
                .for_each(|row| row.adapts(limit, &why));
        }
        let disabled = if server.disabled { "The server is disabled. " } else { "" };
        let hidden = if hidden(server, &request.tool) { "The tool is hidden from clients. " } else { "" };
        let unseen = unseen(gateway, server, request.client.as_deref());
        let refused = token.as_ref().map(|token| token.verdict.as_str()).unwrap_or_default();
        let waits = waits(&server.config.bounds, token.as_ref().map(Token::bounds));
        let lasts = format!("{disabled}{hidden}{unseen}{refused}{}{waits}", lasts(&policy, &known));
        Explained { rows, token, lasts }
    }

    fn text(&self, request: &Request) -> String {
        let client = request.client.as_ref().map(|name| format!(", called by `{name}`")).unwrap_or_default();
        let mut text = format!("`{}` of server `{}`{client}\n\n", request.tool, request.server);
        self.rows.iter().for_each(|row| text += &row.text());
        if let Some(token) = &self.token {
            let _ = writeln!(text, "\n{}\n", token.heading());
            token.rows().iter().for_each(|row| text += &row.text());
        }
        text + "\n" + &self.lasts + "\n"
    }

    fn json(&self, request: &Request) -> serde_json::Value {
        let limits: Vec<_> = self.rows.iter().map(Row::json).collect();
        let of_token = self.token.as_ref().map(Token::rows).unwrap_or_default();
        let of_token: Vec<_> = of_token.iter().map(Row::json).collect();
        json!({"server": request.server, "tool": request.tool, "client": request.client,
               "token": request.token, "limits": limits, "ofToken": of_token, "lasts": self.lasts})
    }
}

/// File and line of a source such as `[defaults] in outlast.toml:2`.
fn place(source: &str) -> Option<(&str, u64)> {
    let (_, place) = source.rsplit_once(" in ")?;
    let (file, line) = place.rsplit_once(':')?;
    Some((file, line.parse().ok()?))
}

fn hidden(server: &Defined, tool: &str) -> bool {
    let any = |globs: &[outlast_engine::settings::Glob]| globs.iter().any(|glob| glob.matches(tool));
    any(&server.deny) || (!server.allow.is_empty() && !any(&server.allow))
}

/// That a client does not see the server, if the file says so.
fn unseen(gateway: &Gateway, server: &Defined, client: Option<&str>) -> String {
    let rule = client.and_then(|name| Some((name, gateway.settings.engine.rule_for(name)?)));
    let hidden = rule.filter(|(_, rule)| !rule.shows(&server.config.name));
    hidden.map_or_else(String::new, |(name, rule)| {
        format!("The merged door does not show the server to `{name}` (servers, {}). ", rule.source)
    })
}

/// What is known of the client that calls.
struct Known {
    name: Option<String>,
    effect: Effect,
    /// Who says so.
    from: String,
}

impl Known {
    fn of(gateway: &Gateway, client: Option<&str>) -> Known {
        let Some(name) = client else {
            return Known { name: None, effect: Effect::default(), from: String::new() };
        };
        let found = |effect, from: String| Known { name: Some(name.to_owned()), effect, from };
        let rule = gateway.settings.engine.rule_for(name);
        if rule.is_some_and(|rule| rule.hand_off == Some(false)) {
            return found(Effect::default(), rule.map(|rule| rule.source.to_string()).unwrap_or_default());
        }
        let written = rule.and_then(|rule| Some((rule.cap?, rule.source.to_string())));
        let (cap, from) =
            written.unwrap_or_else(|| (gateway.settings.engine.client_cap, "client-cap".into()));
        match cap {
            ClientCap::After(time) => found(Effect { cap: Some(time), silence: None }, from),
            ClientCap::Off => found(Effect::default(), from),
            ClientCap::Known => {
                let introduction = Introduction { name: name.into(), ..Introduction::default() };
                match verdict(&gateway.settings.engine.profiles.of(&introduction), None) {
                    Verdict::Does(effect) => found(effect, "outlast clients".into()),
                    Verdict::Unknown | Verdict::Unclear => found(Effect::default(), String::new()),
                }
            }
        }
    }
}

/// The policy of a call whose client sends a progress token, as nearly all do.
fn policy(server: &Defined, tool: &str, known: &Known) -> Policy {
    server.config.rules.for_call(CallFacts {
        method: &Method::ToolsCall,
        tool: Some(tool),
        has_token: true,
        cap: known.effect.cap,
        silence: known.effect.silence,
        wish: None,
        declared: &Declared::default(),
    })
}

fn row(item: &'static Setting, server: &Defined, tool: &str, policy: &Policy) -> Row {
    let written = server.config.rules.written(item.key, &Method::ToolsCall, Some(tool));
    let mut all: Vec<(String, String)> = written.iter().map(said).collect();
    let built_in = if all.is_empty() { applied(item, policy) } else { item.default.to_owned() };
    all.push((built_in, "built in".into()));
    let lost = all.split_off(1);
    let (value, source) = all.pop().unwrap_or_default();
    Row { name: item.name, value, source, lost }
}

fn said(written: &Written<'_>) -> (String, String) {
    (shown(written.value), written.source.to_owned())
}

/// What is so although nobody wrote it.
fn applied(item: &Setting, policy: &Policy) -> String {
    match item.key {
        Key::Timeout => policy.timeout.map_or_else(|| "none".into(), |limit| show_duration(limit.time)),
        Key::KeepAlive => policy.keep_alive.map_or_else(|| "off".into(), show_duration),
        Key::Signs => signs(policy.signs),
        _ => item.default.to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::Time(time) => time.map_or_else(|| "off".into(), show_duration),
        Value::Size(size) => size.to_string(),
        Value::Signs(which) => signs(*which),
        Value::Count(count) => count.to_string(),
        Value::Rate(rate) => rate.map_or_else(|| "off".into(), |rate| rate.to_string()),
        Value::Switch(on) => on.to_string(),
        Value::Text(text) => text.clone(),
    }
}

fn signs(signs: Signs) -> String {
    match signs {
        Signs { call: true, server: true } => "call+server",
        Signs { call: true, server: false } => "call",
        Signs { call: false, server: true } => "server",
        Signs { call: false, server: false } => "none",
    }
    .to_owned()
}

/// How long a call may have to wait before it begins.
fn waits(of_server: &Bounds, of_token: Option<&Bounds>) -> String {
    let wait = |bounds: &Bounds, whose: &str| {
        format!("{} for its turn{whose} (queue-wait)", show_duration(bounds.queue_wait))
    };
    let of_token = of_token.map(|bounds| Some(bounds).filter(|bounds| bounds.is_bound()));
    match (of_server.is_bound(), of_token) {
        (false, None | Some(None)) => String::new(),
        (true, None) => {
            let wait = wait(of_server, "");
            format!("\nBefore that it may wait {wait}; the limits of a token come on top.")
        }
        (true, Some(None)) => format!("\nBefore that it may wait {}.", wait(of_server, "")),
        (false, Some(Some(token))) => format!("\nBefore that it may wait {}.", wait(token, " at its token")),
        (true, Some(Some(token))) => {
            let (first, then) = (wait(token, " at its token"), wait(of_server, " at its server"));
            format!("\nBefore that it may wait {first}, then {then}.")
        }
    }
}

/// How long a call can last, and why.
fn lasts(policy: &Policy, known: &Known) -> String {
    let most = format!("at most {} in all (max)", show_duration(policy.max.time));
    let silent = policy.timeout.map(|limit| (show_duration(limit.time), policy.signs));
    let server = match silent {
        None => format!("A call can last {most}."),
        Some((time, Signs::NONE)) => {
            format!("A call can last {time} (timeout), whatever the server reports.")
        }
        Some((time, _)) => format!("A call can last {time} without a sign of life (timeout), and {most}."),
    };
    let Some(name) = &known.name else { return server };
    let effect = advice::of_effect(known.effect);
    let client = match (known.effect == Effect::default(), known.from.as_str()) {
        (true, "") => format!("Nothing is known of `{name}`: {}.", advice::UNKNOWN),
        (true, from) => format!("No call of `{name}` is handed off ({from})."),
        (false, from) => format!("For `{name}`, {effect} ({from})."),
    };
    format!("{server}\n{client}")
}
