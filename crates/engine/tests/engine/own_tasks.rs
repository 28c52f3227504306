//! Servers that have tasks of their own: for clients with tasks they are passed through, for clients
//! without we run them.

use outlast_testkit::script::check;

/// A client that knows no tasks, and a server that runs `slow` only as one. The next attempt is 3.
const LEGACY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"fast","execution":{"taskSupport":"optional"}},{"name":"slow","execution":{"taskSupport":"required"}}]}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"fast","execution":{"taskSupport":"optional"}},{"name":"slow","execution":{"taskSupport":"required"}}]}}
"#;

#[track_caller]
fn legacy(settings: &str, scenario: &str) {
    check(&format!("{settings}\n{LEGACY}\n{scenario}"));
}

/// The server has made a task of call 3; the next attempt is 4.
const RUNNING: &str = r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"n":1.0},"_meta":{"progressToken":"p"}}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"task":{"ttl":86400000},"name":"slow","arguments":{"n":1.0},"_meta":{"progressToken":3}}}
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working","createdAt":"c","lastUpdatedAt":"1","ttl":1,"pollInterval":2000}}}
"#;

#[track_caller]
fn running(settings: &str, scenario: &str) {
    legacy(settings, &format!("{RUNNING}\n{scenario}"));
}

#[test]
fn a_tool_that_needs_a_task_works_for_a_client_without_tasks() {
    running(
        "",
        r#"
        wait 2s200ms
        @…
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"working","createdAt":"c","lastUpdatedAt":"1","ttl":1,"pollInterval":5000}}
        # Not before the server wishes.
        wait 4s999ms
        wait 501ms
        @…
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/get",…
        < {"jsonrpc":"2.0","id":5,"result":{"taskId":"t-1","status":"completed","createdAt":"c","lastUpdatedAt":"2","ttl":1}}
        >> {"jsonrpc":"2.0","id":6,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":6,"result":{"content":[],"n":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[],"n":1.0,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        wait 10m
        "#,
    );
}

#[test]
fn the_client_is_kept_patient_and_sees_the_progress_of_the_task() {
    running(
        "",
        r#"
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":5}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":5}}
        wait 10s
        @…
        >> …tasks/get…
        @10s
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":…
        "#,
    );
}

#[test]
fn a_server_that_was_not_asked_for_its_tools_says_that_one_needs_a_task() {
    let scenario = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"task required"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"task":{"ttl":86400000},"name":"slow"}}
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"completed"}}}
        tick
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"failed"}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":5,"error":{"code":-5,"message":"no"}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"no"}}
        # From now on it is known.
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow"}}
        >> {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"task":{"ttl":86400000},"name":"slow"}}
        # One that ignores the wish answers as always.
        < {"jsonrpc":"2.0","id":6,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        # A tool that is not there is not there.
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"none"}}
        >> {"jsonrpc":"2.0","id":7,…
        < {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no such tool"}}
        >> {"jsonrpc":"2.0","id":8,…"task":{"ttl":86400000}…
        < {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no such tool"}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no such tool"}}
        "#;
    check(scenario);
}

#[test]
fn a_tool_that_only_may_be_a_task_is_called_plainly() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fast"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"fast"}}
        # What looks like a task and was not asked for is the tool's own business.
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"x","status":"working"}}}
        << {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"x","status":"working"}}}
        "#,
    );
}

#[test]
fn a_notification_only_hastens_the_next_question() {
    running(
        "",
        r#"
        wait 50ms
        < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
        # A flood of them makes no flood of questions.
        < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
        wait 50ms
        @100ms
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get",…
        < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"working","pollInterval":2000}}
        wait 1s
        # That of a task that is not ours to follow is for the client.
        < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-2","status":"completed"}}
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-2","status":"completed"}}
        "#,
    );
}

#[test]
fn a_cancel_of_the_client_cancels_the_task() {
    running(
        "",
        r#"
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/cancel","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"cancelled"}}
        # Late words.
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":6}}
        wait 1h
        "#,
    );
}

