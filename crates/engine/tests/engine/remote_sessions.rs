//! Sessions that a remote server has forgotten, and what only looks like that.

use outlast_engine::reached::Bound;
use outlast_testkit::bounds::reaches;
use outlast_testkit::script::check;

/// A stdio client and a remote server whose handshake is over; the next attempt is 2.
const LEGACY: &str = r#"
        > {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}
        >> post [begins session, ] {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"resumableRequests":{}}}}
        <~1 {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        << {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        > {"jsonrpc":"2.0","method":"notifications/initialized"}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","method":"notifications/initialized"}
        .. stand
"#;

fn legacy(settings: &str, scenario: &str) {
    check(&format!("set http\n{settings}\n{LEGACY}\n{scenario}"));
}

#[test]
fn what_the_next_session_refuses_is_the_calls_own_error() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"pay"}}
        trouble 3 status 404 session {"detail":"no such order"}
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":4,…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after 0s
        >> …initialized…
        .. stand
        >> post […] {"jsonrpc":"2.0","id":5,"method":"tools/call",…
        # Once, and no more; and nobody else hears of it.
        trouble 5 status 404 session {"detail":"no such order"}
        !! warn: http-status …
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31005,"message":"server `srv` refused `pay`: HTTP status 404: {\"detail\":\"no such order\"}.",…"retry":"unsafe"…
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        > {"jsonrpc":"2.0","id":4,"method":"ping"}
        >> post […] {"jsonrpc":"2.0","id":6,"method":"ping"}
        "#,
    );
}

#[test]
fn an_answer_under_our_id_is_the_answer_whatever_its_status() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"pay"}}
        trouble 2 status 404 session {"jsonrpc":"2.0","id":2,"error":{"code":-32001,"message":"Session not found"}}
        << {"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"Session not found"}}
        > {"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"pay"}}
        trouble 3 status 404 session {"jsonrpc":"2.0","id":3,"result":{"isError":true}}
        << {"jsonrpc":"2.0","id":8,"result":{"isError":true}}
        # A method that it does not have.
        > {"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"pay"}}
        trouble 4 status 404 session {"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no such method"}}
        << {"jsonrpc":"2.0","id":9,"error":{"code":-32601,"message":"no such method"}}
        "#,
    );
}

#[test]
fn the_word_session_in_a_refusal_says_nothing_about_ours() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"pay"}}
        trouble 2 status 400 session {"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: the session of the user may not pay"}}
        << {"jsonrpc":"2.0","id":2,"error":{"code":-32600,"message":"Bad Request: the session of the user may not pay"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"pay"}}
        trouble 3 status 409 session {"detail":"session in use"}
        !! warn: http-status …
        << {"jsonrpc":"2.0","id":3,"error":{"code":-31005,…
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"pay"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"_meta":{"progressToken":4},"name":"pay"}}
        trouble 4 status 503 session {"detail":"too many sessions"}
        !! warn: http-status …
        << {"jsonrpc":"2.0","id":4,"error":{"code":-31005,…
        "#,
    );
}

#[test]
fn the_words_of_the_sdks_with_400_are_a_lost_session() {
    for said in [
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}"#,
        r#"{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: Server not initialized"},"id":null}"#,
    ] {
        let scenario = r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"x"}}
        trouble 2 status 400 session SAID
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        "#;
        legacy("", &scenario.replace("SAID", said));
    }
}

#[test]
fn a_server_that_forgets_every_session_fails_those_who_find_out_and_nobody_else() {
    legacy(
        "set restart-intensity 1",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"slow"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"slow"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"x"}}
        trouble 3 status 404 session
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> …initialize…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> …initialized…
        .. stand
        >> …"id":5…
        <~5 {"jsonrpc":"2.0","id":5,"result":{}}
        << {"jsonrpc":"2.0","id":3,"result":{}}
        > {"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"x"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"_meta":{"progressToken":6},"name":"x"}}
        trouble 6 status 404 session
        !! warn: http-status …
        << {"jsonrpc":"2.0","id":4,"error":{"code":-31005,…
        <~2 {"jsonrpc":"2.0","id":2,"result":{}}
        << {"jsonrpc":"2.0","id":2,"result":{}}
        "#,
    );
}

#[test]
fn two_calls_that_find_the_session_lost_begin_one_new_session() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"a"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"b"}}
        trouble 2 status 404 session
        !! warn: trying `srv` again: it has forgotten our session
        tick
        .. start 0
        started
        >> …initialize…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> …initialized…
        .. stand
        >> …"id":5…"a"…
        # It was sent before the new session began.
        trouble 3 status 404 session
        >> post […] {"jsonrpc":"2.0","id":6,…"b"…
        "#,
    );
}

