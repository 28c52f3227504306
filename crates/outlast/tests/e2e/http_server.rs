//! A remote server that answers badly, or not at all: each fault has a name, and the next call works.

use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};

use outlast_testkit::http::faults::{Connection, FaultServer, Request, closed_address};
use outlast_testkit::peer::Peer;
use serde_json::{Value, json};

use crate::http_world::{
    JSON, answer_to, event, faulty, legacy, modern, modern_call, modern_meta, reach, reached, said,
};
use crate::world::{MUCH_MEMORY, data, memory_of};

/// A script writes its first messages without waiting for answers; those that need a session wait for it.
#[test]
fn messages_that_follow_initialize_at_once_keep_their_order() {
    let server = FaultServer::start(|request, connection| {
        match (request.rpc().as_str(), request.header("mcp-session-id")) {
            ("initialize", _) | (_, Some("session-1")) => legacy(request, connection),
            _ if request.method != "POST" => legacy(request, connection),
            _ => connection.answer("400 Bad Request", &[], "no session"),
        }
    });
    let mut client = reach(&[], &server.url());
    client.handshake_blindly();
    let list = client.request("tools/list", &json!({}));
    let call = client.request("tools/call", &json!({"name": "echo", "arguments": {"a": 1}}));
    assert!(client.answer(&list)["result"]["tools"].is_array());
    assert_eq!(client.answer(&call)["result"]["structuredContent"], json!({"a": 1}));
    client.hang_up();
    let posts: Vec<String> =
        server.requests().iter().filter(|it| it.method == "POST").map(|it| it.rpc()).collect();
    assert_eq!(posts[..2], ["initialize", "notifications/initialized"], "{posts:?}");
}

/// A call that fails in one of these ways, told in the form of all our errors; it and no other.
fn fails(client: &mut Peer, kinds: &[&str]) -> Value {
    let answer = client.call("fault", &json!({}));
    assert_kind(&answer, kinds);
    assert_eq!(data(&answer)["tool"], "fault", "{answer}");
    assert_eq!(client.value_of("echo", &json!({"next": 1})), json!({"next": 1}));
    answer
}

fn assert_kind(answer: &Value, kinds: &[&str]) {
    let kind = data(answer)["kind"].as_str().expect("a kind");
    assert!(kinds.contains(&kind), "not {kinds:?}: {answer}");
    let code = match kind {
        "server-gone" => -31002,
        "server-failed" => -31003,
        "http-status" => -31005,
        "not-mcp" => -31006,
        "message-too-large" => -31011,
        "timeout" => -32001,
        _ => panic!("a kind without a code: {answer}"),
    };
    assert_eq!(answer["error"]["code"], code, "{answer}");
    let message = answer["error"]["message"].as_str().expect("a message");
    assert!(message.len() <= 300, "{message}");
}

#[test]
fn html_and_unknown_content_types_are_not_mcp() {
    let html = "<!DOCTYPE html><title>Sign in</title>";
    let answers: [&[(&str, &str)]; 5] = [
        &[("Content-Type", "text/html; charset=utf-8")],
        &[("Content-Type", "text/plain")],
        &[("Content-Type", "application/octet-stream")],
        &[("Content-Type", "nonsense")],
        &[],
    ];
    for headers in answers {
        let server = faulty(move |_, connection| connection.answer("200 OK", headers, html));
        let mut client = reached(&[], &server.url());
        let answer = fails(&mut client, &["not-mcp"]);
        assert_eq!(server.requests_of("tools/call").len(), 2, "it was tried again: {headers:?}");
        if let Some((_, kind)) = headers.first() {
            let message = answer["error"]["message"].as_str().unwrap();
            assert!(message.contains(kind.split(';').next().unwrap()), "{message}");
        }
    }
}

