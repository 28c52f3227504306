//! Streams of a remote server: cut anywhere, odd in every way that the format allows, broken off and
//! taken up again.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use outlast_testkit::http::faults::FaultServer;
use serde_json::{Value, json};

use crate::http_world::{JSON, answer_to, event, faulty, legacy, modern, modern_call, reach, reached, said};
use crate::world::data;

#[test]
fn events_are_read_however_they_are_cut() {
    let server = faulty(|request, connection| {
        let answer = said(request, &json!({"text": "grüße \u{1F600}"})).to_string();
        let (first, second) = answer.split_at(answer.find("\"jsonrpc\"").expect("a member"));
        let note = json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "é"}});
        let stream = format!(
            "\u{feff}: hello\r\n\r\nid: 1\rdata:\r\revent: message\ndata: {note}\n\nretry: 1\n\nevent: message\r\nid: 2\r\ndata: {first}\r\ndata:{second}\r\n\r\n"
        );
        connection.open_events(&[]);
        for byte in stream.as_bytes() {
            connection.events([*byte]);
        }
        connection.end_events();
    });
    let mut client = reached(&[], &server.url());
    let answer = client.call("fault", &json!({}));
    assert_eq!(answer["result"]["structuredContent"], json!({"text": "grüße \u{1F600}"}));
    assert_eq!(client.message("notifications/message")["params"]["data"], "é");
}

#[test]
fn lines_that_end_in_cr_alone_are_read() {
    let server = faulty(|request, connection| {
        connection.all_events(format!(": x\rid: 7\rdata: {}\r\r", said(request, &json!("cr"))));
    });
    assert_eq!(reached(&[], &server.url()).value_of("fault", &json!({})), "cr");
}

#[test]
fn a_stream_without_chunks_is_read_to_its_close() {
    let server = faulty(|request, connection| {
        connection.send("HTTP/1.0 200 OK\r\nContent-Type: text/event-stream\r\n\r\n");
        connection.send(event(&said(request, &json!("old"))));
        connection.close();
    });
    assert_eq!(reached(&[], &server.url()).value_of("fault", &json!({})), "old");
}

/// The content type is told apart from its parameters, in any case of letters.
#[test]
fn content_types_may_be_written_in_any_way() {
    let server = faulty(|request, connection| {
        let answer = said(request, &json!("ok"));
        let kind = request.json()["params"]["arguments"]["kind"].as_str().unwrap_or_default().to_owned();
        let body = if kind.to_lowercase().contains("json") { answer.to_string() } else { event(&answer) };
        connection.answer("200 OK", &[("Content-Type", &kind)], body);
    });
    let mut client = reached(&[], &server.url());
    let kinds = [
        "application/json;charset=UTF-8",
        "Application/JSON",
        "text/event-stream; charset=utf-8",
        "TEXT/Event-Stream",
    ];
    for kind in kinds {
        assert_eq!(client.value_of("fault", &json!({"kind": kind})), "ok", "{kind}");
    }
}

#[test]
fn events_that_are_no_messages_are_passed_over() {
    let server = faulty(|request, connection| {
        let junk = ["not json", "{}", "42", "[]", "{\"jsonrpc\":\"2.0\"}"];
        let junk: String = junk.iter().map(|text| format!("data: {text}\n\n")).collect();
        let other = "event: ping\ndata: {\"time\":1}\n\n";
        connection.all_events(format!("{junk}{other}{}", event(&said(request, &json!("after junk")))));
    });
    let mut client = reached(&[], &server.url());
    assert_eq!(client.value_of("fault", &json!({})), "after junk");
    assert_eq!(client.log().len(), 2, "the client saw the junk");
}

#[test]
fn an_event_beyond_max_message_fails_its_call_or_is_passed_over() {
    let server = faulty(|request, connection| {
        let long = "x".repeat(200_000);
        connection.open_events(&[]);
        if request.json()["params"]["arguments"]["answer"] == true {
            connection.events(event(&said(request, &json!(long))));
        } else {
            let note = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": {"x": long}});
            connection.events(event(&note));
            connection.events(event(&said(request, &json!("after it"))));
        }
        connection.end_events();
    });
    let mut client = reached(&["--max-message", "100KiB"], &server.url());
    let answer = client.call("fault", &json!({"answer": true}));
    assert_eq!(data(&answer)["kind"], "message-too-large", "{answer}");
    assert_eq!(client.value_of("fault", &json!({"answer": false})), "after it");
}

