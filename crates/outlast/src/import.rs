//! `outlast import CLIENT…`: writes an `outlast.toml` from the files that clients have.
//!
//! Map: `read` makes servers of a client's file, whatever its format, and takes outlast off those that run through it;
//! `secrets` puts a variable in the place of every value that may be one; `write` is the text. This file talks to the
//! person. What cannot be converted is named, with its file; nothing is left out in silence.

mod flags;
mod read;
mod secrets;
mod write;

pub(crate) use write::quoted;

use crate::config::file;
use crate::install::clients::{Client, Scope};
use crate::install::visible;
use crate::observe::stderr::say as tell;
use crate::observe::stdout;
use outlast_engine::settings::counted;
use secrets::Secrets;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What was asked for.
#[derive(Debug)]
pub struct Request {
    /// Whose files.
    pub clients: Vec<&'static Client>,
    /// The person's own, or the project's.
    pub scope: Scope,
    /// The file to write; `None` prints it.
    pub output: Option<PathBuf>,
}

/// A server as a client has it.
#[derive(Clone, Debug, Default, PartialEq)]
struct Server {
    name: String,
    /// Program and arguments; empty for a remote one.
    words: Vec<String>,
    url: Option<String>,
    env: Vec<(String, String)>,
    headers: Vec<(String, String)>,
    cwd: Option<String>,
    disabled: bool,
    allow: Vec<String>,
    deny: Vec<String>,
    /// Settings of ours: for a glob of tools or methods, or for all.
    settings: Vec<flags::Given>,
}

/// What was found, and what could not be converted.
#[derive(Debug, Default)]
struct Import {
    servers: Vec<Server>,
    left: Vec<String>,
}

/// Reads the files and writes one. Fails if there is nothing to write, or the file is there already.
pub fn run(request: &Request) -> io::Result<ExitCode> {
    let mut import = Import::default();
    for client in &request.clients {
        read::client(&mut import, client, request.scope);
    }
    if import.servers.is_empty() {
        import.left.iter().for_each(|line| tell(line));
        tell("no server was found; `outlast install` lists the clients and their files");
        return Ok(ExitCode::FAILURE);
    }
    let (text, secrets) = write::text(&mut import, &request.clients);
    // It must be one that outlast takes, whatever the files were.
    if let Err(mistakes) = file::examine_as(&text, &|_| Some("x".into())) {
        mistakes.iter().for_each(|mistake| tell(&mistake.to_string()));
        return Ok(ExitCode::FAILURE);
    }
    import.left.iter().for_each(|line| tell(line));
    let Some(path) = &request.output else {
        stdout::print(text)?;
        tell_variables(&secrets);
        return Ok(ExitCode::SUCCESS);
    };
    if let Err(why) = write_new(path, &text) {
        tell(&format!("{}: cannot be written: {why}", path.display()));
        return Ok(ExitCode::FAILURE);
    }
    stdout::print(format!("{}: {}\n", path.display(), counted(import.servers.len(), "server")))?;
    tell_variables(&secrets);
    Ok(ExitCode::SUCCESS)
}

/// Which variables to set. Their values are not shown.
fn tell_variables(secrets: &Secrets) {
    for (variable, place) in secrets.places() {
        tell(&format!("set {} before outlast starts: {}", visible(variable), visible(place)));
    }
    for (variable, server) in
        secrets.named().filter(|(variable, _)| crate::config::variable(variable).is_none())
    {
        let (variable, server) = (visible(variable), visible(server));
        tell(&format!(
            "set {variable} before outlast starts: server `{server}` needs it; if only its client knows it, write its value"
        ));
    }
}

/// A file that is there already is a person's work.
fn write_new(path: &PathBuf, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file = fs::File::create_new(path).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            io::Error::other("it is there already; write --output FILE, or --output - to see the text")
        }
        _ => error,
    })?;
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        // Half of it would be in the way of the next try.
        let _ = fs::remove_file(path);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::install::clients::{Place, Shape};

    const CURSOR: &str = r#"{ // mine
      "mcpServers": {
        "github": {"command": "outlast", "args": ["--installed", "--timeout", "10m", "--tool",
            "run_*=timeout:30m", "--keep", "--", "npx", "-y", "gh", "--api-key", "s3cret"],
          "env": {"TOKEN": "s3cret-2", "HOME_DIR": "${env:HOME}"}, "autoApprove": ["a"]},
        "my remote": {"url": "https://h.example/mcp", "headers": {"Authorization": "Bearer s3cret-3"}},
        "odd": {"type": "stdio"},
      }
    }"#;

    const CODEX: &str = "[mcp_servers.github]\ncommand = 'gh-mcp'\nenv = { TOKEN = 's3cret-4' }\n";

    #[test]
    fn files_of_clients_become_one_that_outlast_takes() {
        let mut import = Import::default();
        for (shape, text) in [(Shape::McpServers, CURSOR), (Shape::Codex, CODEX), (Shape::McpServers, CURSOR)]
        {
            let place = Place { scope: Scope::User, path: "x".into(), shape };
            read::file(&mut import, &place, "x", text);
        }
        let (text, secrets) = write::text(&mut import, &[]);
        let gateway = file::examine_as(&text, &|_| Some("x".into())).unwrap();
        let names: Vec<&str> = gateway.servers.iter().map(|server| &*server.config.name).collect();
        assert_eq!(names, ["github", "my-remote", "github-2"], "{text}");
        for line in [
            "args = [\"-y\", \"gh\", \"--api-key\", \"${GITHUB_API_KEY}\"]",
            "timeout = \"10m\"",
            "[servers.github.tools.\"run_*\"]",
            "headers = { \"Authorization\" = \"Bearer ${MY_REMOTE_AUTHORIZATION}\" }",
        ] {
            assert!(text.lines().any(|other| other == line), "{line} is not in\n{text}");
        }
        let told = import.left.join("\n");
        assert!(told.contains("not converted: `autoApprove`, --keep") && told.contains("`odd` is left out"));
        let variables: Vec<&str> = secrets.places().map(|(name, _)| name).collect();
        assert_eq!(variables, ["GITHUB_2_TOKEN", "GITHUB_API_KEY", "MY_REMOTE_AUTHORIZATION", "TOKEN"]);
        assert!(!text.contains("s3cret") && !told.contains("s3cret"));
    }
}
