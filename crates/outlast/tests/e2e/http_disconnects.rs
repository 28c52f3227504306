//! Clients of `outlast serve` that hang up: a legacy call goes on and can be fetched, a modern one is
//! cancelled.

use std::sync::Mutex;
use std::sync::mpsc::channel;

use outlast_testkit::http::caller::Caller;
use outlast_testkit::http::faults::FaultServer;
use outlast_testkit::peer::{LIMIT, wait_until};
use serde_json::{Value, json};

use crate::http_world::{
    Served, Session, answer_of, event, legacy, modern, modern_call, said, serve, serve_url,
};

/// The cancels that a session's server has got.
fn cancels(session: &mut Session) -> Vec<Value> {
    let lines = session.value_of("tell_cancels", &json!({}));
    let lines = lines.as_array().expect("an array").iter();
    lines.map(|line| serde_json::from_str(line.as_str().expect("text")).expect("JSON")).collect()
}

/// A call whose stream has opened, and the id under which it can be taken up again.
fn begun(session: &mut Session, tool: &str, arguments: &Value) -> (Caller, Value, String) {
    let (mut caller, id) = session.begin_call(tool, arguments);
    assert_eq!(caller.head().0, 200);
    let priming = caller.event().expect("a priming event");
    let event = priming.id.unwrap_or_else(|| panic!("a stream without an id: {:?}", priming.data));
    (caller, id, event)
}

#[test]
fn a_legacy_call_goes_on_without_its_client_and_is_fetched_later() {
    for reset in [true, false] {
        let served = serve(&[], &[]);
        let mut session = served.session();
        let (caller, id, event) = begun(&mut session, "silent", &json!({"ms": 400}));
        if reset {
            caller.reset()
        } else {
            drop(caller)
        }
        let mut again = session.listen(Some(&event));
        assert_eq!(again.head().0, 200);
        assert_eq!(again.answer(&id)["result"]["structuredContent"], "done");
        assert_eq!(cancels(&mut session), Vec::<Value>::new());
    }
}

#[test]
fn an_answer_that_came_while_nobody_listened_is_kept() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let (caller, id, event) = begun(&mut session, "silent", &json!({"ms": 50}));
    drop(caller);
    // This one takes longer, so the other has been answered.
    session.value_of("silent", &json!({"ms": 300}));
    for _ in 0..2 {
        let mut again = session.listen(Some(&event));
        assert_eq!(again.head().0, 200);
        assert_eq!(again.answer(&id)["result"]["structuredContent"], "done");
        assert!(again.event().is_none(), "the stream goes on after its answer");
    }
}

#[test]
fn what_was_seen_is_not_sent_again() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let params = json!({"_meta": {"progressToken": "t"}, "name": "progress", "arguments": {"every_ms": 50, "values": [1, 2, 3, 4, 5]}});
    let (mut caller, id) = session.begin("tools/call", &params);
    caller.head();
    let mut last = None;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        let event = caller.event().expect("progress");
        last = event.id.clone().or(last);
        seen.extend(event.json()["params"]["progress"].as_f64());
    }
    caller.reset();
    let mut again = session.listen(Some(&last.expect("events with ids")));
    assert_eq!(again.head().0, 200);
    loop {
        let message = again.event().expect("the rest").json();
        if message["id"] == id {
            break;
        }
        seen.extend(message["params"]["progress"].as_f64());
    }
    assert!(seen.windows(2).all(|two| two[0] < two[1]), "{seen:?}");
    assert_eq!(seen.last(), Some(&5.0), "{seen:?}");
}

#[test]
fn an_event_id_that_nobody_gave_is_refused() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let (caller, _, event) = begun(&mut session, "silent", &json!({"ms": 50}));
    drop(caller);
    let (stream, _) = event.split_once('-').expect("a stream and a number");
    let (later, other) = (format!("{stream}-999"), format!("9{event}"));
    for forged in ["0", "-1", "forged", "99999999999999999999-1", "a\tb", &later, &other] {
        let (status, _) = session.listen(Some(forged)).head();
        assert!((400..500).contains(&status), "{forged:?}: {status}");
    }
    served.assert_goes_on();
}

