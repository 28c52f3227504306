//! What `outlast doctor client` learns about clients of different patience.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::Signal;
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::world::outlast;

/// The probes, added to a client.
fn probes() -> Peer {
    Peer::start(outlast().args(["doctor", "client"]))
}

/// The same after the handshake of a client that declares this.
fn met(capabilities: &Value) -> Peer {
    let mut probes = probes();
    let who = json!({"name": "test-client", "version": "7"});
    let handshake = json!({"protocolVersion": "2025-06-18", "capabilities": capabilities, "clientInfo": who});
    let id = probes.request("initialize", &handshake);
    assert_eq!(probes.answer(&id)["result"]["protocolVersion"], "2025-06-18");
    probes.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    probes
}

/// Whoever types it into a terminal would wait for ever, without a word.
#[test]
fn a_person_at_a_terminal_is_told_where_it_belongs() {
    let terminal = nix::pty::openpty(None, None).unwrap();
    let mut command = outlast();
    command.args(["doctor", "client"]).stdin(terminal.slave).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut doctor = command.spawn().unwrap();
    let mut said = String::new();
    BufReader::new(doctor.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.starts_with("outlast: ") && said.contains("to your client as a server"), "{said}");
    doctor.kill().unwrap();
    doctor.wait().unwrap();
}

/// A client that waits this long.
struct Client {
    probes: Peer,
    patience: Duration,
    resets: bool,
    cancels: bool,
    token: bool,
    receipts: Vec<String>,
}

impl Client {
    fn new(patience: Duration) -> Client {
        Client {
            probes: met(&json!({})),
            patience,
            resets: false,
            cancels: true,
            token: true,
            receipts: Vec::new(),
        }
    }

    /// Calls a probe and waits as long as this client does.
    fn call(&mut self, probe: &str, arguments: &Value) {
        let id = match self.token {
            true => self.probes.begin_with_token(probe, arguments, &json!(77)),
            false => self.probes.begin(probe, arguments),
        };
        let resets = self.resets;
        let is_news = |message: &Value| resets && message["method"] == "notifications/progress";
        let fits = |message: &Value| message["id"] == id || is_news(message);
        loop {
            let heard = self.probes.try_line_within(self.patience, |line| fits(&line.json()));
            match heard.map(|line| line.json()) {
                Ok(message) if is_news(&message) => {}
                Ok(answer) => return self.keep_receipt(&answer),
                Err(_) if self.cancels => return self.probes.cancel(&id),
                Err(_) => return,
            }
        }
    }

    fn keep_receipt(&mut self, answer: &Value) {
        let text = answer["result"]["content"][0]["text"].as_str().expect("text");
        self.receipts.push(text.split_whitespace().last().expect("a receipt").to_owned());
    }

    fn report(&mut self) -> String {
        let answer = self.probes.call("probe_report", &json!({"receipts": self.receipts}));
        answer["result"]["content"][0]["text"].as_str().expect("text").to_owned()
    }
}

fn holds(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "`{part}` is not in:\n{text}");
    }
}

/// The value of a line of the profile.
fn value<'a>(profile: &'a str, key: &str) -> &'a str {
    let line = profile.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
    line.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no `{key}` in:\n{profile}"))
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_client_that_gives_up_after_a_second_and_ignores_progress() {
    let mut client = Client::new(SECOND);
    client.call("probe_silence", &json!({}));
    client.call("probe_progress", &json!({}));
    let profile = client.report();
    let cap: f64 = value(&profile, "cap").trim_end_matches('s').parse().unwrap();
    assert!((0.5..3.0).contains(&cap), "{profile}");
    assert_eq!(value(&profile, "name"), "test-client");
    assert_eq!(value(&profile, "version"), "7");
    assert_eq!(value(&profile, "era"), "legacy");
    assert_eq!(value(&profile, "resets-on-progress"), "no");
    assert_eq!(value(&profile, "sends-token"), "yes");
    assert_eq!(value(&profile, "cancels"), "yes");
    assert_eq!(value(&profile, "sampling"), "no");
    holds(&profile, &["the user changed their mind", "No: progress does not reset its limit."]);
    holds(&profile, &["no --keep-alive changes anything"]);
}