#[test]
fn a_limit_cancels_the_task_and_only_its_changes_move_it() {
    running(
        "set timeout 5s",
        r#"
        wait 3s
        @…
        >> …"id":4,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"working","lastUpdatedAt":"2","pollInterval":2000}}
        wait 3s
        @…
        >> …"id":5,"method":"tasks/get"…
        # The same as before: the server is there, and its task shows nothing.
        < {"jsonrpc":"2.0","id":5,"result":{"taskId":"t-1","status":"working","lastUpdatedAt":"2","pollInterval":60000}}
        wait 2s
        @8s
        !! warn: timeout …state=the server was told to cancel it
        >> {"jsonrpc":"2.0","id":6,"method":"tasks/cancel",…
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32001,…
        "#,
    );
}

#[test]
fn a_lost_task_is_a_clear_error() {
    running(
        "",
        r#"
        wait 3s
        @…
        >> …tasks/get…
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"message":"unknown task"}}
        !! warn: server-gone …
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31002,"message":"server `srv` went away (its task for this call is lost) before it answered `slow`. The call may have run.",…
        "#,
    );
}

#[test]
fn another_error_is_only_a_reason_to_ask_again() {
    running(
        "set keep-alive 1h",
        r#"
        wait 3s
        @…
        >> …"id":4,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":4,"error":{"code":-32603,"message":"busy"}}
        wait 3s
        @…
        >> …"id":5,"method":"tasks/get"…
        # No answer at all: once more after a minute.
        wait 61s
        @…
        >> …"id":6,"method":"tasks/get"…
        "#,
    );
}

#[test]
fn what_a_task_asks_reaches_the_client() {
    running(
        "",
        r#"
        wait 3s
        @…
        >> …"id":4,"method":"tasks/get"…
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"input_required","pollInterval":60000}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        << {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"message":"sure?","_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        > {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        >> {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        < {"jsonrpc":"2.0","id":5,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        wait 10m
        "#,
    );
}

