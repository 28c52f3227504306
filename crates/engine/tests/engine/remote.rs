//! Servers behind HTTP: statuses, broken streams, lost sessions, mirrored headers.

use outlast_testkit::script::check;

/// A stdio client and a remote server whose handshake is over; the next attempt is 2.
const LEGACY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
"#;

#[track_caller]
fn legacy(settings: &str, scenario: &str) {
    check(&format!("set http\n{settings}\n{LEGACY}\n{scenario}"));
}

#[test]
fn a_call_is_posted_and_answered_on_its_stream() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        <~2 {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn a_stream_that_hangs_up_is_polled_for_as_long_as_its_call_lives() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=3s
        wait 10s
        @3s
        .. reconnect 2
        # An old connection may still look alive to the server.
        stream-ended 2 resumable status=409
        wait 1s
        @11s
        .. reconnect 2
        stream-ended 2 resumable
        wait 10s
        @13s
        .. reconnect 2
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn a_stream_that_breaks_without_an_id_loses_a_call_that_may_have_run() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31002,"message":"server `srv` went away (it ended) before it answered `x`. The call may have run.",…"retry":"unsafe"…
        "#,
    );
}

#[test]
fn a_broken_call_that_only_reads_is_sent_again() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        trouble 2 broken reset
        !! info: `tools/list` is sent to `srv` again (attempt 2): the connection broke
        wait 1s
        @…
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        <~3 {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
        "#,
    );
}

#[test]
fn a_busy_server_is_asked_again_when_it_says() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        # Nothing was done yet, so even this may be sent again.
        trouble 2 status 429 after=7s
        !! info: `tools/call` is sent to `srv` again (attempt 2): the server is busy
        wait 10s
        @7s
        >> post […] {"jsonrpc":"2.0","id":3,…
        # Here it may have been.
        trouble 3 status 503 after=7s
        !! warn: http-status …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31005,"message":"server `srv` refused `x`: HTTP status 503.",…"retry":"unsafe"…
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        trouble 4 status 503 after=2s
        !! info: `tools/list` is sent to `srv` again (attempt 2): the server is busy
        wait 2s
        @12s
        >> post […] {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        "#,
    );
}