#[test]
fn an_event_id_of_another_session_is_refused() {
    let served = serve(&[], &[]);
    let (mut one, two) = (served.session(), served.session());
    let (caller, _, event) = begun(&mut one, "silent", &json!({"ms": 50}));
    drop(caller);
    one.value_of("silent", &json!({"ms": 200}));
    let (status, _) = two.listen(Some(&event)).head();
    assert!((400..500).contains(&status), "{status}");
}

#[test]
fn a_legacy_cancel_reaches_the_right_call_although_its_stream_is_gone() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    let (caller, id, _) = begun(&mut session, "hang", &json!({}));
    drop(caller);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(session.post(&cancel).status, 202);
    let told = wait_until(LIMIT, || cancels(&mut session).len() == 1);
    assert!(told, "the server was not told");
}

/// Another client's cancel names an id of its own.
#[test]
fn a_cancel_of_one_session_does_not_touch_another() {
    let served = serve(&["--share", "all"], &[]);
    let (mut one, two) = (served.session(), served.session());
    let (mut caller, id, _) = begun(&mut one, "silent", &json!({"ms": 400}));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    assert_eq!(two.post(&cancel).status, 202);
    assert_eq!(caller.answer(&id)["result"]["structuredContent"], "done");
}

fn modern_cancels(served: &Served) -> usize {
    served.modern_value_of("tell_cancels", &json!({})).as_array().expect("an array").len()
}

#[test]
fn a_modern_call_is_cancelled_with_its_stream() {
    for reset in [true, false] {
        let served = serve(&[], &[]);
        let caller = served.modern("tools/call", &modern_call("hang", &json!({})), &[]);
        // The call is on its way before its client goes.
        let sent = wait_until(LIMIT, || {
            served.modern_value_of("tell_history", &json!({})).to_string().contains("hang")
        });
        assert!(sent);
        assert_eq!(modern_cancels(&served), 0);
        if reset {
            caller.reset()
        } else {
            drop(caller)
        }
        assert!(wait_until(LIMIT, || modern_cancels(&served) == 1), "it was not cancelled");
    }
}

#[test]
fn only_the_call_whose_stream_was_closed_is_cancelled() {
    let served = serve(&[], &[]);
    let gone = served.modern("tools/call", &modern_call("hang", &json!({"which": "gone"})), &[]);
    let mut stays = served.modern("tools/call", &modern_call("silent", &json!({"ms": 900})), &[]);
    let sent = wait_until(LIMIT, || {
        served.modern_value_of("tell_history", &json!({})).to_string().contains("silent")
    });
    assert!(sent);
    gone.reset();
    assert_eq!(answer_of(&mut stays)["result"]["structuredContent"], "done");
    let history = served.modern_value_of("tell_history", &json!({}));
    let lines: Vec<Value> = history
        .as_array()
        .unwrap()
        .iter()
        .map(|line| serde_json::from_str(line.as_str().unwrap()).unwrap())
        .collect();
    let hung = lines.iter().find(|line| line["params"]["name"] == "hang").expect("the call");
    let told: Vec<&Value> = lines.iter().filter(|line| line["method"] == "notifications/cancelled").collect();
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0]["params"]["requestId"], hung["id"]);
}

/// The server is modern, the client is not: what the client drops stays open on our side. (A legacy
/// client meets a dual-era server here, which answers both.)
#[test]
fn a_stream_to_a_server_outlives_a_legacy_client() {
    let (go, wait) = channel::<()>();
    let wait = Mutex::new(wait);
    let server = FaultServer::start(move |request, connection| match request.tool().as_str() {
        "slow" => {
            connection.open_events(&[]);
            let _ = wait.lock().unwrap().recv();
            connection.events(event(&said(request, &json!("kept"))));
            connection.end_events();
        }
        _ => legacy(request, connection),
    });
    let served = serve_url(&[], &server.url());
    let mut session = served.session();
    let (caller, id, last) = begun(&mut session, "slow", &json!({}));
    server.request_where(|request| request.tool() == "slow");
    caller.reset();
    session.value_of("echo", &json!(1));
    go.send(()).unwrap();
    let mut again = session.listen(Some(&last));
    assert_eq!(again.head().0, 200);
    assert_eq!(again.answer(&id)["result"]["structuredContent"], "kept");
    assert!(server.requests_of("notifications/cancelled").is_empty());
}

