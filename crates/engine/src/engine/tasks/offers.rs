//! What a server says of itself, with tasks added.

use super::{EXTENSION, REVISION};
use crate::clients::Client;
use crate::engine::Engine;
use crate::id::{ClientId, ServerId};
use crate::json;
use crate::servers::Server;
use crate::tickets::TaskRule;
use crate::wire::{Edit, Field, Message};
use bytes::Bytes;

impl Engine {
    /// What is added to the answer to a handshake.
    pub(in crate::engine) fn add_to_handshake(
        &self,
        server: ServerId,
        client: ClientId,
        answer: &Message,
    ) -> Vec<Edit> {
        let mut edits = self.add_limits_to_handshake(server, answer);
        edits.extend(self.add_tasks_to_handshake(server, client, answer));
        edits
    }

    fn add_tasks_to_handshake(&self, server: ServerId, client: ClientId, answer: &Message) -> Vec<Edit> {
        let own_tasks = self.has_its_own_tasks(server, client);
        if own_tasks { Vec::new() } else { self.offer_tasks(client, answer).into_iter().collect() }
    }

    /// Tasks that we make of calls, in the answer to a handshake.
    pub(in crate::engine) fn offer_tasks(&self, client: ClientId, answer: &Message) -> Option<Edit> {
        let result = answer.raw(Field::Result).filter(|_| self.config.tasks)?;
        let capabilities = json::member(result, "capabilities")?;
        if json::member(result, "supportedVersions").is_some() {
            return add_extension(&answer.bytes, capabilities);
        }
        if json::member(result, "protocolVersion") != Some(b"\"2025-11-25\"") {
            return None;
        }
        let listed = self.clients.get(&client).is_some_and(Client::may_list_tasks);
        let list: &[u8] = if listed { br#""list":{},"# } else { b"" };
        let tasks = [br#""tasks":{"#, list, br#""cancel":{},"requests":{"tools":{"call":{}}}}"#].concat();
        json::insert_member(&answer.bytes, capabilities, &tasks)
    }

    /// Whether we make tasks of calls of this server, in the revision that has them. At the merged door also where it
    /// makes some itself.
    pub(in crate::engine) fn makes_legacy_tasks(&self, id: ServerId, merged: bool) -> bool {
        let fits = |server: &Server| {
            let agreed = server.agreed() == Some(REVISION) || server.is_asked_again_for(REVISION);
            (merged || !server.own_tasks) && agreed
        };
        self.config.tasks && self.servers.get(&id).is_some_and(fits)
    }

    /// What is added to a list of tools: which of them may be called as tasks.
    pub(in crate::engine) fn add_tasks_to_tools(
        &mut self,
        id: ServerId,
        merged: bool,
        answer: &Message,
    ) -> Vec<Edit> {
        if !self.makes_legacy_tasks(id, merged) {
            return Vec::new();
        }
        let Some(tools) = answer.raw(Field::Result).and_then(|result| json::member(result, "tools")) else {
            return Vec::new();
        };
        let mut edits = Vec::new();
        for tool in json::elements(tools).unwrap_or_default() {
            let name: Option<Box<str>> =
                json::member(tool, "name").and_then(|raw| serde_json::from_slice(raw).ok());
            let Some(name) = name else { continue };
            let execution = json::member(tool, "execution");
            let support = execution.and_then(|execution| json::member(execution, "taskSupport"));
            self.servers.forbids_tasks(id, &name, support == Some(b"\"forbidden\""));
            if support.is_some() {
                continue;
            }
            let rule = self.definition_of(id).rules.task_of(&name);
            let word: &[u8] = match rule {
                TaskRule::Forbidden => continue,
                TaskRule::Optional => br#""taskSupport":"optional""#,
                TaskRule::Required => br#""taskSupport":"required""#,
            };
            edits.extend(match execution {
                Some(execution) => json::insert_member(&answer.bytes, execution, word),
                None => json::insert_member(&answer.bytes, tool, &[b"\"execution\":{", word, b"}"].concat()),
            });
        }
        edits
    }
}

/// The extension beside those that a server declares.
pub(super) fn add_extension(whole: &Bytes, capabilities: &[u8]) -> Option<Edit> {
    let tasks = [EXTENSION, b":{}"].concat();
    match json::member(capabilities, "extensions") {
        Some(extensions) => json::insert_member(whole, extensions, &tasks),
        None => json::insert_member(whole, capabilities, &[b"\"extensions\":{", &*tasks, b"}"].concat()),
    }
}
