//! Who a server is: what must be the same for two processes of ours to mean one server.
//!
//! A command counts with its working directory and its environment, an address with the headers that are
//! sent to it, because those hold credentials: two entries of a client's configuration with one command and
//! two tokens are two servers, and share no process, no ticket and no key. Variables that differ from one
//! terminal to the next and give nobody any rights do not count (see [`counts`]).
//!
//! All that is kept is a digest, made with a key that only this user has: from the digest of a short
//! password nobody can find the password by trying.

use crate::config;
use crate::program::Command;
use crate::random;
use crate::store::{Database, Place, shared_key};
use crate::sys::files::{make_folder, private, read_small};
use http::header::{HeaderName, HeaderValue};
use outlast_engine::hex;
use ring::hmac;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// The file of the key, in the state directory.
const FILE: &str = "identity.key";

/// Bytes of a key.
const KEY: usize = 32;

/// Bytes of a digest that stand in a name.
const SHOWN: usize = 16;

/// Variables that do not count: where somebody sits, and how it looks there.
const SESSION: [&str; 51] = [
    "_",
    "COLORFGBG",
    "COLORTERM",
    "COLUMNS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DESKTOP_SESSION",
    "DISPLAY",
    "EDITOR",
    "GPG_TTY",
    "HOSTNAME",
    "INIT_CWD",
    "INVOCATION_ID",
    "JOURNAL_STREAM",
    "LANG",
    "LANGUAGE",
    "LINES",
    "LISTEN_FDNAMES",
    "LISTEN_FDS",
    "LISTEN_PID",
    "LS_COLORS",
    "MAIL",
    "MANAGERPID",
    "NO_COLOR",
    "NOTIFY_SOCKET",
    "OLDPWD",
    "PAGER",
    "PATH",
    "PWD",
    "SESSION_MANAGER",
    "SHELL",
    "SHLVL",
    "SSH_AGENT_PID",
    "SSH_AUTH_SOCK",
    "SSH_CLIENT",
    "SSH_CONNECTION",
    "SSH_TTY",
    "STY",
    "TEMP",
    "TERM",
    "TMP",
    "TMPDIR",
    "TMUX",
    "TMUX_PANE",
    "TZ",
    "VISUAL",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
    "WAYLAND_DISPLAY",
    "WINDOWID",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
];

/// Beginnings of such names.
const SESSION_PREFIXES: [&str; 15] = [
    "ALACRITTY_",
    "GNOME_",
    "ITERM_",
    "KDE_",
    "KITTY_",
    "KONSOLE_",
    "LC_",
    "SYSTEMD_",
    "TERM_",
    "VSCODE_",
    "VTE_",
    "WEZTERM_",
    "XDG_CURRENT_",
    "XDG_SESSION_",
    "npm_lifecycle_",
];

/// Whether a variable of the environment says who a server is.
pub fn counts(variable: &str) -> bool {
    !SESSION.contains(&variable) && !SESSION_PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}

/// The key of this user, or of all replicas that share a database.
pub struct Key {
    key: hmac::Key,
    /// Processes on other machines have it too: what differs from machine to machine does not count.
    shared: bool,
}

impl Key {
    /// The key of a state directory, made when it is first asked for. In memory nothing outlives the process,
    /// and neither does the key.
    pub fn of(place: &Place) -> io::Result<Key> {
        match place {
            Place::Memory => Ok(Key::fresh()),
            Place::Folder(folder) => Ok(Key::from(&read_or_make(folder)?)),
        }
    }

    /// The key of all processes that share a database. The error is for people.
    pub fn shared(database: &Database) -> Result<Key, String> {
        let bytes = shared_key(database, &random::bytes::<KEY>())?;
        Ok(Key { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes), shared: true })
    }

    /// One that nobody else has: what is named with it is found by nobody else.
    pub fn fresh() -> Key {
        Key::from(&random::bytes())
    }

    fn from(bytes: &[u8; KEY]) -> Key {
        Key { key: hmac::Key::new(hmac::HMAC_SHA256, bytes), shared: false }
    }

    /// A digest of parts, each with its length, so that none can pass for two.
    pub fn digest(&self, parts: &[Vec<u8>]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for part in parts {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let tag = context.sign();
        hex::encode(&tag.as_ref()[..SHOWN])
    }

    /// What the server of a command is called in the store: its name for people, and a digest.
    pub fn of_command(&self, name: &str, command: &Command) -> Box<str> {
        let parts = if self.shared { written_parts(name, command) } else { parts_of(command) };
        format!("{name}#{}", self.digest(&parts)).into()
    }

    /// The same of an address and the headers that are sent there.
    pub fn of_address(&self, url: &http::Uri, headers: &[(HeaderName, HeaderValue)]) -> Box<str> {
        let mut parts = vec![b"url".to_vec(), url.to_string().into_bytes()];
        for (name, value) in headers {
            parts.extend([name.as_str().as_bytes().to_vec(), value.as_bytes().to_vec()]);
        }
        format!("{}#{}", url.host().unwrap_or_default(), self.digest(&parts)).into()
    }
}

