//! What is known of clients: how long they wait for a tool, and what makes them wait longer.
//!
//! A row is *verified* when `outlast doctor client` has measured it. Only verified rows change what outlast
//! does; the others are what people report, to know what to measure. The table is also in
//! `docs/hand-off.md`; a test compares them.

use crate::json;
use crate::settings::Glob;
use crate::wire::{Field, Message};
use std::time::Duration;

/// One client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// What people call it.
    pub client: &'static str,
    /// What it calls itself in `clientInfo.name`, with `*` and `?`.
    pub name: &'static str,
    /// How long it waits for a tool; `None` where no limit was found.
    pub cap: Option<Duration>,
    /// Whether progress makes it wait longer.
    pub resets: Option<bool>,
    /// Whether it sends a progress token.
    pub token: Option<bool>,
    /// Whether it knows tasks.
    pub tasks: Option<bool>,
    /// Measured, not only reported.
    pub verified: bool,
}

impl Profile {
    /// The cap that nothing but an answer helps against, if it is certain.
    pub fn hard_cap(&self) -> Option<Duration> {
        self.cap.filter(|_| self.verified && self.resets == Some(false))
    }

    fn is(&self, name: &str) -> bool {
        Glob::new(self.name).is_ok_and(|glob| glob.matches(name))
    }
}

const fn reported(
    client: &'static str,
    name: &'static str,
    cap: Option<u64>,
    [resets, token, tasks]: [Option<bool>; 3],
) -> Profile {
    let cap = match cap {
        Some(seconds) => Some(Duration::from_secs(seconds)),
        None => None,
    };
    Profile { client, name, cap, resets, token, tasks, verified: false }
}

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);

/// The clients that we have heard of.
pub const PROFILES: &[Profile] = &[
    reported("Claude Code", "claude-code", Some(300), [YES, YES, NO]),
    reported("Claude Desktop", "claude-ai", Some(60), [NO, NO, NO]),
    reported("Codex CLI", "codex-mcp-client", Some(300), [None, None, NO]),
    reported("Cursor", "cursor-*", Some(60), [None, YES, NO]),
    reported("VS Code", "Visual Studio Code*", None, [None, YES, YES]),
    reported("Copilot CLI", "github-copilot-developer", Some(60), [None, None, NO]),
    reported("Gemini CLI", "gemini-cli-*", Some(600), [NO, NO, NO]),
    reported("Cline", "Cline", Some(60), [NO, NO, NO]),
    reported("Roo Code", "Roo Code", Some(60), [NO, None, NO]),
    reported("opencode", "opencode", Some(300), [YES, YES, NO]),
    reported("goose", "goose*", Some(300), [None, None, NO]),
    reported("n8n", "n8n*", Some(60), [NO, None, NO]),
    reported("Continue", "continue-*", Some(60), [NO, NO, NO]),
    reported("LM Studio", "lmstudio*", Some(60), [NO, None, NO]),
    reported("Jan", "Jan*", Some(30), [NO, NO, NO]),
    reported("MCP Inspector", "*inspector*", Some(60), [YES, YES, None]),
];

/// The cap of the client that introduces itself with this message, if it is certain. In the modern era every
/// request is such a message.
pub(crate) fn hard_cap(profiles: &[Profile], message: &Message) -> Option<Duration> {
    if !profiles.iter().any(|profile| profile.verified) {
        return None;
    }
    let legacy = || json::member(message.raw(Field::Params)?, "clientInfo");
    let modern = || json::member(message.raw(Field::ParamsMeta)?, "io.modelcontextprotocol/clientInfo");
    let info = modern().or_else(legacy)?;
    let name: String = serde_json::from_slice(json::member(info, "name")?).ok()?;
    profiles.iter().find(|profile| profile.is(&name))?.hard_cap()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Scanned, scan};

    const TABLE: [Profile; 3] = [
        Profile { verified: true, ..reported("A", "hasty*", Some(60), [NO, NO, NO]) },
        Profile { verified: true, ..reported("B", "patient", Some(60), [YES, YES, NO]) },
        reported("C", "rumoured", Some(60), [NO, NO, NO]),
    ];

    fn cap(text: &str) -> Option<Duration> {
        match scan(bytes::Bytes::copy_from_slice(text.as_bytes())) {
            Ok(Scanned::Message(message)) => hard_cap(&TABLE, &message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn only_a_verified_cap_that_progress_does_not_move_counts() {
        let named = |name: &str| {
            cap(&format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"clientInfo":{{"name":"{name}"}}}}}}"#
            ))
        };
        assert_eq!(named("hasty-one"), Some(Duration::from_secs(60)));
        assert_eq!([named("patient"), named("rumoured"), named("nobody")], [None, None, None]);
    }

    #[test]
    fn a_modern_request_says_who_sends_it() {
        let asks = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"hasty"}}}}"#;
        assert_eq!(cap(asks), Some(Duration::from_secs(60)));
        assert_eq!(cap(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}"#), None);
    }

    #[test]
    fn every_name_is_a_pattern() {
        assert!(PROFILES.iter().all(|profile| Glob::new(profile.name).is_ok()));
    }
}
