//! Clients that come over HTTP: sessions, streams, the modern era, sharing, the end.

use outlast_testkit::script::check;

#[test]
fn a_session_begins_and_its_requests_are_answered_on_streams() {
    check(
        r#"
        set serve
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 session=1 version=2025-11-25 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 3 session=1 {"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","_meta":{"progressToken":7}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":"2","method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        < {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1}}
        << 3: id: 3-1|data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1}}||
        < {"jsonrpc":"2.0","id":"2","result":{}}
        << 3: id: 3-2|data: {"jsonrpc":"2.0","id":"a","result":{}}||
        << 3: finish
        "#,
    );
}

/// A session whose handshake is over, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: …
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

fn in_session(settings: &str, scenario: &str) {
    check(&format!("set serve\n{settings}\n{SESSION}\n{scenario}"));
}

#[test]
fn a_signal_ends_a_service_with_grace() {
    in_session(
        "",
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        post 4 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 3-0|retry: 1000|data: ||
        >> 1: …
        stop 15
        post 5 session=1 {"jsonrpc":"2.0","id":3,"method":"ping"}
        << 5: 503 {"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"outlast is being stopped; try again"}}
        < {"jsonrpc":"2.0","id":2,"result":{}}
        << 4: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{}}||
        << 4: finish
        tick
        << 3: finish
        .. 1: close-input
        output-closed
        exited 0
        .. end 0
        "#,
    );
}
