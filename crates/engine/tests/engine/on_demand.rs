//! Tools that are found, described and called through three tools of ours.

use outlast_testkit::script::check;

/// A stdio client in front of `srv` (1), whose tools are listed, and `ci` (2), whose tools are on demand.
const BEGIN: &str = r#"
    set gateway
    set server ci
    set exposure ci expose on-demand
    > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    .. 1: start 0
    .. 2: start 0
    server-1 started
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-2 started
    >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
    >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
    server-2 < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}}}}
    << {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true}},"protocolVersion":"2025-11-25",…}}
    >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
    > {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

/// The same, and all tools are known.
const LISTED: &str = r#"
    > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
    >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
    >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
    # Nobody waits for tools that are not listed.
    server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ask"}]}}
    << {"jsonrpc":"2.0","id":2,"result":{"tools":[{"name":"srv__ask"},{"annotations":…"name":"find_tools"},{"annotations":…"name":"describe_tool"},{…"name":"call_tool"}]}}
    server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{ "name":"run_build", "description":"Builds a branch of the repository.", "inputSchema":{"type":"object","properties":{"branch":{}}}},{"name":"deploy","title":"Ship it"}]}}
"#;

#[track_caller]
fn listed(scenario: &str) {
    check(&format!("{BEGIN}\n{LISTED}\n{scenario}"));
}

#[test]
fn a_tool_is_found_described_and_called_as_if_directly() {
    listed(
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"build the repo"}}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"{\"tools\":[{\"description\":\"Builds a branch of the repository.\",\"name\":\"ci__run_build\",\"parameters\":[\"branch\"]}]}","type":"text"}]}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"describe_tool","arguments":{"name":"ci__deploy"}}}
        << {"jsonrpc":"2.0","id":4,"result":{"content":[{"text":"{\"name\":\"ci__deploy\",\"title\":\"Ship it\"}","type":"text"}]}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"name":"ci__run_build","arguments":{"n":1.0}},"name":"call_tool","_meta":{"progressToken":"p","x":1.0}}}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"arguments":{"n":1.0},"name":"run_build","_meta":{"progressToken":5,"x":1.0}}}
        server-2 < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":5,"progress":1}}
        << {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"p","progress":1}}
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}
        >> 2: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}
        # By its public name it can be called, too.
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"ci__deploy"}}
        >> 2: {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"name":"deploy"}}
        server-2 < {"jsonrpc":"2.0","id":6,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":6,"result":{"content":[]}}
        "#,
    );
}

#[test]
fn a_call_on_demand_has_the_limits_and_errors_of_the_real_tool() {
    check(&format!(
        "set tool ask=timeout:5s\n{}\n{}\n{}",
        BEGIN.replace("ci expose", "srv expose"),
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"srv__ask"}}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"ask"}]}}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[]}}
        >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"ask","arguments":{}}}
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"srv__gone"}}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: srv__gone; no server behind this address has it now"}}
        "#,
        r#"
        wait 5s
        @5s
        !! warn: timeout server=srv method=tools/call tool=ask limit=5s…
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32001,"message":"`ask`…"tool":"ask"…}}
        >> 1: {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5,…}}
        .. sample
        >> 1: {"jsonrpc":"2.0","id":6,"method":"ping"}
        "#
    ));
}

#[test]
fn what_a_model_gets_wrong_is_said_in_words() {
    listed(
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"find_tools"}}
        << {"jsonrpc":"2.0","id":3,"result":{"content":[{"text":"`find_tools` needs a `query`…","type":"text"}],"isError":true}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"call_tool","arguments":{"arguments":{}}}}
        << {"jsonrpc":"2.0","id":4,"result":{"content":[{"text":"`describe_tool` and `call_tool` need the `name`…","type":"text"}],"isError":true}}
        > {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"ci__deploy","arguments":[1]}}}
        << {"jsonrpc":"2.0","id":5,"result":{"content":[{"text":"…`arguments` is an object","type":"text"}],"isError":true}}
        # Some models write the object as a text.
        > {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"ci__deploy","arguments":"{\"n\": 1.0}"}}}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"deploy","arguments":{"n": 1.0}}}
        # Nothing that fits, and everything.
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"weather"}}}
        << {"jsonrpc":"2.0","id":7,"result":{"content":[{"text":"{\"tools\":[]}","type":"text"}]}}
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"","limit":1}}}
        << {"jsonrpc":"2.0","id":8,"result":{"content":[{"text":"{\"more\":1,\"tools\":[{…\"name\":\"ci__run_build\"…}]}","type":"text"}]}}
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"deploy","server":"srv"}}}
        << {"jsonrpc":"2.0","id":9,"result":{"content":[{"text":"{\"tools\":[]}","type":"text"}]}}
        "#,
    );
}

