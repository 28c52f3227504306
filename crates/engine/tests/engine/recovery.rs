//! Calls that a process of ours left behind when it was killed, taken up by the next one.

use outlast_testkit::script::check;

/// `_meta` of a modern client with tasks.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

/// A modern call that is a task of ours (T1), and whose server has made a task of its own for it (`s-1`).
const MODERN: &str = r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: …"taskId":"T1"…
        << 1: finish
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"s-1","status":"working","pollIntervalMs":1000}}
        .. store 2: working
        stored 2
        again
        wait 20s
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        started
        tick
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"s-1",META}}
"#;

#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let ticket = format!("{:02x}", 1).repeat(32);
    let scenario = format!("{MODERN}{scenario}").replace("META", META).replace("T1", &ticket);
    check(&format!("set serve\nset tasks\n{settings}\n{scenario}"));
}

// By the server's own task.

#[test]
fn a_call_is_found_again_by_its_servers_task() {
    modern(
        "",
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"taskId":"s-1","status":"working","pollIntervalMs":1000}}
        wait 1s100ms
        @…
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tasks/get",…
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"s-1","status":"completed","result":{"content":[],"n":1.0}}}
        .. store 3: completed
        # What comes twice counts once.
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"s-1","status":"failed","error":{"code":1,"message":"m"}}}
        !! info: `srv` answered attempt 2, which has ended; dropped
        stored 3
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << …"status":"completed"…"result":{"resultType":"complete","content":[],"n":1.0}…
        wait 10m
        @…
        .. 1: close-input
        @…
        .. 1: terminate
        @…
        .. 1: kill
        "#,
    );
}

#[test]
fn what_the_server_has_lost_fails_if_repeating_may_do_harm() {
    modern(
        "",
        r#"
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such task"}}
        .. store 3: working
        !! warn: server-gone …
        .. store 4: failed
        stored 3
        stored 4
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << …"status":"failed"…"message":"server `srv` went away (outlast itself was ended during the call, and its server does not know its task any more) before it answered `x`. The call may have run."…
        "#,
    );
}

/// That it is repeatable was stored before anything was known of the server's task.
#[test]
fn what_the_server_has_lost_is_made_again_if_that_is_safe() {
    modern(
        "set tool x=repeatable:true",
        r#"
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no tasks here"}}
        .. store 3: working
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server knows nothing of it any more
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x",…
        stored 3
        # The next process does not ask for it.
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call",…
        < {"jsonrpc":"2.0","id":1,"result":{"content":[]}}
        .. store 3: completed
        "#,
    );
}

#[test]
fn a_third_process_finds_it_too() {
    modern(
        "",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        started
        tick
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"s-1",META}}
        < {"jsonrpc":"2.0","id":1,"result":{"taskId":"s-1","status":"completed","result":{"content":[]}}}
        .. store 3: completed
        "#,
    );
}

#[test]
fn a_cancel_reaches_what_was_found() {
    modern(
        "",
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"taskId":"s-1","status":"working","pollIntervalMs":60000}}
        mailbox T1 cancel
        wait 500ms
        @…
        .. store 3: collect
        stored 3
        .. store 4: cancelled
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":"s-1",META}}
        "#,
    );
}

/// `max` runs from when the call was made.
#[test]
fn the_time_before_the_crash_counts() {
    modern(
        "set max 1m",
        r#"
        < {"jsonrpc":"2.0","id":1,"result":{"taskId":"s-1","status":"working","pollIntervalMs":60000}}
        wait 29s
        wait 1s
        @1m
        !! warn: max …limit=1m elapsed=1m …
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tasks/cancel",…
        .. store 3: failed
        "#,
    );
}

// By the server's own resume token.