#[test]
fn a_client_that_resets_on_progress() {
    let mut client = Client::new(3 * SECOND);
    client.resets = true;
    client.call("probe_silence", &json!({"seconds": 60}));
    client.call("probe_progress", &json!({"seconds": 6}));
    assert_eq!(client.receipts.len(), 1, "the second answer arrived");
    let profile = client.report();
    assert_eq!(value(&profile, "resets-on-progress"), "yes");
    holds(&profile, &["use --keep-alive ", "Yes: progress resets its limit."]);
}

#[test]
fn a_client_that_cancels_gets_no_answer_and_the_server_reads_on() {
    let mut client = Client::new(SECOND / 4);
    client.call("probe_silence", &json!({"seconds": 1}));
    let silent = json!(2);
    // Longer than the probe would have taken.
    let heard = client.probes.try_line_within(2 * SECOND, |line| line.json()["id"] == silent);
    assert!(heard.is_err(), "{heard:?}");
    let id = client.probes.request("ping", &json!({}));
    client.probes.answer(&id);
}

#[test]
fn a_client_that_goes_on_without_a_cancel() {
    let mut client = Client::new(SECOND);
    client.cancels = false;
    client.token = false;
    client.call("probe_silence", &json!({"seconds": 60}));
    let profile = client.report();
    assert!(value(&profile, "cap").starts_with("<="), "{profile}");
    assert_eq!(value(&profile, "cancels"), "no");
    assert_eq!(value(&profile, "sends-token"), "no");
    holds(&profile, &["probe_progress was not called", "sends no progress token"]);
}

#[test]
fn a_patient_client_has_a_cap_beyond_what_was_tried() {
    let mut client = Client::new(20 * SECOND);
    client.call("probe_silence", &json!({"seconds": 0.2}));
    let profile = client.report();
    assert!(value(&profile, "cap").starts_with(">0."), "{profile}");
    client.call("probe_silence", &json!({"seconds": 0.3}));
    client.receipts = vec!["made up".into()];
    // Without its receipt the second proves nothing, and the first still counts.
    assert_eq!(value(&client.report(), "cap"), value(&profile, "cap"));
}

#[test]
fn a_client_that_just_closes_leaves_a_profile_on_stderr() {
    let mut client = Client::new(SECOND / 2);
    client.cancels = false;
    client.call("probe_silence", &json!({"seconds": 60}));
    assert_eq!(client.probes.hang_up().code(), Some(0));
    let profile = String::from_utf8(client.probes.all_stderr()).unwrap();
    assert_eq!(value(&profile, "cap"), "unknown");
    assert_eq!(value(&profile, "cancels"), "unknown");
    holds(&profile, &["the connection was closed after", "it closed the connection during a call"]);
}

#[test]
fn a_client_that_kills_leaves_a_profile_on_stderr_once() {
    let mut probes = met(&json!({"sampling": {}}));
    let id = probes.request("ping", &json!({}));
    probes.answer(&id);
    probes.signal(Signal::SIGTERM);
    probes.end();
    let profile = String::from_utf8(probes.all_stderr()).unwrap();
    assert_eq!(profile.matches("[client]").count(), 1);
    assert_eq!(value(&profile, "sampling"), "yes");
    assert_eq!(value(&profile, "sends-token"), "unknown");
}

#[test]
fn a_client_that_shows_forms_is_asked() {
    let mut probes = met(&json!({"elicitation": {}, "tasks": {}}));
    let id = probes.begin("probe_elicitation", &json!({}));
    let question = probes.message("elicitation/create");
    assert_eq!(question["params"]["requestedSchema"]["type"], "object");
    probes.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}}));
    probes.answer(&id);
    let id = probes.begin("probe_elicitation", &json!({}));
    let question = probes.message("elicitation/create");
    let profile = report(&mut probes);
    assert_eq!((value(&profile, "elicitation"), value(&profile, "tasks")), ("yes", "yes"));
    holds(&profile, &["asked, no answer yet"]);
    let error = json!({"code": -32603, "message": "no window"});
    probes.send(json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    probes.answer(&id);
    holds(&report(&mut probes), &["refused after", "no window"]);
}

