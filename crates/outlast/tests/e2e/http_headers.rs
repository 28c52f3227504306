//! The headers of our own requests: what a server needs, what a person gave, and nothing else.

use outlast_testkit::http::faults::FaultServer;
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{JSON, legacy, modern, modern_call, modern_meta, outlast_alone, reach, reached};
use crate::world::data;

#[test]
fn a_legacy_session_carries_its_headers() {
    let server = FaultServer::start(legacy);
    let mut client = reached(&[], &server.url());
    client.value_of("echo", &json!(1));
    server.request_where(|request| request.method == "GET");
    client.hang_up();
    for request in server.requests() {
        let first = request.rpc() == "initialize";
        assert_eq!(request.header("Mcp-Session-Id"), (!first).then_some("session-1"), "{request:?}");
        if !first {
            assert_eq!(request.header("MCP-Protocol-Version"), Some("2025-11-25"), "{request:?}");
        }
        if request.method == "POST" {
            let accept = request.header("Accept").unwrap_or_default();
            assert!(accept.contains("application/json") && accept.contains("text/event-stream"), "{accept}");
            assert_eq!(request.header("Content-Type"), Some("application/json"));
        }
        assert_eq!(request.header("Host"), Some(server.address().to_string().as_str()));
    }
}

#[test]
fn a_modern_request_carries_its_headers() {
    let server = FaultServer::start(modern);
    let mut client = reach(&[], &server.url());
    let id = client.request("tools/list", &json!({"_meta": modern_meta()}));
    client.answer(&id);
    let id = client.request("tools/call", &modern_call("echo", &json!({"region": "eu west"})));
    assert!(client.answer(&id)["result"].is_object());
    let call = server.request_where(|request| request.rpc() == "tools/call");
    assert_eq!(call.header("MCP-Protocol-Version"), Some("2026-07-28"));
    assert_eq!(call.header("Mcp-Method"), Some("tools/call"));
    assert_eq!(call.header("Mcp-Name"), Some("echo"));
    assert_eq!(call.header("Mcp-Param-Region"), Some("eu west"));
    assert!(server.requests().iter().all(|request| request.method == "POST"));
    assert!(server.requests().iter().all(|request| request.header("Mcp-Session-Id").is_none()));
}

/// What cannot stand in a header goes in base64; what looks as if it were does too.
#[test]
fn a_name_that_is_no_header_is_encoded() {
    let names = [
        ("plain", "plain"),
        ("grüße", "=?base64?Z3LDvMOfZQ==?="),
        (" blank", "=?base64?IGJsYW5r?="),
        ("a\nb", "=?base64?YQpi?="),
        ("=?base64?eA==?=", "=?base64?PT9iYXNlNjQ/ZUE9PT89?="),
    ];
    let server = FaultServer::start(modern);
    let mut client = reach(&[], &server.url());
    for (name, header) in names {
        let id = client.request("tools/call", &modern_call(name, &json!({})));
        client.answer(&id);
        let call = server.request_where(|request| request.tool() == name);
        assert_eq!(call.header("Mcp-Name"), Some(header), "{name}");
    }
}

/// The server's list of tools has changed since we read it: read again, the call repeated once.
#[test]
fn headers_that_a_server_refuses_are_made_again_from_its_list() {
    let server = FaultServer::start(|request, connection| {
        if request.rpc() == "tools/call" && request.header("Mcp-Param-Region").is_none() {
            let error = json!({"code": -32020, "message": "header mismatch"});
            let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
            return connection.answer("400 Bad Request", &[JSON], body.to_string());
        }
        modern(request, connection);
    });
    let mut client = reach(&[], &server.url());
    let id = client.request("tools/call", &modern_call("echo", &json!({"region": "eu"})));
    let answer = client.answer(&id);
    assert_eq!(answer["result"]["structuredContent"], json!({"region": "eu"}), "{answer}");
    assert_eq!(server.requests_of("tools/call").len(), 2);
    assert_eq!(server.requests_of("tools/list").len(), 1);
    assert_eq!(client.log().len(), 1, "the client saw how");
}