#[test]
fn a_stream_that_ends_without_the_answer_fails_the_call() {
    for stream in ["", ": only a comment\n\n", "data: {\"jsonrpc\":\"2.0\",\"id\"", "data: {}"] {
        let server = faulty(move |_, connection| connection.all_events(stream));
        let mut client = reached(&[], &server.url());
        let answer = client.call("fault", &json!({}));
        assert_eq!(data(&answer)["kind"], "server-gone", "{stream:?}: {answer}");
        assert_eq!(data(&answer)["retry"], "unsafe");
        assert_eq!(client.value_of("echo", &json!(1)), json!(1));
    }
}

/// The last event lacks its blank line, so it was never sent.
#[test]
fn an_answer_that_is_not_whole_is_no_answer() {
    let server = faulty(|request, connection| {
        connection.all_events(format!("data: {}\n", said(request, &json!("cut off"))));
    });
    let answer = reached(&[], &server.url()).call("fault", &json!({}));
    assert_eq!(data(&answer)["kind"], "server-gone", "{answer}");
}

// Taken up again.

/// A server whose call is fetched over several connections; each GET sends one more event and hangs
/// up, until `connections` of them have come.
fn polling(connections: usize, first: &'static str) -> FaultServer {
    let id = Mutex::new(Value::Null);
    let count = AtomicUsize::new(0);
    FaultServer::start(move |request, connection| {
        if request.tool() == "fault" {
            *id.lock().unwrap() = request.json()["id"].clone();
            connection.open_events(&[]);
            connection.events(first);
            return connection.close();
        }
        if request.method != "GET" || request.header("Last-Event-ID").is_none() {
            return legacy(request, connection);
        }
        let number = count.fetch_add(1, Ordering::Relaxed) + 1;
        connection.open_events(&[]);
        if number < connections {
            connection.events(format!("id: e-{number}\ndata:\n\n"));
        } else {
            let result = json!({"content": [], "structuredContent": "at last"});
            let answer = json!({"jsonrpc": "2.0", "id": *id.lock().unwrap(), "result": result});
            connection.events(format!("id: e-{number}\n{}", event(&answer)));
        }
        connection.end_events();
    })
}

fn resumptions(server: &FaultServer) -> Vec<String> {
    let requests = server.requests();
    let ids = requests.iter().filter(|request| request.method == "GET");
    ids.filter_map(|request| request.header("Last-Event-ID").map(str::to_owned)).collect()
}

#[test]
fn a_stream_with_an_id_is_taken_up_again_as_often_as_it_takes() {
    let server = polling(6, "retry: 10\nid: e-0\ndata:\n\n");
    let mut client = reached(&[], &server.url());
    assert_eq!(client.value_of("fault", &json!({})), "at last");
    assert_eq!(resumptions(&server), ["e-0", "e-1", "e-2", "e-3", "e-4", "e-5"]);
    assert_eq!(server.requests_of("tools/call").len(), 1, "the call was sent again");
    let resumed = server.request_where(|request| request.header("Last-Event-ID").is_some());
    assert_eq!(resumed.header("Mcp-Session-Id"), Some("session-1"));
    assert_eq!(resumed.header("MCP-Protocol-Version"), Some("2025-11-25"));
    assert_eq!(resumed.header("Accept"), Some("text/event-stream"));
}

#[test]
fn an_id_without_data_counts_and_one_that_is_not_whole_does_not() {
    let server = polling(1, "retry: 10\nid: e-7\n\nid: e-8\ndata: {\"jsonrpc\":");
    assert_eq!(reached(&[], &server.url()).value_of("fault", &json!({})), "at last");
    assert_eq!(resumptions(&server), ["e-7"]);
}

#[test]
fn an_id_with_a_nul_is_no_id() {
    let server = polling(1, "retry: 10\nid: e-9\ndata:\n\nid: x\0y\ndata:\n\n");
    assert_eq!(reached(&[], &server.url()).value_of("fault", &json!({})), "at last");
    assert_eq!(resumptions(&server), ["e-9"]);
}

