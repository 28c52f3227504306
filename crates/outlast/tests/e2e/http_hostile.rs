//! What is no request, or no end of one: refused within bounds, and everybody else is served.

use nix::sys::signal::Signal;
use outlast_testkit::http::chunk;
use outlast_testkit::peer::{LIMIT, wait_until};
use serde_json::json;
use std::time::Duration;

use crate::http_client::{assert_refused, call, history};
use crate::http_world::{ACCEPT, JSON, answer_of, serve};
use crate::world::{MUCH_MEMORY, data, memory_of};

// Sizes.

#[test]
fn a_body_beyond_max_message_is_refused() {
    let mut served = serve(&["--max-message", "64KiB"], &[]);
    let mut session = served.session();
    let before = history(&mut session).len();
    let long = call("1", &"x".repeat(1 << 20));
    let mut caller = served.caller();
    let headers = [&session.headers()[..], &[JSON]].concat();
    caller.request("POST /mcp", &headers, &long);
    assert_refused(&caller.response(), 413, -31011);
    // Announced and never sent: refused all the same.
    let mut caller = served.caller();
    caller.request("POST /mcp", &[&headers[..], &[("Content-Length", "999999999999")]].concat(), "{");
    assert_refused(&caller.response(), 413, -31011);
    // Not announced at all.
    let mut caller = served.caller();
    caller.request("POST /mcp", &[&headers[..], &[("Transfer-Encoding", "chunked")]].concat(), "");
    for part in long.as_bytes().chunks(10_000) {
        if !caller.send(chunk(part)) {
            break;
        }
    }
    assert_refused(&caller.response(), 413, -31011);
    assert_eq!(history(&mut session).len(), before);
    served.assert_goes_on();
}

/// A client that sends everything before it reads learns why all the same.
#[test]
fn a_refusal_can_be_read_behind_a_large_body() {
    let mut served = serve(&[], &[]);
    let body = vec![b'x'; 20 << 20];
    for _ in 0..5 {
        let mut caller = served.caller();
        assert!(caller.request("POST /mcp", &[ACCEPT, ("Content-Type", "text/plain")], &body));
        assert_eq!(caller.response().status, 415);
    }
    served.assert_goes_on();
}

/// Nobody keeps it from ending by filling all places.
#[test]
fn a_full_house_can_be_closed() {
    let mut served = serve(&["--max-connections", "2"], &[]);
    let callers: Vec<_> = (0..2)
        .map(|_| {
            let mut caller = served.caller();
            assert_eq!(caller.ask("GET /healthz", &[], "").status, 200);
            assert!(caller.send("POST /mcp HTTP/1.1\r\nHost: localhost\r\n"));
            caller
        })
        .collect();
    served.process.signal(Signal::SIGTERM);
    served.process.end_within(Duration::from_secs(10));
    drop(callers);
}

#[test]
fn headers_without_end_are_refused() {
    let mut served = serve(&[], &[]);
    let big = "x".repeat(300 << 10);
    let mut caller = served.caller();
    caller.request("POST /mcp", &[ACCEPT, JSON, ("X-Big", &big)], "{}");
    assert!(caller.try_response().is_none_or(|response| [400, 431].contains(&response.status)));
    let mut caller = served.caller();
    caller.send(format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", served.address));
    let mut taken = true;
    for number in 0..20_000 {
        taken = taken && caller.send(format!("X-{number}: {}\r\n", "y".repeat(100)));
    }
    assert!(caller.try_response().is_none_or(|response| [400, 431].contains(&response.status)));
    let mut caller = served.caller();
    caller.send(format!("POST /{} HTTP/1.1\r\n", "z".repeat(300 << 10)));
    assert!(caller.try_response().is_none_or(|response| [400, 404, 414, 431].contains(&response.status)));
    assert!(memory_of(served.process.pid()) < MUCH_MEMORY);
    served.assert_goes_on();
}

#[test]
fn deep_nesting_is_bounded() {
    let mut served = serve(&[], &[]);
    let session = served.session();
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
        let status = session.post_bytes(&deep).status;
        assert_eq!(status, 400, "{open}");
        let inside = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"echo","arguments":{deep}}}}}"#
        );
        let response = session.post_bytes(inside);
        assert!([200, 400].contains(&response.status), "{}", response.status);
    }
    served.assert_goes_on();
}

