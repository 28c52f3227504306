//! Clients that come over HTTP: sessions, streams, the modern era, sharing, the end.

use outlast_testkit::script::check;

#[test]
fn a_session_begins_and_its_requests_are_answered_on_streams() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 3 session=1 {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}||
        < {"jsonrpc":"2.0","id":"2","result":{}}
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":"a","result":{}}||
        << 3: finish
        "#,
    );
}

/// A session whose handshake is over, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

#[track_caller]
fn in_session(settings: &str, scenario: &str) {
    check(&format!("set serve\n{settings}\n{SESSION}\n{scenario}"));
}

/// The handshake where a response begins with the first thing there is to say, or after 5 ms.
const LATE_SESSION: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
"#;

#[track_caller]
fn in_late_session(scenario: &str) {
    check(&format!("set serve\nset stream-head 5ms\n{LATE_SESSION}\n{scenario}"));
}

#[test]
fn a_client_that_was_gone_hears_once_of_what_changed_often() {
    in_session(
        "",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}
        << 3: id: 1-1|data: …
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b"}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        get 4 session=1 last=1-1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 1-2|data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"a"}}||
        << 4: id: 1-3|data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"b"}}||
        << 4: id: 1-4|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << 4: id: 1-5|data: …
        "#,
    );
}

#[test]
fn a_call_that_came_before_its_handshake_failed_is_answered() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}||
        << 1: finish
        !! warn: server-failed …the initialize of this session failed
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":7,"error":{"code":-31003,"message":"server `srv` cannot be reached: the initialize of this session failed.…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the session could not begin"}}
        "#,
    );
}

#[test]
fn a_session_that_sleeps_is_not_woken_beyond_the_bound() {
    in_session(
        "set max-sessions 1\nset session-idle 1m",
        r#"
        wait 1m
        @…
        .. 1: close-input
        post 3 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        .. 2: start 0
        << 3: 200 with a session events
        << 3: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"ping"}
        << 4: 429 …has 1 sessions open (max-sessions)…
        "#,
    );
}

#[test]
fn a_signal_ends_a_service_with_grace() {
    in_session(
        "",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stop 15
        post 5 session=1 {"jsonrpc":"2.0","id":3,"method":"ping"}
        << 5: 503 {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"outlast is being stopped; try again"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        tick
        << 3: finish
        .. 1: close-input
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

#[test]
fn a_call_that_waits_for_its_client_can_end_before_the_service_does() {
    in_session(
        "",
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}||
        stop 15
        post 5 session=1 {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","id":9,"result":{"action":"accept"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        tick
        .. 1: close-input
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// `M` stands for the headers of a modern `tools/call` of `x`, `B` for its body.
#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"x","arguments":{{}},{META}}}}}"#
    );
    let scenario = scenario
        .replace(" M ", " version=2026-07-28 method=tools/call name=x ")
        .replace(" B\n", &format!(" {body}\n"))
        .replace("META", META);
    check(&format!("set serve\n{settings}\n{scenario}"));
}

#[test]
fn two_modern_hang_ups_at_the_same_age_are_noted_as_a_likely_cap() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        wait 60s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        hang-up 1
        >> 1: …notifications/cancelled…
        post 2 M B
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        wait 60s
        @1m500ms
        << 2: 200 events
        << 2: : outlast||
        hang-up 2
        !! warn: …--client-cap 1m…
        >> 1: …notifications/cancelled…
        "#,
    );
}

#[test]
fn a_modern_answer_is_plain_json_and_its_code_decides_the_status() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,…
        started
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: 200 {"jsonrpc":"2.0","id":5,"result":{}}
        post 2 M B
        >> 1: {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32021,"message":"needs sampling"}}
        << 2: 400 {"jsonrpc":"2.0","id":5,"error":{"code":-32021,"message":"needs sampling"}}
        post 3 version=2026-07-28 method=no/such {"jsonrpc":"2.0","id":"s","method":"no/such","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":"3",…
        < {"jsonrpc":"2.0","id":"3","error":{"code":-32601,"message":"no"}}
        << 3: 404 {"jsonrpc":"2.0","id":"s","error":{"code":-32601,"message":"no"}}
        "#,
    );
}

