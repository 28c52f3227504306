//! The dashboard's page and what it asks for: who sees what, who may do what, and from where.

use std::process::Command;

use outlast_testkit::http::caller::{Caller, Response};
use outlast_testkit::peer::{LIMIT, Peer, wait_until};
use serde_json::{Value, from_slice, json};
use tempfile::TempDir;

use crate::http_world::{JSON, Served, Session, listening, outlast_alone, serve};
use crate::world::fake_server;

/// The page's own origin, for what changes something.
fn origin(served: &Served) -> String {
    format!("http://{}", served.address)
}

fn get(served: &Served, path: &str, headers: &[(&str, &str)]) -> Response {
    served.ask(&format!("GET {path}"), headers, "")
}

pub fn post(served: &Served, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
    let own = origin(served);
    let headers = [&[JSON, ("Origin", &own)], headers].concat();
    served.ask(&format!("POST {path}"), &headers, body.to_string())
}

fn state(served: &Served, headers: &[(&str, &str)]) -> Value {
    let response = get(served, "/outlast/api/state", headers);
    assert_eq!(response.status, 200);
    from_slice(&response.body).expect("JSON")
}

/// The first hold that this visitor sees.
pub fn hold(served: &Served, headers: &[(&str, &str)]) -> Value {
    let mut found = Value::Null;
    let there = wait_until(LIMIT, || {
        found = state(served, headers)["holds"].get(0).cloned().unwrap_or_default();
        !found.is_null()
    });
    assert!(there, "nothing waits");
    found
}

