//! A remote server that is away for a while: what is safe is tried again, sessions are made whole.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use outlast_testkit::http::faults::{Connection, FaultServer, Request, closed_address};
use serde_json::json;

use crate::http_world::{JSON, answer_to, legacy, reach, reached};
use crate::world::data;

/// Answers with this status the first so many times that something is asked.
fn refusing(
    times: usize,
    rpc: &'static str,
    status: &'static str,
    headers: &'static [(&'static str, &'static str)],
) -> FaultServer {
    let refused = AtomicUsize::new(0);
    FaultServer::start(move |request, connection| {
        if request.rpc() == rpc && refused.fetch_add(1, Ordering::Relaxed) < times {
            return connection.answer(status, headers, "busy");
        }
        legacy(request, connection);
    })
}

#[test]
fn a_server_that_is_busy_is_asked_again_where_that_is_safe() {
    for status in
        ["429 Too Many Requests", "502 Bad Gateway", "503 Service Unavailable", "504 Gateway Timeout"]
    {
        let server = refusing(2, "tools/list", status, &[("Retry-After", "0")]);
        let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
        let id = client.request("tools/list", &json!({}));
        let answer = client.answer(&id);
        assert_eq!(answer["result"]["tools"][0]["name"], "echo", "{status}: {answer}");
        assert_eq!(server.requests_of("tools/list").len(), 3);
    }
}

#[test]
fn the_wait_that_a_busy_server_asks_for_is_kept() {
    let server = refusing(1, "tools/list", "503 Service Unavailable", &[("Retry-After", "1")]);
    let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
    let began = Instant::now();
    let id = client.request("tools/list", &json!({}));
    assert!(client.answer(&id)["result"].is_object());
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
}

