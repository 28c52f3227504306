//! Tasks of both eras, row by row of the table in `tickets/task.rs`, and what surrounds them.

use outlast_testkit::script::check;

/// A stdio client of 2025-11-25 whose handshake is over; the next attempt is 2.
const LEGACY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// The handle of the first task.
const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const T2: &str = "0202020202020202020202020202020202020202020202020202020202020202";

#[track_caller]
fn legacy(settings: &str, scenario: &str) {
    let scenario = scenario.replace("T1", T1).replace("T2", T2);
    check(&format!("set tasks\n{settings}\n{LEGACY}\n{scenario}"));
}

#[test]
fn a_task_is_stored_before_its_handle_is_given() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{"ttl":60000},"arguments":{"n":1.0}}}
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"T1","ttl":90000000}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","arguments":{"n":1.0}}}
        "#,
    );
}

#[test]
fn a_task_that_cannot_be_stored_is_a_plain_call() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        not-stored 1
        !! warn: could not be stored: disk full
        >> {"jsonrpc":"2.0","id":2,…
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

/// A task that runs: attempt 2, ticket T1; the next submission is 2.
const RUNNING: &str = r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{},"_meta":{"progressToken":"p"}}}
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> …
"#;

#[track_caller]
fn running(settings: &str, scenario: &str) {
    legacy(settings, &format!("{RUNNING}\n{scenario}"));
}

#[test]
fn an_answer_completes_a_task() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"n":1.0}}
        .. store 2: completed
        # Not before it is stored.
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":4,"result":{…"status":"working"…
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{…"status":"completed","taskId":"T1"…
        << {"jsonrpc":"2.0","id":3,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}},"content":[],"n":1.0}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}},"content":[],"n":1.0}}
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":6,"result":{…"status":"completed"…
        "#,
    );
}

#[test]
fn a_failed_tool_fails_a_legacy_task() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{"content":[],"isError":true,"_meta":{"x":1}}}
        .. store 2: failed
        stored 2
        << …"status":"failed"…
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"result":{"content":[],"isError":true,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"},"x":1}}}
        "#,
    );
}

#[test]
fn an_error_fails_a_task() {
    running(
        "set timeout 10s",
        r#"
        wait 10s
        @10s
        !! warn: timeout server=srv method=tools/call tool=x limit=10s elapsed=10s setting=--timeout state=the server was told to cancel it
        .. store 2: failed
        >> …notifications/cancelled…
        .. sample
        >> …"method":"ping"}
        stored 2
        << …"status":"failed"…
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32001,"message":"`x` gave no sign of life…
        "#,
    );
}

#[test]
fn a_cancelled_task_stays_cancelled() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"T1"}}
        .. store 2: cancelled
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the task was cancelled"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        !! info: `srv` answered attempt 2, which has ended; dropped
        stored 2
        << …notifications/tasks/status…"status":"cancelled"…
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"the task was cancelled"}}
        << {"jsonrpc":"2.0","id":4,"result":{…"status":"cancelled"…
        > {"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-32602,"message":"Invalid params: the task has ended: cancelled"}}
        "#,
    );
}

#[test]
fn a_wait_is_given_up_and_the_task_goes_on() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        # The request that made the task is over: its id cancels nothing.
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 2: completed
        stored 2
        << …notifications/tasks/status…
        "#,
    );
}

#[test]
fn a_finished_task_expires() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,…
        # It was told so when it began.
        wait 24h59m
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"status":"completed"…"ttl":90000000}}
        wait 1m
        > {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: no such task"}}
        "#,
    );
}

#[test]
fn a_task_is_kept_as_long_as_its_client_asked() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{"ttl":180000000}}}
        .. store 1: create
        stored 1
        << …"ttl":180000000}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        .. store 2: completed
        stored 2
        << …"ttl":180000000}}
        wait 49h59m
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"status":"completed"…"ttl":180000000}}
        wait 1m
        > {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"Invalid params: no such task"}}
        "#,
    );
}

/// The store took a minute for it: its age, its limits and its `ttl` count from when it was stored.
#[test]
fn a_task_is_as_old_as_its_record_and_kept_from_its_end_on() {
    legacy(
        "set max 10m",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        wait 1m
        stored 1
        << …"ttl":4200000}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        wait 10m
        @11m
        !! warn: max server=srv method=tools/call tool=x limit=10m elapsed=10m setting=--max state=the server was told to cancel it
        .. store 2: failed
        >> …notifications/cancelled…
        .. sample
        >> …"method":"ping"}
        stored 2
        << …"status":"failed"…"ttl":4200000}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        wait 59m
        > {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"status":"failed"…"ttl":4200000}}
        wait 1m
        > {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"Invalid params: no such task"}}
        "#,
    );
}

#[test]
fn a_modern_task_is_kept_as_long_as_its_client_was_told() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: …"ttlMs":90000000}}||
        << 1: finish
        < {"jsonrpc":"2.0","id":1,"result":{}}
        .. store 2: completed
        stored 2
        wait 5m
        @5m10s
        .. 1: close-input
        exited 0
        wait 24h54m
        @5m10s200ms
        .. let go of 1
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        .. 2: start 0
        << 2: 200 {…"status":"completed"…"ttlMs":90000000,…
        wait 1m
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 {…"Invalid params: no such task"}}
        "#,
    );
}

