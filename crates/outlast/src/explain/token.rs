//! What the token of a caller adds: which servers and tools it is for, and the bounds of all its calls together.

use super::Row;
use crate::config::file::{BOUNDS, Defined, Gateway, TokenRule};
use outlast_engine::Bounds;
use outlast_engine::settings::{Glob, Key, SETTINGS, Setting, nearest, show_duration};

/// A token that comes in with the call.
pub struct Token<'a> {
    rule: &'a TokenRule,
    /// Whether the call is for it, at whichever door.
    pub verdict: String,
}

impl<'a> Token<'a> {
    /// An error says that there is no such token.
    pub fn of(gateway: &'a Gateway, name: &str, server: &Defined, tool: &str) -> Result<Token<'a>, String> {
        let Some(rule) = gateway.tokens.iter().find(|token| token.name == name) else {
            let known = || gateway.tokens.iter().map(|token| token.name.as_str());
            let hint = nearest(name, known()).map(|meant| format!("did you mean {meant}?"));
            let hint = hint.unwrap_or_else(|| format!("it has: {}", known().collect::<Vec<_>>().join(", ")));
            return Err(format!("the file has no token `{name}`; {hint}"));
        };
        Ok(Token { rule, verdict: verdict(rule, &gateway.separator, server, tool) })
    }

    /// What is written of it, and the bounds that hold for it.
    pub fn rows(&self) -> Vec<Row> {
        let TokenRule { servers, tools, bounds, source, .. } = self.rule;
        let written = [("servers", servers), ("tools", tools)];
        let globs = |(name, globs): (&'static str, &Option<Vec<Glob>>)| match globs {
            Some(globs) => Row::plain(name, list(globs), source),
            None => Row::plain(name, "all".into(), "built in"),
        };
        let settings = SETTINGS.iter().filter(|item| bounds.is_bound() && BOUNDS.contains(&item.key));
        written.into_iter().map(globs).chain(settings.map(|item| bound(item, bounds, source))).collect()
    }

    pub fn heading(&self) -> String {
        format!("with token `{}`, of all its calls together:", self.rule.name)
    }

    pub fn bounds(&self) -> &Bounds {
        &self.rule.bounds
    }
}

fn verdict(rule: &TokenRule, separator: &str, server: &Defined, tool: &str) -> String {
    let (name, source) = (&rule.name, &rule.source);
    let of_server = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(&server.config.name));
    if rule.servers.as_deref().is_some_and(|globs| !of_server(globs)) {
        return format!("The server is not there for token `{name}` ({source}). ");
    }
    let whole = [&server.config.name, separator, tool].concat();
    let of_tool = |globs: &[Glob]| globs.iter().any(|glob| glob.matches(tool) || glob.matches(&whole));
    match rule.tools.as_deref().is_some_and(|globs| !of_tool(globs)) {
        true => format!("The tool is not for token `{name}` ({source}). "),
        false => String::new(),
    }
}

/// One bound: what differs from the default was written.
fn bound(item: &'static Setting, bounds: &Bounds, source: &str) -> Row {
    let (value, default) = (shown(item.key, bounds), shown(item.key, &Bounds::default()));
    let source = if value == default { "built in" } else { source };
    Row::plain(item.name, value, source)
}

fn shown(key: Key, bounds: &Bounds) -> String {
    match key {
        Key::MaxInFlight => bounds.max_in_flight.to_string(),
        Key::Queue => bounds.queue.to_string(),
        Key::QueueWait => show_duration(bounds.queue_wait),
        _ => bounds.rate.as_ref().map_or_else(|| "off".into(), ToString::to_string),
    }
}

fn list(globs: &[Glob]) -> String {
    match globs {
        [] => "none".into(),
        globs => globs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
    }
}