/// Ann's call 7 at a remote server that knows it as attempt 2, with token `t`; it can be resumed by her too (T2).
const REMOTE: &str = r#"
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: …"method":"notifications/requests/resumePolicy","params":{"requestId":7,…
        >> 1: post …{"jsonrpc":"2.0","id":2,"method":"tools/call",…
        <~2 {"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{"requestId":2,"resumeToken":"t"}}
        .. store 2: working
        stored 2
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        # Nobody's session is there: the handshake is ours.
        started
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}},"clientInfo":{"name":"outlast",…
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 1: post […] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"requests/resume","params":{"resumeToken":"t"}}
"#;

/// `~LEFT` is the stream of the attempt that was left, which has number 2 on the wire.
#[track_caller]
fn remote(settings: &str, scenario: &str) {
    let token = |number: u8| format!("{number:02x}").repeat(32);
    let scenario = format!("{REMOTE}{scenario}")
        .replace("LEFT", &((1u64 << 40) + 2).to_string())
        .replace("T2", &token(2))
        .replace("T5", &token(5));
    check(&format!("set serve\nset http\nset resumable\nset keep-alive off\n{settings}\n{scenario}"));
}

/// Ann comes back in a session of her own, and finds her call.
const BACK: &str = r#"
        post 3 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 2: start 0
        << 3: 200 with a session events
        << 3: id: 2-0|retry: 1000|data: ||
        >> 2: post […{"jsonrpc":"2.0","id":2,"method":"initialize"…
        started
        <~2 {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 3: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 3: finish
        post 4 principal=ann session=4 {"jsonrpc":"2.0","id":7,"method":"requests/resume","params":{"resumeToken":"T2"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
"#;

/// The number of the attempt is in use here too; the stream says which one is meant.
#[test]
fn a_call_is_found_again_by_its_servers_token() {
    remote(
        "",
        &format!(
            r#"{BACK}
        server-1 <~LEFT {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":3}}}}
        << 4: …"progressToken":"p","progress":3}}…
        server-1 <~LEFT {{"jsonrpc":"2.0","id":2,"result":{{"content":[]}}}}
        .. 1: close-input
        .. store 3: completed
        stored 3
        << 4: …{{"jsonrpc":"2.0","id":7,"result":{{"content":[]}}}}||
        << 4: finish
        "#
        ),
    );
}

#[test]
fn a_token_that_is_refused_is_the_end_if_repeating_may_do_harm() {
    for refusal in [-31010, -32602] {
        let refusal = format!(
            r#"
        <~LEFT {{"jsonrpc":"2.0","id":2,"error":{{"code":{refusal},"message":"m"}}}}
        .. store 3: working
        !! warn: server-gone …detail=outlast itself was ended during the call, and its server does not know the call any more
        .. 1: close-input
        .. store 4: failed
        "#
        );
        remote("", &refusal);
    }
}

#[test]
fn a_token_that_is_refused_makes_the_call_anew_if_that_is_safe() {
    remote(
        "set tool x=repeatable:true",
        r#"
        trouble LEFT status 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"m"}}
        .. store 3: working
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server knows nothing of it any more
        >> 1: post […] {"jsonrpc":"2.0","id":2,"method":"tools/call",…
        .. abandon LEFT
        <~2 {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. 1: close-input
        .. store 4: completed
        "#,
    );
}

#[test]
fn a_server_that_cannot_be_reached_is_asked_again() {
    remote(
        "",
        r#"
        trouble LEFT unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 1s
        @500ms
        >> 1: post […"method":"requests/resume"…
        <~LEFT {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. let go of 1
        .. store 3: completed
        "#,
    );
}

#[test]
fn a_crash_while_it_is_looked_for_loses_nothing() {
    remote(
        "",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        started
        >> 1: post …"method":"initialize"…
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        >> 1: post […] {"jsonrpc":"2.0","id":2,"method":"requests/resume","params":{"resumeToken":"t"}}
        "#,
    );
}

#[test]
fn a_cancel_names_the_number_that_the_server_knows() {
    remote(
        "",
        r#"
        mailbox T2 cancel
        wait 500ms
        @…
        .. store 3: collect
        stored 3
        .. store 4: cancelled
        >> 1: post […] {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2,"reason":"the task was cancelled"}}
        .. abandon LEFT
        .. 1: close-input
        "#,
    );
}

// Who can be asked, and when.

/// A legacy call of Ann's (T2) at a server on stdio that runs it as a task of its own (`s-1`).
const LEGACY: &str = r#"
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: …
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: …resumePolicy…
        >> 1: …{"jsonrpc":"2.0","id":2,"method":"tools/call",…
        <~2 {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"task required"}}
        >> 1: …{"jsonrpc":"2.0","id":3,"method":"tools/call",…"task":{…
        <~3 {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"s-1","status":"working"}}}
        .. store 2: working
        stored 2
"#;

#[track_caller]
fn legacy(settings: &str, scenario: &str) {
    let scenario = format!("{LEGACY}{scenario}").replace("T2", &"02".repeat(32));
    check(&format!("set serve\nset resumable\nset resume-wait 1h\n{settings}\n{scenario}"));
}

/// Its client may never come back: the server is greeted in our own name, and stays as long as its task runs.
#[test]
fn a_legacy_task_is_followed_without_its_client() {
    legacy(
        "",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize",…"clientInfo":{"name":"outlast",…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        tick
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"s-1"}}
        wait 50s
        # It hangs as far as we know; nobody else needs it.
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"s-1","status":"working","pollInterval":60000}}
        wait 6m
        @…
        >> 1: …"id":3,"method":"tasks/get"…
        @…
        >> 1: …"id":4,"method":"tasks/get"…
        @…
        >> 1: …"id":5,"method":"tasks/get"…
        @…
        >> 1: …"id":6,"method":"tasks/get"…
        @…
        >> 1: …"id":7,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":7,"result":{"taskId":"s-1","status":"completed"}}
        >> 1: …"id":8,"method":"tasks/result"…
        < {"jsonrpc":"2.0","id":8,"result":{"content":[]}}
        .. 1: close-input
        .. store 3: completed
        "#,
    );
}

/// A machine starts, and outlast before the server: what the server has is fetched when it is there.
#[test]
fn a_server_that_stays_away_loses_nothing() {
    legacy(
        "set http",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. 1: start 0
        trouble none unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. 1: start 0
        trouble none unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. 1: start 0
        trouble none unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 8s: it cannot be reached
        wait 8s
        @14s
        .. 1: start 0
        trouble none unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: `srv` has failed too often…
        wait 30s
        @44s
        .. 1: start 0
        started
        >> 1: …"method":"initialize"…
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{}}}}
        !! warn: `srv` is back…
        >> 1: …initialized…
        .. stand
        tick
        >> 1: …"id":2,"method":"tasks/get"…
        "#,
    );
}