#[test]
fn tasks_are_listed() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y","task":{}}}
        .. store 2: create
        stored 2
        << {"jsonrpc":"2.0","id":3,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/list"}
        << {"jsonrpc":"2.0","id":4,"result":{"tasks":[{…"taskId":"T2"…},{…"taskId":"T1"…}]}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/list","params":{"cursor":"2"}}
        << {"jsonrpc":"2.0","id":5,"result":{"tasks":[{…"taskId":"T1"…}]}}
        > {"jsonrpc":"2.0","id":6,"method":"tasks/list","params":{"cursor":"x"}}
        << {"jsonrpc":"2.0","id":6,"error":{"code":-32602,…
        "#,
    );
}

#[test]
fn tools_say_that_they_may_be_tasks_unless_somebody_forbids_it() {
    legacy(
        "set tool never*=task:forbidden\nset tool long*=task:required",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a"},{"name":"no","execution":{"taskSupport":"forbidden"}},{"name":"never1"},{"name":"long","execution":{}}]}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"execution":{"taskSupport":"optional"},"name":"a"},{"name":"no","execution":{"taskSupport":"forbidden"}},{"name":"never1"},{"name":"long","execution":{"taskSupport":"required"}}]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"no","task":{}}}
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: this tool cannot be called as a task"}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"never1","task":{}}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-32601,…
        "#,
    );
}

#[test]
fn a_server_with_tasks_of_its_own_is_left_to_it() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","task":{}}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t"}}
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let scenario = scenario.replace("T1", T1).replace("T2", T2).replace("META", META);
    check(&format!("set serve\nset tasks\n{settings}\n{scenario}"));
}

#[test]
fn a_slow_modern_call_becomes_a_task() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"T1","ttlMs":90000000}}||
        << 1: finish
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 2: 200 {"jsonrpc":"2.0","id":6,"result":{…"resultType":"complete","status":"working"…
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[],"isError":true}}
        .. store 2: completed
        stored 2
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 {"jsonrpc":"2.0","id":7,"result":{…"status":"completed"…,"result":{"resultType":"complete","content":[],"isError":true}}}
        # Nobody needs the process any more.
        wait 5m
        @5m10s
        .. 1: close-input
        "#,
    );
}

#[test]
fn a_fast_modern_call_stays_plain() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: 200 {"jsonrpc":"2.0","id":5,"result":{}}
        wait 1m
        "#,
    );
}

#[test]
fn a_modern_call_that_is_answered_while_its_task_is_stored_is_a_task_that_has_ended() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        < {"jsonrpc":"2.0","id":1,"result":{}}
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{}}||
        << 1: finish
        stored 1
        .. store 2: cancelled
        "#,
    );
}

#[test]
fn modern_task_requests_need_the_extension_and_a_ticket_that_is_known() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tasks/get name=zz {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"zz",META}}
        .. 1: start 0
        << 1: 200 {"jsonrpc":"2.0","id":6,"error":{"code":-32602,"message":"Invalid params: no such task"}}
        post 2 version=2026-07-28 method=tasks/get name=zz {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"zz","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        << 2: 400 {"jsonrpc":"2.0","id":6,"error":{"code":-32021,…
        "#,
    );
}

#[test]
fn a_modern_task_is_cancelled_with_an_empty_word() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"T1","ttlMs":90000000}}||
        << 1: finish
        post 2 version=2026-07-28 method=tasks/cancel name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/cancel","params":{"taskId":"T1",META}}
        .. store 2: cancelled
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"the task was cancelled"}}
        stored 2
        << 2: 200 {"jsonrpc":"2.0","id":6,"result":{"resultType":"complete"}}
        "#,
    );
}

#[test]
fn the_extension_is_declared_beside_those_of_the_server() {
    modern(
        "",
        r#"
        post 1 version=2026-07-28 method=server/discover {"jsonrpc":"2.0","id":6,"method":"server/discover","params":{META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"a/b":{}}}}}
        << 1: 200 {"jsonrpc":"2.0","id":6,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"a/b":{}}}}}
        "#,
    );
}

#[test]
fn a_task_outlives_its_session_and_is_nobody_elses() {
    check(&r#"
        set serve
        set tasks
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: …"taskId":"0202…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        delete 3 principal=ann session=1
        << 3: 200
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. 1: close-input
        .. store 2: completed
        stored 2
        post 4 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 2: start 0
        << 4: 200 with a session events
        << 4: id: 5-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":3,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 4: id: 5-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 4: finish
        post 5 principal=ann session=3 {"jsonrpc":"2.0","id":2,"method":"tasks/result","params":{"taskId":"T2"}}
        << 5: 200 events
        << 5: id: 6-0|retry: 1000|data: ||
        << 5: …"content":[]…
        << 5: finish
        post 6 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 3: start 0
        << 6: 200 with a session events
        << 6: id: 8-0|retry: 1000|data: ||
        >> 3: {"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 6: id: 8-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 6: finish
        post 7 principal=bob session=4 {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"T2"}}
        << 7: 200 events
        << 7: id: 9-0|retry: 1000|data: ||
        << 7: …"error":{"code":-32602,"message":"Invalid params: no such task"}}||
        << 7: finish
        "#.replace("T2", T2));
}

