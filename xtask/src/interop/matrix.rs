//! Who talks to whom and how: the clients, the servers, the visits, and the failures we understand.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use anyhow::{Result, bail};

use super::client::{self, Outcome, Run};
use super::{Places, RUN_LIMIT};

/// How a client reaches outlast, and how outlast reaches the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Way {
    Stdio,
    HttpToStdio,
    StdioToHttp,
    Http,
}

impl Way {
    pub const ALL: [Self; 4] = [Self::Stdio, Self::HttpToStdio, Self::StdioToHttp, Self::Http];

    pub fn word(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::HttpToStdio => "http-stdio",
            Self::StdioToHttp => "stdio-http",
            Self::Http => "http",
        }
    }

    fn named(word: &str) -> Result<Self> {
        let known = Self::ALL.map(Self::word).join(", ");
        let way = Self::ALL.into_iter().find(|way| way.word() == word);
        way.ok_or_else(|| anyhow::anyhow!("no way is called `{word}`; known: {known}"))
    }
}

/// An SDK, as far as it has to be installed or built.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Sdk {
    Ts1,
    Ts2,
    Py1,
    Py2,
    Rust,
    /// No SDK, but installed as one: a receiver of traces.
    Rotel,
}

/// How a client opens: legacy is `initialize`, modern is the 2026 revision, auto asks first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
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
    pub sdk: Sdk,
    pub era: Era,
}

pub struct Server {
    pub name: &'static str,
    pub sdk: Sdk,
    profile: &'static str,
    /// Every server speaks the legacy era; these speak the modern one too.
    pub modern: bool,
}

/// The name alone is what a person gets who uses the SDK without asking for an era.
pub const CLIENTS: [Client; 11] = [
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

pub const SERVERS: [Server; 6] = [
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
    /// Whether they meet over HTTP.
    http: bool,
    check: &'static str,
    reason: &'static str,
}

/// Each has to fail directly, or it has no business here any more.
const EXCEPTIONS: [Exception; 0] = [];

/// One client with one server.
#[derive(Clone, Copy)]
pub struct Pair {
    pub client: &'static Client,
    pub server: &'static Server,
}

impl Client {
    /// Whether the two share an era; to translate between eras is not supported yet.
    pub fn understands(&self, server: &Server) -> bool {
        self.era != Era::Modern || server.modern
    }
}

impl Pair {
    fn is(&self, other: &Self) -> bool {
        self.client.name == other.client.name && self.server.name == other.server.name
    }
}

impl fmt::Display for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.client.name, self.server.name)
    }
}

/// A pair, and how the two are connected.
#[derive(Clone, Copy)]
pub struct Visit {
    pub pair: Pair,
    pub way: Way,
}

impl fmt::Display for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.pair, self.way.word())
    }
}

/// The visits that `names` (a client, a server, a way) ask for.
///
/// A pair that is asked for by its names gets all that it can do. Otherwise every pair meets over
/// stdio, and over HTTP, unless all are asked for, as many as it takes.
pub fn visits(names: &[String], all: bool) -> Result<Vec<Visit>> {
    check_names(names)?;
    let way = names.get(2).map(|word| Way::named(word)).transpose()?;
    let wanted = |index: usize, name: &str| names.get(index).is_none_or(|asked| asked == name);
    let all = all || names.len() > 1;
    let mut visits = Vec::new();
    for way in Way::ALL.into_iter().filter(|known| way.is_none_or(|asked| asked == *known)) {
        let usual = usual_pairs(way);
        let chosen = |pair: &Pair| all || usual.iter().any(|known| known.is(pair));
        let asked = |pair: &Pair| wanted(0, pair.client.name) && wanted(1, pair.server.name);
        let pairs = all_pairs().into_iter().filter(|pair| asked(pair) && chosen(pair));
        visits.extend(pairs.map(|pair| Visit { pair, way }));
    }
    if visits.is_empty() {
        bail!("a modern client has nothing to say to a legacy server");
    }
    Ok(visits)
}

fn check_names(names: &[String]) -> Result<()> {
    if let Some(name) = names.first().filter(|name| CLIENTS.iter().all(|client| client.name != **name)) {
        let known = CLIENTS.map(|client| client.name).join(", ");
        bail!("no client is called `{name}`; known: {known}");
    }
    if let Some(name) = names.get(1).filter(|name| SERVERS.iter().all(|server| server.name != **name)) {
        let known = SERVERS.map(|server| server.name).join(", ");
        bail!("no server is called `{name}`; known: {known}");
    }
    Ok(())
}

fn all_pairs() -> Vec<Pair> {
    let of_client = |client| SERVERS.iter().map(move |server| Pair { client, server });
    let understands = |pair: &Pair| pair.client.understands(pair.server);
    CLIENTS.iter().flat_map(of_client).filter(understands).collect()
}

/// The pairs that meet in every run.
///
/// Over HTTP each client and each server takes part in every era that it speaks, and every way
/// brings other partners together. All of them would take too long.
pub fn usual_pairs(way: Way) -> Vec<Pair> {
    let turn = match way {
        Way::Stdio => return all_pairs(),
        Way::HttpToStdio => 1,
        Way::StdioToHttp => 2,
        Way::Http => 3,
    };
    let clients = |era| CLIENTS.iter().filter(|client| client.era == era).collect::<Vec<_>>();
    let servers = |modern| SERVERS.iter().filter(|server| server.modern == modern).collect::<Vec<_>>();
    [
        round(&clients(Era::Legacy), &SERVERS.iter().collect::<Vec<_>>(), turn),
        round(&clients(Era::Modern), &servers(true), turn),
        round(&clients(Era::Auto), &servers(true), turn + 1),
        round(&clients(Era::Auto), &servers(false), turn),
    ]
    .concat()
}