/// A repeatable task of Ann's (T2) was interrupted, and waits.
#[track_caller]
fn wait_in_service(settings: &str, scenario: &str) {
    let made = r#"
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: …
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. store 3: working
        stored 3
    "#;
    let scenario = format!("{made}{scenario}").replace("T2", &"02".repeat(32));
    check(&format!("set serve\nset tasks\nset tool x=repeatable:true\n{settings}\n{scenario}"));
}

/// A call that must be made again needs what its client can do.
#[test]
fn a_legacy_call_waits_for_a_session_and_says_so() {
    wait_in_service(
        "",
        r#"
        # Somebody else's session is none of its business.
        post 1 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: …
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=bob session=4 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 3 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        .. 2: start 0
        << 3: 200 with a session events
        << 3: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        started
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 3: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 3: finish
        post 4 principal=ann session=5 {"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"T2"}}
        << 4: 200 events
        << 4: id: 5-0|retry: 1000|data: ||
        << 4: …"status":"working","statusMessage":"outlast was restarted; the call goes on when a session of its client is there again"…
        << 4: finish
        # She goes on without `initialized`, and the server may want it.
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. store 4: working
        >> 2: {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        # If it comes after all, it has been said.
        post 5 principal=ann session=5 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 5: 202
        stored 4
        < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        .. store 5: completed
        "#,
    );
}

/// Its client never sent `initialized`; the server of the session that wakes is told it all the same.
#[test]
fn a_legacy_call_goes_on_with_a_session_that_is_woken() {
    check(
        r#"
        set serve
        set tasks
        set durable
        set tool x=repeatable:true
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        .. store 1: session
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        stored 1
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 2: create
        stored 2
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":7,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0202020202020202020202020202020202020202020202020202020202020202","ttl":90000000}}}||
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        again
        begin
        .. store 1: claim, expire
        stored 1
        .. store 3: working
        stored 3
        post 3 session=1 {"jsonrpc":"2.0","id":8,"method":"ping"}
        .. 1: start 0
        << 3: 200 events
        << 3: id: 2-0|retry: 1000|data: ||
        started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize",…
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"ping"}
        .. store 5: working
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        "#,
    );
}

// In front of one stdio client.

/// A legacy client whose call is a task (T1).
const WRAP: &str = r#"
        HANDSHAKE
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working",…
        >> …"id":2,"method":"tools/call"…
