//! What is neither written down nor shown: values whose key says that they are secret, and texts that look like credentials.

use crate::record::Ticket;
use crate::settings::Glob;
use serde_json::{Value, json};
use std::borrow::Cow;

/// Parts of keys whose values are not written down; of a key only letters and digits count.
const SECRET: [&str; 11] = [
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "cookie",
    "bearer",
];

/// Characters of a ticket or of a session's id that are shown: enough to tell two apart, and nothing can be fetched with
/// them.
pub const SHOWN: usize = 8;

/// A message without its secrets, and without the values of keys that a person named.
pub fn redact_also(value: Value, named: &[Glob]) -> Value {
    Rules { named, cuts_tickets: false }.applied_to(value)
}

/// The same for what outlives the call: with the whole of a ticket or a session's id, whoever reads it could fetch an
/// answer or speak in the session, so these are cut, too.
pub fn redact_for_record(value: Value, named: &[Glob]) -> Value {
    Rules { named, cuts_tickets: true }.applied_to(value)
}

/// A text in which everything that could be a ticket of ours is cut.
pub fn without_tickets(text: &str) -> Cow<'_, str> {
    if !words(text).any(|(word, _)| Ticket::parse(word).is_some()) {
        return Cow::Borrowed(text);
    }
    let cut = |(word, rest)| {
        if Ticket::parse(word).is_some() { [&word[..SHOWN], "…", rest] } else { ["", word, rest] }
    };
    Cow::Owned(words(text).flat_map(cut).collect())
}

/// The letters and digits of a text in runs, each with the character that follows it.
fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let is_other = |c: char| !c.is_ascii_alphanumeric();
    text.split_inclusive(is_other).map(move |part| part.split_at(part.trim_end_matches(is_other).len()))
}

/// What is left out.
struct Rules<'a> {
    named: &'a [Glob],
    cuts_tickets: bool,
}

impl Rules<'_> {
    fn applied_to(&self, value: Value) -> Value {
        match value {
            Value::Object(members) => {
                members.into_iter().map(|(key, value)| self.member(key, value)).collect()
            }
            Value::Array(items) => items.into_iter().map(|item| self.applied_to(item)).collect(),
            Value::String(text) => self.text(text).into(),
            other => other,
        }
    }

    fn member(&self, key: String, value: Value) -> (String, Value) {
        let value = match value {
            _ if is_hidden(&key, self.named) => json!("***"),
            // A server may call its tasks what it likes.
            Value::String(task) if self.cuts_tickets && key == "taskId" => shortened(&task).into(),
            value => self.applied_to(value),
        };
        if self.cuts_tickets { (without_tickets(&key).into_owned(), value) } else { (key, value) }
    }

    fn text(&self, text: String) -> String {
        let text = redact_text(text);
        if !self.cuts_tickets {
            return text;
        }
        match without_tickets(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(cut) => cut,
        }
    }
}

/// The beginning of a name that is good for something as a whole.
fn shortened(name: &str) -> String {
    let shown = name.floor_char_boundary(SHOWN.min(name.len() / 2));
    format!("{}…", &name[..shown])
}

/// Whether the values of a key are secret, by its name or because a person named it.
pub fn is_hidden(key: &str, named: &[Glob]) -> bool {
    is_secret(key) || named.iter().any(|glob| glob.matches(key))
}

fn is_secret(key: &str) -> bool {
    let key: String = key.chars().filter(|c| c.is_alphanumeric()).map(|c| c.to_ascii_lowercase()).collect();
    let token = key.contains("token") && !key.contains("progresstoken") && !key.contains("tokens");
    token || key.contains("session") || is_about_auth(&key) || SECRET.iter().any(|word| key.contains(word))
}

/// `auth`, `oauth`, `authorization` and the like, but not who wrote something.
fn is_about_auth(key: &str) -> bool {
    key.match_indices("auth").any(|(at, found)| {
        let rest = &key[at + found.len()..];
        !rest.starts_with("or") || rest.starts_with("oriz") || rest.starts_with("oris")
    })
}

/// Whether a text begins as well-known credentials do.
pub fn is_credential(text: &str) -> bool {
    const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];
    const BEGINNINGS: [&str; 5] = ["sk-", "ghp_", "github_pat_", "xoxb-", "AKIA"];
    let names =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    SCHEMES.iter().any(|scheme| names(scheme))
        || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning))
}

fn redact_text(text: String) -> String {
    if is_credential(&text) { "***".into() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_replaced_and_tokens_of_progress_are_not() {
        let value = json!({"params": {
            "_meta": {"progressToken": 7}, "api_key": "k", "maxTokens": 5, "Authorization": "x",
            "list": [{"accessToken": "t"}], "header": "Bearer abc", "text": "hello", "password": null,
        }});
        let expected = json!({"params": {
            "_meta": {"progressToken": 7}, "api_key": "***", "maxTokens": 5, "Authorization": "***",
            "list": [{"accessToken": "***"}], "header": "***", "text": "hello", "password": "***",
        }});
        assert_eq!(redact_also(value, &[]), expected);
    }

    #[test]
    fn a_person_may_name_more() {
        let named = [Glob::new("iban*").unwrap()];
        let value = json!({"to": {"iban": "DE00", "name": "ann"}, "amount": 5});
        assert_eq!(redact_also(value, &named), json!({"to": {"iban": "***", "name": "ann"}, "amount": 5}));
    }

    /// A ticket may stand in a sentence to a model, in a name, or be a server's own.
    #[test]
    fn nothing_can_be_fetched_with_what_is_recorded() {
        let ticket = "0123456789abcdef".repeat(2);
        let value = json!({
            "taskId": "786512e2-9e0d-44bd", "id": "short", "iban": "DE00", "digest": "g".repeat(32),
            "text": format!("größe: ask again with «{ticket}», or {ticket}.7"), &ticket: [&ticket],
        });
        let expected = json!({
            "taskId": "786512e2…", "id": "short", "iban": "***", "digest": "g".repeat(32),
            "text": "größe: ask again with «01234567…», or 01234567….7", "01234567…": ["01234567…"],
        });
        let named = [Glob::new("iban").unwrap()];
        assert_eq!(redact_for_record(value.clone(), &named), expected);
        assert_eq!(redact_also(value, &[])["text"].as_str().unwrap().matches(&ticket).count(), 2);
        assert_eq!(redact_for_record(json!({"taskId": "é7"}), &[]), json!({"taskId": "…"}));
    }

    #[test]
    fn a_key_is_secret_however_it_is_written() {
        for key in [
            "pwd",
            "dbPwd",
            "auth",
            "x-auth",
            "oauth",
            "basicAuth",
            "authHeader",
            "authentication",
            "Authorisation",
            "bearer",
            "BEARER_VALUE",
            "session",
            "sessionId",
            "Mcp-Session-Id",
            "PHPSESSION",
            "private-key",
            "API-Key",
        ] {
            assert!(is_secret(key), "{key}");
        }
        for key in ["author", "authors", "authority", "progressToken", "maxTokens", "name", "path", "uri"] {
            assert!(!is_secret(key), "{key}");
        }
        let value = json!(["bearer abc", "BASIC abc", "bear"]);
        assert_eq!(redact_also(value, &[]), json!(["***", "***", "bear"]));
    }
}