/// Each client with a server and each server with a client, as few pairs as possible.
fn round(clients: &[&'static Client], servers: &[&'static Server], turn: usize) -> Vec<Pair> {
    let pair = |at: usize| Pair {
        client: clients[(at + turn) % clients.len()],
        server: servers[at % servers.len()],
    };
    (0..clients.len().max(servers.len())).map(pair).collect()
}

/// A server by its name.
pub fn server(name: &str) -> &'static Server {
    SERVERS.iter().find(|server| server.name == name).expect("a server of the table")
}

/// The pair whose call is silent for a minute.
pub fn keepalive_pair() -> Pair {
    Pair { client: &CLIENTS[0], server: &SERVERS[1] }
}

/// A client whose call waits for a person, and its server.
pub fn held_pair(client: &str) -> Pair {
    let client = CLIENTS.iter().find(|known| known.name == client).unwrap_or(&CLIENTS[0]);
    Pair { client, server: &SERVERS[1] }
}

/// The pair whose server is killed in mid-call: the reference server.
pub fn crash_pair() -> Pair {
    Pair { client: &CLIENTS[0], server: &SERVERS[0] }
}

/// A client of every SDK line, all at one server.
pub fn crowd() -> Vec<Pair> {
    let legacy = CLIENTS.iter().filter(|client| client.era == Era::Legacy);
    legacy.map(|client| Pair { client, server: &SERVERS[1] }).collect()
}

/// What has to be there for these visits to take place.
pub fn sdks(visits: &[Visit]) -> BTreeSet<Sdk> {
    visits.iter().flat_map(|visit| [visit.pair.client.sdk, visit.pair.server.sdk]).collect()
}

/// What failed directly although nothing explains it, and explanations that explain nothing.
pub fn unexplained(pair: &Pair, http: bool, direct: &Run) -> Vec<String> {
    let concerns = |exception: &&Exception| {
        (exception.client, exception.server, exception.http) == (pair.client.name, pair.server.name, http)
    };
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
    /// Runs all checks against what `target` says: a URL, or a command.
    pub fn run(&self, places: &Places, target: &[String], label: &str) -> Run {
        let options = ["--profile", self.server.profile];
        self.run_with(places, &options, target, label, RUN_LIMIT)
    }

    pub fn run_with(
        &self,
        places: &Places,
        options: &[&str],
        target: &[String],
        label: &str,
        limit: Duration,
    ) -> Run {
        let mut command = client_command(places, self.client);
        command.extend(options.iter().map(|option| (*option).to_owned()));
        command.push("--".to_owned());
        command.extend_from_slice(target);
        let log = format!("{}-{}-{label}.log", self.client.name, self.server.name);
        client::run(&command, &places.logs().join(log), limit)
    }
}

impl Server {
    /// What starts it, to speak on stdio.
    pub fn stdio_command(&self, places: &Places) -> Vec<String> {
        if self.name == "everything" {
            let script = "ts1/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
            return vec!["node".to_owned(), places.installed.join(script).display().to_string()];
        }
        match self.sdk {
            Sdk::Rust => vec![places.built.join("rmcp-server").display().to_string()],
            sdk => program(places, sdk, "server"),
        }
    }

    /// What starts it, to listen on a free port.
    pub fn http_command(&self, places: &Places) -> Vec<String> {
        if self.name == "everything" {
            return program(places, self.sdk, "everything-http");
        }
        let mut command = self.stdio_command(places);
        command.push("--http".to_owned());
        command
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

fn program(places: &Places, sdk: Sdk, role: &str) -> Vec<String> {
    let (interpreter, script) = match sdk {
        Sdk::Ts1 => ("node", format!("ts1/{role}.mjs")),
        Sdk::Ts2 => ("node", format!("ts2/{role}.mjs")),
        Sdk::Py1 => ("py1/bin/python", format!("py/{role}1.py")),
        Sdk::Py2 => ("py2/bin/python", format!("py/{role}2.py")),
        Sdk::Rust | Sdk::Rotel => unreachable!("these programs are not interpreted"),
    };
    let interpreter = match interpreter {
        "node" => "node".to_owned(),
        path => places.installed.join(path).display().to_string(),
    };
    vec![interpreter, places.installed.join(script).display().to_string()]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the table in `docs/transports.md` promises.
    #[test]
    fn every_client_and_server_takes_every_way_in_every_era() {
        for way in Way::ALL {
            let pairs = usual_pairs(way);
            for client in &CLIENTS {
                let meets = |modern| {
                    let same = |pair: &&Pair| pair.client.name == client.name && pair.server.modern == modern;
                    pairs.iter().any(|pair| same(&pair))
                };
                assert!(client.era == Era::Legacy || meets(true), "{} {way:?}", client.name);
                assert!(client.era != Era::Auto || meets(false), "{} {way:?}", client.name);
                assert!(meets(true) || meets(false), "{} {way:?}", client.name);
            }
            for server in &SERVERS {
                let meets =
                    |era| pairs.iter().any(|pair| pair.server.name == server.name && pair.client.era == era);
                assert!(meets(Era::Legacy) && meets(Era::Auto), "{} {way:?}", server.name);
                assert_eq!(meets(Era::Modern), server.modern, "{} {way:?}", server.name);
            }
        }
    }

    #[test]
    fn a_pair_that_is_named_goes_every_way() {
        let named = |names: &[&str]| {
            visits(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), false).map(|v| v.len())
        };
        assert_eq!(named(&["ts1", "rust"]).ok(), Some(4));
        assert_eq!(named(&["ts1", "rust", "http"]).ok(), Some(1));
        assert!(named(&["ts1", "rust", "carrier-pigeon"]).is_err());
        assert!(named(&["ts2-modern", "ts1"]).is_err());
    }
}
