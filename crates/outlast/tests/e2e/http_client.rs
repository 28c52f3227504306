//! Bad clients of `outlast serve`: each gets the status and the error that its fault has, the server
//! behind sees nothing of it, and everybody else is served.

use outlast_testkit::http::caller::{Caller, Response};
use outlast_testkit::http::faults::FaultServer;
use serde_json::{Value, json};

use crate::http_world::{
    ACCEPT, JSON, LEGACY, MODERN, Session, answer_of, answer_to, legacy, modern_call, modern_meta,
    send_modern, serve, serve_url,
};

/// What the server behind a session has got so far, without the question itself.
pub fn history(session: &mut Session) -> Vec<String> {
    let lines = session.value_of("tell_history", &json!({}));
    let lines = lines.as_array().expect("an array").iter();
    lines
        .map(|line| line.as_str().expect("text").to_owned())
        .filter(|line| !line.contains("tell_history"))
        .collect()
}

/// A refusal says why, as a JSON-RPC error with this code.
pub fn assert_refused(response: &Response, status: u16, code: i64) {
    assert_eq!(response.status, status, "{}", response.text());
    assert_eq!(response.json()["error"]["code"], code, "{}", response.text());
    assert_eq!(response.header("Content-Type"), Some("application/json"));
}

/// A tool call under this raw id.
pub fn call(id: &str, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{"mine":1}}}}}}"#
    )
}

// Sessions.

#[test]
fn a_session_is_needed_and_must_be_known() {
    let mut served = serve(&[], &[]);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let response = served.ask("POST /mcp", &[ACCEPT, JSON], &list);
    assert_eq!(response.status, 400, "{}", response.text());
    let long = "f".repeat(4000);
    for forged in ["forged", "", "../../etc/passwd", "00000000-0000-4000-8000-000000000000", &long] {
        let headers = [ACCEPT, JSON, ("Mcp-Session-Id", forged), ("MCP-Protocol-Version", LEGACY)];
        let status = served.ask("POST /mcp", &headers, &list).status;
        assert!(status == 404 || forged.is_empty() && status == 400, "{forged:?}: {status}");
        let headers =
            [("Accept", "text/event-stream"), ("Mcp-Session-Id", forged), ("MCP-Protocol-Version", LEGACY)];
        let status = served.ask("GET /mcp", &headers, "").status;
        assert!(status == 404 || forged.is_empty() && status == 400, "{forged:?}: {status}");
        let status = served.ask("DELETE /mcp", &headers, "").status;
        assert!(status == 404 || forged.is_empty() && status == 400, "{forged:?}: {status}");
    }
    served.assert_goes_on();
}

#[test]
fn a_session_that_was_ended_is_gone() {
    let mut served = serve(&[], &[]);
    let (mut session, mut other) = (served.session(), served.session());
    assert_eq!(session.value_of("echo", &json!(1)), json!(1));
    assert!([200, 202, 204].contains(&session.delete().status));
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    assert_eq!(session.post(&list).status, 404);
    assert_eq!(session.delete().status, 404);
    assert_eq!(session.listen(None).response().status, 404);
    assert_eq!(other.value_of("echo", &json!(2)), json!(2));
    served.assert_goes_on();
}

#[test]
fn a_session_ends_its_standing_stream_with_it() {
    let served = serve(&[], &[]);
    let session = served.session();
    let mut standing = session.listen(None);
    assert_eq!(standing.head().0, 200);
    session.delete();
    while standing.event().is_some() {}
}

/// One of the two has it, and every message goes there once.
#[test]
fn a_second_standing_stream_does_not_double_messages() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let mut first = session.listen(None);
    assert_eq!(first.head().0, 200);
    let mut second = session.listen(None);
    let (status, _) = second.head();
    assert!(status == 409 || status == 200, "{status}");
    let line = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let (mut call, _) = session.begin_call("write_lines", &json!({"lines": [line]}));
    call.head();
    let count = |caller: &mut Caller| {
        let mut messages = 0;
        while let Some(event) = caller.event() {
            messages += usize::from(event.json()["method"] == "notifications/tools/list_changed");
        }
        messages
    };
    let with_the_call = count(&mut call);
    session.delete();
    let seen = with_the_call + count(&mut first) + if status == 200 { count(&mut second) } else { 0 };
    assert_eq!(seen, 1);
}

