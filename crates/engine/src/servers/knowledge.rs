//! What is known of a server: its capabilities, its tools.

use super::Servers;
use crate::id::ServerId;
use crate::json;
use crate::limits;
use crate::policy::Declared;
use std::sync::Arc;

impl Servers {
    /// What every server is called in the store that has no name there yet.
    pub(crate) fn are_called(&mut self, identity: &str) {
        let all: Vec<ServerId> = self.iter().map(|(id, _)| *id).collect();
        for id in all {
            let server = self.at(id).filter(|server| server.config.identity.is_empty());
            server
                .into_iter()
                .for_each(|server| Arc::make_mut(&mut server.config).identity = identity.into());
        }
    }

    /// It has tasks of its own.
    pub(crate) fn has_own_tasks(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.own_tasks = true;
        }
    }

    /// It has made a task of its own, which runs on when its call is answered.
    pub(crate) fn gave_task(&mut self, id: ServerId) {
        if let Some(server) = self.at(id) {
            server.gave_task = true;
        }
    }

    /// Learns what a server declares about its limits, its logging and its tasks. True if some of it is nonsense.
    pub(crate) fn learn_capabilities(&mut self, id: ServerId, result: &[u8]) -> bool {
        #[derive(serde::Deserialize)]
        struct Handshake {
            capabilities: Option<serde_json::Value>,
        }
        if result.len() > limits::HANDSHAKE_BYTES {
            return false;
        }
        let Some(server) = self.at(id) else { return false };
        server.tools.learn_name(result);
        let Ok(Handshake { capabilities: Some(capabilities) }) = serde_json::from_slice(result) else {
            return false;
        };
        server.handshake.logging = capabilities.get("logging").is_some();
        let extension =
            capabilities.get("extensions").and_then(|all| all.get("io.modelcontextprotocol/tasks"));
        server.own_tasks = capabilities.get("tasks").is_some() || extension.is_some();
        server.makes_tasks = capabilities.pointer("/tasks/requests/tools/call").is_some();
        let (declared, nonsense) = Declared::read(&capabilities);
        server.declared = declared;
        nonsense
    }

    /// Learns from a list which tools run only as tasks of the server's own, in the legacy era.
    pub(crate) fn learn_task_tools(&mut self, id: ServerId, tools: &[&[u8]]) {
        let Some(server) = self.at(id).filter(|server| server.makes_tasks) else { return };
        for tool in tools {
            let Some(name) = name_of(tool) else { continue };
            if task_support(tool) != Some(b"\"required\"") {
                server.needs_tasks.remove(&name);
            } else if !reached!(TASK_TOOLS, server.needs_tasks.len() >= limits::TASK_TOOLS) {
                server.needs_tasks.insert(name);
            }
        }
    }

    /// A server says of a tool whether it can be called as a task.
    pub(crate) fn forbids_tasks(&mut self, id: ServerId, tool: &str, forbidden: bool) {
        let Some(server) = self.at(id) else { return };
        if !forbidden {
            server.forbids_tasks.remove(tool);
        } else if server.forbids_tasks.len() < limits::TASK_TOOLS {
            server.forbids_tasks.insert(tool.into());
        }
    }

    /// What a hand-off must know of its tools.
    pub(crate) fn learn_tools(&mut self, id: ServerId, result: &[u8]) {
        if let Some(server) = self.at(id) {
            server.tools.learn_name(result);
            server.tools.learn(result);
        }
    }

    /// Which arguments its tools want in headers.
    pub(crate) fn learn_mirrors(&mut self, id: ServerId, result: &[u8]) {
        if let Some(server) = self.at(id) {
            server.mirrors.learn(result);
        }
    }

    /// Learns from a tool list which tools a trusted server calls repeatable.
    pub(crate) fn read_hints(&mut self, id: ServerId, result: &[u8]) {
        #[derive(serde::Deserialize)]
        struct List {
            tools: Vec<Tool>,
        }
        #[derive(serde::Deserialize)]
        struct Tool {
            name: Box<str>,
            annotations: Option<Hints>,
        }
        #[derive(serde::Deserialize, Default)]
        #[serde(rename_all = "camelCase", default)]
        struct Hints {
            read_only_hint: bool,
            idempotent_hint: bool,
        }
        let Ok(list) = serde_json::from_slice::<List>(result) else { return };
        let Some(server) = self.at(id) else { return };
        for tool in list.tools {
            let hints = tool.annotations.unwrap_or_default();
            if hints.read_only_hint || hints.idempotent_hint {
                server.repeatable.insert(tool.name);
            } else {
                server.repeatable.remove(&tool.name);
            }
        }
    }
}

// Calls that wait for a person.
impl Servers {
    /// Learns from a tool list which tools destroy nothing, as their server says.
    pub(crate) fn learn_harmless(&mut self, id: ServerId, result: &[u8]) {
        let Some(server) = self.at(id) else { return };
        for tool in json::member(result, "tools").and_then(json::elements).unwrap_or_default() {
            let Some(name) = name_of(tool) else { continue };
            let hint = |name| Some(json::member(json::member(tool, "annotations")?, name)? == &b"true"[..]);
            let harmless = hint("readOnlyHint") == Some(true) || hint("destructiveHint") == Some(false);
            if !harmless {
                server.harmless.remove(&name);
            } else if !reached!(KNOWN_TOOLS, server.harmless.len() >= limits::KNOWN_TOOLS) {
                server.harmless.insert(name);
            }
        }
    }
}

/// The name of a tool in a list.
fn name_of(tool: &[u8]) -> Option<Box<str>> {
    serde_json::from_slice(json::member(tool, "name")?).ok()
}

/// What a tool in a list says about tasks, as raw JSON.
fn task_support(tool: &[u8]) -> Option<&[u8]> {
    json::member(json::member(tool, "execution")?, "taskSupport")
}
