//! `outlast install` alone: the files that are there, and which servers run through outlast.

use super::clients::{CLIENTS, Place, Scope};
use super::diff::visible;
use super::edit::Ours;
use super::server::{Kind, Server, is_outlast};
use super::write::{self, Original};
use super::{Outcome, left, not_understood, own_word, plan, say, shown};
use std::io;

/// Shows every file that we know of, and its servers.
pub fn list() -> io::Result<Outcome> {
    let word = own_word()?;
    let mut outcome = Outcome::Done;
    let mut looked = Vec::new();
    let mut found = false;
    for client in CLIENTS {
        for place in [Scope::Project, Scope::User].into_iter().flat_map(|scope| client.places(scope)) {
            match write::read(&place.path) {
                Ok(None) => looked.push(place.path),
                Ok(Some(original)) => {
                    found = true;
                    let path = shown(&place, &original);
                    say(&format!("{} ({}): {path}", client.name, place.scope.name()))?;
                    outcome = outcome.and(list_file(&place, &original, &plan::ours(&word, place.shape))?);
                }
                Err(why) => outcome = left(&place.path, &why),
            }
        }
    }
    if !found {
        say("No file of a client that we know was found. Looked at:")?;
        for path in looked {
            say(&format!("  {}", path.display()))?;
        }
    }
    Ok(outcome)
}

fn list_file(place: &Place, original: &Original, ours: &Ours) -> io::Result<Outcome> {
    let servers = match plan::servers(&original.text, place.shape) {
        Ok(servers) => servers,
        Err(problem) => return Ok(not_understood(place, original, &problem)),
    };
    if servers.is_empty() {
        say("  no servers")?;
    }
    for server in &servers {
        say(&format!("  {:<24} {}", visible(&server.name), state(server, ours)))?;
    }
    Ok(Outcome::Done)
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
