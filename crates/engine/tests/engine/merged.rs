//! The merged door: one endpoint in the place of several servers.

use outlast_testkit::script::{World, check};

/// Two servers, `srv` (1) and `ci` (2), and a session at `/mcp` whose handshake is over.
const SESSION: &str = r###"
    set serve
    set server ci
    post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
    .. 1: start 0
    .. 2: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
    server-2 started
    >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"instructions":"Mind the gap."}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true},"prompts":{}}}}
    << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"instructions":"## srv\nMind the gap.","protocolVersion":"2025-11-25","serverInfo":{"name":"outlast","version":"…"}}}||
    << 1: finish
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
    << 2: 202
"###;

/// The same, and the tools of both servers are known.
const LISTED: &str = r#"
    post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
    << 3: 200 events
    << 3: id: 3-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
    >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"run","x":1.0}]}}
    server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{ "name" : "run" },{"name":"odd name"}]}}
    << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"ci__run","x":1.0},{ "name" : "srv__run" },{"name":"srv__odd_name_…"}]}}||
    << 3: finish
"#;

#[track_caller]
fn in_session(scenario: &str) {
    check(&format!("{SESSION}\n{scenario}"));
}

#[track_caller]
fn with_lists(scenario: &str) {
    check(&format!("{SESSION}\n{LISTED}\n{scenario}"));
}

#[test]
fn lists_are_joined_and_calls_go_to_the_server_that_has_the_tool() {
    with_lists(
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"ci__run","arguments":{"n":1.0},"_meta":{"progressToken":"p"}}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":"5","method":"tools/call","params":{"name":"run","arguments":{"n":1.0},"_meta":{"progressToken":5}}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}
        << 4: id: 4-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}||
        server-1 < {"jsonrpc":"2.0","id":"5","result":{"forged":true}}
        !! info: `srv` answered unknown id 5; dropped
        server-2 < {"jsonrpc":"2.0","id":"5","result":{"content":[]}}
        << 4: id: 4-2|data: {"jsonrpc":"2.0","id":"a","result":{"content":[]}}||
        << 4: finish
        "#,
    );
}

#[test]
fn a_cancel_reaches_the_one_server_that_has_the_call() {
    with_lists(
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"srv__run"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"run"}}
        post 5 session=1 {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}
        << 5: 202
        << 4: finish
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}
        "#,
    );
}

#[test]
fn what_nobody_has_is_said_at_once() {
    with_lists(
        r#"
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"run"}}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: run; no server behind this address has it now"}}||
        << 4: finish
        "#,
    );
}

#[test]
fn a_slow_server_does_not_hold_a_list_up() {
    in_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"a"}]}}
        wait 4s
        @4s
        !! warn: `ci` did not list within 4s (list-wait); it is left out until it does
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"srv__a"}]}}||
        << 3: finish
        # Nobody waits for it again.
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"srv__a"}]}}||
        << 4: finish
        get 5 session=1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        # When it comes, the client is told, once.
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"b"}]}}
        << 5: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        post 6 session=1 {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        << 6: 200 events
        << 6: id: 5-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/list"}
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"c"}]}}
        << 6: id: 5-1|data: {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"ci__c"},{"name":"srv__a"}]}}||
        << 6: finish
        "#,
    );
}

#[test]
fn a_list_that_never_ends_is_ended() {
    in_session(
        r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"prompts/list"}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":3,"method":"prompts/list"}
        server-2 < {"jsonrpc":"2.0","id":3,"result":{"prompts":[{"name":"a"}],"nextCursor":"x"}}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"prompts/list","params":{"cursor":"x"}}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"prompts":[{"name":"b"}],"nextCursor":"x"}}
        !! warn: `ci`: prompts/list ends early: its cursor repeats
        << 3: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"prompts":[{"name":"ci__a"},{"name":"ci__b"}]}}||
        << 3: finish
        "#,
    );
}

#[test]
fn two_servers_that_ask_under_one_id_get_their_own_answers() {
    with_lists(
        r#"
        get 4 session=1
        << 4: 200 events
        << 4: : outlast|retry: 1000||
        server-1 < {"jsonrpc":"2.0","id":9,"method":"roots/list"}
        << 4: id: 1-1|data: {"jsonrpc":"2.0","id":1,"method":"roots/list"}||
        server-2 < {"jsonrpc":"2.0","id":9,"method":"roots/list"}
        << 4: id: 1-2|data: {"jsonrpc":"2.0","id":2,"method":"roots/list"}||
        post 5 session=1 {"jsonrpc":"2.0","id":2,"result":{"roots":[]}}
        << 5: 202
        >> 2: {"jsonrpc":"2.0","id":9,"result":{"roots":[]}}
        post 6 session=1 {"jsonrpc":"2.0","id":1,"result":{"roots":[1]}}
        << 6: 202
        >> 1: {"jsonrpc":"2.0","id":9,"result":{"roots":[1]}}
        "#,
    );
}