#[test]
fn a_search_waits_for_a_slow_server_only_so_long() {
    check(&format!(
        r#"{BEGIN}
        > {{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{{"name":"find_tools","arguments":{{"query":"deploy"}}}}}}
        >> 1: {{"jsonrpc":"2.0","id":3,"method":"tools/list"}}
        >> 2: {{"jsonrpc":"2.0","id":4,"method":"tools/list"}}
        wait 4s
        @4s
        !! warn: `ci` did not list within 4s (list-wait); it is left out until it does
        << {{"jsonrpc":"2.0","id":3,"result":{{"content":[{{"text":"{{\"notListedYet\":\"ci\",\"tools\":[]}}","type":"text"}}]}}}}
        # What is found on demand is in no list: the client is not told that the list changed.
        server-2 < {{"jsonrpc":"2.0","id":4,"result":{{"tools":[{{"name":"deploy"}}]}}}}
        > {{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"name":"find_tools","arguments":{{"query":"deploy"}}}}}}
        << {{"jsonrpc":"2.0","id":4,"result":{{"content":[{{"text":"{{\"tools\":[{{\"name\":\"ci__deploy\"}}]}}","type":"text"}}]}}}}
        "#
    ));
}

#[test]
fn a_client_that_has_our_tools_in_no_list_cannot_take_a_servers_tool_for_ours() {
    // Without anything on demand `call_tool` is whoever has it.
    check(&format!(
        "{}\n{}",
        BEGIN.replace("ci expose on-demand", "ci expose plain-names"),
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"call_tool","arguments":{"x":1}}}
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        >> 2: {"jsonrpc":"2.0","id":4,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[]}}
        server-2 < {"jsonrpc":"2.0","id":4,"result":{"tools":[{"name":"call_tool"}]}}
        >> 2: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"name":"call_tool","arguments":{"x":1}}}
        "#
    ));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"modern","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn a_modern_client_has_tools_on_demand_as_the_file_says_of_it() {
    check(
        &r#"
        set serve
        set server ci
        set client modern* expose=on-demand servers=ci
        post 1 version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{META}}
        << 1: 200 {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"outlast","version":"…"}},"tools":[{…"find_tools"…"describe_tool"…"call_tool"}]}}
        server-1 started
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","tools":[{"name":"run"}],"ttlMs":900000,"cacheScope":"public"}}
        post 2 version=2026-07-28 method=tools/call name=find_tools {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"find_tools","arguments":{"query":"run"},META}}
        << 2: 200 {"jsonrpc":"2.0","id":7,"result":{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"outlast","version":"…"}},"content":[{"text":"{\"tools\":[{\"name\":\"ci__run\"}]}","type":"text"}],"resultType":"complete"}}
        post 3 version=2026-07-28 method=tools/call name=call_tool {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"call_tool","arguments":{"name":"ci__run","arguments":{"a":1}},META}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run","arguments":{"a":1},…}}
        server-1 < {"jsonrpc":"2.0","id":2,"result":{"resultType":"complete","content":[]}}
        << 3: 200 {"jsonrpc":"2.0","id":8,"result":{"resultType":"complete","content":[]}}
        "#
        .replace("META", META),
    );
}

#[test]
fn call_tool_calls_a_tool_that_has_its_own_name_here() {
    check(&format!(
        "set exposure srv expose plain-names\n{BEGIN}\n{}\n{}",
        LISTED.replace("srv__ask", "ask"),
        r#"
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"arguments":{"name":"ask","arguments":{"n":1.0}},"name":"call_tool"}}
        >> 1: {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"_meta":{"progressToken":5},"arguments":{"n":1.0},"name":"ask"}}
        "#,
    ));
}
