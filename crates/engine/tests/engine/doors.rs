//! Several servers, each behind a door of its own.

use outlast_testkit::script::check;

/// Two servers, and a session with the second: `ci`.
const CI: &str = r#"
    set serve
    set server ci
    post 1 server=ci {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    .. 1: start 0
    << 1: 200 with a session events
    << 1: id: 2-0|retry: 1000|data: ||
    >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
    started
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
    << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
    << 1: finish
"#;

#[test]
fn the_door_of_one_server_leads_to_it_alone() {
    check(&format!(
        r#"{CI}
        post 2 server=srv {{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        .. 2: start 0
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        >> 2: {{"jsonrpc":"2.0","id":2,"method":"initialize","params":{{"protocolVersion":"2025-11-25","capabilities":{{}}}}}}
        server-2 started
        server-1 < {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        !! info: `ci` answered unknown id 2; dropped
        "#,
    ));
}

#[test]
fn a_session_is_known_only_at_its_own_door() {
    check(&format!(
        r#"{CI}
        post 2 server=srv session=1 {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        << 2: 404 {{"jsonrpc":"2.0","id":null,"error":{{"code":-32001,"message":"Session not found; begin with initialize"}}}}
        post 3 server=ci session=1 {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {{"jsonrpc":"2.0","id":2,"method":"tools/list"}}
        "#,
    ));
}

#[test]
fn an_address_that_names_no_server_is_told_so() {
    check(
        r#"
        set serve
        set server ci
        post 1 server=cd {"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}
        << 1: 404 {"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Not Found: no server of this name is served here"}}
        "#,
    );
}

#[test]
fn a_modern_request_goes_to_the_server_of_its_door() {
    check(
        r#"
        set serve
        set server ci
        post 1 server=ci version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        post 2 server=srv version=2026-07-28 method=tools/list {"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        .. 2: start 0
        >> 2: {"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}
        "#,
    );
}
