//! `outlast serve` on a network: who may speak to it, and what one may learn of another.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use outlast_testkit::http::caller::Response;
use outlast_testkit::peer::Peer;
use serde_json::json;
use tempfile::TempDir;

use crate::http_world::{ACCEPT, JSON, LEGACY, Served, Session, listening, outlast_alone, serve};
use crate::world::fake_server;

fn initialize() -> String {
    let who = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": who});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

fn knock(served: &Served, headers: &[(&str, &str)]) -> Response {
    served.ask("POST /mcp", &[&[ACCEPT, JSON], headers].concat(), initialize())
}

// Host and Origin.

#[test]
fn a_foreign_host_is_refused_everywhere() {
    let mut served = serve(&[], &[]);
    let port = served.address.port();
    let foreign = [
        "evil.example".to_owned(),
        format!("evil.example:{port}"),
        format!("127.0.0.1.evil.example:{port}"),
        format!("localhost.evil.example:{port}"),
        format!("192.0.2.1:{port}"),
        "127.0.0.1@evil.example".to_owned(),
        String::new(),
    ];
    for host in &foreign {
        for line in ["POST /mcp", "GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "POST /x"] {
            let status = served.ask(line, &[ACCEPT, JSON, ("Host", host)], initialize()).status;
            let malformed = host.is_empty() || host.contains('@');
            assert!(status == 403 || malformed && status == 400, "{host} {line}: {status}");
        }
    }
    // Two of them, or none: nobody can say which it is for.
    let mut caller = served.caller();
    let body = initialize();
    let local = served.address.to_string();
    caller.request("POST /mcp", &[ACCEPT, JSON, ("Host", &local), ("Host", "evil.example")], &body);
    assert!([400, 403].contains(&caller.response().status));
    let mut caller = served.caller();
    caller.send(format!("POST /mcp HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len()));
    assert!([400, 403].contains(&caller.response().status));
    served.assert_goes_on();
}

/// The request line may carry a host of its own.
#[test]
fn a_foreign_host_in_the_request_line_is_refused() {
    let served = serve(&[], &[]);
    let response = served.ask("POST http://evil.example/mcp", &[ACCEPT, JSON], initialize());
    assert!([400, 403, 404].contains(&response.status), "{}", response.status);
    let response = served.ask("CONNECT evil.example:443", &[], "");
    assert!((400..500).contains(&response.status), "{}", response.status);
}

#[test]
fn the_hosts_of_this_machine_are_served() {
    let served = serve(&[], &[]);
    let port = served.address.port();
    for host in ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"] {
        assert_eq!(knock(&served, &[("Host", &format!("{host}:{port}"))]).status, 200, "{host}");
    }
}

#[test]
fn a_foreign_origin_is_refused_everywhere() {
    let mut served = serve(&[], &[]);
    for origin in [
        "http://evil.example",
        "https://evil.example:443",
        "null",
        "file://",
        "http://localhost.evil.example",
        "http://127.0.0.1.evil.example",
        "http://evil.example@localhost",
        "chrome-extension://abcdef",
        "nonsense",
    ] {
        for line in ["POST /mcp", "GET /mcp", "DELETE /mcp", "OPTIONS /mcp"] {
            let response = served.ask(line, &[ACCEPT, JSON, ("Origin", origin)], initialize());
            assert_eq!(response.status, 403, "{origin} {line}");
            assert_no_grant(&response);
        }
    }
    served.assert_goes_on();
}

#[test]
fn the_origins_of_this_machine_are_served() {
    let served = serve(&[], &[]);
    let port = served.address.port();
    for origin in [
        format!("http://localhost:{port}"),
        format!("http://127.0.0.1:{port}"),
        "http://localhost:3000".into(),
    ] {
        assert_eq!(knock(&served, &[("Origin", &origin)]).status, 200, "{origin}");
    }
}

#[test]
fn hosts_and_origins_that_a_person_allows_are_served() {
    let served = serve(&["--allow-host", "mcp.example", "--allow-origin", "https://app.example"], &[]);
    assert_eq!(knock(&served, &[("Host", "mcp.example")]).status, 200);
    assert_eq!(knock(&served, &[("Host", "MCP.example:8443")]).status, 200);
    assert_eq!(knock(&served, &[("Host", "other.example")]).status, 403);
    let response = knock(&served, &[("Origin", "https://app.example")]);
    assert_eq!(response.status, 200);
    assert_no_grant(&response);
    for origin in [
        "http://app.example",
        "https://app.example:8443",
        "https://app.example.evil",
        "https://sub.app.example",
    ] {
        assert_eq!(knock(&served, &[("Origin", origin)]).status, 403, "{origin}");
    }
}

fn assert_no_grant(response: &Response) {
    let granted =
        response.head.headers.iter().find(|(name, _)| name.to_lowercase().starts_with("access-control-"));
    assert_eq!(granted, None);
}

#[test]
fn no_page_is_granted_anything() {
    let served = serve(&[], &[]);
    let origin = ("Origin", "http://localhost:3000");
    let preflight = [
        origin,
        ("Access-Control-Request-Method", "POST"),
        ("Access-Control-Request-Headers", "content-type, mcp-session-id"),
    ];
    assert_no_grant(&served.ask("OPTIONS /mcp", &preflight, ""));
    assert_no_grant(&knock(&served, &[origin]));
    assert_no_grant(&served.ask("GET /healthz", &[origin], ""));
}

// Where it listens.

#[test]
fn an_open_address_without_tokens_is_refused_at_the_start() {
    for address in ["0.0.0.0:0", "[::]:0"] {
        let mut command = outlast_alone();
        command.args(["serve", "--listen", address, "--"]).arg(fake_server());
        let mut process = Peer::start(&mut command);
        assert_eq!(process.end().code(), Some(2), "{address}");
        let stderr = String::from_utf8(process.all_stderr()).unwrap();
        assert!(stderr.contains("--token-file") && stderr.contains("--no-auth"), "{stderr}");
        assert!(!stderr.contains("listening on"), "{stderr}");
    }
}

#[test]
fn an_open_address_is_served_where_a_person_says_so() {
    let mut command = outlast_alone();
    command.args(["serve", "--listen", "0.0.0.0:0", "--no-auth", "--"]).arg(fake_server());
    let served = listening(&mut command);
    let local = format!("127.0.0.1:{}", served.address.port());
    let served = Served { address: local.parse().unwrap(), process: served.process };
    assert_eq!(knock(&served, &[]).status, 200);
    assert_eq!(knock(&served, &[("Host", "evil.example")]).status, 403);
}

#[test]
fn an_address_that_is_taken_is_an_error_that_names_it() {
    let served = serve(&[], &[]);
    let address = served.address.to_string();
    let mut command = outlast_alone();
    command.args(["serve", "--listen", &address, "--"]).arg(fake_server());
    let mut second = Peer::start(&mut command);
    assert!(!second.end().success());
    let stderr = String::from_utf8(second.all_stderr()).unwrap();
    assert!(stderr.contains(&address), "{stderr}");
}

// Tokens.

/// A file with a token for each name, and the tokens.
struct Tokens {
    directory: TempDir,
    alice: String,
    bob: String,
}

/// `outlast token new NAME`: the token, and its line, which is all there is on stdout.
pub fn new_token(name: &str) -> (String, String) {
    let output = outlast_alone().args(["token", "new", name]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let (told, line) = (String::from_utf8(output.stderr).unwrap(), String::from_utf8(output.stdout).unwrap());
    let (_, token) = told.trim_end().split_once("shown only here: ").expect("the token");
    let (token, line) = (token.to_owned(), line.strip_suffix('\n').expect("one line").to_owned());
    let (whose, hash) = line.split_once(' ').expect("a name and a hash");
    assert!(whose == name && hash.len() == 64, "{line}");
    (token, line)
}

impl Tokens {
    fn new() -> Tokens {
        let directory = tempfile::tempdir().unwrap();
        let ((alice, first), (bob, second)) = (new_token("alice"), new_token("bob"));
        fs::write(directory.path().join("tokens"), format!("# ours\n\n{first}\n{second}\n")).unwrap();
        Tokens { directory, alice: format!("Bearer {alice}"), bob: format!("Bearer {bob}") }
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("tokens")
    }

    fn serve(&self, flags: &[&str]) -> Served {
        let file = self.file();
        serve(&[&["--token-file", file.to_str().unwrap()], flags].concat(), &[])
    }
}

#[test]
fn tokens_are_new_each_time_and_long() {
    let (one, line) = new_token("alice");
    let (two, _) = new_token("alice");
    assert_ne!(one, two);
    assert!(one.len() >= 22, "{one}");
    assert!(!line.contains(&one), "the file holds the token itself");
}

/// Many are one line, so that nobody fills the log.
#[test]
fn refusals_are_counted_in_the_log() {
    let tokens = Tokens::new();
    let mut served = tokens.serve(&[]);
    for _ in 0..5 {
        assert_eq!(served.ask("GET /mcp", &[ACCEPT, ("Authorization", "Bearer guessed")], "").status, 401);
    }
    let evil = [ACCEPT, ("Host", "evil.example")];
    assert_eq!(served.ask("GET /mcp", &evil, "").status, 403);
    served
        .process
        .stderr_where(|text| text.contains("turned away: 1 without a valid token; the last from 127.0.0.1"));
    served.process.signal(nix::sys::signal::Signal::SIGTERM);
    served.process.end();
    let stderr = String::from_utf8(served.process.all_stderr()).unwrap();
    let rest =
        "turned away: 1 with an unknown Host or Origin, 4 without a valid token; the last from 127.0.0.1";
    assert!(stderr.contains(rest) && stderr.matches("turned away").count() == 2, "{stderr}");
}

#[test]
fn without_a_good_token_there_is_nothing() {
    let tokens = Tokens::new();
    let served = tokens.serve(&[]);
    let almost = format!("{}x", tokens.alice);
    let lower = tokens.alice.replace("Bearer", "Basic");
    let file = fs::read_to_string(tokens.file()).unwrap();
    let hash = format!("Bearer {}", file.lines().last().unwrap().split(' ').nth(1).unwrap());
    for authorization in ["", "Bearer", "Bearer ", "Bearer wrong", "alice", &almost, &lower, &hash] {
        let header = [("Authorization", authorization)];
        let headers = if authorization.is_empty() { &[][..] } else { &header[..] };
        for line in ["POST /mcp", "GET /mcp", "DELETE /mcp"] {
            let response = served.ask(line, &[&[ACCEPT, JSON], headers].concat(), initialize());
            assert_eq!(response.status, 401, "{authorization:?} {line}");
            assert!(response.header("WWW-Authenticate").is_some_and(|value| value.starts_with("Bearer")));
        }
    }
    assert_eq!(knock(&served, &[("Authorization", &tokens.alice)]).status, 200);
    assert_eq!(knock(&served, &[("Authorization", &tokens.bob)]).status, 200);
}

#[test]
fn a_foreign_origin_is_refused_with_a_good_token_too() {
    let tokens = Tokens::new();
    let served = tokens.serve(&[]);
    let headers = [("Authorization", tokens.alice.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(knock(&served, &headers).status, 403);
}

#[test]
fn an_open_address_is_served_with_tokens() {
    let tokens = Tokens::new();
    let mut command = outlast_alone();
    command
        .args(["serve", "--listen", "0.0.0.0:0", "--allow-host", "127.0.0.1", "--token-file"])
        .arg(tokens.file());
    command.arg("--").arg(fake_server());
    let served = listening(&mut command);
    let address = format!("127.0.0.1:{}", served.address.port()).parse().unwrap();
    let served = Served { address, process: served.process };
    assert_eq!(knock(&served, &[]).status, 401);
    assert_eq!(knock(&served, &[("Authorization", &tokens.alice)]).status, 200);
}

#[test]
fn a_bad_file_of_tokens_is_an_error_that_names_the_line() {
    let directory = tempfile::tempdir().unwrap();
    let hash = "0".repeat(64);
    let bad = [
        "alice\n".to_owned(),
        "alice notahash\n".to_owned(),
        format!("alice {hash} more\n"),
        format!("alice {}\n", &hash[1..]),
        String::new(),
    ];
    for (number, text) in bad.iter().enumerate() {
        let file = directory.path().join(format!("tokens-{number}"));
        fs::write(&file, text).unwrap();
        refused_at_the_start(
            outlast_alone().args(["serve", "--listen", "127.0.0.1:0", "--token-file"]).arg(&file),
            file.to_str().unwrap(),
        );
    }
    let missing = directory.path().join("missing");
    refused_at_the_start(
        outlast_alone().args(["serve", "--listen", "127.0.0.1:0", "--token-file"]).arg(&missing),
        missing.to_str().unwrap(),
    );
}

fn refused_at_the_start(command: &mut Command, word: &str) {
    let mut process = Peer::start(command.arg("--").arg(fake_server()));
    assert_eq!(process.end().code(), Some(2), "{word}");
    let stderr = String::from_utf8(process.all_stderr()).unwrap();
    assert!(stderr.contains(word) && !stderr.contains("listening on"), "{stderr}");
}

#[test]
fn health_needs_no_token_and_tells_no_name() {
    let tokens = Tokens::new();
    let served = tokens.serve(&[]);
    let response = served.ask("GET /healthz", &[], "");
    assert_eq!(response.status, 200);
    assert!(!response.text().contains("alice"));
}

// Principals.

#[test]
fn a_session_of_one_is_useless_to_another() {
    let tokens = Tokens::new();
    let mut served = tokens.serve(&[]);
    let mut alice = Session::open(served.address, Some(&tokens.alice));
    let (mut caller, id) = alice.begin_call("silent", &json!({"ms": 300}));
    caller.head();
    let event = caller.event().unwrap().id.expect("an id");
    let theirs = |line: &str, more: &[(&str, &str)], body: &str| {
        let headers = [
            ("Authorization", tokens.bob.as_str()),
            ("Mcp-Session-Id", alice.id.as_str()),
            ("MCP-Protocol-Version", LEGACY),
        ];
        served.ask(line, &[&headers[..], more].concat(), body)
    };
    let list = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    let cancel =
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}"#);
    let answers = [
        theirs("POST /mcp", &[ACCEPT, JSON], list),
        theirs("POST /mcp", &[ACCEPT, JSON], &cancel),
        theirs("GET /mcp", &[("Accept", "text/event-stream")], ""),
        theirs("GET /mcp", &[("Accept", "text/event-stream"), ("Last-Event-ID", &event)], ""),
        theirs("DELETE /mcp", &[], ""),
    ];
    // Exactly what is said of a session that never was.
    let headers = [
        ACCEPT,
        JSON,
        ("Authorization", &tokens.bob),
        ("Mcp-Session-Id", "never"),
        ("MCP-Protocol-Version", LEGACY),
    ];
    let unknown = served.ask("POST /mcp", &headers, list);
    assert_eq!(unknown.status, 404);
    for answer in &answers {
        assert_eq!(answer.status, 404, "{}", answer.text());
        assert!(!answer.text().contains("alice"), "{}", answer.text());
    }
    assert_eq!(answers[0].text().replace(&alice.id, "never"), unknown.text());
    // Nothing came of it.
    assert_eq!(caller.answer(&id)["result"]["structuredContent"], "done");
    assert_eq!(alice.value_of("echo", &json!(1)), json!(1));
    assert!(served.process.exited().is_none());
}

#[test]
fn an_event_of_one_is_useless_in_the_session_of_another() {
    let tokens = Tokens::new();
    let served = tokens.serve(&[]);
    let mut alice = Session::open(served.address, Some(&tokens.alice));
    let bob = Session::open(served.address, Some(&tokens.bob));
    let (mut caller, _) = alice.begin_call("silent", &json!({"ms": 50}));
    caller.head();
    let event = caller.event().unwrap().id.expect("an id");
    drop(caller);
    alice.value_of("silent", &json!({"ms": 150}));
    let (status, _) = bob.listen(Some(&event)).head();
    assert!((400..500).contains(&status), "{status}");
}

#[test]
fn principals_do_not_share_a_server() {
    let tokens = Tokens::new();
    let served = tokens.serve(&["--share", "principal"]);
    let mut alice = Session::open(served.address, Some(&tokens.alice));
    let mut again = Session::open(served.address, Some(&tokens.alice));
    let mut bob = Session::open(served.address, Some(&tokens.bob));
    let pid = |session: &mut Session| session.value_of("tell_pid", &json!({}));
    let (first, second, third) = (pid(&mut alice), pid(&mut again), pid(&mut bob));
    assert_eq!(first, second);
    assert_ne!(first, third);
}

// What can be guessed and read.

#[test]
fn session_ids_cannot_be_guessed() {
    let served = serve(&[], &[]);
    let ids: Vec<String> = (0..8).map(|_| served.session().id).collect();
    for (number, id) in ids.iter().enumerate() {
        assert!(id.len() >= 22 && id.bytes().all(|byte| (0x21..=0x7e).contains(&byte)), "{id}");
        for other in &ids[..number] {
            let shared = id.bytes().zip(other.bytes()).take_while(|(one, two)| one == two).count();
            assert!(shared < id.len() / 2, "{id} and {other}");
        }
    }
}

#[test]
fn tokens_and_session_ids_are_in_no_log() {
    let tokens = Tokens::new();
    let mut served = tokens.serve(&["--log", "debug"]);
    let mut session = Session::open(served.address, Some(&tokens.alice));
    session.value_of("echo", &json!(1));
    knock(&served, &[("Authorization", "Bearer wrong-canary")]);
    served.process.signal(nix::sys::signal::Signal::SIGTERM);
    served.process.end();
    let stderr = String::from_utf8_lossy(&served.process.all_stderr()).into_owned();
    let token = tokens.alice.trim_start_matches("Bearer ");
    for secret in [token, &session.id, "wrong-canary"] {
        assert!(!stderr.contains(secret), "{stderr}");
    }
}

#[test]
fn the_server_gets_nothing_of_ours_in_its_environment() {
    let tokens = Tokens::new();
    let mut command = outlast_alone();
    command
        .env("OUTLAST_TOKEN_FILE", tokens.file())
        .args(["serve", "--listen", "127.0.0.1:0", "--"])
        .arg(fake_server());
    let served = listening(&mut command);
    let mut session = Session::open(served.address, Some(&tokens.alice));
    let environment = session.value_of("tell_environment", &json!({}));
    assert!(
        environment.as_object().unwrap().keys().all(|name| !name.starts_with("OUTLAST_")),
        "{environment}"
    );
}

/// A page or a client chooses neither the command nor the server.
#[test]
fn what_a_client_says_starts_nothing() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let before = session.value_of("tell_arguments", &json!({}));
    for line in ["POST /mcp?transportType=stdio&command=sh&args=-c", "POST /mcp?url=http://evil.example"] {
        let headers = [&session.headers()[..], &[JSON]].concat();
        let response = served.ask(line, &headers, r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
        assert!([200, 400, 404].contains(&response.status), "{line}");
    }
    assert_eq!(session.value_of("tell_arguments", &json!({})), before);
    served.assert_goes_on();
}
