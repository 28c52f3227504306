//! Variables in the place of values that may be secret.
//!
//! What stands in `env` and `headers` may always be one, so it always becomes a variable; of arguments and addresses
//! what looks like one. A reference to a variable stays a reference.

use std::collections::BTreeMap;

/// The variables of a file: what each stands for, and where.
#[derive(Debug, Default)]
pub struct Secrets {
    all: BTreeMap<String, Secret>,
    /// Variables that the clients' files name themselves, and the servers that need them. Some of them only their client
    /// knows, such as `workspaceFolder`.
    named: BTreeMap<String, String>,
}

#[derive(Debug)]
struct Secret {
    /// Never shown. `None` if only its name was in the client's file.
    value: Option<String>,
    place: String,
}

/// Words before a secret that say what it is.
const SCHEMES: [&str; 4] = ["Bearer ", "Basic ", "token ", "Token "];

/// Parts of a name of what is secret.
const WORDS: [&str; 8] = ["key", "token", "secret", "passw", "auth", "credential", "bearer", "dsn"];

/// How well-known secrets begin.
const BEGINNINGS: [&str; 9] =
    ["sk-", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "outlast_"];

impl Secrets {
    /// Names of variables, and what they are for.
    pub fn places(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all.iter().map(|(name, secret)| (name.as_str(), secret.place.as_str()))
    }

    /// Variables that were named already, each with a server that needs it.
    pub fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        self.named.iter().map(|(name, server)| (name.as_str(), server.as_str()))
    }

    /// A value of `env` or `headers`, called `name`.
    pub fn value(&mut self, server: &str, name: &str, text: &str) -> String {
        if let Some(kept) = self.references(server, name, text) {
            return kept;
        }
        let scheme = SCHEMES.into_iter().find(|scheme| text.starts_with(scheme)).unwrap_or_default();
        format!("{scheme}{}", self.variable(server, name, Some(&text[scheme.len()..])))
    }

    /// A text that may hold one: an argument, after the one before it; an address.
    pub fn argument(&mut self, server: &str, before: Option<&str>, text: &str) -> String {
        let flag = before.filter(|word| word.starts_with('-') && !word.contains('='));
        if let Some(header) = text.strip_prefix("--header=") {
            return format!("--header={}", self.argument(server, Some("--header"), header));
        }
        if let Some((name, value)) = text.split_once(':').filter(|_| matches!(flag, Some("--header" | "-H")))
        {
            let blank = &value[..value.len() - value.trim_start().len()];
            return format!("{name}:{blank}{}", self.value(server, name, value.trim_start()));
        }
        if let Some(flag) = flag.filter(|flag| is_secret_name(flag)) {
            return self.value(server, flag, text);
        }
        if let Some((name, value)) = text.split_once('=').filter(|(name, _)| is_secret_name(name)) {
            let name = name.rsplit(['?', '&']).next().unwrap_or(name).to_owned();
            return text[..text.len() - value.len()].to_owned() + &self.value(server, &name, value);
        }
        let user = text.split_once("://").and_then(|(_, rest)| rest.split('/').next()?.split_once('@'));
        if user.is_some() || BEGINNINGS.iter().any(|begins| text.starts_with(begins)) {
            return self.value(server, "ARGUMENT", text);
        }
        self.references(server, "ARGUMENT", text).unwrap_or_else(|| text.replace("${", "$${"))
    }

    /// A text that refers to variables, in our words. `None` if it does not, or holds more than that.
    fn references(&mut self, server: &str, name: &str, text: &str) -> Option<String> {
        let mut kept = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let (inside, after) = after.split_once('}')?;
            let plain = inside.strip_prefix("env:").unwrap_or(inside);
            let variable = match inside.strip_prefix("input:") {
                Some(input) => self.variable(server, input, None),
                None if is_variable(plain.split(":-").next()?) => {
                    if !plain.contains(":-") {
                        self.named.entry(plain.to_owned()).or_insert_with(|| server.to_owned());
                    }
                    format!("${{{plain}}}")
                }
                None => return None,
            };
            kept += before;
            kept += &variable;
            rest = after;
        }
        let literal = text.split("${").enumerate().map(|(at, part)| match at {
            0 => part,
            _ => part.split_once('}').map_or(part, |(_, after)| after),
        });
        let literal: String = literal.collect();
        let harmless = literal.trim().is_empty() || SCHEMES.iter().any(|scheme| *scheme == literal);
        (text.contains("${") && (harmless || name == "ARGUMENT")).then(|| kept + rest)
    }

    /// `${NAME}`; another name if this one stands for something else already.
    fn variable(&mut self, server: &str, name: &str, value: Option<&str>) -> String {
        let word = |text: &str| -> String {
            let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
            text.trim_start_matches('-').chars().map(plain).collect()
        };
        let place = format!("`{name}` of server `{server}`");
        let shouted = is_variable(name) && !name.contains(|c: char| c.is_ascii_lowercase());
        let first = if shouted { name.to_owned() } else { format!("{}_{}", word(server), word(name)) };
        let names = [first, format!("{}_{}", word(server), word(name))].into_iter();
        let numbered = (2..).map(|number| format!("{}_{}_{number}", word(server), word(name)));
        let mut free = names
            .chain(numbered)
            .map(|name| name.trim_start_matches(|c: char| c.is_ascii_digit()).to_owned());
        let same = |known: &Secret| known.value.as_deref() == value;
        let chosen = free.find(|name| self.all.get(name).is_none_or(same)).unwrap_or_default();
        let secret = Secret { value: value.map(str::to_owned), place };
        self.all.entry(chosen.clone()).or_insert(secret);
        format!("${{{chosen}}}")
    }
}

