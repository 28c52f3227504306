//! The merged door when servers are late, change their minds or go away, and what two servers must not share.

use outlast_testkit::script::check;

/// Two servers, `srv` (1) and `ci` (2), and a session at `/mcp` whose handshake is over. The next attempt is 3.
const SESSION: &str = r###"
    set serve
    set server ci
    post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    .. 1: start 0
    .. 2: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-2 started
    >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}}}}
    << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"protocolVersion":"2025-11-25","serverInfo":{"name":"outlast","version":"…"}}}||
    << 1: finish
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
    << 2: 202
"###;

/// A request for the tools of both, as exchange 3; `srv` has answered.
const ASKED: &str = r#"
    post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
    << 3: 200 events
    << 3: id: 3-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
    >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"run"}]}}
"#;

#[track_caller]
fn asked(scenario: &str) {
    check(&format!("{SESSION}\n{ASKED}\n{scenario}"));
}

#[test]
fn a_list_that_changes_while_it_is_asked_for_is_shown_and_said_to_be_old() {
    asked(
        r#"
        get 4 session=1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << 4: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        # What comes may be from before the change, and the client knows.
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run"}]}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}||
        << 3: finish
        post 5 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 5: 200 events
        << 5: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"walk"}]}}
        << 5: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ci__walk"},{"name":"srv__run"}]}}||
        << 5: finish
        "#,
    );
}

#[test]
fn a_list_that_is_too_long_holds_nobody_up() {
    asked(
        r#"
        server-2 server-oversized 4
        !! warn: `ci`: tools/list failed: its answer was lost; it is asked for again in 2s
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"server `ci` does not answer tools/list now: nothing of it is in this list"}}||
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"srv__run"}]}}||
        << 3: finish
        !! warn: `ci` wrote a line to stdout that is not a message; dropped: (a line longer than max-message)
        "#,
    );
}

#[test]
fn a_server_that_is_not_started_again_holds_nobody_up() {
    check(&format!(
        "set restart never\n{SESSION}\n{}",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run"}]}}
        server-1 exited 1
        server-1 output-closed
        !! warn: `srv` ended: exit status 1
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"server `srv` is not there (exit status 1): nothing of it is in this list, and its calls wait or fail"}}||
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run"}]}}||
        << 3: finish
        "#
    ));
}

/// Both servers have a tool of one name, and it is called at both with equal arguments.
fn at_both(settings: &str, meta: &str, sent: &str) {
    let call = |exchange: u32, tool: &str| {
        format!(
            r#"
        post {exchange} session=1 {{"jsonrpc":"2.0","id":{exchange},"method":"tools/call","params":{{"name":"{tool}"{meta}}}}}
        << {exchange}: 200 events
        << {exchange}: id: {exchange}-0|retry: 1000|data: ||"#
        )
    };
    let (at_ci, at_srv) = (call(4, "ci__run"), call(5, "srv__run"));
    check(&format!(
        r#"{settings}
        {SESSION}
        {ASKED}
        server-2 < {{"jsonrpc":"2.0","id":4,"result":{{"tools":[{{"name":"run"}}]}}}}
        << 3: id: 3-1|data: {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"ci__run"}},{{"name":"srv__run"}}]}}}}||
        << 3: finish
        {at_ci}
        >> 2: {{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{{}"name":"run"{sent}}}}}
        {at_srv}
        >> 1: {{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{{{}"name":"run"{sent}}}}}
        server-1 < {{"jsonrpc":"2.0","id":6,"result":{{"of":"srv"}}}}
        << 5: id: 5-1|data: {{"jsonrpc":"2.0","id":5,"result":{{"of":"srv"}}}}||
        << 5: finish
        server-2 < {{"jsonrpc":"2.0","id":5,"result":{{"of":"ci"}}}}
        << 4: id: 4-1|data: {{"jsonrpc":"2.0","id":4,"result":{{"of":"ci"}}}}||
        << 4: finish
        "#,
        token(5, meta),
        token(6, meta),
    ));
}

fn token(number: u32, meta: &str) -> String {
    if meta.is_empty() { format!(r#""_meta":{{"progressToken":{number}}},"#) } else { String::new() }
}

/// An answer of the other server would be taken for this one's.
#[test]
fn one_key_at_two_servers_is_two_calls() {
    let key = r#","_meta":{"dev.outlast/idempotencyKey":"k","progressToken":1}"#;
    let sent = r#","_meta":{"dev.outlast/idempotencyKey":"k","progressToken":…}"#;
    at_both("", key, sent);
}

#[test]
fn equal_calls_at_two_servers_are_no_repeats() {
    at_both("set tool run=join-repeats:2m", "", "");
}

#[test]
fn a_woken_session_is_subscribed_where_it_was() {
    check(&format!(
        "{SESSION}\n{}",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"file:///a"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"resources/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"resources/templates/list"}
        server-2 < {"jsonrpc":"2.0","id":3,"result":{"resources":[{"uri":"file:///a"}]}}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"resourceTemplates":[]}}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"resources/subscribe","params":{"uri":"file:///a"}}
        server-2 < {"jsonrpc":"2.0","id":5,"result":{}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 3: finish
        wait 5m
        @5m
        .. 1: close-input
        .. 2: close-input
        server-1 exited 0
        server-1 output-closed
        .. let go of 1
        server-2 exited 0
        server-2 output-closed
        .. let go of 2
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"ping"}
        .. 3: start 0
        .. 4: start 0
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{}}||
        << 4: finish
        server-4 started
        >> 4: {"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-4 < {"jsonrpc":"2.0","id":6,"result":{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}}}}
        >> 4: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 4: {"jsonrpc":"2.0","id":7,"method":"resources/subscribe","params":{"uri":"file:///a"}}
        "#
    ));
}