#[test]
fn the_wait_that_a_server_asks_for_is_kept() {
    let server = polling(1, "id: e-0\nretry: 700\ndata:\n\n");
    let mut client = reached(&[], &server.url());
    let began = Instant::now();
    assert_eq!(client.value_of("fault", &json!({})), "at last");
    assert!(began.elapsed() >= Duration::from_millis(700), "{:?}", began.elapsed());
}

/// The old connection may look alive to the server for a while.
#[test]
fn a_conflict_while_taking_up_again_is_tried_again() {
    for status in ["409 Conflict", "503 Service Unavailable", "502 Bad Gateway"] {
        let (id, refusals) = (Mutex::new(Value::Null), AtomicUsize::new(0));
        let server = FaultServer::start(move |request, connection| {
            if request.tool() == "fault" {
                *id.lock().unwrap() = request.json()["id"].clone();
                connection.open_events(&[]);
                connection.events("retry: 10\nid: e-0\ndata:\n\n");
                return connection.reset();
            }
            if request.header("Last-Event-ID").is_none() {
                return legacy(request, connection);
            }
            if refusals.fetch_add(1, Ordering::Relaxed) < 2 {
                return connection.answer(status, &[], "");
            }
            let result = json!({"content": [], "structuredContent": "at last"});
            connection
                .all_events(event(&json!({"jsonrpc": "2.0", "id": *id.lock().unwrap(), "result": result})));
        });
        let mut client = reached(&[], &server.url());
        assert_eq!(client.value_of("fault", &json!({})), "at last");
        assert_eq!(resumptions(&server).len(), 3);
        assert_eq!(server.requests_of("tools/call").len(), 1, "the call was sent again");
    }
}

#[test]
fn a_stream_that_cannot_be_taken_up_again_fails_its_call() {
    let server = FaultServer::start(|request, connection| {
        if request.tool() == "fault" {
            connection.open_events(&[]);
            connection.events("retry: 10\nid: e-0\ndata:\n\n");
            return connection.close();
        }
        // No GET here.
        legacy(request, connection);
    });
    let mut client = reached(&["--timeout", "10s"], &server.url());
    let answer = client.call("fault", &json!({}));
    assert_eq!(data(&answer)["kind"], "server-gone", "{answer}");
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn a_call_whose_stream_is_gone_still_has_its_limit() {
    let server = FaultServer::start(|request, connection| {
        if request.tool() == "fault" {
            connection.open_events(&[]);
            connection.events("retry: 10\nid: e-0\ndata:\n\n");
            return connection.close();
        }
        if request.header("Last-Event-ID").is_none() {
            return legacy(request, connection);
        }
        connection.open_events(&[]);
        connection.events("id: e-0\ndata:\n\n");
        connection.end_events();
    });
    let mut client = reached(&["--timeout", "500ms"], &server.url());
    let answer = client.call("fault", &json!({}));
    assert_eq!(data(&answer)["kind"], "timeout", "{answer}");
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

/// Modern streams have no ids: what is broken is lost.
#[test]
fn a_modern_stream_is_not_taken_up_again() {
    let server = FaultServer::start(|request, connection| {
        if request.tool() != "fault" {
            return modern(request, connection);
        }
        connection.open_events(&[]);
        connection.events("retry: 1\nid: e-0\ndata:\n\n");
        connection.reset();
    });
    let mut client = reach(&[], &server.url());
    let id = client.request("tools/call", &modern_call("fault", &json!({})));
    assert_eq!(data(&client.answer(&id))["kind"], "server-gone");
    assert!(server.requests().iter().all(|request| request.method == "POST"));
}

// The standing stream.

#[test]
fn what_comes_on_the_standing_stream_reaches_the_client() {
    let (send, to_send) = channel::<String>();
    let to_send = Mutex::new(to_send);
    let server = FaultServer::start(move |request, connection| {
        if request.method != "GET" {
            return legacy(request, connection);
        }
        connection.open_events(&[]);
        for text in to_send.lock().unwrap().iter() {
            connection.events(text);
        }
        connection.end_events();
    });
    let mut client = reached(&[], &server.url());
    let standing = server.request_where(|request| request.method == "GET");
    assert_eq!(standing.header("Last-Event-ID"), None);
    assert_eq!(standing.header("Mcp-Session-Id"), Some("session-1"));
    send.send("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n".into())
        .unwrap();
    client.message("notifications/tools/list_changed");
    // A question of the server, and the client's answer to it.
    send.send("data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"roots/list\"}\n\n".into()).unwrap();
    let question = client.message("roots/list");
    client.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}}));
    let answer = server.request_where(|request| request.json()["result"]["roots"].is_array());
    assert_eq!(answer.json()["id"], "q");
}