"#;

const HANDSHAKE: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

#[track_caller]
fn wrap(settings: &str, scenario: &str) {
    let ticket = format!("{:02x}", 1).repeat(32);
    let scenario = format!("{WRAP}{scenario}").replace("HANDSHAKE", HANDSHAKE).replace("T1", &ticket);
    check(&format!("set tasks\n{settings}\n{scenario}"));
}

#[test]
fn a_call_that_nothing_can_be_done_for_fails_at_once() {
    wrap(
        "",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        !! warn: server-gone …detail=outlast itself was ended during the call
        .. store 3: failed
        "#,
    );
}

/// Also where a server is never started again, and its handshake would not be needed for that.
#[test]
fn a_repeatable_call_without_a_name_is_made_again() {
    wrap(
        "set tool x=repeatable:true\nset restart never",
        r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        HANDSHAKE
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call",…
        "#,
    );
}

/// Many clients never send `initialized`.
#[test]
fn a_repeatable_call_is_made_again_for_a_client_that_goes_on_without_initialized() {
    wrap(
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
        # That is allowed before it.
        > {"jsonrpc":"2.0","id":2,"method":"ping"}
        >> {"jsonrpc":"2.0","id":2,"method":"ping"}
        > {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call",…
        "#,
    );
}

/// A modern call on a line, in which the server has a task for it (`s-1`).
const LINE: &str = r#"
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << …"taskId":"T1"…
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"s-1","status":"working","pollIntervalMs":1000}}
        .. store 2: working
        stored 2
        again
        begin
        .. store 1: claim, expire
        stored 1
"#;

/// There was no server to tell when the cancel came; it is told when there is one.
#[test]
fn a_cancel_before_the_server_is_there_reaches_it_later() {
    let scenario = r#"
        mailbox T1 cancel
        wait 500ms
        @…
        .. store 3: collect
        stored 3
        .. store 4: cancelled
        stored 4
        > {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        >> {"jsonrpc":"2.0","id":1,…
        >> {"jsonrpc":"2.0","id":2,"method":"tasks/cancel","params":{"taskId":"s-1",META}}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[]}}
        "#;
    let scenario = format!("{LINE}{scenario}").replace("META", META).replace("T1", &"01".repeat(32));
    check(&format!("set tasks\n{scenario}"));
}

/// Where all share one server, anybody's session will do.
#[test]
fn a_shared_server_takes_the_call_of_anybody() {
    wait_in_service(
        "set share all",
        r#"
        post 1 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: …
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=bob session=4 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. store 4: working
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call",…
        "#,
    );
}

/// Its client was told that it is kept for a day and an hour.
#[test]
fn a_call_that_nobody_comes_for_fails_in_the_end() {
    wait_in_service(
        "",
        r#"
        wait 11m
        @…
        !! warn: server-gone …detail=outlast itself was ended during the call, and its client did not come back in time (resume-wait)
        .. store 4: failed
        "#,
    );
}

/// A table that nobody plays is a story.
#[test]
fn every_row_of_the_table_is_played() {
    outlast_testkit::play_table!(
        "../../src/calls/orphaned.rs":
        a_call_is_found_again_by_its_servers_task,
        a_call_is_found_again_by_its_servers_token,
        what_the_server_has_lost_is_made_again_if_that_is_safe,
        what_the_server_has_lost_fails_if_repeating_may_do_harm,
        a_repeatable_call_without_a_name_is_made_again,
        a_call_that_nothing_can_be_done_for_fails_at_once,
    );
}

/// It was claimed, so no other process will take it.
#[test]
fn a_claimed_record_that_cannot_be_read_is_read_again() {
    let before = MODERN.split_once("begin").map_or("", |(before, _)| before);
    let scenario = format!(
        r#"
        {before}
        begin
        .. store 1: claim, expire
        reads fail
        stored 1
        !! warn: could not be read from the store: disk full
        wait 5s
        @30s500ms
        !! warn: could not be read from the store: disk full
        reads now
        wait 5s
        @35s500ms
        .. 1: start 0
        @35s500ms
        >> 1: {{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{{"taskId":"s-1",META}}}}
        "#
    );
    let scenario = scenario.replace("META", META).replace("T1", &"01".repeat(32));
    check(&format!("set serve\nset tasks\n{scenario}"));
}
