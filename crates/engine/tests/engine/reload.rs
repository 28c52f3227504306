//! A file that is read again, servers that are quiet, not used, or started before they are needed.

use outlast_testkit::script::{World, check};

/// Two servers, `srv` (1) and `ci` (2), and a session at `/mcp` that knows the tools of both.
const SESSION: &str = r###"
    set serve
    set drain 10s
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
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":…}||
    << 1: finish
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
    << 2: 202
    post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
    << 3: 200 events
    << 3: id: 3-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
    >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run"}]}}
    server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"run"}]}}
    << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run"},{"name":"srv__run"}]}}||
    << 3: finish
    get 9 session=1
    << 9: 200 events
    << 9: : outlast|retry: 1000||
"###;

/// A call at `ci` that is in flight.
const CALL: &str = r#"
    post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ci__run"}}
    << 4: 200 events
    << 4: id: 4-0|retry: 1000|data: ||
    >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"run"}}
"#;

#[track_caller]
fn in_session(scenario: &str) {
    check(&format!("{SESSION}\n{scenario}"));
}

#[track_caller]
fn in_call(scenario: &str) {
    check(&format!("{SESSION}\n{CALL}\n{scenario}"));
}

#[test]
fn a_file_that_says_the_same_changes_nothing() {
    in_call("reload ci srv");
}

#[test]
fn a_changed_program_is_started_when_the_calls_of_the_old_one_have_ended() {
    in_call(
        r#"
        reload srv ci=2
        !! info: the file was read again; restarted: ci
        # What comes meanwhile waits for the new one.
        post 5 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"ci__run"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"content":[]}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 4: finish
        wait 1ms
        @0s
        !! warn: restarting `ci`: its definition has changed
        .. 2: terminate
        server-2 output-closed
        server-2 exited 0
        wait 1ms
        @1ms
        .. 2: start 1
        server-2 started
        >> 2: {"jsonrpc":"2.0","id":6,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        !! warn: `ci` is back after …
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"_meta":{"progressToken":7},"name":"run"}}
        >> 2: {"jsonrpc":"2.0","id":8,"method":"tools/list"}
        # Its tools are others now, and whoever shows them is told.
        server-2 < {"jsonrpc":"2.0","id":8,"result":{"tools":[{"name":"walk"}]}}
        << 5: id: 5-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        "#,
    );
}

#[test]
fn a_call_that_outlasts_drain_ends_with_the_old_program() {
    in_call(
        r#"
        reload srv ci=2
        !! info: the file was read again; restarted: ci
        wait 10s
        @10s
        !! warn: restarting `ci`: its definition has changed
        .. 2: terminate
        !! warn: server-gone …
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":7,"error":{"code":-31002,…its definition in the configuration file has changed…}}||
        << 4: finish
        "#,
    );
}

#[test]
fn a_removed_server_goes_after_its_calls_and_is_not_shown_any_more() {
    in_call(
        r#"
        reload srv
        !! info: the file was read again; gone: ci
        << 4: id: 4-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        << 4: id: 4-2|data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}||
        << 4: id: 4-3|data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}||
        post 5 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"ci__run"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":8,"error":{"code":-32602,"message":"Unknown tool: ci__run; no server behind this address has it now"}}||
        << 5: finish
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"content":[]}}
        << 4: id: 4-4|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 4: finish
        wait 1ms
        @0s
        .. 2: close-input
        server-2 output-closed
        server-2 exited 0
        .. let go of 2
        # It comes back under its old number, as another process.
        reload srv ci
        !! info: the file was read again; new: ci
        .. 3: start 0
        "#,
    );
}

#[test]
fn a_server_that_comes_back_while_its_last_calls_run_is_another_one() {
    in_call(
        r#"
        reload srv
        !! info: the file was read again; gone: ci
        << 4: …tools/list_changed…
        << 4: …prompts/list_changed…
        << 4: …resources/list_changed…
        reload srv ci
        !! info: the file was read again; new: ci
        .. 3: start 0
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"content":[]}}
        << 4: id: 4-4|data: {"jsonrpc":"2.0","id":7,"result":{"content":[]}}||
        << 4: finish
        wait 1ms
        @0s
        .. 2: close-input
        server-3 started
        >> 3: {"jsonrpc":"2.0","id":6,"method":"initialize",…}
        "#,
    );
}