#[test]
fn a_question_of_the_server_is_input_required() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}}
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        << {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}},"message":"sure?"}}
        .. store 2: input_required
        wait 1s
        stored 2
        << …notifications/tasks/status…"lastUpdatedAt":"1970-01-01T00:00:01.000Z"…"status":"input_required"…
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"status":"input_required"…
        > {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        .. store 3: working
        >> {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        wait 1s
        # What is not stored could be lost, and time must not go back then.
        > {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"lastUpdatedAt":"1970-01-01T00:00:01.000Z"…"status":"working"…
        stored 3
        << …notifications/tasks/status…"lastUpdatedAt":"1970-01-01T00:00:02.000Z"…"status":"working"…
        "#,
    );
}

/// What is asked is stored for others to see; the client of the task is told only of its state.
#[test]
fn a_task_waits_for_the_last_of_several_answers() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{}}
        << {"jsonrpc":"2.0","id":"1",…
        .. store 2: input_required
        stored 2
        << …notifications/tasks/status…"status":"input_required"…
        < {"jsonrpc":"2.0","id":"r","method":"sampling/createMessage","params":{}}
        << {"jsonrpc":"2.0","id":"2",…
        .. store 3: input_required
        stored 3
        > {"jsonrpc":"2.0","id":"1","result":{}}
        .. store 4: input_required
        >> {"jsonrpc":"2.0","id":"q","result":{}}
        stored 4
        > {"jsonrpc":"2.0","id":"2","result":{}}
        .. store 5: working
        >> {"jsonrpc":"2.0","id":"r","result":{}}
        stored 5
        << …notifications/tasks/status…"status":"working"…
        "#,
    );
}

#[test]
fn a_finished_task_is_there_after_a_restart() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,…
        again
        begin
        .. store 1: claim, expire
        stored 1
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"result":{…"content":[]}}
        "#,
    );
}

#[test]
fn a_task_that_a_crash_interrupted_fails_with_the_reason() {
    running(
        "",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        !! warn: server-gone …
        .. store 3: failed
        stored 3
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":5,"error":{"code":-31002,"message":"server `srv` went away (outlast itself was ended during the call) …"retry":"unsafe"…
        "#,
    );
}

#[test]
fn a_repeatable_task_that_a_crash_interrupted_is_made_again() {
    running(
        "set tool x=repeatable:true",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"T1"}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 3: completed
        stored 3
        << {"jsonrpc":"2.0","id":5,"result":{…"content":[]}}
        "#,
    );
}

#[test]
fn a_mailbox_message_cancels_a_task() {
    running(
        "",
        r#"
        mailbox T1 cancel
        wait 500ms
        @500ms
        .. store 2: collect
        stored 2
        .. store 3: cancelled
        >> {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the task was cancelled"}}
        stored 3
        << …notifications/tasks/status…"status":"cancelled"…
        "#,
    );
}

/// An array leaves when its last member is settled, also by being given up.
#[test]
fn an_array_does_not_wait_for_a_wait_that_was_cancelled() {
    running(
        "",
        r#"
        > [{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}},{"jsonrpc":"2.0","id":4,"method":"ping"}]
        >> …"method":"ping"}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        << [{"jsonrpc":"2.0","id":4,"result":{}}]
        "#,
    );
}

/// A table that nobody plays is a story.
#[test]
fn every_row_of_the_table_is_played() {
    outlast_testkit::play_table!(
        "../../src/tickets/task.rs":
        a_task_is_stored_before_its_handle_is_given,
        a_task_that_cannot_be_stored_is_a_plain_call,
        a_slow_modern_call_becomes_a_task,
        an_answer_completes_a_task,
        a_failed_tool_fails_a_legacy_task,
        an_error_fails_a_task,
        a_cancelled_task_stays_cancelled,
        a_question_of_the_server_is_input_required,
        a_finished_task_expires,
    );
}

/// Pipes seed 333 of the simulation: a call found the stored answer of one with its key, and all the answers of its
/// array were lost with that one.
#[test]
fn an_answer_of_a_task_that_is_not_strict_json_does_not_spoil_an_array() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{"x":NaN}}
        !! warn: `srv` sent an answer that is not strict JSON; passed on unchanged
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"completed","taskId":"T1","ttl":90000000}}
        > [{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"T1"}},{"jsonrpc":"2.0","id":4,"method":"ping"}]
        >> {"jsonrpc":"2.0","id":3,"method":"ping"}
        << {"jsonrpc":"2.0","id":3,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}},"x":NaN}}
        < {"jsonrpc":"2.0","id":3,"result":{}}
        << [{"jsonrpc":"2.0","id":4,"result":{}}]
        "#,
    );
}
