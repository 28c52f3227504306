//! Tasks that servers make themselves, at the merged door: they have names of the servers' own, which nobody could tell
//! apart, so outlast follows them in the client's place, and what the client gets is always ours.

use outlast_testkit::script::check;

const TASKS: &str = r#""tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}"#;

/// Two servers, `srv` (1) and `ci` (2), that both run `slow` only as a task of their own, and a session at `/mcp` that
/// has listed. The next attempt is 5.
fn session(settings: &str, offered: &str) -> String {
    format!(
        r#"
    set serve
    {settings}
    set server ci
    post 1 {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    .. 1: start 0
    .. 2: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    server-1 started
    >> 1: {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    server-2 started
    >> 2: {{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    server-1 < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},{TASKS}}}}}}}
    >> 1: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    server-2 < {{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},{TASKS}}}}}}}
    << 1: id: 2-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"capabilities":{{{offered}"logging":{{}},"tools":{{"listChanged":true}}}},…
    << 1: finish
    >> 2: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    post 2 session=1 {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    << 2: 202
    post 3 session=1 {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
    << 3: 200 events
    << 3: id: 3-0|retry: 1000|data: ||
    >> 1: {{"jsonrpc":"2.0","id":3,"method":"tools/list"}}
    >> 2: {{"jsonrpc":"2.0","id":4,"method":"tools/list"}}
    server-1 < {{"jsonrpc":"2.0","id":3,"result":{{"tools":[{{"name":"slow","execution":{{"taskSupport":"required"}}}}]}}}}
    server-2 < {{"jsonrpc":"2.0","id":4,"result":{{"tools":[{{"name":"slow","execution":{{"taskSupport":"required"}}}}]}}}}
    << 3: id: 3-1|data: {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"ci__slow","execution":{{"taskSupport":"required"}}}},{{"name":"srv__slow","execution":{{"taskSupport":"required"}}}}]}}}}||
    << 3: finish
"#
    )
}

/// Both servers call their task `t-1`; each call gets the result of its own.
const BOTH: &str = r#"
    post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"srv__slow"}}
    << 4: 200 events
    << 4: id: 4-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"task":{"ttl":86400000},"name":"slow"}}
    server-1 < {"jsonrpc":"2.0","id":5,"result":{"task":{"taskId":"t-1","status":"working","pollInterval":2000}}}
    post 5 session=1 {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ci__slow"}}
    << 5: 200 events
    << 5: id: 5-0|retry: 1000|data: ||
    >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"task":{"ttl":86400000},"name":"slow"}}
    server-2 < {"jsonrpc":"2.0","id":6,"result":{"task":{"taskId":"t-1","status":"working","pollInterval":9000}}}
    wait 50ms
    # What one says of its task is not said of the other's.
    server-2 < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-1","status":"completed"}}
    wait 100ms
    @…
    >> 2: {"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{"taskId":"t-1"}}
    server-2 < {"jsonrpc":"2.0","id":7,"result":{"taskId":"t-1","status":"completed"}}
    >> 2: {"jsonrpc":"2.0","id":8,"method":"tasks/result","params":{"taskId":"t-1"}}
    server-2 < {"jsonrpc":"2.0","id":8,"result":{"content":[],"of":"ci"}}
    << 5: id: 5-1|data: {"jsonrpc":"2.0","id":4,"result":{"content":[],"of":"ci"}}||
    << 5: finish
    # The other is cancelled: its server is told so of its task, and nobody else.
    post 6 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}
    << 6: 202
    >> 1: {"jsonrpc":"2.0","id":9,"method":"tasks/cancel","params":{"taskId":"t-1"}}
    << 4: finish
"#;

#[test]
fn a_tool_that_runs_only_as_a_task_is_followed_and_two_servers_names_are_told_apart() {
    check(&format!("{}{BOTH}", session("", "")));
    let offered = r#""tasks":{"cancel":{},"requests":{"tools":{"call":{}}}},"#;
    check(&format!("{}{BOTH}", session("set tasks", offered)));
}