#[test]
fn json_that_is_no_answer_is_not_mcp() {
    let bodies = ["", "null", "[]", "{", "42", r#"{"jsonrpc":"2.0"}"#, "not json", "\u{feff}"];
    for body in bodies {
        let server = faulty(move |_, connection| connection.answer("200 OK", &[JSON], body));
        fails(&mut reached(&[], &server.url()), &["not-mcp"]);
    }
}

#[test]
fn an_answer_under_another_id_is_not_taken_and_its_call_ends() {
    let server = faulty(|_, connection| {
        connection.json(&json!({"jsonrpc": "2.0", "id": "somebody else's", "result": {"x": 1}}));
    });
    let answer = fails(&mut reached(&[], &server.url()), &["not-mcp", "server-gone"]);
    assert!(answer.get("result").is_none());
}

#[test]
fn accepted_without_an_answer_is_not_mcp() {
    for status in ["202 Accepted", "204 No Content"] {
        let server = faulty(move |_, connection| connection.answer(status, &[], ""));
        fails(&mut reached(&[], &server.url()), &["not-mcp"]);
    }
}

#[test]
fn what_is_not_http_is_not_mcp() {
    let answers: [&[u8]; 5] = [
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x15\x03\x01\x00\x02\x02\x46",
        b"HTTP/1.1 abc Strange\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n",
    ];
    for bytes in answers {
        let server = faulty(move |_, connection| {
            connection.send(bytes);
            connection.close();
        });
        fails(&mut reached(&[], &server.url()), &["not-mcp", "server-gone"]);
    }
}

#[test]
fn a_head_without_end_is_refused_and_bounded() {
    let server = faulty(|_, connection| {
        connection.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n");
        for number in 0..4000 {
            connection.send(format!("X-Filler-{number}: {}\r\n", "x".repeat(4000)));
        }
        connection.close();
    });
    let mut client = reached(&[], &server.url());
    fails(&mut client, &["not-mcp", "server-gone"]);
    assert!(memory_of(client.pid()) < MUCH_MEMORY);
}

#[test]
fn a_status_that_is_no_mcp_is_named() {
    for status in
        ["400 Bad Request", "401 Unauthorized", "403 Forbidden", "418 I'm a teapot", "500 Oops", "501 No"]
    {
        let server = faulty(move |_, connection| {
            connection.answer(status, &[("Content-Type", "text/plain")], "the words of the server");
        });
        let answer = fails(&mut reached(&[], &server.url()), &["http-status"]);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains(&status[..3]), "{message}");
        assert_eq!(server.requests_of("tools/call").len(), 2, "it was tried again: {status}");
    }
}

/// An error of the server is the server's, whatever the status it comes with.
#[test]
fn a_json_rpc_error_passes_with_any_status() {
    for status in ["200 OK", "400 Bad Request", "403 Forbidden", "500 Internal Server Error"] {
        let server = faulty(move |request, connection| {
            let error = json!({"code": -32050, "message": "not today", "data": {"mine": [1.5]}});
            let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": error});
            connection.answer(status, &[JSON], body.to_string());
        });
        let mut client = reached(&[], &server.url());
        let answer = client.call("fault", &json!({}));
        assert_eq!(answer["error"], json!({"code": -32050, "message": "not today", "data": {"mine": [1.5]}}));
    }
}

/// 404 is how a modern server says so.
#[test]
fn an_unknown_method_of_a_modern_server_is_its_own_error() {
    let server = FaultServer::start(modern);
    let mut client = reach(&[], &server.url());
    let id = client.request("vendor/unknown", &json!({"_meta": modern_meta()}));
    assert_eq!(client.answer(&id)["error"], json!({"code": -32601, "message": "Method not found"}));
}

#[test]
fn a_body_longer_than_max_message_fails_its_call() {
    let server = faulty(|request, connection| {
        let long = said(request, &json!("x".repeat(8 << 20))).to_string();
        match request.json()["params"]["arguments"]["how"].as_str() {
            Some("chunks") => {
                connection.send_head("200 OK", &[JSON, ("Transfer-Encoding", "chunked")]);
                for part in long.as_bytes().chunks(64 << 10) {
                    connection.events(part);
                }
                connection.end_events();
            }
            Some("events") => connection.all_events(format!("data: {long}\n\n")),
            _ => connection.answer("200 OK", &[JSON], long),
        }
    });
    let mut client = reached(&["--max-message", "1MiB"], &server.url());
    for how in ["length", "chunks", "events"] {
        let answer = client.call("fault", &json!({"how": how}));
        assert_kind(&answer, &["message-too-large"]);
        assert_eq!(client.value_of("echo", &json!({"after": how})), json!({"after": how}));
    }
    assert!(memory_of(client.pid()) < MUCH_MEMORY);
}

