//! A message of a server counts only for what that server was sent, and over HTTP on the stream it was sent on.

use outlast_testkit::script::check;

/// Two sessions that share nothing: server 1 and server 2. The next attempt is 3, the next stream 5.
const TWO: &str = r#"
        post 1 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 1: start 0
        << 1: 200 with a session events
        << 1: id: 2-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":1,…
        server-1 started
        < {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 1: id: 2-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 1: finish
        post 2 {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        .. 2: start 0
        << 2: 200 with a session events
        << 2: id: 4-0|retry: 1000|data: ||
        >> 2: {"jsonrpc":"2.0","id":2,…
        server-2 started
        < {"jsonrpc":"2.0","id":2,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << 2: id: 4-1|data: {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}||
        << 2: finish
"#;

/// The first session has a call at server 1, under attempt 3.
const CALL: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay","_meta":{"progressToken":"p"}}}
        << 3: 200 events
        << 3: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,…
"#;

/// Server 1 answers after all.
const ANSWER: &str = r#"
        server-1 < {"jsonrpc":"2.0","id":3,"result":{}}
        << 3: id: 5-1|data: {"jsonrpc":"2.0","id":7,"result":{}}||
        << 3: finish
"#;

fn two(scenario: &str) {
    check(&format!("set serve\nset share session\n{TWO}\n{scenario}"));
}

#[test]
fn a_server_cannot_answer_the_call_of_another_session() {
    two(&format!(
        r#"{CALL}
        server-2 < {{"jsonrpc":"2.0","id":3,"result":{{"forged":true}}}}
        !! info: `srv` answered unknown id 3; dropped
        < {{"jsonrpc":"2.0","id":"3","error":{{"code":1,"message":"forged"}}}}
        !! info: `srv` answered unknown id 3; dropped
        {ANSWER}"#
    ));
}

#[test]
fn a_server_cannot_report_on_the_call_of_another_session() {
    two(&format!(
        r#"{CALL}
        server-2 < {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":3,"progress":9}}}}
        {ANSWER}"#
    ));
}

#[test]
fn a_server_cannot_break_the_call_of_another_session_by_a_line_that_is_too_long_or_no_json() {
    two(&format!(
        r#"{CALL}
        server-2 server-oversized 3 answer
        !! warn: `srv` wrote a line to stdout that is not a message; dropped: (a line longer than max-message)
        <latin1 {{"jsonrpc":"2.0","id":3,"result":{{"text":"é"}}}}
        {ANSWER}"#
    ));
}

/// The first session's call runs at server 1 as its task `t-1`, and server 1 is asked for it every five seconds.
const TASK: &str = r#"
        post 3 session=1 {"jsonrpc":"2.0","id":6,"method":"tools/list"}
        << 3: 200 events
        << 3: id: 5-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":3,"method":"tools/list"}
        server-1 < {"jsonrpc":"2.0","id":3,"result":{"tools":[{"name":"pay","execution":{"taskSupport":"required"}}]}}
        << 3: id: 5-1|data: {"jsonrpc":"2.0","id":6,"result":{"tools":[{"name":"pay","execution":{"taskSupport":"required"}}]}}||
        << 3: finish
        post 4 session=1 {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}
        << 4: 200 events
        << 4: id: 6-0|retry: 1000|data: ||
        >> 1: {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"task":{"ttl":86400000},"name":"pay"}}
        server-1 < {"jsonrpc":"2.0","id":4,"result":{"task":{"taskId":"t-1","status":"working","pollInterval":5000}}}
"#;

#[test]
fn a_server_cannot_report_on_the_task_of_another_session() {
    let plain = r#""result":{"protocolVersion":"2025-11-25","capabilities":{}}"#;
    let tasks = r#""result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}}}"#;
    let two = TWO.replace(plain, tasks);
    check(&format!(
        r#"
        set serve
        set share session
        {two}{TASK}
        get 5 session=2
        << 5: 200 events
        << 5: : outlast|retry: 1000||
        wait 200ms
        # It is for the client that the server has, like any other word of it.
        server-2 < {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t-1","status":"completed"}}}}
        << 5: id: 3-1|data: {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t-1","status":"completed"}}}}||
        # Nobody is asked sooner for that.
        wait 4s
        server-1 < {{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{{"taskId":"t-1","status":"completed"}}}}
        tick
        >> 1: {{"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{{"taskId":"t-1"}}}}
        # Nor does an answer of the other server end it.
        server-2 < {{"jsonrpc":"2.0","id":5,"result":{{"taskId":"t-1","status":"completed"}}}}
        !! info: `srv` answered attempt 5, which has ended; dropped
        server-1 < {{"jsonrpc":"2.0","id":5,"result":{{"taskId":"t-1","status":"completed"}}}}
        >> 1: {{"jsonrpc":"2.0","id":6,"method":"tasks/result","params":{{"taskId":"t-1"}}}}
        server-1 < {{"jsonrpc":"2.0","id":6,"result":{{"paid":true}}}}
        << 4: id: 6-1|data: {{"jsonrpc":"2.0","id":7,"result":{{"paid":true}}}}||
        << 4: finish
        "#
    ));
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[test]
fn a_server_cannot_speak_on_the_subscription_of_another() {
    let scenario = r#"
        set serve
        post 1 principal=ann version=2026-07-28 method=subscriptions/listen {"jsonrpc":"2.0","id":"L","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},META}}
        .. 1: start 0
        << 1: 200 events
        << 1: : outlast||
        >> 1: {"jsonrpc":"2.0","id":"1",…
        server-1 started
        post 2 principal=bob version=2026-07-28 method=tools/call name=x {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x",META}}
        .. 2: start 0
        >> 2: {"jsonrpc":"2.0","id":2,…
        server-2 started
        < {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"1"}}}
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"1"}}
        < {"jsonrpc":"2.0","id":"1","result":{}}
        !! info: `srv` answered unknown id 1; dropped
        # The one who has it may.
        server-1 < {"jsonrpc":"2.0","id":"1","result":{}}
        << 1: data: {"jsonrpc":"2.0","id":"L","result":{}}||
        << 1: finish
        "#;
    check(&scenario.replace("META", META));
}

/// A remote server; calls 2 and 3 are open under the same numbers.
const REMOTE: &str = r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":"p"}}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x","_meta":{"progressToken":2}}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"y"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"y"}}
"#;

#[test]
fn over_http_an_answer_comes_on_the_stream_of_its_request() {
    check(&format!(
        r#"{REMOTE}
        <~3 {{"jsonrpc":"2.0","id":2,"result":{{"swapped":true}}}}
        !! info: `srv` answered unknown id 2; dropped
        <~3 {{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":2,"progress":1}}}}
        <~2 {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":2,"result":{{}}}}
        # The stream that belongs to no request may carry anything: older servers have no other.
        < {{"jsonrpc":"2.0","id":3,"result":{{}}}}
        << {{"jsonrpc":"2.0","id":3,"result":{{}}}}
        "#
    ));
}

#[test]
fn over_http_a_resume_policy_comes_on_the_stream_of_its_request() {
    check(&format!(
        r#"{REMOTE}
        <~3 {{"jsonrpc":"2.0","method":"notifications/requests/resumePolicy","params":{{"requestId":2,"resumeToken":"theirs","minWait":0,"maxWait":60}}}}
        # It has none, so it is not resumed with somebody else's.
        stream-ended 2
        !! warn: server-gone …
        << {{"jsonrpc":"2.0","id":2,"error":{{"code":-31002,…
        "#
    ));
}