/// Longer than the call may live: failed now, while the client still listens.
#[test]
fn a_wait_beyond_the_calls_end_is_not_begun() {
    let server = refusing(1, "tools/list", "503 Service Unavailable", &[("Retry-After", "86400")]);
    let mut client = reached(&["--method", "tools/list=max:5s"], &server.url());
    let began = Instant::now();
    let id = client.request("tools/list", &json!({}));
    let answer = client.answer(&id);
    assert_eq!(data(&answer)["kind"], "http-status", "{answer}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

#[test]
fn a_wait_that_makes_no_sense_is_ignored() {
    for wait in ["soon", "-1", "99999999999999999999", "Fri, 31 Dec 1999 23:59:59 GMT"] {
        let refused = AtomicUsize::new(0);
        let server = FaultServer::start(move |request, connection| {
            if request.rpc() == "tools/list" && refused.fetch_add(1, Ordering::Relaxed) == 0 {
                return connection.answer("503 Service Unavailable", &[("Retry-After", wait)], "");
            }
            legacy(request, connection);
        });
        let mut client =
            reached(&["--retry-backoff", "10ms", "--method", "tools/list=max:10s"], &server.url());
        let id = client.request("tools/list", &json!({}));
        let answer = client.answer(&id);
        let named = answer["error"].is_object() && data(&answer)["kind"] == "http-status";
        assert!(answer["result"].is_object() || named, "{wait}: {answer}");
    }
}

/// A gateway that gave up does not know whether the server behind it acted.
#[test]
fn a_call_that_may_have_acted_is_not_repeated() {
    for status in ["500 Oops", "502 Bad Gateway", "504 Gateway Timeout"] {
        let server = refusing(1, "tools/call", status, &[("Retry-After", "0")]);
        let mut client = reached(&[], &server.url());
        let answer = client.call("echo", &json!({}));
        assert_eq!(data(&answer)["kind"], "http-status", "{answer}");
        assert_eq!(data(&answer)["retry"], "unsafe", "{answer}");
        assert_eq!(server.requests_of("tools/call").len(), 1);
        assert_eq!(client.value_of("echo", &json!(1)), json!(1));
    }
}

#[test]
fn a_call_that_is_marked_repeatable_is_repeated() {
    let server = refusing(1, "tools/call", "502 Bad Gateway", &[]);
    let mut client = reached(&["--tool", "echo=repeatable:true", "--retry-backoff", "10ms"], &server.url());
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
    assert_eq!(server.requests_of("tools/call").len(), 2);
}

#[test]
fn a_busy_server_is_not_asked_for_ever() {
    let server = refusing(1000, "tools/list", "503 Service Unavailable", &[]);
    let mut client = reached(&["--retry-backoff", "10ms", "--retries", "3"], &server.url());
    let id = client.request("tools/list", &json!({}));
    let answer = client.answer(&id);
    assert_eq!(data(&answer)["kind"], "http-status", "{answer}");
    assert!(server.requests_of("tools/list").len() <= 4);
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn a_refused_connection_is_tried_again_until_the_server_is_there() {
    let address = closed_address();
    let mut client =
        reach(&["--connect-backoff", "300ms", "--log", "info"], &format!("http://{address}/mcp"));
    let who = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": who});
    let id = client.request("initialize", &params);
    client.stderr_where(|text| text.contains("refused"));
    let server = FaultServer::start_at(&address.to_string(), legacy);
    let answer = client.answer(&id);
    assert!(answer["result"].is_object(), "{answer}");
    assert_eq!(server.requests_of("initialize").len(), 1);
}

/// The server is gone between two calls and comes back: what never reached it is sent when it is there.
#[test]
fn a_server_that_comes_back_is_found_again() {
    let server = FaultServer::start(legacy);
    let address = server.address().to_string();
    let mut client = reached(&["--connect-backoff", "100ms", "--reconnect-every", "200ms"], &server.url());
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
    drop(server);
    let answer = client.call("echo", &json!(2));
    if answer.get("error").is_some() {
        assert!(
            ["server-gone", "server-failed"].contains(&data(&answer)["kind"].as_str().unwrap()),
            "{answer}"
        );
    }
    let _server = FaultServer::start_at(&address, legacy);
    let works = outlast_testkit::peer::wait_until(Duration::from_secs(10), || {
        client.call("echo", &json!(3))["result"].is_object()
    });
    assert!(works);
}

// Sessions.

/// A server whose sessions are numbered; each is forgotten when `forget` says so.
struct Sessions {
    opened: AtomicUsize,
    forget: Mutex<Option<Forget>>,
}

type Forget = fn(&Request, &mut Connection);

fn forgetting(how: Forget) -> FaultServer {
    let sessions = Sessions { opened: AtomicUsize::new(0), forget: Mutex::new(None) };
    FaultServer::start(move |request, connection| {
        let current = format!("session-{}", sessions.opened.load(Ordering::Relaxed));
        match request.rpc().as_str() {
            "initialize" => {
                let number = sessions.opened.fetch_add(1, Ordering::Relaxed) + 1;
                let id = format!("session-{number}");
                let introduction = json!({
                    "protocolVersion": "2025-11-25", "capabilities": {"tools": {}, "logging": {}},
                    "serverInfo": {"name": "remote", "version": "1"},
                });
                let body = answer_to(request, &introduction).to_string();
                *sessions.forget.lock().unwrap() = None;
                connection.answer("200 OK", &[JSON, ("Mcp-Session-Id", &id)], body);
            }
            _ if request.tool() == "forget" => {
                legacy(request, connection);
                *sessions.forget.lock().unwrap() = Some(how);
            }
            _ if request.header("Mcp-Session-Id") != Some(&current) => {
                connection.answer("404 Not Found", &[], "");
            }
            _ => match *sessions.forget.lock().unwrap() {
                Some(refuse) => refuse(request, connection),
                None => legacy(request, connection),
            },
        }
    })
}

fn not_found(_: &Request, connection: &mut Connection) {
    connection.answer("404 Not Found", &[], "");
}

fn not_found_in_json(_: &Request, connection: &mut Connection) {
    let error =
        json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32001, "message": "Session not found"}});
    connection.answer("404 Not Found", &[JSON], error.to_string());
}

fn bad_request(_: &Request, connection: &mut Connection) {
    let error = json!({"code": -32000, "message": "Bad Request: No valid session ID provided"});
    let body = json!({"jsonrpc": "2.0", "id": null, "error": error}).to_string();
    connection.answer("400 Bad Request", &[JSON], body);
}