#[test]
fn a_modern_call_that_takes_longer_becomes_a_stream() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        wait 1s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{}}||
        << 1: finish
        "#,
    );
}

#[test]
fn what_a_modern_server_says_of_a_call_rides_on_its_stream() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}
        << 1: 200 events
        << 1: : outlast||
        << 1: data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}||
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{}}||
        << 1: finish
        "#,
    );
}

#[test]
fn a_modern_client_that_hangs_up_has_cancelled_its_own_call() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        post 2 M B
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        hang-up 1
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the client hung up"}}
        < {"jsonrpc":"2.0","id":1,"result":{}}
        !! info: `srv` answered attempt 1, which has ended; dropped
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 2: 200 {"jsonrpc":"2.0","id":5,"result":{}}
        "#,
    );
}

#[test]
fn headers_that_contradict_the_body_are_refused() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/list name=x B
        .. 1: start 0
        << 1: 400 {"jsonrpc":"2.0","id":5,"error":{"code":-32020,"message":"Header mismatch: Mcp-Method header does not match the body"}}
        post 2 version=2026-07-28 method=tools/call B
        << 2: 400 {"jsonrpc":"2.0","id":5,"error":{"code":-32020,"message":"Header mismatch: Mcp-Name header is missing"}}
        post 3 method=tools/call name=x B
        << 3: 400 {"jsonrpc":"2.0","id":5,"error":{"code":-32020,"message":"Header mismatch: MCP-Protocol-Version header is missing"}}
        post 4 version=2026-07-28 method=ping {"jsonrpc":"2.0","id":6,"method":"ping"}
        << 4: 400 {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"Invalid params: _meta must have io.modelcontextprotocol/protocolVersion"}}
        post 5 version=2026-07-28 {"jsonrpc":"2.0","id":6,"result":{}}
        << 5: 400 {"jsonrpc":"2.0","id":null,…
        post 6 version=v9 method=ping {"jsonrpc":"2.0","id":6,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"v9","io.modelcontextprotocol/clientCapabilities":{}}}}
        << 6: 400 {"jsonrpc":"2.0","id":6,"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":"v9","supported":["2026-07-28"]}}}
        "#,
    );
}

#[test]
fn a_subscription_of_a_modern_client_is_a_stream_until_it_hangs_up() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=subscriptions/listen {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
        .. 1: start 0
        << 1: 200 events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":"1",…
        started
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << 1: data: {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}||
        hang-up 1
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1","reason":"the client hung up"}}
        "#,
    );
}

#[test]
fn a_server_that_no_modern_client_needs_is_let_go() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: 200 {"jsonrpc":"2.0","id":5,"result":{}}
        wait 5m
        @5m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
        post 2 M B
        .. 2: start 0
        >> 2: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        "#,
    );
}

#[test]
fn a_legacy_client_that_hangs_up_can_come_back() {
    in_session(
        "",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        hang-up 3
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        get 4 session=1 last=3-0
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        << 4: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}||
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        # What was written may not have arrived: it can be fetched again.
        get 5 session=1 last=3-1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 5: finish
        get 6 session=1 last=99-1
        << 6: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names no event that is still kept for this session"}}
        get 7 session=1 last=3-77
        << 7: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names an event that was never sent; its stream has not come that far"}}
        get 8 session=1 last=nonsense
        << 8: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names no event that is still kept for this session"}}
        "#,
    );
}

#[test]
fn a_finished_stream_is_forgotten_after_resume_wait() {
    in_session(
        "set resume-wait 2m",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        wait 6m
        get 4 session=1 last=2-0
        << 4: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request: Last-Event-ID names no event that is still kept for this session"}}
        "#,
    );
}

