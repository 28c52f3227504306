//! What we say of ourselves at the merged door: what the servers behind it can do together.

use super::bounds;
use crate::json;
use serde_json::{Map, Value, json};

/// Extensions that we speak ourselves.
const OURS: [&str; 1] = ["io.modelcontextprotocol/tasks"];

/// What one server said in its handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Welcome<'a> {
    pub(crate) server: &'a str,
    /// The `result` of its answer.
    pub(crate) result: &'a [u8],
}

/// `capabilities` and `instructions` of all of them. What we cannot keep for several servers is not promised.
pub(crate) fn offer(welcomes: &[Welcome<'_>]) -> (Value, Option<String>) {
    let mut union = Map::new();
    for welcome in welcomes {
        let capabilities = json::member(welcome.result, "capabilities").unwrap_or(b"{}");
        for name in ["tools", "prompts", "resources", "completions", "logging"] {
            let Some(raw) = json::member(capabilities, name) else { continue };
            let entry = union.entry(name).or_insert_with(|| json!({}));
            // Servers come and go, so every list may change.
            if matches!(name, "tools" | "prompts" | "resources") {
                entry["listChanged"] = true.into();
            }
            if name == "resources" && json::member(raw, "subscribe") == Some(b"true") {
                entry["subscribe"] = true.into();
            }
        }
    }
    let theirs = welcomes.iter().map(|welcome| foreign_extensions(welcome.result));
    let mut declaring = theirs.filter(|extensions| !extensions.is_empty());
    if let (Some(extensions), None) = (declaring.next(), declaring.next()) {
        union.insert("extensions".into(), extensions.into());
    }
    (union.into(), instructions(welcomes))
}

/// The extensions that a server declares and that mean nothing to us. What they add to the protocol can be kept as long
/// as one server alone has any: whatever we do not know is for that one.
pub(crate) fn foreign_extensions(result: &[u8]) -> Map<String, Value> {
    let declared = json::member(result, "capabilities").and_then(|all| json::member(all, "extensions"));
    let declared = declared.and_then(|raw| serde_json::from_slice::<Map<String, Value>>(raw).ok());
    let foreign = |(name, _): &(String, Value)| !OURS.contains(&name.as_str());
    declared.unwrap_or_default().into_iter().filter(foreign).collect()
}

/// Each server's own, under its name.
fn instructions(welcomes: &[Welcome<'_>]) -> Option<String> {
    let mut joined = String::new();
    for welcome in welcomes {
        let raw = json::member(welcome.result, "instructions");
        let text: Option<String> = raw.and_then(|raw| serde_json::from_slice(raw).ok());
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { continue };
        if joined.len() + text.len() > bounds::INSTRUCTIONS {
            continue;
        }
        let gap = if joined.is_empty() { "" } else { "\n\n" };
        joined += &format!("{gap}## {}\n{}", welcome.server, text.trim());
    }
    (!joined.is_empty()).then_some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_some_server_can_do_can_be_done() {
        let a = br#"{"capabilities":{"tools":{},"logging":{},"experimental":{"x":{}}},"instructions":" Be kind. "}"#;
        let b = br#"{"capabilities":{"resources":{"subscribe":true}},"instructions":"Be quick."}"#;
        let (capabilities, instructions) =
            offer(&[Welcome { server: "a", result: a }, Welcome { server: "b", result: b }]);
        assert_eq!(
            capabilities,
            json!({"tools": {"listChanged": true}, "logging": {}, "resources": {"listChanged": true, "subscribe": true}})
        );
        assert_eq!(instructions.as_deref(), Some("## a\nBe kind.\n\n## b\nBe quick."));
        assert_eq!(offer(&[]), (json!({}), None));
        let (_, long) = offer(&[Welcome {
            server: "c",
            result: &[br#"{"instructions":""#, &*vec![b'x'; bounds::INSTRUCTIONS + 1], b"\"}"].concat(),
        }]);
        assert_eq!(long, None);
    }

    #[test]
    fn extensions_that_mean_nothing_to_us_are_promised_if_one_server_has_any() {
        let skills = br#"{"capabilities":{"extensions":{"a/skills":{"deep":true},"io.modelcontextprotocol/tasks":{}}}}"#;
        let tasks = br#"{"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
        let of = |results: &[&'static [u8]]| {
            let welcomes: Vec<_> = results.iter().map(|result| Welcome { server: "a", result }).collect();
            offer(&welcomes).0.get("extensions").cloned()
        };
        assert_eq!(of(&[skills, tasks]), Some(json!({"a/skills": {"deep": true}})));
        assert_eq!(of(&[tasks]), None);
        assert_eq!(of(&[skills, skills]), None, "nobody could tell whose a request is");
    }
}