#[test]
fn a_content_length_that_is_too_long_is_a_broken_answer() {
    let server = faulty(|request, connection| {
        let body = said(request, &json!(1)).to_string();
        let length = (body.len() + 10).to_string();
        connection.send_head("200 OK", &[JSON, ("Content-Length", &length)]);
        connection.send(body);
        connection.close();
    });
    fails(&mut reached(&[], &server.url()), &["server-gone"]);
}

#[test]
fn a_content_length_that_is_too_short_spoils_no_other_answer() {
    let server = faulty(|request, connection| {
        let body = said(request, &json!({"text": "x".repeat(50)})).to_string();
        connection.send_head("200 OK", &[JSON, ("Content-Length", "20")]);
        connection.send(body);
    });
    fails(&mut reached(&[], &server.url()), &["not-mcp"]);
}

#[test]
fn two_lengths_that_contradict_each_other_are_refused() {
    let server = faulty(|request, connection| {
        let body = said(request, &json!(1)).to_string();
        let length = body.len().to_string();
        connection.send_head("200 OK", &[JSON, ("Content-Length", &length), ("Content-Length", "5")]);
        connection.send(body);
        connection.close();
    });
    fails(&mut reached(&[], &server.url()), &["not-mcp", "server-gone"]);
}

/// It does not say so in its head: a connection that is closed looks as good as any until it is used.
#[test]
fn a_connection_that_was_closed_meanwhile_costs_no_call() {
    let (closed, is_closed) = channel();
    let closed = Mutex::new(closed);
    let server = FaultServer::start(move |request, connection| {
        legacy(request, connection);
        // The others stay open, so that none is closed just when it is used.
        if request.rpc() == "tools/call" {
            connection.close();
            let _ = closed.lock().unwrap().send(());
        }
    });
    // On a busy machine the end may be on its way when the connection is used: that is tried again.
    let mut client = reached(&["--tool", "echo=repeatable:true"], &server.url());
    for number in 0..100 {
        assert_eq!(client.value_of("echo", &json!(number)), json!(number));
        is_closed.recv().unwrap();
    }
    assert_eq!(server.requests_of("tools/call").len(), 100);
}

#[test]
fn a_server_that_closes_after_every_answer_serves_all_calls() {
    let server = FaultServer::start(|request, connection| {
        if request.rpc() != "tools/call" {
            return legacy(request, connection);
        }
        let body = said(request, &request.json()["params"]["arguments"]).to_string();
        connection.answer("200 OK", &[JSON, ("Connection", "close")], body);
        connection.close();
    });
    let mut client = reached(&[], &server.url());
    let ids: Vec<_> = (0..300).map(|number| client.begin("echo", &json!(number))).collect();
    for (number, id) in ids.iter().enumerate() {
        assert_eq!(client.answer(id)["result"]["structuredContent"], number);
    }
    assert_eq!(server.requests_of("tools/call").len(), 300);
}

#[test]
fn a_server_that_never_answers_is_told_by_its_limit() {
    let server = faulty(|_, connection| {
        connection.wait_for_close();
        connection.close();
    });
    let mut client = reached(&["--timeout", "300ms"], &server.url());
    for _ in 0..3 {
        fails(&mut client, &["timeout"]);
    }
}

/// A server that takes connections and does nothing with them, until the test lets go.
fn deaf() -> (FaultServer, Sender<()>) {
    let (hold, held) = channel();
    let held = Mutex::new(held);
    let server = FaultServer::start_raw(move |_| {
        let _ = held.lock().map(|held| held.recv());
    });
    (server, hold)
}

#[test]
fn a_server_that_accepts_and_never_reads_is_told_by_its_limit() {
    let (server, _hold) = deaf();
    let mut client = reach(&["--handshake", "300ms"], &server.url());
    let answer = client.handshake();
    assert_eq!(data(&answer)["kind"], "timeout", "{answer}");
}