#[test]
fn after_a_crash_of_the_server_the_same_task_is_asked_for() {
    running(
        "set restart on-crash\nset keep-alive 1h",
        r#"
        exited 1
        output-closed
        !! warn: `srv` ended: exit status 1
        !! warn: restarting `srv` in 357ms: it ended
        wait 1s
        @…
        .. start 1
        started
        >> {"jsonrpc":"2.0","id":4,"method":"initialize",…
        < {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        !! warn: `srv` is back…
        >> …notifications/initialized…
        >> …"id":5,"method":"tools/list"}
        tick
        >> {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":6,"result":{"taskId":"t-1","status":"completed"}}
        >> {"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_task_of_the_server_is_passed_through() {
    legacy(
        "set tasks",
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","task":{"ttl":5},"_meta":{"progressToken":"p"}}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","task":{"ttl":5},"_meta":{"progressToken":3}}}
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}
        << {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working"}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"t-1"}}
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        << {"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        > {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        >> {"jsonrpc":"2.0","id":1,"result":{"action":"accept"}}
        < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
        # However long it takes: a wait has no limit of its own.
        wait 3h
        < {"jsonrpc":"2.0","id":4,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        << {"jsonrpc":"2.0","id":4,"result":{"content":[],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t-1"}}}}
        > {"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"taskId":"t-1"}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/cancel","params":{"taskId":"t-1"}}
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;

/// The same with tasks declared.
const WITH: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}"#;

const REFUSED: &str = r#""error":{"code":-32021,"message":"m","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}"#;

#[track_caller]
fn modern(settings: &str, scenario: &str) {
    let scenario = scenario.replace("META", META).replace("WITH", WITH).replace("REFUSED", REFUSED);
    check(&format!("{settings}\n{scenario}"));
}

#[test]
fn a_modern_server_that_insists_on_tasks_serves_a_client_without() {
    modern(
        "",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        >> {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        < {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}
        > {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"slow",META}}
        >> {"jsonrpc":"2.0","id":"2",…
        < {"jsonrpc":"2.0","id":"2",REFUSED}
        >> {"jsonrpc":"2.0","id":"3","method":"tools/call","params":{"name":"slow","_meta":{"progressToken":3,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}}}
        < {"jsonrpc":"2.0","id":"3","result":{"resultType":"task","taskId":"t-1","status":"working","createdAt":"c","lastUpdatedAt":"1","ttlMs":null,"pollIntervalMs":3000}}
        wait 3s300ms
        @…
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1",WITH}}
        < {"jsonrpc":"2.0","id":4,"result":{"resultType":"complete","taskId":"t-1","status":"completed","createdAt":"c","lastUpdatedAt":"2","ttlMs":null,"result":{"resultType":"complete","content":[],"n":1.0}}}
        << {"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[],"n":1.0}}
        # Known from now on; and an error is an error.
        > {"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"slow",META}}
        >> {"jsonrpc":"2.0","id":"5",…io.modelcontextprotocol/tasks…
        < {"jsonrpc":"2.0","id":"5","result":{"resultType":"task","taskId":"t-2","status":"failed","error":{"code":-7,"message":"no"}}}
        tick
        >> {"jsonrpc":"2.0","id":6,"method":"tasks/get",…
        < {"jsonrpc":"2.0","id":6,"result":{"taskId":"t-2","status":"failed","error":{"code":-7,"message":"no"}}}
        << {"jsonrpc":"2.0","id":"b","error":{"code":-7,"message":"no"}}
        # What its client cancels is cancelled there.
        > {"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"slow",META}}
        >> {"jsonrpc":"2.0","id":"7",…
        < {"jsonrpc":"2.0","id":"7","result":{"resultType":"task","taskId":"t-3","status":"working"}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"c"}}
        >> {"jsonrpc":"2.0","id":8,"method":"tasks/cancel","params":{"taskId":"t-3",WITH}}
        "#,
    );
}

#[test]
fn what_a_modern_task_asks_is_asked_in_the_way_that_its_client_knows() {
    modern(
        "set http",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",META}}
        >> post […] …
        trouble 1 status 400 {"jsonrpc":"2.0","id":1,REFUSED}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: slow] {"jsonrpc":"2.0","id":2,…
        <~2 {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t-1","status":"input_required"}}
        tick
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tasks/get, mcp-name: t-1] {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"t-1",WITH}}
        <~3 {"jsonrpc":"2.0","id":3,"result":{"taskId":"t-1","status":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"sure?"}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"elicitation/create","params":{"message":"sure?"}}},"requestState":"dev.outlast/task:t-1"}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow",META,"inputResponses":{"k":{"action":"accept"}},"requestState":"dev.outlast/task:t-1"}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tasks/update, mcp-name: t-1] {"jsonrpc":"2.0","id":4,"method":"tasks/update","params":{"taskId":"t-1","inputResponses":{"k":{"action":"accept"}},WITH}}
        wait 2s
        @…
        >> post […] {"jsonrpc":"2.0","id":5,"method":"tasks/get",…
        # The server needs a moment to see the answer.
        <~5 {"jsonrpc":"2.0","id":5,"result":{"taskId":"t-1","status":"input_required","inputRequests":{"k":{"method":"elicitation/create"}}}}
        wait 2s
        @…
        >> post […] {"jsonrpc":"2.0","id":6,"method":"tasks/get",…
        <~6 {"jsonrpc":"2.0","id":6,"result":{"taskId":"t-1","status":"completed","result":{"content":[]}}}
        << {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}
        "#,
    );
}

#[test]
fn a_broken_question_over_http_is_put_again() {
    modern(
        "set http\nset keep-alive 1h",
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow",META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: slow] {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}
        trouble 1 status 400 {"jsonrpc":"2.0","id":1,REFUSED}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: slow] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}}}
        <~2 {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":1000}}
        # The stream that made the task is over, and means nothing any more.
        stream-ended 2
        wait 1s100ms
        @…
        >> …"id":3,"method":"tasks/get"…
        trouble 3 broken reset
        wait 1s100ms
        @…
        >> …"id":4,"method":"tasks/get"…
        trouble 4 status 503
        wait 1s100ms
        @…
        >> …"id":5,"method":"tasks/get"…
        trouble 5 unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @…
        .. start 0
        started
        !! warn: `srv` is back…
        tick
        >> …"id":6,"method":"tasks/get"…
        <~6 {"jsonrpc":"2.0","id":6,"result":{"taskId":"t-1","status":"completed","result":{"content":[]}}}
        << {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        "#,
    );
}

/// A server that nobody asked what it can do makes a task of a call that is one of ours already.
#[test]
fn a_task_of_ours_is_answered_by_that_of_its_server() {
    modern(
        "set serve\nset tasks",
        r#"
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",WITH}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"elicitation":{}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: …"taskId":"0101…
        << 1: finish
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"task","taskId":"s-1","status":"working","pollIntervalMs":1000}}
        .. store 2: working
        stored 2
        wait 1s100ms
        @…
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"s-1",WITH}}
        < {"jsonrpc":"2.0","id":2,"result":{"taskId":"s-1","status":"completed","result":{"content":[]}}}
        .. store 3: completed
        stored 3
        "#,
    );
}

/// Two sessions share a remote server and both have a call open: the stream says whom a question is for.
#[test]
fn what_a_remote_task_asks_reaches_the_session_that_made_it() {
    check(
        r#"
        set serve
        set http
        set share all
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}||
        << 2: finish
        post 3 session=2 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"other"}}
        << 3: 200 events
        << 3: id: 5-0|retry: 1000|data: ||
        >> 1: …"id":2…
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        >> 1: …"id":3…
        <~3 {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"task required"}}
        >> 1: …"id":4…"task":{…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"task":{"taskId":"t-1","status":"input_required"}}}
        tick
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"t-1"}}
        <~5 {"jsonrpc":"2.0","id":5,"result":{"taskId":"t-1","status":"input_required","pollInterval":60000}}
        >> 1: …"id":6,"method":"tasks/result"…
        <~6 {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        << 4: …"method":"elicitation/create"…
        <~6 {"jsonrpc":"2.0","id":6,"result":{"content":[]}}
        << 4: …"id":2,"result":{"content":[]}…
        << 4: finish
        "#,
    );
}

