//! What bounds calls that have a ticket: they count against `max-calls` of their principal until they end.

use outlast_testkit::script::check;

const T2: &str = "0202020202020202020202020202020202020202020202020202020202020202";

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}"#;

#[test]
fn a_task_counts_until_it_ends() {
    check(
        &r#"
        set serve
        set tasks
        set max-calls 1
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        # While it is being stored, too.
        post 3 principal=ann session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        !! warn: overloaded server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=1 call in flight, tasks included (max-calls)
        << 3: …"error":{"code":-31004,"message":"`x` was not sent: 1 call in flight, tasks included (max-calls). Call again when other calls have ended.",…
        << 3: finish
        stored 1
        << 2: …"taskId":"T2"…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        post 4 principal=ann session=1 {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}
        << 4: 200 events
        << 4: id: 5-0|retry: 1000|data: ||
        !! warn: overloaded server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=1 call in flight (max-calls)
        << 4: …"code":-31004…
        << 4: finish
        # Asking about it is no call.
        post 5 principal=ann session=1 {"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":"T2"}}
        << 5: 200 events
        << 5: id: 6-0|retry: 1000|data: ||
        << 5: …"status":"working"…
        << 5: finish
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 2: completed
        stored 2
        post 6 principal=ann session=1 {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","task":{}}}
        << 6: 200 events
        << 6: id: 7-0|retry: 1000|data: ||
        .. store 3: create
        "#
        .replace("T2", T2),
    );
}

#[test]
fn a_task_counts_even_if_its_session_is_gone() {
    check(
        &r#"
        set serve
        set tasks
        set max-calls 1
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"T2","ttl":90000000}}}||
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        delete 3 principal=ann session=1
        << 3: 200
        post 4 version=2026-07-28 principal=ann method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 2: start 0
        !! warn: overloaded server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=1 call in flight (max-calls)
        << 4: …"code":-31004…
        server-1 < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. 1: close-input
        .. store 2: completed
        stored 2
        post 5 version=2026-07-28 principal=ann method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        >> 2: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":3,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        "#
        .replace("META", META)
        .replace("T2", T2),
    );
}

#[test]
fn a_slow_modern_call_goes_on_counting_as_a_task() {
    check(
        &r#"
        set serve
        set tasks
        set max-calls 1
        post 1 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"x",META}}
        .. 1: start 0
        >> 1: {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        started
        wait 10s
        @500ms
        << 1: 200 events
        << 1: : outlast||
        @10s
        .. store 1: create
        stored 1
        << 1: data: {"jsonrpc":"2.0","id":5,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:10.000Z","pollIntervalMs":1000,"resultType":"task","status":"working","taskId":"0101010101010101010101010101010101010101010101010101010101010101","ttlMs":90000000}}||
        << 1: finish
        post 2 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x",META}}
        !! warn: overloaded server=srv method=tools/call tool=x elapsed=0s state=it never reached the server detail=1 call in flight (max-calls)
        << 2: …"code":-31004…
        < {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[]}}
        .. store 2: completed
        stored 2
        post 3 version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x",META}}
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}
        "#
        .replace("META", META),
    );
}

#[test]
fn a_task_that_could_not_be_stored_counts_once() {
    check(
        r#"
        set serve
        set tasks
        set max-calls 1
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=ann session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|retry: 1000|data: ||
        .. store 1: create
        not-stored 1
        !! warn: could not be stored: disk full
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        << 2: …"content":[]…
        << 2: finish
        post 3 principal=ann session=1 {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        << 3: 200 events
        << 3: id: 4-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        "#,
    );
}
