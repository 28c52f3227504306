//! How a client of the merged door and its servers meet.
//!
//! Each server is told the client's own handshake, as one that was started again would be. The client is answered
//! with what they can do together.

use super::lists::is_of_other_era;
use super::{Asking, Engine};
use crate::action::Note;
use crate::catalog::{Welcome, offer};
use crate::clients::session::{Setup, version_wanted};
use crate::engine::sharing::own_initialized;
use crate::era::Era;
use crate::id::{ClientId, DefinitionId, ServerId};
use crate::merged::Needs;
use crate::method::Method;
use crate::servers::Own;
use crate::time::Mono;
use crate::wire::{Edit, Field, Message, Outgoing, scan_message};
use serde_json::{Value, json};

/// The revisions that have a handshake, the newest last.
const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

impl Engine {
    /// A client gets a server of each definition. A legacy one is introduced to each by its own handshake.
    pub(in crate::engine) fn meet_servers(
        &mut self,
        now: Mono,
        client: ClientId,
        message: &Message,
        modern: bool,
    ) {
        if !modern {
            return self.introduce(now, client, message);
        }
        let Some(principal) = self.clients.get(&client).map(|client| client.principal.clone()) else {
            return;
        };
        for definition in self.definitions_seen_by(client) {
            if let Some(server) = self.server_for_exchange(now, definition, principal.as_deref()) {
                self.join(client, server);
            }
        }
    }

    fn introduce(&mut self, now: Mono, client: ClientId, initialize: &Message) {
        let Some(state) = self.clients.get(&client) else { return };
        let principal = state.principal.clone();
        let digest = crate::memory::client_of(initialize).unwrap_or_default();
        let own_setup = state.session().is_some_and(|session| !session.setup.is_empty());
        for definition in self.definitions_seen_by(client) {
            let server = if own_setup {
                self.new_server(now, definition)
            } else {
                self.server_for_session(now, definition, principal.as_deref(), digest)
            };
            let Some(server) = server else { continue };
            self.join(client, server);
            self.will_be_greeted(now, server, client, initialize.owned(), own_initialized());
        }
    }

    /// A definition is new in the file: a client that is there gets a server of it.
    pub(in crate::engine) fn meet_another(&mut self, now: Mono, client: ClientId, definition: DefinitionId) {
        let Some(state) = self.clients.get(&client) else { return };
        let (principal, modern) = (state.principal.clone(), state.modern);
        if !self.definitions_seen_by(client).contains(&definition) {
            return;
        }
        let initialize = state.servers().find_map(|id| {
            let server = self.servers.get(&id)?;
            server.handshake.initialize.clone()
        });
        let digest = initialize.as_ref().and_then(crate::memory::client_of).unwrap_or_default();
        let server = match initialize.is_some() && !modern {
            true => self.server_for_session(now, definition, principal.as_deref(), digest),
            false => self.server_for_exchange(now, definition, principal.as_deref()),
        };
        let Some(server) = server else { return };
        let before = self.clients.get(&client).and_then(|client| client.server_of(definition));
        self.join(client, server);
        if let Some(before) = before.filter(|before| *before != server) {
            // It was removed a moment ago, and its calls have yet to end.
            self.leave(now, client, before);
        }
        if let Some(initialize) = initialize.filter(|_| !modern) {
            self.will_be_greeted(now, server, client, initialize, own_initialized());
        }
    }

    /// A session of the merged door wakes: what it had set up is set up again, each with the server that has it.
    pub(in crate::engine) fn wake_merged(
        &mut self,
        now: Mono,
        client: ClientId,
        initialize: &Message,
        setup: &Setup,
    ) {
        self.introduce(now, client, initialize);
        for server in self.servers_of(client) {
            self.servers.will_be_set_up(server, client, &setup.without_subscriptions());
        }
        for (name, message) in setup.subscribed_at_servers() {
            let of = |id: &ServerId| self.servers.get(id).is_some_and(|server| *server.config.name == *name);
            if let Some(server) = self.servers_of(client).into_iter().find(of) {
                self.servers.keep_for_next(server, client, &Method::ResourcesSubscribe, message);
            }
        }
    }

    /// Answers a handshake with what is known of the servers by now.
    pub(super) fn welcome_merged(&mut self, asking: &Asking, message: &Message) {
        let servers = self.servers_of(asking.client);
        let known = |id: &ServerId| {
            let server = self.servers.get(id)?;
            let result = server.welcome.as_ref()?.raw(Field::Result)?;
            Some(Welcome { server: &server.config.name, result })
        };
        let mut welcomes: Vec<Welcome<'_>> = servers.iter().filter_map(known).collect();
        welcomes.sort_by_key(|welcome| welcome.server);
        let (mut capabilities, instructions) = offer(&welcomes);
        // Which servers are missing is said there.
        capabilities["logging"] = json!({});
        if welcomes.len() < servers.len() {
            // Whoever is not there yet may have any of these, and a client asks only for what was promised.
            for list in ["tools", "prompts", "resources"] {
                capabilities[list]["listChanged"] = true.into();
            }
        }
        self.declare_limits(&servers, &mut capabilities);
        let mut result =
            if asking.modern { discovered(capabilities) } else { self.agreed(asking, message, capabilities) };
        if let Some(instructions) = instructions {
            result["instructions"] = instructions.into();
        }
        self.answer_with_tasks(asking, &result.to_string());
    }