#[test]
fn a_server_that_accepts_and_never_speaks_tls_is_told_by_connect() {
    let (server, _hold) = deaf();
    let url = server.url().replace("http://", "https://");
    let answer = reach(&["--connect", "300ms", "--connect-retries", "0"], &url).handshake();
    assert_kind(&answer, &["server-failed"]);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("connect"), "{message}");
}

#[test]
fn a_refused_connection_is_named_and_safe_to_try_again() {
    let url = format!("http://{}/mcp", closed_address());
    let answer = reach(&["--connect-retries", "0"], &url).handshake();
    assert_kind(&answer, &["server-failed"]);
    assert_eq!(data(&answer)["serverState"], "never-reached");
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("refused"), "{message}");
}

#[test]
fn a_name_that_does_not_resolve_is_named() {
    let answer = reach(&["--connect-retries", "0"], "http://no-such-host.invalid/mcp").handshake();
    assert_kind(&answer, &["server-failed"]);
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.contains("no-such-host.invalid"), "{message}");
}

/// Where in an answer the connection is reset.
#[derive(Clone, Copy, Debug)]
enum Stage {
    Unanswered,
    StatusLine,
    Headers,
    Head,
    Body,
    StreamHead,
    Chunk,
    Event,
    AfterAnEvent,
}

const STAGES: [Stage; 9] = [
    Stage::Unanswered,
    Stage::StatusLine,
    Stage::Headers,
    Stage::Head,
    Stage::Body,
    Stage::StreamHead,
    Stage::Chunk,
    Stage::Event,
    Stage::AfterAnEvent,
];

fn break_off(stage: Stage, request: &Request, connection: &mut Connection) {
    let body = answer_to(request, &json!({})).to_string();
    match stage {
        Stage::Unanswered => {}
        Stage::StatusLine => connection.send("HTTP/1."),
        Stage::Headers => connection.send("HTTP/1.1 200 OK\r\nContent-Ty"),
        Stage::Head => connection.send_head("200 OK", &[JSON, ("Content-Length", "1000")]),
        Stage::Body => {
            connection.send_head("200 OK", &[JSON, ("Content-Length", &body.len().to_string())]);
            connection.send(&body[..body.len() / 2]);
        }
        Stage::StreamHead => connection.open_events(&[]),
        Stage::Chunk => {
            connection.open_events(&[]);
            connection.send("fff\r\ndata: ");
        }
        Stage::Event => {
            connection.open_events(&[]);
            connection.events(&event(&json!({"half": body}))[..20]);
        }
        Stage::AfterAnEvent => {
            connection.open_events(&[]);
            connection.events(
                ": comment\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n",
            );
        }
    }
}

/// Whether it acted, nobody knows: the call is not repeated and its error says so.
#[test]
fn a_reset_at_any_stage_fails_a_call_that_may_have_acted() {
    for stage in STAGES {
        for reset in [true, false] {
            let server = faulty(move |request, connection| {
                break_off(stage, request, connection);
                if reset { connection.reset() } else { connection.close() }
            });
            let answer = fails(&mut reached(&[], &server.url()), &["server-gone"]);
            assert_eq!(data(&answer)["retry"], "unsafe", "{stage:?}: {answer}");
            let calls = server.requests_of("tools/call");
            let faults = calls.iter().filter(|request| request.tool() == "fault").count();
            assert_eq!(faults, 1, "it was sent again: {stage:?}");
        }
    }
}

#[test]
fn a_reset_at_any_stage_is_made_good_where_repeating_is_safe() {
    for stage in STAGES {
        let broken = Mutex::new(false);
        let server = FaultServer::start(move |request, connection| {
            if request.rpc() != "tools/list" || std::mem::replace(&mut broken.lock().unwrap(), true) {
                return legacy(request, connection);
            }
            break_off(stage, request, connection);
            connection.reset();
        });
        let mut client = reached(&["--retry-backoff", "10ms"], &server.url());
        let id = client.request("tools/list", &json!({}));
        let answer = client.answer(&id);
        assert_eq!(answer["result"]["tools"][0]["name"], "echo", "{stage:?}: {answer}");
        assert_eq!(server.requests_of("tools/list").len(), 2, "{stage:?}");
    }
}

