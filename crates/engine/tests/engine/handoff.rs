//! Hand-off: a client that would give up gets a ticket, and fetches its result with a tool.

use outlast_testkit::script::check;

/// The first two tickets.
const T1: &str = "01010101010101010101010101010101";
const T2: &str = "02020202020202020202020202020202";

#[track_caller]
fn play(scenario: &str) {
    check(&scenario.replace("T1", T1).replace("T2", T2));
}

/// A stdio client that gives up after 60 seconds; the next attempt is 1.
#[track_caller]
fn capped(scenario: &str) {
    play(&format!("set client-cap 60s\n{scenario}"));
}

/// A call that was handed off under T1 as attempt 1; the next submission is 2.
const HANDED_OFF: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build"}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":1,"result":{"_meta":{"dev.outlast/ticket":"01010101010101010101010101010101","dev.outlast/why":"client-cap 1m"},…
"#;

#[track_caller]
fn handed_off(scenario: &str) {
    capped(&format!("{HANDED_OFF}\n{scenario}"));
}

#[test]
fn a_call_is_handed_off_shortly_before_the_cap_and_stored_first() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"build","_meta":{"progressToken":7}}}
        >> {"jsonrpc":"2.0","id":"1",…
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}
        wait 55s
        @10s
        << …keepAlive…
        @20s
        << …keepAlive…
        @30s
        << …keepAlive…
        @40s
        << …keepAlive…
        @50s
        << …keepAlive…
        @55s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":"a","result":{"_meta":{"dev.outlast/ticket":"T1","dev.outlast/why":"client-cap 1m"},"content":[{"text":"`build` is still running. Call the tool `outlast_wait` with {\"ticket\": \"T1\"} now: it waits and returns the result. Do not call `build` again, that would run it twice. If you see no tool `outlast_wait`, look for one whose name ends in outlast_wait, or search your tools for it. (`outlast_cancel` with the same ticket stops `build`.)","type":"text"}]}}
        # Its request is answered: nothing more on its token, and its cancel cancels nothing.
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":2}}
        wait 30s
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a"}}
        "#,
    );
}

#[test]
fn a_fast_call_stays_plain_and_nothing_is_stored() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build"}}
        wait 54s
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        wait 1h
        "#,
    );
}

#[test]
fn without_a_cap_nothing_is_handed_off_and_no_tool_is_added() {
    play(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        >> …outlast_wait…
        wait 1h
        "#,
    );
}

#[test]
fn a_call_that_cannot_be_stored_stays_as_it_is() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build"}}
        wait 55s
        @55s
        .. store 1: create
        not-stored 1
        !! warn: could not be stored: disk full
        wait 3s
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_call_that_is_answered_while_its_ticket_is_stored_is_answered_plainly() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build"}}
        wait 55s
        @55s
        .. store 1: create
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        stored 1
        .. store 2: cancelled
        "#,
    );
}

#[test]
fn calls_that_are_due_together_are_all_handed_off() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"test"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"test"}}
        wait 56s
        @55s
        .. store 1: create
        @55s1ms
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"dev.outlast/ticket":"…
        stored 1
        << {"jsonrpc":"2.0","id":1,"result":{"_meta":{"dev.outlast/ticket":"T1"…
        "#,
    );
}

#[test]
fn a_tool_with_an_output_schema_gets_an_error_in_place_of_its_content() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"build","outputSchema":{"type":"object"}}]}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"build","outputSchema":{"type":"object"}},{"annotations":{"idempotentHint":true,"readOnlyHint":true},…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"build"}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"dev.outlast/ticket":"T1",…},"content":[…],"isError":true}}
        "#,
    );
}

#[test]
fn the_tools_are_listed_on_the_last_page_only_and_keep_clear_of_the_servers_own() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"outlast_wait"}],"nextCursor":"2"}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"outlast_wait"}],"nextCursor":"2"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"2"}}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[ {"name":"build"} ],"x":1.0}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[ {"name":"build"} ,{…"name":"outlast_wait2"},{…"name":"outlast_cancel"}],"x":1.0}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
        << {"jsonrpc":"2.0","id":3,"result":{"tools":[{"annotations":{"idempotentHint":true,"readOnlyHint":true},"description":"…","inputSchema":{"properties":{"after":{…},"seconds":{…},"ticket":{…}},"required":["ticket"],"type":"object"},"name":"outlast_wait2"},{…"name":"outlast_cancel"}]}}
        # The server's own tool is the server's.
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        >> …"name":"outlast_wait"…
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"outlast_wait2","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31010,…
        "#,
    );
}

#[test]
fn an_error_to_a_list_is_passed_on() {
    capped(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no tools"}}
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no tools"}}
        "#,
    );
}