#[test]
fn a_version_that_nobody_speaks_is_refused() {
    let mut served = serve(&[], &[]);
    let session = served.session();
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for version in ["1999-01-01", "banana", "2025-11-25, 2025-06-18"] {
        let headers = [ACCEPT, JSON, ("Mcp-Session-Id", &session.id), ("MCP-Protocol-Version", version)];
        assert_eq!(served.ask("POST /mcp", &headers, &list).status, 400, "{version}");
    }
    // Without one it is 2025-03-26.
    let headers = [ACCEPT, JSON, ("Mcp-Session-Id", session.id.as_str())];
    assert_eq!(served.ask("POST /mcp", &headers, &list).status, 200);
    served.assert_goes_on();
}

// Requests.

#[test]
fn methods_paths_and_types_that_are_not_ours_are_refused() {
    let mut served = serve(&[], &[]);
    let session = served.session();
    let with = |extra: &[(&'static str, &'static str)]| {
        let mut headers: Vec<(&str, &str)> =
            vec![("Mcp-Session-Id", &session.id), ("MCP-Protocol-Version", LEGACY)];
        headers.extend(extra);
        headers
    };
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    for method in ["PUT", "PATCH", "OPTIONS", "TRACE", "NONSENSE"] {
        let response = served.ask(&format!("{method} /mcp"), &with(&[ACCEPT, JSON]), "");
        assert_eq!(response.status, 405, "{method}");
        let allow = response.header("Allow").unwrap_or_default();
        assert!(allow.contains("POST"), "{method}: {allow}");
    }
    for path in ["/", "/mcp2", "/../mcp", "//mcp", "/MCP", "/healthz/x"] {
        assert_eq!(served.ask(&format!("POST {path}"), &with(&[ACCEPT, JSON]), &list).status, 404, "{path}");
    }
    for accept in ["application/json", "text/event-stream", "text/html"] {
        let headers = with(&[("Accept", accept), JSON]);
        assert_eq!(served.ask("POST /mcp", &headers, &list).status, 406, "{accept:?}");
    }
    for accept in ["application/json", "text/html"] {
        assert_eq!(served.ask("GET /mcp", &with(&[("Accept", accept)]), "").status, 406, "{accept}");
    }
    for kind in ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"] {
        let status = served.ask("POST /mcp", &with(&[ACCEPT, ("Content-Type", kind)]), &list).status;
        assert!([400, 415].contains(&status), "{kind}: {status}");
    }
    for accept in
        ["*/*", "text/event-stream;q=0.5, application/json;charset=utf-8", "TEXT/*, Application/JSON"]
    {
        assert_eq!(
            served.ask("POST /mcp", &with(&[("Accept", accept), JSON]), &list).status,
            200,
            "{accept}"
        );
    }
    served.assert_goes_on();
}

#[test]
fn a_body_that_is_no_message_is_refused() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let before = history(&mut session).len();
    let unreadable: [&[u8]; 6] = [
        b"",
        b"hello?",
        b"{\"jsonrpc\":\"2.0\",\"id\":",
        b"{\"id\":1,\"method\":\"caf\xe9\"}",
        b"NaN",
        b"{}{}",
    ];
    for body in unreadable {
        assert_refused(&session.post_bytes(body), 400, -32700);
    }
    let odd = [
        "17",
        "\"text\"",
        "null",
        "{}",
        "[]",
        r#"{"jsonrpc":"2.0","id":81}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
    ];
    for body in odd {
        assert_refused(&session.post_bytes(body), 400, -32600);
    }
    assert_eq!(history(&mut session).len(), before, "something of it reached the server");
    served.assert_goes_on();
}