#[test]
fn a_standing_stream_that_breaks_is_opened_again_with_its_last_id() {
    let count = AtomicUsize::new(0);
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = FaultServer::start(move |request, connection| {
        if request.method != "GET" {
            return legacy(request, connection);
        }
        connection.open_events(&[]);
        let note = "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}\n\n";
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            connection.events(format!("retry: 20\nid: s-1\n{note}"));
            return connection.reset();
        }
        connection.events(format!("id: s-2\n{note}"));
        let _ = wait.lock().unwrap().recv();
    });
    let mut client = reached(&[], &server.url());
    client.message("notifications/x");
    client.message("notifications/x");
    assert_eq!(resumptions(&server), ["s-1"]);
    drop(go);
}

/// No standing stream: said once, asked once.
#[test]
fn a_server_without_a_standing_stream_is_left_alone() {
    for status in ["405 Method Not Allowed", "404 Not Found", "400 Bad Request", "500 Oops"] {
        let server = FaultServer::start(move |request, connection| match request.method.as_str() {
            "GET" => connection.answer(status, &[], ""),
            _ => legacy(request, connection),
        });
        let mut client = reached(&[], &server.url());
        server.request_where(|request| request.method == "GET");
        for number in 0..5 {
            assert_eq!(client.value_of("echo", &json!(number)), json!(number));
        }
        let asked = server.requests().iter().filter(|request| request.method == "GET").count();
        assert!(asked <= 2, "{status}: asked {asked} times");
        client.hang_up();
    }
}

/// A server that hangs up at once is not asked in a tight loop.
#[test]
fn a_standing_stream_that_always_breaks_is_not_a_busy_loop() {
    let server = FaultServer::start(|request, connection| match request.method.as_str() {
        "GET" => connection.all_events(""),
        _ if request.tool() == "fault" => {
            connection.wait_for_close();
        }
        _ => legacy(request, connection),
    });
    let mut client = reached(&["--timeout", "700ms"], &server.url());
    server.request_where(|request| request.method == "GET");
    // So long it had time for.
    assert_eq!(data(&client.call("fault", &json!({})))["kind"], "timeout");
    let asked = server.requests().iter().filter(|request| request.method == "GET").count();
    assert!(asked <= 5, "asked {asked} times");
}

// Cancelling.

#[test]
fn a_legacy_cancel_is_a_message_in_the_session() {
    let server = faulty(|_, connection| {
        connection.open_events(&[]);
        connection.events("id: e-0\ndata:\n\n");
        connection.wait_for_close();
        connection.close();
    });
    let mut client = reached(&[], &server.url());
    let id = client.begin("fault", &json!({}));
    let sent = server.request_where(|request| request.tool() == "fault");
    client.cancel(&id);
    let cancel = server.request_where(|request| request.rpc() == "notifications/cancelled");
    assert_eq!(cancel.json()["params"]["requestId"], sent.json()["id"]);
    assert_eq!(cancel.header("Mcp-Session-Id"), Some("session-1"));
    assert_eq!(client.value_of("echo", &json!(1)), json!(1));
}