/// The ticket of the first hand-off.
const T1: &str = "01010101010101010101010101010101";

/// A call that its server runs as `t-1` and whose client gives up after 60 seconds. It is handed off under T1; the
/// next attempt is 4.
const HANDED_OFF: &str = r#"
        set client-cap 60s
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow","arguments":{"n":1.0}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow","arguments":{"n":1.0}}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32601,"message":"task required"}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{…"task":{"ttl":86400000}…
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working","pollInterval":60000}}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        .. store 2: working
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"dev.outlast/ticket":"T1"…
        stored 2
"#;

#[test]
fn a_call_that_is_a_task_of_its_server_is_handed_off_too() {
    let scenario = r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_wait","arguments":{"ticket":"T1"}}}
        wait 15s
        @…
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"completed"}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":5,"result":{"content":[],"n":1.0}}
        .. store 3: completed
        stored 3
        << {"jsonrpc":"2.0","id":3,"result":{"content":[],"n":1.0}}
        "#;
    check(&format!("{HANDED_OFF}{scenario}").replace("T1", T1));
}

/// What is stored is the call as its client sent it.
#[test]
fn a_task_that_was_handed_off_and_is_lost_is_called_again_as_its_client_called_it() {
    let scenario = r#"
        again
        begin
        .. store 1: claim, expire
        stored 1
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        tick
        >> {"jsonrpc":"2.0","id":2,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"no such task"}}
        .. store 3: working
        !! info: `tools/call` is sent to `srv` again (attempt 2): its server knows nothing of it any more
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"slow","arguments":{"n":1.0}}}
        "#;
    let scenario = format!("set tool slow=repeatable:true\n{HANDED_OFF}{scenario}");
    check(&scenario.replace("T1", T1));
}