#[test]
fn ids_of_every_kind_come_back_exactly() {
    let served = serve(&[], &[]);
    let session = served.session();
    let ids = [
        "0",
        "-7",
        "1.0",
        "1e2",
        "9007199254740993",
        "123456789012345678901234567890",
        r#""""#,
        r#""7""#,
        r#""\u0061\"ü""#,
    ];
    for id in ids {
        let response = session.post_bytes(call(id, "echo"));
        let text = response.text();
        assert_eq!(response.status, 200, "{id}: {text}");
        assert!(text.contains(&format!(r#""id":{id},"#)), "{id}: {text}");
    }
    for id in ["{}", "[]", "[1]", "true", r#"{"a":1}"#] {
        assert_refused(&session.post_bytes(call(id, "echo")), 400, -32600);
    }
}

/// Two clients that count alike, and one that counts badly.
#[test]
fn the_same_id_twice_gets_two_answers() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let mut callers = Vec::new();
    for tool in ["silent", "echo"] {
        let mut caller = served.caller();
        let arguments = json!({"ms": 300});
        let message = json!({"jsonrpc": "2.0", "id": "same", "method": "tools/call", "params": {"name": tool, "arguments": arguments}});
        caller.request("POST /mcp", &[&session.headers()[..], &[JSON]].concat(), message.to_string());
        callers.push(caller);
    }
    assert_eq!(answer_of(&mut callers[1])["result"]["structuredContent"], json!({"ms": 300}));
    assert_eq!(answer_of(&mut callers[0])["result"]["structuredContent"], "done");
    assert_eq!(session.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn what_needs_no_answer_is_accepted_without_a_body() {
    let served = serve(&[], &[]);
    let session = served.session();
    let messages = [
        json!({"jsonrpc": "2.0", "method": "notifications/vendor", "params": {"x": 1}}),
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "unknown"}}),
        json!({"jsonrpc": "2.0", "id": "nobody asked", "result": {}}),
    ];
    for message in messages {
        let response = session.post(&message);
        assert_eq!((response.status, response.body.len()), (202, 0), "{message}");
    }
}

/// Only 2025-03-26 has them.
#[test]
fn arrays_are_split_and_answered_together() {
    let server = FaultServer::start(|request, connection| {
        if request.rpc() != "initialize" {
            return legacy(request, connection);
        }
        let result = json!({"protocolVersion": "2025-03-26", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}});
        connection.json(&answer_to(request, &result));
    });
    let served = serve_url(&[], &server.url());
    let session = Session::open_as(served.address, None, "2025-03-26");
    let headers =
        [ACCEPT, JSON, ("Mcp-Session-Id", session.id.as_str()), ("MCP-Protocol-Version", "2025-03-26")];
    let array = format!(
        "[{},{},{}]",
        call("1", "echo"),
        r#"{"jsonrpc":"2.0","method":"notifications/x"}"#,
        call("2", "echo")
    );
    let mut caller = served.caller();
    caller.request("POST /mcp", &headers, array);
    let (status, head) = caller.head();
    assert_eq!(status, 200);
    let mut answers = Vec::new();
    if head.header("Content-Type") == Some("application/json") {
        answers.extend(serde_json::from_slice::<Vec<Value>>(&caller.body()).unwrap());
    } else {
        while let Some(event) = caller.event() {
            match event.json() {
                Value::Array(several) => answers.extend(several),
                Value::Null => {}
                one => answers.push(one),
            }
        }
    }
    let mut ids: Vec<i64> = answers.iter().filter_map(|answer| answer["id"].as_i64()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2], "{answers:?}");
    let notes =
        r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","method":"notifications/y"}]"#;
    let response = served.ask("POST /mcp", &headers, notes);
    assert_eq!((response.status, response.body.len()), (202, 0));
}

// The modern era.

