//! `declare-timeouts`: what a client is told of our limits, in the shape of RFC #1492.

use outlast_testkit::script::check;

#[test]
fn a_client_is_told_our_limits_in_place_of_the_servers() {
    check(
        r#"
        set declare-timeouts
        set max 2h
        set tool {run_*,build}=max:6h
        set method resources/read=timeout:1500ms,retries:0
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        >> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        < {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{ },"resources":{"timeouts":{"read":5}, "subscribe":true},"logging":{}}}}
        << {"id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{"timeouts":{"call":21600,"list":900} },"resources":{"timeouts":{"list":900,"read":2,"subscribe":900,"unsubscribe":900}, "subscribe":true},"logging":{}}}}
        "#,
    );
}

/// What may take for ever is not declared, and a plain timer is a limit even of a tool that reports.
#[test]
fn a_limit_that_is_none_is_not_declared() {
    let told = |settings: &str, limits: &str| {
        check(&format!(
            r#"
        set declare-timeouts
        {settings}
        > {{"id":1,"method":"initialize","params":{{}}}}
        >> {{"id":1,"method":"initialize","params":{{}}}}
        < {{"id":1,"result":{{"capabilities":{{"tools":{{}}}}}}}}
        << {{"id":1,"result":{{"capabilities":{{"tools":{{"timeouts":{{{limits}}}}}}}}}}}
        "#
        ));
    };
    told("set max off", r#""list":900"#);
    told("set timeout 10s\n set signs none", r#""call":30,"list":900"#);
    told("set tool a*=max:off", r#""list":900"#);
}

#[test]
fn nobody_is_told_who_did_not_ask_for_it() {
    check(
        r#"
        > {"id":1,"method":"initialize","params":{}}
        >> {"id":1,"method":"initialize","params":{}}
        < {"id":1,"result":{"capabilities":{"tools":{}}}}
        << {"id":1,"result":{"capabilities":{"tools":{}}}}
        "#,
    );
}

/// At the merged door it is the longest of all servers.
#[test]
fn the_merged_door_declares_the_longest() {
    check(
        r#"
        set serve
        set declare-timeouts
        set max 30m
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
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"capabilities":{"logging":{},"tools":{"listChanged":true,"timeouts":{"call":86400,"list":900}}},"protocolVersion":"2025-11-25","serverInfo":{"name":"outlast","version":"…"}}}||
        << 1: finish
        >> 2: {"jsonrpc":"2.0","method":"notifications/initialized"}
        "#,
    );
}