/// What the file says of the server of a command, which is the same on every machine: not where it runs, nor in what
/// environment.
fn written_parts(name: &str, command: &Command) -> Vec<Vec<u8>> {
    let mut parts = vec![b"shared".to_vec(), name.as_bytes().to_vec()];
    parts.extend(command.directory.iter().map(|folder| folder.as_os_str().as_encoded_bytes().to_vec()));
    parts.extend(command.words.iter().map(|word| word.as_encoded_bytes().to_vec()));
    parts.push(b"environment".to_vec());
    let variables: BTreeMap<_, _> = command.variables.iter().cloned().collect();
    for (name, value) in &variables {
        parts.extend([name, value].map(|word| word.as_encoded_bytes().to_vec()));
    }
    parts
}

/// All that says who the server of a command is.
pub fn parts_of(command: &Command) -> Vec<Vec<u8>> {
    let here = || config::working_directory().unwrap_or_default().into_bytes();
    let named = command.directory.as_ref().map(|folder| folder.as_os_str().as_encoded_bytes().to_vec());
    let mut parts = vec![named.unwrap_or_else(here)];
    parts.extend(command.words.iter().map(|word| word.as_encoded_bytes().to_vec()));
    parts.push(b"environment".to_vec());
    let mut variables: BTreeMap<_, _> =
        config::servers_variables().filter(|(name, _)| counts(&name.to_string_lossy())).collect();
    // What a person wrote for this server counts whatever it is called.
    variables.extend(command.variables.iter().cloned());
    for (name, value) in variables {
        parts.extend([&name, &value].map(|word| word.as_encoded_bytes().to_vec()));
    }
    parts
}

fn read_or_make(folder: &Path) -> io::Result<[u8; KEY]> {
    let path = folder.join(FILE);
    match read(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => make(folder, &path),
        read => read,
    }
}

fn read(path: &Path) -> io::Result<[u8; KEY]> {
    let bytes = read_small(path, KEY as u64 + 1)?;
    bytes.try_into().map_err(|_| {
        let why = format!("`{}` is not a key of outlast; remove it, and a new one is made", path.display());
        io::Error::new(io::ErrorKind::InvalidData, why)
    })
}

/// Written beside its place and linked there, so that nobody reads half a key and of two who come at once
/// both have the same.
fn make(folder: &Path, path: &Path) -> io::Result<[u8; KEY]> {
    make_folder(folder)?;
    let beside = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = private(fs::File::options().write(true).create(true).truncate(true)).open(&beside)?;
    file.write_all(&random::bytes::<KEY>())?;
    let linked = fs::hard_link(&beside, path);
    fs::remove_file(&beside)?;
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => read(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_for_this_user_alone() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::Folder(folder.path().join("state"));
        let digest = |key: &Key| key.digest(&[b"a".to_vec()]);
        let first = digest(&Key::of(&place).unwrap());
        assert_eq!(digest(&Key::of(&place).unwrap()), first);
        assert_ne!(digest(&Key::fresh()), first, "a digest alone tells nobody anything");
        let found: Vec<_> = fs::read_dir(folder.path().join("state")).unwrap().flatten().collect();
        assert_eq!(found.len(), 1, "nothing is left beside it");
        assert!(crate::sys::files::is_private(&found[0].path()).unwrap());
        fs::write(found[0].path(), "short").unwrap();
        assert!(Key::of(&place).err().unwrap().to_string().contains("is not a key"));
        assert_ne!(digest(&Key::of(&Place::Memory).unwrap()), digest(&Key::of(&Place::Memory).unwrap()));
    }

    #[test]
    fn parts_cannot_pass_for_others() {
        let key = Key::fresh();
        let digest = |parts: &[&str]| {
            key.digest(&parts.iter().map(|part| part.as_bytes().to_vec()).collect::<Vec<_>>())
        };
        assert_ne!(digest(&["a", "b"]), digest(&["ab"]));
        assert_ne!(digest(&["a", "b"]), digest(&["b", "a"]));
        assert_eq!(digest(&["a", "b"]), digest(&["a", "b"]));
    }

    #[test]
    fn an_address_with_other_headers_is_another_server() {
        let key = Key::fresh();
        let url: http::Uri = "https://example.com/mcp".parse().unwrap();
        let named = |token: &'static str| {
            let header = (http::header::AUTHORIZATION, HeaderValue::from_static(token));
            key.of_address(&url, &[header])
        };
        assert_ne!(named("Bearer a"), named("Bearer b"));
        assert_eq!(named("Bearer a"), named("Bearer a"));
        assert!(named("Bearer a").starts_with("example.com#") && !named("Bearer a").contains("Bearer"));
    }

    #[test]
    fn the_page_names_every_variable_that_does_not_count() {
        let page = include_str!("../../../docs/tasks.md");
        let plain = SESSION.iter().map(|name| format!("`{name}`"));
        let begins = SESSION_PREFIXES.iter().map(|prefix| format!("`{prefix}"));
        for shown in plain.chain(begins) {
            assert!(page.contains(&shown), "{shown} is not in docs/tasks.md");
        }
    }

    #[test]
    fn what_differs_between_terminals_does_not_count_and_credentials_do() {
        for name in
            ["PATH", "SHLVL", "TERM_SESSION_ID", "LC_ALL", "VSCODE_PID", "SSH_AUTH_SOCK", "NOTIFY_SOCKET"]
        {
            assert!(!counts(name), "{name}");
        }
        for name in
            ["API_TOKEN", "GITHUB_TOKEN", "AWS_PROFILE", "HOME", "XDG_CONFIG_HOME", "npm_config__auth"]
        {
            assert!(counts(name), "{name}");
        }
    }
}