#[test]
fn headers_that_contradict_the_body_are_refused() {
    let mut served = serve(&[], &[]);
    let params = modern_call("echo", &json!({"a": 1}));
    let contradictions: [(&str, &str); 9] = [
        ("Mcp-Method", "tools/list"),
        ("Mcp-Method", "Tools/Call"),
        ("Mcp-Method", ""),
        ("Mcp-Name", "other"),
        ("Mcp-Name", "ECHO"),
        ("Mcp-Name", ""),
        ("Mcp-Name", "=?base64?!!!?="),
        ("Mcp-Name", "=?base64?b3RoZXI=?="),
        ("MCP-Protocol-Version", LEGACY),
    ];
    for header in contradictions {
        let response = served.modern("tools/call", &params, &[header]).response();
        assert_refused(&response, 400, -32020);
    }
    let history = served.modern_value_of("tell_history", &json!({}));
    assert!(!history.to_string().contains("echo"), "{history}");
    // The same name, encoded although it need not be.
    let answer = answer_of(&mut served.modern("tools/call", &params, &[("Mcp-Name", "=?base64?ZWNobw==?=")]));
    assert_eq!(answer["result"]["structuredContent"], json!({"a": 1}), "{answer}");
    served.assert_goes_on();
}

#[test]
fn metadata_that_is_missing_is_refused() {
    let served = serve(&[], &[]);
    for key in ["io.modelcontextprotocol/protocolVersion", "io.modelcontextprotocol/clientCapabilities"] {
        let mut meta = modern_meta();
        meta.as_object_mut().unwrap().remove(key);
        let params = json!({"_meta": meta, "name": "echo", "arguments": {}});
        let response = served.modern("tools/call", &params, &[]).response();
        assert_eq!(response.status, 400, "{key}: {}", response.text());
        let code = response.json()["error"]["code"].as_i64();
        assert!([Some(-32602), Some(-32020)].contains(&code), "{key}: {}", response.text());
    }
}

#[test]
fn a_modern_client_has_no_session_and_gets_none() {
    let served = serve(&[], &[]);
    let mut caller = served.caller();
    send_modern(
        &mut caller,
        "tools/call",
        &modern_call("echo", &json!(1)),
        &[("Mcp-Session-Id", "forged"), ("Last-Event-ID", "1")],
    );
    let (status, head) = caller.head();
    assert_eq!((status, head.header("Mcp-Session-Id")), (200, None));
    for line in ["GET /mcp", "DELETE /mcp"] {
        let headers = [("Accept", "text/event-stream"), ("MCP-Protocol-Version", MODERN)];
        assert_eq!(served.ask(line, &headers, "").status, 405, "{line}");
    }
}

#[test]
fn a_modern_client_may_not_answer() {
    let served = serve(&[], &[]);
    let headers = [ACCEPT, JSON, ("MCP-Protocol-Version", MODERN)];
    let response = served.ask("POST /mcp", &headers, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    assert_eq!(response.status, 400, "{}", response.text());
}

// The rest of the endpoint.

#[test]
fn health_is_told_without_a_session() {
    let served = serve(&[], &[]);
    for path in ["/healthz", "/readyz"] {
        assert_eq!(served.ask(&format!("GET {path}"), &[], "").status, 200, "{path}");
    }
}

#[test]
fn streams_are_marked_for_whoever_stands_between() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let (mut caller, _) = session.begin_call("silent", &json!({"ms": 50}));
    let (status, head) = caller.head();
    assert_eq!(status, 200);
    assert_eq!(head.header("Content-Type"), Some("text/event-stream"));
    assert_eq!(head.header("X-Accel-Buffering"), Some("no"));
    assert!(head.header("Cache-Control").is_some_and(|value| value.contains("no-cache")), "{head:?}");
    assert_eq!(head.header("Content-Encoding"), None);
    let priming = caller.event().unwrap();
    assert!(priming.id.is_some() && priming.data.is_empty(), "{priming:?}");
}

#[test]
fn a_graceful_stop_answers_what_is_in_flight_and_takes_nothing_new() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let (mut caller, id) = session.begin_call("silent", &json!({"ms": 600}));
    caller.head();
    caller.event();
    served.process.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(caller.answer(&id)["result"]["structuredContent"], "done");
    served.process.end();
    assert!(std::net::TcpStream::connect(served.address).is_err());
}
