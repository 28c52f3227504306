//! What a file says of some clients: which servers they see, and when their calls are handed off.

use outlast_testkit::script::check;

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"NAME","version":"1"}}}"#;

#[test]
fn a_client_sees_the_servers_that_are_for_it() {
    check(
        &r#"
        set gateway
        set server ci
        set server db
        set client * servers=srv
        set client cur* servers={ci,db}
        > INIT
        .. 1: start 0
        .. 2: start 0
        server-1 started
        >> 1: INIT
        server-2 started
        >> 2: {"jsonrpc":"2.0","id":2,…}
        "#
        .replace("INIT", &INITIALIZE.replace("NAME", "cursor")),
    );
}

#[test]
fn a_client_that_may_see_no_server_gets_empty_lists_and_answers() {
    check(
        &r#"
        set gateway
        set tasks
        set server ci
        set client * servers=nothing
        > INIT
        << {"jsonrpc":"2.0","id":1,"result":{"capabilities":{…"logging":{}…},"protocolVersion":"2025-11-25",…}}
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        << {"jsonrpc":"2.0","id":2,"result":{"tools":[]}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ci__run"}}
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Unknown tool: ci__run; …"}}
        > {"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"x"}}
        << {"jsonrpc":"2.0","id":4,"error":{"code":-32602,…}}
        "#
        .replace("INIT", &INITIALIZE.replace("NAME", "cursor")),
    );
}

/// A client of one server whose tool is slow.
const SLOW: &str = r#"
    > INIT
    >> INIT
    < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}
    << {"jsonrpc":"2.0","id":1,"result":{…}}
    > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
    >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow"}}
"#;

#[test]
fn a_cap_that_the_file_gives_a_client_hands_its_calls_off() {
    let slow = SLOW.replace("INIT", &INITIALIZE.replace("NAME", "hasty-agent"));
    check(&format!(
        "set client hasty* client-cap=10s\nset client other client-cap=20s\n{slow}\nwait 9s\n@9s\n.. store 1: create…\n\
         stored 1\n<< {{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{{\"_meta\":{{…\"dev.outlast/why\":\"[clients.\\\"hasty*\\\"]\"}}…}}"
    ));
    // Not those of another client; and nobody's if the file says so.
    check(&format!("set client other client-cap=10s\n{slow}\nwait 30s"));
    check(&format!("set client-cap 10s\nset client hasty* hand-off=false\n{slow}\nwait 30s"));
}

/// A server is told the handshake of its client, whatever that says first.
#[test]
fn a_ping_before_the_handshake_is_not_taken_for_one() {
    check(
        &r#"
        set gateway
        set server ci
        > {"jsonrpc":"2.0","id":0,"method":"ping"}
        << {"jsonrpc":"2.0","id":0,"result":{}}
        > INIT
        .. 1: start 0
        .. 2: start 0
        server-1 started
        >> 1: INIT
        "#
        .replace("INIT", &INITIALIZE.replace("NAME", "cursor")),
    );
}

#[test]
fn a_client_that_lists_without_a_handshake_is_introduced_by_us() {
    check(
        r#"
        set gateway
        set server ci
        > {"jsonrpc":"2.0","id":1,"method":"tools/list"}
        .. 1: start 0
        .. 2: start 0
        server-1 started
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"outlast",…
        "#,
    );
}

/// The only server that a client sees is taken out of the file, and comes back: it is told the client's handshake, not
/// what the client happens to ask.
#[test]
fn a_server_that_comes_back_alone_is_told_the_clients_handshake() {
    check(
        &r#"
        set gateway
        set server ci
        set client * servers=ci
        > INIT
        .. 1: start 0
        server-1 started
        >> 1: INIT
        server-1 < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{…
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        reload srv
        !! info: the file was read again; gone: ci
        .. 1: close-input
        << {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
        << {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
        << {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
        reload srv ci
        !! info: the file was read again; new: ci
        > {"jsonrpc":"2.0","id":2,"method":"tools/list"}
        .. 2: start 0
        server-2 started
        >> 2: {"jsonrpc":"2.0","id":2,"method":"initialize",…"clientInfo":{"name":"cursor","version":"1"}}}
        "#
        .replace("INIT", &INITIALIZE.replace("NAME", "cursor")),
    );
}