/// The right attempt at the right server: its stream is closed, and no other.
#[test]
fn a_modern_disconnect_closes_our_stream_to_a_modern_server() {
    let (closed, told) = channel();
    let closed = Mutex::new(closed);
    let server = FaultServer::start(move |request, connection| {
        if request.tool() != "slow" {
            return modern(request, connection);
        }
        connection.open_events(&[]);
        let gone = connection.wait_for_close();
        connection.close();
        let _ = closed.lock().unwrap().send(gone);
    });
    let served = serve_url(&[], &server.url());
    let caller = served.modern("tools/call", &modern_call("slow", &json!({})), &[]);
    server.request_where(|request| request.tool() == "slow");
    assert_eq!(served.modern_value_of("echo", &json!(1)), json!(1));
    caller.reset();
    assert!(told.recv().unwrap(), "the stream was not closed");
    assert_eq!(served.modern_value_of("echo", &json!(1)), json!(1));
}

/// What an idle session held is freed; its id still works.
#[test]
fn a_session_that_was_idle_is_revived() {
    let served = serve(&["--session-idle", "200ms"], &[]);
    let mut session = served.session();
    let first = session.value_of("tell_pid", &json!({}));
    let pid = first.as_u64().unwrap();
    let gone = wait_until(LIMIT, || !std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(gone, "the idle session's server lives on");
    let second = session.value_of("tell_pid", &json!({}));
    assert_ne!(first, second);
}

#[test]
fn a_session_with_an_open_stream_is_not_idle() {
    let served = serve(&["--session-idle", "200ms"], &[]);
    let mut session = served.session();
    let first = session.value_of("tell_pid", &json!({}));
    let mut standing = session.listen(None);
    assert_eq!(standing.head().0, 200);
    let mut other = served.session();
    other.value_of("silent", &json!({"ms": 800}));
    assert_eq!(session.value_of("tell_pid", &json!({})), first);
}

// Clients that only finish writing.

/// Whoever has said all that it has to say still waits for the response.
#[test]
fn a_client_that_writes_no_more_gets_its_response() {
    let served = serve(&[], &[]);
    let mut session = served.session();
    // At once, before the response has begun, and after.
    for (ms, head_first) in [(0, false), (300, false), (300, true)] {
        let (mut caller, id) = session.begin_call("silent", &json!({"ms": ms}));
        if head_first {
            assert_eq!(caller.head().0, 200);
        }
        caller.finish_writing();
        if !head_first {
            assert_eq!(caller.head().0, 200);
        }
        assert_eq!(caller.answer(&id)["result"]["structuredContent"], "done");
    }
    for ms in [0, 100, 900] {
        let mut caller = served.modern("tools/call", &modern_call("silent", &json!({"ms": ms})), &[]);
        caller.finish_writing();
        assert_eq!(answer_of(&mut caller)["result"]["structuredContent"], "done", "{ms}");
    }
    assert_eq!(cancels(&mut session), Vec::<Value>::new());
}

/// Also one that knows no interim responses.
#[test]
fn an_old_client_that_writes_no_more_gets_its_response() {
    let served = serve(&[], &[]);
    let mut caller = served.caller();
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": modern_call("silent", &json!({"ms": 100}))});
    let body = body.to_string();
    caller.send(format!(
        "POST /mcp HTTP/1.0\r\nHost: localhost\r\nAccept: application/json, text/event-stream\r\n\
         Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\n\
         Mcp-Name: silent\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    caller.finish_writing();
    assert_eq!(answer_of(&mut caller)["result"]["structuredContent"], "done");
}

/// It hangs up later: that shows with the next comment on its stream.
#[test]
fn a_client_that_wrote_no_more_and_then_hung_up_has_cancelled() {
    let served = serve(&[], &[]);
    let mut caller = served.modern("tools/call", &modern_call("hang", &json!({})), &[]);
    caller.finish_writing();
    // The stream has begun.
    assert_eq!(caller.head().0, 200);
    assert_eq!(modern_cancels(&served), 0);
    drop(caller);
    assert!(wait_until(2 * LIMIT, || modern_cancels(&served) == 1), "it was not cancelled");
}