/// It is stopped to become another program, and calls wait for that; then the file does not have it, and has it again.
/// Found by the simulator of gateways, seed 223.
#[test]
fn calls_that_wait_for_a_server_that_goes_and_comes_back_are_answered() {
    let mut world = World::default();
    let session = SESSION.lines().map(str::trim);
    let session = session.filter(|line| !line.is_empty() && !line.starts_with(['<', '>', '.', '#', '!']));
    let call =
        r#"post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ci__run"}}"#;
    let story = [
        "reload srv ci=2",
        call,
        "reload srv",
        "reload srv ci=2",
        "server-2 output-closed",
        "server-2 exited 0",
    ];
    let mut out = Vec::new();
    for line in session.chain(story) {
        out.extend(world.input(line));
        world.engine.check_invariants().unwrap();
    }
    let answer = |line: &String| line.starts_with("<< 4: ") && line.contains(r#""id":7,"error""#);
    assert_eq!(out.iter().filter(|line| answer(line)).count(), 1, "{out:#?}");
}

#[test]
fn a_new_server_is_met_by_whoever_is_there() {
    in_session(
        r#"
        reload srv ci new
        !! info: the file was read again; new: new
        .. 3: start 0
        << 9: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        << 9: id: 1-2|data: {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}||
        << 9: id: 1-3|data: {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}||
        server-3 started
        >> 3: {"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-3 < {"jsonrpc":"2.0","id":5,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        >> 3: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 3: {"jsonrpc":"2.0","id":6,"method":"tools/list"}
        server-3 < {"jsonrpc":"2.0","id":6,"result":{"tools":[{"name":"go"}]}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ci__run"},{"name":"new__go"},{"name":"srv__run"}]}}||
        << 4: finish
        "#,
    );
}

#[test]
fn a_call_keeps_the_limits_that_it_began_with() {
    in_call(
        r#"
        reload srv ci:5s
        !! info: the file was read again; changed: ci
        # The call in flight had no limit, and still has none.
        wait 9s
        post 5 session=1 {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"ci__run"}}
        << 5: 200 events
        << 5: id: 5-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"name":"run"}}
        wait 5s
        @14s
        !! warn: timeout server=ci … limit=5s …
        << 5: id: 5-1|data: {"jsonrpc":"2.0","id":8,"error":{"code":-32001,…}}||
        << 5: finish
        >> 2: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":6,…}}
        .. sample
        >> 2: {"jsonrpc":"2.0","id":7,"method":"ping"}
        "#,
    );
}