#[test]
fn sessions_are_known_by_their_names_and_principals() {
    in_session(
        "",
        r#"
        post 3 {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 3: 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Bad Request: Mcp-Session-Id header is required; begin with initialize"}}
        post 4 session=forged {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 4: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        post 5 session=1 principal=mallory {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 5: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        get 6 session=1 principal=mallory last=2-0
        << 6: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        delete 7 session=1 principal=mallory
        << 7: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        post 8 session=1 version=1999-01-01 {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 8: 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Bad Request: Unsupported protocol version `1999-01-01`; this session speaks 2025-11-25"}}
        post 9 session=1 accept=json {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 9: 406 {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Not Acceptable: Accept must allow application/json and text/event-stream"}}
        get 10
        << 10: 405 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method Not Allowed: this revision knows POST alone"}}
        delete 11
        << 11: 405 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method Not Allowed: there is no session to end"}}
        get 12 version=2026-07-28 session=1
        << 12: 405 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Method Not Allowed: this revision knows POST alone"}}
        get 13 session=1
        << 13: 200 events
        << 13: : outlast|retry: 1000||
        get 14 session=1
        << 14: 409 {"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Conflict: this session has its standing stream open already"}}
        delete 15 session=1
        << 13: finish
        .. 1: close-input
        << 15: 200
        post 16 session=1 {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 16: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        "#,
    );
}

#[test]
fn what_belongs_to_no_request_waits_for_the_standing_stream() {
    in_session(
        "",
        r#"
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        << 3: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        hang-up 3
        get 4 session=1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        < {"jsonrpc":"2.0","id":9,"method":"roots/list"}
        << 4: id: 1-2|data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}||
        post 5 session=1 {"jsonrpc":"2.0","id":1,"result":{"roots":[]}}
        << 5: 202
        >> 1: {"jsonrpc":"2.0","id":9,"result":{"roots":[]}}
        "#,
    );
}

#[test]
fn a_question_rides_on_the_call_that_it_must_be_about() {
    in_session(
        "",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}||
        "#,
    );
}

/// Nobody reads: the client comes back for its call, and perhaps never listens otherwise.
#[test]
fn a_question_waits_on_the_call_that_its_client_comes_back_for() {
    in_session(
        "",
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        hang-up 4
        < {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}
        get 5 session=1 last=3-0
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 3-1|data: {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{}}||
        "#,
    );
}

#[test]
fn a_session_falls_asleep_and_is_woken_on_another_process() {
    in_session(
        "",
        r#"
        wait 5m
        @5m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        .. 2: start 0
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 3: finish
        "#,
    );
}

/// A session that has set the log level and subscribed to `a:2`, and sleeps.
const SET_UP_AND_ASLEEP: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"logging/setLevel","params":{"level":"debug"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 3: finish
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{}}||
        << 4: finish
        post 5 session=1 {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:2"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":4,"method":"resources/subscribe","params":{"uri":"a:2"}}
        < {"jsonrpc":"2.0","id":4,"result":{}}
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":4,"result":{}}||
        << 5: finish
        post 6 session=1 {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:1"}}
        << 6: 200 events
        << 6: id: 6-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":5,"method":"resources/unsubscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":5,"result":{}}
        << 6: id: 6-1|data: {"jsonrpc":"2.0","id":5,"result":{}}||
        << 6: finish
        wait 5m
        @5m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
"#;

#[test]
fn a_session_is_woken_with_its_log_level_and_subscriptions() {
    in_session(
        "",
        &format!(
            r#"
        {SET_UP_AND_ASLEEP}
        post 7 session=1 {{"jsonrpc":"2.0","id":6,"method":"ping"}}
        .. 2: start 0
        << 7: 200 events
        << 7: id: 7-0|retry: 1000|data: ||
        started
        >> 2: {{"jsonrpc":"2.0","id":6,"method":"initialize",…
        < {{"jsonrpc":"2.0","id":6,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        >> 2: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        >> 2: {{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{{"level":"debug"}}}}
        >> 2: {{"jsonrpc":"2.0","id":8,"method":"resources/subscribe","params":{{"uri":"a:2"}}}}
        >> 2: {{"jsonrpc":"2.0","id":9,"method":"ping"}}
        # What it answers to that is nobody's.
        < {{"jsonrpc":"2.0","id":7,"result":{{}}}}
        < {{"jsonrpc":"2.0","id":8,"error":{{"code":-32002,"message":"gone"}}}}
        < {{"jsonrpc":"2.0","id":9,"result":{{}}}}
        << 7: id: 7-1|data: {{"jsonrpc":"2.0","id":6,"result":{{}}}}||
        << 7: finish
        "#
        ),
    );
}

/// Whoever waits for what it subscribed to may never send anything again.
#[test]
fn a_session_with_subscriptions_is_woken_by_its_standing_stream() {
    in_session(
        "",
        &format!(
            r#"
        {SET_UP_AND_ASLEEP}
        get 7 session=1
        .. 2: start 0
        << 7: 200 events
        << 7: : outlast|retry: 1000||
        started
        >> 2: {{"jsonrpc":"2.0","id":6,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        < {{"jsonrpc":"2.0","id":6,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        >> 2: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        >> 2: {{"jsonrpc":"2.0","id":7,"method":"logging/setLevel","params":{{"level":"debug"}}}}
        >> 2: {{"jsonrpc":"2.0","id":8,"method":"resources/subscribe","params":{{"uri":"a:2"}}}}
        < {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a:2"}}}}
        << 7: id: 1-1|data: {{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"a:2"}}}}||
        "#
        ),
    );
}

#[test]
fn an_open_stream_or_call_keeps_a_session_awake() {
    in_session(
        "",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        wait 20m
        hang-up 3
        wait 10m
        @25m
        .. 1: close-input
        @25m1s
        .. 1: terminate
        @25m1s500ms
        .. 1: kill
        "#,
    );
}

#[test]
fn sessions_of_one_principal_share_a_process_until_one_makes_it_its_own() {
    check(
        r#"
        set serve
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        started
        # The second waits for the answer that the first one gets.
        post 2 principal=a {"jsonrpc":"2.0","id":"i","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        << 2: 200 with a session events
        << 2: : outlast||
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":"i","result":{"protocolVersion":"2025-06-18","capabilities":{}}}||
        << 2: finish
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}||
        << 1: finish
        post 3 session=1 principal=a {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 3: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 4 session=2 principal=a {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 4: 202
        # The third gets it at once.
        post 5 principal=a {"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        << 5: 200 with a session events
        << 5: : outlast||
        << 5: id: 6-1|data: {"jsonrpc":"2.0","id":7,"result":{"protocolVersion":"2025-06-18","capabilities":{}}}||
        << 5: finish
        # Others do not share it: another principal, another handshake.
        post 6 principal=b {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        .. 2: start 0
        << 6: 200 with a session events
        << 6: : outlast||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        post 7 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}}}}
        .. 3: start 0
        << 7: 200 with a session events
        << 7: : outlast||
        >> 3: {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"sampling":{}}}}
        # Both may use the same ids.
        post 8 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"u"}}
        << 8: 200 events
        << 8: : outlast||
        >> 1: {"jsonrpc":"2.0","id":4,…
        post 9 session=2 principal=a {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 9: 200 events
        << 9: : outlast||
        >> 1: {"jsonrpc":"2.0","id":5,…
        server-1 < {"jsonrpc":"2.0","id":5,"result":{"for":"two"}}
        << 9: id: 12-1|data: {"jsonrpc":"2.0","id":2,"result":{"for":"two"}}||
        << 9: finish
        server-1 < {"jsonrpc":"2.0","id":4,"result":{}}
        << 8: id: 11-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 8: finish
        # Whoever subscribed hears of it.
        get 10 session=1 principal=a
        << 10: 200 events
        << 10: : outlast|retry: 1000||
        get 11 session=2 principal=a
        << 11: 200 events
        << 11: : outlast|retry: 1000||
        server-1 < {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}
        << 10: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u"}}||
        server-1 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << 10: id: 1-2|…
        << 11: id: 3-1|…
        # New sessions get their own from now on.
        post 12 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        .. 4: start 0
        << 12: 200 with a session events
        << 12: : outlast||
        >> 4: {"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{}}}
        # A question that could be meant for any of them is asked of none.
        server-1 < {"jsonrpc":"2.0","id":9,"method":"elicitation/create","params":{}}
        >> 1: {"jsonrpc":"2.0","id":9,"error":{"code":-32603,"message":"outlast: several clients share this server, and none of them can be meant alone"}}
        "#,
    );
}

#[test]
fn a_principal_has_bounds_of_its_own() {
    check(
        r#"
        set serve
        set max-sessions 1
        set max-calls 1
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        post 2 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 2: 429 {"jsonrpc":"2.0","id":1,"error":{"code":-31007,"message":"`a` has 1 sessions open (max-sessions); end one with DELETE, or raise it with --max-sessions"}}
        post 3 principal=b {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 2: start 0
        << 3: 200 with a session events
        << 3: : outlast||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        post 4 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 4: 200 events
        << 4: : outlast||
        !! warn: overloaded server=srv method=ping elapsed=0s state=it never reached the server detail=1 call in flight (max-calls)
        << 4: id: 5-1|data: {"jsonrpc":"2.0","id":2,"error":{"code":-31004,"message":"`ping` was not sent: 1 call in flight (max-calls). Call again when other calls have ended.",…
        << 4: finish
        "#,
    );
}

#[test]
fn arrays_of_an_old_session_are_answered_one_by_one() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26"}}||
        << 1: finish
        post 2 session=1 [{"jsonrpc":"2.0","id":2,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/initialized"},{"jsonrpc":"2.0","id":3,"method":"initialize"}]
        << 2: 200 events
        << 2: : outlast||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"ping"}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: initialize inside an array"}}||
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 2: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 2: finish
        post 3 session=1 [{"jsonrpc":"2.0","method":"notifications/initialized"}]
        << 3: 202
        post 4 session=1 []
        !! warn: a line of the client was refused: Invalid request: an empty array
        << 4: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: an empty array"}}
        "#,
    );
    in_session(
        "",
        r#"
        post 3 session=1 [{"jsonrpc":"2.0","id":2,"method":"ping"}]
        << 3: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: revision 2025-11-25 has no arrays of messages"}}
        "#,
    );
}

#[test]
fn a_cancelled_legacy_call_ends_its_stream() {
    in_session(
        "",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        post 4 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        << 4: 202
        << 3: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        "#,
    );
}

#[test]
fn a_crash_under_a_session_is_made_good() {
    in_session(
        "",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        output-closed
        exited signal 9
        !! warn: `srv` ended: signal 9
        !! info: `tools/list` is sent to `srv` again (attempt 2): its server went away
        !! warn: restarting `srv` in …
        wait 500ms
        @…
        .. 1: start 1
        started
        >> 1: {"jsonrpc":"2.0","id":3,"method":"initialize",…
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":4,"result":{"tools":[]}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}||
        << 3: finish
        "#,
    );
}

#[test]
fn a_server_that_does_not_start_is_tried_again_and_then_refuses_at_once() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        start-failed 11
        !! warn: restart of `srv` failed: the system refused to start it (error 11)
        !! warn: restarting `srv` in 2s: it could not be started
        wait 2s
        @2s
        .. 1: start 1
        start-failed 11
        !! warn: restart of `srv` failed: the system refused to start it (error 11)
        !! warn: restarting `srv` in 4s: it could not be started
        wait 4s
        @6s
        .. 1: start 2
        start-failed 11
        !! warn: restart of `srv` failed: the system refused to start it (error 11)
        !! warn: restarting `srv` in 8s: it could not be started
        wait 8s
        @14s
        .. 1: start 3
        start-failed 11
        !! warn: restart of `srv` failed: the system refused to start it (error 11)
        !! warn: `srv` has failed too often (it could not be started); outlast tries again every 30s
        !! warn: server-failed …
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-31003,"message":"server `srv` cannot be reached: it has failed several times in a row (the system refused to start it (error 11)); the next try is in 30s.",…
        << 1: finish
        # The session never was one, and nobody needs its server.
        .. let go of 1
        post 2 session=1 {"jsonrpc":"2.0","id":1,"method":"ping"}
        << 2: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        "#,
    );
}

#[test]
fn a_log_message_goes_to_the_modern_call_that_asked_for_it() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        post 2 M {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/logLevel":"info"}}}
        < {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}
        << 2: 200 events
        << 2: : outlast||
        << 2: data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"hello"}}||
        "#,
    );
}

#[test]
fn whoever_waits_for_the_handshake_of_a_session_that_ends_is_told() {
    check(
        r#"
        set serve
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        post 2 principal=a {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 2: 200 with a session events
        << 2: : outlast||
        delete 3 session=1 principal=a
        << 1: finish
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"outlast: the session that this one was to share a server with has ended; try again"}}||
        << 2: finish
        .. 1: close-input
        << 3: 200
        # It never was a session.
        post 5 session=2 principal=a {"jsonrpc":"2.0","id":3,"method":"ping"}
        << 5: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        post 4 principal=a {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 2: start 0
        << 4: 200 with a session events
        << 4: : outlast||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        "#,
    );
}

/// A session of a principal that sleeps, and is woken on server 2 by request 4; session 2 joins it.
const JOINS_A_WOKEN_ONE: &str = r#"
        set serve
        set stream-head 5ms
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
        << 1: 200 with a session events
        << 1: : outlast||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 1: finish
        wait 5m
        @5m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
        post 4 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"ping"}
        .. 2: start 0
        post 5 principal=a {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
"#;

#[test]
fn who_joins_a_session_that_wakes_is_welcomed_with_it() {
    check(&format!(
        "{JOINS_A_WOKEN_ONE}\n{}",
        r#"
        started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize",…
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-06-18"}}
        << 5: 200 with a session events
        << 5: : outlast||
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18"}}||
        << 5: finish
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"ping"}
        "#
    ));
}

/// What it set up would be in the others' way.
#[test]
fn a_session_that_set_something_up_is_woken_on_a_server_of_its_own() {
    for share in ["principal", "all"] {
        check(&format!(
            "set share {share}\n{}",
            r#"
        set serve
        post 1 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 1: finish
        post 2 session=1 principal=a {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}
        << 2: 200 events
        << 2: : outlast||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"a:1"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 2: finish
        wait 5m
        @5m
        .. 1: close-input
        output-closed
        exited 0
        .. let go of 1
        post 3 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 2: start 0
        << 3: 200 with a session events
        << 3: : outlast||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        started
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-06-18"}}
        << 3: id: 5-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 3: finish
        post 4 session=1 principal=a {"jsonrpc":"2.0","id":3,"method":"ping"}
        .. 3: start 0
        << 4: 200 events
        << 4: : outlast||
        started
        >> 3: {"jsonrpc":"2.0","id":4,"method":"initialize",…
        < {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-06-18"}}
        >> 3: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 3: {"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"a:1"}}
        >> 3: {"jsonrpc":"2.0","id":6,"method":"ping"}
        # The other server is shared as before.
        post 5 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        << 5: 200 with a session events
        << 5: : outlast||
        << 5: id: 8-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}||
        << 5: finish
        "#
        ));
    }
}

#[test]
fn who_waits_for_a_handshake_when_the_service_ends_is_told() {
    check(&format!(
        "set drain 1s\n{JOINS_A_WOKEN_ONE}\n{}",
        r#"
        stop 15
        wait 1s
        @5m5ms
        << 4: 200 events
        << 4: : outlast||
        @5m1s
        !! warn: server-gone …
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":2,"error":{"code":-31002,"message":"server `srv` went away (outlast was stopped) before it answered `ping`.",…
        << 4: finish
        << 5: 200 events
        << 5: : outlast||
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"outlast is being stopped; try again"}}||
        << 5: finish
        .. 2: close-input
        "#
    ));
}

#[test]
fn a_handshake_is_not_cancelled_when_the_service_ends() {
    check(
        r#"
        set serve
        set drain 1s
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        stop 15
        wait 1s
        @1s
        !! warn: server-gone …
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-31002,"message":"server `srv` went away (outlast was stopped) before it answered `initialize`.","data":{"outlast":{"kind":"server-gone","server":"srv","method":"initialize","elapsedMs":1000,"attempts":1,"serverState":"gone","retry":"safe","signs":{},"help":"outlast help -31002"}}}}||
        << 1: finish
        .. 1: close-input
        "#,
    );
}

/// Found by the simulator: whoever was refused kept a session, and whoever came next waited for ever for
/// the answer to the handshake that was not sent.
#[test]
fn a_handshake_that_is_not_sent_begins_no_session() {
    check(
        r#"
        set serve
        set max-calls 1
        post 1 principal=a version=2026-07-28 method=vendor/x {"jsonrpc":"2.0","id":1,"method":"vendor/x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"vendor/x","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        post 2 principal=a {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}
        .. 2: start 0
        << 2: 200 with a session events
        << 2: : outlast||
        !! warn: overloaded server=srv method=initialize elapsed=0s state=it never reached the server detail=1 call in flight (max-calls)
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-31004,…
        << 2: finish
        .. 2: close-input
        post 3 principal=a session=1 {"jsonrpc":"2.0","id":2,"method":"ping"}
        << 3: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        "#,
    );
}

/// Found by the simulator: a process had ended, its output was open, and with its session went the alarm
/// that would have let go of it.
#[test]
fn a_server_that_ended_while_its_output_is_held_open_is_let_go_of() {
    in_session(
        "",
        r#"
        exited 1
        delete 3 session=1
        .. 1: close-input
        << 3: 200
        wait 5s
        @1s
        .. 1: terminate
        @1s500ms
        .. 1: kill
        @1s700ms
        .. let go of 1
        "#,
    );
}

#[test]
fn an_answer_that_comes_at_once_leaves_in_one_piece_with_the_head_of_its_stream() {
    check(
        r#"
        set serve
        set stream-head 5ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        wait 1s
        @5ms
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 2: finish
        # One that is given up before that has nothing to say.
        post 3 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        post 4 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        << 4: 202
        << 3: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        "#,
    );
}

#[test]
fn a_call_whose_id_was_used_again_ends_with_its_session_too() {
    in_session(
        "set session-idle 1s",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,…
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,…
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        # The older one keeps the session awake.
        hang-up 3
        wait 5s
        delete 5 session=1
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the client hung up"}}
        .. 1: close-input
        << 5: 200
        "#,
    );
}

#[test]
fn what_has_not_finished_when_a_service_ends_is_answered_and_cancelled() {
    modern(
        "set drain 2s",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        stop 15
        wait 2s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @2s
        !! warn: server-gone …
        << 1: data: {"jsonrpc":"2.0","id":5,"error":{"code":-31002,"message":"server `srv` went away (outlast was stopped) …
        << 1: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"outlast is being stopped"}}
        .. 1: close-input
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

#[test]
fn a_server_that_crashed_and_that_nobody_needs_is_not_started_again() {
    modern(
        "",
        r#"
        post 1 M B
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: 200 {"jsonrpc":"2.0","id":5,"result":{}}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 470ms: it ended
        wait 1m
        @470ms
        .. let go of 1
        "#,
    );
}

#[test]
fn a_stream_that_is_taken_up_before_it_begins_has_a_response_too() {
    in_late_session(
        r#"
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        get 3 session=1 last=3-0
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        << 2: finish
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 3: finish
        "#,
    );
}

#[test]
fn a_session_that_ends_at_once_leaves_no_request_without_a_response() {
    in_late_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        delete 4 session=1
        >> 1: …notifications/cancelled…
        << 3: 202
        .. 1: close-input
        << 4: 200
        "#,
    );
}

/// Whoever stored the name would come back with it, and be told that it is unknown.
#[test]
fn a_refused_handshake_names_no_session() {
    check(
        r#"
        set serve
        set stream-head 25ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}
        << 1: 200 events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}||
        << 1: finish
        "#,
    );
}
