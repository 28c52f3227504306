//! A client that has closed its end still gets what the server says to its calls, and what it asked for is still sent.

use outlast_testkit::script::check;

#[test]
fn an_answer_with_a_status_reaches_a_client_that_has_closed_its_end() {
    check(
        r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        eof
        .. close-input
        trouble 2 status 400 {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"bad"}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32602,"message":"bad"}}
        trouble 3 status 404 {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such tool"}}
        << {"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"no such tool"}}
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

#[test]
fn an_answer_from_the_store_reaches_a_client_that_has_closed_its_end() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        made 09090909090909090909090909090909 k {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}
        theirs 09090909090909090909090909090909 completed {"content":[],"n":1.0}
        reads later
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}}
        eof
        read
        !! info: a call of `x` at `srv` joined an earlier call that is the same (idempotency key or join-repeats)
        << {"jsonrpc":"2.0","id":2,"result":{"content":[],"n":1.0}}
        .. close-input
        tick
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

#[test]
fn a_call_whose_key_is_looked_up_is_sent_before_the_input_is_closed() {
    check(
        r#"
        set tasks
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}},"tools":{}}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> {"jsonrpc":"2.0","method":"notifications/initialized"}
        reads later
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","idempotencyKey":"k"}}
        eof
        read
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x","idempotencyKey":"k"}}
        .. close-input
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

/// A client closes its end while its task is being stored.
fn leaving_while_stored(rest: &str) {
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
        eof
        "#;
    check(&format!("{before}{rest}"));
}

#[test]
fn a_task_that_is_being_stored_is_sent_before_the_input_is_closed() {
    leaving_while_stored(
        r#"
        stored 1
        << {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttl":90000000}}}
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        .. close-input
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        << {"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"completed","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttl":90000000}}
        output-closed
        exited 0
        .. end 0
        "#,
    );
}

#[test]
fn a_call_that_could_not_be_stored_is_sent_before_the_input_is_closed() {
    leaving_while_stored(
        r#"
        not-stored 1
        !! warn: could not be stored: disk full
        >> {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        .. close-input
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        output-closed
        exited 0
        .. end 0
        "#,
    );
}
