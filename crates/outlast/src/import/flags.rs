//! What the flags of an entry that already runs through outlast become in a file.

use super::Server;
use crate::install::INSTALLED;
use outlast_engine::settings::{Key, Kind, Place, Setting};

/// What a setting is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum For {
    All,
    Methods(String),
    Tools(String),
}

/// A setting of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct Given {
    pub to: For,
    pub setting: &'static str,
    pub value: String,
}

/// Takes the flags in front of a command or a URL. Gives back those that a file has no place for.
pub fn take(server: &mut Server, words: &[String]) -> Vec<String> {
    let mut left = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").filter(|_| !word.starts_with(INSTALLED)) else { continue };
        let (name, joined) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (flag, None),
        };
        let Some(setting) = Setting::named(name) else {
            left.push(word.clone());
            continue;
        };
        let value = match setting.kind {
            Kind::Switch => joined.unwrap_or_else(|| "true".into()),
            _ => joined.or_else(|| words.next().cloned()).unwrap_or_default(),
        };
        if !one(server, setting, &value) {
            left.push(format!("--{name}"));
        }
    }
    left
}

fn one(server: &mut Server, setting: &'static Setting, value: &str) -> bool {
    let mut give = |to, setting, value: &str| {
        server.settings.push(Given { to, setting, value: value.trim().to_owned() });
    };
    match (setting.key, setting.place) {
        (Key::Tool, _) => rule(value, For::Tools, &mut give),
        (Key::Method, _) => rule(value, For::Methods, &mut give),
        (Key::Header, _) => match value.split_once(':') {
            Some((name, value)) => {
                server.headers.push((name.trim().to_owned(), value.trim().to_owned()));
                true
            }
            None => false,
        },
        (_, Place::Call | Place::Server) => {
            give(For::All, setting.name, value);
            true
        }
        _ => false,
    }
}

/// `GLOB=KEY:VALUE,…`
fn rule(text: &str, of: fn(String) -> For, give: &mut impl FnMut(For, &'static str, &str)) -> bool {
    let Some((glob, values)) = text.split_once('=') else { return false };
    let pairs: Option<Vec<_>> = values
        .split(',')
        .map(|pair| {
            let (name, value) = pair.split_once(':')?;
            Some((Setting::named(name.trim())?.name, value))
        })
        .collect();
    let Some(pairs) = pairs else { return false };
    pairs.into_iter().for_each(|(name, value)| give(of(glob.trim().to_owned()), name, value));
    true
}