#[test]
fn the_page_may_load_nothing_and_stand_in_no_other_page() {
    let served = serve(&[], &[]);
    let page = get(&served, "/outlast/", &[]);
    assert_eq!(page.status, 200);
    let header = |name: &str| page.head.header(name).unwrap_or_default().to_owned();
    let policy = header("content-security-policy");
    for word in ["default-src 'none'", "frame-ancestors 'none'", "script-src 'sha256-", "style-src 'sha256-"]
    {
        assert!(policy.contains(word), "{word}: {policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    assert_eq!(
        (header("x-content-type-options"), header("cache-control")),
        ("nosniff".into(), "no-store".into())
    );
    assert_eq!(header("referrer-policy"), "no-referrer");
    let bare = get(&served, "/outlast", &[]);
    assert_eq!((bare.status, bare.head.header("location")), (308, Some("outlast/")));
    assert_eq!(get(&served, "/outlast/nothing", &[]).status, 404);
    assert_eq!(post(&served, "/outlast/", &[], &json!({})).status, 405);
}

/// A name that points to this machine, and a page of somebody else.
#[test]
fn other_names_and_pages_are_refused() {
    let served = serve(&[], &[]);
    let own = origin(&served);
    for path in ["/outlast/", "/outlast/api/state", "/outlast/api/feed"] {
        assert_eq!(get(&served, path, &[("Host", "evil.example")]).status, 403, "{path}");
        assert_eq!(get(&served, path, &[("Origin", "http://evil.example")]).status, 403, "{path}");
    }
    let decline = json!({"decision": "decline"}).to_string();
    let ask = |headers: &[(&str, &str)]| served.ask("POST /outlast/api/holds/1", headers, &decline).status;
    assert_eq!(ask(&[JSON]), 403, "no page at all");
    assert_eq!(ask(&[JSON, ("Origin", "http://localhost:3000")]), 403, "another page of this machine");
    assert_eq!(ask(&[("Content-Type", "text/plain"), ("Origin", &own)]), 403, "what any form can send");
    assert_eq!(ask(&[JSON, ("Origin", &own)]), 404, "the page itself");
}

#[test]
fn a_call_that_waits_is_shown_and_decided() {
    let folder = TempDir::new().expect("a folder");
    let flags = ["--state", folder.path().to_str().expect("text"), "--tool", "echo=hold:true"];
    let served = serve(&flags, &[]);
    let mut session = served.session();
    let (mut waiting, _) = session.begin_call("echo", &json!({"text": "x".repeat(100_000)}));
    let found = hold(&served, &[]);
    assert_eq!((&found["tool"], &found["open"]), (&json!("echo"), &json!(true)));
    assert!(found["arguments"].as_str().expect("text").len() < 5000, "not cut");
    assert!(
        !found["principal"].as_str().expect("text").contains(&session.id),
        "whoever reads it could speak in it"
    );
    let path = format!("/outlast/api/holds/{}", found["hold"]);
    let declined = post(&served, &path, &[], &json!({"decision": "decline", "reason": "not <b>today</b>"}));
    let told: Value = from_slice(&declined.body).expect("JSON");
    assert_eq!((declined.status, &told["counts"]), (200, &json!(true)), "{told}");
    let answer = crate::http_world::answer_of(&mut waiting);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let audit = crate::world::outlast().args(["audit", "--json", "--state"]).arg(folder.path()).output();
    let line: Value = from_slice(&audit.expect("it runs").stdout).expect("one line");
    assert_eq!((&line["place"], &line["reason"]), (&json!("dashboard"), &json!("not <b>today</b>")));
    assert_eq!(post(&served, &path, &[], &json!({"decision": "maybe"})).status, 400);
}

// Who sees what.

/// Three tokens: ana sees her own, ben decides his own, cleo does everything.
pub fn with_tokens(folder: &TempDir, more: &[&str]) -> (Served, [String; 3]) {
    let tokens = ["ana", "ben", "cleo"].map(|name| {
        let made = crate::world::outlast().args(["token", "new", name]).output().expect("it runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        let hash = text(&made.stdout).split(' ').nth(1).expect("a hash").to_owned();
        (hash, text(&made.stderr).rsplit(' ').next().expect("a token").to_owned())
    });
    let toml = format!(
        "[defaults]\nhold = true\n[servers.one]\ncommand = {:?}\n\
         [tokens.ana]\nhash = \"{}\"\n[tokens.ben]\nhash = \"{}\"\ndashboard = \"decide\"\n\
         [tokens.cleo]\nhash = \"{}\"\ndashboard = \"all\"\n",
        fake_server(),
        tokens[0].0,
        tokens[1].0,
        tokens[2].0
    );
    let file = folder.path().join("outlast.toml");
    std::fs::write(&file, toml).expect("a file");
    let mut command: Command = outlast_alone();
    command
        .args(["serve", "--listen", "127.0.0.1:0", "--state"])
        .arg(folder.path())
        .arg("--config")
        .arg(file)
        .args(more);
    (listening(&mut command), tokens.map(|(_, token)| format!("Bearer {token}")))
}

pub fn auth(token: &str) -> [(&str, &str); 1] {
    [("Authorization", token)]
}

fn call(served: &Served, token: &str) -> Caller {
    Session::open(served.address, Some(token)).begin_call("echo", &json!({})).0
}

#[test]
fn a_token_sees_and_decides_what_it_is_for() {
    let folder = TempDir::new().expect("a folder");
    let (served, [ana, ben, cleo]) = with_tokens(&folder, &[]);
    assert_eq!(get(&served, "/outlast/", &[]).status, 200, "the page itself tells nothing");
    for path in ["/outlast/api/state", "/outlast/api/feed", "/outlast/api/calls/x.1"] {
        assert_eq!(get(&served, path, &[]).status, 401, "{path}");
    }
    let (_of_ana, mut of_ben) = (call(&served, &ana), call(&served, &ben));
    let (of, ben_sees) = (hold(&served, &auth(&ana)), hold(&served, &auth(&ben)));
    assert_eq!((&of["principal"], &ben_sees["principal"]), (&json!("token:ana"), &json!("token:ben")));
    let all = state(&served, &auth(&cleo));
    assert_eq!((all["holds"].as_array().map(Vec::len), &all["rights"]["sees"]), (Some(2), &json!("all")));
    let approve = |number: &Value, token: &str| {
        let path = format!("/outlast/api/holds/{number}");
        post(&served, &path, &auth(token), &json!({"decision": "approve"})).status
    };
    assert_eq!(approve(&of["hold"], &ana), 403, "it may only look");
    assert_eq!(approve(&of["hold"], &ben), 404, "nobody learns of the calls of others");
    assert_eq!(approve(&ben_sees["hold"], &ben), 200);
    assert!(crate::http_world::answer_of(&mut of_ben)["result"].is_object());
    assert_eq!(approve(&of["hold"], &cleo), 200);
}

#[test]
fn without_tokens_nobody_from_elsewhere_sees_anything() {
    let mut command = outlast_alone();
    let served =
        listening(command.args(["serve", "--listen", "0.0.0.0:0", "--no-auth", "--"]).arg(fake_server()));
    let state = get(&served, "/outlast/api/state", &[]);
    assert_eq!(state.status, 403, "{}", String::from_utf8_lossy(&state.body));
}

#[test]
fn ui_lets_in_whoever_has_its_address_and_is_no_mcp_server() {
    let folder = TempDir::new().expect("a folder");
    let mut command = outlast_alone();
    let mut process = Peer::start(command.args(["ui", "--no-browser", "--state"]).arg(folder.path()));
    let said = process.stderr_where(|text| text.contains("Ctrl-C"));
    let (_, rest) = said.split_once("http://").expect("an address");
    let (address, rest) = rest.split_once("/outlast/#token=").expect("a token");
    let bearer = format!("Bearer {}", rest.split(' ').next().expect("a token"));
    let address = address.parse().expect("an address");
    let ask = |line: &str, headers: &[(&str, &str)]| Caller::connect(address).ask(line, headers, "").status;
    assert_eq!(ask("GET /outlast/", &[]), 200);
    assert_eq!(ask("GET /outlast/api/state", &[]), 401);
    assert_eq!(ask("GET /outlast/api/state", &[("Authorization", &bearer)]), 200);
    assert_eq!(ask("POST /mcp", &[("Authorization", &bearer), JSON]), 404);
    process.signal(nix::sys::signal::Signal::SIGTERM);
    assert!(process.end().code().is_some());
}