#[test]
fn a_dead_server_fails_no_list_and_comes_back_by_itself() {
    with_lists(
        r#"
        server-2 exited 1
        server-2 output-closed
        !! warn: `ci` ended: exit status 1
        !! warn: restarting `ci` in …: it ended
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        << 4: 200 events
        << 4: id: 4-0|retry: 1000|data: ||
        << 4: id: 4-1|data: {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"warning","logger":"outlast","data":"server `ci` is not there (exit status 1): what it listed before is shown, and its calls wait or fail"}}||
        << 4: id: 4-2|data: {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ci__run","x":1.0},{ "name" : "srv__run" },{"name":"srv__odd_name_…"}]}}||
        << 4: finish
        wait 1s
        @…
        .. 2: start 1
        server-2 started
        >> 2: {"jsonrpc":"2.0","id":5,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}}}}
        get 5 session=1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        !! warn: `ci` is back after 1s
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/list"}
        # What has changed meanwhile is told.
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"tools":[{"name":"walk"}]}}
        << 5: id: 1-1|data: {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}||
        "#,
    );
}

/// A client on our standard streams, in front of two servers.
const GATEWAY: &str = r#"
    set gateway
    set server ci
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    .. 1: start 0
    .. 2: start 0
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

#[test]
fn a_stdio_client_is_answered_by_us_although_a_server_cannot_be_started() {
    check(&format!(
        r#"{GATEWAY}
        server-2 start-failed 11
        !! warn: restart of `ci` failed: the system refused to start it (error 11)
        << {{"jsonrpc":"2.0","id":1,"result":{{"capabilities":{{"logging":{{}},"prompts":{{"listChanged":true}},"resources":{{"listChanged":true}},"tools":{{"listChanged":true}}}},"protocolVersion":"2025-11-25","serverInfo":{{"name":"outlast","version":"…"}}}}}}
        !! warn: restarting `ci` in 2s: it could not be started
        > {{"jsonrpc":"2.0","method":"notifications/initialized"}}
        > {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        >> 1: {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        server-1 < {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"a"}}]}}}}
        # Which server is missing is said once.
        << {{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"warning","logger":"outlast","data":"server `ci` is not there (the system refused to start it (error 11)): nothing of it is in this list, and its calls wait or fail"}}}}
        << {{"jsonrpc":"2.0","id":2,"result":{{"tools":[{{"name":"srv__a"}}]}}}}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"srv__a"}}}}
        >> 1: {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"_meta":{{"progressToken":3}},"name":"a"}}}}
        eof
        .. 1: close-input
        .. 2: close-input
        "#,
    ));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn a_modern_client_sees_the_servers_that_speak_its_revision() {
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
        server-1 < {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Received request before initialization was complete"}}
        !! warn: `srv` does not speak the revision of a client; that client does not see it at the merged door
        server-2 < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"run"}],"ttlMs":9,"cacheScope":"public"}}
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"outlast","version":"…"}},"tools":[{"name":"ci__run"}]}}
        post 2 version=2026-07-28 method=tools/call name=ci__run {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"ci__run",META}}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"run",…}}
        server-2 < {"jsonrpc":"2.0","id":3,"result":{"resultType":"complete","content":[]}}
        << 2: 200 {"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","content":[]}}
        post 3 version=2026-07-28 method=server/discover {"jsonrpc":"2.0","id":8,"method":"server/discover","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":4,"method":"server/discover","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"server/discover","params":{META}}
        server-2 < {"jsonrpc":"2.0","id":5,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{}}}}
        << 3: 200 {"jsonrpc":"2.0","id":8,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"outlast","version":"…"}},"cacheScope":"private","capabilities":{"logging":{},…"tools":{"listChanged":true}},"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0}}
        "#.replace("META", META),
    );
}