#[test]
fn a_modern_call_that_is_a_task_of_its_server_is_handed_off_too() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let scenario = r#"
        set client-cap 60s
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"slow","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"no","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call"…"extensions":{"io.modelcontextprotocol/tasks":{}}…
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":60000}}
        wait 55s
        @55s
        .. store 1: create
        stored 1
        .. store 2: working
        << {"jsonrpc":"2.0","id":2,"result":{"_meta":{"dev.outlast/ticket":"T1"…
        stored 2
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"outlast_cancel","arguments":{"ticket":"T1"},META}}
        .. store 3: cancelled
        >> {"jsonrpc":"2.0","id":3,"method":"tasks/cancel","params":{"taskId":"t-1",…
        stored 3
        << {"jsonrpc":"2.0","id":3,"result":{…is cancelled…
        "#;
    check(&scenario.replace("T1", T1).replace("META", meta));
}

/// A modern client need not ask a server what it can do, so its tasks may come as a surprise.
#[test]
fn a_task_of_a_server_that_was_not_asked_what_it_can_do_is_left_to_it() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    let scenario = r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        wait 10s
        @10s
        .. store 1: create
        stored 1
        << …"resultType":"task"…"taskId":"T1T1"…
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y",META}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y","_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"s-1","status":"working"}}
        << {"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"s-1","status":"working"}}
        > {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"s-1",META}}
        >> {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"s-1",META}}
        # What was ours stays ours.
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"T1T1",META}}
        << {"jsonrpc":"2.0","id":4,"result":{…"status":"working","taskId":"T1T1"…
        "#;
    check(&scenario.replace("T1", T1).replace("META", meta));
}

#[test]
fn a_result_of_a_servers_task_that_is_too_long_fails_the_call() {
    check(
        r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"fast","execution":{"taskSupport":"optional"}},{"name":"slow","execution":{"taskSupport":"required"}}]}}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"fast","execution":{"taskSupport":"optional"}},{"name":"slow","execution":{"taskSupport":"required"}}]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"slow","arguments":{"n":1.0},"_meta":{"progressToken":"p"}}}
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"task":{"ttl":86400000},"name":"slow","arguments":{"n":1.0},"_meta":{"progressToken":3}}}
        < {"jsonrpc":"2.0","id":3,"result":{"task":{"taskId":"t-1","status":"working","createdAt":"c","lastUpdatedAt":"1","ttl":1,"pollInterval":2000}}}
        wait 2s200ms
        @2s176ms
        >> {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}}
        < {"jsonrpc":"2.0","id":4,"result":{"taskId":"t-1","status":"completed","createdAt":"c","lastUpdatedAt":"2","ttl":1}}
        >> {"jsonrpc":"2.0","id":5,"method":"tasks/result","params":{"taskId":"t-1"}}
        server-oversized 5 answer
        !! warn: message-too-large server=srv method=tools/call tool=slow elapsed=2s200ms state=the server goes on with it detail=the answer is longer than 67108864 bytes
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31011,"message":"`slow`: the answer is longer than 67108864 bytes (max-message). Raise it with --max-message, or ask for less.","data":{"outlast":{"kind":"message-too-large","server":"srv","method":"tools/call","tool":"slow","elapsedMs":2200,"attempts":1,"serverState":"running","retry":"pointless","signs":{"lastSignMs":0},"help":"outlast help -31011"}}}}
        wait 10m
        "#,
    );
}
