//! What an id names may be gone when it is looked for: a server that was let go of, a client that has left.

use outlast_testkit::script::check;

/// A session whose handshake is over, on server 1; the next attempt is 2, the next stream 3.
const SESSION: &str = r#"
        set serve
        set tasks
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: …
        << 1: …
        >> 1: …
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: …
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","method":"notifications/initialized"}
        << 2: 202
        >> 1: …
"#;

const TASK: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: …
        .. store 1: create
"#;

#[test]
fn a_task_whose_session_ends_before_it_is_stored_never_runs() {
    check(&format!(
        r#"{SESSION}
        output-closed
        exited 1
        !! …
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
