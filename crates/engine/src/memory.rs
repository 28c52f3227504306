//! What a server answered last time, for a start that does not wait for it.
//!
//! A memory belongs to one client's way of opening the handshake: the version it asks for, its capabilities
//! and its name. It holds the server's answers as they came.

use crate::method::Method;
use crate::wire::{Field, Message};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// A start that takes longer deserves a hint.
pub const SLOW_START: Duration = Duration::from_secs(3);

/// Bytes of one memory. What does not fit is not remembered.
pub const BYTES: usize = 4 << 20;

/// The answers to one client's handshake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// How the client opened its handshake, as a number.
    pub client: u64,
    /// `initialize` or `server/discover`.
    pub method: Method,
    /// The server's result, as it came.
    #[serde(with = "crate::recording::form")]
    pub result: Box<[u8]>,
    /// The complete lists that were asked for, as they came.
    #[serde(with = "crate::recording::form")]
    pub lists: Vec<(Method, Box<[u8]>)>,
}

impl Memory {
    /// The bytes it holds.
    pub fn size(&self) -> usize {
        self.result.len() + self.lists.iter().map(|(_, list)| list.len()).sum::<usize>()
    }

    /// Whether it looks like what a server answers, so that a damaged file does no harm.
    pub fn is_sound(&self) -> bool {
        let member = |raw: &[u8], name: &str| {
            serde_json::from_slice::<serde_json::Value>(raw).is_ok_and(|value| value.get(name).is_some())
        };
        let handshake = match self.method {
            Method::Initialize => member(&self.result, "protocolVersion"),
            Method::Discover => member(&self.result, "supportedVersions"),
            _ => false,
        };
        let lists =
            self.lists.iter().all(|(method, raw)| list_member(method).is_some_and(|name| member(raw, name)));
        handshake && lists && self.size() <= BYTES
    }

    /// A list, if it is remembered.
    pub fn list(&self, method: &Method) -> Option<&[u8]> {
        self.lists.iter().find(|(known, _)| known == method).map(|(_, raw)| &**raw)
    }
}

/// What a list's result holds.
fn list_member(method: &Method) -> Option<&'static str> {
    Some(match method {
        Method::ToolsList => "tools",
        Method::PromptsList => "prompts",
        Method::ResourcesList => "resources",
        Method::ResourcesTemplatesList => "resourceTemplates",
        _ => return None,
    })
}

/// Whether a list's result is all of it.
pub(crate) fn is_complete(result: &[u8]) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Page<'a> {
        #[serde(borrow)]
        next_cursor: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Page<'_>>(result).is_ok_and(|page| page.next_cursor.is_none())
}

/// How a client opens its handshake, as a number: the version it asks for, its capabilities, its name.
pub(crate) fn client_of(message: &Message) -> Option<u64> {
    #[derive(Deserialize, Default)]
    #[serde(rename_all = "camelCase", default)]
    struct Handshake<'a> {
        #[serde(borrow)]
        protocol_version: Option<&'a RawValue>,
        #[serde(borrow)]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow)]
        client_info: Option<Named<'a>>,
        #[serde(borrow, rename = "_meta")]
        meta: Option<Meta<'a>>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Named<'a> {
        #[serde(borrow)]
        name: Option<&'a RawValue>,
    }
    #[derive(Deserialize, Default)]
    #[serde(default)]
    struct Meta<'a> {
        #[serde(borrow, rename = "io.modelcontextprotocol/protocolVersion")]
        protocol_version: Option<&'a RawValue>,
        #[serde(borrow, rename = "io.modelcontextprotocol/clientCapabilities")]
        capabilities: Option<&'a RawValue>,
        #[serde(borrow, rename = "io.modelcontextprotocol/clientInfo")]
        client_info: Option<Named<'a>>,
    }
    let handshake: Handshake<'_> = serde_json::from_slice(message.raw(Field::Params)?).ok()?;
    let meta = handshake.meta.unwrap_or_default();
    let name = handshake.client_info.or(meta.client_info).unwrap_or_default().name;
    let parts = [
        handshake.protocol_version.or(meta.protocol_version),
        handshake.capabilities.or(meta.capabilities),
        name,
    ];
    let text = parts.map(|part| part.map_or("", RawValue::get)).join("\n");
    Some(crate::hash::fingerprint(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_memory_that_is_too_large_is_not_used() {
        let memory = |room: usize| Memory {
            client: 1,
            method: Method::Initialize,
            result: format!(r#"{{"protocolVersion":"{}"}}"#, "x".repeat(room)).into_bytes().into(),
            lists: Vec::new(),
        };
        let frame = memory(0).size();
        assert!(memory(BYTES - frame).is_sound() && !memory(BYTES - frame + 1).is_sound());
    }
}