#[test]
fn headers_that_a_server_always_refuses_are_an_error() {
    let server = FaultServer::start(|request, connection| {
        if request.rpc() != "tools/call" {
            return modern(request, connection);
        }
        let error = json!({"code": -32020, "message": "header mismatch"});
        let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
        connection.answer("400 Bad Request", &[JSON], body.to_string());
    });
    let mut client = reach(&[], &server.url());
    let id = client.request("tools/call", &modern_call("echo", &json!({"region": "eu"})));
    assert!(client.answer(&id)["error"].is_object());
    assert!(server.requests_of("tools/call").len() <= 2);
}

fn with_environment(flags: &[&str], url: &str, variables: &[(&str, &str)]) -> Peer {
    Peer::start(outlast_alone().args(flags).arg(url).envs(variables.iter().copied()))
}

#[test]
fn headers_of_a_person_go_with_every_request() {
    let server = FaultServer::start(legacy);
    let flags = ["--header", "Authorization: Bearer ${E2E_TOKEN}", "--header", "X-Team:  blue "];
    let mut client = with_environment(&flags, &server.url(), &[("E2E_TOKEN", "s3cr3t")]);
    client.handshake();
    client.value_of("echo", &json!(1));
    server.request_where(|request| request.method == "GET");
    client.hang_up();
    assert!(server.requests().iter().any(|request| request.method == "DELETE"));
    for request in server.requests() {
        assert_eq!(request.header("Authorization"), Some("Bearer s3cr3t"), "{request:?}");
        assert_eq!(request.header("X-Team"), Some("blue"));
    }
}

#[test]
fn a_variable_that_is_missing_is_an_error_that_names_it() {
    let server = FaultServer::start(legacy);
    let mut client = reach(&["--header", "Authorization: Bearer ${E2E_NO_SUCH_VARIABLE}"], &server.url());
    assert_eq!(client.end().code(), Some(2));
    let stderr = String::from_utf8(client.all_stderr()).unwrap();
    assert!(stderr.contains("E2E_NO_SUCH_VARIABLE"), "{stderr}");
    assert!(server.requests().is_empty());
}

#[test]
fn a_header_that_is_none_is_an_error_that_shows_no_secret() {
    let bad = ["no colon s3cr3t", ": s3cr3t", "Bad Name: s3cr3t", "X-A: s3cr3t\nX-B: y", "Host: s3cr3t\r"];
    for header in bad {
        let mut client = reach(&["--header", header], "http://127.0.0.1:1/mcp");
        assert_eq!(client.end().code(), Some(2), "{header:?}");
        let stderr = String::from_utf8(client.all_stderr()).unwrap();
        assert!(stderr.contains("--header") && !stderr.contains("s3cr3t"), "{stderr}");
    }
}

/// What a person gave is nobody else's to see, whatever goes wrong.
#[test]
fn secrets_are_in_no_error_log_or_record() {
    let server = FaultServer::start(|request, connection| match request.tool().as_str() {
        "refuse" => connection.answer("401 Unauthorized", &[("WWW-Authenticate", "Bearer")], "no"),
        "html" => connection.answer("200 OK", &[("Content-Type", "text/html")], "<p>"),
        "reset" => connection.reset(),
        _ => legacy(request, connection),
    });
    let directory = tempfile::tempdir().unwrap();
    let record = directory.path().join("record");
    let record = record.to_str().unwrap();
    let flags =
        ["--log", "debug", "--trace-messages", record, "--header", "Authorization: Bearer ${E2E_TOKEN}"];
    let mut client = with_environment(&flags, &server.url(), &[("E2E_TOKEN", "s3cr3t-canary")]);
    client.handshake();
    for tool in ["refuse", "html", "reset"] {
        data(&client.call(tool, &json!({})));
    }
    client.hang_up();
    let stderr = String::from_utf8_lossy(&client.all_stderr()).into_owned();
    let said: String = client.log().iter().map(|line| line.text()).collect();
    let recorded = std::fs::read_to_string(record).unwrap();
    for (place, text) in [("stderr", stderr), ("stdout", said), ("record", recorded)] {
        assert!(!text.contains("s3cr3t-canary"), "{place}: {text}");
    }
}

