//! Secrets that are planted on every way in must come out nowhere where others read.
//!
//! One `outlast serve` stands before a server of its own and one behind HTTP. Everything secret that it is given is a
//! value that stands nowhere else, so whatever holds one of them has leaked it. An output is one more [`Source`].

use std::fs::{read_to_string, write};
use std::path::Path;

use nix::sys::signal::Signal;
use outlast_testkit::http::faults::FaultServer;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http_dashboard::{auth, hold, post};
use crate::http_world::{Served, Session, answer_of, legacy, listening, outlast_alone};
use crate::world::{data, fake_server, outlast};

/// Something secret: what it is, and its value.
type Secret = (&'static str, String);

/// Something that comes out.
struct Source {
    name: &'static str,
    /// What has it come out into this folder.
    flags: fn(&Path) -> Vec<String>,
    come: Come,
    /// What stands there because whoever reads it owns it.
    owned: &'static [&'static str],
}

/// How it comes.
enum Come {
    /// While all of it runs.
    Running(fn(&World) -> String),
    /// After the end: our stderr, and what is in the folder.
    Ended(fn(&Path, &str) -> String),
}

const NONE: fn(&Path) -> Vec<String> = |_| Vec::new();

/// A command of the user, with its words.
const fn command(name: &'static str, of: fn(&World) -> String, owned: &'static [&'static str]) -> Source {
    Source { name, flags: NONE, come: Come::Running(of), owned }
}

/// Everything that outlast writes or answers about calls.
const SOURCES: &[Source] = &[
    Source {
        name: "the log on stderr",
        flags: |_| words(&["--log", "debug"]),
        come: Come::Ended(|_, stderr| stderr.to_owned()),
        owned: &[],
    },
    Source {
        name: "the access log",
        flags: |folder| vec!["--access-log".into(), file(folder, "access.log")],
        come: Come::Ended(|folder, _| read_to_string(folder.join("access.log")).expect("a log")),
        owned: &[],
    },
    Source {
        name: "the record of messages",
        flags: |folder| vec!["--trace-messages".into(), file(folder, "trace.jsonl")],
        come: Come::Ended(|folder, _| read_to_string(folder.join("trace.jsonl")).expect("a record")),
        owned: &[],
    },
    Source {
        name: "/metrics",
        flags: |_| words(&["--metrics"]),
        come: Come::Running(|world| world.get("/metrics")),
        owned: &[],
    },
    command("/readyz", |world| world.get("/readyz"), &[]),
    command("/outlast/api/state", |world| world.get("/outlast/api/state"), &[]),
    command("the stories of calls", World::stories, &[]),
    command("outlast top --json", |world| world.ours(&["top", "--json"]), &[]),
    command("outlast top --json --url", World::top_of_the_service, &[]),
    command("outlast holds --json", |world| world.ours(&["holds", "--json"]), &[]),
    command("outlast audit --json", |world| world.ours(&["audit", "--json"]), &[]),
    // Whoever asks for the tasks wants to fetch one.
    command(
        "outlast tasks list --json",
        |world| world.ours(&["tasks", "list", "--json"]),
        &["the id of a task", "a ticket"],
    ),
    command("outlast tasks list", |world| world.ours(&["tasks", "list"]), &[]),
    command("outlast servers --json", |world| world.ours(&["servers", "--json"]), &[]),
    command("outlast advise --json", |world| world.ours(&["advise", "--json"]), &[]),
    command("outlast explain --json", World::explained, &[]),
];

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn file(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("text").to_owned()
}

/// All that runs.
struct World {
    folder: TempDir,
    served: Served,
    /// Sees everything; not the one who calls.
    reader: String,
    _remote: FaultServer,
}

impl World {
    fn start(format: &str, secrets: &mut Vec<Secret>) -> World {
        let folder = TempDir::new().expect("a folder");
        let remote = FaultServer::start(legacy);
        let [(caller, of_caller), (reader, of_reader)] = ["ana", "cleo"].map(token);
        secrets.push(("a token", caller));
        secrets.push(("the token of a reader", reader.clone()));
        let toml = format!(
            "[servers.near]\ncommand = {:?}\n\
             env = {{ API_KEY = \"planted-environment\", FAKE_TOOLS = \"echo silent hang held\" }}\n\
             [servers.away]\nurl = \"{}\"\nheaders = {{ X-Api-Key = \"planted-header\" }}\n\
             [tokens.ana]\nhash = \"{of_caller}\"\n[tokens.cleo]\nhash = \"{of_reader}\"\ndashboard = \"all\"\n",
            fake_server(),
            remote.url()
        );
        write(folder.path().join("outlast.toml"), toml).expect("a file");
        let mut command = outlast_alone();
        command.args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--client-cap",
            "1s",
            "--redact",
            "iban*",
            "--drain",
            "1s",
        ]);
        command.args(["--tool", "hang=timeout:300ms", "--tool", "held=hold:true", "--log-format", format]);
        command.args(["--config", &file(folder.path(), "outlast.toml")]);
        command.args(["--state", &file(folder.path(), "state")]);
        command.args(SOURCES.iter().flat_map(|source| (source.flags)(folder.path())));
        World { served: listening(&mut command), reader, folder, _remote: remote }
    }

    fn get(&self, path: &str) -> String {
        let bearer = format!("Bearer {}", self.reader);
        let response = self.served.ask(&format!("GET {path}"), &auth(&bearer), "");
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        response.text()
    }

    /// What `outlast WORDS` prints for the user.
    fn ours(&self, words: &[&str]) -> String {
        let state = self.folder.path().join("state");
        let output = outlast().args(words).arg("--state").arg(state).output().expect("outlast runs");
        assert!(output.status.success(), "{words:?}: {output:?}");
        [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat()
    }

    fn stories(&self) -> String {
        let state: Value = serde_json::from_str(&self.get("/outlast/api/state")).expect("JSON");
        let calls = ["calls", "ended"].into_iter().flat_map(|list| state[list].as_array().expect("a list"));
        let ids: Vec<&str> = calls.map(|call| call["id"].as_str().expect("an id")).collect();
        assert!(ids.len() > 5, "{state}");
        ids.iter().map(|id| self.get(&format!("/outlast/api/calls/{id}"))).collect()
    }

    fn top_of_the_service(&self) -> String {
        let tokens = self.folder.path().join("reader");
        write(&tokens, &self.reader).expect("a file");
        let url = format!("http://{}", self.served.address);
        let output = outlast()
            .args(["top", "--json", "--url", &url, "--token-file"])
            .arg(tokens)
            .output()
            .expect("outlast runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn explained(&self) -> String {
        let file = self.folder.path().join("outlast.toml");
        let output = outlast().args(["explain", "near", "echo", "--json", "--config"]).arg(file).output();
        let output = output.expect("outlast runs");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Ends it; what it has said on stderr.
    fn end(mut self) -> (TempDir, String) {
        self.served.process.signal(Signal::SIGTERM);
        self.served.process.end();
        (self.folder, String::from_utf8_lossy(&self.served.process.all_stderr()).into_owned())
    }
}

/// A new token, and what a file says of it.
fn token(name: &str) -> (String, String) {
    let made = outlast().args(["token", "new", name]).output().expect("it runs");
    let last = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().rsplit(' ').next().map(str::to_owned);
    (last(&made.stderr).expect("a token"), last(&made.stdout).expect("a hash"))
}

/// Arguments with secrets in them, and something that may be seen.
fn arguments() -> Value {
    json!({"password": "planted-password", "deep": [{"iban_of": "planted-iban"}], "harmless": "to-be-seen"})
}

/// Has every secret pass through, in calls that go well, fail, wait and are fetched later.
fn use_all(world: &World, secrets: &mut Vec<Secret>) {
    let bearer = format!("Bearer {}", secrets[0].1);
    let mut session = Session::open(world.served.address, Some(&bearer));
    secrets.push(("the id of a session", session.id.clone()));
    for tool in ["near__echo", "away__echo"] {
        assert_eq!(session.value_of(tool, &arguments()), arguments());
    }
    assert_eq!(data(&session.call("near__hang", &arguments()))["kind"], "timeout");
    let task = json!({"name": "near__echo", "arguments": arguments(), "task": {}});
    let (mut made, _) = session.begin("tools/call", &task);
    let made = answer_of(&mut made);
    let task = made["result"]["task"]["taskId"].as_str().unwrap_or_else(|| panic!("no task: {made}"));
    secrets.push(("the id of a task", task.to_owned()));
    let (mut fetched, _) = session.begin("tasks/result", &json!({"taskId": task}));
    assert_eq!(answer_of(&mut fetched)["result"]["structuredContent"], arguments());
    let handed_off = session.call("near__silent", &json!({"ms": 2_500}));
    let ticket = handed_off["result"]["_meta"]["dev.outlast/ticket"].as_str();
    secrets.push(("a ticket", ticket.unwrap_or_else(|| panic!("no ticket: {handed_off}")).to_owned()));
    let stranger =
        served_status(world, "/mcp?key=planted-query", &[("Authorization", "Bearer planted-guess")]);
    assert_eq!(stranger, 401);
    let reader = format!("Bearer {}", world.reader);
    let (mut declined, _) = session.begin_call("near__held", &arguments());
    let path = format!("/outlast/api/holds/{}", hold(&world.served, &auth(&reader))["hold"]);
    assert_eq!(post(&world.served, &path, &auth(&reader), &json!({"decision": "decline"})).status, 200);
    assert_eq!(answer_of(&mut declined)["result"]["isError"], true);
    session.begin_call("near__held", &arguments());
    hold(&world.served, &auth(&reader));
}

fn served_status(world: &World, path: &str, headers: &[(&str, &str)]) -> u16 {
    world.served.ask(&format!("POST {path}"), headers, "{}").status
}

fn check(source: &Source, text: &str, secrets: &[Secret]) {
    assert!(!text.is_empty(), "{}: nothing came out", source.name);
    for (what, value) in secrets.iter().filter(|(what, _)| !source.owned.contains(what)) {
        assert!(!text.contains(value), "{what} ({value}) stands in {}: {text}", source.name);
    }
}

fn nothing_leaks(format: &str) {
    let mut secrets: Vec<Secret> = Vec::new();
    let world = World::start(format, &mut secrets);
    use_all(&world, &mut secrets);
    let planted = ["environment", "header", "password", "iban", "query", "guess"];
    secrets.extend(planted.map(|what| (what, format!("planted-{what}"))));
    for source in SOURCES {
        if let Come::Running(read) = source.come {
            check(source, &read(&world), &secrets);
        }
    }
    let (folder, stderr) = world.end();
    for source in SOURCES {
        if let Come::Ended(read) = source.come {
            check(source, &read(folder.path(), &stderr), &secrets);
        }
    }
    let trace = read_to_string(folder.path().join("trace.jsonl")).expect("a record");
    assert!(trace.contains("to-be-seen") && trace.contains("***"), "the calls are in it: {trace}");
}

#[test]
fn nothing_that_was_planted_comes_out() {
    nothing_leaks("text");
}

#[test]
fn nothing_that_was_planted_comes_out_for_programs() {
    nothing_leaks("json");
}