    fn agreed(&mut self, asking: &Asking, message: &Message, capabilities: Value) -> Value {
        let version = version_for(message);
        self.clients.agrees_on(asking.client, &version);
        json!({"protocolVersion": version, "capabilities": capabilities, "serverInfo": server_info()})
    }

    // The modern era.

    /// A server is asked in the words of a modern client, and what it can do if that is needed.
    pub(super) fn speak_modern_to(&mut self, id: ServerId, message: &Message, needs: Needs) {
        let Some(meta) = meta_of(message) else { return };
        self.merged.speaks(id, meta.clone());
        let known = self.servers.get(&id).is_none_or(|server| server.welcome.is_some());
        if !needs.handshakes() || known || !self.is_there(id) || !self.merged.discovers(id) {
            return;
        }
        let request =
            [br#"{"jsonrpc":"2.0","id":0,"method":"server/discover","params":{"_meta":"#, &*meta, b"}}"]
                .concat();
        if let Some(request) = scan_message(request.into()) {
            self.ask_again(id, &request, Own::Discover);
        }
    }

    /// A server says what it can do; or that it does not know the question.
    pub(in crate::engine) fn discovered(&mut self, now: Mono, id: ServerId, answer: &Message) {
        if answer.has(Field::Result) {
            self.servers.shows_era(id, Some(Era::Modern));
            self.servers.is_welcomed(id, answer);
        } else if is_of_other_era(answer) && !self.merged.has_listed(id) {
            self.is_foreign(id);
        } else {
            self.merged.discovers_again(id);
        }
        self.gathered_may_go_on(now, id);
    }

    /// What a server can do will not be told this time.
    pub(in crate::engine) fn discovery_is_lost(&mut self, now: Mono, id: ServerId) {
        self.merged.discovers_again(id);
        self.gathered_may_go_on(now, id);
    }

    /// A server is left out for clients of an era that it does not speak. One that has shown that it speaks it had
    /// another reason.
    pub(super) fn is_foreign(&mut self, id: ServerId) {
        let speaks = self.servers.get(&id).is_some_and(|server| server.eras.speaks(Era::Modern));
        if !speaks && self.merged.is_foreign(id) {
            let server = self.server_name(id);
            self.note(Note::OtherEra { server });
        }
    }

    /// The answer, with the tasks that we make of calls.
    fn answer_with_tasks(&mut self, asking: &Asking, result: &str) {
        let id = asking.id.patch();
        let answer =
            [br#"{"jsonrpc":"2.0","id":"#, id.as_slice(), br#","result":"#, result.as_bytes(), b"}"].concat();
        let Some(answer) = scan_message(answer.into()) else { return };
        let edits = self.offer_tasks(asking.client, &answer);
        let answer = Outgoing::edited(answer.bytes, edits.into_iter().collect());
        self.reply(asking.client, asking.way, Some(&asking.id), answer);
    }

    /// `initialized` of a client whose servers have been told so by us; others are about all of them.
    pub(in crate::engine) fn merged_notification(&mut self, client: ClientId, message: &Message) {
        match message.text(Field::Method).as_deref() {
            Some("notifications/initialized") => {
                if self.clients.is_initialized(client, message) {
                    self.keep_session(client);
                }
                self.tickets.orphans_may_go_on();
            }
            Some("notifications/progress") => self.progress_of_ask(client, message),
            _ => self.servers_of(client).into_iter().for_each(|server| self.pass_to_server(server, message)),
        }
    }

    /// `logging/setLevel` is for every server that logs, now and when it is started again.
    pub(super) fn set_level_everywhere(&mut self, asking: &Asking, message: &Message) {
        self.clients.sets_up(asking.client, &asking.method, message);
        self.keep_session(asking.client);
        for id in self.servers_of(asking.client) {
            self.servers.keep_for_next(id, asking.client, &asking.method, message);
            self.shapes_sharing(id, &asking.method);
            let logs = self.servers.get(&id).is_some_and(|server| server.handshake.logging);
            if logs && self.is_there(id) {
                self.ask_again(id, message, Own::Quiet);
            }
        }
        self.answer_result(asking.client, asking.way, &asking.id, b"{}");
    }
}

/// Who we are.
pub(super) fn server_info() -> Value {
    json!({"name": "outlast", "version": env!("CARGO_PKG_VERSION")})
}

fn discovered(capabilities: Value) -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": capabilities,
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    })
}

/// What a modern client says of itself, without what belongs to this one request.
pub(super) fn meta_of(message: &Message) -> Option<Box<[u8]>> {
    let without = match message.envelope.get(Field::MetaProgressToken) {
        Some(span) => message.edited(Edit::remove_member(&message.bytes, span)),
        None => None,
    };
    without.as_ref().unwrap_or(message).raw(Field::ParamsMeta).map(Box::from)
}

/// The revision that a client asks for, if it has a handshake; else the newest that has.
fn version_for(initialize: &Message) -> Box<str> {
    let wanted = version_wanted(initialize);
    let known = REVISIONS.into_iter().find(|known| *wanted == **known);
    known.unwrap_or(REVISIONS[3]).into()
}
