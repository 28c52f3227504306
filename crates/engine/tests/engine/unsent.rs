//! A client's answer to what a remote server asked, while the server cannot be reached.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

/// A remote server asks during a call, and cannot be reached when the answer comes.
const ANSWERED_IN_VAIN: &str = r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize"…
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result"…
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post …"notifications/initialized"}
        .. stand
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post …"method":"tools/call"…
        <~2 {"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"sure?"}}
        << {"jsonrpc":"2.0","id":"1","method":"elicitation/create","params":{"message":"sure?"}}
        > {"jsonrpc":"2.0","id":"1","result":{"action":"accept"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        undelivered refused {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 2s: it cannot be reached
"#;

#[track_caller]
fn answered_in_vain(rest: &str) {
    check(&format!("{ANSWERED_IN_VAIN}\n{rest}"));
}

#[test]
fn an_answer_that_met_no_connection_is_sent_when_the_server_is_back() {
    answered_in_vain(
        r#"
        wait 2s
        @2s
        .. start 0
        trouble - unreachable refused
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. start 0
        started
        !! warn: `srv` is back after 6s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

/// It may meet no connection once more.
#[test]
fn an_answer_is_kept_as_often_as_it_meets_no_connection() {
    answered_in_vain(
        r#"
        wait 2s
        @2s
        .. start 0
        started
        !! warn: `srv` is back after 2s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        undelivered refused {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        !! warn: cannot reach `srv`: refused
        !! warn: trying `srv` again in 4s: it cannot be reached
        wait 4s
        @6s
        .. start 0
        started
        !! warn: `srv` is back after 6s
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}
        "#,
    );
}

/// A new session has asked nothing.
#[test]
fn an_answer_is_dropped_with_the_session_in_which_it_was_asked() {
    answered_in_vain(
        r#"
        trouble 2 status 404 session {}
        wait 2s
        @2s
        .. start 0
        started
        !! warn: an answer of the client to `srv` never reached it: the session in which it was asked is over
        >> post [begins session, ] {"jsonrpc":"2.0","id":3,"method":"initialize"…
        "#,
    );
}

#[test]
fn an_answer_is_dropped_when_the_server_takes_its_question_back() {
    answered_in_vain(
        r#"
        < {"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"q"}}
        !! warn: an answer of the client to `srv` never reached it: it has taken its question back
        wait 2s
        @2s
        .. start 0
        started
        !! warn: `srv` is back after 2s
        "#,
    );
}

#[test]
fn an_answer_that_comes_much_too_late_is_dropped() {
    let _bounds = reaches(&[Bound::UNSENT]);
    answered_in_vain(
        r#"
        wait 2s
        @2s
        .. start 0
        wait 10m
        started
        !! warn: `srv` is back after 10m2s
        !! warn: an answer of the client to `srv` never reached it: it could not be reached for too long
        "#,
    );
}