#[test]
fn a_lost_session_is_opened_again_and_what_is_safe_repeated() {
    for how in [not_found as Forget, not_found_in_json, bad_request] {
        let server = forgetting(how);
        let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
        let id = client.request("logging/setLevel", &json!({"level": "error"}));
        client.answer(&id);
        client.value_of("forget", &json!({}));
        let id = client.request("tools/list", &json!({}));
        let answer = client.answer(&id);
        assert_eq!(answer["result"]["tools"][0]["name"], "echo", "{answer}");
        let again = &server.requests_of("initialize")[1];
        assert_eq!(again.header("Mcp-Session-Id"), None);
        // It is told what the old one knew, in the new session.
        let new = |request: &Request| request.header("Mcp-Session-Id") == Some("session-2");
        server.request_where(|request| new(request) && request.rpc() == "notifications/initialized");
        let level = server.request_where(|request| new(request) && request.rpc() == "logging/setLevel");
        assert_eq!(level.json()["params"]["level"], "error");
        assert_eq!(client.value_of("echo", &json!(1)), json!(1));
        assert_eq!(server.requests_of("initialize").len(), 2);
    }
}

/// A server that does not know the session has not run the call: sending it again does no harm.
#[test]
fn a_call_that_a_lost_session_refused_is_answered_in_the_next() {
    let server = forgetting(not_found);
    let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
    client.value_of("forget", &json!({}));
    let answer = client.call("echo", &json!({"a": 1}));
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}), "{answer}");
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn many_calls_that_meet_a_lost_session_open_one_new_one() {
    let server = forgetting(not_found);
    let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
    client.value_of("forget", &json!({}));
    let ids: Vec<_> = (0..10).map(|_| client.request("tools/list", &json!({}))).collect();
    for id in ids {
        let answer = client.answer(&id);
        assert!(answer["result"].is_object(), "{answer}");
    }
    assert_eq!(server.requests_of("initialize").len(), 2);
}

/// A server that never knows its sessions: the call is sent once more, and then it has its answer.
#[test]
fn a_session_that_is_lost_at_once_is_not_opened_for_ever() {
    let server = FaultServer::start(|request, connection| match request.rpc().as_str() {
        "initialize" | "notifications/initialized" => legacy(request, connection),
        _ => connection.answer("404 Not Found", &[], ""),
    });
    let mut client = reached(&["--retry-backoff", "10ms", "--restart-backoff", "10ms"], &server.url());
    let id = client.request("tools/list", &json!({}));
    let answer = client.answer(&id);
    assert!(answer["error"].is_object(), "{answer}");
    data(&answer);
    let tries = server.requests_of("initialize").len();
    assert_eq!(tries, 2);
    assert_eq!(server.requests_of("tools/list").len(), 2);
}

#[test]
fn a_server_without_sessions_gets_no_session_header() {
    let server = FaultServer::start(|request, connection| match request.rpc().as_str() {
        "initialize" => {
            let result = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
            connection.json(&answer_to(request, &result));
        }
        _ => legacy(request, connection),
    });
    let mut client = reached(&[], &server.url());
    client.value_of("echo", &json!(1));
    let call = server.request_where(|request| request.rpc() == "tools/call");
    assert_eq!(call.header("Mcp-Session-Id"), None);
    assert_eq!(call.header("MCP-Protocol-Version"), Some("2025-06-18"));
    client.hang_up();
    assert!(server.requests().iter().all(|request| request.method != "DELETE"));
}

#[test]
fn a_session_is_ended_with_its_client() {
    let server = FaultServer::start(legacy);
    let mut client = reached(&[], &server.url());
    client.value_of("echo", &json!(1));
    assert_eq!(client.hang_up().code(), Some(0));
    let last = server.request_where(|request| request.method == "DELETE");
    assert_eq!(last.header("Mcp-Session-Id"), Some("session-1"));
}

/// An id that cannot be a header of ours is no reason to fall over.
#[test]
fn a_strange_session_id_is_echoed_or_refused() {
    for id in ["a b", "x\ty", "\u{e9}\u{e9}", &"long".repeat(2000)] {
        let id = id.to_owned();
        let server = FaultServer::start(move |request, connection| match request.rpc().as_str() {
            "initialize" => {
                let result = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
                let body = answer_to(request, &result).to_string();
                connection.answer("200 OK", &[JSON, ("Mcp-Session-Id", &id)], body);
            }
            _ => legacy(request, connection),
        });
        let mut client = reach(&[], &server.url());
        let answer = client.handshake();
        if answer["result"].is_object() {
            assert_eq!(client.value_of("echo", &json!(1)), json!(1));
        } else {
            assert_eq!(data(&answer)["kind"], "not-mcp", "{answer}");
        }
    }
}