/// `printf … | outlast --config FILE` prints the answers, though servers are asked for their lists before.
#[test]
fn what_was_asked_before_the_end_of_the_input_is_answered() {
    check(
        r#"
        set gateway
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"srv__run"}}
        eof
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-11-25","serverInfo":{"name":"outlast","version":"…"}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"run"}]}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"run"}}
        .. 1: close-input
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_client_that_says_nothing_may_leave_at_once() {
    check(
        r#"
        set gateway
        eof
        .. end 0
        "#,
    );
}

// Lists that cannot be had, although their server is there.

#[test]
fn a_list_that_fails_is_asked_for_again_after_2_4_and_8_seconds_and_then_every_30() {
    asked(
        r#"
        server-2 < {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"busy"}}
        !! warn: `ci`: tools/list failed: error {"code":-32603,"message":"busy"}; it is asked for again in 2s
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"server `ci` does not answer tools/list now: nothing of it is in this list"}}||
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"srv__run"}]}}||
        << 3: finish
        # Who asks meanwhile does not wait for it.
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"srv__run"}]}}||
        << 4: finish
        wait 2s
        @2s
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again in 4s
        wait 4s
        @6s
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":6,"error":{"code":-32000,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again in 8s
        wait 8s
        @14s
        >> 2: {"jsonrpc":"2.0","id":7,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":7,"error":{"code":-32000,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again every 30s
        wait 30s
        @44s
        >> 2: {"jsonrpc":"2.0","id":8,"method":"tools/list"}
        # That it goes on so is said once.
        server-2 < {"jsonrpc":"2.0","id":8,"error":{"code":-32000,"message":"busy"}}
        get 5 session=1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        wait 30s
        @1m14s
        >> 2: {"jsonrpc":"2.0","id":9,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":9,"result":{"tools":[{"name":"walk"}]}}
        << 5: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        "#,
    );
}

#[test]
fn what_was_known_of_a_server_stays_when_its_list_fails() {
    asked(
        r#"
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run"}]}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}||
        << 3: finish
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":5,"error":{"code":-32000,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again in 2s
        << 4: id: 4-1|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"server `ci` does not answer tools/list now: what it listed before is shown"}}||
        << 4: id: 4-2|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}||
        << 4: finish
        # A server that says that it has another list is asked for it at once.
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        post 5 session=1 {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"tools":[]}}
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"srv__run"}]}}||
        << 5: finish
        "#,
    );
}

#[test]
fn a_list_that_is_never_answered_is_asked_for_again() {
    check(&format!(
        "set method tools/list=timeout:10s\n{SESSION}\n{}",
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run"}]}}
        wait 4s
        @4s
        !! warn: `srv` did not list within 4s (list-wait); it is left out until it does
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run"}]}}||
        << 3: finish
        wait 6s
        @10s
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3,"reason":"no answer within 10s (timeout)"}}
        !! warn: `srv`: tools/list failed: no answer within 10s (timeout); it is asked for again in 2s
        wait 2s
        @12s
        >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"run"}]}}
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}||
        << 4: finish
        "#
    ));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A server that was busy a moment ago still speaks the revision of its clients.
#[test]
fn a_modern_server_whose_first_list_fails_is_not_left_out() {
    check(
        &r#"
        set serve
        set server ci
        post 1 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        .. 1: start 0
        .. 2: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{META}}
        server-1 started
        server-2 started
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"run"}],"ttlMs":90000,"cacheScope":"public"}}
        server-2 < {"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again in 2s
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{…"tools":[{"name":"srv__run"}]}}
        post 2 version=2026-07-28 method=server/discover {"jsonrpc":"2.0","id":8,"method":"server/discover","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"server/discover","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"server/discover","params":{META}}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}
        << 2: 200 {…}
        wait 2s
        @2s
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/list","params":{META}}
        # Even an error that a server of the other era might give says nothing about one that has said what it is.
        server-2 < {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"busy"}}
        !! warn: `ci`: tools/list failed: …; it is asked for again in 4s
        wait 4s
        @6s
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/list","params":{META}}
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"resultType":"complete","tools":[{"name":"run"}],"ttlMs":90000,"cacheScope":"public"}}
        post 3 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":9,"method":"tools/list","params":{META}}
        << 3: 200 {"jsonrpc":"2.0","id":9,"result":{…"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}
        "#
        .replace("META", META),
    );
}

// Versions.

/// The first contact: a server that has only an older revision says so, and is asked for that one.
#[test]
fn a_server_that_refuses_a_version_is_tried_with_its_own() {
    check(
        r#"
        set serve
        set server ci
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. 2: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-2 started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unsupported protocol version","data":{"supported":["2025-03-26"]}}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"capabilities":{},"protocolVersion":"2025-03-26"}}
        server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-03-26","capabilities":{"prompts":{}}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"prompts":{"listChanged":true},"tools":{"listChanged":true}},"protocolVersion":"2025-11-25",…}}||
        << 1: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        "#,
    );
}

/// There is one more try, not one for each answer.
#[test]
fn a_server_that_refuses_its_own_version_too_is_left_out_for_now() {
    check(
        r#"
        set gateway
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no","data":{"supported":["2025-03-26"]}}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"capabilities":{},"protocolVersion":"2025-03-26"}}
        server-1 < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no","data":{"supported":["2025-03-26"]}}}
        !! warn: restart of `srv` failed: it refused initialize: …
        .. 1: terminate
        "#,
    );
}