#[test]
fn an_error_with_a_status_is_the_answer() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        trouble 2 status 400 {"jsonrpc":"2.0","error":{"code":-32602,"message":"bad"}}
        << {"id":"q","jsonrpc":"2.0","error":{"code":-32602,"message":"bad"}}
        > {"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        trouble 3 status 500 {"jsonrpc":"2.0","id":"3","error":{"code":-32603,"message":"oops"}}
        << {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"oops"}}
        > {"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"4","method":"tools/call","params":{"_meta":{"progressToken":4},"name":"x"}}
        trouble 4 status 401
        !! warn: http-status server=srv method=tools/call tool=x elapsed=0s state=the server goes on with it detail=HTTP status 401; give it a token with --header 'Authorization: Bearer ${VAR}'
        << {"jsonrpc":"2.0","id":"q","error":{"code":-31005,"message":"server `srv` refused `x`: HTTP status 401; give it a token with --header 'Authorization: Bearer ${VAR}'.",…
        > {"jsonrpc":"2.0","id":"q","method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"5","method":"tools/call","params":{"_meta":{"progressToken":5},"name":"x"}}
        trouble 5 not-mcp text/html
        !! warn: not-mcp server=srv method=tools/call tool=x elapsed=0s state=the server goes on with it detail=text/html
        << {"jsonrpc":"2.0","id":"q","error":{"code":-31006,…"kind":"not-mcp"…
        "#,
    );
}

#[test]
fn a_lost_session_is_begun_again_and_the_request_that_found_out_is_sent_again() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        trouble 3 status 404 session {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":4,"method":"initialize",…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after 0s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":5,"method":"tools/call",…
        <~5 {"jsonrpc":"2.0","id":5,"result":{}}
        << {"jsonrpc":"2.0","id":3,"result":{}}
        # The other call was never refused, and has a stream of its own.
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn a_server_that_refuses_a_version_is_tried_with_its_own() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        trouble 2 status 404 session
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":3,"method":"initialize",…2025-11-25…
        <~3 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no","data":{"supported":["2025-03-26"]}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":4,"method":"initialize",…2025-03-26…
        <~4 {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"no","data":{"supported":["2025-03-26"]}}}
        !! warn: restart of `srv` failed: it refused initialize: …
        !! warn: restarting `srv` in 2s: it could not be started
        "#,
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_given_time_and_nothing_is_lost() {
    check(
        r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        >> post [begins session, ] …
        trouble 1 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. start 0
        started
        !! warn: `srv` is back after 6s
        >> post [begins session, ] {"jsonrpc":"2.0","id":2,"method":"initialize",…
        <~2 {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25"}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
        "#,
    );
}

#[test]
fn a_server_that_stays_away_fails_at_once_and_is_tried_for_ever() {
    check(
        r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        trouble 1 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 8s: it cannot be reached
        wait 8s
        @14s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: `srv` has failed too often (it cannot be reached); outlast tries again every 30s
        !! warn: server-failed …
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31003,"message":"server `srv` cannot be reached: it has failed several times in a row (connection refused); the next try is in 30s.",…
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31003,…
        wait 30s
        @44s
        .. start 0
        started
        !! warn: `srv` is back after 44s
        "#,
    );
}

#[test]
fn a_legacy_cancel_is_posted_and_the_stream_let_go() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        .. abandon 2
        "#,
    );
}

#[test]
fn a_standing_stream_that_breaks_is_opened_again_and_one_that_is_refused_is_not() {
    legacy(
        "",
        r#"
        standing-ended
        wait 500ms
        @500ms
        .. stand
        standing-ended retry=2s
        wait 2s
        @2s500ms
        .. stand
        standing-ended status=405
        wait 1m
        "#,
    );
}

/// `retry: 0` was a thousand requests a second while each failed, and a long one was the end of the call.
#[test]
fn a_server_that_wishes_to_be_asked_at_once_or_never_is_asked_in_reason() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=1ms
        wait 100ms
        @100ms
        .. reconnect 2
        stream-ended 2 resumable unopened retry=1ms
        wait 200ms
        @300ms
        .. reconnect 2
        stream-ended 2 resumable retry=1ms status=503
        wait 400ms
        @700ms
        .. reconnect 2
        # A server that hangs up as it said it would has not failed.
        stream-ended 2 resumable retry=1ms
        wait 100ms
        @800ms
        .. reconnect 2
        stream-ended 2 resumable retry=27777h
        wait 6m
        @5m800ms
        .. reconnect 2
        standing-ended retry=1ms
        wait 100ms
        @6m900ms
        .. stand
        standing-ended unopened retry=1ms
        wait 200ms
        @6m1s100ms
        .. stand
        "#,
    );
}

/// Clients are not told to come back in years either.
#[test]
fn a_wish_that_is_passed_on_is_bounded_too() {
    served(
        "",
        r#"
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=27777h
        << 2: retry: 300000||
        << 2: finish
        "#,
    );
}

#[test]
fn an_answer_that_is_lost_on_its_way_is_noted() {
    legacy(
        "",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"roots/list"}
        << {"jsonrpc":"2.0","id":"1","method":"roots/list"}
        > {"jsonrpc":"2.0","id":"1","result":{"roots":[]}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"roots":[]}}
        trouble - broken connection closed
        !! warn: a message to `srv` may be lost: connection closed
        "#,
    );
}

/// A session that lives on over a pause is not made whole again, and must not stay deaf.
#[test]
fn a_standing_stream_that_breaks_with_the_connection_is_opened_when_that_is_back() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        trouble 2 status 404 session
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> post [begins session, ] …
        <~3 {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after 0s
        >> …initialized…
        .. stand
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"x"}}
        <~4 {"jsonrpc":"2.0","id":4,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        standing-ended
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"x"}}
        trouble 5 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. start 0
        started
        !! warn: `srv` is back after 2s
        >> …"id":6…
        wait 1s
        @2s500ms
        .. stand
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[track_caller]
fn modern(scenario: &str) {
    check(&format!("set http\n{}", scenario.replace("META", META)));
}

#[test]
fn a_modern_call_has_its_headers_and_is_cancelled_by_closing_its_stream() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"grün",META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: =?base64?Z3LDvG4=?=] {"jsonrpc":"2.0","id":1,…
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}
        .. abandon 1
        "#,
    );
}