#[test]
fn a_reset_at_any_stage_is_named_in_the_modern_era_too() {
    for stage in STAGES {
        let server = FaultServer::start(move |request, connection| {
            if request.tool() != "fault" {
                return modern(request, connection);
            }
            break_off(stage, request, connection);
            connection.reset();
        });
        let mut client = reach(&[], &server.url());
        let id = client.request("tools/call", &modern_call("fault", &json!({})));
        let answer = client.answer(&id);
        assert_kind(&answer, &["server-gone"]);
        let id = client.request("tools/call", &modern_call("echo", &json!({"next": 1})));
        assert_eq!(client.answer(&id)["result"]["structuredContent"], json!({"next": 1}));
    }
}

/// A connection that was reset before a byte of the request was read.
#[test]
fn a_reset_at_the_door_is_named_and_the_next_call_works() {
    let resets = Arc::new(Mutex::new(false));
    let at_the_door = resets.clone();
    let server = FaultServer::start_raw(move |connection| {
        if std::mem::take(&mut *at_the_door.lock().unwrap()) {
            return connection.reset();
        }
        while let Some(request) = connection.request() {
            legacy(&request, connection);
            if request.tool() == "slam" {
                *at_the_door.lock().unwrap() = true;
                connection.close();
            }
        }
    });
    let mut client = reached(&[], &server.url());
    client.value_of("slam", &json!({}));
    // A call may still leave on the connection that is being closed; the one after it meets the reset.
    while *resets.lock().unwrap() {
        let answer = client.call("echo", &json!({"a": 1}));
        if answer.get("error").is_some() {
            assert_kind(&answer, &["server-gone", "server-failed"]);
        }
    }
    assert_eq!(client.value_of("echo", &json!({"b": 1})), json!({"b": 1}));
}

#[test]
fn a_slow_answer_does_not_hold_up_the_others() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = faulty(move |request, connection| {
        connection.open_events(&[]);
        let _ = wait.lock().unwrap().recv();
        connection.events(event(&said(request, &json!("late"))));
        connection.end_events();
    });
    let mut client = reached(&[], &server.url());
    let slow = client.begin("fault", &json!({}));
    for number in 0..50 {
        assert_eq!(client.value_of("echo", &json!(number)), json!(number));
    }
    go.send(()).unwrap();
    assert_eq!(client.answer(&slow)["result"]["structuredContent"], "late");
}

/// What stands before the answer is not the answer.
#[test]
fn interim_answers_are_passed_over() {
    let server = faulty(|request, connection| {
        connection.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n");
        connection.json(&said(request, &json!("at last")));
    });
    assert_eq!(reached(&[], &server.url()).value_of("fault", &json!({})), "at last");
}

#[test]
fn chunks_with_extensions_and_trailers_are_read() {
    let server = faulty(|request, connection| {
        let body = said(request, &json!("odd")).to_string();
        connection.send_head("200 OK", &[JSON, ("Transfer-Encoding", "chunked"), ("Trailer", "X-Sum")]);
        connection.send(format!("{:X};name=value\r\n{body}\r\n0\r\nX-Sum: 1\r\n\r\n", body.len()));
    });
    let mut client = reached(&[], &server.url());
    for _ in 0..2 {
        assert_eq!(client.value_of("fault", &json!({})), "odd");
    }
}