#[test]
fn a_wait_returns_the_result_byte_for_byte_once_it_is_stored() {
    handed_off(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        wait 20s
        < {"jsonrpc":"2.0","id":1,"result":{ "content":[], "n":1.0, "_meta":{"x":1e2} }}
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{ "content":[], "n":1.0, "_meta":{"x":1e2} }}
        # As often as it likes.
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":3,"result":{ "content":[], "n":1.0, "_meta":{"x":1e2} }}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"outlast_cancel","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":4,"result":{…"text":"`build` has already ended. Call the tool `outlast_wait` with {\"ticket\": \"T1\"} to get its result."…
        wait 1h
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31010,"message":"no call has this ticket…","data":{"outlast":{"kind":"ticket-unknown",…
        "#,
    );
}

#[test]
fn an_error_of_the_server_is_returned_as_it_came() {
    handed_off(
        r#"
        < {"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","data":{"n":1.0}}}
        .. store 2: failed
        stored 2
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no","data":{"n":1.0}}}
        "#,
    );
}

#[test]
fn an_answer_that_is_not_strict_json_is_not_lost() {
    handed_off(
        r#"
        <latin1 {"jsonrpc":"2.0","id":1,"result":{"text":"café"}}
        !! warn: `srv` sent an answer that is not strict JSON; passed on unchanged
        .. store 2: completed
        stored 2
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":2,"result":{"text":"caf�"}}
        "#,
    );
}

#[test]
fn a_wait_never_takes_longer_than_the_cap_allows() {
    handed_off(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1","seconds":600}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1","seconds":2.5}}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1","seconds":0}}}
        << {"jsonrpc":"2.0","id":4,"result":{"_meta":{"dev.outlast/ticket":"T1"},"content":[{"text":"`build` is still running, for 55s now. Call the tool `outlast_wait` with {\"ticket\": \"T1\", \"after\": 55} to wait on.","type":"text"}]}}
        wait 60s
        @57s500ms
        << {"jsonrpc":"2.0","id":3,"result":{…still running, for 57s now…
        @1m50s
        << {"jsonrpc":"2.0","id":2,"result":{…still running, for 1m50s now…
        "#,
    );
}

#[test]
fn a_cancel_of_a_wait_leaves_the_call_alone() {
    handed_off(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        wait 5s
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        wait 5m
        < {"jsonrpc":"2.0","id":1,"result":{}}
        .. store 2: completed
        stored 2
        "#,
    );
}

#[test]
fn the_cancel_tool_cancels_at_the_server() {
    handed_off(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_cancel","arguments":{"ticket":"T1"}}}
        .. store 2: cancelled
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,…
        stored 2
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"dev.outlast/ticket":"T1"},"content":[{"text":"`build` was cancelled; there is no result.","type":"text"}],"isError":true}}
        << {"jsonrpc":"2.0","id":3,"result":{"_meta":{"dev.outlast/ticket":"T1"},"content":[{"text":"`build` is cancelled.","type":"text"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":4,"result":{…was cancelled…"isError":true}}
        "#,
    );
}

#[test]
fn every_ticket_that_is_not_ones_own_gets_the_same_answer() {
    handed_off(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T2"}}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31010,"message":"no call has this ticket: it is mistyped, expired, or belongs to somebody else. Copy the ticket exactly, or call the tool again.","data":{"outlast":{"kind":"ticket-unknown",…,"help":"outlast help -31010"}}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_cancel","arguments":{"ticket":"no"}}}
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31010,…
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"outlast_wait"}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-31010,…
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"outlast_wait","arguments":[1]}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31010,…
        "#,
    );
}

#[test]
fn a_result_is_still_there_after_a_restart() {
    handed_off(
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        .. store 2: completed
        stored 2
        again
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":1,"result":{"n":1.0}}
        "#,
    );
}

#[test]
fn a_server_that_goes_away_leaves_its_reason() {
    handed_off(
        r#"
        exited 1
        output-closed
        !! warn: `srv` ended: exit status 1
        !! warn: server-gone…
        .. store 2: failed
        stored 2
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31002,…
        "#,
    );
}

#[test]
fn the_tools_are_in_a_list_from_memory_too() {
    let handshake = r#"> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let list = r#"> {"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
    capped(&format!(
        r#"
        set instant
        {handshake}
        >> {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. remember initialize and 0 lists
        << {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        {list}
        >> {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        < {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"outlast_cancel"}}]}}}}
        .. remember initialize and 1 lists
        << …outlast_wait…outlast_cancel2…
        again
        {handshake}
        << {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        >> {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        {list}
        << {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"outlast_cancel"}},{{…"name":"outlast_wait"}},{{…"name":"outlast_cancel2"}}]}}}}
        "#
    ));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hasty"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn a_modern_client_over_http_is_known_by_each_request() {
    play(
        &r#"
        set serve
        set profiles
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        !! info: `hasty` gives up on a tool after 1m (measured of hasty on 2026-11-18): slow calls are handed off shortly before that
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hasty"},"io.modelcontextprotocol/clientCapabilities":{}}}}
        started
        wait 55s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @55s
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{"_meta":{"dev.outlast/ticket":"T1","dev.outlast/why":"measured of hasty on 2026-11-18"},"content":[…],"resultType":"complete"}}||
        << 1: finish
        post 2 version=2026-07-28 method=tools/call name=outlast_wait {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"},META}}
        << 2: 200 events
        << 2: : outlast||
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        .. store 2: completed
        stored 2
        << 2: data: {"jsonrpc":"2.0","id":6,"result":{"resultType":"complete","content":[]}}||
        << 2: finish
        # It is no task.
        post 3 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":7,"method":"tools/list","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{META}}
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[]}}
        << 3: 200 …outlast_wait…outlast_cancel…
        "#
        .replace("META", META),
    );
}

