//! Who talks to whom: the clients, the servers, the pairs, and the failures we understand.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};

use super::client::{self, Outcome, Run};
use super::{Places, RUN_LIMIT};

/// An SDK, as far as it has to be installed or built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sdk {
    Ts1,
    Ts2,
    Py1,
    Py2,
    Rust,
}

/// How a client opens: legacy is `initialize`, modern is the 2026 revision, auto asks first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Legacy,
    Modern,
    Auto,
}

impl Era {
    fn word(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
            Self::Auto => "auto",
        }
    }
}

pub struct Client {
    pub name: &'static str,
    sdk: Sdk,
    era: Era,
}

pub struct Server {
    pub name: &'static str,
    sdk: Sdk,
    profile: &'static str,
    /// Every server speaks the legacy era; these speak the modern one too.
    modern: bool,
}

/// The name alone is what a person gets who uses the SDK without asking for an era.
const CLIENTS: [Client; 11] = [
    Client { name: "ts1", sdk: Sdk::Ts1, era: Era::Legacy },
    Client { name: "ts2", sdk: Sdk::Ts2, era: Era::Legacy },
    Client { name: "ts2-modern", sdk: Sdk::Ts2, era: Era::Modern },
    Client { name: "ts2-auto", sdk: Sdk::Ts2, era: Era::Auto },
    Client { name: "py1", sdk: Sdk::Py1, era: Era::Legacy },
    Client { name: "py2", sdk: Sdk::Py2, era: Era::Auto },
    Client { name: "py2-legacy", sdk: Sdk::Py2, era: Era::Legacy },
    Client { name: "py2-modern", sdk: Sdk::Py2, era: Era::Modern },
    Client { name: "rust", sdk: Sdk::Rust, era: Era::Legacy },
    Client { name: "rust-modern", sdk: Sdk::Rust, era: Era::Modern },
    Client { name: "rust-auto", sdk: Sdk::Rust, era: Era::Auto },
];

const SERVERS: [Server; 6] = [
    Server { name: "everything", sdk: Sdk::Ts1, profile: "everything", modern: false },
    Server { name: "ts1", sdk: Sdk::Ts1, profile: "fixture", modern: false },
    Server { name: "ts2", sdk: Sdk::Ts2, profile: "fixture", modern: true },
    Server { name: "py1", sdk: Sdk::Py1, profile: "fixture", modern: false },
    Server { name: "py2", sdk: Sdk::Py2, profile: "fixture", modern: true },
    Server { name: "rust", sdk: Sdk::Rust, profile: "fixture", modern: true },
];

/// A check that fails directly, between two programs that are not ours, and why.
pub struct Exception {
    client: &'static str,
    server: &'static str,
    check: &'static str,
    reason: &'static str,
}

/// Each has to fail directly, or it has no business here any more.
const EXCEPTIONS: [Exception; 0] = [];

/// One client with one server.
pub struct Pair {
    pub client: &'static Client,
    pub server: &'static Server,
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.client.name, self.server.name)
    }
}

/// The pairs that share an era, or those of them that `names` (a client, a server) asks for.
pub fn pairs(names: &[String]) -> Result<Vec<Pair>> {
    if let Some(name) = names.first().filter(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        let known = CLIENTS.map(|client| client.name).join(", ");
        bail!("no client is called `{name}`; known: {known}");
    }
    if let Some(name) = names.get(1).filter(|name| SERVERS.iter().all(|server| server.name != **name)) {
        let known = SERVERS.map(|server| server.name).join(", ");
        bail!("no server is called `{name}`; known: {known}");
    }
    let wanted = |index: usize, name: &str| names.get(index).is_none_or(|asked| asked == name);
    let mut pairs = Vec::new();
    for client in CLIENTS.iter().filter(|client| wanted(0, client.name)) {
        for server in SERVERS.iter().filter(|server| wanted(1, server.name)) {
            if client.era != Era::Modern || server.modern {
                pairs.push(Pair { client, server });
            }
        }
    }
    if pairs.is_empty() {
        bail!("a modern client has nothing to say to a legacy server");
    }
    Ok(pairs)
}