#[test]
fn a_modern_cancel_closes_the_stream_and_says_nothing() {
    let (closed, told) = channel();
    let closed = Mutex::new(closed);
    let server = FaultServer::start(move |request, connection| {
        if request.tool() != "fault" {
            return modern(request, connection);
        }
        connection.open_events(&[]);
        connection.events(": working\n\n");
        let gone = connection.wait_for_close();
        connection.close();
        let _ = closed.lock().unwrap().send(gone);
    });
    let mut client = reach(&["--method", "tools/call=timeout:10s"], &server.url());
    let id = client.request("tools/call", &modern_call("fault", &json!({})));
    server.request_where(|request| request.tool() == "fault");
    client.cancel(&id);
    assert!(told.recv().unwrap(), "the stream was not closed");
    let id = client.request("tools/call", &modern_call("echo", &json!(1)));
    assert_eq!(client.answer(&id)["result"]["structuredContent"], json!(1));
    assert!(server.requests_of("notifications/cancelled").is_empty());
}

#[test]
fn a_limit_closes_a_modern_stream() {
    let (closed, told) = channel();
    let closed = Mutex::new(closed);
    let server = FaultServer::start(move |_, connection| {
        connection.open_events(&[]);
        let gone = connection.wait_for_close();
        connection.close();
        let _ = closed.lock().unwrap().send(gone);
    });
    let mut client = reach(&["--timeout", "300ms"], &server.url());
    let id = client.request("tools/call", &modern_call("fault", &json!({})));
    let answer = client.answer(&id);
    assert_eq!((&data(&answer)["kind"], &answer["error"]["code"]), (&json!("timeout"), &json!(-31001)));
    assert!(told.recv().unwrap(), "the stream was not closed");
}

/// Progress comes on the stream of its call and moves its limit.
#[test]
fn progress_on_a_stream_reaches_the_client_before_the_answer() {
    let server = faulty(|request, connection| {
        let token = &request.json()["params"]["_meta"]["progressToken"];
        connection.open_events(&[]);
        for value in 1..4 {
            let params = json!({"progressToken": token, "progress": value});
            connection.events(event(
                &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
            ));
        }
        connection.events(event(&said(request, &json!("done"))));
        connection.end_events();
    });
    let mut client = reached(&[], &server.url());
    let id = client.begin_with_token("fault", &json!({}), &json!("mine"));
    client.answer(&id);
    let lines: Vec<Value> = client.log().iter().map(|line| line.json()).collect();
    let reports: Vec<&Value> =
        lines.iter().filter(|line| line["method"] == "notifications/progress").collect();
    assert!(reports.iter().all(|report| report["params"]["progressToken"] == "mine"), "{reports:?}");
    assert_eq!(reports.len(), 3);
    assert_eq!(lines.last().unwrap()["id"], id);
}

/// An answer counts on the stream of its request alone: here one call is answered on the stream of another, and
/// still gets its own.
#[test]
fn an_answer_on_another_calls_stream_is_dropped() {
    let (first, came) = channel();
    let (second, done) = channel();
    let (came, done) = (Mutex::new(came), Mutex::new(done));
    let server = FaultServer::start(move |request, connection| match request.tool().as_str() {
        "first" => {
            first.send(said(request, &json!("swapped"))).expect("somebody waits for it");
            done.lock().unwrap().recv().expect("the second one");
            connection.all_events(event(&said(request, &json!("first"))));
        }
        "second" => {
            let other = came.lock().unwrap().recv().expect("the first one");
            connection.all_events(format!("{}{}", event(&other), event(&said(request, &json!("second")))));
            second.send(()).expect("the first one waits for it");
        }
        _ => legacy(request, connection),
    });
    let mut client = reached(&[], &server.url());
    let one = client.begin("first", &json!({}));
    server.request_where(|request| request.tool() == "first");
    let two = client.begin("second", &json!({}));
    assert_eq!(client.answer(&two)["result"]["structuredContent"], "second");
    assert_eq!(client.answer(&one)["result"]["structuredContent"], "first");
}

/// A plain answer to the wrong content: an array of messages, as 2025-03-26 allows.
#[test]
fn an_array_in_the_body_is_split() {
    let server = faulty(|request, connection| {
        let note = json!({"jsonrpc": "2.0", "method": "notifications/x"});
        connection.answer(
            "200 OK",
            &[JSON],
            json!([note, answer_to(request, &json!({"ok": 1}))]).to_string(),
        );
    });
    let mut client = reached(&[], &server.url());
    assert_eq!(client.call("fault", &json!({}))["result"], json!({"ok": 1}));
    client.message("notifications/x");
}