#[test]
fn headers_that_the_server_misses_are_learned_and_the_call_is_sent_once_more() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: t] …
        trouble 1 status 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/list] {"jsonrpc":"2.0","id":2,"method":"tools/list",…
        <~2 {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"more"}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/list] {"jsonrpc":"2.0","id":3,"method":"tools/list",…"cursor":"more"}}
        <~3 {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"t","inputSchema":{"properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}]}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: t, mcp-param-region: eu] {"jsonrpc":"2.0","id":4,…
        # Only once.
        trouble 4 status 400 {"jsonrpc":"2.0","id":4,"error":{"code":-32020,"message":"still"}}
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"still"}}
        "#,
    );
}

#[test]
fn tools_with_marks_that_no_header_can_have_are_not_shown() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/list] {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ok","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}},{"name":"bad","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}},{"name":"deep","inputSchema":{"properties":{"l":{"type":"array","items":{"type":"string","x-mcp-header":"X"}}}}}],"ttlMs":0}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"ok","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}}],"ttlMs":0}}
        "#,
    );
}

#[test]
fn a_subscription_whose_stream_breaks_is_opened_again() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{},META}}
        >> post […] {"jsonrpc":"2.0","id":"1",…
        <~1 {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        << {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}
        stream-ended 1
        wait 500ms
        @500ms
        >> post […] {"jsonrpc":"2.0","id":"2",…
        <~2 {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"2"}}}
        <~2 {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"2"}}}
        << {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}
        "#,
    );
}

#[test]
fn a_page_instead_of_a_subscription_is_waited_out() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{},META}}
        >> post […] {"jsonrpc":"2.0","id":"1",…
        trouble 1 not-mcp text/html
        wait 500ms
        @500ms
        >> post […] {"jsonrpc":"2.0","id":"2",…
        "#,
    );
}

/// The edge keeps where a stream could be taken up until it is told otherwise.
#[test]
fn a_modern_stream_that_breaks_leaves_nothing_behind() {
    modern(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t",META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: t] {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        stream-ended 1 resumable
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":1,"error":{"code":-31002,…
        .. abandon 1
        > {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{},META}}
        >> post […] {"jsonrpc":"2.0","id":"2",…
        stream-ended 2 resumable
        .. abandon 2
        wait 500ms
        @500ms
        >> post […] {"jsonrpc":"2.0","id":"3",…
        "#,
    );
}

#[test]
fn the_clients_end_waits_for_what_is_in_flight() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        eof
        .. close-input
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

/// An HTTP session of a client that waits in front of a remote server; the next attempt is 2.
const SERVED: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: post [begins session, ] …
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}||
        << 1: finish
"#;

#[track_caller]
fn served(settings: &str, scenario: &str) {
    check(&format!("set serve\nset http\n{settings}\n{SERVED}\n{scenario}"));
}

#[test]
fn a_server_that_wants_to_be_polled_lets_its_client_poll_too() {
    served(
        "",
        r#"
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=2s
        << 2: retry: 2000||
        << 2: finish
        wait 2s
        @2s
        .. reconnect 2
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        get 3 session=1 last=3-0
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 3: finish
        "#,
    );
}

/// Found by the simulator: a wish to be polled was passed on to a client whose response had not begun.
#[test]
fn a_wish_to_be_polled_that_comes_at_once_leaves_behind_an_event_to_come_back_with() {
    check(&format!(
        "set serve\nset http\nset stream-head 5ms\n{}",
        r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        .. 1: start 0
        >> 1: post [begins session, ] …
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=2s
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        << 2: retry: 2000||
        << 2: finish
        "#
    ));
}

/// Found by the simulator: a stream that is opened again tells that the session is lost, not that its
/// request was never taken.
#[test]
fn a_call_whose_stream_finds_the_session_lost_is_not_sent_again() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=1s
        wait 1s
        @1s
        .. reconnect 2
        stream-ended 2 resumable status=404
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31002,"message":"server `srv` went away (it has forgotten our session) …"retry":"unsafe"…
        !! warn: trying `srv` again: it has forgotten our session
        .. abandon 2
        tick
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":3,"method":"initialize",…
        <~3 {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        "#,
    );
}

/// A proxy in between may answer for a server that is just starting.
#[test]
fn a_page_instead_of_the_new_session_is_waited_out() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        trouble 2 status 404 session {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found"}}
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":3,"method":"initialize",…
        trouble 3 not-mcp text/html
        !! warn: restart of `srv` failed: text/html
        !! warn: restarting `srv` in 2s: it could not be started
        wait 2s
        @2s
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":4,"method":"initialize",…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":5,"method":"tools/call",…
        "#,
    );
}