// Bytes that are no request.

#[test]
fn what_is_not_http_is_refused() {
    let mut served = serve(&[], &[]);
    let host = format!("Host: {}", served.address);
    let broken = [
        "hello?\r\n\r\n".to_owned(),
        "\x16\x03\x01\x02\x00\x01\x00\x01\u{fc}\x03\x03\r\n\r\n".to_owned(),
        format!("POST /mcp HTTP/9.9\r\n{host}\r\n\r\n"),
        format!("POST /mcp\r\n{host}\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nno colon\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nContent-Length: many\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nContent-Length: 3\r\nContent-Length: 5\r\n\r\n{{}}x"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nContent-Length: -1\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nTransfer-Encoding: gzip\r\n\r\n"),
        format!("POST /mcp HTTP/1.1\r\n{host}\r\nBad Name: x\r\n\r\n"),
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00".to_owned(),
    ];
    for bytes in &broken {
        let mut caller = served.caller();
        caller.send(bytes);
        if bytes.starts_with("PRI") {
            // HTTP/2 may be spoken or not; it must not hang or harm.
            continue;
        }
        let response = caller.try_response();
        let status = response.map(|response| response.status);
        assert!(status.is_none_or(|status| (400..600).contains(&status)), "{bytes:?}: {status:?}");
    }
    served.assert_goes_on();
}

/// Whoever reads the other length would find another request in the body.
#[test]
fn a_request_with_two_kinds_of_length_smuggles_nothing() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let before = history(&mut session).len();
    let smuggled = call("666", "echo");
    let inner = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAccept: */*\r\nContent-Type: application/json\r\nMcp-Session-Id: {}\r\nContent-Length: {}\r\n\r\n{smuggled}",
        served.address,
        session.id,
        smuggled.len()
    );
    let mut caller = served.caller();
    let body = format!("0\r\n\r\n{inner}");
    let length = body.len().to_string();
    let headers =
        [&session.headers()[..], &[JSON, ("Content-Length", &length), ("Transfer-Encoding", "chunked")]]
            .concat();
    caller.request("POST /mcp", &headers, &body);
    let first = caller.try_response();
    assert!(first.as_ref().is_none_or(|response| response.status == 400), "{first:?}");
    // Either read as the standard says, and closed; or refused. Never two answers.
    assert!(caller.wait_for_close());
    assert_eq!(history(&mut session).len(), before);
    served.assert_goes_on();
}

#[test]
fn a_bad_chunk_ends_its_request_only() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let before = history(&mut session).len();
    for bytes in ["zz\r\n{}\r\n", "-1\r\n", "ffffffffffffffffff\r\n", "5\r\n{}{}{}{}{}\r\n0\r\n\r\n"] {
        let mut caller = served.caller();
        let headers = [&session.headers()[..], &[JSON, ("Transfer-Encoding", "chunked")]].concat();
        caller.request("POST /mcp", &headers, bytes);
        assert!(caller.try_response().is_none_or(|response| response.status >= 400), "{bytes:?}");
    }
    assert_eq!(history(&mut session).len(), before);
    served.assert_goes_on();
}

#[test]
fn half_a_request_and_then_nothing_reaches_nobody() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let before = history(&mut session).len();
    let whole = call("1", "echo");
    let length = whole.len().to_string();
    for reset in [true, false] {
        for part in [0, 1, whole.len() / 2, whole.len() - 1] {
            let mut caller = served.caller();
            let headers = [&session.headers()[..], &[JSON, ("Content-Length", &length)]].concat();
            caller.request("POST /mcp", &headers, &whole[..part]);
            if reset { caller.reset() } else { drop(caller) }
        }
    }
    assert_eq!(history(&mut session).len(), before);
    served.assert_goes_on();
}

#[test]
fn a_slow_body_is_not_waited_for() {
    let mut served = serve(&[], &[]);
    let session = served.session();
    let mut slow = served.caller();
    slow.request(
        "POST /mcp",
        &[&session.headers()[..], &[JSON, ("Content-Length", "1000")]].concat(),
        "{\"jsonrpc\"",
    );
    if let Some(response) = slow.try_response() {
        assert_eq!(response.status, 408);
    }
    assert!(slow.wait_for_close());
    served.assert_goes_on();
}

#[test]
fn requests_one_after_another_on_one_connection_are_answered_in_order() {
    let served = serve(&[], &[]);
    let session = served.session();
    let mut caller = served.caller();
    let headers = [&session.headers()[..], &[JSON]].concat();
    for number in 0..5 {
        caller.request("POST /mcp", &headers, call(&number.to_string(), "echo"));
    }
    for number in 0..5 {
        assert_eq!(answer_of(&mut caller)["id"], number);
        // What is left of a stream.
        while caller.event().is_some() {}
    }
}

#[test]
fn a_client_that_waits_to_continue_is_told_to() {
    let served = serve(&[], &[]);
    let session = served.session();
    let body = call("1", "echo");
    let length = body.len().to_string();
    let mut caller = served.caller();
    let headers =
        [&session.headers()[..], &[JSON, ("Content-Length", &length), ("Expect", "100-continue")]].concat();
    caller.request("POST /mcp", &headers, "");
    caller.send(&body);
    assert_eq!(answer_of(&mut caller)["id"], 1);
}

/// A client that does not read is the only one that waits.
#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let mut served = serve(&[], &[]);
    let mut greedy = served.session();
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(greedy.begin_call("answer_big", &json!({"bytes": 8 << 20})));
    }
    served.assert_goes_on();
    for (mut caller, id) in unread {
        assert_eq!(answer_of(&mut caller)["id"], id);
    }
}

/// More than a stream may hold back: it is cut off, the rest of the world goes on, and what was kept
/// can be fetched.
#[test]
fn a_stream_that_nobody_reads_is_cut_off() {
    let mut served = serve(&[], &[]);
    let mut session = served.session();
    let (mut unread, _) = session.begin_call("flood", &json!({"count": 300, "bytes": 100_000}));
    assert_eq!(unread.head().0, 200);
    served.assert_goes_on();
    assert_eq!(session.value_of("echo", &json!(1)), json!(1));
    let mut seen = 0;
    while unread.event().is_some() {
        seen += 1;
    }
    assert!(seen <= 302, "{seen}");
    assert!(memory_of(served.process.pid()) < 4 * MUCH_MEMORY, "{}", memory_of(served.process.pid()));
    served.assert_goes_on();
}

// Bounds of one principal.

#[test]
fn sessions_are_bounded() {
    let served = serve(&["--share", "all", "--max-sessions", "2"], &[]);
    let (first, _second) = (served.session(), served.session());
    let headers = [ACCEPT, JSON];
    let open = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let response = served.ask("POST /mcp", &headers, open.to_string());
    assert_refused(&response, 429, -31007);
    first.delete();
    served.session();
}

#[test]
fn calls_in_flight_are_bounded() {
    let mut served = serve(&["--max-calls", "3"], &[]);
    let mut session = served.session();
    let hanging: Vec<_> = (0..3).map(|_| session.begin_call("silent", &json!({"ms": 700}))).collect();
    let mut hanging: Vec<_> =
        hanging.into_iter().map(|(mut caller, id)| (caller.head(), caller, id)).collect();
    let answer = session.call("echo", &json!({}));
    assert_eq!(
        (&answer["error"]["code"], &data(&answer)["kind"]),
        (&json!(-31004), &json!("overloaded")),
        "{answer}"
    );
    for (_, caller, id) in &mut hanging {
        assert_eq!(caller.answer(id)["result"]["structuredContent"], "done");
    }
    served.assert_goes_on();
}

#[test]
fn bytes_in_flight_are_bounded() {
    let mut served = serve(&["--max-bytes", "64KiB"], &[]);
    let mut session = served.session();
    let arguments = json!({"ms": 700, "filler": "x".repeat(40_000)});
    let (mut first, id) = session.begin_call("silent", &arguments);
    first.head();
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "silent", "arguments": arguments}});
    assert_refused(&session.post(&message), 429, -31008);
    assert_eq!(first.answer(&id)["result"]["structuredContent"], "done");
    drop(first);
    assert_eq!(session.value_of("silent", &arguments), "done");
    served.assert_goes_on();
}

/// Responses that their client does not read count as well; who takes nothing at all is cut off.
#[test]
fn unread_responses_count_and_are_cut_off_at_the_bound() {
    let mut served = serve(&["--max-bytes", "1MiB"], &[]);
    let mut session = served.session();
    let (mut unread, _) = session.begin_call("answer_big", &json!({"bytes": 32 << 20}));
    assert_eq!(unread.head().0, 200);
    let message = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "echo", "arguments": {}}});
    let mut other = served.session();
    assert!(wait_until(LIMIT, || session.post(&message).status == 429), "unread bytes do not count");
    assert_refused(&session.post(&message), 429, -31008);
    // The bytes are given back when the client is cut off.
    assert!(wait_until(LIMIT, || session.post(&message).status == 200), "nobody was cut off");
    assert_eq!(other.value_of("echo", &json!(1)), json!(1));
    while unread.event().is_some() {}
    served.assert_goes_on();
}

/// A client that reads gets its answer, however small the bound is.
#[test]
fn a_large_response_that_is_read_passes_a_small_bound() {
    let served = serve(&["--max-bytes", "64KiB"], &[]);
    let mut session = served.session();
    for _ in 0..3 {
        let said = session.value_of("answer_big", &json!({"bytes": 16 << 20}));
        assert_eq!(said.as_str().map(str::len), Some(16 << 20));
    }
}

#[test]
fn connections_of_one_address_are_bounded_and_the_log_counts_them() {
    let mut served = serve(&["--max-connections-per-address", "2"], &[]);
    let mut here: Vec<_> = (0..2).map(|_| served.caller()).collect();
    for caller in &mut here {
        assert_eq!(caller.ask("GET /healthz", &[], "").status, 200);
    }
    for _ in 0..20 {
        let mut third = served.caller();
        let response = third.response();
        assert_eq!(response.status, 429);
        assert!(response.text().contains("max-connections-per-address"), "{}", response.text());
        assert!(third.wait_for_close());
    }
    drop(here);
    let healthy = || served.caller().ask("GET /healthz", &[], "").status == 200;
    assert!(wait_until(LIMIT, healthy));
    served.process.signal(Signal::SIGTERM);
    served.process.end();
    let stderr = String::from_utf8(served.process.all_stderr()).unwrap();
    let lines: Vec<&str> = stderr.lines().filter(|line| line.contains("turned away")).collect();
    let [first, rest] = lines[..] else { panic!("{stderr}") };
    assert!(
        first.contains("turned away: 1 beyond max-connections-per-address; the last from 127.0.0.1"),
        "{first}"
    );
    assert!(rest.contains("beyond max-connections-per-address; the last from"), "{rest}");
}

#[test]
fn a_trusted_proxy_may_bring_many_connections() {
    let served = serve(&["--max-connections-per-address", "2", "--trusted-proxies", "127.0.0.0/8"], &[]);
    let mut callers: Vec<_> = (0..10).map(|_| served.caller()).collect();
    for caller in &mut callers {
        assert_eq!(caller.ask("GET /healthz", &[], "").status, 200);
    }
}

#[test]
fn connections_are_bounded_and_the_next_one_waits() {
    let mut served = serve(&["--max-connections", "3"], &[]);
    let silent: Vec<_> = (0..3).map(|_| served.caller()).collect();
    let mut waiting = served.caller();
    waiting.request("GET /healthz", &[], "");
    drop(silent);
    assert_eq!(waiting.response().status, 200);
    drop(waiting);
    served.assert_goes_on();
}
