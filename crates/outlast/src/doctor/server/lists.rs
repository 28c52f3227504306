//! The lists that a server offers, all pages of each, and what is odd about the tools in them.

use super::bounds;
use super::talk::{Reply, Talk};
use crate::doctor::glimpse;
use serde_json::Value;
use std::collections::HashSet;
use std::time::Duration;

/// A list: what it is called here, where it hangs, how it is asked for, under which key it comes.
struct Kind {
    name: &'static str,
    capability: &'static str,
    method: &'static str,
    key: &'static str,
}

const KINDS: [Kind; 4] = [
    Kind { name: "tools", capability: "tools", method: "tools/list", key: "tools" },
    Kind { name: "prompts", capability: "prompts", method: "prompts/list", key: "prompts" },
    Kind { name: "resources", capability: "resources", method: "resources/list", key: "resources" },
    Kind {
        name: "templates",
        capability: "resources",
        method: "resources/templates/list",
        key: "resourceTemplates",
    },
];

/// How far a list could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Whole,
    /// Declared and not offered. For templates that is usual, and means none.
    Failed(i64, String),
    /// An answer that is not strict JSON, or holds no list.
    Unreadable,
    Silence,
    Ended,
    /// There was no end to its pages.
    Endless,
}

/// One list.
#[derive(Debug)]
pub struct List {
    pub name: &'static str,
    pub method: &'static str,
    pub outcome: Outcome,
    pub count: usize,
    pub pages: usize,
    pub took: Duration,
    /// The largest answer.
    pub bytes: usize,
    pub tools: Tools,
}

/// What only tools have.
#[derive(Debug, Default)]
pub struct Tools {
    /// Names that clients may refuse.
    pub bad_names: Vec<String>,
    pub duplicates: Vec<String>,
    /// How many say that they may be, or must be, run as tasks.
    pub optional_tasks: usize,
    pub required_tasks: usize,
    seen: HashSet<String>,
}

/// Reads every list that the server has declared.
pub fn all(talk: &mut Talk<'_>, capabilities: &Value, wait: Duration) -> Vec<List> {
    let declared = KINDS.iter().filter(|kind| capabilities.get(kind.capability).is_some());
    declared.map(|kind| read(talk, kind, wait)).collect()
}

fn read(talk: &mut Talk<'_>, kind: &Kind, wait: Duration) -> List {
    let began = talk.lab.now();
    let until = began + wait;
    let mut list = List {
        name: kind.name,
        method: kind.method,
        outcome: Outcome::Endless,
        count: 0,
        pages: 0,
        took: Duration::ZERO,
        bytes: 0,
        tools: Tools::default(),
    };
    let mut cursor = None;
    while list.pages < bounds::PAGES {
        let mut params = talk.params();
        if let Some(cursor) = cursor.take() {
            params["cursor"] = cursor;
        }
        let answer = talk.ask(kind.method, &params, until.since(talk.lab.now()));
        list.bytes = list.bytes.max(answer.bytes);
        match list.take(kind, answer.reply) {
            Ok(next) => cursor = Some(next),
            Err(outcome) => {
                list.outcome = outcome;
                break;
            }
        }
    }
    list.took = talk.lab.now().since(began);
    list
}

impl List {
    /// Takes one page; the cursor of the next, or how the list ended.
    fn take(&mut self, kind: &Kind, reply: Reply) -> Result<Value, Outcome> {
        let result = match reply {
            Reply::Result(result) => result,
            // Many servers with resources know nothing of templates.
            Reply::Error(-32601, ..) if kind.name == "templates" => return Err(Outcome::Whole),
            Reply::Error(code, message, _) => return Err(Outcome::Failed(code, message)),
            Reply::Unreadable => return Err(Outcome::Unreadable),
            Reply::Silence => return Err(Outcome::Silence),
            Reply::Ended(_) => return Err(Outcome::Ended),
        };
        let Some(members) = result[kind.key].as_array() else { return Err(Outcome::Unreadable) };
        self.pages += 1;
        self.count += members.len();
        if kind.name == "tools" {
            members.iter().for_each(|tool| self.tools.take(tool));
        }
        // An empty cursor is one; none at all, or null, is the end.
        let cursor = result.get("nextCursor").filter(|cursor| cursor.is_string());
        cursor.cloned().ok_or(Outcome::Whole)
    }
}

impl Tools {
    fn take(&mut self, tool: &Value) {
        let name = tool["name"].as_str().unwrap_or_default();
        let shown = || glimpse(name.as_bytes(), bounds::SHOWN);
        if !is_good_name(name) {
            self.bad_names.push(shown());
        }
        if !self.seen.insert(name.to_owned()) {
            self.duplicates.push(shown());
        }
        match tool["execution"]["taskSupport"].as_str() {
            Some("optional") => self.optional_tasks += 1,
            Some("required") => self.required_tasks += 1,
            _ => {}
        }
    }
}

/// 1 to 128 of these are what every client takes.
fn is_good_name(name: &str) -> bool {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=128).contains(&name.len()) && name.bytes().all(good)
}

/// How long the server says that its operations may take, in seconds: `{"tools/call": 120}`.
pub fn declared_timeouts(capabilities: &Value) -> Vec<(String, f64)> {
    let mut found = Vec::new();
    for family in ["tools", "prompts", "resources"] {
        let declared = capabilities[family]["timeouts"].as_object();
        for (operation, seconds) in declared.into_iter().flatten() {
            if let Some(seconds) = seconds.as_f64() {
                let operation = glimpse(operation.as_bytes(), bounds::SHOWN);
                found.push((format!("{family}/{operation}"), seconds));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn names_that_every_client_takes() {
        for good in ["a", "run_build", "Files.read-2", &"x".repeat(128)] {
            assert!(is_good_name(good), "{good}");
        }
        for bad in ["", "run build", "a/b", "größe", &"x".repeat(129)] {
            assert!(!is_good_name(bad), "{bad}");
        }
    }

    #[test]
    fn timeouts_are_read_where_they_are_declared() {
        let capabilities = json!({"tools": {"timeouts": {"call": 120, "list": "soon"}}, "prompts": {}});
        assert_eq!(declared_timeouts(&capabilities), [("tools/call".to_owned(), 120.0)]);
    }
}
