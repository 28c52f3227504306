//! What servers ask while they work on legacy tasks over HTTP, and why tasks failed.

use outlast_testkit::script::check;

const T2: &str = "0202020202020202020202020202020202020202020202020202020202020202";

/// A session, its standing stream closed, with a task that runs as attempt 2.
const RUNNING: &str = r#"
        set serve
        set tasks
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 session=1 {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 2: 200 events
        << 2: id: 3-0|…
        .. store 1: create
        stored 1
        << 2: id: 3-1|data: {"jsonrpc":"2.0","id":2,"result":{"task":{…"taskId":"T2"…
        << 2: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call",…
"#;

fn running(scenario: &str) {
    check(&format!("{RUNNING}{scenario}").replace("T2", T2));
}

#[test]
fn who_waits_for_a_task_is_asked_what_came_before() {
    running(
        r#"
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        .. store 2: input_required
        stored 2
        post 3 session=1 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"T2"}}
        << 3: 200 events
        << 3: id: 4-0|…
        << 3: id: 4-1|data: …"status":"input_required"…
        << 3: finish
        post 4 session=1 {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"T2"}}
        << 4: 200 events
        << 4: id: 5-0|…
        << 4: id: 5-1|data: {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T2"}},"message":"sure?"}}||
        # It is asked once.
        get 5 session=1
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        << 5: id: 1-2|data: …notifications/tasks/status…
        post 6 session=1 {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        << 6: 202
        .. store 3: working
        >> 1: {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        stored 3
        << 5: id: 1-3|data: …
        < {"jsonrpc":"2.0","id":2,"result":{"content":[]}}
        .. store 4: completed
        stored 4
        << 5: id: 1-4|data: …
        << 4: id: 5-2|data: {"jsonrpc":"2.0","id":4,"result":{…
        << 4: finish
        "#,
    );
}

/// A question that was read is being answered.
#[test]
fn what_a_client_has_read_is_not_asked_again() {
    running(
        r#"
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        << 3: id: 1-1|data: …"method":"elicitation/create"…
        .. store 2: input_required
        post 4 session=1 {"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":"T2"}}
        << 4: 200 events
        << 4: id: 4-0|…
        "#,
    );
}

#[test]
fn a_failed_task_says_why() {
    running(
        r#"
        < {"jsonrpc":"2.0","id":2,"error":{"code":-5,"message":"the disk \"a\" is full"}}
        .. store 2: failed
        post 3 session=1 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"T2"}}
        << 3: 200 events
        << 3: id: 4-0|…
        << 3: id: 4-1|data: {"jsonrpc":"2.0","id":3,"result":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":…,"status":"working","taskId":"T2","ttl":…}}||
        << 3: finish
        stored 2
        post 4 session=1 {"jsonrpc":"2.0","id":3,"method":"tasks/get","params":{"taskId":"T2"}}
        << 4: 200 events
        << 4: id: 5-0|…
        << 4: id: 5-1|data: …"status":"failed","statusMessage":"the disk \"a\" is full",…
        << 4: finish
        "#,
    );
    running(
        r#"
        < {"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"image"},{"type":"text","text":"no such file"}],"isError":true}}
        .. store 2: failed
        stored 2
        get 3 session=1
        << 3: 200 events
        << 3: : outlast|retry: 1000||
        << 3: id: 1-1|data: …notifications/tasks/status…"status":"failed","statusMessage":"no such file",…
        "#,
    );
}

/// Ann waits for her task and Bob calls a tool at the same remote server: each is asked what came on the stream of their
/// own call, and Bob is not told Ann's ticket.
#[test]
fn a_question_on_the_stream_of_anothers_call_is_not_for_who_waits_for_a_task() {
    check(
        r#"
        set serve
        set share all
        set tasks
        set http
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{},"elicitation":{}}}}
        started
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 2: finish
        post 3 session=1 principal=ann {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: id: 5-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 3: id: 5-1|data: {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0303030303030303030303030303030303030303030303030303030303030303","ttl":90000000}}}||
        << 3: finish
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        post 4 session=1 principal=ann {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"0303030303030303030303030303030303030303030303030303030303030303"}}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        post 5 session=2 principal=bob {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y"}}
        << 5: 200 events
        << 5: id: 7-0|retry: 1000|data: ||
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        <~3 {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure, bob?"}}
        << 5: id: 7-1|data: {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"message":"sure, bob?"}}||
        <~2 {"jsonrpc":"2.0","id":"r","method":"elicitation/create","params":{"message":"sure, ann?"}}
        << 4: id: 6-1|data: {"jsonrpc":"2.0","id":"2","method":"elicitation/create","params":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"0303030303030303030303030303030303030303030303030303030303030303"}},"message":"sure, ann?"}}||
        .. store 2: input_required
        post 6 session=2 principal=bob {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        << 6: 202
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        post 7 session=1 principal=ann {"jsonrpc":"2.0","id":"2","result":{"action":"decline"}}
        << 7: 202
        .. store 3: working
        >> 1: post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"r","result":{"action":"decline"}}
        "#,
    );
}

/// Ann and Bob share a server on stdio, which works on a task of Ann's.
fn while_ann_has_a_task(rest: &str) {
    let before = r#"
        set serve
        set share all
        set tasks
        post 1 principal=ann {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 1: finish
        post 2 principal=bob {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}}}||
        << 2: finish
        post 3 session=1 principal=ann {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","task":{}}}
        << 3: 200 events
        << 3: id: 5-0|retry: 1000|data: ||
        .. store 1: create
        stored 1
        << 3: id: 5-1|data: {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0303030303030303030303030303030303030303030303030303030303030303","ttl":90000000}}}||
        << 3: finish
        >> 1: {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        "#;
    check(&format!("{before}{rest}"));
}

/// On stdio nothing says whose call a question is about.
#[test]
fn a_question_that_may_be_about_anothers_call_is_asked_of_nobody() {
    while_ann_has_a_task(
        r#"
        post 4 session=1 principal=ann {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"0303030303030303030303030303030303030303030303030303030303030303"}}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        post 5 session=2 principal=bob {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y"}}
        << 5: 200 events
        << 5: id: 7-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        >> 1: {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"outlast: several clients share this server, and none of them can be meant alone"}}
        post 6 session=1 principal=ann {"jsonrpc":"2.0","id":"1","result":{"action":"decline"}}
        << 6: 202
        !! info: the client answered unknown id "1"; dropped
        post 7 session=2 principal=bob {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        << 7: 202
        !! info: the client answered unknown id "1"; dropped
        "#,
    );
}

#[test]
fn a_question_that_may_be_about_anothers_task_is_asked_of_nobody() {
    while_ann_has_a_task(
        r#"
        post 4 session=1 principal=ann {"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":"0303030303030303030303030303030303030303030303030303030303030303"}}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        post 5 session=2 principal=bob {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"y","task":{}}}
        << 5: 200 events
        << 5: id: 7-0|retry: 1000|data: ||
        .. store 2: create
        stored 2
        << 5: id: 7-1|data: {"jsonrpc":"2.0","id":2,"result":{"task":{"createdAt":"1970-01-01T00:00:00.000Z","lastUpdatedAt":"1970-01-01T00:00:00.000Z","pollInterval":500,"status":"working","taskId":"0404040404040404040404040404040404040404040404040404040404040404","ttl":90000000}}}||
        << 5: finish
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        >> 1: {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"outlast: several clients share this server, and none of them can be meant alone"}}
        "#,
    );
}

/// Ann's session has ended, and her task goes on: Bob, the only one left, is not asked in her place.
#[test]
fn a_question_about_a_task_is_not_for_the_session_that_is_left() {
    while_ann_has_a_task(
        r#"
        delete 4 session=1 principal=ann
        << 4: 200
        < {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        >> 1: {"jsonrpc":"2.0","id":"q","error":{"code":-32603,"message":"outlast: several clients share this server, and none of them can be meant alone"}}
        "#,
    );
}