/// A server may refuse a request before it has read all of it.
#[test]
fn an_answer_that_comes_before_the_request_has_left_is_read() {
    let server = FaultServer::start_raw(|connection| {
        while let Some(head) = connection.head() {
            let length: usize = head.header("Content-Length").and_then(|text| text.parse().ok()).unwrap_or(0);
            if length > 1 << 20 {
                connection.answer("413 Payload Too Large", &[("Connection", "close")], "too much");
                connection.skip(length);
                return;
            }
            match connection.rest(head) {
                Some(request) => legacy(&request, connection),
                None => return,
            }
        }
    });
    let mut client = reached(&[], &server.url());
    let answer = client.call("echo", &json!({"filler": "x".repeat(8 << 20)}));
    assert_kind(&answer, &["http-status"]);
    assert!(answer["error"]["message"].as_str().unwrap().contains("413"), "{answer}");
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn large_messages_pass_both_ways() {
    let server = FaultServer::start(legacy);
    let mut client = reached(&[], &server.url());
    let text = "ü".repeat(4 << 20);
    assert_eq!(client.value_of("echo", &json!({"text": text})), json!({"text": text}));
}

/// 307 and 308 keep the method and the body.
#[test]
fn a_redirect_within_the_origin_is_followed() {
    for status in ["307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = FaultServer::start(move |request, connection| match request.path.as_str() {
            "/mcp" => connection.answer(status, &[("Location", "/moved/mcp")], ""),
            _ => legacy(request, connection),
        });
        let mut client = reached(&["--header", "Authorization: Bearer s3cr3t"], &server.url());
        assert_eq!(client.value_of("echo", &json!({"a": 1})), json!({"a": 1}));
        let moved =
            server.request_where(|request| request.path == "/moved/mcp" && request.rpc() == "tools/call");
        assert_eq!((moved.method.as_str(), moved.header("Authorization")), ("POST", Some("Bearer s3cr3t")));
    }
}

#[test]
fn a_redirect_to_another_origin_gets_no_credentials() {
    let other = FaultServer::start(legacy);
    let target = other.url();
    let server = FaultServer::start(move |_, connection| {
        connection.answer("307 Temporary Redirect", &[("Location", &target)], "");
    });
    let answer = reach(&["--header", "Authorization: Bearer s3cr3t"], &server.url()).handshake();
    assert_kind(&answer, &["http-status"]);
    assert!(answer["error"]["message"].as_str().unwrap().contains("307"), "{answer}");
    assert!(other.requests().is_empty(), "{:?}", other.requests());
}

#[test]
fn a_redirect_that_goes_round_ends() {
    let server = FaultServer::start(|request, connection| {
        let next = format!("{}x", request.path);
        connection.answer("307 Temporary Redirect", &[("Location", &next)], "");
    });
    let answer = reach(&[], &server.url()).handshake();
    assert_kind(&answer, &["http-status", "not-mcp"]);
    assert!(server.requests().len() <= 25, "{}", server.requests().len());
}

/// They would turn a POST into a GET, and so lose the message.
#[test]
fn a_redirect_that_loses_the_message_is_not_followed() {
    for status in ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect"] {
        let location: &[(&str, &str)] = match &status[..3] {
            "307" => &[],
            _ => &[("Location", "/elsewhere")],
        };
        let server = faulty(move |_, connection| connection.answer(status, location, ""));
        fails(&mut reached(&[], &server.url()), &["http-status", "not-mcp"]);
        assert!(server.requests().iter().all(|request| request.path == "/mcp"));
    }
}

#[test]
fn a_compressed_answer_that_nobody_asked_for_is_not_mcp() {
    let server = faulty(|_, connection| {
        let body = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03";
        connection.answer("200 OK", &[JSON, ("Content-Encoding", "gzip")], body);
    });
    fails(&mut reached(&[], &server.url()), &["not-mcp"]);
}

/// What a hostile server writes reaches a log as text, one line.
#[test]
fn words_of_the_server_are_shown_harmlessly() {
    let server = faulty(|_, connection| {
        connection.answer(
            "200 OK",
            &[("Content-Type", "text/\x1b[31mred\u{202e}")],
            "\x1b]0;title\x07\n\nforged",
        );
    });
    let mut client = reached(&["--log", "debug"], &server.url());
    client.call("fault", &json!({}));
    client.hang_up();
    let stderr = String::from_utf8_lossy(&client.all_stderr()).into_owned();
    assert!(!stderr.contains('\x1b') && !stderr.contains('\x07'), "{stderr:?}");
    assert!(client.log().iter().all(|line| !line.text().contains('\x1b')));
    assert!(!stderr.lines().any(|line| line.starts_with("forged")), "{stderr}");
}
