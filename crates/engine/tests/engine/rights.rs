//! What somebody with a token may use: its servers and its tools, at both doors.

use outlast_testkit::script::check;

const MODERN: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Two servers, `srv` (1) and `ci` (2); `bob` has one of them and two of its tools.
const SERVERS: &str = r#"
    set serve
    set server ci
    set rights bob servers=c? tools=run_*,ci__status
"#;

#[track_caller]
fn with_servers(scenario: &str) {
    check(&format!("{SERVERS}\n{scenario}").replace("MODERN", MODERN));
}

#[test]
fn the_merged_door_shows_the_servers_and_tools_of_a_token() {
    with_servers(
        r#"
        post 1 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << 1: …"protocolVersion":"2025-11-25"…
        << 1: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 2 principal=bob session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"run_a"},{"name":"status"},{"name":"wipe"}]}}
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run_a"},{"name":"ci__status"}]}}||
        << 2: finish
        post 3 principal=bob session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ci__wipe"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        !! warn: not-allowed server=ci method=tools/call tool=wipe elapsed=0s state=it never reached the server detail=`wipe` of server `ci` is not for this token ([tokens.bob])
        << 3: …"code":-31020,"message":"`wipe` of server `ci` is not for this token ([tokens.bob]). Use a tool that `tools/list` names, or ask whoever runs outlast to allow it.",…"retry":"pointless"…
        << 3: finish
        post 4 principal=bob session=1 {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ci__status"}}
        << 4: 200 events
        << 4: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"status"}}
        "#,
    );
}

#[test]
fn the_door_of_a_server_shows_the_tools_of_a_token() {
    with_servers(
        r#"
        post 1 principal=bob server=ci version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"wipe"},{ "name" : "run_a", "x":1.0}],"ttlMs":0}}
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{ "name" : "run_a", "x":1.0}],"ttlMs":0}}
        post 2 principal=bob server=ci version=2026-07-28 method=tools/call name=wipe {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{MODERN,"name":"wipe"}}
        !! warn: not-allowed server=ci method=tools/call tool=wipe elapsed=0s state=it never reached the server detail=`wipe` of server `ci` is not for this token ([tokens.bob])
        << 2: 200 …"kind":"not-allowed"…
        # Whoever nothing is written of may use everything.
        post 3 principal=ann server=ci version=2026-07-28 method=tools/call name=wipe {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{MODERN,"name":"wipe"}}
        .. 2: start 0
        >> 2: …"name":"wipe"}}
        "#,
    );
}

/// It must not be told from one that does not exist.
#[test]
fn a_server_that_is_not_for_a_token_is_not_there() {
    with_servers(
        r#"
        post 1 principal=bob server=srv version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        << 1: 404 …"code":-32000,"message":"Not Found: no server of this name is served here"…
        post 2 principal=bob server=nope version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        << 2: 404 …"code":-32000,"message":"Not Found: no server of this name is served here"…
        "#,
    );
    check(
        &r#"
        set serve
        set server ci
        set rights eve servers=nothing
        post 1 principal=eve version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        << 1: 404 …"message":"Not Found: no server of this name is served here"…
        "#
        .replace("MODERN", MODERN),
    );
}

// Tools that are for nobody: `tools.deny` of a server.

#[test]
fn a_denied_tool_is_not_there_at_the_door_of_its_server() {
    check(
        &r#"
        set serve
        set server ci
        set exposure ci deny wipe*
        post 1 server=ci version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{MODERN}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"wipe_all"},{ "name" : "run", "x":1.0}],"ttlMs":0}}
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{ "name" : "run", "x":1.0}],"ttlMs":0}}
        post 2 server=ci version=2026-07-28 method=tools/call name=wipe_all {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{MODERN,"name":"wipe_all"}}
        !! warn: not-allowed server=ci method=tools/call tool=wipe_all …
        << 2: 200 …"code":-31020,"message":"`wipe_all` of server `ci` is not among its tools here (tools.allow and tools.deny, …). Use a tool that `tools/list` names, or ask whoever runs outlast to allow it."…
        # Of the other server nothing is denied.
        post 3 server=srv version=2026-07-28 method=tools/call name=wipe_all {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{MODERN,"name":"wipe_all"}}
        .. 2: start 0
        >> 2: …"name":"wipe_all"}}
        "#
        .replace("MODERN", MODERN),
    );
}

#[test]
fn a_denied_tool_of_the_only_server_is_not_there() {
    check(
        r#"
        set exposure srv deny wipe
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        >> {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        < {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"wipe"},{"name":"run"}]}}
        << {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"run"}]}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wipe"}}
        !! warn: not-allowed server=srv method=tools/call tool=wipe …
        << {"jsonrpc":"2.0","id":2,"error":{"code":-31020,…}}
        "#,
    );
}

// Tokens that are taken back.

#[test]
fn what_a_principal_has_open_ends_with_its_token() {
    with_servers(
        r#"
        post 1 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << 1: …"protocolVersion":"2025-11-25"…
        << 1: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        get 2 principal=bob session=1
        << 2: 200 events
        << 2: : outlast|retry: 1000||
        post 3 principal=ann server=srv version=2026-07-28 method=tools/call name=run {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{MODERN,"name":"run"}}
        .. 2: start 0
        >> 2: …"name":"run"}}
        server-2 started
        reload srv ci -bob
        !! info: the file was read again; tokens that are gone or for something else: bob
        << 2: finish
        .. 1: close-input
        post 4 principal=bob session=1 {"jsonrpc":"2.0","id":3,"method":"ping"}
        << 4: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; begin with initialize"}}
        # Nobody else notices.
        server-2 < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << 3: 200 {"jsonrpc":"2.0","id":3,"result":{"content":[]}}
        "#,
    );
}
