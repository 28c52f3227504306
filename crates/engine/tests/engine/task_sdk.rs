//! Tasks with whole messages, as the SDKs of real clients and servers send them.
//!
//! The other scenarios say no more than they need; these can be held against the protocol's schemas
//! (`cargo xtask schema`), edits and all.

use outlast_testkit::script::check;

/// The handles of the first and second task.
const T1: &str = "0101010101010101010101010101010101010101010101010101010101010101";
const T2: &str = "0202020202020202020202020202020202020202020202020202020202020202";

/// A stdio client of 2025-11-25 whose handshake is over; the next attempt is 2.
const LEGACY: &str = r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"c","version":"1"}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
        << …"capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}…
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

#[track_caller]
fn legacy(scenario: &str) {
    check(&format!("{LEGACY}\n{scenario}").replace("T1", T1).replace("T2", T2));
}

/// A `ttl` that would throw away work is not the one that is kept.
#[test]
fn a_ten_minute_call_with_a_ttl_of_a_minute_yields_its_result() {
    legacy(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"build","task":{"ttl":60000}}}
        .. store 1: create
        stored 1
        << …"status":"working","taskId":"T1","ttl":90000000}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"build"}}
        wait 2m
        > {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"T1"}}
        << …"status":"working"…
        wait 8m
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"built"}]}}
        .. store 2: completed
        stored 2
        << …"status":"completed"…
        wait 5m
        > {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"T1"}}
        << {"jsonrpc":"2.0","id":4,"result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T1"}},"content":[{"type":"text","text":"built"}]}}
        "#,
    );
}

#[test]
fn a_legacy_client_sees_tasks_of_a_server_that_has_none() {
    legacy(
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}}
        << …{"execution":{"taskSupport":"optional"},"name":"a",…
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{},"task":{},"_meta":{"progressToken":"p"}}}
        .. store 1: create
        stored 1
        << …"status":"working"…
        >> {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a","arguments":{},"_meta":{"progressToken":3}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":3,"progress":1,"total":2}}
        << …"progressToken":"p","progress":1…
        > {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"T1"}}
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"mode":"form","message":"sure?","requestedSchema":{"type":"object","properties":{}}}}
        << …"method":"elicitation/create"…"io.modelcontextprotocol/related-task":{"taskId":"T1"}…
        .. store 2: input_required
        stored 2
        << …"status":"input_required"…
        > {"jsonrpc":"2.0","id":"1","result":{"action":"accept","content":{}}}
        .. store 3: working
        >> {"jsonrpc":"2.0","id":"q","result":{"action":"accept","content":{}}}
        stored 3
        << …"status":"working"…
        < {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        .. store 4: completed
        stored 4
        << …"status":"completed"…
        << …"id":4,"result":{…
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a","task":{}}}
        .. store 5: create
        stored 5
        << …"taskId":"T2"…
        >> {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"a"}}
        > {"jsonrpc":"2.0","id":6,"method":"tasks/list"}
        << …{"tasks":[{…"taskId":"T2"…},{…"taskId":"T1"…}]}}
        > {"jsonrpc":"2.0","id":7,"method":"tasks/cancel","params":{"taskId":"T2"}}
        .. store 7: cancelled
        >> …"method":"notifications/cancelled"…
        stored 7
        << …"status":"cancelled"…
        << …"id":7,"result":{…"status":"cancelled"…
        > {"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"T2"}}
        << …"id":8,"result":{…"status":"cancelled"…
        > {"jsonrpc":"2.0","id":9,"method":"tasks/get","params":{"taskId":"none"}}
        << …"id":9,"error":{"code":-32602…
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

#[track_caller]
fn modern(scenario: &str) {
    let scenario = scenario.replace("T1", T1).replace("META", META);
    check(&format!("set serve\nset tasks\n{scenario}"));
}

#[test]
fn a_modern_client_finds_the_extension_before_a_server_that_has_none() {
    modern(
        r#"
        post 1 version=2026-07-28 method=server/discover {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"server/discover","params":{META}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","version":"1"}}}}
        << 1: 200 …"capabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}},"tools":{}}…
        "#,
    );
}

/// A call that becomes a task after ten seconds, over exchange 1.
const SLOW: &str = r#"
        post 1 version=2026-07-28 method=tools/call name=a {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"a",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: data: …"resultType":"task","status":"working"…
        << 1: finish
"#;

#[test]
fn a_modern_client_polls_and_updates_a_task() {
    modern(&format!(
        "{SLOW}\n{}",
        r#"
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 2: 200 …"status":"working"…
        post 3 version=2026-07-28 method=tasks/update name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/update","params":{"taskId":"T1","inputResponses":{},META}}
        << 3: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete"}}
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}
        .. store 2: completed
        stored 2
        post 4 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 4: 200 …"status":"completed"…"result":{"resultType":"complete","content":[{"type":"text","text":"done"}]}}}
        post 5 version=2026-07-28 method=tools/call name=a {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a",META}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28",…
        < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}
        << 5: 200 …"content":[]}}
        "#
    ));
}

#[test]
fn a_modern_task_fails_with_the_error_of_its_server() {
    modern(&format!(
        "{SLOW}\n{}",
        r#"
        < {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"broken"}}
        .. store 2: failed
        stored 2
        post 2 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 2: 200 …"status":"failed"…"error":{"code":-32603,"message":"broken"}}}
        "#
    ));
}

#[test]
fn a_modern_task_is_cancelled_and_stays_so() {
    modern(&format!(
        "{SLOW}\n{}",
        r#"
        post 2 version=2026-07-28 method=tasks/cancel name=T1 {"jsonrpc":"2.0","id":6,"method":"tasks/cancel","params":{"taskId":"T1",META}}
        .. store 2: cancelled
        >> 1: …"method":"notifications/cancelled"…
        stored 2
        << 2: 200 {"jsonrpc":"2.0","id":6,"result":{"resultType":"complete"}}
        post 3 version=2026-07-28 method=tasks/get name=T1 {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 3: 200 …"status":"cancelled"…
        post 4 version=2026-07-28 method=tasks/get name=other {"jsonrpc":"2.0","id":8,"method":"tasks/get","params":{"taskId":"T1",META}}
        << 4: 400 …"code":-32020…
        "#
    ));
}