/// The connection of one call could not be made, so the server rests; another call, on a connection that it had,
/// is told that the session is lost.
#[test]
fn a_call_that_finds_the_session_lost_while_the_server_rests_is_sent_when_it_is_back() {
    legacy(
        "",
        r#"
        > {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"_meta":{"progressToken":2},"name":"a"}}
        > {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"b"}}
        >> post [mcp-protocol-version: 2025-11-25] {"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"_meta":{"progressToken":3},"name":"b"}}
        trouble 2 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        trouble 3 status 404 session
        wait 2s
        @2s
        .. start 0
        started
        >> post [begins session, ] {"jsonrpc":"2.0","id":4,"method":"initialize",…
        <~4 {"jsonrpc":"2.0","id":4,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}
        !! warn: `srv` is back after …
        >> …initialized…
        .. stand
        >> post […] {"jsonrpc":"2.0","id":5,…"a"…
        >> post […] {"jsonrpc":"2.0","id":6,…"b"…
        <~6 {"jsonrpc":"2.0","id":6,"result":{}}
        << {"jsonrpc":"2.0","id":3,"result":{}}
        "#,
    );
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

/// A call whose headers the server misses; its tools are asked for under attempt 2.
const PARKED: &str = r#"
        set http
        > {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},META}}
        >> post [mcp-protocol-version: 2026-07-28, mcp-method: tools/call, mcp-name: t] {"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t","arguments":{"region":"eu"},…
        trouble 1 status 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Mcp-Param-Region is missing"}}
        >> …{"jsonrpc":"2.0","id":2,"method":"tools/list",…
"#;

fn parked(scenario: &str) {
    check(&format!("{PARKED}\n{scenario}").replace("META", META));
}

#[test]
fn a_call_whose_tools_cannot_be_listed_is_sent_as_it_is() {
    let again = r#"
        >> post […mcp-name: t] {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        trouble 3 status 400 {"jsonrpc":"2.0","id":3,"error":{"code":-32020,"message":"still"}}
        << {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"still"}}
    "#;
    for breaks in
        ["trouble 2 broken reset", "trouble 2 status 500", "trouble 2 not-mcp text/html", "stream-ended 2"]
    {
        parked(&format!("{breaks}\n{again}"));
    }
    parked(&format!("wait 5m\n@5m\n{again}"));
}

#[test]
fn a_call_whose_tools_cannot_be_asked_for_waits_for_the_server() {
    parked(
        r#"
        trouble 2 unreachable connection refused
        !! warn: cannot reach `srv`: connection refused
        !! warn: trying `srv` again in 2s: it cannot be reached
        wait 2s
        @2s
        .. start 0
        started
        !! warn: `srv` is back after 2s
        >> post […mcp-name: t] {"jsonrpc":"2.0","id":3,"method":"tools/call",…
        <~3 {"jsonrpc":"2.0","id":3,"result":{}}
        << {"jsonrpc":"2.0","id":1,"result":{}}
        "#,
    );
}

#[test]
fn a_list_that_runs_in_a_circle_is_not_read_for_ever() {
    parked(
        r#"
        <~2 {"jsonrpc":"2.0","id":2,"result":{"tools":[],"nextCursor":"a"}}
        >> …"id":3,"method":"tools/list",…"cursor":"a"}}
        <~3 {"jsonrpc":"2.0","id":3,"result":{"tools":[],"nextCursor":"b"}}
        >> …"id":4,"method":"tools/list",…"cursor":"b"}}
        <~4 {"jsonrpc":"2.0","id":4,"result":{"tools":[],"nextCursor":"a"}}
        >> …"id":5,"method":"tools/call",…
        "#,
    );
}

#[test]
fn a_list_without_an_end_is_read_for_a_hundred_pages() {
    let _bounds = reaches(&[Bound::TOOL_PAGES]);
    let pages: String = (2..101)
        .map(|page| {
            format!(
                "<~{page} {{\"jsonrpc\":\"2.0\",\"id\":{page},\"result\":{{\"tools\":[],\"nextCursor\":\"{page}\"}}}}\n\
                 >> …\"id\":{},\"method\":\"tools/list\",…\n",
                page + 1
            )
        })
        .collect();
    parked(&format!(
        r#"{pages}
        <~101 {{"jsonrpc":"2.0","id":101,"result":{{"tools":[],"nextCursor":"x"}}}}
        >> …"id":102,"method":"tools/call",…
        "#
    ));
}
