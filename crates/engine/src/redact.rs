//! What is neither written down nor shown: values whose key says that they are secret, and texts that look like credentials.

use crate::settings::Glob;
use serde_json::{Value, json};

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

/// A message without its secrets.
pub fn redact(value: Value) -> Value {
    redact_also(value, &[])
}

/// The same, and without the values of keys that a person named.
pub fn redact_also(value: Value, named: &[Glob]) -> Value {
    let secret = |key: &str| is_secret(key) || named.iter().any(|glob| glob.matches(key));
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(key, value)| {
                let value = if secret(&key) { json!("***") } else { redact_also(value, named) };
                (key, value)
            })
            .collect(),
        Value::Array(items) => items.into_iter().map(|item| redact_also(item, named)).collect(),
        Value::String(text) => Value::String(redact_text(text)),
        other => other,
    }
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

/// Texts that begin as well-known credentials do.
fn redact_text(text: String) -> String {
    const SCHEMES: [&str; 2] = ["Bearer ", "Basic "];
    const BEGINNINGS: [&str; 5] = ["sk-", "ghp_", "github_pat_", "xoxb-", "AKIA"];
    let names =
        |scheme: &str| text.get(..scheme.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(scheme));
    let secret = SCHEMES.iter().any(|scheme| names(scheme))
        || BEGINNINGS.iter().any(|beginning| text.starts_with(beginning));
    if secret { "***".into() } else { text }
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
        assert_eq!(redact(value), expected);
    }

    #[test]
    fn a_person_may_name_more() {
        let named = [Glob::new("iban*").unwrap()];
        let value = json!({"to": {"iban": "DE00", "name": "ann"}, "amount": 5});
        assert_eq!(redact_also(value, &named), json!({"to": {"iban": "***", "name": "ann"}, "amount": 5}));
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
        assert_eq!(redact(json!(["bearer abc", "BASIC abc", "bear"])), json!(["***", "***", "bear"]));
    }
}