/// What a URL carries before its host is a secret as well.
#[test]
fn a_password_in_the_url_is_shown_nowhere() {
    let mut client =
        reach(&["--connect-retries", "0", "--log", "debug"], "http://user:s3cr3t@127.0.0.1:1/mcp");
    let who = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
    client.request("initialize", &params);
    client.close_input();
    client.end();
    let said: String = client.rest().iter().map(|line| line.text()).collect();
    let stderr = String::from_utf8_lossy(&client.all_stderr()).into_owned();
    assert!(!said.contains("s3cr3t") && !stderr.contains("s3cr3t"), "{said}\n{stderr}");
}

// Proxies.

#[test]
fn a_proxy_of_the_environment_is_used() {
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let proxy = FaultServer::start(legacy);
        let through = format!("http://{}", proxy.address());
        let mut client = with_environment(&[], "http://server.invalid/mcp", &[(name, &through)]);
        assert!(client.handshake()["result"].is_object(), "{name}");
        assert_eq!(client.value_of("echo", &json!(1)), json!(1));
        let call = proxy.request_where(|request| request.rpc() == "tools/call");
        assert_eq!(call.path, "http://server.invalid/mcp");
        assert_eq!(call.header("Host"), Some("server.invalid"));
    }
}

#[test]
fn hosts_that_need_no_proxy_get_none() {
    let server = FaultServer::start(legacy);
    let proxy = FaultServer::start(legacy);
    let through = format!("http://{}", proxy.address());
    for hosts in ["127.0.0.1", "localhost,127.0.0.0/8", "*"] {
        let variables = [("HTTP_PROXY", through.as_str()), ("NO_PROXY", hosts)];
        let mut client = with_environment(&[], &server.url(), &variables);
        assert!(client.handshake()["result"].is_object(), "{hosts}");
    }
    assert!(proxy.requests().is_empty());
}

#[test]
fn a_proxy_for_https_is_asked_for_a_tunnel() {
    let proxy = FaultServer::start(|_, connection| connection.answer("403 Forbidden", &[], ""));
    let through = format!("http://{}", proxy.address());
    let flags = ["--connect-retries", "0", "--header", "Authorization: Bearer s3cr3t"];
    let mut client = with_environment(&flags, "https://server.invalid/mcp", &[("HTTPS_PROXY", &through)]);
    let answer = client.handshake();
    assert_eq!(data(&answer)["kind"], "server-failed", "{answer}");
    let asked = &proxy.requests()[0];
    assert_eq!((asked.method.as_str(), asked.path.as_str()), ("CONNECT", "server.invalid:443"));
    assert_eq!(asked.header("Authorization"), None, "the proxy saw what is for the server");
}

#[test]
fn a_proxy_that_is_away_is_named() {
    let variables = [("HTTP_PROXY", "http://127.0.0.1:1")];
    let mut client = with_environment(&["--connect-retries", "0"], "http://server.invalid/mcp", &variables);
    let answer = client.handshake();
    assert_eq!(data(&answer)["kind"], "server-failed", "{answer}");
}

/// Nothing that an HTTP client says to us is said on.
#[test]
fn headers_of_a_client_are_not_passed_on() {
    let server = FaultServer::start(legacy);
    let served = crate::http_world::serve_url(&["--header", "Authorization: Bearer ours"], &server.url());
    let mut session = served.session();
    session.value_of("echo", &json!(1));
    let mut caller = served.caller();
    let mut headers = session.headers();
    headers.extend([
        JSON,
        ("Authorization", "Bearer the-clients-own"),
        ("Cookie", "the-clients-own=1"),
        ("Origin", "http://localhost"),
        ("X-Forwarded-For", "192.0.2.1"),
        ("Proxy-Authorization", "Basic the-clients-own"),
        ("X-Custom", "the-clients-own"),
    ]);
    let message = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": {"name": "echo", "arguments": {"mine": 1}}});
    caller.request("POST /mcp", &headers, message.to_string());
    let answer: Value = crate::http_world::answer_of(&mut caller);
    assert_eq!(answer["result"]["structuredContent"], json!({"mine": 1}), "{answer}");
    for request in server.requests() {
        let lines = format!("{:?}", request.head);
        assert!(!lines.contains("the-clients-own") && !lines.contains(&session.id), "{lines}");
        assert_eq!(request.header("Authorization"), Some("Bearer ours"));
        assert_eq!(request.header("Origin"), None);
        assert_eq!(request.header("X-Forwarded-For"), None);
    }
}
