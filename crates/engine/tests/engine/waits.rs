//! Whose clock stands still while a person is asked.

use outlast_testkit::script::check;

/// A stdio client and a remote server; two calls run, attempts 2 and 3, and the server asks on the stream of the first.
const TWO_CALLS: &str = r#"
        set http
        set timeout 30s
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{},"elicitation":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"asks"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"asks"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"hangs"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"hangs"}}
        wait 10s
"#;

/// Over HTTP a question comes on the stream of the call that it belongs to: the person keeps that call waiting, and no
/// other. A call that hangs beside it must not hang for as long as somebody is at lunch.
#[test]
fn a_question_on_the_stream_of_a_call_stops_the_clock_of_that_call_alone() {
    check(&format!(
        r#"{TWO_CALLS}
        <~2 {{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{{}}}}
        << {{"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{{}}}}
        wait 60s
        @30s
        !! warn: timeout server=srv method=tools/call tool=hangs limit=30s elapsed=30s setting=--timeout state=the server was told to cancel it
        << {{"jsonrpc":"2.0","id":3,"error":{{"code":-32001,"message":"`hangs` gave no sign of life for 30s (timeout, --timeout)…","data":…}}}}
        >> post [mcp-protocol-version: 2025-11-25] {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":3,"reason":"Timeout: no answer within 30s","timeout":30.0}}}}
        .. abandon 3
        .. sample
        >> post [mcp-protocol-version: 2025-11-25] {{"jsonrpc":"2.0","id":4,"method":"ping"}}
        # It says nothing for longer than cancel-grace, but it waits for a person: it is not hung.
        @35s
        .. sample
        > {{"jsonrpc":"2.0","id":"1","result":{{"action":"accept"}}}}
        >> post [mcp-protocol-version: 2025-11-25] {{"jsonrpc":"2.0","id":"q","result":{{"action":"accept"}}}}
        # Of the thirty seconds ten had passed when the person was asked.
        wait 19s
        wait 1s
        @1m30s
        !! warn: timeout server=srv method=tools/call tool=asks limit=30s elapsed=1m30s setting=--timeout state=the server was told to cancel it
        << {{"jsonrpc":"2.0","id":2,"error":{{"code":-32001,"message":"`asks` gave no sign of life for 30s (timeout, --timeout)…","data":…}}}}
        >> post [mcp-protocol-version: 2025-11-25] {{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":2,"reason":"Timeout: no answer within 30s","timeout":30.0}}}}
        .. abandon 2
        .. sample
        >> post [mcp-protocol-version: 2025-11-25] {{"jsonrpc":"2.0","id":5,"method":"ping"}}
        "#
    ));
}

/// What lay in the pipe of a process that has ended may come late. Nobody is left to hear an answer, so nobody is asked:
/// the clock of the next process would stand still for ever. (Found by the simulation: pipes, seed 11.)
#[test]
fn a_process_that_has_ended_asks_nobody() {
    check(
        r#"
        set timeout 30s
        set restart on-crash
        > {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        >> {"id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}
        < {"id":1,"result":{"protocolVersion":"2025-11-25"}}
        << {"id":1,"result":{"protocolVersion":"2025-11-25"}}
        output-closed
        exited 101
        !! warn: `srv` ended: exit status 101
        !! warn: restarting `srv` in 470ms: it ended
        < {"id":9,"method":"elicitation/create","params":{}}
        "#,
    );
}