#[test]
fn a_session_at_the_address_of_a_removed_server_ends() {
    check(
        r#"
        set serve
        set server ci
        post 1 server=ci {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 started
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        reload srv
        !! info: the file was read again; gone: ci
        .. 1: close-input
        server-1 output-closed
        server-1 exited 0
        .. let go of 1
        post 2 server=ci session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 2: 404 {"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"Not Found: no server of this name is served here"}}
        "#,
    );
}

#[test]
fn a_quiet_server_that_stops_answering_is_replaced() {
    check(
        r#"
        set heartbeat 30s
        started
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        wait 30s
        @30s
        >> {"jsonrpc":"2.0","id":2,"method":"ping"}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        wait 30s
        @1m
        >> {"jsonrpc":"2.0","id":3,"method":"ping"}
        # No answer this time, nor any other sign of life.
        looks still
        wait 35s
        @1m30s
        .. sample
        >> {"jsonrpc":"2.0","id":4,"method":"ping"}
        @1m35s
        .. sample
        !! warn: `srv` hangs: no sign of life for 5s since it was asked whether it is there
        !! warn: restarting `srv`: it hangs
        .. terminate
        "#,
    );
}

#[test]
fn a_server_that_knows_no_ping_is_let_be() {
    check(
        r#"
        set heartbeat 30s
        started
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        wait 90s
        @30s
        >> {"jsonrpc":"2.0","id":2,"method":"ping"}
        @1m
        >> {"jsonrpc":"2.0","id":3,"method":"ping"}
        @1m30s
        >> {"jsonrpc":"2.0","id":4,"method":"ping"}
        # A call has limits of its own: nothing is asked beside it.
        > {"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"x"}}
        >> {"jsonrpc":"2.0","id":5,"method":"resources/read","params":{"_meta":{"progressToken":5},"uri":"x"}}
        wait 2m
        "#,
    );
}

/// A server that nobody used for a minute was stopped. The next attempt is 2.
pub const ASLEEP: &str = r#"
    set server-idle 1m
    started
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
    << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
    >> {"jsonrpc":"2.0","method":"notifications/initialized"}
    wait 1m
    @1m
    !! info: `srv` was not used for 1m (server-idle): stopped until it is needed
    .. close-input
    output-closed
    exited 0
"#;

#[track_caller]
fn asleep(scenario: &str) {
    check(&format!("{ASLEEP}\n{scenario}"));
}

#[test]
fn a_server_that_nobody_uses_is_stopped_and_the_next_call_starts_it() {
    asleep(
        r#"
        wait 1h
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        .. start 1
        started
        >> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        "#,
    );
}

#[test]
fn an_eager_server_is_there_before_anybody_needs_it() {
    check(
        r#"
        set serve
        set eager
        warm
        .. 1: start 0
        server-1 started
        # It has been told nothing yet, so anybody can have it.
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        # Whoever comes beside it gets another one.
        post 2 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 2: start 0
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        "#,
    );
}

#[test]
fn a_command_that_is_not_there_is_given_up_at_once_and_tried_again_later() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 start-failed not-found
        !! warn: restart of `srv` failed: command not found
        !! warn: `srv` has failed too often (it could not be started); outlast tries again every 30s
        !! warn: server-failed …
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"error":{"code":-31003,"message":"server `srv` cannot be reached: it cannot be started (command not found); the next try is in 30s.",…}}||
        << 1: finish
        .. let go of 1
        "#,
    );
}

#[test]
fn a_server_that_two_calls_wake_is_not_noted_as_one_that_was_away() {
    asleep(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        .. start 1
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y"}}
        started
        >> {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"y"}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn whoever_listens_to_a_server_that_sleeps_wakes_it() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    check(
        &r#"
        set server-idle 1m
        started
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{META,"name":"x"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{…"name":"x"}}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        wait 1m
        @1m
        !! info: `srv` was not used for 1m (server-idle): stopped until it is needed
        .. close-input
        output-closed
        exited 0
        > {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{META,"notifications":{"toolsListChanged":true}}}
        .. start 1
        started
        >> {"jsonrpc":"2.0","id":"3","method":"subscriptions/listen",…
        < {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"3"}}}
        << {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"L"}}}
        "#
        .replace("META", meta),
    );
}

/// Its client may wait for the task without asking for it.
#[test]
fn a_server_that_has_made_a_task_of_its_own_is_not_stopped() {
    check(
        r#"
        set server-idle 1m
        started
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","task":{}}}
        < {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"t","status":"working"}}}
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"taskId":"t","status":"working"}}}
        wait 1h
        "#,
    );
}

/// With `restart = "never"` a server that has ended stays so, until the file makes another program of it.
#[test]
fn a_server_that_has_ended_for_good_is_started_when_the_file_makes_another_of_it() {
    check(&format!(
        "set restart never\n{SESSION}\n{}",
        r#"
        server-1 exited 1
        server-1 output-closed
        !! warn: `srv` ended: exit status 1
        reload srv=2 ci
        !! info: the file was read again; restarted: srv
        tick
        .. 1: start 1
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":5,"method":"initialize",…
        "#
    ));
}
