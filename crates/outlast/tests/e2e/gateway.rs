//! Many servers behind one address: a file, a stdio client, HTTP clients, and what breaks.

use std::path::PathBuf;
use std::process::Command;

use nix::sys::signal::Signal;
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{ACCEPT, JSON, listening, outlast_alone};
use crate::world::{Tree, fake_server};

const TOOLS: &str = "echo silent hang progress tell_environment tell_pid tell_cancels die start_grandchild";

/// A file with two servers that are the same program, and what else is written.
fn file(folder: &tempfile::TempDir, more: &str) -> PathBuf {
    let server = fake_server();
    let server = server.display();
    let text = format!(
        "[servers.alpha]\ncommand = \"{server}\"\nenv = {{ WHO = \"alpha\", FAKE_TOOLS = \"{TOOLS}\" }}\n\
         [servers.beta]\ncommand = \"{server}\"\nenv = {{ WHO = \"beta\", FAKE_TOOLS = \"{TOOLS}\" }}\n{more}\n"
    );
    let path = folder.path().join("outlast.toml");
    std::fs::write(&path, text).unwrap();
    path
}

fn gateway(more: &str) -> (Command, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let mut command = outlast_alone();
    command.arg("--config").arg(file(&folder, more));
    (command, folder)
}

fn who(client: &mut Peer, tool: &str) -> Value {
    client.value_of(tool, &json!({}))["WHO"].clone()
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["result"]["tools"].as_array().unwrap_or_else(|| panic!("no list: {list}"));
    tools.iter().map(|tool| tool["name"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_stdio_client_sees_all_servers_as_one() {
    let (mut command, _folder) = gateway("");
    let mut client = Peer::start(&mut command);
    let welcome = client.handshake();
    assert_eq!(welcome["result"]["serverInfo"]["name"], "outlast");
    let list = client.request("tools/list", &json!({}));
    let list = names(&client.answer(&list));
    assert!(list.contains(&"alpha__echo".to_owned()) && list.contains(&"beta__echo".to_owned()), "{list:?}");
    assert_eq!(who(&mut client, "alpha__tell_environment"), "alpha");
    assert_eq!(who(&mut client, "beta__tell_environment"), "beta");
    let unknown = client.call("echo", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
}

#[test]
fn what_breaks_behind_one_name_breaks_nothing_else() {
    let (mut command, _folder) = gateway("[servers.gone]\ncommand = \"/no/such/server\"\n");
    let mut client = Peer::start(&mut command);
    client.handshake();
    let before = client.value_of("alpha__tell_pid", &json!({}));
    let hangs = client.begin("beta__silent", &json!({"ms": 300}));
    let dies = client.begin("alpha__die", &json!({"signal": 9}));
    assert_eq!(client.answer(&dies)["error"]["data"]["outlast"]["kind"], "server-gone");
    assert!(client.answer(&hangs).get("result").is_some(), "a call of another server goes on");
    // It is started again, and made whole.
    assert_ne!(client.value_of("alpha__tell_pid", &json!({})), before);
}

#[test]
fn a_cancel_reaches_the_server_that_has_the_call() {
    let (mut command, _folder) = gateway("");
    let mut client = Peer::start(&mut command);
    client.handshake();
    // A server has the call only once it runs: a cancel before that never leaves outlast.
    client.value_of("beta__tell_pid", &json!({}));
    let hangs = client.begin("beta__hang", &json!({}));
    client.cancel(&hangs);
    let of = |client: &mut Peer, tool: &str| client.value_of(tool, &json!({})).as_array().map_or(0, Vec::len);
    assert_eq!((of(&mut client, "beta__tell_cancels"), of(&mut client, "alpha__tell_cancels")), (1, 0));
}

#[test]
fn each_server_has_an_address_and_all_have_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = file(&folder, "[listen]\nlisten = \"127.0.0.1:0\"\n");
    let mut command = outlast_alone();
    let served = listening(command.args(["serve", "--config"]).arg(path));
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let begin = |address: &str| {
        let answer = served.ask(&format!("POST {address}"), &[ACCEPT, JSON], initialize.to_string());
        let session = answer.head.header("mcp-session-id").unwrap_or_default().to_owned();
        (String::from_utf8_lossy(&answer.body).into_owned(), session)
    };
    let (merged, session) = begin("/mcp");
    assert!(merged.contains(r#""serverInfo":{"name":"outlast""#), "{merged}");
    let (alone, _) = begin("/mcp/alpha");
    assert!(!alone.contains(r#""name":"outlast""#), "{alone}");
    let ping = r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#;
    let knows = |address: &str| {
        let headers = [ACCEPT, JSON, ("Mcp-Session-Id", session.as_str())];
        served.ask(&format!("POST {address}"), &headers, ping).status
    };
    assert_eq!((knows("/mcp"), knows("/mcp/alpha"), knows("/mcp/nobody")), (200, 404, 404));
}

/// A new token: its hash for the file, and what a client sends.
pub fn token(name: &str) -> (String, String) {
    let output = outlast_alone().args(["token", "new", name]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let (out, told) = (text(output.stdout), text(output.stderr));
    let hash = out.split_whitespace().last().unwrap().to_owned();
    let token = told.split_whitespace().find(|word| word.starts_with("outlast_")).unwrap().to_owned();
    (hash, format!("Bearer {token}"))
}

/// Of two tokens one may use everything, the other one tool of one server, at either address.
#[test]
fn a_token_reaches_its_servers_and_tools_only() {
    let folder = tempfile::tempdir().unwrap();
    let ((ann_hash, ann), (bob_hash, bob)) = (token("ann"), token("bob"));
    let more = format!(
        "[listen]\nlisten = \"127.0.0.1:0\"\n[tokens.ann]\nhash = \"{ann_hash}\"\n\
         [tokens.bob]\nhash = \"{bob_hash}\"\nservers = [\"beta\"]\ntools = [\"echo\"]\n"
    );
    let mut command = outlast_alone();
    let served = listening(command.args(["serve", "--config"]).arg(file(&folder, &more)));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let ask = |who: &str, address: &str, method: &str, name: &str| {
        let mut params = json!({"_meta": meta});
        let mut headers = vec![ACCEPT, JSON, ("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        if !name.is_empty() {
            params["name"] = name.into();
            headers.push(("Mcp-Name", name));
        }
        headers.extend((!who.is_empty()).then_some(("Authorization", who)));
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = served.ask(&format!("POST {address}"), &headers, body.to_string());
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let status = |who: &str, address: &str| ask(who, address, "tools/list", "").0;
    assert_eq!((status("", "/mcp"), status("Bearer outlast_0", "/mcp")), (401, 401));
    assert_eq!((status(&bob, "/mcp/alpha"), status(&ann, "/mcp/alpha")), (404, 200));
    let (_, list) = ask(&bob, "/mcp/beta", "tools/list", "");
    assert!(list.contains(r#""echo""#) && !list.contains(r#""tell_pid""#), "{list}");
    let (_, refused) = ask(&bob, "/mcp/beta", "tools/call", "tell_pid");
    assert!(
        refused.contains("not-allowed") && refused.contains("[tokens.bob] in outlast.toml:"),
        "{refused}"
    );
    let (_, allowed) = ask(&ann, "/mcp/beta", "tools/call", "tell_pid");
    assert!(allowed.contains(r#""result""#), "{allowed}");
}

/// What the file says of tools holds at every address, and where there is only one server.
#[test]
fn a_denied_tool_is_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let server = fake_server();
    let path = folder.path().join("outlast.toml");
    let only = format!(
        "[servers.only]\ncommand = {:?}\nenv = {{ FAKE_TOOLS = \"{TOOLS}\" }}\ntools.deny = [\"tell_*\", \"die\"]\n",
        server.display().to_string()
    );
    std::fs::write(&path, only).unwrap();
    let mut command = outlast_alone();
    let mut client = Peer::start(command.arg("--config").arg(&path));
    client.handshake();
    let list = client.request("tools/list", &json!({}));
    let list = names(&client.answer(&list));
    let there = |tool: &str| list.contains(&tool.to_owned());
    assert!(there("only__echo") && !there("only__tell_pid"), "{list:?}");
    assert_eq!(client.call("only__tell_pid", &json!({}))["error"]["code"], -32602);
    // Over HTTP `/mcp` is the address of the only server.
    let mut command = outlast_alone();
    let served = listening(command.args(["serve", "--listen", "127.0.0.1:0", "--config"]).arg(&path));
    let mut session = served.session();
    let refused = session.call("tell_pid", &json!({}));
    assert_eq!(refused["error"]["data"]["outlast"]["kind"], "not-allowed", "{refused}");
    let why = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(why.contains("[servers.only] in outlast.toml:1"), "{why}");
    assert_eq!(session.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
}

#[test]
fn the_same_tool_has_the_limit_of_its_server() {
    let more = "[servers.beta.tools.\"hang\"]\ntimeout = \"50ms\"\n";
    let (mut command, _folder) = gateway(more);
    let mut client = Peer::start(&mut command);
    client.handshake();
    let limited = client.call("beta__hang", &json!({}));
    let data = &limited["error"]["data"]["outlast"];
    assert_eq!(
        (data["kind"].as_str(), data["server"].as_str()),
        (Some("timeout"), Some("beta")),
        "{limited}"
    );
    let source = data["setting"].as_str().unwrap_or_default();
    assert!(source.starts_with("[servers.beta.tools.\"hang\"] in outlast.toml:"), "{source}");
}

#[test]
fn a_file_with_mistakes_starts_nothing_and_names_them_all() {
    let (mut command, _folder) = gateway("[servers.beta.tols]\nx = 1\n[defaults]\ntimeout = 5\n");
    let tree = Tree::mark(&mut command);
    let mut outlast = Peer::start(&mut command);
    assert_eq!(outlast.end().code(), Some(2));
    let stderr = String::from_utf8(outlast.all_stderr()).unwrap();
    assert!(stderr.contains("tols") && stderr.contains("timeout"), "{stderr}");
    tree.wait_until_gone();
}

#[test]
fn nothing_of_any_server_lives_on() {
    for signal in [Signal::SIGKILL, Signal::SIGTERM] {
        let (mut command, _folder) = gateway("");
        let tree = Tree::mark(&mut command);
        let mut client = Peer::start(&mut command);
        client.handshake();
        client.value_of("alpha__start_grandchild", &json!({}));
        client.value_of("beta__start_grandchild", &json!({}));
        assert!(tree.processes().len() > 4);
        client.signal(signal);
        client.end();
        tree.wait_until_gone();
    }
}
