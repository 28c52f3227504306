//! What an id names may be gone when it is looked for: a server that was let go of, a client that has left.

use outlast_testkit::script::check;

/// A session whose handshake is over, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        set serve
        set tasks
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
"#;

const TASK: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
"#;

#[test]
fn a_task_whose_session_ends_before_it_is_stored_never_runs() {
    check(&format!(
        r#"{SESSION}
        output-closed
        exited 1
        !! warn: `srv` ended: exit status 1
        !! …
        {TASK}
        delete 4 session=1
        << 3: finish
        .. let go of 1
        << 4: 200
        stored 1
        .. store 2: cancelled
        stored 2
        "#
    ));
}

#[test]
fn a_task_whose_session_and_server_end_before_it_is_stored_never_runs() {
    check(&format!(
        r#"{SESSION}
        {TASK}
        delete 4 session=1
        << 3: finish
        .. 1: close-input
        << 4: 200
        output-closed
        exited 0
        .. let go of 1
        stored 1
        .. store 2: cancelled
        stored 2
        "#
    ));
}

/// A client cancels its task while the task is being stored.
fn cancelled_while_stored(rest: &str) {
    let before = r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        > {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}
        "#;
    check(&format!("{before}{rest}"));
}

#[test]
fn a_task_that_is_cancelled_before_it_is_stored_never_runs() {
    cancelled_while_stored(
        r#"
        stored 1
        .. store 2: cancelled
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"cancelled","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttl":90000000}}
        "#,
    );
}

#[test]
fn a_task_that_is_cancelled_and_then_could_not_be_stored_never_runs() {
    cancelled_while_stored(
        r#"
        not-stored 1
        !! warn: could not be stored: disk full
        "#,
    );
}

#[test]
fn a_task_whose_session_ends_before_it_could_not_be_stored_never_runs() {
    check(
        r#"
        set serve
        set tasks
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: {"jsonrpc":"2.0","method":"notifications/initialized"}
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        delete 4 session=1
        << 3: finish
        .. 1: close-input
        << 4: 200
        not-stored 1
        !! warn: could not be stored: disk full
        "#,
    );
}

#[test]
fn a_task_whose_session_ends_before_its_response_begins_is_answered() {
    check(
        r#"
        set serve
        set tasks
        set stream-head 5ms
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        .. store 1: create
        delete 3 session=1
        << 2: 404 {"jsonrpc":"2.0","id":null,"error":{"code":-32001,"message":"Session not found; it has just ended"}}
        .. 1: close-input
        << 3: 200
        stored 1
        .. store 2: cancelled
        "#,
    );
}