/// A client that was promised no tasks gets none, whatever it asks for: nobody could find it again.
#[test]
fn a_wish_for_a_task_that_nobody_keeps_is_left_out() {
    check(&format!(
        "{}{}",
        session("", ""),
        r#"
    post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"srv__slow","task":{"ttl":5}}}
    << 4: 200 events
    << 4: id: 4-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"task":{"ttl":86400000},"name":"slow"}}
    server-1 < {"jsonrpc":"2.0","id":5,"result":{"task":{"taskId":"t-1","status":"completed"}}}
    tick
    >> 1: {"jsonrpc":"2.0","id":6,"method":"tasks/get","params":{"taskId":"t-1"}}
    server-1 < {"jsonrpc":"2.0","id":6,"result":{"taskId":"t-1","status":"completed"}}
    >> 1: {"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":"t-1"}}
    server-1 < {"jsonrpc":"2.0","id":7,"result":{"content":[]}}
    << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"content":[]}}||
    << 4: finish
    # A task that is not followed is nobody's here.
    get 5 session=1
    << 5: 200 events
    << 5: : outlast|retry: 1000||
    server-1 < {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":"t-9","status":"working"}}
    "#
    ));
}

/// A modern client that declares tasks: its server makes one at once, and what the client gets is the answer, or a
/// handle of ours.
#[test]
fn a_modern_servers_task_never_reaches_a_client_under_the_servers_name() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    check(&format!(
        r#"
    set serve
    set server ci
    post 1 version=2026-07-28 method=tools/call name=ci__slow {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ci__slow",{meta}}}}}
    .. 1: start 0
    .. 2: start 0
    >> 1: {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}
    >> 2: {{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{meta}}}}}
    server-1 started
    server-2 started
    server-1 < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[{{"name":"slow"}}],"ttlMs":0}}}}
    server-2 < {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","tools":[{{"name":"slow"}}],"ttlMs":0}}}}
    >> 2: {{"jsonrpc":"2.0","id":3,"method":"tools/call",…
    server-2 < {{"jsonrpc":"2.0","id":3,"result":{{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":100}}}}
    wait 150ms
    @…
    >> 2: {{"jsonrpc":"2.0","id":4,"method":"tasks/get",…
    server-2 < {{"jsonrpc":"2.0","id":4,"result":{{"resultType":"complete","taskId":"t-1","status":"completed","result":{{"content":[],"of":"ci"}}}}}}
    << 1: 200 {{"jsonrpc":"2.0","id":1,"result":{{…"of":"ci"…
    "#
    ));
}

/// With tasks on, the client is told of such a task as soon as its server has made it, under a name of ours.
#[test]
fn a_modern_client_gets_a_handle_as_soon_as_its_server_has_made_a_task() {
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;
    check(&format!(
        r#"
    set serve
    set tasks
    set server ci
    post 1 version=2026-07-28 method=tools/call name=ci__slow {{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ci__slow",{meta}}}}}
    .. 1: start 0
    .. 2: start 0
    >> 1: {{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{{{meta}}}}}
    >> 2: {{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{{{meta}}}}}
    server-1 started
    server-2 started
    server-1 < {{"jsonrpc":"2.0","id":1,"result":{{"resultType":"complete","tools":[{{"name":"slow"}}],"ttlMs":0}}}}
    server-2 < {{"jsonrpc":"2.0","id":2,"result":{{"resultType":"complete","tools":[{{"name":"slow"}}],"ttlMs":0}}}}
    >> 2: {{"jsonrpc":"2.0","id":3,"method":"tools/call",…
    server-2 < {{"jsonrpc":"2.0","id":3,"result":{{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":5000}}}}
    tick
    .. store 1: create
    stored 1
    .. store 2: working
    << 1: 200 {{"jsonrpc":"2.0","id":1,"result":{{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollIntervalMs":500,"resultType":"task","status":"working","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttlMs":90000000}}}}
    "#
    ));
}

/// A session at the server's own address has the server's own tasks, also where it shares the process with one at the
/// merged door: each sees what it would see alone.
#[test]
fn one_process_has_its_own_tasks_at_its_own_address_and_ours_at_the_merged_door() {
    check(&format!(
        r#"
    set serve
    set tasks
    set share all
    set server ci
    post 1 {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    .. 1: start 0
    .. 2: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    server-1 started
    >> 1: {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    server-2 started
    >> 2: {{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    server-1 < {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},{TASKS}}}}}}}
    >> 1: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    server-2 < {{"jsonrpc":"2.0","id":2,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}}}}}}}}
    << 1: id: 2-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"capabilities":{{{TASKS},"logging"…
    << 1: finish
    >> 2: {{"jsonrpc":"2.0","method":"notifications/initialized"}}
    post 2 server=srv {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
    << 2: 200 with a session events
    << 2: id: 4-0|retry: 1000|data: ||
    << 2: id: 4-1|data: {{"jsonrpc":"2.0","id":1,"result":{{"protocolVersion":"2025-11-25","capabilities":{{"tools":{{}},{TASKS}}}}}}}||
    << 2: finish
    "#
    ));
}
