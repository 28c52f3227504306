//! `kill -9` of outlast while a server works: the next process finds the call there, and it runs once.

use std::fs;
use std::path::PathBuf;

use nix::sys::signal::Signal;
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_slice, json};
use tempfile::TempDir;

use crate::http_security::new_token;
use crate::http_world::{Served, reached, serve};
use crate::resume::Client;
use crate::world::{ids_at_the_server, outlast};

/// A folder for what outlast stores, one for the server's own tasks, and a client that has a name.
struct World {
    folder: TempDir,
    authorization: String,
}

impl World {
    fn new() -> World {
        let folder = TempDir::new().expect("a folder");
        let (token, line) = new_token("ann");
        fs::write(folder.path().join("tokens"), line).expect("a file");
        fs::create_dir(folder.path().join("jobs")).expect("a folder");
        World { folder, authorization: format!("Bearer {token}") }
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().expect("text").to_owned()
    }

    fn serve(&self, state: &str, server: &[&str]) -> Served {
        serve(&["--token-file", &self.path("tokens"), "--state", state, "--resume-min-wait", "10ms"], server)
    }

    /// What is stored of a call under `state`.
    fn stored(&self, ticket: &str) -> Value {
        let state = self.path("state");
        let shown = outlast().args(["tasks", "show", ticket, "--json", "--state", &state]).output();
        from_slice(&shown.expect("an answer").stdout).unwrap_or_default()
    }

    /// Tasks that the server ever made.
    fn jobs(&self) -> Vec<PathBuf> {
        let jobs = fs::read_dir(self.path("jobs")).expect("a folder");
        jobs.map(|job| job.expect("a file").path()).collect()
    }
}

fn kill(process: &mut Peer) {
    process.signal(Signal::SIGKILL);
    process.end();
}

#[test]
fn a_task_of_the_server_is_followed_by_the_next_process() {
    let world = World::new();
    let (state, jobs) = (world.path("state"), world.path("jobs"));
    let server = ["--tasks", jobs.as_str()];
    let mut first = world.serve(&state, &server);
    let client = Client::open_as(first.address, Some(&world.authorization));
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": {"name": "job", "arguments": {"ms": 1500}}});
    let mut stream = client.ask(&call.to_string(), None);
    let policy = stream.message_where(|message| message["method"] == "notifications/requests/resumePolicy");
    let token = policy["params"]["resumeToken"].as_str().expect("a token").to_owned();
    assert!(wait_until(LIMIT, || world.stored(&token)["serverTask"] == "job-0"), "{}", world.stored(&token));
    kill(&mut first.process);

    let second = world.serve(&state, &server);
    let client = Client::open_as(second.address, Some(&world.authorization));
    let resume =
        json!({"jsonrpc": "2.0", "id": 7, "method": "requests/resume", "params": {"resumeToken": token}});
    let answer = client.ask(&resume.to_string(), None).message_where(|message| message["id"] == 7);
    assert_eq!(answer["result"]["structuredContent"], json!({"word": "none"}), "{answer}");
    assert_eq!(world.jobs().len(), 1, "it was called once");
    assert_eq!(world.stored(&token)["epoch"], 2, "the second process took it over");
}

/// The ticket of a call that was handed off.
fn ticket(answer: &Value) -> String {
    let ticket = answer["result"]["_meta"]["dev.outlast/ticket"].as_str();
    ticket.unwrap_or_else(|| panic!("no ticket: {answer}")).to_owned()
}

/// The tool that waits for one.
fn wait_tool(client: &mut Peer) -> String {
    let id = client.request("tools/list", &json!({}));
    let tools = client.answer(&id)["result"]["tools"].clone();
    let mut names = tools.as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str());
    names.find(|name| name.ends_with("_wait")).expect("a tool that waits").to_owned()
}

#[test]
fn a_call_at_another_outlast_is_resumed_by_the_next_process() {
    let world = World::new();
    let far = world.serve("none", &[]);
    let url = format!("http://{}/mcp", far.address);
    let (state, header) = (world.path("state"), format!("Authorization: {}", world.authorization));
    let flags = ["--client-cap", "2s", "--state", &state, "--header", &header];
    let mut first = reached(&flags, &url);
    let ticket = ticket(&first.call("silent", &json!({"ms": 4000})));
    // The token is written when the ticket is there, and nothing else is.
    assert!(wait_until(LIMIT, || world.stored(&ticket)["revision"] == 2), "{}", world.stored(&ticket));
    kill(&mut first);

    let mut second = reached(&flags, &url);
    let tool = wait_tool(&mut second);
    let mut answer = Value::Null;
    let ended = wait_until(LIMIT, || {
        answer = second.call(&tool, &json!({"ticket": ticket}));
        answer["result"].get("structuredContent").is_some() || answer.get("error").is_some()
    });
    assert!(ended && answer["result"]["structuredContent"] == "done", "{answer}");
    assert_eq!(ids_at_the_server(&mut second, "silent").len(), 1, "it ran once");
}