/// We are the server here, so what its specification asks of a server is asked of us.
#[test]
fn a_modern_request_that_contradicts_itself_is_refused_at_the_merged_door() {
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
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[],"ttlMs":9,"cacheScope":"public"}}
        server-2 < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","tools":[{"name":"run","inputSchema":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}}],"ttlMs":9,"cacheScope":"public"}}
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{…"name":"ci__run"…}}
        post 2 version=2026-07-28 method=tools/call name=ci__run {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"ci__run","arguments":{"region":"eu"},META}}
        << 2: 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32020,"message":"Header mismatch: Mcp-Param-region header is missing"}}
        post 3 version=2026-07-28 method=ping {"jsonrpc":"2.0","id":3,"method":"ping","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"1999-01-01","io.modelcontextprotocol/clientCapabilities":{}}}}
        << 3: 400 {"jsonrpc":"2.0","id":3,"error":{"code":-32020,"message":"Header mismatch: …"}}
        post 4 version=2026-07-28 method=resources/read name=test://none {"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"test://none",META}}
        # A uri that nobody lists may belong to an extension of one of them.
        >> 1: {"jsonrpc":"2.0","id":3,"method":"server/discover","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":4,"method":"resources/list","params":{META}}
        >> 1: {"jsonrpc":"2.0","id":5,"method":"resources/templates/list","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":6,"method":"server/discover","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":7,"method":"resources/list","params":{META}}
        >> 2: {"jsonrpc":"2.0","id":8,"method":"resources/templates/list","params":{META}}
        server-1 < {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no"}}
        server-1 < {"jsonrpc":"2.0","id":4,"error":{"code":-32601,"message":"no"}}
        server-1 < {"jsonrpc":"2.0","id":5,"error":{"code":-32601,"message":"no"}}
        server-2 < {"jsonrpc":"2.0","id":6,"error":{"code":-32601,"message":"no"}}
        server-2 < {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no"}}
        server-2 < {"jsonrpc":"2.0","id":8,"error":{"code":-32601,"message":"no"}}
        << 4: 200 {"jsonrpc":"2.0","id":4,"error":{"code":-32602,"data":{"uri":"test://none"},"message":"Resource not found: test://none; …"}}
        "#.replace("META", META),
    );
}

/// The world after `LISTED`.
fn listed_world() -> World {
    let mut world = World::default();
    let lines = SESSION.lines().chain(LISTED.lines()).map(str::trim);
    let lines = lines.filter(|line| !line.starts_with(['<', '>', '.', '#']) && !line.is_empty());
    lines.for_each(|line| drop(world.input(line)));
    world
}

/// A server may say all the time that its list has changed; each client is told once, until it looks.
#[test]
fn who_floods_with_changes_is_passed_on_once_until_somebody_looks() {
    let mut world = listed_world();
    world.input("get 4 session=1");
    let told = |world: &mut World| {
        let change = r#"server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
        let out: Vec<String> = (0..5).flat_map(|_| world.input(change)).collect();
        out.iter().filter(|line| line.contains("notifications/tools/list_changed")).count()
    };
    assert_eq!((told(&mut world), told(&mut world)), (1, 0));
    world.input(r#"post 5 session=1 {"jsonrpc":"2.0","id":3,"method":"tools/list"}"#);
    assert_eq!(told(&mut world), 1, "it asks, and what it gets may be old");
    world.input(r#"server-2 < {"jsonrpc":"2.0","id":5,"result":{"tools":[{"name":"run"}]}}"#);
    assert_eq!(told(&mut world), 0, "it knows");
    world.input(r#"post 6 session=1 {"jsonrpc":"2.0","id":4,"method":"tools/list"}"#);
    assert_eq!(told(&mut world), 1);
}

/// What was written of an exchange, one after the other.
fn written(out: &[String], exchange: u32) -> String {
    let of_it = format!("<< {exchange}: ");
    out.iter().filter_map(|line| line.strip_prefix(&of_it)).collect()
}

/// A long list is kept once for everybody and leaves in parts; whoever lost its connection gets all of it again.
#[test]
fn a_long_list_is_whole_for_whoever_comes_back() {
    let mut world = listed_world();
    world.input(r#"server-2 < {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#);
    world.input(r#"post 4 session=1 {"jsonrpc":"2.0","id":"w","method":"tools/list"}"#);
    let tool = format!(r#"{{"name":"run","description":"{}"}}"#, "long ".repeat(2_000));
    let answer = format!(r#"server-2 < {{"jsonrpc":"2.0","id":5,"result":{{"tools":[{tool}]}}}}"#);
    let out = world.input(&answer);
    let parts = out.iter().filter(|line| line.starts_with("<< 4: ")).count();
    let list = written(&out, 4);
    let shown = tool.replace("run", "ci__run");
    assert!(
        parts > 2 && list.contains(&format!(r#""id":"w","result":{{"tools":[{shown},"#)),
        "{parts}: {list}"
    );
    for (exchange, last) in [(5, "4-0"), (6, "4-0")] {
        let again = written(&world.input(&format!("get {exchange} session=1 last={last}")), exchange);
        assert_eq!(again, format!("200 events: outlast|retry: 1000||{list}"));
    }
    let nothing = written(&world.input("get 7 session=1 last=4-1"), 7);
    assert_eq!(nothing, "200 events: outlast|retry: 1000||finish");
    world.engine.check_invariants().unwrap();
}
