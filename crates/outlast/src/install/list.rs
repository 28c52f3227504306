//! `outlast install` alone: the files that are there, and which servers run through outlast.

use super::clients::{CLIENTS, Client, Place, Scope};
use super::diff::visible;
use super::edit::Ours;
use super::server::{Kind, Server, is_outlast};
use super::write::{self, Original};
use super::{Outcome, left, not_understood, own_word, plan, say, shown};
use serde_json::{Value, json};
use std::io;

/// A file of a client, and its servers in order, each with its state.
struct Listed {
    client: &'static str,
    scope: Scope,
    file: String,
    servers: Vec<(String, String)>,
}

/// What is there, and where there was nothing.
#[derive(Default)]
struct Listing {
    files: Vec<Listed>,
    looked: Vec<String>,
    outcome: Option<Outcome>,
}

/// Shows every file that we know of, and its servers.
pub fn list(json: bool) -> io::Result<Outcome> {
    let word = own_word()?;
    let mut listing = Listing::default();
    for client in CLIENTS {
        for place in [Scope::Project, Scope::User].into_iter().flat_map(|scope| client.places(scope)) {
            listing.look(client, &place, &plan::ours(&word, place.shape));
        }
    }
    say(if json { listing.json().to_string() } else { listing.text() }.trim_end())?;
    Ok(listing.outcome.unwrap_or(Outcome::Done))
}

impl Listing {
    fn look(&mut self, client: &Client, place: &Place, ours: &Ours) {
        match write::read(&place.path) {
            Ok(None) => self.looked.push(visible(&place.path.to_string_lossy())),
            Ok(Some(original)) => match self.add(client, place, &original, ours) {
                Ok(()) => {}
                Err(problem) => self.outcome = Some(not_understood(place, &original, &problem)),
            },
            Err(why) => self.outcome = Some(left(&place.path, &why)),
        }
    }

    fn add(
        &mut self,
        client: &Client,
        place: &Place,
        original: &Original,
        ours: &Ours,
    ) -> Result<(), super::Problem> {
        let named = |server: &Server| (visible(&server.name), state(server, ours));
        let servers = plan::servers(&original.text, place.shape)?.iter().map(named).collect();
        let file = shown(place, original);
        self.files.push(Listed { client: client.name, scope: place.scope, file, servers });
        Ok(())
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for Listed { client, scope, file, servers } in &self.files {
            text += &format!("{client} ({}): {file}\n", scope.name());
            let none = if servers.is_empty() { "  no servers\n" } else { "" };
            text += none;
            text.extend(servers.iter().map(|(name, state)| format!("  {name:<24} {state}\n")));
        }
        if self.files.is_empty() {
            text += "No file of a client that we know was found. Looked at:\n";
            text.extend(self.looked.iter().map(|path| format!("  {path}\n")));
        }
        text
    }

    fn json(&self) -> Value {
        let server = |(name, state): &(String, String)| json!({"server": name, "state": state});
        let file = |listed: &Listed| {
            json!({
                "client": listed.client, "scope": listed.scope.name(), "file": listed.file,
                "servers": listed.servers.iter().map(server).collect::<Vec<_>>(),
            })
        };
        let files: Vec<Value> = self.files.iter().map(file).collect();
        json!({"files": files, "notThere": self.looked})
    }
}

fn state(server: &Server, ours: &Ours) -> String {
    match &server.kind {
        Kind::Stdio(launch) => match &launch.command.text {
            Some(program) if is_outlast(program, &ours.word) => "through outlast".into(),
            _ => "stdio".into(),
        },
        Kind::Remote => "remote".into(),
        Kind::NoCommand => "starts no program".into(),
        Kind::Unclear(why) => format!("not understood: {why}"),
    }
}