/// Found by the simulator: a session that was closed because its server hung was to be connected again,
/// and nothing ever came of that.
#[test]
fn a_remote_server_that_hangs_begins_a_new_run() {
    served(
        "set timeout 1s\nset cancel-grace 1s",
        r#"
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        wait 2s
        @1s
        !! warn: timeout server=srv method=tools/call tool=x limit=1s elapsed=1s setting=--timeout state=the server was told to cancel it
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"`x` gave no sign of life for 1s (timeout, --timeout); the server was told to cancel it. Raise it with --tool 'x=timeout:2s'.","data":{"outlast":{"kind":"timeout","server":"srv","method":"tools/call","tool":"x","elapsedMs":1000,"limitMs":1000,"setting":"--timeout","attempts":1,"serverState":"cancelled","retry":"unsafe","signs":{},"help":"outlast help -32001"}}}}||
        << 2: finish
        >> 1: post […] {"jsonrpc":"2.0","method":"notifications/cancelled",…
        .. abandon 2
        .. sample
        >> 1: post […] {"jsonrpc":"2.0","id":3,"method":"ping"}
        @2s
        .. sample
        !! warn: `srv` hangs: …
        !! warn: restarting `srv`: it hangs
        .. 1: terminate
        output-closed
        exited 0
        tick
        .. 1: start 1
        started
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":4,"method":"initialize",…
        "#,
    );
}

#[test]
fn a_client_gets_an_event_to_come_back_with_before_it_is_let_poll() {
    check(
        r#"
        set serve
        set http
        set stream-head 5ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        .. 1: start 0
        >> 1: post [begins session, ] …
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25"}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        stream-ended 2 resumable retry=2s
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        << 2: retry: 2000||
        << 2: finish
        "#,
    );
}

#[test]
fn a_discovery_that_is_hung_up_is_closed_too() {
    check(
        &r#"
        set serve
        set http
        post 1 version=2026-07-28 method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        .. 1: start 0
        >> 1: post […] …
        started
        hang-up 1
        .. abandon 1
        "#
        .replace("META", META),
    );
}

/// One call runs on a session, and no connection could be made for a second one.
fn with_one_call_unsent(rest: &str) {
    let before = r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        trouble 3 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. start 0
        "#;
    check(&format!("{before}{rest}"));
}

#[test]
fn a_call_that_cannot_be_sent_does_not_end_the_session_of_those_that_run() {
    with_one_call_unsent(
        r#"
        started
        !! warn: `srv` is back after 2s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"y"}}
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        <~4 {"jsonrpc":"2.0","id":4,"result":{}}
        << {"jsonrpc":"2.0","id":3,"result":{}}
        "#,
    );
}

#[test]
fn a_call_that_turns_out_unsent_at_a_server_that_is_down_fails_at_once() {
    with_one_call_unsent(
        r#"
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 8s: it cannot be reached
        wait 8s
        @14s
        .. start 0
        trouble - unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: `srv` has failed too often (it cannot be reached); outlast tries again every 30s
        !! warn: server-failed server=srv method=tools/call tool=y elapsed=14s state=it never reached the server detail=it has failed several times in a row (connection refused); the next try is in 30s
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31003,"message":"server `srv` cannot be reached: it has failed several times in a row (connection refused); the next try is in 30s.","data":{"outlast":{"kind":"server-failed","server":"srv","method":"tools/call","tool":"y","elapsedMs":14000,"attempts":0,"serverState":"never-reached","retry":"pointless","signs":{},"help":"outlast help -31003"}}}}
        trouble 2 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: server-failed server=srv method=tools/call tool=x elapsed=14s state=it never reached the server detail=connection refused
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31003,"message":"server `srv` cannot be reached: connection refused.","data":{"outlast":{"kind":"server-failed","server":"srv","method":"tools/call","tool":"x","elapsedMs":14000,"attempts":1,"serverState":"never-reached","retry":"safe","signs":{},"help":"outlast help -31003"}}}}
        wait 20s
        "#,
    );
}

#[test]
fn a_handshake_that_is_refused_with_a_status_leaves_no_session() {
    check(
        r#"
        set serve
        set http
        set stream-head 5ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        started
        trouble 1 status 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version"}}
        << 1: 200 events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version"}}||
        << 1: finish
        .. 1: close-input
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 2: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        "#,
    );
}
