//! Servers that are missing when a client looks at a list: they are named in a log message, once until they are back.

use super::{Asking, Engine};
use crate::catalog::Kind;
use crate::clients::Door;
use crate::error::json_text;
use crate::id::{ClientId, ServerId};
use crate::json;
use crate::servers::Life;
use crate::wire::{Field, Message, Outgoing};

/// Levels at which a client does not want to hear of a warning.
const ABOVE_WARNING: [&str; 4] = ["error", "critical", "alert", "emergency"];

impl Engine {
    /// Tells a client which servers are missing of a list that it gets now.
    pub(super) fn name_the_missing(&mut self, asking: &Asking, kind: Kind, message: &Message) {
        if !self.wants_warnings(asking, message) {
            return;
        }
        for id in self.servers_of(asking.client) {
            let Some(text) = self.why_missing(id, kind) else { continue };
            if self.is_news(asking.client, id) {
                let head =
                    br#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","#;
                let warning =
                    [head, &br#""logger":"outlast","data":"#[..], &*json_text(&text), b"}}"].concat();
                self.tell(asking.client, asking.way, Outgoing::plain(warning));
            }
        }
    }

    /// Whether a client wants to hear of warnings: in the modern era each request says so.
    fn wants_warnings(&self, asking: &Asking, message: &Message) -> bool {
        if asking.modern {
            let level = message.text(Field::MetaLogLevel);
            return level.is_some_and(|level| !ABOVE_WARNING.contains(&level.as_ref()));
        }
        let servers = || self.servers_of(asking.client);
        let mut told =
            servers().into_iter().filter_map(|id| self.servers.get(&id)?.handshake.log_level.as_ref());
        let level = told.next().and_then(|message| json::member(message.raw(Field::Params)?, "level"));
        let level: Option<String> = level.and_then(|raw| serde_json::from_slice(raw).ok());
        level.is_none_or(|level| !ABOVE_WARNING.contains(&level.as_str()))
    }

    /// Why a server is not to be reached, if it is not.
    fn why_missing(&self, id: ServerId, kind: Kind) -> Option<String> {
        let server = self.servers.get(&id)?;
        let there = self.is_there(id) || server.life == Life::Asleep;
        let there = there && server.last_trouble.is_none();
        let failed = there && self.merged.has_failed(id, kind);
        if there && !failed {
            return None;
        }
        let known = self.merged.known(id, kind).is_some_and(|(listing, _)| !listing.entries.is_empty());
        let shown = if known { "what it listed before is shown" } else { "nothing of it is in this list" };
        if failed {
            let method = kind.method();
            return Some(format!(
                "server `{}` does not answer {} now: {shown}",
                server.config.name,
                method.as_str()
            ));
        }
        let exit = server.exit.as_ref().map(ToString::to_string);
        let why = server.last_trouble.as_ref().map(ToString::to_string).or(exit);
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        Some(format!(
            "server `{}` is not there{why}: {shown}, and its calls wait or fail",
            server.config.name
        ))
    }

    fn is_news(&mut self, client: ClientId, id: ServerId) -> bool {
        let Some(definition) = self.servers.get(&id).map(|server| server.definition) else { return false };
        // A modern client over HTTP is another one with every request.
        let passing =
            self.clients.get(&client).is_some_and(|client| matches!(client.door, Door::Exchange(_)));
        passing || self.clients.hears_of_missing(client, definition)
    }

    /// A server is there, perhaps again.
    pub(super) fn server_is_there(&mut self, id: ServerId) {
        let Some(server) = self.servers.get(&id) else { return };
        let definition = server.definition;
        for client in server.clients.clone() {
            self.clients.misses_no_more(client, definition);
        }
    }
}