#[test]
fn a_wait_that_hangs_up_leaves_the_call_alone_and_a_stranger_sees_nothing() {
    let handshake = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
    let wait = r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T2"}}}"#;
    capped(&format!(
        r#"
        set serve
        post 1 principal=ann {handshake}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        started
        < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        << 1: id: 2-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"x"}}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"_meta":{{"progressToken":2}},"name":"x"}}}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        << 2: …"dev.outlast/ticket":"T2"…
        << 2: finish
        post 3 principal=ann session=1 {wait}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        hang-up 3
        post 4 principal=bob {handshake}
        .. 2: start 0
        << 4: 200 with a session events
        << 4: id: 6-0|retry: 1000|data: ||
        >> 2: {{"jsonrpc":"2.0","id":3,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        server-2 started
        server-2 < {{"jsonrpc":"2.0","id":3,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        << 4: id: 6-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}||
        << 4: finish
        post 5 principal=bob session=3 {wait}
        << 5: 200 events
        << 5: id: 7-0|retry: 1000|data: ||
        << 5: …"code":-31010…
        << 5: finish
        server-1 < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        .. store 3: completed
        stored 3
        "#
    ));
}

/// A question of the server reaches the client as if nothing had happened: it knows of no task.
#[test]
fn a_question_after_the_hand_off_is_asked_as_always() {
    handed_off(
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        << {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        stored 2
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1","seconds":1}}}
        wait 1s
        @56s
        << {"jsonrpc":"2.0","id":2,"result":{…still running…
        > {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        .. store 3: working
        >> {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        "#,
    );
}

#[test]
fn a_ticket_is_no_task() {
    play(&format!(
        r#"
        set tasks
        set client-cap 60s
        {HANDED_OFF}
        > {{"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{{"taskId":"T1"}}}}
        << {{"jsonrpc":"2.0","id":2,"error":{{"code":-32602,"message":"Invalid params: no such task"}}}}
        < {{"jsonrpc":"2.0","id":1,"result":{{}}}}
        .. store 3: completed
        stored 3
        > {{"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{{"taskId":"T1"}}}}
        << {{"jsonrpc":"2.0","id":3,"error":{{"code":-32602,"message":"Invalid params: no such task"}}}}
        "#
    ));
}

#[test]
fn a_client_with_tasks_gets_a_task_in_time() {
    let meta = META.replace("{}", r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
    play(
        &r#"
        set serve
        set tasks
        set client-cap 5s
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"hasty"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 5s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @4s500ms
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{…"resultType":"task"…
        << 1: finish
        < {"jsonrpc":"2.0","id":1,"result":{}}
        .. store 2: completed
        stored 2
        "#
        .replace("META", &meta),
    );
}

/// A call under a key, handed off as attempt 1 under T1.
const WITH_KEY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"build","idempotencyKey":"k"}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":1},"name":"build","idempotencyKey":"k"}}
"#;

#[test]
fn calls_with_one_key_are_handed_off_with_one_ticket() {
    capped(&format!(
        r#"
        {WITH_KEY}
        wait 30s
        > {{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{{"name":"build","idempotencyKey":"k"}}}}
        !! info: a call of `build` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
        wait 25s
        @55s
        .. store 2: create
        stored 2
        << {{"jsonrpc":"2.0","id":1,"result":{{"_meta":{{"dev.outlast/ticket":"T1"…
        wait 30s
        @1m25s
        << {{"jsonrpc":"2.0","id":2,"result":{{"_meta":{{"dev.outlast/ticket":"T1"…
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        .. store 3: completed
        stored 3
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"outlast_wait","arguments":{{"ticket":"T1"}}}}}}
        << {{"jsonrpc":"2.0","id":3,"result":{{"n":1.0}}}}
        "#
    ));
}

#[test]
fn the_key_of_a_call_that_was_handed_off_finds_its_result_after_a_restart() {
    capped(&format!(
        r#"
        {WITH_KEY}
        wait 55s
        @55s
        .. store 2: create
        stored 2
        << {{"jsonrpc":"2.0","id":1,"result":{{"_meta":{{"dev.outlast/ticket":"T1",…still running. Call the tool `outlast_wait` with {{\"ticket\": \"T1\"}} now…
        < {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        .. store 3: completed
        stored 3
        again
        > {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"build","idempotencyKey":"k"}}}}
        !! info: a call of `build` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
        << {{"jsonrpc":"2.0","id":1,"result":{{"n":1.0}}}}
        "#
    ));
}

#[test]
fn a_short_cap_shortens_the_keep_alive() {
    play(
        r#"
        set client-cap 15s
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1}}}
        wait 11s
        @5s
        << …keepAlive…
        @10s
        << …keepAlive…
        "#,
    );
}
