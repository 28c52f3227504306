//! `[callbacks.NAME]`.

use super::desk::Desk;
use super::place::At;
use super::server::key;
use super::tree::Entry;
use crate::callbacks::{Receiver, read_secret};
use crate::client::http::addresses::Network;
use http::Uri;
use outlast_engine::callback::When;
use std::path::PathBuf;

/// The keys of a callback.
pub const CALLBACK: [&str; 6] = ["url", "secret", "when", "allow", "ca-file", "links"];

/// Characters of a name.
const NAME: usize = 64;

/// A callback as it is written, and checked. Not printable: it holds a secret.
pub struct CallbackRule {
    /// What calls name.
    pub name: Box<str>,
    /// When it is sent.
    pub when: When,
    url: Uri,
    secret: Vec<u8>,
    allow: Vec<Network>,
    ca_file: Option<PathBuf>,
    links: Option<Box<str>>,
}

impl std::fmt::Debug for CallbackRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CallbackRule").field(&self.name).finish()
    }
}

impl CallbackRule {
    /// Who is called. The error is for people.
    pub fn receiver(self) -> Result<Receiver, String> {
        let CallbackRule { name, url, secret, allow, ca_file, links, .. } = self;
        Receiver::new(&url, &secret, allow, ca_file.as_deref(), links)
            .map_err(|why| format!("[callbacks.{}]: {why}", key(&name)))
    }

    /// All that decides what it does, as a number: a file that is read again may say something else.
    pub fn fingerprint(&self) -> u64 {
        let all = format!(
            "{:?}",
            (&self.name, self.when, &self.url, &self.secret, &self.allow, &self.ca_file, &self.links)
        );
        outlast_engine::hash::fingerprint(all.as_bytes())
    }
}

/// Reads one callback.
pub fn callback(desk: &mut Desk<'_>, entry: &Entry) -> Option<CallbackRule> {
    let table = format!("[callbacks.{}]", key(&entry.name));
    let (mut url, mut secret, mut allow) = (None, None, Vec::new());
    let (mut when, mut ca_file, mut links) = (When::default(), None, None);
    let (mut has_url, mut has_secret) = (false, false);
    for member in desk.table(entry) {
        match member.name.as_str() {
            "url" => (url, has_url) = (self::url(desk, member), true),
            "secret" => (secret, has_secret) = (self::secret(desk, member), true),
            "when" => when = desk.choice(member, &When::WORDS).unwrap_or_default(),
            "allow" => allow = networks(desk, member),
            "ca-file" => ca_file = desk.text(member).map(|text| desk.path(&text, member.node.at)),
            "links" => links = self::links(desk, member),
            _ => desk.unknown(member, &table, CALLBACK),
        }
    }
    if !has_url {
        let help = "url = \"https://…\" says who is called".to_owned();
        desk.wrong(entry.at, format!("callback `{}` has no url", entry.name), Some(help));
    }
    if !has_secret {
        desk.wrong(entry.at, format!("callback `{}` has no secret", entry.name), Some(secret_help()));
    }
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    if !(1..=NAME).contains(&entry.name.len()) || !entry.name.chars().all(plain) {
        let help = format!("a name has 1 to {NAME} of A-Z, a-z, 0-9, _, - and .");
        desk.wrong(entry.at, format!("`{}` cannot be the name of a callback", entry.name), Some(help));
    }
    let (url, at) = url?;
    plain_is_listed(desk, &url, &allow, at);
    Some(CallbackRule { name: entry.name.as_str().into(), when, url, secret: secret?, allow, ca_file, links })
}

fn secret_help() -> String {
    "secret = \"${VARIABLE}\", which holds `whsec_` and 24 to 64 random bytes as base64: \
     echo whsec_$(head -c 32 /dev/urandom | base64)"
        .to_owned()
}

/// A URL whose path may be a secret.
fn url(desk: &mut Desk<'_>, member: &Entry) -> Option<(Uri, At)> {
    let (text, at) = (desk.secret(member)?, member.node.at);
    let url: Option<Uri> = text.parse().ok();
    let fits = |url: &Uri| {
        let named = crate::server::http::tcp::Host::of(url).is_some();
        let plain = url.authority().is_some_and(|authority| !authority.as_str().contains('@'));
        matches!(url.scheme_str(), Some("https" | "http")) && named && plain
    };
    let url = url.filter(fits);
    if url.is_none() {
        let help = "write https://HOST/PATH, without a user or password".to_owned();
        desk.wrong_in_secret(at, "`url` is not the URL of a callback", Some(help));
    }
    url.map(|url| (url, at))
}

/// Whoever is on the way could read what is sent without TLS.
fn plain_is_listed(desk: &mut Desk<'_>, url: &Uri, allow: &[Network], at: At) {
    if url.scheme_str() == Some("http") && allow.is_empty() {
        let help = "write https://, or list the address of the receiver: allow = [\"127.0.0.1\"]".to_owned();
        desk.wrong_in_secret(at, "http:// is only for addresses that `allow` lists", Some(help));
    }
}

/// Where people reach us: what the path of a page is put behind.
fn links(desk: &mut Desk<'_>, member: &Entry) -> Option<Box<str>> {
    let text = desk.text(member)?;
    let url: Option<Uri> = text.parse().ok();
    let fits = |url: &Uri| {
        let bare = matches!(url.path(), "" | "/") && url.query().is_none();
        matches!(url.scheme_str(), Some("https" | "http")) && url.host().is_some() && bare
    };
    if !url.as_ref().is_some_and(fits) {
        let help =
            "write the address at which people reach `outlast serve`: https://outlast.example.com".to_owned();
        desk.wrong(
            member.node.at,
            format!("`links`: `{text}` is not where a browser finds outlast"),
            Some(help),
        );
        return None;
    }
    Some(text.trim_end_matches('/').into())
}

fn secret(desk: &mut Desk<'_>, member: &Entry) -> Option<Vec<u8>> {
    let text = desk.secret(member)?;
    match read_secret(&text) {
        Ok(secret) => Some(secret),
        Err(why) => {
            desk.wrong_in_secret(member.node.at, why, Some(secret_help()));
            None
        }
    }
}

fn networks(desk: &mut Desk<'_>, member: &Entry) -> Vec<Network> {
    let mut networks = Vec::new();
    for (text, at) in desk.texts(member) {
        match Network::parse(&text) {
            Some(network) => networks.push(network),
            None => {
                let help = "write 10.0.0.5, 10.0.0.0/8 or the like".to_owned();
                desk.wrong(at, format!("`{text}` is not an address or a network"), Some(help));
            }
        }
    }
    networks
}
