//! The text of the file.

use super::flags::{For, Given};
use super::secrets::Secrets;
use super::{Import, Server};
use crate::config::file::{fitting, key};
use crate::install::clients::Client;
use crate::install::visible;
use outlast_engine::settings::{Kind, Setting};
use std::collections::BTreeMap;
use std::fmt::Write;

/// The file, and the variables that it needs.
pub fn text(import: &mut Import, clients: &[&'static Client]) -> (String, Secrets) {
    settle_names(import);
    let mut secrets = Secrets::default();
    let names: Vec<&str> = clients.iter().map(|client| client.name).collect();
    let mut text = format!("# Written by `outlast import {}`.\n", names.join(" "));
    for server in &import.servers {
        one(&mut text, &mut secrets, server);
    }
    (text, secrets)
}

/// Every name fits and is there once: of two clients with the same server one entry is left.
fn settle_names(import: &mut Import) {
    let mut kept: Vec<Server> = Vec::new();
    for mut server in std::mem::take(&mut import.servers) {
        let written = std::mem::take(&mut server.name);
        let fits = Some(fitting(&written)).filter(|name| !name.is_empty());
        let base = fits.unwrap_or_else(|| "server".into());
        let same = |other: &Server, name: &str| {
            other.name == name && Server { name: String::new(), ..other.clone() } == server
        };
        if kept.iter().any(|other| same(other, &base)) {
            continue;
        }
        let numbered = (2..).map(|number| format!("{}-{number}", &base[..base.len().min(28)]));
        let mut free = std::iter::once(base.clone()).chain(numbered);
        server.name = free.find(|name| kept.iter().all(|other| other.name != *name)).unwrap_or_default();
        if server.name != written {
            let told = format!("server `{}` is called `{}` in the file", visible(&written), server.name);
            import.left.push(told);
        }
        kept.push(server);
    }
    import.servers = kept;
}

/// A text as TOML writes it: as JSON does, but for one control character.
pub(crate) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

fn list(texts: &[String]) -> String {
    format!("[{}]", texts.iter().map(|text| quoted(text)).collect::<Vec<_>>().join(", "))
}

fn one(text: &mut String, secrets: &mut Secrets, server: &Server) {
    let name = &server.name;
    let _ = writeln!(text, "\n[servers.{}]", key(name));
    let arguments: Vec<String> = server
        .words
        .iter()
        .enumerate()
        .map(|(at, word)| {
            let before = at.checked_sub(1).and_then(|before| server.words.get(before)).map(String::as_str);
            secrets.argument(name, before, word)
        })
        .collect();
    if let Some((command, arguments)) = arguments.split_first().filter(|_| server.url.is_none()) {
        let _ = writeln!(text, "command = {}", quoted(command));
        if !arguments.is_empty() {
            let _ = writeln!(text, "args = {}", list(arguments));
        }
    }
    if let Some(url) = &server.url {
        let _ = writeln!(text, "url = {}", quoted(&secrets.argument(name, None, url)));
    }
    if let Some(folder) = &server.cwd {
        let _ = writeln!(text, "cwd = {}", quoted(&secrets.argument(name, None, folder)));
    }
    let of_url = server.url.is_some();
    pairs(text, secrets, name, "env", if of_url { &[] } else { &server.env });
    pairs(text, secrets, name, "headers", if of_url { &server.headers } else { &[] });
    if server.disabled {
        let _ = writeln!(text, "disabled = true");
    }
    for (what, globs) in [("allow", &server.allow), ("deny", &server.deny)] {
        if !globs.is_empty() {
            let _ = writeln!(text, "tools.{what} = {}", list(globs));
        }
    }
    settings(text, server);
}

fn pairs(text: &mut String, secrets: &mut Secrets, name: &str, what: &str, pairs: &[(String, String)]) {
    if pairs.is_empty() {
        return;
    }
    let mut one = |(member, value): &(String, String)| {
        format!("{} = {}", quoted(member), quoted(&secrets.value(name, member, value)))
    };
    let all: Vec<String> = pairs.iter().map(&mut one).collect();
    let _ = writeln!(text, "{what} = {{ {} }}", all.join(", "));
}

/// Those for all calls, then a table for each glob. Of two for the same the later counts, as on a command line.
fn settings(text: &mut String, server: &Server) {
    let mut tables: BTreeMap<&For, BTreeMap<&str, &str>> = BTreeMap::new();
    for Given { to, setting, value } in &server.settings {
        tables.entry(to).or_default().insert(setting, value);
    }
    for (to, values) in tables {
        let (what, glob) = match to {
            For::All => ("", ""),
            For::Methods(glob) => ("methods", glob.as_str()),
            For::Tools(glob) => ("tools", glob.as_str()),
        };
        if !what.is_empty() {
            let _ = writeln!(text, "\n[servers.{}.{what}.{}]", key(&server.name), quoted(glob));
        }
        for (name, value) in values {
            let plain =
                Setting::named(name).is_some_and(|item| matches!(item.kind, Kind::Count | Kind::Switch));
            let value = if plain { (*value).to_owned() } else { quoted(value) };
            let _ = writeln!(text, "{name} = {value}");
        }
    }
}
