//! What is known of a client acts by itself: a client that does nothing but what it is told gets its result, and a
//! limit that was learned counts in the next process.

use crate::world::{outlast, wrapping};
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Output;
use std::time::{Duration, Instant};

/// A client that introduces itself.
fn named(flags: &[&str], name: &str) -> Peer {
    let mut client = Peer::start(&mut wrapping(flags, &[]));
    let info = json!({"name": name, "version": "3"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let id = client.request("initialize", &params);
    client.answer(&id);
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    client
}

/// The tools that a client shows its model: each under a name of its own making.
fn shown(client: &mut Peer) -> Vec<(String, String)> {
    let id = client.request("tools/list", &json!({}));
    let tools = client.answer(&id)["result"]["tools"].clone();
    let name = |tool: &Value| tool["name"].as_str().expect("a name").to_owned();
    tools
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| (format!("mcp__mine__{}", name(tool)), name(tool)))
        .collect()
}

/// What a text tells its reader to call: "Call the tool `x` with {…}". Nothing else in it is understood.
fn order(text: &str) -> Option<(String, Value)> {
    let (_, rest) = text.split_once("Call the tool `")?;
    let (tool, rest) = rest.split_once("` with ")?;
    let end = rest.find('}')? + 1;
    Some((tool.to_owned(), serde_json::from_str(&rest[..end]).expect("arguments")))
}

#[test]
fn a_client_that_obeys_only_the_text_gets_its_result() {
    let row = "obedient=cap:2s,progress:no";
    let mut client = named(&["--client-profile", row, "--state", "none"], "obedient");
    let tools = shown(&mut client);
    let began = Instant::now();
    let mut answer = client.call("silent", &json!({"ms": 6000}));
    let mut orders = Vec::new();
    while let Some((tool, arguments)) =
        order(answer["result"]["content"][0]["text"].as_str().unwrap_or_default())
    {
        // It has the tool under another name, and stops a model that says the same thing again and again.
        let (_, own) = tools.iter().find(|(shown, _)| shown.ends_with(&tool)).expect("a tool of that name");
        assert!(!orders.contains(&arguments), "{arguments} again, after {orders:?}");
        orders.push(arguments.clone());
        let asked = Instant::now();
        answer = client.call(own, &arguments);
        assert!(asked.elapsed() < Duration::from_secs(2), "it would have given up by now");
    }
    assert_eq!(answer["result"]["structuredContent"], "done", "{answer}");
    assert!(began.elapsed() >= Duration::from_secs(6) && orders.len() >= 3, "{orders:?}");
}

fn run(words: &[&str]) -> Output {
    outlast().args(words).output().expect("it runs")
}

/// A client that gives every call up after a second, and says so.
fn gives_up_after_a_second(state: &str) {
    let mut client = named(&["--state", state], "hasty");
    let id = client.begin("hang", &json!({}));
    assert!(client.try_line_within(Duration::from_secs(1), |line| line.json()["id"] == id).is_err());
    let params = json!({"requestId": id, "reason": "timed out after 1s"});
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}));
    client.stderr_where(|text| text.contains("outlast clients learn 'hasty'"));
    client.hang_up();
}

#[test]
fn a_limit_that_was_learned_counts_once_a_person_has_said_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let state = folder.path().to_str().expect("text");
    gives_up_after_a_second(state);
    assert!(Path::new(state).join("clients.json").exists());
    let said = |words: &[&str]| String::from_utf8(run(words).stdout).expect("text");
    assert!(said(&["clients", "learn", "--state", state]).contains("does not count yet"));
    assert_eq!(shown(&mut named(&["--state", state], "hasty")).len(), 1, "nothing is done unasked");

    assert_eq!(said(&["clients", "learn", "hasty", "--state", state]), "hasty 3: 1s counts from now on\n");
    let listed: Value = serde_json::from_str(&said(&["clients", "--json", "--state", state])).expect("JSON");
    assert_eq!(listed["clients"][0]["from"], "learned here");
    let mut client = named(&["--state", state, "--log", "info"], "hasty");
    assert_eq!(shown(&mut client).len(), 3);
    let answer = client.call("hang", &json!({}));
    assert_eq!(
        answer["result"]["_meta"]["dev.outlast/why"], "learned on this machine of hasty 3",
        "{answer}"
    );
    client.stderr_where(|text| text.contains("gives up on a tool after 1s (learned on this machine"));
    client.hang_up();

    assert_eq!(said(&["clients", "forget", "hasty", "--state", state]), "hasty 3: 1s is forgotten\n");
    assert_eq!(run(&["clients", "forget", "hasty", "--state", state]).status.code(), Some(1));
    assert_eq!(shown(&mut named(&["--state", state], "hasty")).len(), 1);
}

#[test]
fn what_is_known_of_clients_is_shown_and_extended() {
    let rows =
        |output: Output| serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["clients"].clone();
    let mut command = outlast();
    command
        .args(["clients", "--json", "--state", "none"])
        .env("OUTLAST_CLIENT_PROFILE", "mine=cap:9s,progress:no");
    let rows = rows(command.output().expect("it runs"));
    assert_eq!(
        (&rows[0]["name"], &rows[0]["does"]),
        (&json!("mine"), &json!("answers are handed off after 8s100ms"))
    );
    let measured = rows.as_array().expect("rows").iter().filter(|row| row["acts"] == true).count();
    assert!(measured >= 8, "{measured} rows act");
    for words in [&["clients", "nonsense"][..], &["clients", "forget"], &["clients", "--nonsense"]] {
        assert_eq!(run(words).status.code(), Some(2), "{words:?}");
    }
}