fn is_variable(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && name.chars().all(plain)
}

fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_become_variables_and_references_stay() {
        let mut secrets = Secrets::default();
        assert_eq!(secrets.value("gh", "GITHUB_TOKEN", "s3cret"), "${GITHUB_TOKEN}");
        assert_eq!(secrets.value("other", "GITHUB_TOKEN", "s3cret"), "${GITHUB_TOKEN}");
        assert_eq!(secrets.value("third", "GITHUB_TOKEN", "else"), "${THIRD_GITHUB_TOKEN}");
        assert_eq!(secrets.value("a-b", "X-Api-Key", "s3cret"), "${A_B_X_API_KEY}");
        assert_eq!(secrets.value("a", "Authorization", "Bearer s3cret"), "Bearer ${A_AUTHORIZATION}");
        assert_eq!(secrets.value("a", "K", "${env:OWN}"), "${OWN}");
        assert_eq!(secrets.value("a", "K", "Bearer ${OWN:-x}"), "Bearer ${OWN:-x}");
        assert_eq!(secrets.value("a", "K", "${input:my-key}"), "${A_MY_KEY}");
        assert_eq!(secrets.value("a", "MIXED", "s3cret-${OWN}"), "${MIXED}");
        let shown: String = secrets.places().map(|(name, place)| format!("{name} {place}\n")).collect();
        assert!(!shown.contains("s3cret") && shown.contains("`X-Api-Key` of server `a-b`"), "{shown}");
    }

    #[test]
    fn what_looks_like_a_secret_among_arguments_becomes_a_variable() {
        let mut secrets = Secrets::default();
        let mut argument = |before, text| secrets.argument("pg", before, text);
        assert_eq!(argument(None, "-y"), "-y");
        assert_eq!(argument(Some("--api-key"), "s3cret"), "${PG_API_KEY}");
        assert_eq!(argument(None, "--token=s3cret"), "--token=${PG_TOKEN}");
        assert_eq!(argument(None, "postgres://me:s3cret@host/db"), "${ARGUMENT}");
        assert_eq!(argument(None, "https://h/mcp?key=s3cret"), "https://h/mcp?key=${PG_KEY}");
        assert_eq!(argument(None, "ghp_s3cret"), "${PG_ARGUMENT}");
        assert_eq!(argument(Some("--header"), "X-Key: s3cret"), "X-Key: ${PG_X_KEY}");
        assert_eq!(argument(None, "--header=A:Bearer s3cret"), "--header=A:Bearer ${A}");
        assert_eq!(argument(Some("--header"), "A: ${AUTH}"), "A: ${AUTH}");
        assert_eq!(argument(None, "/home/${USER}/x"), "/home/${USER}/x");
        assert_eq!(argument(None, "a ${odd thing} b"), "a $${odd thing} b");
    }
}