/// The pair whose call is silent for a minute.
pub fn keepalive_pair() -> Pair {
    Pair { client: &CLIENTS[0], server: &SERVERS[1] }
}

/// The pair whose server is killed in mid-call: the reference server.
pub fn crash_pair() -> Pair {
    Pair { client: &CLIENTS[0], server: &SERVERS[0] }
}

/// What has to be there for these pairs to run.
pub fn sdks(pairs: &[Pair]) -> BTreeSet<Sdk> {
    pairs.iter().flat_map(|pair| [pair.client.sdk, pair.server.sdk]).collect()
}

/// What failed directly although nothing explains it, and explanations that explain nothing.
pub fn unexplained(pair: &Pair, direct: &Run) -> Vec<String> {
    let concerns =
        |exception: &&Exception| exception.client == pair.client.name && exception.server == pair.server.name;
    let exceptions: Vec<&Exception> = EXCEPTIONS.iter().filter(concerns).collect();
    let explains = |check: &str| exceptions.iter().any(|exception| exception.check == check);
    let failed = |outcome: &Outcome| outcome.ok == Outcome::FAILED;
    let mut complaints: Vec<String> = direct
        .outcomes
        .iter()
        .filter(|(check, outcome)| failed(outcome) && !explains(check))
        .map(|(check, outcome)| format!("{check}: {outcome}, directly"))
        .collect();
    for exception in exceptions {
        if !direct.outcomes.get(exception.check).is_some_and(failed) {
            let (check, reason) = (exception.check, exception.reason);
            complaints.push(format!("{check}: passes, so `{reason}` is no reason any more"));
        }
    }
    if !direct.outcomes.contains_key("close") {
        complaints.push("the client did not come to its last check".to_owned());
    }
    if !complaints.is_empty() || direct.trouble.is_some() {
        complaints.extend(direct.story());
    }
    complaints
}

impl Pair {
    /// Runs all checks; `wrapper` is what goes in front of the server's command.
    pub fn run(&self, places: &Places, wrapper: &[&str], label: &str) -> Run {
        let options = ["--profile", self.server.profile];
        self.run_with(places, &options, wrapper, label, RUN_LIMIT)
    }

    pub fn run_with(
        &self,
        places: &Places,
        options: &[&str],
        wrapper: &[&str],
        label: &str,
        limit: Duration,
    ) -> Run {
        let mut command = client_command(places, self.client);
        command.extend(options.iter().map(|option| (*option).to_owned()));
        command.push("--".to_owned());
        command.extend(wrapper.iter().map(|word| (*word).to_owned()));
        command.extend(server_command(places, self.server));
        let log = format!("{}-{}-{label}.log", self.client.name, self.server.name);
        client::run(&command, &places.installed.join("logs").join(log), limit)
    }
}

fn client_command(places: &Places, client: &Client) -> Vec<String> {
    let mut command = match client.sdk {
        Sdk::Rust => vec![places.built.join("rmcp-client").display().to_string()],
        sdk => program(places, sdk, "client"),
    };
    command.extend(["--era".to_owned(), client.era.word().to_owned()]);
    command
}

fn server_command(places: &Places, server: &Server) -> Vec<String> {
    if server.name == "everything" {
        let script = "ts1/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        return vec!["node".to_owned(), places.installed.join(script).display().to_string()];
    }
    match server.sdk {
        Sdk::Rust => vec![places.built.join("rmcp-server").display().to_string()],
        sdk => program(places, sdk, "server"),
    }
}

fn program(places: &Places, sdk: Sdk, role: &str) -> Vec<String> {
    let (interpreter, script) = match sdk {
        Sdk::Ts1 => ("node", format!("ts1/{role}.mjs")),
        Sdk::Ts2 => ("node", format!("ts2/{role}.mjs")),
        Sdk::Py1 => ("py1/bin/python", format!("py/{role}1.py")),
        Sdk::Py2 => ("py2/bin/python", format!("py/{role}2.py")),
        Sdk::Rust => unreachable!("the Rust programs are built, not interpreted"),
    };
    let interpreter = match interpreter {
        "node" => "node".to_owned(),
        path => places.installed.join(path).display().to_string(),
    };
    vec![interpreter, places.installed.join(script).display().to_string()]
}