#[test]
fn a_client_that_shows_no_forms_is_not_asked() {
    let mut probes = met(&json!({"elicitation": {"url": {}}}));
    let answer = probes.call("probe_elicitation", &json!({}));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("nobody was asked"));
    let mut probes = met(&json!({}));
    probes.call("probe_elicitation", &json!({}));
    assert_eq!(value(&report(&mut probes), "elicitation"), "no");
}

fn report(probes: &mut Peer) -> String {
    let answer = probes.call("probe_report", &json!({}));
    answer["result"]["content"][0]["text"].as_str().expect("text").to_owned()
}

/// What a modern client puts into every request.
fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "new-client", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {
            "elicitation": {"form": {}},
            "extensions": {"io.modelcontextprotocol/tasks": {}},
        },
        "progressToken": "t",
    })
}

fn modern(probes: &mut Peer, method: &str, mut params: Value) -> Value {
    params["_meta"] = meta();
    let id = probes.request(method, &params);
    let result = probes.answer(&id)["result"].clone();
    assert_eq!(result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "outlast-doctor");
    result
}

#[test]
fn a_modern_client_is_measured_without_a_handshake() {
    let mut probes = probes();
    let discovery = modern(&mut probes, "server/discover", json!({}));
    assert_eq!(discovery["supportedVersions"], json!(["2026-07-28"]));
    let tools = modern(&mut probes, "tools/list", json!({}));
    assert_eq!((&tools["resultType"], &tools["ttlMs"]), (&json!("complete"), &json!(0)));
    let asked = modern(&mut probes, "tools/call", json!({"name": "probe_elicitation"}));
    assert_eq!(asked["resultType"], "input_required");
    assert_eq!(asked["inputRequests"]["seen"]["method"], "elicitation/create");
    let answers = json!({"seen": {"action": "accept", "content": {"seen": true}}});
    modern(&mut probes, "tools/call", json!({"name": "probe_elicitation", "inputResponses": answers}));
    let report = modern(&mut probes, "tools/call", json!({"name": "probe_report"}));
    let profile = report["content"][0]["text"].as_str().unwrap();
    assert_eq!(value(profile, "name"), "new-client");
    assert_eq!(value(profile, "era"), "modern");
    assert_eq!(value(profile, "tasks"), "yes");
    holds(profile, &["answered `accept`", "a string, in 3 of 3 calls", "as in 2026-07-28"]);
}

#[test]
fn an_agent_can_run_the_probes_from_their_descriptions() {
    let mut probes = met(&json!({}));
    let id = probes.request("tools/list", &json!({}));
    let answer = probes.answer(&id);
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 4);
    for (step, tool) in tools.iter().enumerate() {
        let text = tool["description"].as_str().unwrap();
        holds(text, &[&format!("Step {} of 4", step + 1), "run the outlast probes"]);
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
}

#[test]
fn what_is_no_probe_is_refused() {
    let mut probes = met(&json!({}));
    assert_eq!(probes.call("probe_everything", &json!({}))["error"]["code"], -32602);
    let id = probes.request("resources/list", &json!({}));
    assert_eq!(probes.answer(&id)["error"]["code"], -32601);
    probes.send("this is no JSON");
    assert_eq!(probes.answer(&json!(null))["error"]["code"], -32700);
    let old = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "2031-01-01"}});
    let id = probes.request("server/discover", &old);
    let error = &probes.answer(&id)["error"];
    assert_eq!((&error["code"], &error["data"]["supported"]), (&json!(-32022), &json!(["2026-07-28"])));
}
